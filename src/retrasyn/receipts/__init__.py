"""Reads receipts back: ties them to their files, recomputes them, and prints them."""
