"""The synthetic population: who is born, who moves where, who ends."""
