"""Audits of the guarantee from outside: reports in, verdict out."""
