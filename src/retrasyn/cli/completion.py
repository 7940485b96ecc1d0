"""Shell completion of commands and options."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer
import typer.completion

from retrasyn.errors import OutputError

Shell = Literal["bash", "zsh", "fish"]
Show = Annotated[
    Shell | None,
    typer.Option("--show-completion", help="Print what completes commands in a shell, and exit."),
]
Install = Annotated[
    Shell | None,
    typer.Option(
        "--install-completion", help="Let a shell complete commands from now on, and exit."
    ),
]
_TYPER: Any = typer.completion  # its types leave out what it uses itself
_NAME, _VARIABLE = "retrasyn", "_RETRASYN_COMPLETE"

_TYPER.completion_init()  # knows the shells; otherwise it is called for typer's options


def script(shell: Shell) -> str:
    """Return what a shell has to read to complete our commands."""
    text: str = _TYPER.get_completion_script(prog_name=_NAME, complete_var=_VARIABLE, shell=shell)
    return text


def install(shell: Shell) -> str:
    """Put it where the shell reads it when it starts; say where that is."""
    try:
        _, path = _TYPER.install(shell=shell, prog_name=_NAME, complete_var=_VARIABLE)
    except OSError as error:
        raise OutputError(
            f"completion of {shell} cannot be written ({error.strerror}: {error.filename}); put "
            f"what retrasyn --show-completion {shell} prints where the shell reads it"
        ) from None
    return f"{shell} completes retrasyn when it is started anew: {path}"
