"""What `watch` and `demo --live` share: options of the map, the missing extra, the address."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from retrasyn.errors import MissingExtra

HERE = "127.0.0.1"
Port = Annotated[
    int, typer.Option("--port", min=0, max=65535, help="Port of the map; 0: any free one.")
]
Open = Annotated[bool, typer.Option("--open", help="Open the map in the browser.")]


@contextmanager
def needing_serve() -> Iterator[None]:
    """Say what to type where the libraries of a server are not installed."""
    try:
        yield
    except ImportError as error:
        library = (error.name or "a library").partition(".")[0]
        raise MissingExtra(f'{library} is not installed: pip install "retrasyn[serve]"') from None


def announcing(what: str, *, opens: bool) -> Callable[[str], None]:
    """Return what says where the map is, and opens it if that was asked for."""

    def announce(url: str) -> None:
        print(f"{what}: {url}\nStop with Ctrl-C.", flush=True)
        if opens:
            import webbrowser

            webbrowser.open(url)

    return announce
