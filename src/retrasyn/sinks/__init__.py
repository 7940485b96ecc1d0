"""Where releases go. A sink takes releases and gives nothing back to the curator."""
