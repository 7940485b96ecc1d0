"""Pictures of what was made."""
