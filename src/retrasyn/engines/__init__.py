"""Engines that run the workers of shards: in this process or on a Ray cluster."""
