"""Thousands of real devices in one process, replaying recorded trajectories."""
