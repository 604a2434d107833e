"""Display of trees: text compared with R, tables with the arrays, and measured plots."""

from __future__ import annotations

import itertools

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.exceptions import InputError
from mcce.table import Schema
from mcce.trees import cart
from mcce.trees.ctree import tree as ctree
from mcce.trees.display import FittedTree
from mcce.trees.rpart import tree as rpart
from tests.marks import nightly, slow_but
from tests.trees.ctree.ctree_cases import CASES, read_case, read_stored

GROW = {"party": ctree.grow, "rpart": rpart.grow}


def fitted(grow, given, target, **settings):
    tree = grow(given, target, **settings)
    return FittedTree(tree, given.features, target.feature, target.values[tree.donors])


def view_of(frame, target, grow=ctree.grow, **settings):
    table = Schema.from_data(frame).encode(frame)
    at = table.names.index(target)
    return fitted(grow, table.select([j for j in range(len(table.names)) if j != at]), table.column(at), **settings)


@pytest.fixture
def loans():
    return mcce.datasets.load_loans(1500).X


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


# ---------------------------------------------------------------- print


@pytest.mark.parametrize("case", slow_but(CASES, *list(CASES)[::2]))
@pytest.mark.parametrize("package", GROW)
def test_print_matches_r(case, package):
    stored = read_case(case)
    view = fitted(GROW[package], stored.given, stored.target)
    assert str(view).split("\n") == [line.rstrip() for line in read_stored("prints")["prints"][package][case]]


def test_print_of_cart():
    frame = pd.DataFrame({"x": np.arange(8.0), "y": [0.0] * 4 + [3.0] * 4})
    assert str(view_of(frame, "y", cart.grow, min_leaf=2)) == "\n".join(
        [
            "n= 8",
            "",
            "node), split, n, deviance, yval",
            "      * denotes terminal node",
            "",
            "1) root 8 18 1.5",
            "  2) x< 3.5 4  0 0.0 *",
            "  3) x>=3.5 4  0 3.0 *",
        ]
    )


def test_dates_levels_and_missing_values_in_rules():
    rng = np.random.default_rng(0)
    n = 400
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 60, n), "D")
    frame = pd.DataFrame({"day": day, "grade": pd.Categorical(rng.choice(list("abc"), n), list("abc"), ordered=True)})
    y = 5.0 * (day > pd.Timestamp("2024-01-20")) + 2.0 * (frame["grade"] == "c") + rng.normal(size=n) / 9
    by_day = view_of(frame.assign(y=y), "y", max_depth=1)
    assert [str(by_day.rule(node)) for node in (1, 2)] == ["day <= 2024-01-20", "day > 2024-01-20"]
    assert by_day.to_frame()["threshold"].iloc[0] == pd.Timestamp("2024-01-20")
    by_grade = view_of(frame[["grade"]].assign(y=y), "y", max_depth=1)
    assert str(by_grade.rule(1)) == "grade <= b"
    assert by_grade.to_frame()["levels"].iloc[0] == ("a", "b")
    assert str(view_of(frame[["grade"]].assign(y=y), "y", cart.grow, max_depth=1).rule(1)) == "grade in {a, b}"
    lost = rng.random(n) < 0.3
    gap = pd.DataFrame({"x": np.where(lost, np.nan, rng.normal(size=n)), "y": 4.0 * lost + rng.normal(size=n) / 9})
    by_gap = view_of(gap, "y", cart.grow, max_depth=1)
    assert {str(by_gap.rule(node)) for node in (1, 2)} == {"x is known", "x is missing"}
    when = view_of(frame.assign(y=y)[["y", "day"]], "day", cart.grow, max_depth=1)
    assert isinstance(when.prediction(0), pd.Timestamp)
    assert "2024" in str(when)


def test_levels_ruled_out_above_are_not_named_again(loans):
    view = view_of(loans, "years_employed", cart.grow, max_depth=4)
    for node in view.order[1:]:
        rule = view.rule(node)
        above = view.parent[node]
        while above > 0:
            if view.rule(above).name == rule.name and rule.sign == view.rule(above).sign == "in":
                assert set(rule.values) < set(view.rule(above).values)
            above = view.parent[above]


# ---------------------------------------------------------------- to_frame


