"""RetraSyn: real-time synthetic trajectory streams under w-event local differential privacy.

>>> import retrasyn
>>> real = retrasyn.demo_city(n_users=200, n_timestamps=30, seed=1)
>>> synthetic, receipt = retrasyn.synthesize(real, epsilon=1, window=5, grid=4, box=(0, 0, 10, 10))
>>> synthetic.n_points == real.n_points
True
>>> receipt.worst_window.declared.epsilon <= 1.0
True

Importing the package loads nothing heavy; each name is fetched when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from retrasyn._version import __version__

if TYPE_CHECKING:
    from retrasyn.answers.asking import ask as ask
    from retrasyn.curator import Curator as Curator
    from retrasyn.data.converting import convert as convert
    from retrasyn.data.moving_objects.city_network import city_network as city_network
    from retrasyn.data.moving_objects.generate import generate as generate
    from retrasyn.data.reading_files import read as read
    from retrasyn.data.trajectories import Trajectories as Trajectories
    from retrasyn.data.writing_files import write as write
    from retrasyn.errors import RetraSynError as RetraSynError
    from retrasyn.interpretation import AUTHORS as AUTHORS
    from retrasyn.interpretation import SAFE as SAFE
    from retrasyn.interpretation import Interpretation as Interpretation
    from retrasyn.messages import Release as Release
    from retrasyn.messages import Roster as Roster
    from retrasyn.methods import METHODS as METHODS
    from retrasyn.methods import Method as Method
    from retrasyn.metrics.suite import Scores as Scores
    from retrasyn.metrics.suite import evaluate as evaluate
    from retrasyn.planning.suggestion import suggest as suggest
    from retrasyn.roads.network import RoadNetwork as RoadNetwork
    from retrasyn.roads.opening import open_map as open_map
    from retrasyn.roads.reading_networks import read_network as read_network
    from retrasyn.run_settings import RunSettings as RunSettings
    from retrasyn.simulation.city import demo_city as demo_city
    from retrasyn.simulation.result import Synthesis as Synthesis
    from retrasyn.simulation.run import synthesize as synthesize
    from retrasyn.space.grid import Box as Box
    from retrasyn.space.grid import Grid as Grid
    from retrasyn.space.states import StateSpace as StateSpace

_HOMES = {
    "AUTHORS": "retrasyn.interpretation",
    "Box": "retrasyn.space.grid",
    "Curator": "retrasyn.curator",
    "Grid": "retrasyn.space.grid",
    "METHODS": "retrasyn.methods",
    "Method": "retrasyn.methods",
    "Interpretation": "retrasyn.interpretation",
    "Release": "retrasyn.messages",
    "RetraSynError": "retrasyn.errors",
    "RoadNetwork": "retrasyn.roads.network",
    "Roster": "retrasyn.messages",
    "RunSettings": "retrasyn.run_settings",
    "SAFE": "retrasyn.interpretation",
    "Scores": "retrasyn.metrics.suite",
    "StateSpace": "retrasyn.space.states",
    "Synthesis": "retrasyn.simulation.result",
    "Trajectories": "retrasyn.data.trajectories",
    "ask": "retrasyn.answers.asking",
    "city_network": "retrasyn.data.moving_objects.city_network",
    "convert": "retrasyn.data.converting",
    "demo_city": "retrasyn.simulation.city",
    "evaluate": "retrasyn.metrics.suite",
    "generate": "retrasyn.data.moving_objects.generate",
    "open_map": "retrasyn.roads.opening",
    "read": "retrasyn.data.reading_files",
    "read_network": "retrasyn.roads.reading_networks",
    "suggest": "retrasyn.planning.suggestion",
    "synthesize": "retrasyn.simulation.run",
    "write": "retrasyn.data.writing_files",
}

__all__ = ["__version__", *sorted(_HOMES)]  # noqa: PLE0604 - the table above, checked by a test


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'retrasyn' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
