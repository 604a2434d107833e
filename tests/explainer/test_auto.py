"""`n_samples="auto"`: the draws of each factual follow the documented rule in any batch."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal, assert_series_equal

import mcce.explain.pipeline
import mcce.explain.problem
from mcce import MCCE
from mcce.datasets import load_loans
from mcce.exceptions import InputError
from mcce.explain.followup import pooled_error
from tests.explainer.problem import DENIED, FIXED, MODELS, TABLE, assert_same, fitted
from tests.marks import examples, nightly, nightly_rows

FEW = DENIED.iloc[:12]
ANY_MISSING = mcce.allow("*", missing=True)


@pytest.fixture
def short_rounds(monkeypatch):
    """Use rounds of 20 to 320 draws, so that the rule can be followed by brute force."""
    monkeypatch.setattr(mcce.explain.pipeline, "FIRST_DRAWS", 20)
    monkeypatch.setattr(mcce.explain.pipeline, "MOST_DRAWS", 320)


def assert_follows_the_rule(explainer, X, **how):
    """The rule as documented, from separate explanations with each number of draws."""
    how["constraints"] = [ANY_MISSING]  # factuals without an answer that keeps known values get individual draws
    found = explainer.explain(X, n_samples="auto", **how)
    with_draws = {20 * 2**i: explainer.explain(X, n_samples=20 * 2**i, **how) for i in range(5)}

    def of(id, table):
        return table[table.index.get_level_values("id") == id]

    for id in X.index[::2]:  # other factuals share pools
        n = 20
        while n < 320:
            n *= 2
            before, after = (of(id, with_draws[m].measures[["L0", "gower_sum"]]).to_numpy() for m in (n // 2, n))
            if len(before) == len(after) > 0 and (np.abs(before - after) <= [0, 0.02]).all():
                break
        assert found.draws[id] == n
        for name in ("frame", "measures"):
            assert_frame_equal(of(id, getattr(found, name)), of(id, getattr(with_draws[n], name)), check_exact=True)
        assert (id in found.unexplained.index) == (len(of(id, with_draws[n].frame)) == 0)
    assert found.draws.nunique() > 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["label", *nightly("score", "rare")])
def test_draws_and_rows_follow_the_documented_rule(name, short_rounds):
    model, decision = MODELS[name]
    explainer = fitted(model, decision)
    for k in (1, 3):
        assert_follows_the_rule(explainer, DENIED, n_counterfactuals=k)


@pytest.mark.slow
def test_other_measures_and_bounds_follow_the_same_rule(explainer, short_rounds):
    how = {"measures": ("gower", "L0"), "max_changes": 5, "n_counterfactuals": 2}
    assert_follows_the_rule(explainer, DENIED, **how)


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [False, *nightly(True)])
@pytest.mark.parametrize("independent", [False, *nightly(True)])
def test_order_and_batches_do_not_matter(explainer, sparse, independent, short_rounds):
    def explain(X):
        return explainer.explain(
            X,
            n_samples="auto",
            sparse=sparse,
            independent=independent,
            n_counterfactuals=2,
            floor=0.3 if sparse else None,
        )

    some = FEW.iloc[:3]
    whole = explain(some)
    backwards = explain(some.iloc[::-1])
    singles = [explain(some.loc[[i]]) for i in some.index]
    for parts in ([backwards], singles):
        for name in ("frame", "measures"):
            table = pd.concat([getattr(part, name) for part in parts])
            assert_frame_equal(table.loc[getattr(whole, name).index], getattr(whole, name), check_exact=True)
        assert_series_equal(pd.concat([part.draws for part in parts])[whole.draws.index], whole.draws)


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [True, *nightly(False)])
@pytest.mark.parametrize(("name", "value"), [("BLOCK_FACTUALS", 3), *nightly_rows(("POOL_BYTES", 1))])
def test_blocks_and_threads_do_not_matter(explainer, sparse, name, value, short_rounds, monkeypatch):
    one = explainer.explain(FEW, n_samples="auto", sparse=sparse)
    monkeypatch.setattr(mcce.explain.problem, name, value)
    two = fitted(n_jobs=2).explain(FEW, n_samples="auto", sparse=sparse)
    assert_same(one, two)
    assert_series_equal(one.draws, two.draws)


def test_each_row_is_drawn_once(short_rounds, monkeypatch):
    explainer = fitted()
    drawn = []
    plain = type(explainer.generator_).draw

    def counting(self, request, **how):
        drawn.extend(zip(request.stream_keys.tolist(), request.draw_indices.tolist()))
        return plain(self, request, **how)

    monkeypatch.setattr(type(explainer.generator_), "draw", counting)
    found = explainer.explain(DENIED, n_samples="auto", constraints=[ANY_MISSING])
    assert len(set(drawn)) == len(drawn)
    by_pool = found.draws.groupby([DENIED[name] for name in FIXED], observed=True).max()
    assert len(drawn) == by_pool.sum()


@pytest.mark.slow
def test_sparse_rounds_never_get_worse(explainer, short_rounds):
    """The crossings of each round are candidates: the result is at least as good as that of the first round.

    Without caution, rows are ordered by changes and distance.
    """
    first = explainer.explain(DENIED, n_samples=20, sparse=True, caution=0).measures
    found = explainer.explain(DENIED, n_samples="auto", sparse=True, caution=0).measures
    both = first.index.intersection(found.index)
    above = both[(first.loc[both, "plausibility"] >= 0.05).to_numpy()]
    assert len(above) > 20
    cost = [list(zip(table.loc[above, "L0"], table.loc[above, "gower"])) for table in (first, found)]
    assert all(new <= (old[0], old[1] + 1e-12) for old, new in zip(*cost))
    assert (found.loc[above, "plausibility"] >= 0.05).all()


def test_factual_without_counterfactual_uses_all_rounds(short_rounds):
    """No candidate of group b is ever valid: the reason counts all draws; group a stops earlier."""
    X = pd.DataFrame({"group": ["a"] * 40 + ["b"] * 40, "x": np.tile(np.arange(40.0), 2)})
    X["x"] += np.where(X["group"] == "b", 100, 0)
    explainer = MCCE(
        lambda frame: ((frame["x"] >= 30) & (frame["x"] < 100)).to_numpy(float),
        fixed=["group"],
        random_state=1,
        condition_on_decision=False,
    ).fit(X)
    found = explainer.explain(X, n_samples="auto")
    assert (found.draws[X["group"] == "b"] == 320).all()
    assert (found.draws[(X["group"] == "a") & (X["x"] < 30)] < 320).all()
    assert (found.draws[(X["group"] == "a") & (X["x"] >= 30)] == 0).all()
    assert found.unexplained["reason"].str.contains("none of the 320 candidates").sum() == 40


@pytest.mark.slow
def test_result_reports_the_number_of_draws(explainer):
    found = explainer.explain(TABLE, n_samples=30)
    wanted = found.unexplained.index[found.unexplained["reason"].str.startswith("already")]
    assert (found.draws[wanted] == 0).all()
    assert (found.draws.drop(wanted) == 30).all()
    assert "mean draws" not in found.summary().index
    auto = explainer.explain(FEW, n_samples="auto")
    assert auto.run.settings["n_samples"] == "auto"
    assert set(auto.draws) <= {1000 * 2**i for i in range(5)}
    assert auto.summary()["value"]["mean draws"] == auto.draws.mean()
    assert explainer.select(explainer.generate(FEW, n_samples=5), FEW).draws is None


def test_no_factuals_to_explain(explainer):
    found = explainer.explain(TABLE[~TABLE.index.isin(DENIED.index)].iloc[:0], n_samples="auto")
    assert len(found) == 0
    assert len(found.draws) == 0


def test_invalid_numbers_of_draws_raise(explainer):
    with pytest.raises(InputError, match=r"n_samples is 'many'; it must be a whole number of at least 1 .*or 'auto'"):
        explainer.explain(FEW, n_samples="many")
    with pytest.raises(InputError, match="redraw is -1; it must be a whole number of at least 0"):
        explainer.explain(FEW, n_samples=10).redrawn(-1)


# ---------------------------------------------------------------- redraws and standard errors


@pytest.mark.slow
def test_redraw_gives_other_rows_of_the_same_generator(explainer):
    one = explainer.explain(DENIED, n_samples=50)
    again, two = one.redrawn(0), one.redrawn(1)
    assert_same(one, again)
    assert_same(two, again.redrawn(1))
    assert not one.frame.equals(two.frame)


@examples(12)
@given(st.data())
def test_pooled_error_matches_hand_calculation(data):
    n, redraws = data.draw(st.integers(1, 8)), data.draw(st.integers(2, 4))
    number = st.integers(0, 5).map(float)
    values = np.array(data.draw(st.lists(st.lists(number, min_size=n, max_size=n), min_size=redraws, max_size=redraws)))
    pools = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), dtype=np.uint64)
    variance = 0.0
    for pool in set(pools.tolist()):
        sums = [sum(v for v, p in zip(row, pools) if p == pool) for row in values.tolist()]
        mean = sum(sums) / redraws
        variance += sum((s - mean) ** 2 for s in sums) / (redraws - 1)
    assert pooled_error(values, pools) == pytest.approx(np.sqrt(variance) / n)
    with_unexplained = np.column_stack([values, np.r_[np.nan, values[1:, 0]]])
    assert pooled_error(with_unexplained, np.append(pools, 0)) == pytest.approx(pooled_error(values, pools))


def spread_over_redraws(explainer, X, n_redraws, **how):
    """The target of the standard errors: standard deviations of the means over many real redraws."""
    one = explainer.explain(X, **how)
    redraws = (one.redrawn(1000 + r) for r in range(n_redraws))
    means = [found.measures[["L0", "gower"]].mean() for found in redraws]
    return pd.DataFrame(means).std()


@pytest.fixture(scope="module")
def loans():
    data = load_loans(1500)
    X = data.X.assign(age=(data.X["age"] // 5) * 5)  # some fixed values are shared by many

    def granted(frame):
        return 1 / (1 + np.exp(-(frame["salary"] / 2e4 + frame["savings"] / 1e4 - 4.5))).to_numpy()

    explainer = MCCE(granted, fixed=["age", "sex"], random_state=1, n_jobs=1).fit(X)
    return explainer, X[granted(X) < 0.4].iloc[:150]


@pytest.fixture(scope="module")
def one_large_pool():
    """Three pools of 100, 10 and 10 factuals: errors for independent factuals would be far too small."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"group": np.repeat(["a", "b", "c"], 200)})
    for name in "uvw":
        X[name] = rng.normal(size=600)
    explainer = MCCE(lambda f: f[["u", "v", "w"]].sum(axis=1).to_numpy(), decision=(0, np.inf), fixed=["group"])
    explainer.random_state = 3
    refused = X[X[["u", "v", "w"]].sum(axis=1) < 0]
    some = pd.concat([refused[refused["group"] == g].iloc[:n] for g, n in (("a", 100), ("b", 10), ("c", 10))])
    return explainer.fit(X), some


