"""Draws are fair. Every test states its significance level."""

import numpy as np
from scipy import stats

from retrasyn.messages import Ask, Roster
from retrasyn.privacy.selection import UniformDraw
from retrasyn.randomness.kernels import words_at
from retrasyn.randomness.words import address

LEVEL = 1e-6


def test_every_user_is_drawn_equally_often():
    n, rounds = 40, 6000
    keys = np.arange(n)
    who = Roster(keys=keys, addresses=keys.astype(np.uint64), slots=np.zeros(n, np.int64))
    everyone = np.ones(n, np.bool_)
    drawn = np.zeros(n, int)
    for t in range(rounds):
        drawn[UniformDraw().draw(who, everyone, ask=Ask(share=0.25), t=t, gap=1, seed=3)] += 1
    # Each round draws exactly ten, so the counts are less spread than independent ones.
    statistic = ((drawn - rounds / 4) ** 2).sum() / (rounds * 0.25 * 0.75) * (n - 1) / n
    assert stats.chi2.sf(statistic, n - 1) > LEVEL


def test_words_of_neighbouring_addresses_are_uniform_and_uncorrelated():
    n = 200_000
    words = words_at(np.uint64(address(1, 2, "move")), np.arange(n, dtype=np.uint64))
    uniform = words / 2**64
    assert stats.kstest(uniform, "uniform").pvalue > LEVEL
    low_bits = np.bincount((words & np.uint64(15)).astype(int), minlength=16)
    assert stats.chisquare(low_bits).pvalue > LEVEL
    assert abs(np.corrcoef(uniform[1:], uniform[:-1])[0, 1]) < stats.norm.isf(LEVEL / 2) / n**0.5
    later = words_at(np.uint64(address(1, 3, "move")), np.arange(n, dtype=np.uint64)) / 2**64
    assert abs(np.corrcoef(uniform, later)[0, 1]) < stats.norm.isf(LEVEL / 2) / n**0.5
