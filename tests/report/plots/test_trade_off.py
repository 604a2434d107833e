from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.report.plots import trade_off_plot

from .texts import assert_legible, assert_texts_fit


@pytest.fixture(autouse=True)
def _no_figure_is_left_open():
    yield
    plt.close("all")


COSTS = pd.DataFrame(
    {
        "floor": [np.nan, 0.25, 0, 0.05],
        "L0": [3.3, 2.1, 1.0, 1.3],
        "gower_sum": [0.6, 0.5, 0.1, 0.2],
        "distance": [0.2, 0.25, 0.3, 0.28],
        "explained": [1.0, 0.99, 1.0, 1.0],
        "above_floor": [np.nan, 0.97, 1.0, 0.99],
    },
    index=["plain", "floor 0.25", "floor 0", "floor 0.05"],
)


@pytest.mark.slow
def test_costs_by_floor():
    axes = trade_off_plot(COSTS, 0.22)
    assert len(axes) == 4
    changes, _, data, shares = axes
    sparse, plain = changes.lines
    assert sparse.get_xdata().tolist() == [0, 0.05, 0.25]
    assert sparse.get_ydata().tolist() == [1.0, 1.3, 2.1]
    assert set(plain.get_ydata()) == {3.3}
    assert [t.get_text() for t in changes.get_xticklabels()] == ["0", "0.05", "0.25"]
    assert [t.get_text() for t in data.get_legend().get_texts()] == [
        "sparse",
        "plain method",
        "the cases themselves",
    ]
    assert set(data.lines[2].get_ydata()) == {0.22}
    assert [line.get_ydata().tolist() for line in shares.lines] == [[1.0, 1.0, 0.99], [1.0, 0.99, 0.97]]
    assert len({line.get_linestyle() for line in data.lines}) == 3
    places = changes.transData.transform([(x, 0) for x in (0, 0.05, 0.2)])[:, 0]
    assert places[2] - places[0] == pytest.approx(2 * (places[1] - places[0])), "an axis of square roots"
    assert_texts_fit(*axes)
    assert_legible(*axes)


def test_costs_of_one_floor_and_without_the_plain_method():
    _, ax = plt.subplots(1, 4, layout="constrained")
    assert list(trade_off_plot(COSTS.loc[["floor 0"]], 0.22, axes=ax)) == list(ax)
    assert len(ax[0].lines) == 1
    with pytest.raises(mcce.InputError, match="no column 'L0'"):
        trade_off_plot(COSTS.drop(columns="L0"), 0.2)
    with pytest.raises(mcce.InputError, match="axes has 1 axes for 4 panels"):
        trade_off_plot(COSTS, 0.2, axes=[ax[0]])
