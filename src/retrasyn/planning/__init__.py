"""Forecasts before a campaign: noise, errors, a grid, epsilon over a lifetime."""
