"""Pictures: what they show, and that their texts can be read at a width of 400 pixels."""

import datetime
import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from mcce.exceptions import InputError
from mcce.report.plots import change_plot, changes_plot, make_scale, marginal_plot
from tests.counterfactuals.results import by_hand, explained


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def texts(ax):
    """Return all texts that are drawn, in one line each."""
    figure = ax.figure
    figure.draw_without_rendering()
    axes = [axis for panel in figure.axes for axis in (panel.xaxis, panel.yaxis)]
    beyond = [tick.label1 for axis in axes for tick in axis.get_major_ticks() if not is_within(axis, tick.get_loc())]
    drawn = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    drawn = [text for text in drawn if text not in beyond]
    return {" ".join(text.get_text().split()): text for text in drawn}


def is_within(axis, place):
    low, high = sorted(axis.get_view_interval())
    return low <= place <= high


def check_legible(ax, width=400):
    """Check that each text lies within the picture, and is at least 7 pixels high at this width."""
    figure = ax.figure
    figure.set_dpi(width / figure.get_figwidth())
    renderer = figure.canvas.get_renderer()
    page = figure.bbox
    for label, text in texts(ax).items():
        box = text.get_window_extent(renderer)
        assert text.get_size() * figure.dpi / 72 >= 7, label
        assert page.x0 - 2 <= box.x0, label
        assert box.x1 <= page.x1 + 2, label
        assert page.y0 - 2 <= box.y0, label
        assert box.y1 <= page.y1 + 2, label


# ---- positions on a line


def test_an_even_spread_is_linear():
    place, is_logarithmic = make_scale(np.arange(101.0), 0.0, 100.0)
    assert not is_logarithmic
    np.testing.assert_allclose(place(np.array([-5.0, 0, 25, 100, 200])), [0, 0, 0.25, 1, 1])


@pytest.mark.parametrize("sign", [1, -1])
def test_heavy_tails_are_logarithmic_at_the_crowded_end(sign):
    """Lognormal with a standard deviation of 2: on a linear line, one and two are the same point."""
    values = sign * np.sort(np.exp(2 * np.random.default_rng(1).standard_normal(1000)))[10:990]
    place, is_logarithmic = make_scale(values, values.min(), values.max())
    assert is_logarithmic
    places = place(np.sort(values))
    assert (np.diff(places) >= 0).all()
    assert places[0] == 0
    assert places[-1] == 1
    assert abs(place(np.array([2.0 * sign])) - place(np.array([1.0 * sign]))) > 0.05
    assert abs(places[490] - 0.5) < 0.4  # the median is not at an end


@pytest.mark.parametrize("values", [np.zeros(50), np.full(50, 3.0), np.array([0.0] * 90 + [5000.0] * 10)])
def test_constants_have_places(values):
    place, _ = make_scale(values, values.min(), values.max() + 2)
    places = place(np.array([values.min(), values.max(), values.max() + 2]))
    assert np.isfinite(places).all()
    assert places[0] == 0
    assert places[-1] == 1


# ---- one row


def quantiles(values):
    return pd.DataFrame({"value": np.quantile(values, np.linspace(0, 1, 201)), "share": np.linspace(0, 1, 201)})


def draw(before, after, distributions, **options):
    names = list(before)
    kinds = {name: "numeric" if "share" in d and len(d) > 100 else "categorical" for name, d in distributions.items()}
    factual, counterfactual = (pd.Series(row, index=names, dtype=object, name="ann") for row in (before, after))
    return change_plot(factual, counterfactual, kinds=kinds, distributions=distributions, **options)


