"""Principal reasons compared with exact conditional Shapley values and with enumeration."""

from itertools import combinations, permutations
from math import comb, factorial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingClassifier

import mcce
from mcce.explain.principal import LEAST_SHARE, WeightedShare, exact_coefficients, random_orders, sets_before
from tests.datasets.paper_data import paper_folder

SLOPES, THRESHOLD = np.array([0.5, 1.0, -0.7, 0.8]), 1.5


def normal_table(n: int = 400, p: int = 4, correlation: float = 0.6) -> pd.DataFrame:
    """Return rows of correlated normal numbers."""
    rng = np.random.default_rng(1)
    common = rng.normal(size=(n, 1))
    X = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * rng.normal(size=(n, p))
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(p)])


def value_of(S: tuple[int, ...], x: np.ndarray, mean: np.ndarray, cov: np.ndarray, slopes: np.ndarray) -> float:
    """Return P(slopes @ X >= THRESHOLD | X_S = x_S) of a normal X."""
    rest = [j for j in range(x.size) if j not in S]
    if not rest:
        return float(slopes @ x >= THRESHOLD)
    S = list(S)
    weights = cov[np.ix_(rest, S)] @ np.linalg.inv(cov[np.ix_(S, S)]) if S else np.zeros((len(rest), 0))
    centre = mean[rest] + weights @ (x[S] - mean[S])
    left = cov[np.ix_(rest, rest)] - weights @ cov[np.ix_(S, rest)]
    gap = slopes[S] @ x[S] + slopes[rest] @ centre - THRESHOLD
    return float(norm.cdf(gap / np.sqrt(slopes[rest] @ left @ slopes[rest])))


def shapley_by_enumeration(x, mean, cov, slopes, fixed) -> dict[int, float]:
    """Return minus the Shapley values of `value_of`, with the fixed features in every set."""
    players = [j for j in range(x.size) if j not in fixed]
    found = {}
    for j in players:
        others = [k for k in players if k != j]
        found[j] = 0.0
        for size in range(len(others) + 1):
            for S in combinations(others, size):
                weight = factorial(size) * factorial(len(others) - size) / factorial(len(players))
                S = (*fixed, *S)
                with_j, without = (value_of(each, x, mean, cov, slopes) for each in ((*S, j), S))
                found[j] -= weight * (with_j - without)
    return found


def explained_normal(X: pd.DataFrame, slopes: np.ndarray, fixed: list[str]) -> mcce.Counterfactuals:
    """Return the result of a refused row, by a chain of linear regressions."""
    explainer = mcce.MCCE(
        lambda rows: rows.to_numpy() @ slopes,
        decision=(THRESHOLD, np.inf),
        fixed=fixed,
        sampler="norm",
        condition_on_decision=False,
        random_state=1,
    ).fit(X, relations=())
    refused = X[(X @ slopes).between(-0.5, 0.5)].head(1)
    return explainer.explain(refused, n_samples=100)


@pytest.mark.parametrize("fixed", [pytest.param([], marks=pytest.mark.slow), ["x1"]])
def test_shapley_values_and_shares_match_a_normal_distribution(fixed):
    X = normal_table()
    found = explained_normal(X, SLOPES, fixed)
    id = found.factuals.index[0]
    table = found.principal_reasons(id, every=True, n_draws=4000)
    # a chain of linear regressions is the normal distribution with the moments of the training rows
    x, mean, cov = X.loc[id].to_numpy(), X.mean().to_numpy(), np.cov(X.T, ddof=0)
    places = [X.columns.get_loc(name) for name in fixed]
    exact = shapley_by_enumeration(x, mean, cov, SLOPES, places)
    for j, shapley in exact.items():
        row = table.loc[f"x{j}"]
        assert row["shapley"] == pytest.approx(shapley, abs=4 * row["standard_error"] + 0.003)
        assert 0 < row["standard_error"] < 0.02
        others = tuple(k for k in range(x.size) if k != j)
        error = np.sqrt(0.25 / row["effective_draws"])
        assert row["share"] == pytest.approx(value_of(others, x, mean, cov, SLOPES), abs=4 * error)
    assert table.loc[fixed, "repair"].tolist() == ["fixed"] * len(fixed)
    mattered = table["shapley"].dropna()
    assert mattered.sum() == pytest.approx(value_of(tuple(places), x, mean, cov, SLOPES), abs=0.03)
    assert mattered.is_monotonic_decreasing


@pytest.mark.nightly
def test_sampled_shapley_values_of_many_features_are_within_reported_error():
    X = normal_table(p=13, correlation=0.3)
    slopes = np.r_[SLOPES, np.linspace(-0.5, 0.45, 9)]
    found = explained_normal(X, slopes, [])
    id = found.factuals.index[0]
    table = found.principal_reasons(id, every=True, n_draws=200)
    x, mean, cov = X.loc[id].to_numpy(), X.mean().to_numpy(), np.cov(X.T, ddof=0)
    v = {S: value_of(S, x, mean, cov, slopes) for size in range(14) for S in combinations(range(13), size)}
    for j in range(13):
        exact = sum((v[S] - v[tuple(sorted((*S, j)))]) / (13 * comb(12, len(S))) for S in v if j not in S)
        row = table.loc[f"x{j}"]
        assert row["shapley"] == pytest.approx(exact, abs=4 * row["standard_error"])
        assert row["standard_error"] < 0.03


def test_exact_coefficients_equal_the_mean_over_all_orders():
    sets = (np.arange(8)[:, None] >> np.arange(3) & 1).astype(bool)
    v = np.random.default_rng(1).uniform(size=8)
    place = {frozenset(np.flatnonzero(each)): i for i, each in enumerate(sets)}
    for j in range(3):
        steps = []
        for order in permutations(range(3)):
            before = frozenset(order[: order.index(j)])
            steps.append(v[place[before]] - v[place[before | {j}]])
        assert exact_coefficients(sets)[j] @ v == pytest.approx(np.mean(steps))


