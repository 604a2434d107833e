"""Comparison of generated with real rows: the paper's Experiment 3, and the measures of R's synthpop."""

from mcce.diagnostics.realism import compare_correlations, copies, correlations, discriminator, marginal_distances
from mcce.diagnostics.utility import PMSE, pmse, utility_tables

__all__ = [
    "PMSE",
    "compare_correlations",
    "copies",
    "correlations",
    "discriminator",
    "marginal_distances",
    "pmse",
    "utility_tables",
]
