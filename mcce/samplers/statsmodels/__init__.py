"""Models of statsmodels as conditionals, short names of the common ones, and a two-part model of amounts."""
