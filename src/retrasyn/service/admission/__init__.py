"""Judges frames before they are written: who sent them, for which round, is it theirs."""
