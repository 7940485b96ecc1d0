"""What every table of settings has in common: names that are known, values that do not change.

The one place that says what to install where pydantic is missing.
"""

from __future__ import annotations

from retrasyn.errors import MissingExtra

try:
    from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
except ImportError:  # pragma: no cover - the tests have every extra
    raise MissingExtra('pydantic is not installed: pip install "retrasyn[serve]"') from None

__all__ = ["AfterValidator", "Field", "Table", "ValidationError"]


class Table(BaseModel):
    """A table of a configuration file."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
