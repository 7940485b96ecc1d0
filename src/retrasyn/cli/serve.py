"""``retrasyn serve``: a campaign for real devices, and ``retrasyn invite``: links to join it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from retrasyn.bounded_json import parse_json
from retrasyn.cli import options
from retrasyn.cli.device import Insecure
from retrasyn.cli.watch import needing_serve
from retrasyn.errors import InputError

if TYPE_CHECKING:
    import urllib.request

    from retrasyn.service.web.running import Running

Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="A TOML file with settings.")
]
_FOLDER = Path("retrasyn-service")


def serve(
    config: Config = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0: any free one.")] = None,
    folder: Annotated[Path | None, typer.Option(help="Folder of all that is kept.")] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any setting, such as period=10."),
    ] = None,
    engine: Annotated[
        Literal["local", "ray"] | None,
        typer.Option(help="Where synthetic streams live: here, or on Ray.", show_default=False),
    ] = None,
    address: options.Address = None,
    shards: options.Shards = None,
    roads: options.Roads = None,
    prior: options.Prior = None,
    new_campaign: Annotated[
        bool,
        typer.Option(
            "--new-campaign",
            help="Begin another campaign in the folder, or return to the one with these settings.",
        ),
    ] = False,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print every setting as TOML, and exit.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print no link, and log warnings only.")
    ] = False,
) -> None:
    """Run a campaign: rounds on a clock, reports from real devices, releases for everybody.

    Nothing has to be configured. Everything is kept in one folder, the settings of the campaign
    too; started again with that folder alone, the service goes on where it was.

    Example: retrasyn serve --set period=10
    """
    with needing_serve():
        from retrasyn.service.settings import Settings, config_text

        if print_config:
            print(config_text(), end="")
            return
        from retrasyn.service.campaign_folder import over_roads
        from retrasyn.service.web.running import run
    from retrasyn.space import Box
    from retrasyn.space.grid import format_box

    changes = options.read_settings(setting)
    given = {"host": host, "port": port, "folder": folder}
    given |= {"engine": engine, "address": address, "shards": shards}
    for name, value in given.items():
        if value is not None:
            changes[f"server.{name}"] = str(value)
    for name, public in {"roads": roads, "prior": prior}.items():
        if public is not None:
            changes[f"campaign.{name}"] = str(public)
    loaded = Settings.load(config, changes)
    settings = over_roads(loaded)
    if settings is not loaded:
        box = format_box(Box(*settings.campaign.box))
        sys.stderr.write(f"note: no box is given, so it is that of the roads: {box}\n")
    _log_to_stderr(quiet)
    announce = _stay_silent if quiet else _announce
    code = run(settings, announce=announce, link=not quiet, new_campaign=new_campaign)
    raise typer.Exit(code)


def _announce(running: Running) -> None:
    """Print where the service runs and what to do next."""
    told = "\n  ".join(line for line in (running.guarantee, running.long_run) if line)
    print(
        f"""{running.campaign} runs at {running.url}, a round every {running.period} s
  {running.beginning}
  {told}
The live map:      {running.url}/
Let one device take part, once:
  {running.link}
