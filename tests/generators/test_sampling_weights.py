"""Drawing within restrictions, weights, and resampling by weight."""

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import ChainModel, InputError, MCCEWarning, Within
from mcce.generators.sampling import relative_weights, systematic
from tests.generators.rules import AtLeast, Never


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(2)
    n = 1200
    x = rng.normal(0, 2, n)
    job = np.array(["clerk", "cook", "pilot"])[np.clip(np.rint(x + 1), 0, 2).astype(int)]
    grade = pd.Categorical.from_codes(rng.integers(0, 3, n), ["low", "mid", "high"], ordered=True)
    start = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D")
    return pd.DataFrame({"g": rng.integers(0, 3, n), "x": x, "job": job, "grade": grade, "start": start})


@pytest.fixture(scope="module")
def chain(table):
    return ChainModel(fixed=["g"], random_state=1).fit(table)


GIVEN = pd.DataFrame({"g": [0, 1, 2]}, index=["a", "b", "c"])


def test_bounds_and_levels_in_user_units(chain):
    within = {
        "x": (-1, 2.5),
        "job": ["cook", "pilot"],
        "grade": ("mid", None),
        "start": (pd.Timestamp("2021-01-01"), None),
    }
    with pytest.warns(MCCEWarning, match="rows could not be drawn within the restrictions and rules, and are left out"):
        rows = chain.sample(300, GIVEN, within=within)
    assert rows["x"].between(-1, 2.5).all()
    assert set(rows["job"]) == {"cook", "pilot"}
    assert set(rows["grade"]) == {"mid", "high"}
    assert (rows["start"] >= "2021-01-01").all()
    assert 500 < len(rows) < 900
    assert rows.index.is_unique
    with pytest.warns(MCCEWarning, match="rejected by 'grade'"):
        assert set(chain.sample(300, GIVEN, within={"grade": ["low", "high"]})["grade"]) == {"low", "high"}


def test_within_per_given_or_common(chain):
    rows = chain.sample(200, GIVEN, within={"x": Within(low=np.array([-np.inf, 0.0, 1.0]), high=np.array([2.0]))})
    least = rows["x"].groupby("id").min()
    assert (least >= [-np.inf, 0.0, 1.0]).all()
    assert rows["x"].max() <= 2.0
    free = chain.sample(200, GIVEN)
    wide = chain.sample(200, GIVEN, within={"x": Within(low=np.array([-np.inf, 0.0, 1.0]))})
    pd.testing.assert_frame_equal(wide.loc[["a"]], free.loc[["a"]])
    with pytest.raises(InputError, match=r"within\['x'\] has 2 rows; give 3, one for each row of given, or one"):
        chain.sample(5, GIVEN, within={"x": Within(low=np.zeros(2))})


@pytest.mark.parametrize(
    ("within", "message"),
    [
        ({"g": (0, 1)}, "within names 'g', which is fixed: restrict the rows of given instead"),
        ({"jbo": ["cook"]}, "within names 'jbo', which is not a column of X; did you mean 'job'"),
        ({"x": (2, 1)}, r"within\['x'\] is \(2, 1\), an empty range"),
        ({"x": [1, 2]}, r"within\['x'\] is \[1, 2\]; 'x' is numeric, so give a tuple \(low, high\)"),
        ({"x": (float("nan"), 2)}, r"a bound of within\['x'\] is missing"),
        ({"job": ("clerk", "cook")}, r"within\['job'\] is .*; 'job' is categorical, so give a list of levels"),
        ({"job": []}, r"within\['job'\] is \[\]; 'job' is categorical, so give a list of levels"),
        ({"job": ["cok"]}, r"column 'job' of within\['job'\] holds the level 'cok'"),
        ([("x", 1)], "within is .*; give a dict"),
    ],
)
def test_invalid_restrictions_raise(chain, within, message):
    with pytest.raises(InputError, match=message):
        chain.sample(5, GIVEN, within=within)


def test_rejected_rows_are_dropped_and_counted(chain):
    high = {"x": Within(low=np.array([-np.inf, 1e6, -np.inf]))}
    message = (
        "20 of 60 rows could not be drawn within the restrictions and rules, and are left out \\(20 rejected by 'x'\\)"
    )
    with pytest.warns(MCCEWarning, match=message):
        rows, weights = chain.sample(20, GIVEN, within=high, importance=True)
    assert rows.index.get_level_values("id").unique().tolist() == ["a", "c"]
    pd.testing.assert_index_equal(weights.index, rows.index)
    with pytest.warns(MCCEWarning, match="20 of 60 rows"):
        assert len(chain.sample(20, GIVEN, within=high, resample=True)) == 40
    message = r"none of 60 rows could be drawn within .* rules \(40 rejected by 'x', 20 rejected by 'never'\)"
    with pytest.raises(InputError, match=message):
        chain.sample(
            20, GIVEN, within={"x": Within(low=np.array([-np.inf, 1e6, 1e6]))}, rules=[Never((4,))], resample=True
        )


