"""Sparse counterfactuals end to end: few changes, valid, plausible, and independent of threads and batches."""

from __future__ import annotations

import functools
import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

import mcce
import mcce.explain.problem
import mcce.explain.sparse
from mcce import InputError
from tests.explainer.problem import DENIED, FIXED, MODELS, TABLE, assert_same, differs, fitted, score
from tests.marks import examples, nightly, nightly_rows

FEW = DENIED.iloc[:12]


@functools.cache
def explainer_of(name):
    model, decision = MODELS[name]
    return fitted(model, decision)


def wanted(name, frame):
    """Query the model again."""
    model, decision = MODELS[name]
    if model is None:
        return decision(frame)
    answer = model(frame)
    if isinstance(decision, str):
        return answer == decision
    low, high = decision if isinstance(decision, tuple) else (decision.low, decision.high)
    return (answer >= low) & (answer <= high)


def factuals_of(found):
    return found.factuals.loc[found.frame.index.get_level_values(0)]


def withholds(rows, factuals):
    """Return whether a known value is missing in each row."""
    return (rows.isna().to_numpy() & factuals.notna().to_numpy()).any(axis=1)


def gower(found):
    """Gower's distance by its definition, column by column of the user's table."""
    rows, own = found.frame, factuals_of(found)
    total, changed = np.zeros(len(rows)), differs(rows, own)
    for j, name in enumerate(TABLE):
        a, b, spread = rows[name], own[name], TABLE[name]
        if name in ("sex", "job", "owner", "club"):
            step = np.ones(len(rows))
        else:
            if name == "size":
                a, b, spread = a.cat.codes, b.cat.codes, spread.cat.codes
            elif name == "since":
                a, b, spread = (column.astype("int64") for column in (a, b, spread))
            a, b = (column.astype("Float64").to_numpy(float, na_value=np.nan) for column in (a, b))
            spread = spread.astype("Float64").dropna()
            step = np.abs(a - b) / float(spread.max() - spread.min())
        step = np.where(rows[name].isna().to_numpy() | own[name].isna().to_numpy(), 1.0, step)
        total += np.where(changed[:, j], step, 0.0)
    return total / TABLE.shape[1]


def plausibility(explainer, found):
    """The share of training rows with a score as low or lower, one row at a time."""
    schema, scorer = explainer.generator_.schema_, explainer.plausibility_
    rows, own = schema.encode(found.frame).matrix, schema.encode(factuals_of(found)).matrix
    calibration = scorer.calibration.values
    shares = []
    for row, factual in zip(rows, own, strict=True):
        origins = scorer.origins(factual[None], own=scorer.own(factual[None]))
        least = scorer.score(row[None], scorer.fold_of(factual[None]), origins)[0]
        shares.append((1 + (calibration <= least).sum()) / (len(TABLE) + 1))
    return np.array(shares)