More links:        retrasyn invite 10 --folder {running.folder}
Operator's token:  {running.token_file}
All that is kept:  {running.folder}
Stop with Ctrl-C; to go on: retrasyn serve --folder {running.folder}""",
        flush=True,
    )


def _stay_silent(_: Running) -> None:
    pass


def _log_to_stderr(quiet: bool) -> None:
    import logging

    logging.basicConfig(
        stream=sys.stderr,
        level=logging.WARNING if quiet else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )


def invite(
    number: Annotated[int, typer.Argument(metavar="[N]", help="How many links.")] = 1,
    folder: Annotated[Path, typer.Option(help="Folder of the running service.")] = _FOLDER,
    server: Annotated[
        str | None, typer.Option(metavar="URL", help="Its address, if it is not this machine's.")
    ] = None,
    operator_token: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The file of the operator's token, if elsewhere."),
    ] = None,
    wait: Annotated[
        float, typer.Option(min=0, help="Seconds to wait for a service that is just starting.")
    ] = 10,
    insecure: Insecure = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list in JSON.")] = False,
) -> None:
    """Make enrolment links: with each of them one device joins a running campaign, once.

    Example: retrasyn invite 10
    """
    from retrasyn.client.curator_client import check_encrypted, check_url
    from retrasyn.client.owner import write_link

    if server is None:
        _await_service(folder / "address", wait)
    url = check_url(server or _read(folder / "address", "is the service running?"))
    check_encrypted(url, insecure=insecure)
    secret = _read(operator_token or folder / "operator.token", "name it with --operator-token")
    tokens, key = _mint(url, secret, number)
    links = [write_link(url, made, key) for made in tokens]
    print(json.dumps(links, indent=2) if as_json else "\n".join(links))


def rotate_key(
    folder: Annotated[Path, typer.Option(help="Folder of the stopped service.")] = _FOLDER,
    overlap: Annotated[
        float,
        typer.Option(min=0, max=8760, metavar="HOURS", help="How long the old key counts on."),
    ] = 24,
) -> None:
    """Give the curator new keys, signed by the old one; devices follow by themselves.

    Stop the service before, and start it again afterwards: the campaign goes on. If the old key
    may be stolen, let it end at once: --overlap 0.

    Example: retrasyn rotate-key --folder retrasyn-service
    """
    import time

    with needing_serve():
        from retrasyn.service.secrets import Secrets
    if not folder.is_dir():
        raise InputError(f"folder {folder} does not exist; name that of a service with --folder")
    secrets = Secrets.open(folder)
    try:
        secrets.rotate(time.time(), overlap=overlap * 3600)
    finally:
        secrets.close()
    print(
        f"the curator has a new key; the old one counts for another {overlap:g} hours\n"
        f"Start the service again, and put {folder / 'curator.key'} into its back-up."
    )


def _await_service(address: Path, wait: float) -> None:
    """Wait until the service has written its address and answers there, or time runs out."""
    import time

    deadline = time.monotonic() + wait
    while not _answers(address) and time.monotonic() < deadline:
        time.sleep(0.1)


def _answers(address: Path) -> bool:
    import socket
    from urllib.parse import urlsplit

    try:
        place = urlsplit(address.read_text(encoding="ascii").strip())
        with socket.create_connection((place.hostname or "", place.port or 0), timeout=1):
            return True
    except (OSError, ValueError):
        return False


def _mint(url: str, secret: str, number: int) -> tuple[list[str], bytes]:
    """Ask a running service for enrolment tokens and the curator's key."""
    import http.client
    import urllib.error
    import urllib.request

    asked = urllib.request.Request(  # noqa: S310 - checked by whoever calls
        f"{url}/v1/operator/tokens",
        data=json.dumps({"n": number}).encode(),
        headers={"authorization": f"Bearer {secret}", "content-type": "application/json"},
    )
    try:
        with _opener(url).open(asked, timeout=30) as answer:
            given = parse_json(answer.read())
            return [str(made) for made in given["tokens"]], bytes.fromhex(given["key"])
    except urllib.error.HTTPError as error:
        with error:
            said = _detail(error.read()) or error.reason
        raise InputError(f"{url} refused ({error.code}): {said}") from None
    except (OSError, UnicodeError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise InputError(f"{url} cannot be asked ({reason}); is the service running?") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{url} answers as no service of ours; check the address") from None


def _opener(url: str) -> urllib.request.OpenerDirector:
    """Return an opener for one address only: the operator's token goes nowhere else."""
    import urllib.request

    from retrasyn.client.curator_client import is_loopback

    class Staying(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            return None

    direct = [urllib.request.ProxyHandler({})] if is_loopback(url) else []
    return urllib.request.build_opener(Staying, *direct)


def _detail(body: bytes) -> str:
    """Return what a service says of a refusal; others say nothing that can be shown."""
    try:
        return str(parse_json(body)["detail"])
    except (ValueError, KeyError, TypeError):
        return ""


def _read(path: Path, hint: str) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise InputError(f"{path} cannot be read ({reason}); {hint}") from None
