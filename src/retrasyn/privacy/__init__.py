"""Privacy accounting: how much each user may spend and when, and an independent recount of it."""
