"""Answers: what people ask a synthetic stream, with what of it may be chance."""
