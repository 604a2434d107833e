from __future__ import annotations

import string

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from mcce.report.names import Names
from mcce.report.plots.change import ShownChange, change_plot, draw_plans
from tests.marks import nightly, nightly_rows

from .texts import assert_legible, assert_texts_fit


@pytest.fixture(autouse=True)
def _no_figure_is_left_open():
    yield
    plt.close("all")


def rows(n_features: int, n_changes: int, long_names: bool = False):
    """A factual and a counterfactual in which the first features change, numbers and levels in turn."""
    ending = "_months_since_most_recent_inquiry_excluding_the_last_week" if long_names else ""
    levels = ("rents from a private landlord, furnished, in the city", "OWNS_OUTRIGHT_" + "W" * 60)
    names = [f"f{j}{ending}_{j}" for j in range(n_features)]
    before, after, kinds, ranges = {}, {}, {}, {}
    for j, name in enumerate(names):
        kinds[name] = "numeric" if j % 2 == 0 else "categorical"
        old, new = (10_000.0 * j, 10_000.0 * (n_features - j) + 0.25) if j % 2 == 0 else levels
        if j % 2 == 0:
            ranges[name] = (0.0, 10_000.0 * n_features)
        before[name], after[name] = old, new if j < n_changes else old
    return pd.Series(before, dtype=object), pd.Series(after, dtype=object), kinds, ranges


@pytest.mark.parametrize(
    ("n_features", "n_changes", "long_names"),
    [(3, 0, False), (3, 3, True), *nightly_rows((3, 3, False), (40, 2, False), (40, 12, True), (40, 40, False))],
)
def test_no_text_overlaps_or_leaves_the_figure(n_features, n_changes, long_names):
    before, after, kinds, ranges = rows(n_features, n_changes, long_names)
    ax = change_plot(before, after, kinds=kinds, ranges=ranges, predictions=(0.31, 0.62), decision="score in [0.5, 1]")
    assert isinstance(ax, Axes)
    assert_texts_fit(ax)


def test_wide_letters_and_a_long_title_fit():
    names = [letter * 12 for letter in string.ascii_uppercase]
    before = pd.Series("low", index=names, dtype=object)
    after = before.copy()
    after.iloc[0] = "high"
    decision = "score of the class 'would be granted a loan by the branch of first resort' in [0.5, 1] " * 2
    kinds = dict.fromkeys(names, "ordered")
    ax = change_plot(before, after, kinds=kinds, ranges={}, predictions=(0.1, 0.9), decision=decision, name="W" * 150)
    assert_texts_fit(ax)


def test_each_changed_feature_has_a_row_with_both_values():
    before = pd.Series({"salary": 68_000, "home": "rent", "age": 30}, dtype=object, name=7)
    after = pd.Series({"salary": 72_000, "home": "own", "age": 30}, dtype=object)
    ax = change_plot(
        before,
        after,
        kinds={"salary": "numeric", "home": "categorical", "age": "numeric"},
        ranges={"salary": (0, 100_000), "age": (18, 90)},
        fixed=["age"],
        predictions=(0.31, 0.62),
        decision="score in [0.5, 1]",
    )
    assert [t.get_text() for t in ax.get_yticklabels()] == ["salary", "home"]
    written = {t.get_text() for t in ax.texts}
    assert {"68,000", "72,000", "rent", "own", "score in [0.5, 1]: 0.62 instead of 0.31"} <= written
    assert ax.get_xlabel() == "Unchanged: age\u00a0(fixed)"
    assert ax.get_title(loc="left") == "What would have changed the decision for case 7"
    points = sorted(line.get_xdata()[0] for line in ax.lines if len(line.get_xdata()) == 1)
    assert points == pytest.approx([0.68, 0.72])


