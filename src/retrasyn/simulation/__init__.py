"""Recorded trajectories in the place of phones: the synchronous front door of the curator."""
