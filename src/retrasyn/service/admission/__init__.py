"""Judges frames before they are written: sender, round, and whether a report is due."""
