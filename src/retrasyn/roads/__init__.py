"""Public roads: networks, how to read them, and maps made of them."""

NOT_PUBLIC = "a map drawn from participants' traces is not public"
"""Said wherever a map is asked for."""
