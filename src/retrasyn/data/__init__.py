"""Trajectories in memory, and reading and writing them as files."""

from retrasyn.data.reading_files import read
from retrasyn.data.trajectories import Trajectories
from retrasyn.data.writing_files import write

__all__ = ["Trajectories", "read", "write"]
