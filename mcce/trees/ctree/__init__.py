"""Conditional inference trees, as R's party grows them."""
