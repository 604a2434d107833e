"""Evaluation of conditionals on held-out rows: scores, tests, regions of misfit, and the choice among samplers."""
