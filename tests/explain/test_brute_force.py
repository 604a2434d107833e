"""Both searches against exhaustive evaluation, on tables so small that every crossing of the draws is tried."""

from itertools import combinations
from zlib import crc32

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.exceptions import MCCEWarning
from mcce.explain.crossing import MOST

N_SAMPLES = 40
NOTHING = {"relations": (), "n_samples": N_SAMPLES}


def table(seed, n=250):
    """Return small whole numbers, levels, ordered levels and booleans, which depend on each other."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, n)
    b = np.clip(a + rng.integers(-1, 2, n), 0, 4)
    c = rng.choice(["x", "y", "z"], n)
    d = np.where(rng.random(n) < 0.7, c == "x", b > 2)
    e = pd.Categorical.from_codes(np.clip(b - rng.integers(0, 3, n), 0, 2), ["low", "mid", "high"], ordered=True)
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": d, "e": e})


class Model:
    """A score with random effects of each column and of two pairs."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.weights, self.of_level = rng.normal(0.6, 0.8, 7), dict(zip("xyz", rng.normal(0, 1, 3)))

    def __call__(self, rows):
        a, b, d = rows["a"].to_numpy(float), rows["b"].to_numpy(float), rows["d"].to_numpy(float)
        c = rows["c"].map(self.of_level).to_numpy(float)
        parts = [a - 2, b - 2, c, d, rows["e"].cat.codes.to_numpy(float), (a - 2) * c, d * (b > 2)]
        return 1.0 / (1.0 + np.exp(0.8 - np.column_stack(parts) @ self.weights))


def case(seed, n_factuals=10, **parameters):
    """Return a fitted explainer, its model and refused rows."""
    X, model = table(seed), Model(seed)
    least = float(np.quantile(model(X), 0.6))
    explainer = mcce.MCCE(model, decision=(least, np.inf), random_state=seed, **parameters).fit(X)
    refused = X[model(X) < least].drop_duplicates().head(n_factuals)
    return explainer, refused, lambda rows: model(rows) >= least


def crossings(own, draws, sizes=(1, 2, 3)):
    """Return a frame of all rows that have the values of one draw in at most three columns, and `own` elsewhere."""
    rows = set()
    for draw in draws.itertuples(index=False):
        for size in sizes:
            for places in combinations(range(len(own)), size):
                rows.add(tuple(draw[j] if j in places else own[j] for j in range(len(own))))
    rows.discard(tuple(own))
    return frame_of(sorted(rows, key=repr), draws)


def frame_of(rows, like):
    return pd.DataFrame(list(rows), columns=like.columns).astype(like.dtypes)


def n_changes(rows, own):
    return np.array([sum(v != o for v, o in zip(row, own)) for row in rows.itertuples(index=False)], dtype=int)


def gower(X, rows, own):
    """Return the mean step of each row; ordered levels by rank."""
    order = {"low": 0, "mid": 1, "high": 2}
    total = np.zeros(len(rows))
    for j, name in enumerate(X.columns):
        column = rows[name]
        if name in ("a", "b"):
            total += (column - own[j]).abs().to_numpy() / (X[name].max() - X[name].min())
        elif name == "e":
            total += np.abs(column.astype(str).map(order).to_numpy(dtype=float) - order[own[j]]) / 2
        else:
            total += (column != own[j]).to_numpy()
    return total / X.shape[1]


def owns(result):
    """Yield each factual's label and values, and its counterfactuals in order."""
    for label, rows in result.frame.groupby(level="id", sort=False):
        yield label, tuple(result.factuals.loc[label]), rows.reset_index(drop=True)


SEEDS = range(4)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fixed", [[], ["a", "d"]])
def test_the_fewest_changes_of_all_crossings(seed, fixed):
    """Without a floor: acceptance is validity alone, so brute force needs nothing of the package but the draws."""
    explainer, refused, is_wanted = case(seed, fixed=fixed)
    result = explainer.explain(refused, sparse=True, floor=0.0, **NOTHING)
    draws = explainer.generate(refused, N_SAMPLES)
    least = {}
    for label in refused.index:
        own = tuple(refused.loc[label])
        rows = crossings(own, draws.loc[label].drop_duplicates())
        assert (np.bincount(n_changes(rows, own), minlength=4)[1:4] <= MOST).all()  # the search leaves none out
        sizes = n_changes(rows, own)[is_wanted(rows)]
        if sizes.size:
            least[label] = sizes.min()
    assert len(least) > 5
    for label, own, rows in owns(result):
        assert n_changes(rows, own)[0] <= least.pop(label, 9)
    assert not least, "rows with a valid crossing are unexplained"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("options", [{}, {"n_counterfactuals": 4}, {"n_counterfactuals": 4, "diverse": True}])
