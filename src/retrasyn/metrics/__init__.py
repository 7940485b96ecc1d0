"""Metrics of synthetic data against the real data (Sec. IV-B)."""

from retrasyn.metrics.density import density_error as density_error
from retrasyn.metrics.duration import duration_error as duration_error
from retrasyn.metrics.hotspot import hotspot_ndcg as hotspot_ndcg
from retrasyn.metrics.kendall import kendall_tau as kendall_tau
from retrasyn.metrics.length import length_error as length_error
from retrasyn.metrics.moving import MovingScores as MovingScores
from retrasyn.metrics.moving import Points as Points
from retrasyn.metrics.pair import Pair as Pair
from retrasyn.metrics.pattern import pattern_f1 as pattern_f1
from retrasyn.metrics.query import query_error as query_error
from retrasyn.metrics.streams import stream_ratio as stream_ratio
from retrasyn.metrics.suite import METRICS as METRICS
from retrasyn.metrics.suite import Scores as Scores
from retrasyn.metrics.suite import evaluate as evaluate
from retrasyn.metrics.transition import transition_error as transition_error
from retrasyn.metrics.trip import trip_error as trip_error