@pytest.mark.slow
@examples(5)
@example("label", 3, 0.95, None, None, 150, False, 1, 0.0)  # a refined row stayed below the floor
@given(
    name=st.sampled_from(["score", "rare", "label", "predicate"]),
    k=st.sampled_from([1, 3]),
    floor=st.sampled_from([0.0, 0.05, 0.5, 0.95]),
    max_changes=st.sampled_from([None, 1, 3]),
    max_gower=st.sampled_from([None, 0.02, 0.2]),
    n_samples=st.sampled_from([1, 20, 150]),
    independent=st.booleans(),
    first=st.integers(0, 30),
    caution=st.sampled_from([0.0, 1.0]),
)
def test_rows_are_valid_distinct_sorted_and_within_bounds(
    name, k, floor, max_changes, max_gower, n_samples, independent, first, caution
):
    explainer = explainer_of(name)
    found = explainer.explain(
        TABLE.iloc[first : first + 15],
        n_samples=n_samples,
        n_counterfactuals=k,
        sparse=True,
        floor=floor,
        max_changes=max_changes,
        max_gower=max_gower,
        independent=independent,
        caution=caution,
    )
    rows, own, measures = found.frame, factuals_of(found), found.measures
    assert wanted(name, rows).all()
    assert not wanted(name, own).any()
    changed = differs(rows, own)
    assert not changed[:, [list(TABLE).index(column) for column in FIXED]].any()
    np.testing.assert_array_equal(measures["L0"], changed.sum(axis=1))
    np.testing.assert_allclose(measures["gower"], gower(found), rtol=1e-12)
    np.testing.assert_array_equal(measures["plausibility"], plausibility(explainer, found))
    assert (measures["L0"] <= (max_changes or 10)).all()
    assert (measures["gower"] <= (max_gower or 1)).all()
    for _, part in measures.groupby(level="id", sort=False):
        assert part.index.get_level_values("rank").tolist() == list(range(1, len(part) + 1))
        assert len(part) <= k
        assert part["L0"].is_monotonic_increasing
        if caution == 0.0:
            keys = list(zip(part["L0"], part["gower"], strict=True))
            assert all(a <= (b[0], b[1] + 1e-12) for a, b in pairwise(keys))
        assert not rows.loc[part.index].duplicated().any()
        assert part["plausibility"].ge(floor).all() or part["plausibility"].lt(floor).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["score", *nightly("rare", "label")])
@pytest.mark.parametrize("independent", [False, *nightly(True)])
def test_never_more_changes_than_the_plain_method_from_the_same_draws(name, independent):
    """The plain method chooses among draws that keep known values known."""
    explainer = explainer_of(name)
    for n_samples, k in ((5, 1), (60, 4)):
        draws = explainer.generate(DENIED, n_samples=n_samples, independent=independent)
        draws = draws[~withholds(draws, DENIED.loc[draws.index.get_level_values(0)])]
        plain = explainer.select(draws, DENIED, n_counterfactuals=k).measures["L0"]
        found = explainer.explain(
            DENIED,
            n_samples=n_samples,
            n_counterfactuals=k,
            sparse=True,
            floor=0,
            independent=independent,
        )
        sparse = found.measures["L0"]
        best = plain.index[plain.index.get_level_values("rank") == 1]
        assert best.isin(sparse.index).all()
        both = plain.index.intersection(sparse.index)  # draws may coincide once unneeded changes are reverted
        assert (sparse[both] <= plain[both]).all()
        assert sparse[both].mean() < 0.8 * plain[both].mean()


@pytest.mark.slow
def test_rows_below_the_floor_are_returned_only_if_none_reaches_it():
    explainer, floor = explainer_of("rare"), 0.97
    found = explainer.explain(DENIED, n_samples=15, sparse=True, floor=floor)
    below = found.measures["plausibility"].lt(floor).groupby(level="id").any()
    assert 0 < below.sum() < len(below)
    draws = explainer.generate(DENIED, n_samples=15)
    schema, scorer = explainer.generator_.schema_, explainer.plausibility_
    for i in below.index[below]:
        pool, own = draws.loc[i], DENIED.loc[[i]]
        singles = [
            own.assign(**{name: pd.Series([value], index=[i]).astype(TABLE[name].dtype)})
            for name in TABLE.columns.difference(FIXED)
            for value in pool[name].dropna().unique()
        ]
        candidates = pd.concat([pool, *singles])
        candidates = candidates[wanted("rare", candidates)]
        assert len(candidates)
        factual = schema.encode(own).matrix[0]
        assert (scorer.of_candidates(schema.encode(candidates).matrix, factual) < floor).all()


# the score rises with the rank, and falls with the counts that usually come with a higher rank
def staff(n=1_000):
    rng = np.random.default_rng(0)
    rank = rng.integers(0, 5, n)
    return pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], n),
            "rank": pd.Categorical.from_codes(rank, list("abcde"), ordered=True),
            "team": rng.poisson(0.2 + 3 * rank),
            "trips": rng.poisson(0.2 + 2 * rank),
            "site": np.where(rng.random(n) < 0.85, rank, rng.integers(0, 5, n)).astype(str),
        }
    )


