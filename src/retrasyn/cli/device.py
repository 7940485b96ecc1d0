"""``retrasyn device``: enrols, runs and removes a device."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from retrasyn.cli.interrupts import saying_stopped
from retrasyn.errors import ConsentError, SettingError

if TYPE_CHECKING:
    from retrasyn.client.fixes import FixSource, Latest
    from retrasyn.client.owner import Owned
    from retrasyn.client.rounds import RealClock
    from retrasyn.messages import Manifest

device = typer.Typer(help="Take part in a campaign with this machine.", no_args_is_help=True)

Folder = Annotated[
    Path, typer.Option("--folder", help="Where identity and ledger are kept; not in backups.")
]
NoLines = Annotated[bool, typer.Option("--quiet", help="No line per round.")]
Insecure = Annotated[
    bool,
    typer.Option("--insecure", help="Speak openly (http) with another machine, if that is all."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Agree without being asked.")]
_FOLDER = Path("retrasyn-device")


@device.command()
def enrol(
    link: Annotated[str, typer.Argument(help="Enrolment link of the campaign, good for once.")],
    folder: Folder = _FOLDER,
    yes: Yes = False,
    insecure: Insecure = False,
) -> None:
    """Show what a campaign promises and take part in it, if you agree.

    Example: retrasyn device enrol "https://HOST/#enrol=TOKEN.KEY"
    """
    with open_owned(folder, insecure=insecure) as owned:
        manifest = owned.enrol(link, agreement(yes=yes))
    print(
        f"enrolled in {manifest.name!r}; silent for the first {manifest.window + 1} rounds, then "
        f"run it with: retrasyn device run --folder {folder}"
    )


@device.command()
def run(
    folder: Folder = _FOLDER,
    at: Annotated[
        str | None, typer.Option(metavar="X,Y", help="Stand still at this place.")
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A row with x and y per round.")
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Share for so many rounds.")] = None,
    accept: Annotated[
        bool, typer.Option("--accept", help="Agree to a campaign that has changed.")
    ] = False,
    insecure: Insecure = False,
    quiet: NoLines = False,
) -> None:
    """Report, round after round; positions come from standard input unless an option has them.

    A line of standard input: {"x": 1.5, "y": 2.5}. The latest one counts, for one period; when the
    input ends, the device stops to share.

    Example: retrasyn device run --at 2.5,7.1 --rounds 60
    """
    from retrasyn.client.loop import Loop
    from retrasyn.client.rounds import RealClock
    from retrasyn.wire.canonical import unseal
    from retrasyn.wire.texts import manifest_id

    clock = RealClock()
    fixes = _fixes(at, csv, clock)
    with (
        saying_stopped("silent until it runs again"),
        open_owned(folder, insecure=insecure) as owned,
        owned.connect() as server,
    ):
        envelope = owned.campaign(server)
        if accept:
            owned.accept(envelope, agreement(yes=True))
        manifest = owned.agreed_to(envelope)
        id_ = manifest_id(unseal(envelope)[0])
        loop = Loop(server, owned.reporter(), manifest, id_, fixes, clock, keep=owned.keep)
        for told in loop.run(rounds):
            if not quiet:
                print(told, flush=True)


@device.command()
def status(
    folder: Folder = _FOLDER,
    as_json: Annotated[bool, typer.Option("--json", help="Print the same as JSON.")] = False,
) -> None:
    """Show the campaign, what is left of quarantine, and what was spent.

    Example: retrasyn device status --folder retrasyn-device
    """
    from retrasyn.messages import MICRO

    with open_owned(folder) as owned:
        who, seen = owned.status()
    if as_json:
        facts = {
            "enrolled": who is not None,
            "campaign": seen.campaign or None,
            "server": who and who.server,
            "quarantine": seen.quarantine if seen.rounds_left else None,
            "rounds_left": seen.rounds_left,
            "spent": seen.spent / MICRO,
            "lifetime_cap": seen.lifetime_cap / MICRO,
            "stopped": seen.stopped,
        }
        print(json.dumps(facts, indent=2))
        return
    if who is None:
        left = f"its ledger stays for another {seen.rounds_left} rounds"
        print(f"this device has left; {left if seen.rounds_left else 'its ledger is removed now'}")
        return
    print(f"campaign    {seen.campaign or 'none: agree with retrasyn device accept'}")
    print(f"server      {who.server}")
    waiting = f"{seen.quarantine}, rounds left: {seen.rounds_left}"
    print(f"quarantine  {waiting if seen.rounds_left else 'none'}")
    spent = f"{seen.spent / MICRO:g} of {seen.lifetime_cap / MICRO:g} in all its life"
    print(f"spent       {spent}{'; it has stopped' if seen.stopped else ''}")


@device.command()
def accept(folder: Folder = _FOLDER, yes: Yes = False, insecure: Insecure = False) -> None:
    """Show what the campaign promises now, and agree to it; a change means quarantine.

    Example: retrasyn device accept --yes
    """
    with open_owned(folder, insecure=insecure) as owned, owned.connect() as server:
        manifest = owned.accept(owned.campaign(server), agreement(yes=yes))
    print(f"agreed to {manifest.name!r}; retrasyn device status shows what is left of quarantine")


@device.command()
def leave(
    folder: Folder = _FOLDER,
    force: Annotated[
        bool, typer.Option("--force", help="Leave even if the curator does not confirm it.")
    ] = False,
    insecure: Insecure = False,
) -> None:
    """Leave: the key is revoked, and the curator's row of this device is deleted.

    The ledger stays here until its window has passed, so that nobody enrols anew to report twice;
    the next status or leave after that removes it.

    Example: retrasyn device leave
    """
    from retrasyn.client.owner import read_identity

    if read_identity(folder) is None:
        status(folder)
        return
    with open_owned(folder, insecure=insecure) as owned:
        known = owned.leave(force=force)
        _, seen = owned.status()
    print(
        "the curator has forgotten this device"
        if known
        else "this device has left; the curator did not confirm that it has forgotten it"
    )
    print(f"its ledger stays for {seen.rounds_left} rounds; then retrasyn device status removes it")


def open_owned(folder: Path, *, insecure: bool = False) -> Owned:
    """Return the device of a folder."""
    from retrasyn.client.owner import Owned

    return Owned(folder, insecure=insecure)


def agreement(*, yes: bool) -> Callable[[Manifest], bool]:
    """Return a function that shows the promise to the owner and asks for agreement."""

    def agree(manifest: Manifest) -> bool:
        from retrasyn.client.consent import promise

        print(promise(manifest), flush=True)
        if yes:
            return True
        try:
            with saying_stopped("nothing was agreed to"):
                return input("Do you agree? [y/N] ").strip().lower() in ("y", "yes")
        except EOFError:
            raise ConsentError("nobody answered; agree at a terminal, or with --yes") from None

    return agree


def _fixes(at: str | None, csv: Path | None, clock: RealClock) -> FixSource:
    """Return the source of positions."""
    from retrasyn.client.fixes import Latest, StandingStill, read_place, read_rows

    if at is not None and csv is not None:
        raise SettingError("--at and --csv both say where this device is; give one of them")
    if at is not None:
        return StandingStill(read_place(at))
    if csv is not None:
        return read_rows(csv)
    latest = Latest()
    threading.Thread(target=_listen, args=(latest, clock), daemon=True).start()
    return latest


def _listen(latest: Latest, clock: RealClock) -> None:
    """Read standard input until it ends."""
    from retrasyn.client.fixes import hear_line

    lines: Any = getattr(sys.stdin, "buffer", sys.stdin)
    while latest.next_round():
        fault = hear_line(lines, latest, clock.now)
        if fault:
            sys.stderr.write(f"WARNING: {fault}\n")