def test_weights_are_relative_to_the_draws_of_their_id(chain):
    rule = AtLeast(1, 0, -0.5)
    free = chain.sample(400, GIVEN)
    plain, weights = chain.sample(400, GIVEN, importance=True)
    pd.testing.assert_frame_equal(plain, free)
    np.testing.assert_array_equal(weights, 1.0)
    assert weights.name == "importance"
    late = {"start": (pd.Timestamp("2021-06-01"), None)}
    with pytest.warns(MCCEWarning, match="rejected by 'start'"):
        rows, weights = chain.sample(400, GIVEN, rules=[rule], within=late, importance=True)
    np.testing.assert_allclose(weights.groupby("id").sum(), 400.0)
    assert (rows["x"] >= rows["g"] - 0.5).all()


def test_rules_are_texts_rule_objects_or_row_rules(chain):
    """The same rule in three forms draws the same rows; the truth is the comparison of the drawn columns."""
    expected = chain.sample(100, GIVEN, rules=[AtLeast(1, 0, -0.5)])
    text = "x >= g - 0.5"
    for rules in (text, [text], mcce.rule(text), [mcce.rule(text)]):
        rows = chain.sample(100, GIVEN, rules=rules)
        pd.testing.assert_frame_equal(rows, expected)
        assert (rows["x"] >= rows["g"] - 0.5).all()
    by_function = mcce.rule(lambda rows, was: rows["x"] >= rows["g"] - 0.5, features=["g", "x"])
    rows = chain.sample(100, GIVEN, rules=[by_function])
    assert (rows["x"] >= rows["g"] - 0.5).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"rules": ["x >= was(x)"]},
            r"the rule 'x >= was\(x\)' reads the factual by was\(\), and sample draws",
        ),
        ({"rules": ["y > 1"]}, "'y'"),
        ({"rules": [mcce.allow("x", low=0)]}, r"rules has Allow\(.*; give texts or mcce.rule\(...\)"),
        ({"importance": True, "resample": True}, "importance=True has no effect with resample=True"),
    ],
)
def test_invalid_rules_and_options_raise(chain, options, message):
    with pytest.raises(InputError, match=message):
        chain.sample(5, GIVEN, **options)


@pytest.mark.slow
def test_resampled_rows_depend_on_the_seed_and_represent_their_weights(chain):
    options = {"within": {"start": (pd.Timestamp("2021-06-01"), None), "job": ["cook", "pilot"]}}
    with pytest.warns(MCCEWarning, match="rejected by 'job'"):
        rows, weights = chain.sample(500, GIVEN, importance=True, **options)
    resampled = chain.sample(500, GIVEN, resample=True, **options)
    pd.testing.assert_frame_equal(chain.sample(500, GIVEN, resample=True, **options), resampled)
    alone = chain.sample(500, GIVEN.loc[["b"]], resample=True, **options)
    pd.testing.assert_frame_equal(alone, resampled.loc[["b"]])
    assert not chain.sample(500, GIVEN, resample=True, random_state=2, **options).equals(resampled)
    assert resampled.index.get_level_values("draw").tolist() == [*range(500)] * 3
    for name in GIVEN.index:  # each row as often as its weight says, rounded up or down
        times = resampled.loc[name].groupby(list(resampled), observed=True).size()
        expected = weights.loc[name].groupby([rows.loc[name][c] for c in rows], observed=True).sum()
        copies = rows.loc[name].groupby(list(rows), observed=True).size()
        assert ((times.reindex(expected.index, fill_value=0) - expected).abs() < copies + 1e-9).all()


@pytest.mark.slow
def test_systematic_resampling_repeats_a_row_by_its_rounded_weight():
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], [50, 30, 20])
    for _ in range(100):
        weights = rng.exponential(size=100) ** 3 * (rng.random(100) < 0.7)
        weights[group == 2] = 0.0
        weights = relative_weights(np.log(weights, out=np.full(100, -np.inf), where=weights > 0), group)
        assert weights[:50].mean() == pytest.approx(1.0)
        taken, places = systematic(weights, group, rng.random(3))
        np.testing.assert_array_equal(places, np.arange(80))
        np.testing.assert_array_equal(group[taken], group[places])
        times = np.bincount(taken, minlength=100)
        assert (np.abs(times - weights) < 1.0 + 1e-9).all()
    at_the_end = systematic(np.array([1.0, 0.0]), np.zeros(2, dtype=int), np.array([1.0 - 2.0**-53]))
    np.testing.assert_array_equal(at_the_end[0], [0, 0])


def test_weights_below_the_smallest_float_are_relative(chain):
    weights = relative_weights(np.array([-2000.0, -2000.0 + np.log(3.0)]), np.zeros(2, dtype=int))
    np.testing.assert_allclose(weights, [0.5, 1.5])
