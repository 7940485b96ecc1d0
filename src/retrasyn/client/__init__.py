"""Devices that talk: a client over HTTP, and a gateway for phones."""
