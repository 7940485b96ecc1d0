"""Generator of network-based moving objects after Brinkhoff: test data of any size, offline."""