def test_every_subset_of_a_change_is_worse(seed, options):
    """No single change can be left out, and leaving one out never helps the score."""
    explainer, refused, is_wanted = case(seed)
    result = explainer.explain(refused, sparse=True, floor=0.0, **NOTHING, **options)
    n_tried = 0
    for _, own, rows in owns(result):
        scores = explainer.model(rows)
        for row, score in zip(rows.itertuples(index=False), scores):
            changed = [j for j, (value, old) in enumerate(zip(row, own)) if value != old]
            without = [tuple(own[i] if i == j else value for i, value in enumerate(row)) for j in changed]
            without = frame_of(without, rows)
            n_tried += len(without)
            assert not is_wanted(without).any()
            assert (explainer.model(without) <= score + 1e-12).all()
    assert n_tried >= len(refused)
    assert not result.measures["below_floor"].any()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_nearest_of_the_fewest(seed):
    """With the paper's measures, a sparse search returns the least (L0, Gower) of the crossings of needed changes."""
    explainer, refused, is_wanted = case(seed)
    result = explainer.explain(refused, sparse=True, floor=0.0, measures=["L0", "gower"], **NOTHING)
    X, draws = table(seed), explainer.generate(refused, N_SAMPLES)
    n_compared = 0
    for label, own, best in owns(result):
        rows = crossings(own, draws.loc[label].drop_duplicates(), sizes=(1,))
        rows = rows[is_wanted(rows)]
        if len(rows):
            n_compared += 1
            assert n_changes(best, own)[0] == 1
            assert gower(X, best, own)[0] == pytest.approx(gower(X, rows, own).min(), abs=1e-12)
    assert n_compared > 2


