"""``retrasyn methods``: lists the methods."""

import json
from typing import Annotated

import typer


def methods(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print name and summary as JSON.")
    ] = False,
) -> None:
    """List the methods, one line each.

    Example: retrasyn methods
    """
    from retrasyn.methods import METHODS

    if as_json:
        print(json.dumps({row.name: row.summary for row in METHODS.values()}, indent=2))
        return
    width = max(map(len, METHODS))
    for row in METHODS.values():
        print(f"{row.name:<{width}}  {row.summary}")
