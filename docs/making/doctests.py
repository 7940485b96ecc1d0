"""Shows doctests of docstrings as code, wherever in the text they stand."""

from __future__ import annotations

from typing import Any

from griffe import Extension, Object


def fenced(text: str) -> str:
    r"""Put a fence around each run of lines that begins with a prompt.

    >>> fenced("Words.\n\n>>> 1 + 1\n2").splitlines()
    ['Words.', '', '```pycon', '>>> 1 + 1', '2', '```']
    """
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith(">>>") and not inside:
            lines.append("```pycon")
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)


class Doctests(Extension):
    """What mkdocstrings calls for every object it reads."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
