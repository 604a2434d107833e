"""The explanation: draw, select (plain or sparse), confirm, tabulate."""