def test_the_arrow_of_a_number_goes_from_the_old_to_the_new_value():
    ax = draw({"x": 20.0}, {"x": 70.0}, {"x": quantiles(np.arange(101.0))})
    old, new = (line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o")
    assert (old, new) == pytest.approx(((20 - 1) / 98, (70 - 1) / 98))  # the line has 98 per cent of the rows
    arrow = next(t for t in ax.texts if getattr(t, "arrow_patch", None) is not None)
    assert (arrow.xyann[0], arrow.xy[0]) == pytest.approx((old, new))
    assert {"20", "70", "1", "99", "x", "What would have changed the decision for ann"} <= set(texts(ax))


def test_the_line_reaches_values_beyond_the_training_rows():
    ax = draw({"x": -50.0}, {"x": 300.0}, {"x": quantiles(np.arange(101.0))})
    marks = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"]
    assert marks == [0.0, 1.0]


def test_bars_of_levels_have_the_shares():
    shares = pd.DataFrame({"value": ["a", "b", None], "share": [0.7, 0.2, 0.1]})
    ax = draw({"x": "a"}, {"x": "b"}, {"x": shares})
    widths = np.array([bar.get_width() for bar in ax.patches])
    np.testing.assert_allclose(widths / widths[0], [1, 2 / 7, 1 / 7])
    drawn = texts(ax)
    assert {"a", "b", "missing", "70%", "20%", "10%"} <= set(drawn)
    assert drawn["b"].get_fontweight() == "bold"
    old, new = (line.get_ydata()[0] for line in ax.lines if line.get_marker() == "o")
    assert (old, new) == pytest.approx(tuple(bar.get_y() + bar.get_height() / 2 for bar in ax.patches[:2]))


def test_rare_levels_are_pooled_and_the_two_values_are_not():
    shares = pd.DataFrame({"value": [f"level {k}" for k in range(50)], "share": [0.02] * 50})
    drawn = texts(draw({"x": "level 48"}, {"x": "level 49"}, {"x": shares}))
    assert {"level 48", "level 49", "43 others", "86%"} <= set(drawn)


def test_values_without_a_place_are_written():
    drawn = texts(draw({"x": None, "y": "?"}, {"x": 3.0, "y": "!"}, {"x": quantiles(np.arange(9.0))}))
    assert {"missing", "3", "?", "!"} <= set(drawn)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (pd.Timestamp("2020-01-02"), pd.Timestamp("2020-03-01")),
        (datetime.date(2020, 1, 2), datetime.date(2020, 3, 1)),
        (pd.Period("2020-01", "M"), pd.Period("2020-03", "M")),
        (pd.Timedelta("2h"), pd.Timedelta("5h")),
        (np.float32(1.5), np.float32(2.5)),
        (1, 2),
    ],
)
def test_numbers_of_any_type(before, after):
    training = pd.DataFrame({"value": pd.Series([before] * 101 + [after] * 100, dtype=object), "share": 0.0})
    ax = draw({"x": before}, {"x": after}, {"x": training})
    old, new = (line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o")
    assert (old, new) == (0.0, 1.0)


def test_lists_of_a_wide_table_are_short():
    names = [f"feature_{j}" for j in range(60)]
    before = {name: 0.0 for name in names}
    after = {**before, **{name: 1.0 for name in names[:25]}}
    ax = draw(before, after, {}, fixed=names[40:42], derived=[names[24]])
    notes = " ".join(ax.get_xlabel().split())
    assert "4 more change: feature_20, feature_21, feature_22, feature_23." in notes
    assert "Fixed: feature_40, feature_41." in notes
    assert "Unchanged: feature_25, feature_26" in notes
    assert "feature_32 and 25 others." in notes
    assert "Follows: feature_24 1 instead of 0." in notes
    assert len(ax.get_yticks()) == 20


def test_hostile_names_are_drawn_as_they_are():
    """Names are no mathtext, no format strings and no markup; what cannot be printed is escaped."""
    name = "$\\frac{$ <b>{0}</b>\n\x1b[31m"
    ax = by_hand(names=(name, "home"), ids=("$x^", "b", "c")).plot("$x^", 2, formats={"home": "$ {}"})
    drawn = texts(ax)
    assert "What would have changed the decision for $x^" in drawn
    assert "$ own" in drawn
    assert all(line.isprintable() for text in drawn.values() for line in text.get_text().split("\n"))
    check_legible(ax)


def test_nothing_changes():
    assert "nothing changes" in texts(draw({"x": 1.0}, {"x": 1.0}, {}))
    assert "nothing changes" in texts(changes_plot(by_hand().changes().iloc[:0]))


def test_pictures_of_a_result_are_legible():
    _, _, result = explained()
    most = result.measures["L0"].idxmax()
    check_legible(result.plot(most[0], most[1], labels={7: "a label that is much longer than the name that it has"}))
    check_legible(result.plot())


def test_names_do_not_overlap_the_levels():
    level = "a level with a name of about sixty letters, number {} of them"
    shares = pd.DataFrame({"value": [level.format(k) for k in range(12)], "share": 1 / 12})
    ax = draw({"home": level.format(0)}, {"home": level.format(1)}, {"home": shares})
    drawn = texts(ax)
    renderer = ax.figure.canvas.get_renderer()
    label = drawn.pop("home").get_window_extent(renderer)
    boxes = {text: t.get_window_extent(renderer) for text, t in drawn.items() if text.startswith("a level")}
    assert all(box.x0 >= label.x1 for box in boxes.values())
    for one, other in itertools.combinations(boxes.values(), 2):
        assert min(one.y1, other.y1) - max(one.y0, other.y0) <= 1.5  # pixels of line height


def test_given_axes_are_used():
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    result = by_hand()
    assert result.plot("ann", ax=axes[0]) is axes[0]
    assert result.plot(ax=axes[1]) is axes[1]
    assert figure.get_size_inches().tolist() == [10, 4]
    part = plt.figure().subfigures(1, 2)[0].subplots()
    assert result.plot("bob", ax=part) is part


# ---- many rows


def test_bars_are_the_shares_of_rows_and_directions():
    changes = pd.DataFrame(
        {
            "id": [1, 2, 3, 4, 1, 1],
            "rank": [1, 1, 1, 1, 1, 2],
            "feature": ["salary"] * 4 + ["home", "age"],
            "direction": ["up", "up", "down", "missing", "other", "up"],
        }
    )
    ax = changes_plot(changes, features=["salary", "home", "age", "sex"], fixed=["sex"], n=5)
    bars = [[bar.get_width() for bar in container] for container in ax.containers]
    assert [container.get_label() for container in ax.containers] == [
        "higher",
        "lower",
        "another level",
        "from or to missing",
    ]
    np.testing.assert_allclose(bars, [[0.4, 0], [0.2, 0], [0, 0.2], [0.2, 0]])
    assert {"salary", "home", "80%", "20%"} <= set(texts(ax))
    notes = ax.get_xlabel()
    assert "5 rows" in notes
    assert "Never: age." in notes
    assert "Fixed: sex." in notes
    check_legible(ax)


# ---- real against drawn columns


def test_histograms_hold_all_rows():
    rng = np.random.default_rng(0)
    real = pd.DataFrame({"x": np.exp(3 * rng.normal(size=500)), "n": rng.integers(0, 5, 500), "same": 1.5})
    real.loc[:99, "x"] = np.nan
    axes = marginal_plot(real, real.tail(50))
    for ax, column in zip(axes, real):
        filled, line = (patch.get_data() for patch in ax.patches)
        assert filled.values.sum() == pytest.approx(1)
        assert line.values.sum() == pytest.approx(1)
        assert column != "n" or list(filled.edges) == [-0.5, 0.5, 1.5, 2.5, 3.5, 4.5]
        if column == "n":
            np.testing.assert_allclose(filled.values, real["n"].value_counts(normalize=True).sort_index())
    check_legible(axes[0])


def test_bars_of_whole_numbers_are_equally_wide_in_whole_numbers():
    """Bars of two and of three years in turn would draw a comb where the ages are uniform."""
    ages = pd.DataFrame({"age": np.repeat(np.arange(18, 80), 4)})
    filled = marginal_plot(ages, ages)[0].patches[0].get_data()
    assert set(np.diff(filled.edges)) == {3.0}
    np.testing.assert_allclose(filled.values[:-1], 3 / 62)


def test_missing_values_and_far_values_are_noted():
    x = np.r_[np.arange(997.0), 1e6, np.nan, np.nan]
    ax = marginal_plot(pd.DataFrame({"x": x}), pd.DataFrame({"x": x[:500]}))[0]
    assert ax.get_xlabel() == "missing: <1% real, 0% drawn; the end bars hold what lies beyond"
    assert ax.patches[0].get_data().edges[-1] < 1e4
    empty = marginal_plot(pd.DataFrame({"x": x}), pd.DataFrame({"x": np.full(3, np.nan)}))[0]
    assert empty.get_xlabel().startswith("missing: <1% real, 100% drawn")


def test_levels_and_pooled_levels():
    real = pd.DataFrame({"x": [f"level {k}" for k in range(40)] * 5, "y": pd.Categorical(["a", "b"] * 100)})
    x, y = marginal_plot(real, real.head(20))
    assert [t.get_text() for t in x.get_yticklabels()][-1] == "31 others"
    assert [bar.get_width() for bar in y.patches] == [0.5, 0.5, 0.5, 0.5]
    assert [t.get_text() for t in y.get_yticklabels()] == ["a", "b"]


def test_dates_have_dates_below():
    real = pd.DataFrame({"x": pd.date_range("2020-01-01", periods=100)})
    ax = marginal_plot(real, real)[0]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["2020-01-15", "2020-03-25"]


def test_columns_with_odd_names_are_legible():
    rng = np.random.default_rng(0)
    names = ["$\\frac{$", "two\nlines", 7, "a name of a column that is far too long for a small panel", ("a", 1)]
    X = pd.DataFrame(rng.normal(0, 1e7, (200, 5)), columns=pd.Index(names, tupleize_cols=False))
    check_legible(marginal_plot(X, X.head(9))[0])


def test_messages():
    X = pd.DataFrame({"a": [1.0, 2.0], "b": [1, 2]})
    with pytest.raises(InputError, match="2 features are to be drawn; name one or more"):
        marginal_plot(X, X, ax=plt.figure().subplots())
    with pytest.raises(InputError, match="'c'"):
        marginal_plot(X, X, features=["c"])
    with pytest.raises(InputError, match="labels names 'c'"):
        changes_plot(by_hand().changes(), labels={"c": "x"})
