"""A vine copula over all columns, as a joint model."""
