"""Mechanisms: how much to ask for at each timestamp, and how to use the answers.

A mechanism is a generator: it yields an `Ask`, is sent an `Estimate` (or None when nobody
reported), and returns an `Outcome`. It does no I/O, so every driver runs the same object.
"""

from retrasyn.mechanisms.base import View
from retrasyn.mechanisms.loglinear import LogLinear
from retrasyn.mechanisms.one_ask import Adaptive, Everything, OneAsk, Sample, Uniform
from retrasyn.mechanisms.probe_publish import Absorption, Distribution, ProbeThenPublish

__all__ = [
    "Absorption",
    "Adaptive",
    "Distribution",
    "Everything",
    "LogLinear",
    "OneAsk",
    "ProbeThenPublish",
    "Sample",
    "Uniform",
    "View",
]
