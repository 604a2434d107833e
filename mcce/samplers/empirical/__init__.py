"""The empirical conditional of shapr: all training rows as donors, weighted by their distance."""
