"""Trajectories in memory, and the files they come from and go to."""

from retrasyn.data.reading_files import read
from retrasyn.data.trajectories import Trajectories
from retrasyn.data.writing_files import write

__all__ = ["Trajectories", "read", "write"]
