"""Sinks: where releases are written."""
