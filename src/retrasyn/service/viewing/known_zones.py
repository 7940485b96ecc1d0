"""The zones that a service may be asked about: by a grid, by H3, or in a file of the operator's."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from retrasyn.answers.zones import Zones, open_zones
from retrasyn.errors import SettingError
from retrasyn.service.settings import MapSettings
from retrasyn.service.viewing.source import ReleaseSource
from retrasyn.service.viewing.view import LruCache
from retrasyn.space import Grid

CELLS = "cells"
"""The name of the cells of the grid."""
_MOST = 200_000  # zones that are remembered


@dataclass(frozen=True, slots=True)
class KnownZones:
    """Zones by what they are called; a name that was sent is never a path."""

    grid: Grid
    crs: str | None = None
    file: Path | None = None
    _opened: LruCache[Zones] = field(
        default_factory=lambda: LruCache(_MOST, lambda zones: zones.n_codes)
    )

    @classmethod
    def of(cls, source: ReleaseSource, settings: MapSettings) -> KnownZones:
        """Return what may be asked of a source."""
        told = "EPSG:3857" if settings.coordinates == "mercator" else None
        known = cls(source.grid, source.metadata().crs or told, settings.zones)
        if settings.zones is not None:
            known.named(settings.zones.stem)  # what is no file of zones is refused at the start
        return known

    def named(self, name: str) -> Zones:
        """Return the zones of a name; an error names those that there are."""
        found = self._opened.get(name, lambda: self._open(name))
        if found is None:
            own = "" if self.file is None else f", {self.file.stem}"
            raise SettingError(f"zones are {CELLS}, grid:K, h3:RES{own}; write one of them")
        return found

    def _open(self, name: str) -> Zones | None:
        if name == CELLS:
            return open_zones(self.grid, box=self.grid.box)
        if self.file is not None and name == self.file.stem:
            return open_zones(self.file, box=self.grid.box, crs=self.crs)
        if name.startswith(("grid:", "h3:")):
            return open_zones(name, box=self.grid.box, crs=self.crs)
        return None
