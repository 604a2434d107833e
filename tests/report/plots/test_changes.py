from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from mcce.report.plots.changes import draw_changes
from tests.marks import nightly_rows

from .texts import assert_legible, assert_texts_fit


@pytest.fixture(autouse=True)
def _no_figure_is_left_open():
    yield
    plt.close("all")


def table(p: int, name: str = "f") -> pd.DataFrame:
    rng = np.random.default_rng(1)
    shares = rng.dirichlet([1, 1, 1, 2], p)[:, :3]
    frame = pd.DataFrame(shares, [f"{name}{j}" for j in range(p)], ["up", "down", "other"])
    return frame.assign(note="mostly to lives with parents, furnished")


@pytest.mark.parametrize(
    ("p", "name"), [(3, "f"), *nightly_rows((40, "f"), (40, "months_since_the_oldest_trade_was_opened_"))]
)
def test_no_text_overlaps_or_leaves_the_figure(p, name):
    changes = table(p, name)
    changes.iloc[2:] *= [0, 0, 0, 1] if p == 3 else [1, 1, 1, 1]
    ax = draw_changes(changes, 200, fixed=[f"{name}0"])
    assert_texts_fit(ax)
    assert_legible(ax)


def test_bars_are_shares_in_descending_order():
    changes = pd.DataFrame(
        {"up": [0.1, 0.5, 0.0, 0.0], "down": [0.2, 0.1, 0.0, 0.0], "other": [0.0, 0.0, 0.45, 0.0]}, list("abcd")
    )
    ax = draw_changes(changes, 20, fixed=["e"])
    assert [t.get_text() for t in ax.get_yticklabels()] == ["b", "c", "a"]
    bars = [(patch.get_x(), patch.get_width()) for patch in ax.patches]
    assert bars[:3] == [(0, 0.5), (0, 0.0), (0, 0.1)]
    assert bars[3] == pytest.approx((0.5, 0.1))
    assert {t.get_text() for t in ax.texts} == {"60%", "45%", "30%"}
    assert ax.get_xlabel().replace("\n", " ") == (
        "20 cases, the best counterfactual of each. Never changed: d. Fixed: e."
    )
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["higher", "lower", "another level"]


def test_no_changes():
    changes = pd.DataFrame({"up": [0.0], "down": [0.0], "other": [0.0]}, ["a"])
    ax = draw_changes(changes, 0)
    assert [t.get_text() for t in ax.texts] == ["nothing changes"]
    assert_texts_fit(ax)


@pytest.mark.slow
def test_thirty_most_changed_features_have_a_bar():
    frame = table(100)
    total = frame[["up", "down", "other"]].sum(axis=1)
    ax = draw_changes(frame, 10)
    assert_texts_fit(ax)
    shown = [text.get_text() for text in ax.get_yticklabels()]
    assert shown == total.sort_values(ascending=False).index[:30].tolist()
    assert "70 further features change, none more often than these." in ax.get_xlabel().replace("\n", " ")
