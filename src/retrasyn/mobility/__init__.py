"""What the curator believes about how people move."""
