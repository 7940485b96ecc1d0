"""Tells somebody when a zone's count leaves its usual band by more than chance."""
