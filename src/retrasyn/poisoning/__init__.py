"""Detection of fake reports: an alarm, and a sum without the suspects.

Everything here looks at reports that were already sent, so it costs no privacy; and what it misses
costs utility, never privacy.
"""

from retrasyn.poisoning.inspection import influence_of_one as influence_of_one
from retrasyn.poisoning.inspection import inspect as inspect
from retrasyn.poisoning.inspection import trimmed as trimmed
from retrasyn.poisoning.statistics import Alarm as Alarm
from retrasyn.poisoning.statistics import Inspection as Inspection

__all__ = ["Alarm", "Inspection", "influence_of_one", "inspect", "trimmed"]
