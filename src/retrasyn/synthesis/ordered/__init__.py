"""One timestamp of the synthetic population in order: quits, surplus, steered moves, births."""
