"""A gateway run by the owner: it receives positions from phone apps and reports privately."""
