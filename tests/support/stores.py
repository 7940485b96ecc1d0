"""What tests look up in a store besides what the service asks it."""


def n_tokens(store) -> int:
    """Return how many enrolment tokens are left."""
    return int(store.engine.execute("SELECT COUNT(*) FROM tokens")[0][0])
