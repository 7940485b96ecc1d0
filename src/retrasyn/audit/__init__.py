"""What can be found out about the guarantee from outside, by anyone: reports in, verdict out."""
