from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.report.plots import marginal_plot
from tests.marks import nightly

from .texts import assert_legible, assert_texts_fit


@pytest.fixture(autouse=True)
def _no_figure_is_left_open():
    yield
    plt.close("all")


def table(n: int, p: int, seed: int) -> pd.DataFrame:
    """Every kind of column in turn, long names among them."""
    rng = np.random.default_rng(seed)
    levels = np.array(["rents a flat", "owns a house outright, with a garden", "$ lives _with_ parents", "other"])
    columns: dict[str, object] = {}
    for j in range(p):
        x = rng.normal(size=n)
        makers = [
            (f"number_{j}", x),
            (f"MaxDelqEver_months_since_the_oldest_trade_was_opened_{j}", np.exp(4 * x)),
            (f"level_{j}", pd.Categorical(levels[np.clip((x + 2).astype(int), 0, 3)])),
            (f"flag_{j}", x > 0),
            (f"count_{j}", pd.array(np.clip(2 * x + 4, 0, None).astype(int), dtype="Int64")),
            (f"date_{j}", pd.Timestamp("2020-01-01") + pd.to_timedelta((100 * x).astype(int), "D")),
            (
                f"many_{j}",
                np.array([f"country of origin {i}" for i in range(40)])[np.clip(6 * x + 15, 0, 39).astype(int)],
            ),
            (f"missing_{j}", np.where(rng.random(n) < 0.1, np.nan, x)),
        ]
        name, values = makers[j % len(makers)]
        columns[name] = values
    return pd.DataFrame(columns)


@pytest.mark.parametrize("p", [3, *nightly(1, 40)])
def test_no_text_overlaps_or_leaves_the_figure(p):
    axes = marginal_plot(table(400, p, 1), table(300, p, 2), notes={"number_0": "KS 0.02"})
    assert len(axes) == p
    assert_texts_fit(*axes)
    assert_legible(*axes)


def heights(ax):
    real, generated = (stairs.get_data() for stairs in ax.patches)
    return real, generated


def test_numbers_are_shares_over_common_bins():
    real, generated = table(400, 1, 1), table(300, 1, 2)
    (ax,) = marginal_plot(real, generated)
    (p, edges, _), (q, same_edges, _) = heights(ax)
    assert (edges == same_edges).all()
    assert p.sum() == pytest.approx(1)
    assert q.sum() == pytest.approx(1)
    np.testing.assert_allclose(p, np.histogram(real["number_0"], edges)[0] / 400)
    np.testing.assert_allclose(q, np.histogram(generated["number_0"], edges)[0] / 300)


def test_integers_have_a_bar_each():
    real = pd.DataFrame({"n": [1, 2, 2, 4]})
    (ax,) = marginal_plot(real, real)
    (p, edges, _), _ = heights(ax)
    assert edges.tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]
    assert p.tolist() == [0.25, 0.5, 0.0, 0.25]


def test_distant_values_are_pooled_and_labelled():
    real = pd.DataFrame({"x": np.append(np.linspace(0, 1, 999), 1e6)})
    (ax,) = marginal_plot(real, real)
    (p, edges, _), _ = heights(ax)
    assert edges[-1] < 2
    assert p.sum() == pytest.approx(1)
    assert "collect" in ax.get_xlabel()


def test_long_tail_does_not_compress_the_other_bars():
    real = pd.DataFrame({"x": np.exp(2 * np.random.default_rng(1).standard_normal(1000))})
    (ax,) = marginal_plot(real, real)
    (p, edges, _), _ = heights(ax)
    assert p.max() < 0.25
    assert p.sum() == pytest.approx(1)
    np.testing.assert_allclose(p, np.histogram(np.clip(real["x"], edges[0], edges[-1]), edges)[0] / 1000)
    assert "logarithmic scale" in ax.get_xlabel()
    assert_texts_fit(ax)


