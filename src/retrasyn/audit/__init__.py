"""Black-box audits of the guarantee: reports in, verdict out."""
