"""Every table and figure of the paper as data, and one runner for all of them."""
