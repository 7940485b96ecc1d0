"""Noisy frequencies drawn towards what they have in common (empirical Bayes)."""
