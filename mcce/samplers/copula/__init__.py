"""A Gaussian copula over empirical margins."""
