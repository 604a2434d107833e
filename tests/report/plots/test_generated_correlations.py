from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.report.plots import correlation_plot
from tests.marks import nightly_rows

from .texts import assert_texts_fit


@pytest.fixture(autouse=True)
def _no_figure_is_left_open():
    yield
    plt.close("all")


def matrix(p: int, long_names: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    names = [f"f{j}" + "_months_since_the_oldest_trade" * long_names for j in range(p)]
    return pd.DataFrame(np.corrcoef(rng.normal(size=(p, 30))).reshape(p, p), names, names)


@pytest.mark.parametrize(
    ("p", "long_names"), [(1, False), (3, True), *nightly_rows((3, False), (12, True), (40, False), (40, True))]
)
def test_no_text_overlaps_or_leaves_the_figure(p, long_names):
    ax = correlation_plot(matrix(p, long_names), title="Difference of the correlations, generated minus real")
    assert_texts_fit(ax)


@pytest.mark.slow
def test_area_is_the_absolute_value_and_fill_the_sign():
    m = pd.DataFrame([[1, 0.25, -0.5], [0.25, 1, 0.0], [-0.5, 0.0, 1]], list("abc"), list("abc"))
    ax = correlation_plot(m, scale=0.5)
    filled, opened = ax.collections
    assert filled.get_offsets().tolist() == [[0, 1]]
    assert opened.get_offsets().tolist() == [[0, 2]]
    ax.figure.canvas.draw()
    radius_filled, radius_opened = (circles.get_transforms()[0][0, 0] for circles in (filled, opened))
    assert 2 * radius_filled == pytest.approx(0.94 * np.sqrt(0.5))
    assert 2 * radius_opened == pytest.approx(0.94)
    assert filled.get_facecolor()[0][3] == 1
    assert len(opened.get_facecolor()) == 0
    assert {t.get_text() for t in ax.texts} == {"0.25", "-0.50", "0.00"}
    assert [t.get_text() for t in ax.get_xticklabels()] == ["a", "b", "c"]
    assert "0.5 fills a cell" in ax.get_xlabel()


@pytest.mark.slow
def test_plot_uses_given_axes():
    _, axes = plt.subplots(1, 2, figsize=(12, 6), layout="constrained")
    assert correlation_plot(matrix(5), ax=axes[1]) is axes[1]
    assert len(axes[1].texts) == 10
    assert_texts_fit(axes[1])


def test_invalid_input_raises():
    with pytest.raises(mcce.InputError, match="give a square one"):
        correlation_plot(matrix(3).iloc[:2])
    with pytest.raises(mcce.InputError, match="scale is 0"):
        correlation_plot(matrix(3), scale=0)
