"""The paper's experiments: every table and figure, and one runner."""
