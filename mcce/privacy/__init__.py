"""Differential privacy: exact noise (`noise`), and what it adds up to (`account`)."""
