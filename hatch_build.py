"""Puts the live map into the package when a wheel, an sdist or an editable install is built.

The work is done by `viewer/making.py`. A page that is as new as its sources stays as it is, so a
wheel from an sdist needs no Node.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ViewerHook(BuildHookInterface):  # type: ignore[type-arg]
    """Makes the page before files are collected."""

    PLUGIN_NAME = "viewer"

    def dependencies(self) -> list[str]:
        """Return a Node from the registry, if one is needed and this machine has none."""
        making = self._making()
        return [] if making.is_made() else list(making.requires())

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the page, or end the build with one line."""
        del version, build_data
        making = self._making()
        try:
            making.make()
        except making.CannotBuildError as error:
            self.app.abort(f"error: {error}")

    def _making(self) -> ModuleType:
        place = Path(self.root, "viewer", "making.py")
        spec = importlib.util.spec_from_file_location("retrasyn_viewer_making", place)
        if spec is None or spec.loader is None:
            sys.exit(f"error: {place} cannot be loaded")
        making = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(making)
        return making
