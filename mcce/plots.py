"""The pictures of the package, and values in words, under their public names; see `mcce.report`."""

from mcce.report.plots import (
    change_plot,
    changes_plot,
    correlation_plot,
    marginal_plot,
    overview_plot,
    position,
    runtime_plot,
    samples_plot,
)
from mcce.report.words import fold, is_same, value_pair, value_text

__all__ = [
    "change_plot",
    "changes_plot",
    "correlation_plot",
    "fold",
    "is_same",
    "marginal_plot",
    "overview_plot",
    "position",
    "runtime_plot",
    "samples_plot",
    "value_pair",
    "value_text",
]
