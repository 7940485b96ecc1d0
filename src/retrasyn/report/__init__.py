"""What was made, for people to look at: the evaluation report and pictures."""