@pytest.mark.parametrize("grow", [ctree.grow, cart.grow, rpart.grow])
@pytest.mark.parametrize("target", ["salary", "employment", "education"])
def test_frame_matches_the_arrays(loans, grow, target):
    view = view_of(loans[["age", "sex", "education", "employment", "salary"]], target, grow, max_depth=3)
    frame = view.to_frame()
    assert frame.index.is_unique
    assert len(frame) == view.tree.n_nodes
    assert frame["n"].iloc[0] == 1500
    inner = frame[frame["variable"].notna()]
    for number, row in inner.iterrows():
        children = frame[frame["parent"] == number]
        assert children["n"].sum() == row["n"]
        assert (children["depth"] == row["depth"] + 1).all()
        assert children["condition"].str.startswith(f"{row['variable']} ").all()
    assert frame.loc[frame["variable"].isna(), "n"].sum() == 1500
    root = frame.iloc[0]
    if target == "salary":
        assert root["prediction"] == pytest.approx(loans["salary"].mean())
    else:
        assert root["prediction"] == loans[target].mode()[0]
    if grow is ctree.grow:
        assert inner["criterion"].gt(0.95).all()
        assert inner["statistic"].gt(0).all()
    else:
        assert list(frame.index) != sorted(frame.index) or len(frame) <= 3
        parents = frame["parent"].dropna()
        assert all(number // 2 == parent for number, parent in parents.items())


def test_rows_can_be_followed_through_the_frame(loans):
    view = view_of(loans[["age", "employment", "salary"]], "salary", max_depth=3)
    frame = view.to_frame()
    given = Schema.from_data(loans[["age", "employment"]]).encode(loans[["age", "employment"]])
    leaf = np.array(view.numbers)[view.tree.route(given.matrix)]
    for row, number in zip(loans.head(100).to_dict("records"), leaf):
        at = 1
        while pd.notna(frame.loc[at, "variable"]):
            split = frame.loc[at]
            value = row[split["variable"]]
            goes_left = value in split["levels"] if split["levels"] is not None else value <= split["threshold"]
            at = frame.index[frame["parent"] == at][0 if goes_left else 1]
        assert at == number


@pytest.mark.slow
def test_deep_trees_have_long_numbers():
    n = 70
    frame = pd.DataFrame({"x": np.arange(float(n)), "y": 3.0 ** np.arange(n)})
    view = view_of(frame, "y", cart.grow, min_leaf=1)
    assert view.depth.max() > 62
    assert max(view.to_frame().index) == max(view.numbers) > 2**63
    assert len(str(view).split("\n")) == 5 + view.tree.n_nodes
    view.plot()


# ---------------------------------------------------------------- from a chain


def test_tree_of_a_fitted_chain(loans):
    chain = mcce.ChainModel(sampler={"salary": "ctree", "*": "cart"}, fixed=["age", "sex"]).fit(loans)
    assert repr(chain.samplers_["salary"].tree).startswith("FittedTree(salary, ")
    assert str(chain.samplers_["education"].tree).startswith("n= 1500")
    assert set(chain.samplers_["salary"].tree.to_frame()["variable"].dropna()) <= set(loans.columns)


def test_target_with_missing_values():
    rng = np.random.default_rng(1)
    x = rng.normal(size=500)
    frame = pd.DataFrame({"x": x, "number": np.where(x > 0.5, np.nan, x), "level": np.where(x > 0, "a", None)})
    chain = mcce.ChainModel(sampler="ctree", fixed=["x"]).fit(frame)
    number, level = chain.samplers_["number"], chain.samplers_["level"]
    assert number.tree.to_frame()["n"].iloc[0] == (x <= 0.5).sum()
    assert number.missing_tree.target.name == "number is missing"
    assert set(number.missing_tree.to_frame()["prediction"]) == {True, False}
    assert set(level.tree.to_frame()["prediction"]) == {"a", "missing"}
    gone = mcce.ChainModel(sampler="ctree", fixed=["x"]).fit(frame[["x"]].assign(y=np.nan)).samplers_["y"].tree
    assert gone.to_frame()["prediction"].isna().all()
    gone.plot()


# ---------------------------------------------------------------- plot


def assert_legible(ax):
    """Check that nothing overlaps or leaves the figure; return all texts."""
    ax.figure.draw_without_rendering()
    renderer = ax.figure.canvas.get_renderer()
    written = [(text.get_text(), text.get_window_extent(renderer)) for text in ax.texts]
    for (a, box), (b, other) in itertools.combinations(written, 2):
        inside = min(box.x1, other.x1) - max(box.x0, other.x0), min(box.y1, other.y1) - max(box.y0, other.y0)
        assert min(inside) < 1.0, f"{a!r} and {b!r} overlap by {inside}"
    width, height = ax.figure.get_size_inches() * ax.figure.dpi
    for text, box in written:
        assert box.x0 >= -1, text
        assert box.y0 >= -1, text
        assert box.x1 <= width + 1, text
        assert box.y1 <= height + 1, text
    return [text for text, _ in written]


def ends_of(view, said):
    """The numbers of the nodes drawn without children."""
    drawn = {int(text.split("\n")[0]) for text in said}
    parents = {view.numbers[view.parent[node]] for node in view.order[1:] if view.numbers[node] in drawn}
    return drawn - parents


@pytest.mark.parametrize("grow", [rpart.grow, *nightly(ctree.grow, cart.grow)])
@pytest.mark.parametrize("target", ["employment", *nightly("salary")])
@pytest.mark.parametrize("depth", [3, None, *(pytest.param(depth, marks=pytest.mark.nightly) for depth in (0, 1))])
def test_plots_are_legible_and_show_the_nodes_of_the_tree(loans, grow, target, depth):
    frame = loans[["age", "sex", "education", "employment", "salary"]]
    settings = {} if depth is None else {"max_depth": depth}
    view = view_of(frame, target, grow, **settings)
    ax = view.plot()
    said = assert_legible(ax)
    assert 1 <= len(ends_of(view, said)) <= 12
    assert any("\u2026" in text for text in said) == (len(ends_of(view, said)) < view.n_leaves)
    assert ax.get_title() == f"{target}: {view.n_leaves} leaves, n = {len(frame)}"
    sizes = view.to_frame()["n"]
    for text in said:
        assert f"n = {sizes[int(text.split(chr(10))[0])]}" in text.split("\n")


@pytest.mark.slow
def test_long_names_and_levels_are_legible():
    rng = np.random.default_rng(0)
    n = 1500
    frame = pd.DataFrame(
        {
            "an_extraordinarily_long_column_name_for_a_mere_number": 1e6 * rng.normal(size=n),
            "county of residence": rng.choice(["Territory of Somewhere", "S", "Westminster-under-the-hill"], n),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
        }
    )
    z = frame.iloc[:, 0] / 1e6 + 2 * (frame.iloc[:, 1].str.len() > 5) + (frame["day"].dt.year > 2020) * 1.5
    z = z + rng.normal(size=n) / 2
    names = [f"response level number {k} with a long $name$" for k in range(12)]
    for y in (
        pd.qcut(z, 12, labels=names),
        z * 1e7,
        pd.Timestamp("2022-01-01") + pd.to_timedelta((30 * z).round(), "D"),
    ):
        for grow in (ctree.grow, cart.grow):
            assert_legible(view_of(frame.assign(y=y), "y", grow, max_depth=4).plot())


@pytest.mark.slow
def test_plot_on_given_axes(loans):
    view = view_of(loans[["age", "employment", "salary"]], "salary")
    _, (left, right) = plt.subplots(1, 2, figsize=(16, 7))
    assert view.plot(left, max_leaves=4) is left
    view.plot(right, max_leaves=6)
    assert len(ends_of(view, assert_legible(left))) <= 4
    assert_legible(right)


@pytest.mark.slow
def test_plots_keep_global_settings_and_work_in_dark_styles(loans):
    view = view_of(loans[["age", "employment", "salary"]], "salary", max_depth=2)
    before = mpl.rcParams.copy()
    view.plot()
    assert mpl.rcParams == before
    with plt.style.context("dark_background"):
        ax = view.plot()
        colours = {text.get_color() for text in ax.texts}
    assert colours == {"white"}


@pytest.mark.parametrize("wrong", [0, -1, 2.5, True, "all"])
def test_number_of_leaves_to_draw(loans, wrong):
    view = view_of(loans[["age", "salary"]], "salary")
    with pytest.raises(InputError, match="max_leaves"):
        view.plot(max_leaves=wrong)
    assert len(view.plot(max_leaves=1).texts) == 1
