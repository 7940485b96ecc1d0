"""A worker that adds numbers up: the smallest thing an engine can hold."""

import numpy as np


class Adder:
    """Remembers the sum of what it was given."""

    def __init__(self, index, n_workers):
        self.index, self.n_workers, self.total, self.whole = index, n_workers, 0, True

    def add(self, number):
        self.total += number
        return self.total

    def begin_half(self):
        self.whole = False

    def end_half(self):
        self.whole = True

    def fail(self):
        raise ValueError("on purpose")

    def to_arrays(self):
        return {"total": np.array([self.total])}

    def load_arrays(self, arrays):
        self.total = int(arrays["total"][0])
