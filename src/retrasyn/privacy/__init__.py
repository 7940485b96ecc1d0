"""Who may spend how much, when; and the proof afterwards that nobody spent more."""
