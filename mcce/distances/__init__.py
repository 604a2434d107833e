"""Distances between rows, and the kernels that rank rows by them."""
