"""``retrasyn gateway``: reports privately for phones with tracking apps."""

import logging
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from retrasyn.cli.device import Insecure, NoLines, Yes, agreement
from retrasyn.cli.interrupts import saying_stopped
from retrasyn.errors import SettingError


def gateway(
    links: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[[PHONE=]LINK]...", help="Enrol one more phone per link; PHONE is its name."
        ),
    ] = None,
    folder: Annotated[
        Path, typer.Option("--folder", help="Where identities and ledgers are kept.")
    ] = Path("retrasyn-gateway"),
    host: Annotated[str, typer.Option(help="Address at which phones post.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Its port; 0 takes any.")] = 8710,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Another host name to answer to."),
    ] = None,
    mqtt: Annotated[
        str | None, typer.Option(metavar="URL", help="Also listen to this broker.")
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Stop after so many rounds.")] = None,
    yes: Yes = False,
    accept: Annotated[
        bool, typer.Option("--accept", help="Agree to a campaign that has changed.")
    ] = False,
    insecure: Insecure = False,
    quiet: NoLines = False,
) -> None:
    """Take positions from OwnTracks, Traccar Client or OsmAnd, and report them privately.

    Run it at home: positions stay in its memory, and only hidden answers go to the curator.

    Example: retrasyn gateway "anna/phone=https://HOST/#enrol=TOKEN.KEY"
    """
    from retrasyn.client.gateway.listener import Listener
    from retrasyn.client.gateway.mqtt import Subscriber
    from retrasyn.client.gateway.phones import Phones
    from retrasyn.client.loop import Told

    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")

    def tell(number: int, told: Told) -> None:
        if not quiet:
            print(f"phone {number}, {told}", flush=True)

    phones = Phones(folder, rounds=rounds, tell=tell, insecure=insecure)
    with ExitStack() as stack:
        # A link is good for once: what may fail without it comes first.
        listener = Listener(host, port, phones.hear, allowed_host or ())
        stack.callback(listener.server_close)
        subscriber = None if mqtt is None else Subscriber(mqtt, phones.hear, insecure=insecure)
        phones.open()
        for link in links or []:
            phones.enrol(link, agreement(yes=yes))
        if not phones.phones:
            raise SettingError("this gateway has no phones yet; give an enrolment link for each")
        stack.enter_context(saying_stopped("the phones are silent until it runs again"))
        stack.callback(phones.stop)
        phones.start(agreement(yes=True) if accept else None)
        stack.callback(listener.stop)
        listener.start()
        if subscriber is not None:
            stack.callback(subscriber.stop)
            subscriber.start()
        print(f"phones post to {listener.url}", flush=True)
        phones.wait()
