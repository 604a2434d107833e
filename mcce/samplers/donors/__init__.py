"""Conditionals that draw donors: training values of the target, from the leaves of trees or from all rows."""
