"""The network side of devices: an HTTP client, and a gateway for phones."""
