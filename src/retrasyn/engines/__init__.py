"""Where work on shards is done: in this process, or on many machines. One seam, two engines."""