def test_dates_missing_numbers_and_numbers_without_a_range():
    before = pd.Series({"opened": pd.Timestamp("2020-01-01"), "debt": np.nan, "x": 1.0}, dtype=object)
    after = pd.Series({"opened": pd.Timestamp("2021-01-01 12:30"), "debt": 5.0, "x": 2.0}, dtype=object)
    ranges = {"opened": (pd.Timestamp("2019-01-01"), pd.Timestamp("2022-01-01")), "debt": (0.0, 10.0)}
    ax = change_plot(before, after, kinds=dict.fromkeys(before.index, "numeric"), ranges=ranges)
    assert {"2020-01-01", "2021-01-01\n12:30:00", "missing", "5", "1", "2"} <= {t.get_text() for t in ax.texts}
    assert_texts_fit(ax)


def test_dollar_signs_are_not_math_mode():
    before, after = pd.Series({"pay_$_a": "$1 to $2"}), pd.Series({"pay_$_a": "$3_{ to $4"})
    ax = change_plot(before, after, kinds={"pay_$_a": "categorical"}, ranges={}, name="$x$")
    ax.figure.canvas.draw()


@pytest.mark.slow
def test_plot_uses_the_given_axes_and_keeps_settings():
    settings = matplotlib.rcParams.copy()
    before, after, kinds, ranges = rows(3, 3)
    figure, axes = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
    assert change_plot(before, after, kinds=kinds, ranges=ranges, ax=axes[1]) is axes[1]
    assert plt.get_fignums() == [figure.number]
    assert matplotlib.rcParams == settings


@pytest.mark.slow
def test_height_follows_the_number_of_changes():
    heights = []
    for n_changes in (2, 12):
        before, after, kinds, ranges = rows(40, n_changes)
        ax = change_plot(before, after, kinds=kinds, ranges=ranges)
        heights.append(ax.figure.get_figheight())
    assert heights[1] > heights[0] + 3


def test_similar_rows_are_shaded_and_axis_ends_are_labelled():
    before = pd.Series({"salary": 68_000, "age": 30}, dtype=object, name=7)
    after = pd.Series({"salary": 72_000, "age": 30}, dtype=object)
    alike = pd.DataFrame({"salary": np.linspace(50_000, 100_000, 1001), "age": 30})
    options = {"kinds": dict.fromkeys(before.index, "numeric"), "ranges": {"salary": (0, 1e6), "age": (18, 90)}}
    ax = change_plot(before, after, **options, fixed=["age"], alike=alike)
    assert {"50,500", "99,500", "68,000", "72,000"} <= {text.get_text() for text in ax.texts}
    assert "cases with the same fixed values and the wanted decision" in ax.get_xlabel().replace("\n", " ")
    (shading,) = ax.patches
    heights = shading.get_data().values
    assert heights[1:-1] == pytest.approx(np.full(22, heights[1]), abs=0.02)
    assert heights[[0, -1]].max() < heights[1]  # higher: the rows of the plot run downwards
    assert len(ax.get_xticks()) == 0
    assert_texts_fit(ax)
    missing = change_plot(before, after, **options, alike=alike.assign(salary=np.nan))
    assert not missing.patches
    assert "Shaded" not in missing.get_xlabel()


@pytest.mark.parametrize("width", [8, *nightly(3.5)])
def test_bar_shows_the_allowed_range_if_narrower(width):
    before, after, kinds, ranges = rows(6, 6)
    low, high = ranges["f2_2"]
    allowed = {"f2_2": (low + (high - low) / 4, high), "f4_4": ranges["f4_4"]}
    figure = plt.figure(figsize=(width, 5), layout="constrained")
    options = {"kinds": kinds, "ranges": ranges, "predictions": (0.31, 0.62), "decision": "score in [0.5, 1]"}
    ax = change_plot(before, after, **options, allowed=allowed, ax=figure.subplots())
    bars = [line for line in ax.lines if len(line.get_xdata()) == 2 and line.get_linewidth() > 2]
    assert [line.get_xdata().tolist() for line in bars] == [[0.25, 1.0]]
    assert 2 < bars[0].get_ydata()[0] < 2.5
    assert "what the constraints on this feature allow" in ax.get_xlabel().replace("\n", " ")
    assert_texts_fit(ax)
    plain = change_plot(before, after, **options, allowed={"f4_4": ranges["f4_4"]})
    assert "constraints" not in plain.get_xlabel()


