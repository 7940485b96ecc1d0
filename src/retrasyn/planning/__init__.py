"""Forecasts before a campaign: noise, errors, the choice of a grid, epsilon over a lifetime."""
