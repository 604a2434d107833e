from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.report.plots import runtime_plot, samples_plot, trade_off_plot

from .texts import assert_texts_fit

DRAWS = [10, 100, 1000, 25_000]
RESULTS = pd.DataFrame(
    {
        "K": DRAWS * 2,
        "L0": [3.98, 3.18, 2.7, 2.39, 4.1, 3.2, 2.6, 2.3],
        "L1": [1.6, 0.9, 0.6, 0.4, 1.5, 0.8, 0.5, 0.4],
        "source": ["published"] * 4 + ["mcce, measured on a machine with two cores"] * 4,
    }
)


@pytest.fixture(autouse=True)
def _no_figure_is_left_open():
    yield
    plt.close("all")


def times() -> pd.DataFrame:
    """Every quantity varied in turn, with known powers."""
    rows = []
    for name, values in {"p": [5, 10, 20, 40], "K": [10, 10_000], "n_train": [500, 1000], "n_test": [1, 1000]}.items():
        for value in values:
            s = {"p": 10, "K": 10_000, "n_train": 1000, "n_test": 1, name: value}
            fit, generate = 1e-6 * s["p"] ** 2 * s["n_train"], 1e-7 * s["p"] * s["K"] * s["n_test"]
            rows.append({**s, "seconds_fit": fit, "seconds_generate": generate, "seconds_select": 0.0})
    return pd.DataFrame(rows)


def test_quality_against_the_draws():
    axes = samples_plot(RESULTS, group="source")
    assert [ax.get_title(loc="left") for ax in axes] == ["L0 against K", "L1 against K"]
    published, measured = axes[0].lines
    assert published.get_xdata().tolist() == DRAWS
    assert published.get_ydata().tolist() == [3.98, 3.18, 2.7, 2.39]
    assert measured.get_marker() != published.get_marker()
    assert measured.get_linestyle() != published.get_linestyle()
    assert axes[0].get_xscale() == "log"
    assert_texts_fit(*axes)


def test_rows_with_one_number_of_draws_are_averaged():
    (ax,) = samples_plot(RESULTS, measures=["L0"])
    assert ax.lines[0].get_ydata() == pytest.approx([4.04, 3.19, 2.65, 2.345])
    assert ax.get_legend() is None


@pytest.mark.slow
def test_run_time_against_what_varies():
    axes = runtime_plot(times())
    assert [ax.get_title(loc="left") for ax in axes] == [
        f"Run time against {q}" for q in ("p", "K", "n_train", "n_test")
    ]
    labels = [t.get_text() for t in axes[0].get_legend().get_texts()]
    assert labels == ["fit: power 2.00", "generate: power 1.00", "select"]
    assert axes[0].lines[0].get_xdata().tolist() == [5, 10, 20, 40]
    assert axes[0].lines[0].get_ydata() == pytest.approx([0.025, 0.1, 0.4, 1.6])
    assert {t.get_text() for t in axes[0].texts} == {"K = 10,000, n_train = 1000, n_test = 1"}
    assert_texts_fit(*axes)


def test_one_quantity_and_one_step_on_given_axes():
    _, ax = plt.subplots(layout="constrained")
    (drawn,) = runtime_plot(times(), against="n_test", steps=["generate"], axes=[ax])
    assert drawn is ax
    assert ax.lines[0].get_xdata().tolist() == [1, 1000]


def test_bad_input_is_refused():
    with pytest.raises(mcce.InputError, match="no column 'L2'; known: 'K', 'L0'"):
        samples_plot(RESULTS, measures=["L2"])
    with pytest.raises(mcce.InputError, match="no column 'q'"):
        runtime_plot(times(), against="q")
    with pytest.raises(mcce.InputError, match=r"none of .* varies"):
        runtime_plot(times().iloc[:1])
    with pytest.raises(mcce.InputError, match="no column of seconds"):
        runtime_plot(times()[["p", "K"]])
    with pytest.raises(mcce.InputError, match="axes has 1 axes for 2 panels"):
        samples_plot(RESULTS, axes=[plt.subplots()[1]])


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
def test_costs_against_the_floor():
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


def test_costs_of_one_floor_and_without_the_plain_method():
    _, ax = plt.subplots(1, 4, layout="constrained")
    assert list(trade_off_plot(COSTS.loc[["floor 0"]], 0.22, axes=ax)) == list(ax)
    assert len(ax[0].lines) == 1
    with pytest.raises(mcce.InputError, match="no column 'L0'"):
        trade_off_plot(COSTS.drop(columns="L0"), 0.2)
    with pytest.raises(mcce.InputError, match="axes has 1 axes for 4 panels"):
        trade_off_plot(COSTS, 0.2, axes=[ax[0]])


def test_points_that_are_too_short_to_measure_do_not_count_for_the_power():
    overhead = times()[lambda rows: rows["K"] == 10_000].copy()
    overhead = overhead[(overhead["n_train"] == 1000) & (overhead["n_test"] == 1)].drop_duplicates("p")
    overhead["seconds_fit"] = overhead["seconds_fit"].clip(lower=0.1)  # the shortest run takes as long as the next
    powers = []
    for least in (0.0, 0.1, 0.2):
        _, ax = plt.subplots(layout="constrained")
        runtime_plot(overhead, against="p", steps=["fit"], least=least, axes=[ax])
        powers.append(ax.get_legend().get_texts()[0].get_text() if ax.get_legend() else "none")
        assert len(ax.lines[0].get_xdata()) == 4
    assert powers[0].startswith("fit: power 1.")
    assert powers[1] == powers[0]  # nothing is below
    assert "power" not in powers[2]  # two points are left
