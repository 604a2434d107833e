"""The tree engine: numba kernels that grow, prune, route and draw. It knows encoded tables, not frames."""