@pytest.mark.slow
def test_hundred_changes_have_thirty_rows_and_the_other_names_below():
    """Regression: a page with three such plots took half a minute."""
    before, after, kinds, ranges = rows(101, 100)
    ax = change_plot(before, after, kinds=kinds, ranges=ranges)
    assert [text.get_text() for text in ax.get_yticklabels()] == [f"f{j}_{j}" for j in range(30)]
    below = ax.get_xlabel().replace("\n", " ")
    assert below.startswith("70 more change: f30_30, f31_31,")
    assert "f99_99" in below
    assert below.endswith("Unchanged: f100_100")
    assert ax.figure.get_size_inches()[1] < 20
    assert_texts_fit(ax)


def test_accompanying_change_is_below_with_dashed_arrow_and_note():
    before, after, kinds, ranges = rows(6, 3)
    names = list(before.index)
    ax = change_plot(before, after, kinds=kinds, ranges=ranges, along=names[:2])
    assert [label.get_text().replace("\n", " ") for label in ax.get_yticklabels()] == [
        names[2],
        f"{names[0]} (comes along)",
        f"{names[1]} (comes along)",
    ]
    dashed = [text.arrow_patch.get_linestyle() for text in ax.texts if getattr(text, "arrow_patch", None) is not None]
    assert [style == "-" for style in dashed] == [True, False, False]
    assert ax.get_xlabel().replace("\n", " ").startswith("Dashed: comes along. The decision does not need it")
    assert_texts_fit(ax)
    plain = change_plot(before, after, kinds=kinds, ranges=ranges)
    assert "Dashed" not in plain.get_xlabel()


def arrows_of(ax):
    return [text for text in ax.texts if getattr(text, "arrow_patch", None) is not None]


def bars_of(ax):
    """Return the bars: thick lines, by row, with their two ends."""
    thick = [line for line in ax.lines if line.get_linewidth() == 5]
    return {int(line.get_ydata()[0]): tuple(line.get_xdata()) for line in thick}


def test_actions_are_arrows_and_consequences_are_bars():
    before = pd.Series({"school": "none", "salary": 30.0, "savings": 5.0, "rent": 9.0, "job": "cook"}, dtype=object)
    after = pd.Series({"school": "degree", "salary": 50.0, "savings": 20.0, "rent": 9.0, "job": "chef"}, dtype=object)
    ranges = dict.fromkeys(["salary", "savings", "rent"], (0.0, 100.0))
    kinds = {"school": "categorical", "job": "categorical"} | dict.fromkeys(ranges, "numeric")
    ax = change_plot(
        before,
        after,
        kinds=kinds,
        ranges=ranges,
        along=["salary", "job"],
        consequences={"salary": (40.0, 70.0), "job": ("chef", "chef"), "rent": (9.0, 14.0)},
        cases=93,
        predictions=(0.3, 0.6),
        decision="granted",
        name=7,
    )
    labels = [label.get_text().replace("\n", " ") for label in ax.get_yticklabels()]
    assert labels == ["school", "savings", "salary (consequence)", "rent (consequence)", "job (consequence)"]
    assert bars_of(ax) == {2: (0.4, 0.7), 3: pytest.approx((0.09, 0.14))}
    assert sorted(arrow.xy[1] for arrow in arrows_of(ax)) == [0, 1, 4]  # of the consequences, only the level
    written = {text.get_text() for text in ax.texts}
    assert {"40 to 70", "50", "30", "9 to 14", "granted: 0.6 instead of 0.3; reached in 93 of 100 cases"} <= written
    assert ax.get_title(loc="left").replace("\n", " ") == "Actions that may change the decision for case 7"
    assert "Arrow: an action. Bar: a consequence" in " ".join(ax.get_xlabel().split())
    assert_texts_fit(ax)


