"""Frequency oracles: how one state is hidden among all, and how reports yield frequencies.

`threshold` needs only the standard library, so nothing is imported here until it is
asked for.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from retrasyn.oracles.oue import OUE

__all__ = ["OUE"]


def __getattr__(name: str) -> Any:
    if name != "OUE":
        raise AttributeError(f"module 'retrasyn.oracles' has no attribute {name!r}")
    from retrasyn.oracles.oue import OUE  # noqa: PLC0415 - see above

    return OUE