def test_preceding_sets_hold_the_first_players():
    orders = random_orders(5, 1)
    assert (orders[1] == orders[0][::-1]).all()
    assert (np.sort(orders, axis=1) == np.arange(5)).all()
    sets, places = sets_before(orders)
    for order, at in zip(orders, places):
        assert [set(np.flatnonzero(sets[i])) for i in at] == [set(order[:k]) for k in range(6)]


def test_estimate_is_a_weighted_share():
    found = WeightedShare.of(np.array([True, False, True]), np.log([1.0, 2.0, 1.0]))
    assert found.value == pytest.approx(0.5)
    assert found.effective == pytest.approx(16 / 6)
    assert WeightedShare.of(np.array([True]), np.array([-np.inf])) == WeightedShare(0.0, 0.0, 0.0)


# ---- German credit, by enumeration

FIXED = ["purpose", "age", "personal_status_sex", "foreign_worker"]
VALUES = 60  # for a number, in pairs


class German:
    """A model of German credit, an explainer, and all rows that differ from a person's in one or two features."""

    def __init__(self) -> None:
        data = mcce.datasets.load_german(paper_folder("german"))
        self.X, y = data.X, data.y == data.desired
        self.model = HistGradientBoostingClassifier(max_iter=40, random_state=0, categorical_features="from_dtype")
        self.model.fit(self.X, y)
        self.explainer = mcce.MCCE(self.model, decision=(0.6, 1), fixed=FIXED, random_state=1)
        self.explainer.fit(self.X, relations=())
        refused = self.X[self.model.predict_proba(self.X)[:, 1] < 0.5].head(4)
        self.found = self.explainer.explain(refused, sparse=True)

    def plausible(self, rows: pd.DataFrame, own: pd.DataFrame) -> np.ndarray:
        schema = self.explainer.generator_.schema_
        scale = self.explainer.plausibility_
        return scale.of_candidates(schema.encode(rows).matrix, schema.encode(own).matrix[0]) >= 0.05

    def reached(self, rows: pd.DataFrame) -> np.ndarray:
        return self.model.predict_proba(rows)[:, 1] >= 0.6

    def values(self, name: str, most: int | None = None) -> list:
        distinct = self.X[name].drop_duplicates().sort_values().tolist()
        if most is None or len(distinct) <= most:
            return distinct
        return [distinct[k] for k in np.linspace(0, len(distinct) - 1, most).astype(int)]

    def changed(self, own: pd.DataFrame, **values: list) -> pd.DataFrame:
        """Return the person's row with all combinations of values."""
        choices = pd.MultiIndex.from_product(values.values()).to_frame(index=False)
        rows = own.iloc[np.zeros(len(choices), dtype=int)].reset_index(drop=True)
        for k, name in enumerate(values):
            rows[name] = choices.iloc[:, k].astype(own[name].dtype).to_numpy()
        return rows.astype(self.X.dtypes)

    def repairs(self, own: pd.DataFrame, name: str, another: str | None = None) -> bool:
        """Return whether a plausible value flips the decision, in pairs one that the decision needs."""
        values = {name: self.values(name, None if another is None else VALUES)}
        if another is not None:
            values[another] = self.values(another, VALUES)
        rows = self.changed(own, **values)
        rows = rows[self.reached(rows)]
        rows = rows[self.plausible(rows, own)] if len(rows) else rows
        if another is not None and len(rows):
            rows = rows[~self.reached(rows.assign(**{name: own[name].iloc[0]}).astype(self.X.dtypes))]
        return len(rows) > 0


@pytest.mark.nightly
def test_reasons_on_german_credit_agree_with_enumeration():
    case = German()
    generator, n_listed = case.explainer.generator_, 0
    for id in case.found.factuals.index:
        own = case.X.loc[[id]]
        table = case.found.principal_reasons(id, every=True)
        listed = case.found.principal_reasons(id)
        assert len(listed) <= 4
        assert listed["shapley"].is_monotonic_decreasing
        n_listed += len(listed)
        # no reason without recourse
        changes = {rank: case.found.contributions(id, rank) for _, rank in case.found[id].frame.index}
        for name, repair in listed["repair"].items():
            if repair == "alone":
                assert case.repairs(own, name)
            else:
                by_answer = any(name in each.index and each.loc[name, "needed"] for each in changes.values())
                free = [each for each in case.X.columns if each not in (*FIXED, name)]
                assert by_answer or any(case.repairs(own, name, another) for another in free)
        # shares of levels and counted numbers: the sum over all values of p(x_j | rest), whatever the decision
        row = generator.schema_.encode(own).matrix[0]
        wanted = generator.conditionals_around(row).wanted
        for name in table.index[table["repair"] != "fixed"]:
            if case.X[name].nunique() > 20:
                continue
            rows = case.changed(own, **{name: case.values(name)})
            density = [generator.log_density(rows, decision=y).to_numpy() for y in (False, True)]
            weight = np.exp(density - np.max(density)).T @ [1 - wanted, wanted] * case.plausible(rows, own)
            exact = weight @ case.reached(rows) / weight.sum()
            error = np.sqrt(max(exact * (1 - exact), 0.01) / table.loc[name, "effective_draws"])
            assert table.loc[name, "share"] == pytest.approx(exact, abs=4 * error + 1e-9)
            if table.loc[name, "repair"] in ("none", "no effect"):
                assert exact < LEAST_SHARE + 4 * error
    assert n_listed > 0