@pytest.mark.parametrize("place", [0.0, 0.5, 1.0])
def test_long_labels_of_bar_ends_fit(place):
    names = [f"f{j}" for j in range(3)]
    before = pd.Series(1_234_567.25, index=names, dtype=object)
    after = pd.Series(9_876_543.75 * place + 0.5, index=names, dtype=object)
    options = {"kinds": dict.fromkeys(names, "numeric"), "ranges": dict.fromkeys(names, (0.0, 9_876_544.25))}
    usual = dict.fromkeys(names, (9_111_111.125 * place, 9_876_543.875 * place + 0.25))
    assert_texts_fit(change_plot(before, after, **options, along=names, consequences=usual))


def homes(n_rows: int = 1000) -> pd.DataFrame:
    """Rows with a level for each share: own 70, rent 25 and parents 5 per cent."""
    levels = np.repeat(["rent", "own", "parents"], [n_rows // 4, 7 * n_rows // 10, n_rows // 20])
    return pd.DataFrame({"home": pd.Categorical(levels, ["rent", "own", "parents", "boat"])})


def test_change_of_level_shows_the_shares_of_the_levels():
    before, after = pd.Series({"home": "rent"}, dtype=object), pd.Series({"home": "own"}, dtype=object)
    ax = change_plot(before, after, kinds={"home": "categorical"}, ranges={}, alike=homes())
    lengths = np.array([bar.get_width() for bar in ax.patches])
    assert lengths / lengths.sum() == pytest.approx([0.25, 0.7, 0.05])  # in the order of the levels
    assert [bar.get_alpha() for bar in ax.patches] == [0.28, 0.75, 0.28]  # the new level is darker
    assert [text.get_text() for text in ax.texts if text.get_text()] == ["rent", "25%", "own", "70%", "parents", "5%"]
    (arrow,) = arrows_of(ax)
    assert arrow.xyann[1] < arrow.xy[1]  # from the first level down to the second
    assert "per cent: their share of each level" in " ".join(ax.get_xlabel().split())
    assert_texts_fit(ax)


def test_old_and_new_level_have_bars_and_other_rare_levels_share_one():
    levels = [f"level {k:02d}" for k in range(20)]
    alike = pd.DataFrame({"home": np.repeat(levels, np.arange(20) + 1)})
    before, after = pd.Series({"home": np.nan}, dtype=object), pd.Series({"home": levels[0]}, dtype=object)
    ax = change_plot(before, after, kinds={"home": "categorical"}, ranges={}, alike=alike)
    written = [text.get_text() for text in ax.texts if text.get_text()]
    assert {"missing", "0%", "level 00", "<1%", "14 others"} <= set(written)
    assert sum("level" in text for text in written) == 6
    assert_texts_fit(ax)


def test_several_plans_share_one_figure_title_and_note():
    before = pd.Series({"home": "rent", "salary": 30.0, "age": 40.0}, dtype=object)
    options = {
        "factual": before,
        "kinds": {"home": "categorical", "salary": "numeric", "age": "numeric"},
        "ranges": {"salary": (0.0, 100.0), "age": (18.0, 90.0)},
        "alike": homes().assign(salary=np.linspace(20, 80, 1000)),
        "fixed": ["age"],
        "name": 7,
        "names": Names(),
    }
    after = [{"salary": 50.0}, {"salary": 40.0, "home": "own"}]
    plans = [
        ShownChange(counterfactual=pd.Series({**before, **each}), predictions=(0.3, 0.6), **options) for each in after
    ]
    axes = draw_plans(plans)
    assert len({ax.figure for ax in axes}) == 1
    assert [ax.get_title(loc="left") for ax in axes] == ["What would have changed the decision for case 7", ""]
    for k, ax in enumerate(axes):
        assert f"Plan {k + 1}, prediction: 0.6 instead of 0.3" in {text.get_text() for text in ax.texts}
    assert axes[0].get_xlabel() == ""
    assert axes[1].get_xlabel().count("Shaded") == 1
    assert axes[1].get_xlabel().endswith("Unchanged: age\u00a0(fixed)")
    heights = [ax.get_window_extent().height / ax.figure.dpi for ax in axes]
    assert heights == pytest.approx([each.unit * sum(each.heights) for each in plans], rel=0.02)
    assert_texts_fit(*axes)
    assert_legible(*axes)