@pytest.mark.parametrize("seed", SEEDS)
def test_k_best_of_single_changes(seed):
    """The k returned rows are the k nearest valid crossings of one column, if there are so many."""
    explainer, refused, is_wanted = case(seed)
    result = explainer.explain(
        refused, sparse=True, floor=0.0, measures=["L0", "gower"], n_counterfactuals=3, **NOTHING
    )
    X, draws = table(seed), explainer.generate(refused, N_SAMPLES)
    n_compared = 0
    for label, own, best in owns(result):
        rows = crossings(own, draws.loc[label].drop_duplicates(), sizes=(1,))
        rows = rows[is_wanted(rows)]
        if len(rows) >= 3:
            n_compared += 1
            np.testing.assert_allclose(gower(X, best, own), np.sort(gower(X, rows, own))[:3], atol=1e-12)
    assert n_compared > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_diverse_rows_are_the_best_of_each_set_of_columns(seed):
    explainer, refused, is_wanted = case(seed)
    options = {"n_counterfactuals": 5, "diverse": True, "measures": ["L0", "gower"]}
    result = explainer.explain(refused, sparse=True, floor=0.0, **options, **NOTHING)
    X, draws = table(seed), explainer.generate(refused, N_SAMPLES)
    for label, own, best in owns(result):
        changed = [tuple(v != o for v, o in zip(row, own)) for row in best.itertuples(index=False)]
        assert len(set(changed)) == len(changed)
        rows = crossings(own, draws.loc[label].drop_duplicates(), sizes=(1,))
        rows = rows[is_wanted(rows)]
        nearest = {}
        for row, distance in zip(rows.itertuples(index=False), gower(X, rows, own)):
            which = tuple(v != o for v, o in zip(row, own))
            nearest[which] = min(distance, nearest.get(which, 9.0))
        for which, distance in zip(changed, gower(X, best, own)):
            if sum(which) == 1:
                assert distance == pytest.approx(nearest.pop(which), abs=1e-12)
        assert not nearest or len(best) == 5  # every set of one column that has a valid row is used


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("options", [{}, {"n_counterfactuals": 4}, {"max_changes": 2}, {"max_gower": 0.2}])
def test_the_plain_search_is_exhaustive(seed, options):
    """All draws are evaluated, filtered and sorted (section 2.3 of the paper)."""
    explainer, refused, is_wanted = case(seed, fixed=["a"])
    result = explainer.explain(refused, n_samples=N_SAMPLES, **options)
    X, draws = table(seed), explainer.generate(refused, N_SAMPLES)
    returned = {label: rows for label, _, rows in owns(result)}
    for label in refused.index:
        own = tuple(refused.loc[label])
        rows = draws.loc[label].drop_duplicates()
        keys = np.column_stack([n_changes(rows, own), gower(X, rows, own)])
        allowed = is_wanted(rows) & (keys[:, 0] <= options.get("max_changes", 9))
        keys = keys[allowed & (keys[:, 1] <= options.get("max_gower", 9) + 1e-12)]
        keys = keys[np.lexsort(keys.T[::-1])][: options.get("n_counterfactuals", 1)]
        if not len(keys):
            assert label not in returned
            continue
        found = returned[label]
        np.testing.assert_allclose(np.column_stack([n_changes(found, own), gower(X, found, own)]), keys, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("most", [1, 2])
def test_bounds_leave_the_sparse_search_complete(seed, most):
    """A row within the bounds is returned exactly if some crossing within them is valid."""
    explainer, refused, is_wanted = case(seed)
    result = explainer.explain(refused, sparse=True, floor=0.0, max_changes=most, max_gower=0.25, **NOTHING)
    X, draws = table(seed), explainer.generate(refused, N_SAMPLES)
    assert (result.measures["L0"] <= most).all()
    assert (result.measures["gower"] <= 0.25).all()
    explained = set(result.frame.index.get_level_values("id"))
    for label in refused.index:
        own = tuple(refused.loc[label])
        rows = crossings(own, draws.loc[label].drop_duplicates(), sizes=(1, 2)[:most])
        is_valid = is_wanted(rows) & (n_changes(rows, own) <= most) & (gower(X, rows, own) <= 0.25 + 1e-12)
        assert (label in explained) == is_valid.any()


@pytest.mark.parametrize("seed", SEEDS)
def test_constraints_leave_the_sparse_search_complete(seed):
    explainer, refused, is_wanted = case(seed)
    constraints = [mcce.allow("a", direction="increase"), mcce.allow("c", levels=["x", "y"]), "b <= a + 1"]
    result = explainer.explain(refused, sparse=True, floor=0.0, constraints=constraints, **NOTHING)
    draws = explainer.generate(refused, N_SAMPLES, constraints=constraints)
    best = {label: n_changes(rows, own)[0] for label, own, rows in owns(result)}
    for _, own, rows in owns(result):
        assert ((rows["a"] >= own[0]) & rows["c"].isin(["x", "y"]) & (rows["b"] <= rows["a"] + 1)).all()
    for label in refused.index:
        own = tuple(refused.loc[label])
        rows = crossings(own, draws.loc[label].drop_duplicates())
        allowed = (rows["a"] >= own[0]) & rows["c"].isin(["x", "y"]) & (rows["b"] <= rows["a"] + 1)
        sizes = n_changes(rows, own)[is_wanted(rows) & allowed]
        if sizes.size:
            assert best[label] <= sizes.min()


class Wavering:
    """A model that takes back its first answer about a share of the rows."""

    def __init__(self, model, share):
        self.model, self.share, self.asked = model, share, {}

    def __call__(self, rows):
        scores = self.model(rows)
        for i, row in enumerate(rows.itertuples(index=False)):
            self.asked[row] = self.asked.get(row, 0) + 1
            if self.asked[row] > 1 and self.takes_back(row):
                scores[i] = 0.0
        return scores

    def takes_back(self, row):
        return crc32(str(row).encode()) % 1000 < 1000 * self.share


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_rows_are_confirmed_or_unexplained(sparse, share):
    """What is returned was accepted twice; what is taken back is replaced by the next best, or has a code."""
    explainer, refused, is_wanted = case(1)
    options = {"sparse": sparse, "n_samples": N_SAMPLES}
    steady = explainer.explain(refused, **options)
    explainer.model = Wavering(explainer.model, share)
    with pytest.warns(MCCEWarning, match="only confirmed rows are returned"):
        result = explainer.explain(refused, **options)
    assert not any(map(explainer.model.takes_back, result.frame.itertuples(index=False)))
    assert is_wanted(result.frame).all()
    assert set(result.unexplained["code"]) <= {"not_confirmed"}
    assert len(result.frame) + len(result.unexplained) == len(steady.frame) + len(steady.unexplained)
    if share == 1.0:
        assert not len(result.frame)