def test_tails_with_more_bins_than_memory_holds():
    values = 10.0 ** np.random.default_rng(0).uniform(0, 149, 200)
    (ax,) = marginal_plot(pd.DataFrame({"x": values}), pd.DataFrame({"x": values[:50]}))
    ax.figure.canvas.draw()
    _, edges, _ = heights(ax)[0]
    assert edges.size <= 31


def test_missing_numbers_are_reported():
    real = pd.DataFrame({"x": [1.0, np.nan, 2.0, 3.0]})
    (ax,) = marginal_plot(real, real.assign(x=1.5))
    assert ax.get_xlabel() == "missing: 25% real, 0% generated"
    (ax,) = marginal_plot(real.assign(x=np.nan), real)
    assert "100% real" in ax.get_xlabel()


def widths(ax):
    n = len(ax.get_yticklabels())
    bars = [patch.get_width() for patch in ax.patches]
    return [t.get_text() for t in ax.get_yticklabels()], bars[:n], bars[n:]


def test_levels_with_missing_and_additional_ones():
    real = pd.DataFrame({"job": pd.Categorical(["clerk", "pilot", None, "clerk"], ["pilot", "clerk", "smith"])})
    generated = pd.DataFrame({"job": ["clerk", "cook"]})
    (ax,) = marginal_plot(real, generated)
    names, p, q = widths(ax)
    assert names == ["pilot", "clerk", "cook", "missing"]
    assert p == [0.25, 0.5, 0.0, 0.25]
    assert q == [0.0, 0.5, 0.5, 0.0]


def test_rarest_of_many_levels_are_pooled():
    rng = np.random.default_rng(1)
    real = pd.DataFrame({"city": rng.choice([f"c{i:02d}" for i in range(30)], 500, p=np.arange(30, 0, -1) / 465)})
    (ax,) = marginal_plot(real, real)
    names, p, _ = widths(ax)
    assert names[-1] == "21 others"
    assert len(names) == 10
    assert sum(p) == pytest.approx(1)


def test_chosen_features_on_given_axes():
    real = table(50, 8, 1)
    _, ax = plt.subplots()
    assert list(marginal_plot(real, real, features=["flag_3"], ax=ax)) == [ax]
    assert ax.get_title(loc="left") == "flag_3"
    assert [a.get_title(loc="left") for a in marginal_plot(real, real, features=["date_5", "flag_3"])] == [
        "date_5",
        "flag_3",
    ]
    with pytest.raises(mcce.InputError, match="ax is given for 8 features"):
        marginal_plot(real, real, ax=ax)
    with pytest.raises(mcce.InputError, match="feature 'flag_4' is not a column of real; did you mean 'flag_3'"):
        marginal_plot(real, real, features=["flag_4"])
    with pytest.raises(mcce.InputError, match="generated lacks the column 'flag_3'"):
        marginal_plot(real, real.drop(columns="flag_3"))


@pytest.mark.parametrize(
    "dates",
    [
        pd.Series(pd.date_range("2020-01-01", periods=40, tz="Europe/Oslo")),
        pd.Series(pd.to_timedelta(np.arange(40), "D")),
        pd.Series(pd.period_range("2020-01", periods=40, freq="M")),
        pd.Series(pd.date_range("2020-01-01", periods=40)).where(np.arange(40) % 5 > 0),
        pd.Series(np.datetime64("20000-01-01", "s") + np.arange(40) * np.timedelta64(1, "D")),
        pd.Series(np.datetime64("-0044-03-15", "s") + np.arange(40) * np.timedelta64(90, "D")),
        pd.Series(pd.PeriodIndex.from_ordinals(np.arange(40) + 18_030, freq="Y")),
    ],
)
def test_dates_and_durations(dates):
    frame = pd.DataFrame({"since": dates})
    (ax,) = marginal_plot(frame, frame)
    (p, _, _), _ = heights(ax)
    assert p.sum() == pytest.approx(1)
    assert_texts_fit(ax)
