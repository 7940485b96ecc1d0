"""Public roads: networks, how to read them, and maps made of them."""
