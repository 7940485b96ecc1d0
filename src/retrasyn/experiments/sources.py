"""The paper's data sets: read from files, or generated."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from retrasyn.data.moving_objects.city_network import city_network
from retrasyn.data.moving_objects.generate import generate
from retrasyn.data.reading_files import read
from retrasyn.data.trajectories import Trajectories
from retrasyn.data.writing_files import write
from retrasyn.errors import SettingError
from retrasyn.randomness.kernels import words_at
from retrasyn.randomness.words import address
from retrasyn.roads.reading_networks import read_network
from retrasyn.simulation.city import demo_city
from retrasyn.simulation.population import stable_words

TITLES = {"tdrive": "T-Drive", "oldenburg": "Oldenburg", "sanjoaquin": "San Joaquin"}
"""The data sets of Table I, and their titles."""
CITY = "city"
"""The name of the small built-in city that replaces all data sets in a quick run."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficSize:
    """The settings with which the paper ran Brinkhoff's generator."""

    n_objects: int
    n_new: int
    n_steps: int


_TRAFFIC = {
    "oldenburg": TrafficSize(n_objects=10_000, n_new=500, n_steps=501),
    "sanjoaquin": TrafficSize(n_objects=10_000, n_new=1_000, n_steps=1_001),
}
_TAXIS = {"n_users": 10_000, "n_timestamps": 880}
_QUICK = {"n_users": 20_000, "n_timestamps": 120}


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource:
    """Where a data set comes from, before it is read."""

    name: str
    file: Path  # as given, or where generated data is stored
    network: Path | None = None
    generated: bool = False

    @property
    def title(self) -> str:
        """The title in tables; generated data is never labelled as the real data set."""
        if self.name == CITY:
            return "Built-in city"
        title = TITLES[self.name]
        if not self.generated:
            return title
        if self.network is not None:
            return f"{title} (generated)"
        return f"{title} (built-in city)"

    def make(self, progress: Progress | None = None) -> None:
        """Generate the data set, unless the file exists."""
        if not self.generated or self.file.exists():
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        write(self._generate(progress), self.file)

    def read(self) -> Trajectories:
        """Read the trajectories."""
        return read(self.file)

    def _generate(self, progress: Progress | None) -> Trajectories:
        if self.name == CITY:
            return demo_city(**_QUICK)
        if self.name == "tdrive" and self.network is None:
            return demo_city(**_TAXIS)
        traffic = _TRAFFIC.get(self.name)
        if traffic is None:
            raise SettingError(
                f"{TITLES[self.name]} was recorded, not generated; give it with "
                f"--data {self.name}=FILE instead of --network"
            )
        roads = city_network() if self.network is None else read_network(self.network)
        return generate(
            roads,
            n_objects=traffic.n_objects,
            n_new=traffic.n_new,
            n_steps=traffic.n_steps,
            progress=progress,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """The statistics of a data set that tables show."""

    name: str
    title: str
    generated: bool
    statistics: Mapping[str, float]

    @classmethod
    def of(cls, source: DataSource, real: Trajectories) -> DataSet:
        """Compute the statistics of a data set."""
        return cls(
            name=source.name,
            title=source.title,
            generated=source.generated,
            statistics={
                "streams": real.n_streams,
                "points": real.n_points,
                "mean_length": real.n_points / real.n_streams,
                "timestamps": real.last_t - real.first_t + 1,
            },
        )


def find_sources(
    names: tuple[str, ...],
    *,
    files: Mapping[str, Path],
    networks: Mapping[str, Path],
    folder: Path,
    quick: bool,
) -> list[DataSource]:
    """Find the source of every data set: a file, a network to generate on, or the built-in city."""
    for name in (*files, *networks):
        if name not in TITLES:
            raise SettingError(f"unknown data set {name!r}; choose from {', '.join(TITLES)}")
    for name, file in files.items():
        if not file.is_file():
            raise SettingError(f"--data {name}={file}: there is no such file")
    made = folder / "generated"
    if quick and not files and not networks:
        return [DataSource(name=CITY, file=made / "city-quick.parquet", generated=True)]
    wanted = [name for name in names if not quick or name in files or name in networks]
    sources = []
    for name in wanted:
        if name in files:
            sources.append(DataSource(name=name, file=files[name]))
        else:
            network = networks.get(name)
            if network is not None and name not in _TRAFFIC:
                raise SettingError(
                    f"{TITLES[name]} was recorded, not generated; give --data {name}=FILE"
                )
            mark = "city" if network is None else _mark(network)
            file = made / f"{name}-{mark}.parquet"
            sources.append(DataSource(name=name, file=file, network=network, generated=True))
    return sources


def _mark(network: Path) -> str:
    """Return a short digest of a network file's contents."""
    try:
        return hashlib.sha256(network.read_bytes()).hexdigest()[:12]
    except OSError as error:
        raise SettingError(f"network {network} cannot be read ({error.strerror})") from None


def share_of_users(real: Trajectories, share: float) -> Trajectories:
    """Return the streams of a fixed share of the users; smaller shares are subsets of larger ones.

    >>> city = demo_city(n_users=100, n_timestamps=30)
    >>> share_of_users(city, 1.0) is city, share_of_users(city, 0.2).n_streams < city.n_streams
    (True, True)
    """
    if share >= 1:
        return real
    users = real.stream_ids if real.user_of_stream is None else real.user_of_stream
    words = words_at(np.uint64(address(0, 0, "share")), stable_words(users.tolist()))
    kept = np.flatnonzero(words * 2.0**-64 < share)
    rows = np.repeat(np.isin(np.arange(real.n_streams), kept), real.lengths)
    return Trajectories(
        real.stream_ids[kept],
        real.begins[kept],
        np.concatenate([[0], np.cumsum(real.lengths[kept])]),
        real.x[rows],
        real.y[rows],
        None if real.user_of_stream is None else real.user_of_stream[kept],
        labels=real.labels,
    )
