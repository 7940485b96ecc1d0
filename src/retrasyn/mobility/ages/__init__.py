"""How long people stay: a hazard by age, learnt from yes-or-no answers about ages."""
