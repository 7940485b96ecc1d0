"""Network-based moving objects after Brinkhoff: traffic of any size without a download."""