def staff_score(rows):
    return 2.2 * rows["rank"].cat.codes - 0.25 * rows["team"] - 0.2 * rows["trips"] - 0.3 * (rows["site"] > "1")


@functools.cache
def staff_explainer():
    model, decision = (lambda rows: staff_score(rows).to_numpy()), (3, np.inf)
    return mcce.MCCE(model, decision=decision, fixed=["sex"], random_state=1).fit(staff(), relations=())


@pytest.mark.slow
@pytest.mark.parametrize(("floor", "n_samples"), [(0.25, 200), (0.9, 30), *nightly_rows((0.25, "auto"), (0.05, 1000))])
def test_levels_and_counts_reach_the_floor_where_a_candidate_does(floor, n_samples):
    explainer = staff_explainer()
    X = staff()
    X = X[staff_score(X) < 3].head(40)
    found = explainer.explain(X, n_samples=n_samples, sparse=True, floor=floor)
    below = found.below_floor()
    assert below.any() == (floor == 0.9)
    draws = explainer.generate(X, n_samples=500 if n_samples == "auto" else n_samples)
    schema, scorer = explainer.generator_.schema_, explainer.plausibility_
    for who in below[below].index.get_level_values("id"):
        pool, own = draws.loc[who], X.loc[who]
        one_back = [pool.assign(**{name: pd.Series(own[name], pool.index, X[name].dtype)}) for name in X.columns[1:]]
        candidates = pd.concat([pool, *one_back])
        candidates = candidates[staff_score(candidates) >= 3]
        matrix, factual = schema.encode(candidates).matrix, schema.encode(X.loc[[who]]).matrix[0]
        assert (scorer.of_candidates(matrix, factual) < floor).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rare", *nightly("label")])
def test_factuals_explained_by_the_plain_method_are_explained(name):
    plain = explainer_of(name).explain(DENIED, n_samples=15)
    found = explainer_of(name).explain(DENIED, n_samples=15, sparse=True, floor=0.99)
    assert set(found.unexplained.index) <= set(plain.unexplained.index)


@pytest.mark.slow
def test_tables_without_counterfactuals_have_the_same_columns(found):
    nothing = explainer_of("score").explain(FEW, n_samples=5, sparse=True, max_gower=0)
    assert len(nothing.frame) == 0
    assert nothing.measures.columns.tolist() == found.measures.columns.tolist()
    assert nothing.unexplained.index.tolist() == FEW.index.tolist()
    nobody = explainer_of("score").explain(TABLE[score(TABLE) > 0.6].iloc[:3], n_samples=5, sparse=True)
    assert nobody.measures.columns.tolist() == found.measures.columns.tolist()


# ---------------------------------------------------------------- one seed, one answer


@pytest.fixture(scope="module")
def found():
    return explainer_of("score").explain(FEW, n_samples=60, n_counterfactuals=2, sparse=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (mcce.explain.sparse, "CROSSED_BYTES", 1),
        *nightly_rows((mcce.explain.problem, "POOL_BYTES", 1), (mcce.explain.problem, "BLOCK_FACTUALS", 1)),
    ],
)
def test_threads_and_blocks_do_not_matter(found, module, name, value, monkeypatch):
    monkeypatch.setattr(module, name, value)
    other = fitted(n_jobs=2).explain(FEW, n_samples=60, n_counterfactuals=2, sparse=True)
    assert_same(found, other)


@pytest.mark.parametrize("independent", [True, *nightly(False)])
def test_order_and_batches_of_factuals_do_not_matter(independent):
    def explain(X):
        how = {"n_counterfactuals": 2, "sparse": True, "independent": independent}
        return explainer_of("score").explain(X, n_samples=60, **how)

    some = FEW.iloc[:5]
    whole = explain(some)
    for parts in ([explain(some.iloc[::-1])], [explain(some.loc[[i]]) for i in some.index]):
        for name in ("frame", "measures"):
            table = pd.concat([getattr(part, name) for part in parts if len(part.frame)])
            assert len(table) == len(whole.frame)
            assert_frame_equal(table.loc[whole.frame.index], getattr(whole, name), check_exact=True)


