"""Recourse by group: means by hand, intervals by enumeration and by coverage on a known process."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from mcce import MCCE, Counterfactuals, InputError
from mcce.report import groups as module
from mcce.report.reasons import ALREADY


def result(columns, gower, L0=None, plausibility=None, already=(), index=None):
    """Return a result whose factuals have these columns; NaN in `gower` is a factual without a counterfactual."""
    factuals = pd.DataFrame(columns)
    factuals.index = pd.RangeIndex(100, 100 + len(factuals)) if index is None else pd.Index(index)
    gower = np.asarray(gower, dtype=float)
    found = ~np.isnan(gower)
    rank = pd.MultiIndex.from_product([factuals.index[found], [1, 2]], names=["id", "rank"])
    measures = pd.DataFrame({"prediction": 1.0, "L0": 9, "gower": 9.0, "gower_sum": 9.0}, index=rank)
    best = rank.get_level_values("rank") == 1
    measures.loc[best, "gower"] = gower[found]
    measures.loc[best, "L0"] = np.ones(found.sum()) if L0 is None else np.asarray(L0)[found]
    if plausibility is not None:
        measures["plausibility"] = 0.99
        measures.loc[best, "plausibility"] = np.asarray(plausibility)[found]
    reasons = [ALREADY if i in already else "none of the 10 candidates has it" for i in np.flatnonzero(~found)]
    unexplained = pd.DataFrame({"reason": reasons, "prediction": 0.0}, index=factuals.index[~found].rename("id"))
    return Counterfactuals(
        frame=factuals.loc[rank.get_level_values("id")].set_axis(rank, axis=0),
        measures=measures,
        factuals=factuals,
        unexplained=unexplained,
        factual_predictions=pd.Series(0.0, index=factuals.index),
        decision="score at least 1",
    )


@pytest.fixture
def small():
    return result(
        {"sex": ["f", "m", "f", "m", "f", "m", None, "f"], "age": [20, 30, 40, 50, 60, 70, 80, 90]},
        gower=[0.1, 0.2, 0.3, np.nan, np.nan, 0.6, 0.5, np.nan],
        L0=[1, 2, 2, 0, 0, 4, 3, 0],
        plausibility=[0.5, 0.4, 0.3, 0, 0, 0.2, 0.1, 0],
        already=[7],
    )


def test_means_match_hand_calculation(small):
    groups = small.by("sex")
    table = groups.table
    assert table.index.names == ["group", "measure"]
    assert list(table.index.unique("group"))[:2] == ["f", "m"]
    assert list(table.index.unique("measure")) == ["gower", "L0", "explained", "plausibility"]
    f, m = table.loc["f"], table.loc["m"]
    np.testing.assert_allclose(f["mean"], [0.2, 1.5, 2 / 3, 0.4])  # three counted: one has the decision already
    np.testing.assert_allclose(m["mean"], [0.4, 3, 2 / 3, 0.3])
    np.testing.assert_allclose(f["rest"], [1.3 / 3, 3, 3 / 4, 0.7 / 3])
    np.testing.assert_allclose(f["difference"], f["mean"] - f["rest"])
    assert f["n"].tolist() == m["n"].tolist() == [2, 2, 3, 2]
    missing = table.iloc[8:]
    assert missing.index.get_level_values("group").isna().all()
    np.testing.assert_allclose(missing["mean"], [0.5, 3, 1, 0.1])
    np.testing.assert_allclose(groups.overall["mean"], [0.34, 2.4, 5 / 7, 0.3])
    assert groups.overall["n"].tolist() == [5, 5, 7, 5]


def test_group_of_one_has_no_interval(small):
    table = small.by("sex").table
    alone = table.iloc[8:]
    assert alone[["low", "high", "difference_low", "difference_high", "p", "p_adjusted"]].isna().all(axis=None)
    assert table.iloc[:8].notna().all(axis=None)


def test_intervals_match_enumerated_resamples():
    """Three values have 27 resamples, four others 256: the quantiles of all of them are known."""
    one, two = [0.0, 0.1, 0.7], [0.2, 0.3, 0.5, 0.6]
    found = result({"g": ["a"] * 3 + ["b"] * 4}, gower=one + two)
    mine = {name: [np.mean(r) for r in itertools.product(v, repeat=len(v))] for name, v in (("a", one), ("b", two))}
    differences = np.subtract.outer(mine["a"], mine["b"]).ravel()
    table = found.by("g", confidence=0.8, random_state=3).table
    for name in "ab":
        row = table.loc[(name, "gower")]
        for end, share in (("low", 0.1), ("high", 0.9)):
            below, above = np.quantile(mine[name], [share - 0.03, share + 0.03])
            assert below - 1e-9 <= row[end] <= above + 1e-9
    row = table.loc[("a", "gower")]
    for end, share in (("difference_low", 0.1), ("difference_high", 0.9)):
        below, above = np.quantile(differences, [share - 0.03, share + 0.03])
        assert below - 1e-9 <= row[end] <= above + 1e-9


def test_two_groups_have_opposite_differences(small):
    table = small.by(pd.Series(list("aabbabab"), index=small.factuals.index)).table
    a, b = table.loc["a"], table.loc["b"]
    np.testing.assert_allclose(a["difference"], -b["difference"])
    np.testing.assert_allclose(a["difference_low"], -b["difference_high"])
    np.testing.assert_allclose(a[["p", "p_adjusted"]], b[["p", "p_adjusted"]])


def test_p_values_match_enumerated_assignments():
    """Of ten values, 120 assignments of three to one group: the Welch statistic of each by definition."""
    values = np.array([0.02, 0.01, 0.05, 0.3, 0.25, 0.4, 0.5, 0.35, 0.28, 0.06])
    table = result({"g": list("aaabbbbbbb")}, gower=values, L0=[1, 1, 2, 2, 3, 1, 4, 4, 2, 3]).by("g").table
    for name, column in (("gower", values), ("L0", np.array([1.0, 1, 2, 2, 3, 1, 4, 4, 2, 3]))):
        t = []
        for some in itertools.combinations(range(10), 3):
            one, rest = column[list(some)], np.delete(column, some)
            spread = np.sqrt(one.var(ddof=1) / 3 + rest.var(ddof=1) / 7)
            t.append(abs(one.mean() - rest.mean()) / spread)
        t = np.array(t)
        assert table.loc[("a", name), "p"] == pytest.approx(np.mean(t >= t[0] - 1e-9))
        assert table.loc[("b", name), "p"] == pytest.approx(np.mean(t >= t[0] - 1e-9))
    assert table.loc[("a", "explained"), "p"] == 1.0
    p = table.loc["a", "p"]
    assert table.loc[("a", "gower"), "p_adjusted"] == pytest.approx(min(1.0, 3 * p["gower"]))  # three tests, not six


def test_drawn_permutations_agree_with_enumerated_ones(monkeypatch):
    values = np.random.default_rng(5).exponential(size=(12, 1)) + np.repeat([0.0, 0.8], 6)[:, None]
    codes = np.repeat([0, 1], 6)
    exact = module.permutation_tests(values, codes, 2, 0)[0, 0]  # 924 assignments
    monkeypatch.setattr(module, "MOST_ENUMERATED", 0)
    drawn = module.permutation_tests(values, codes, 2, 0)[0, 0]
    assert 0.02 < exact < 0.5
    assert abs(drawn - exact) < 4 * np.sqrt(exact * (1 - exact) / 5000)
    assert drawn == module.permutation_tests(values, codes, 2, 0)[0, 0]
    assert drawn != module.permutation_tests(values, codes, 2, 1)[0, 0]


@pytest.mark.nightly
def test_size_of_the_test_of_equal_cost(monkeypatch):
    """Three groups of one skewed distribution: some adjusted p-value is below 0.05 in at most one run of twenty."""
    monkeypatch.setattr(module, "N_PERMUTATIONS", 999)
    rng, runs = np.random.default_rng(7), 1000
    codes = np.repeat([0, 1, 2], [15, 25, 40])
    raw, any_adjusted = 0, 0
    for run in range(runs):
        p = module.permutation_tests(rng.exponential(size=(80, 2)), codes, 3, run)
        raw += p[0, 0] <= 0.05
        any_adjusted += np.nanmin(module.holm(p.ravel())) <= 0.05
    error = 3 * np.sqrt(0.05 * 0.95 / runs)
    assert 0.05 - error <= raw / runs <= 0.05 + error
    assert any_adjusted / runs <= 0.05 + error


@pytest.mark.nightly
def test_coverage_on_a_known_process(monkeypatch):
    """Gower is beta, skewed and different in the groups; L0 is one and a Poisson count; some are not explained."""
    monkeypatch.setattr(module, "N_BOOTSTRAP", 400)
    monkeypatch.setattr(module, "N_PERMUTATIONS", 1)
    runs = 400
    rng = np.random.default_rng(1)
    truth = {"a": {"gower": 0.2, "L0": 2.0, "explained": 0.8}, "b": {"gower": 0.4, "L0": 3.0, "explained": 0.6}}
    n = {"a": 120, "b": 180}
    covered = {(kind, m): 0 for kind in ("mean", "difference") for m in truth["a"]}
    for run in range(runs):
        sex = np.repeat(list("ab"), [n["a"], n["b"]])
        gower = np.concatenate([rng.beta(1, 4, n["a"]), rng.beta(2, 3, n["b"])])
        L0 = 1 + np.concatenate([rng.poisson(1, n["a"]), rng.poisson(2, n["b"])])
        gower[rng.random(300) > np.where(sex == "a", 0.8, 0.6)] = np.nan
        table = result({"sex": sex}, gower, L0).by("sex", confidence=0.9, random_state=run).table.loc["a"]
        for m in truth["a"]:
            difference = truth["a"][m] - truth["b"][m]
            covered["mean", m] += table["low"][m] <= truth["a"][m] <= table["high"][m]
            covered["difference", m] += table["difference_low"][m] <= difference <= table["difference_high"][m]
    for name, hits in covered.items():
        # 0.9 within three standard errors, less the known undercoverage of percentiles for means of 70 to 100 values
        error = 3 * np.sqrt(0.9 * 0.1 / runs)
        assert 0.885 - error <= hits / runs <= 0.9 + error, name


@pytest.mark.slow
def test_same_seed_gives_the_same_intervals(small):
    pd.testing.assert_frame_equal(small.by("sex").table, small.by("sex").table)
    again = pickle.loads(pickle.dumps(small)).by("sex", random_state=0).table
    pd.testing.assert_frame_equal(small.by("sex").table, again)
    many = result({"g": list("ab") * 20}, np.random.default_rng(1).random(40))
    assert not many.by("g", random_state=1).table["low"].equals(many.by("g").table["low"])


@pytest.mark.slow
def test_chunk_size_of_resampling_does_not_matter(small, monkeypatch):
    before = small.by("sex").table
    monkeypatch.setattr(module, "CELLS", 7)
    pd.testing.assert_frame_equal(small.by("sex").table, before)


def test_group_without_explained_factual():
    groups = result({"g": list("aabb")}, gower=[np.nan, np.nan, 0.1, 0.3]).by("g")
    a = groups.table.loc["a"]
    assert a["mean"].isna().tolist() == [True, True, False]
    assert (a.loc["explained", "mean"], a.loc["explained", "n"], a.loc["gower", "n"]) == (0.0, 2, 0)
    assert "none" in repr(groups)


def test_quantiles_of_a_number():
    ages = np.random.default_rng(2).integers(18, 80, 101)
    found = result({"age": ages}, gower=ages / 100)
    table = found.by("age", bins=4).table
    by_hand = pd.Series(ages).groupby(pd.qcut(ages, 4), observed=True)
    gower = table.xs("gower", level="measure")
    np.testing.assert_allclose(gower["mean"], by_hand.mean() / 100)
    assert gower["n"].tolist() == by_hand.size().tolist()
    assert gower.index.tolist() == [f"{low} to {high}" for low, high in zip(by_hand.min(), by_hand.max())]


@pytest.mark.parametrize(
    ("values", "bins", "expected"),
    [
        ([1, 1, 1, 1, 1, 2], 4, ["1", "2"]),  # ties leave fewer groups
        ([5, 5, 5], 2, ["5"]),
        ([0.100001, 0.100002, 0.100003, 0.100004], 2, ["0.100001 to 0.100002", "0.100003 to 0.100004"]),
        (pd.to_datetime(["2020-01-01", "2020-02-01", "2021-01-01", "2022-01-01"]), 2, None),
        (pd.Categorical(list("lmhh"), categories=list("lmh"), ordered=True), 2, ["l to m", "h"]),
        ([1.0, np.nan, 2.0, 3.0], 3, ["1", "2", "3", np.nan]),
    ],
)
def test_bins(values, bins, expected):
    expected = ["2020-01-01 to 2020-02-01", "2021-01-01 to 2022-01-01"] if expected is None else expected
    table = result({"v": values}, gower=np.linspace(0.1, 0.2, len(values))).by("v", bins=bins).table
    got = table.xs("gower", level="measure").index.tolist()
    assert [x for x in got if x == x] == [x for x in expected if x == x]
    assert len(got) == len(expected)


def test_levels_keep_their_order():
    levels = pd.Categorical(["low", "high", "mid", "low"], categories=["low", "mid", "high", "never"])
    assert result({"v": levels}, [0.1] * 4).by("v").table.index.unique("group").tolist() == ["low", "mid", "high"]
    mixed = pd.Series(["b", 1, "b", "a"], index=range(100, 104), dtype=object)
    assert result({"v": [1, 2, 3, 4]}, [0.1] * 4).by(mixed).table.index.unique("group").tolist() == ["b", 1, "a"]
    flags = result({"v": [True, False, True, False]}, [0.1, 0.2, 0.3, 0.4]).by("v").table
    np.testing.assert_allclose(flags.xs("gower", level="measure")["mean"], [0.3, 0.2])


def test_series_is_matched_by_id_not_by_position(small):
    table = pd.Series(list("xxxxyyyyzz"), index=[107, 106, 105, 104, 103, 102, 101, 100, 7, 8], name="branch")
    groups = small.by(table)
    np.testing.assert_allclose(groups.table.loc[("x", "gower"), "mean"], 0.55)
    np.testing.assert_allclose(groups.table.loc[("y", "gower"), "mean"], 0.2)
    assert groups.name == "branch"
    assert "z" not in groups.table.index.unique("group")


def test_printed_table(small):
    said = repr(small.by("sex"))
    assert "Recourse by sex: 7 factuals without the wanted decision, 95 % intervals by bootstrap" in said
    lines = {line.split("  ")[0]: line for line in said.splitlines()}
    assert {"f", "m", "missing", "all", "f less the rest", "m less the rest"} <= set(lines)
    assert "0.2 [0.1, 0.3]" in lines["f"]
    odd = result({"g": ["<b>", "all", "<b>", "all"]}, [0.1, 0.2, 0.3, 0.4]).by("g")
    assert "&lt;b&gt;" in odd._repr_html_()
    assert repr(odd).count("\nall  ") == 2  # the group of that name, and all rows


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.by("sexx"), r"no column 'sexx'; for one that the model does not see .*; did you mean 'sex'\?"),
        (lambda r: r.by(["f"] * 8), r"groups is a list; give the name of a column, or a Series"),
        (lambda r: r.by(pd.Series("f", index=[100, 101])), r"no value for 6 of 8 factuals \(ids 102, 103.*NaN where"),
        (lambda r: r.by(pd.Series("f", index=[100, 100])), r"has 100 more than once; give one value per id"),
        (lambda r: r.by("sex", bins=3), r"bins goes with numbers, .* by 'sex' have no order. Leave it out"),
        (lambda r: r.by("age", bins=1), r"bins is 1"),
        (lambda r: r.by("sex", confidence=95), r"confidence is 95; it must lie between 0 and 1, as in 0.95"),
        (lambda r: r.by("sex", random_state=-1), r"random_state is -1"),
    ],
)
def test_invalid_arguments_raise(small, call, message):
    with pytest.raises(InputError, match=message):
        call(small)


def test_too_many_groups():
    found = result({"age": np.arange(40), "name": [f"n{i}" for i in range(40)]}, np.linspace(0, 1, 40))
    with pytest.raises(InputError, match=r"by 'age' would be 40, .*cut it into quantiles with bins=4, or give"):
        found.by("age")
    with pytest.raises(InputError, match=r"by 'name' would be 40, .*join some levels, or give a Series"):
        found.by("name")
    assert len(found.by(found.factuals["age"] % 3).table) == 9


def test_all_factuals_accepted():
    found = result({"g": list("ab")}, [np.nan, np.nan], already=[0, 1])
    with pytest.raises(InputError, match="no factual lacked the wanted decision, so there is nothing to compare"):
        found.by("g")


@pytest.mark.slow
def test_groups_of_an_explained_result():
    rng = np.random.default_rng(4)
    X = pd.DataFrame(
        {"sex": rng.choice(["f", "m"], 500), "a": rng.normal(size=500).round(1), "b": rng.normal(size=500)}
    )
    X["a"] -= 0.8 * (X["sex"] == "f")
    model = LogisticRegression().fit(X[["a", "b"]], X["a"] + rng.normal(size=500) > 0)
    explainer = MCCE(lambda t: model.predict_proba(t[["a", "b"]])[:, 1], fixed=["sex"], random_state=1).fit(X)
    found = explainer.explain(X.iloc[:150], n_samples=200, sparse=True)
    table = found.by("sex").table
    best = found.measures.xs(1, level="rank").join(X["sex"])
    for name in ("gower", "L0", "plausibility"):
        np.testing.assert_allclose(table.xs(name, level="measure")["mean"], best.groupby("sex")[name].mean())
    denied = ~explainer.decision_.evaluate(X.iloc[:150], "rows").wanted
    counts = X["sex"].iloc[:150][denied].value_counts().sort_index()
    assert table.xs("explained", level="measure")["n"].tolist() == counts.tolist()
    assert table.loc[("f", "gower"), "difference_low"] > 0  # women start farther away
