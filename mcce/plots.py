"""The pictures of the package under their public name; see `mcce.report.plots`."""

from mcce.report.plots import (
    change_plot,
    changes_plot,
    comparison_plot,
    correlation_plot,
    fold,
    groups_plot,
    is_same,
    marginal_plot,
    overview_plot,
    position,
    runtime_plot,
    samples_plot,
    trade_off_plot,
    value_pair,
    value_text,
)

__all__ = [
    "change_plot",
    "changes_plot",
    "comparison_plot",
    "correlation_plot",
    "fold",
    "groups_plot",
    "is_same",
    "marginal_plot",
    "overview_plot",
    "position",
    "runtime_plot",
    "samples_plot",
    "trade_off_plot",
    "value_pair",
    "value_text",
]
