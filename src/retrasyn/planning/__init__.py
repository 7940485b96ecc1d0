"""What to expect before anybody reports: noise, errors, a grid, and what privacy adds up to."""
