"""Sources of random words.

There are exactly two: the operating system, for noise that protects users, and *addressed*
words, which are a pure function of (seed, timestamp, purpose, identifier). Addressed words make a
run repeatable on one thread or many, interrupted or not, because no draw depends on how many
draws came before it.
"""
