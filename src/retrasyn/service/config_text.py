"""Every setting with its meaning and its default, as a TOML file to start from."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

from retrasyn.service.settings import Settings

_WIDTH = 88


def config_text() -> str:
    """Return a configuration that says what holds without one."""
    parts = []
    for section, table in Settings.model_fields.items():
        lines = [f"# {table.description}", f"[{section}]"]
        for name, field in type(table.default).model_fields.items():
            lines += textwrap.wrap(
                field.description or "", _WIDTH, initial_indent="# ", subsequent_indent="# "
            )
            # What is not set has no value in TOML; it is shown as a line to be completed.
            lines += [
                f"# {name} =" if field.default is None else f"{name} = {_value(field.default)}"
            ]
            lines += [""]
        parts.append("\n".join(lines))
    return "\n".join(parts).rstrip() + "\n"


def _value(value: Any) -> str:
    """Write a value in TOML.

    >>> _value((1.0, True, "x")), _value({})
    ('[1.0, true, "x"]', '{}')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name} = {_value(item)}' for name, item in value.items())}}}"
    return json.dumps(str(value)) if isinstance(value, str | Path) else repr(value)
