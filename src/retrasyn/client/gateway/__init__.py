"""A gateway on the owner's own side: phone apps say where they are, and it reports privately."""
