"""Reports that no honest device would send: an alarm, and a sum without them.

Everything here looks at reports that were already sent, so it costs no privacy; and what it misses
costs utility, never privacy.
"""

from retrasyn.poisoning.alarms import Alarm as Alarm
from retrasyn.poisoning.alarms import Inspection as Inspection
from retrasyn.poisoning.influence import influence_of_one as influence_of_one
from retrasyn.poisoning.influence import trimmed as trimmed
from retrasyn.poisoning.inspection import inspect as inspect

__all__ = ["Alarm", "Inspection", "influence_of_one", "inspect", "trimmed"]
