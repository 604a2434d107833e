"""The plot of groups matches the table."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from mcce.exceptions import InputError
from mcce.report.plots import groups_plot


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def table():
    index = pd.MultiIndex.from_product([["a $x$", np.nan, "c"], ["gower", "explained"]], names=["group", "measure"])
    return pd.DataFrame(
        {
            "n": [10, 12, 1, 2, 0, 5],
            "mean": [0.2, 0.8, 0.3, 0.5, np.nan, 0.0],
            "low": [0.1, 0.6, np.nan, 0.0, np.nan, 0.0],
            "high": [0.3, 0.9, np.nan, 1.0, np.nan, 0.0],
            "difference_low": [0.01, -0.2, np.nan, -0.5, np.nan, -0.9],
            "difference_high": [0.1, 0.3, np.nan, 0.5, np.nan, -0.4],
        },
        index=index,
    )


OVERALL = pd.DataFrame({"mean": [0.25, 0.6]}, index=pd.Index(["gower", "explained"], name="measure"))


@pytest.mark.slow
def test_points_and_intervals_match_the_table():
    axes = groups_plot(table(), OVERALL, "branch")
    assert len(axes) == 2
    for k, ax in enumerate(axes):
        rows = table().iloc[k::2]
        lines = [line.get_xdata() for line in ax.lines]
        points = [line for line in ax.lines if line.get_marker() == "o"]
        np.testing.assert_array_equal([p.get_xdata()[0] for p in points], rows["mean"])
        spans = [list(x) for x in lines if len(x) == 2 and x[0] != x[1]]
        assert spans == [[a, b] for a, b in zip(rows["low"], rows["high"]) if a < b]
        assert [OVERALL["mean"].iloc[k]] * 2 in [list(x) for x in lines]
        filled = [p.get_markerfacecolor() == "#2a4d7c" for p in points]
        assert filled == [[True, False, False], [False, False, True]][k]
    assert [t.get_text() for t in axes[0].get_yticklabels()] == ["a $x$ (10)", "missing (1)", "c (0)"]
    axes[0].figure.draw_without_rendering()


def test_given_axes():
    _, axes = plt.subplots(1, 2)
    assert list(groups_plot(table(), OVERALL, "branch", axes=axes)) == list(axes)
    with pytest.raises(InputError, match="axes has 1 axes for 2 panels; give one for each"):
        groups_plot(table(), OVERALL, "branch", axes=axes[:1])
