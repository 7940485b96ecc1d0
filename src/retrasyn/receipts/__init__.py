"""Receipts read back: bound to their files, recomputed, and shown to people."""
