"""The command line: thin, one file per command.

Whatever goes wrong on purpose becomes one line on standard error and exit code 2; Ctrl-C is 130.
"""

import contextlib
import io
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import typer
import typer.core

from retrasyn.cli import completion
from retrasyn.cli.ask import ask
from retrasyn.cli.audit import audit, audit_window
from retrasyn.cli.convert import convert
from retrasyn.cli.demo import demo
from retrasyn.cli.device import device
from retrasyn.cli.doctor import doctor
from retrasyn.cli.evaluate import compare, evaluate
from retrasyn.cli.fleet import fleet
from retrasyn.cli.gateway import gateway
from retrasyn.cli.generate import generate
from retrasyn.cli.interrupts import saying_stopped
from retrasyn.cli.methods import methods
from retrasyn.cli.pages import explaining, in_flags, show_page
from retrasyn.cli.plan import plan
from retrasyn.cli.receipt import receipt
from retrasyn.cli.reproduce import reproduce
from retrasyn.cli.roads import roads
from retrasyn.cli.serve import invite, rotate_key, serve
from retrasyn.cli.stream import stream
from retrasyn.cli.suggest import suggest
from retrasyn.cli.synthesize import synthesize
from retrasyn.cli.validate import validate
from retrasyn.cli.watch import watch
from retrasyn.errors import InputError, RetraSynError


class _Commands(typer.core.TyperGroup):
    """All commands; what none of them says of Ctrl-C is said here."""

    def invoke(self, ctx: Any) -> Any:
        with saying_stopped("by Ctrl-C"):
            return super().invoke(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in RENAMED:
            raise InputError(f"retrasyn {cmd_name} is now retrasyn {RENAMED[cmd_name]}")
        return super().get_command(ctx, cmd_name)


app = typer.Typer(
    name="retrasyn",
    cls=_Commands,
    help="Private synthetic trajectory streams, in real time.",
    add_completion=False,  # ours names the shell instead of guessing it
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
    show_completion: completion.Show = None,
    install_completion: completion.Install = None,
) -> None:
    """Private synthetic trajectory streams, in real time."""
    from retrasyn import __version__

    if version:
        print(f"retrasyn {__version__}")
        raise typer.Exit
    if show_completion is not None:
        print(completion.script(show_completion))
        raise typer.Exit
    if install_completion is not None:
        print(completion.install(install_completion))
        raise typer.Exit
    if context.invoked_subcommand is None:
        from retrasyn.cli.pages import first_steps

        print(first_steps(__version__))


PANELS: dict[str, tuple[Callable[..., None], ...]] = {
    "Start": (demo, doctor, show_page),
    "Data": (convert, validate, suggest, generate, roads),
    "Synthesise and judge": (synthesize, stream, methods, ask, evaluate, compare, watch),
    "Plan and prove": (plan, reproduce),
    "Run a campaign": (serve, invite, rotate_key, fleet),
    "Take part": (gateway,),
}
"""Every command that stands alone, by the panel of the help in which it is listed."""
RENAMED = {"demo-live": "demo --devices 1000", "token": "invite"}
"""What commands of earlier versions are called now."""

for panel, commands in PANELS.items():
    for command in commands:
        name = "help" if command is show_page else None
        spare = {"allow_extra_args": True} if command is convert else None  # it says what to type
        app.command(name, rich_help_panel=panel, context_settings=spare)(command)
audit.command(name="window")(audit_window)
app.add_typer(audit, rich_help_panel="Plan and prove")
app.add_typer(receipt, name="receipt", rich_help_panel="Plan and prove")
app.add_typer(device, name="device", rich_help_panel="Take part")

# What typer raises for a wrong flag, whichever copy of click it brings along.
_UsageError: Any = typer.BadParameter.__base__


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit."""
    warnings.showwarning = _show_warning
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal may know fewer letters than we do
        sys.stdout.reconfigure(errors="backslashreplace")
    given = sys.argv[1:] if arguments is None else arguments
    try:
        _check_text(given)
        code = typer.main.get_command(app).main(
            args=given, prog_name="retrasyn", standalone_mode=False
        )
        sys.stdout.flush()
    except RetraSynError as error:
        sys.exit(_complain(in_flags(str(error)) + explaining(error, given)))
    except _UsageError as error:
        where = error.ctx.command_path if error.ctx else "retrasyn"
        said = error.format_message().replace("Value error, ", "").rstrip(".")
        message = said + _given(error, given)
        sys.exit(_complain(f"{message}; see {where} --help"))
    except (typer.Abort, KeyboardInterrupt):
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    except BrokenPipeError:
        _let_output_go()  # whoever read it has gone
        sys.exit(1)
    except OSError as error:
        _let_output_go()  # a full disk may be its fault
        what = f"{error.filename}: " if error.filename else ""
        sys.exit(_complain(f"{what}{error.strerror or error}; mend that, and run it again"))
    except RuntimeError as error:
        if "no locator available" not in str(error):  # what numba says
            raise
        sys.exit(_complain(_nowhere_to_keep_kernels()))
    sys.exit(code if isinstance(code, int) else 0)


def _nowhere_to_keep_kernels() -> str:
    from retrasyn.cli.installation import KEEP_KERNELS

    return (
        "compiled kernels can be kept nowhere: neither the package nor the home can be written; "
        f"type {KEEP_KERNELS}; see retrasyn help operations"
    )


def _check_text(words: list[str]) -> None:
    """Refuse arguments that are not valid text: half of the libraries cannot open such files."""
    for word in words:
        if not word.isascii() and any("\ud800" <= letter <= "\udfff" for letter in word):
            raise InputError(f"{word!r} is not UTF-8 text; rename the file")


def _let_output_go() -> None:
    """Redirect standard output to nowhere, so that closing it raises no error."""
    with contextlib.suppress(OSError):  # it may be no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _given(error: Any, arguments: list[str]) -> str:
    """Return the value of the option an error is about, if the message lacks it."""
    for option in getattr(getattr(error, "param", None), "opts", []):
        if option in arguments[:-1]:
            value = arguments[arguments.index(option) + 1]
            return "" if value in error.format_message() else f" (given: {value})"
    return ""


def _complain(message: str) -> int:
    """Write one line to standard error; return the exit code of a refusal."""
    sys.stderr.write(f"error: {' '.join(message.split())}\n")
    return 2


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Write a warning as one line."""
    sys.stderr.write(f"WARNING: {in_flags(str(message))}\n")
