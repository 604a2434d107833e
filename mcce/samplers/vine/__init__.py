"""A vine copula over empirical margins."""
