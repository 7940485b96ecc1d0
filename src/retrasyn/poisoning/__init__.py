"""Detection of fake reports: alarms, and the sum without suspected reports.

This works on reports that were already sent, so it costs no privacy; a fake report it misses
costs utility, never privacy.
"""

from retrasyn.poisoning.evidence import Evidence as Evidence
from retrasyn.poisoning.evidence import EvidencePool as EvidencePool
from retrasyn.poisoning.inspection import Inspection as Inspection
from retrasyn.poisoning.inspection import influence_of_one as influence_of_one
from retrasyn.poisoning.inspection import inspect as inspect
from retrasyn.poisoning.inspection import trimmed as trimmed
from retrasyn.poisoning.statistics import Alarm as Alarm

__all__ = [
    "Alarm",
    "Evidence",
    "EvidencePool",
    "Inspection",
    "influence_of_one",
    "inspect",
    "trimmed",
]
