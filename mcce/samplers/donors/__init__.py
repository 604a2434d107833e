"""Conditionals that draw donors: training values from the leaves of trees or from all rows."""