@pytest.mark.slow
def test_repeated_explain_is_equal_and_another_seed_differs(found):
    again = explainer_of("score").explain(FEW, n_samples=60, n_counterfactuals=2, sparse=True)
    assert_same(found, again)
    # another seed gives other draws; the plausibility score is deterministic
    one, other = (explainer.explain(FEW, n_samples=60) for explainer in (explainer_of("score"), fitted(random_state=2)))
    assert not other.frame.equals(one.frame)


# ---------------------------------------------------------------- other measures


@functools.cache
def found_by_default():
    return explainer_of("score").explain(FEW, n_samples=40, sparse=True)


def far_from_home(candidates, factual):
    assert isinstance(candidates, pd.DataFrame)
    return (candidates["income"] - factual["income"]).abs()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("measures", "columns"),
    [
        (("L0", far_from_home), [("L0", 1), ("far_from_home", 1)]),
        (("L0", "mad"), [("L0", 1), ("mad", 1)]),
        *nightly_rows(
            ("gower", [("gower", 1)]),
            (("plausibility", "gower"), [("plausibility", -1), ("gower", 1)]),
            (("hvdm", "L0"), [("hvdm", 1), ("L0", 1)]),
        ),
    ],
)
def test_rows_are_ordered_by_the_requested_measures(measures, columns):
    explainer = explainer_of("score")
    found = explainer.explain(FEW, n_samples=40, n_counterfactuals=4, sparse=True, measures=measures)
    assert score(found.frame).min() >= 0.5
    table = pd.DataFrame({name: sign * found.measures[name] for name, sign in columns})
    for _, part in table.groupby(level="id"):
        keys = [tuple(row) for row in part.to_numpy().round(12).tolist()]
        assert keys == sorted(keys)
    default = found_by_default().measures.xs(1, level="rank")
    best = found.measures.xs(1, level="rank")
    name, sign = columns[0]
    if name in default:  # the best row by a measure has at most the value of the best rows by others
        assert (sign * best[name] <= sign * default[name] + 1e-12).all()


@pytest.mark.slow
def test_feature_with_high_cost_is_avoided():
    explainer = explainer_of("score")
    settings = {"n_samples": 60, "sparse": True, "floor": 0.0}  # a floor can increase the cost
    free = explainer.explain(DENIED, **settings)
    dear = explainer.explain(DENIED, **settings, measures="gower", feature_weights={"income": 1000, "since": 1000})

    def share(found):
        return differs(found.frame, factuals_of(found))[:, [list(TABLE).index(n) for n in ("income", "since")]].mean()

    assert share(dear) < 0.25 * share(free)


# ---------------------------------------------------------------- saving; bad input


def test_explainer_saved_after_sparse_explain_gives_the_same_rows(found):
    loaded = pickle.loads(pickle.dumps(explainer_of("score")))
    assert_same(found, loaded.explain(FEW, n_samples=60, n_counterfactuals=2, sparse=True))
    with pytest.raises(
        InputError, match=r"training rows are not stored with an explainer, and are needed here\. Fit again\.$"
    ):
        loaded.explain(FEW, measures="mad")


def test_explainer_saved_before_sparse_explain_raises_with_a_fix():
    loaded = pickle.loads(pickle.dumps(fitted()))
    with pytest.raises(InputError, match=r"Fit again, or explain once with sparse=True before saving"):
        loaded.explain(FEW, n_samples=10, sparse=True)
    assert len(loaded.explain(FEW, n_samples=10))


def test_modified_training_table_raises():
    X = TABLE.copy()
    explainer = fitted(X=X)
    X.iloc[0, 2] = 0.0
    with pytest.raises(InputError, match=r"training table has been changed since the fit\. Fit again"):
        explainer.explain(FEW, n_samples=10, sparse=True)


