"""How much to ask for at each timestamp, and what to make of the answer.

A mechanism is a generator: it yields an `Ask`, is sent an `Estimate` (or None when nobody
reported), and returns an `Outcome`. It does no I/O, so every driver runs the same object.
"""