@pytest.mark.slow
def test_standard_errors_match_the_spread_of_real_redraws(loans):
    """About 20 pools and 3 standard errors from two redraws each: their mean is within 30 per cent of the truth."""
    explainer, X = loans
    truth = spread_over_redraws(explainer, X, 60, n_samples=60)
    found = explainer.explain(X, n_samples=60)
    errors = [found.redrawn(r).standard_errors() for r in range(3)]
    for name in ("L0", "gower"):
        said = np.sqrt(np.mean([each[name] ** 2 for each in errors]))
        assert said == pytest.approx(truth[name], rel=0.3)


@pytest.mark.nightly
def test_standard_errors_account_for_shared_pools(one_large_pool):
    """Over 25 standard errors the variance is correct within 35 per cent; under independence it is far smaller."""
    explainer, X = one_large_pool
    truth = spread_over_redraws(explainer, X, 100, n_samples=100)
    how = {"n_samples": 100}
    first = explainer.explain(X, **how)
    found = [first.redrawn(r) for r in range(25)]
    said = np.sqrt(np.mean([one.standard_errors()["gower"] ** 2 for one in found]))
    assert said == pytest.approx(truth["gower"], rel=0.35)
    apart = [one.measures["gower"].to_numpy() for one in found]
    naive = pooled_error(np.stack(apart), np.arange(len(X), dtype=np.uint64))
    assert naive < 0.6 * truth["gower"]


@pytest.mark.slow
def test_errors_are_computed_on_demand_without_side_effects(explainer):
    plain = explainer.explain(FEW, n_samples=50)
    found = explainer.explain(FEW, n_samples=50)
    assert not [name for name in plain.summary().index if name.startswith("se ")]
    names = list(found.summary(standard_errors=True).index)
    assert_same(plain, found)
    assert names.index("se L0") == names.index("sd L0") + 1
    assert "se gower" in names
    assert found.summary().index.tolist() == plain.summary().index.tolist()
    assert explainer.explain(FEW, n_samples="auto", sparse=True).standard_errors()["L0"] >= 0
