from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from mcce.report.plots import overview_plot
from tests.marks import nightly_rows

from .texts import assert_legible, assert_texts_fit


@pytest.fixture(autouse=True)
def _no_figure_is_left_open():
    yield
    plt.close("all")


def parts(p: int, name: str = "f"):
    rng = np.random.default_rng(1)
    distances = pd.Series(rng.random(p) / 5, [f"{name}{j}" for j in range(p)])
    pairs = pd.DataFrame({"real": rng.uniform(-1, 1, p), "generated": rng.uniform(-1, 1, p)})
    neighbours = pd.DataFrame({"distance": rng.random(50), "distance_wanted": rng.random(50)})
    return distances, pairs, neighbours, pd.Series(rng.random(30))


@pytest.mark.parametrize(
    ("p", "name"), [(3, "f"), *nightly_rows((40, "f"), (40, "months_since_the_oldest_trade_was_opened_"))]
)
def test_no_text_overlaps_or_leaves_the_figure(p, name):
    axes = overview_plot(*parts(p, name))
    assert_texts_fit(*axes)
    assert_legible(*axes)


@pytest.mark.slow
def test_figure_fits_a_phone():
    figure = plt.figure(figsize=(4.2, 13), layout="constrained")
    axes = overview_plot(*parts(40, "months_since_"), n_columns=1, figure=figure)
    assert plt.get_fignums() == [figure.number]
    assert_texts_fit(*axes)


@pytest.mark.slow
def test_contents():
    distances, pairs, neighbours, validity = parts(20)
    bars, points, steps, shares = overview_plot(distances, pairs, neighbours, validity)
    assert [patch.get_width() for patch in bars.patches] == sorted(distances, reverse=True)[:12]
    assert "the 12 largest of 20 features" in bars.get_xlabel().replace("\n", " ")
    assert points.lines[1].get_ydata().tolist() == pairs["generated"].tolist()
    assert steps.lines[0].get_xdata()[1:].tolist() == sorted(neighbours["distance"])
    assert sum(patch.get_height() for patch in shares.patches) == 30
    assert len(overview_plot(distances, pairs)) == 2
    assert len(overview_plot(distances, pairs, neighbours.iloc[:0], validity)) == 3
