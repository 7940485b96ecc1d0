"""The exceptions of RetraSyn.

::

    RetraSynError
    ├── InputError         a file or its rows cannot be used as they are
    ├── OutputError        a result cannot be written where it was asked for
    ├── SettingError       a parameter, method or flag has a value it cannot have
    ├── BudgetExceeded     a grant would spend more than the guarantee allows; nothing was spent
    ├── EntropyError       fresh randomness cannot be had; no report was made
    ├── LedgerError        a device's ledger cannot be read or written; no report was made
    ├── ServerError        a server cannot be reached, or does not answer as a curator does
    ├── ConsentError       the owner has not agreed to what a campaign promises
    ├── WireError          bytes are not exactly what their encoder makes
    ├── CheckpointError    a checkpoint is missing, damaged, or belongs to another run
    ├── EngineError        a cluster cannot be reached, or cannot go on
    ├── StoreError         the service's database cannot be read or written; nothing was acked
    ├── Busy               the service takes no reports right now; the same bytes again, later
    ├── UnknownToken       an enrolment token was never made, or was used before
    └── MissingExtra       an optional dependency is not installed

Every message names the thing, the value, the rule and the way out. A setting is named as Python
calls it, in backticks, with its value where one is advised: `box`, `outside="drop"`. The command
line turns any of these into one line, in which that reads --outside drop, and exit code 2.
"""


class RetraSynError(Exception):
    """Root of the tree: catch this to catch everything we raise on purpose."""


class InputError(RetraSynError):
    """A file or its rows cannot be used as they are."""


class OutputError(RetraSynError):
    """A result cannot be written where it was asked for."""


class SettingError(RetraSynError):
    """A parameter, method or flag has a value it cannot have."""


class BudgetExceeded(RetraSynError):  # noqa: N818 - named after what happened
    """A grant would spend more than the guarantee allows; nothing was spent."""


class EntropyError(RetraSynError):
    """Fresh randomness cannot be had; no report was made."""


class LedgerError(RetraSynError):
    """A device's ledger cannot be read or written; no report was made."""


class ServerError(RetraSynError):
    """A server cannot be reached, or does not answer as a curator does."""


class ConsentError(RetraSynError):
    """The owner has not agreed to what a campaign promises; nothing is sent."""


class WireError(RetraSynError):
    """Bytes are not exactly what their encoder makes."""


class CheckpointError(RetraSynError):
    """A checkpoint is missing, damaged, or belongs to another run."""


class EngineError(RetraSynError):
    """A cluster cannot be reached, or cannot go on."""


class StoreError(RetraSynError):
    """The service's database cannot be read or written; nothing was acknowledged."""


class Busy(RetraSynError):  # noqa: N818 - named after what happened
    """The service takes no reports right now; the same bytes may be sent again, later."""

    def __init__(self, reason: str, *, retry_after: float) -> None:
        super().__init__(f"{reason}; send the same bytes again in {retry_after:g} s")
        self.retry_after = retry_after


class UnknownToken(RetraSynError):  # noqa: N818 - named after what happened
    """An enrolment token was never made, or was used before; nobody was enrolled."""


class MissingExtra(RetraSynError):  # noqa: N818 - named after what happened
    """An optional dependency is not installed."""
