"""Differential privacy: exact noise (`noise`), what it adds up to (`account`), and `mcce.Privacy` (`settings`)."""
