"""Where a campaign's work is done: in this process, or on a cluster."""

from __future__ import annotations

from dataclasses import dataclass

from retrasyn.engines.base import Engine
from retrasyn.service.settings import ServerSettings
from retrasyn.service.summing import Sums


@dataclass(frozen=True, slots=True)
class Engines:
    """One for the synthetic streams and one for the sums of reports; None: this process."""

    streams: Engine | None = None
    sums: Engine | None = None

    @classmethod
    def open(cls, settings: ServerSettings) -> Engines:
        """Join the cluster that the settings name, if they do."""
        if settings.engine == "local":
            return cls()
        from retrasyn.engines.ray import RayEngine  # noqa: PLC0415 - an extra

        folder = settings.folder / "workers"
        streams, sums = (
            RayEngine.start(address=settings.address, n_workers=settings.shards, folder=folder)
            for _ in range(2)
        )
        sums.open(Sums.open)
        return cls(streams, sums)

    def close(self) -> None:
        """Let all workers go."""
        for engine in (self.streams, self.sums):
            if engine is not None:
                engine.close()


HERE = Engines()
