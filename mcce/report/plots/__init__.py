"""Pictures of counterfactuals, of generated and real rows, and of the plausibility floor.

Every function draws with matplotlib and returns the Axes, or an array of them; the figure is neither shown nor closed.
`ax=` draws on given axes. Otherwise the height of a new figure follows its content, and its texts are legible when it
is shown 400 pixels wide.
"""

from mcce.report.plots.change import change_plot
from mcce.report.plots.changes import changes_plot
from mcce.report.plots.comparison import comparison_plot
from mcce.report.plots.generated import correlation_plot, marginal_plot, overview_plot
from mcce.report.plots.groups import groups_plot
from mcce.report.plots.trade_off import trade_off_plot

__all__ = [
    "change_plot",
    "changes_plot",
    "comparison_plot",
    "correlation_plot",
    "groups_plot",
    "marginal_plot",
    "overview_plot",
    "trade_off_plot",
]
