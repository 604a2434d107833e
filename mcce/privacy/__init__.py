"""Differential privacy: exact noise (`noise`), its total cost (`account`), and `mcce.Privacy` (`settings`)."""
