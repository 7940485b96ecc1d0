"""The curator's mobility model and its estimators."""
