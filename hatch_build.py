"""Puts the live map and the documents into the package when it is built.

The map is made by `viewer/making.py`, for a wheel, an sdist and an editable install. A page that is
as new as its sources stays as it is, so a wheel from an sdist needs no Node. The documents go into
a wheel, for `retrasyn help`; an editable install reads them where they are.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ViewerHook(BuildHookInterface):  # type: ignore[type-arg]
    """Makes the map and finds the documents before files are collected."""

    PLUGIN_NAME = "viewer"

    def dependencies(self) -> list[str]:
        """Return a Node from the registry, if one is needed and this machine has none."""
        making = self._making()
        return [] if making.is_made() else list(making.requires())

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the map, or end the build with one line."""
        if self.target_name == "wheel" and version == "standard":
            build_data["force_include"] |= self._pages()
        making = self._making()
        try:
            making.make()
        except making.CannotBuildError as error:
            self.app.abort(f"error: {error}")

    def _pages(self) -> dict[str, str]:
        """Return where each document comes from, and where it goes."""
        root = Path(self.root)
        pages = [*sorted((root / "docs").glob("*.md")), root / "README.md"]
        return {str(page): f"retrasyn/pages/{page.name}" for page in pages}

    def _making(self) -> ModuleType:
        place = Path(self.root, "viewer", "making.py")
        spec = importlib.util.spec_from_file_location("retrasyn_viewer_making", place)
        if spec is None or spec.loader is None:
            sys.exit(f"error: {place} cannot be loaded")
        making = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(making)
        return making
