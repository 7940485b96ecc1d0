"""Simulation: recorded trajectories instead of real devices, run synchronously."""