@pytest.mark.slow
def test_refit_resets_plausibility():
    explainer = fitted()
    explainer.explain(FEW.iloc[:1], n_samples=10, sparse=True)
    one = explainer.plausibility_.calibration.values
    explainer.fit(TABLE.iloc[:250]).explain(FEW.iloc[:1], n_samples=10, sparse=True)
    assert (one.size, explainer.plausibility_.calibration.values.size) == (300, 250)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"floor": 1.0}, r"floor is 1\.0; it must be a number from 0 to below 1"),
        ({"floor": -0.1}, r"floor is -0\.1; it must be a number from 0"),
        ({"floor": float("nan")}, "floor is nan; it must be a number from 0"),
        ({"floor": "low"}, "floor is 'low'; it must be a number from 0"),
        ({"floor": True}, "floor is True; it must be a number from 0"),
        ({"max_gower": -0.1}, r"max_gower is -0\.1; it must be a number of at least 0"),
        ({"max_gower": float("nan")}, "max_gower is nan; it must be a number of at least 0"),
        ({"max_gower": "near"}, "max_gower is 'near'; it must be a number of at least 0"),
        ({"max_gower": True}, "max_gower is True; it must be a number of at least 0"),
        ({"max_changes": 0}, "max_changes is 0; it must be a whole number of at least 1"),
        ({"measures": 5}, "measures holds 5; give names, distances or functions"),
        ({"measures": ()}, "measures is empty; name at least one"),
        ({"measures": "gowr"}, "measures names 'gowr'; did you mean 'gower'"),
        ({"measures": lambda candidates, factual: 1}, r"returned shape \(\) for \d+ candidates"),
        (
            {"feature_weights": {"incom": 2}},
            "feature_weights names 'incom', which is not a .* mean 'income'",
        ),
        ({"feature_weights": {"income": -1}}, r"feature_weights\['income'\] is -1; give a number of at least 0"),
        (
            {"feature_weights": [1]},
            r"feature_weights is \[1\]; give weights .* feature_weights={'age': 2}",
        ),
        (
            {"sparse": False, "measures": "plausibility"},
            "measure 'plausibility' needs the plausibility of rows, .* set sparse=True",
        ),
    ],
)
def test_invalid_options_raise(options, message):
    with pytest.raises(InputError, match=message):
        explainer_of("score").explain(FEW.iloc[:2], **({"n_samples": 10, "sparse": True} | options))


def long_tailed(**options):
    """Return a fitted explainer of two numbers, one with a long tail, and a factual for which either suffices."""
    rng = np.random.default_rng(4)
    X = pd.DataFrame({"salary": rng.uniform(20_000, 80_000, 600), "savings": rng.exponential(12_000.0, 600)}).round(-2)
    X.loc[0, "savings"] = 760_000.0
    explainer = mcce.MCCE(tailed_score, decision=(1.0, np.inf), random_state=1, **options).fit(X)
    return explainer, pd.DataFrame({"salary": [44_000.0], "savings": [300.0]})


def tailed_score(rows):
    return np.maximum(rows["salary"] / 50_000, rows["savings"] / 30_000)


def test_step_into_a_long_tail_has_a_large_distance():
    """30,000 more savings are a twentieth of the range, 6,000 more salary a tenth; such savings are rare."""
    explainer, factual = long_tailed()
    found = explainer.explain(factual, sparse=True, floor=0.0)
    assert found.frame["savings"].tolist() == [300.0]
    nearest = explainer.explain(factual, sparse=True, floor=0.0, caution=0.0)
    assert nearest.frame["salary"].tolist() == [44_000.0]


def test_bound_on_gower_distance_uses_the_range():
    explainer, factual = long_tailed(fixed=["salary"])
    found = explainer.explain(factual, sparse=True, floor=0.0)
    farthest = float(found.measures["gower"].iloc[0])
    assert explainer.learned_.caution.distance.scale[1] > 2 * 2 * farthest / (found.frame["savings"].iloc[0] - 300.0)
    again = explainer.explain(factual, sparse=True, floor=0.0, max_gower=farthest)
    assert_frame_equal(again.frame, found.frame)
