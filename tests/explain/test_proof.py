"""Proofs compared with enumeration of a small domain, the model's answers, and constraints in plain pandas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import mcce
from mcce.report.reasons import NO_ROOM

Holds = Callable[[pd.DataFrame, pd.Series], Any]  # which rows are allowed for a factual
NUMBERS, LEVELS = ["a", "b", "c"], ["s", "t"]
ALLOWED: list[tuple[Any, Holds]] = [
    (mcce.allow("a", direction="increase"), lambda rows, own: rows["a"] >= own["a"]),
    (mcce.allow("b", low=1, high=3), lambda rows, own: rows["b"].between(1, 3)),
    (mcce.allow("b", max_step=1), lambda rows, own: (rows["b"] - own["b"]).abs() <= 1),
    (mcce.allow("a", step=2), lambda rows, own: (rows["a"] % 2 == 0) | (rows["a"] == own["a"])),
    (mcce.allow("c", never=[0.5, 1.0]), lambda rows, own: ~rows["c"].isin([0.5, 1.0])),
    (mcce.allow("s", levels=["x", "z"]), lambda rows, own: rows["s"].isin(["x", "z"])),
    (mcce.rule("a + b <= 5"), lambda rows, own: rows["a"] + rows["b"] <= 5),
    (mcce.rule("a < b"), lambda rows, own: rows["a"] < rows["b"]),
    (mcce.rule("2 * c != a"), lambda rows, own: 2 * rows["c"] != rows["a"]),
    (mcce.rule("a * b <= 4"), lambda rows, own: rows["a"] * rows["b"] <= 4),
    (
        mcce.rule("if s == 'x' then a >= 2 else b >= 1"),
        lambda r, own: np.where(r["s"] == "x", r["a"] >= 2, r["b"] >= 1),
    ),
    (mcce.rule("s == 'y' or c > 0.5"), lambda rows, own: (rows["s"] == "y") | (rows["c"] > 0.5)),
    (mcce.rule("not (a > 2 and t == 'u')"), lambda rows, own: ~((rows["a"] > 2) & (rows["t"] == "u"))),
    (mcce.rule("a + c <= was(a) + was(c) + 1"), lambda rows, own: rows["a"] + rows["c"] <= own["a"] + own["c"] + 1),
]


def preprocessed(model: Any, seed: int) -> Any:
    encoder = OneHotEncoder() if seed % 2 else OrdinalEncoder()
    return make_pipeline(make_column_transformer((encoder, LEVELS), (StandardScaler(), NUMBERS)), model)


def lightgbm(seed: int) -> Any:
    library = pytest.importorskip("lightgbm")
    return library.LGBMClassifier(n_estimators=5, num_leaves=5, min_child_samples=5, verbose=-1, n_jobs=1)


def xgboost(seed: int) -> Any:
    library = pytest.importorskip("xgboost")
    return library.XGBClassifier(n_estimators=5, max_depth=3, n_jobs=1)


KINDS: dict[str, Callable[[int], Any]] = {
    "logistic": lambda seed: LogisticRegression(),
    "linear": lambda seed: LinearRegression(),
    "tree": lambda seed: DecisionTreeClassifier(max_depth=4, random_state=seed),
    "forest": lambda seed: RandomForestClassifier(7, max_depth=4, random_state=seed),
    "regression forest": lambda seed: RandomForestRegressor(7, max_depth=4, random_state=seed),
    "extra trees": lambda seed: ExtraTreesClassifier(7, max_depth=4, random_state=seed),
    "boosting": lambda seed: GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=seed),
    "histogram boosting": lambda seed: HistGradientBoostingClassifier(max_iter=6, min_samples_leaf=5),
    "lightgbm": lightgbm,
    "xgboost": xgboost,
}


@dataclass
class Case:
    """A small table, a model, and constraints twice: for mcce, and as functions of rows and a factual."""

    X: pd.DataFrame
    model: Any
    decision: Any
    holds: list[Holds] = field(default_factory=list)
    constraints: list[Any] = field(default_factory=list)
    fixed: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    def wanted(self, rows: pd.DataFrame) -> Any:
        if not isinstance(self.decision, tuple):
            return self.model.predict(rows) == self.decision
        low, high = self.decision
        scores = self.model.predict_proba(rows)[:, 1] if hasattr(self.model, "classes_") else self.model.predict(rows)
        return (scores >= low) & (scores <= high)


def make_case(seed: int, kind: str) -> Case:
    rng = np.random.default_rng([seed, 45])
    n = 150
    X = pd.DataFrame({"a": rng.integers(0, 5, n), "b": rng.integers(0, 5, n), "c": rng.integers(0, 4, n) / 2})
    X["s"] = pd.Categorical(rng.choice(["x", "y", "z"], n))
    X["t"] = pd.Categorical(rng.choice(["u", "v"], n))
    score = rng.normal(size=3) @ X[NUMBERS].to_numpy().T + rng.normal(size=3)[X["s"].cat.codes] + rng.normal(size=n)
    y = score if kind in ("linear", "regression forest") else (score > np.quantile(score, 0.7)).astype(int)
    bare = kind not in ("linear", "logistic") and seed % 3 == 0
    model = KINDS[kind](seed) if bare else preprocessed(KINDS[kind](seed), seed)
    X = X[NUMBERS] if bare else X
    model.fit(X, y)
    chosen = rng.choice(len(ALLOWED), rng.integers(1, 4), replace=False)
    chosen = [i for i in chosen if not bare or not any(f"'{x}'" in repr(ALLOWED[i][0]) for x in (*LEVELS, *"xyzuv"))]
    case = Case(X, model, None, [ALLOWED[i][1] for i in chosen], [ALLOWED[i][0] for i in chosen])
    if hasattr(model, "classes_"):
        scores = model.predict_proba(X)[:, 1]
        case.decision = 1 if seed % 4 == 1 else (float(np.quantile(scores, rng.uniform(0.6, 0.99))), 1.0)
    else:
        case.decision = float(np.quantile(model.predict(X), rng.uniform(0.6, 0.99))), np.inf
    case.fixed = tuple(rng.choice(X.columns, 1)) if seed % 2 else ()
    if seed % 5 == 0:
        case.options["max_changes"] = 2
    if seed % 5 == 1:
        case.options["max_gower"] = 0.15
    if seed % 5 == 2:
        case.constraints.append(mcce.no_copies())
        known = set(X.itertuples(index=False, name=None))
        case.holds.append(lambda rows, own: [row not in known for row in rows.itertuples(index=False, name=None)])
    return case


def enumerate_nearest(case: Case, own: pd.Series) -> tuple[float, float] | None:
    """Return the fewest changes and the smallest sum of Gower's steps of all valid rows; None if there are none."""
    X = case.X
    values = [
        [own[name]] if name in case.fixed else sorted(X[name].unique()) if name in LEVELS else grid(X[name])
        for name in X.columns
    ]
    rows = pd.DataFrame(list(product(*values)), columns=X.columns).astype(X.dtypes.to_dict())
    valid = case.wanted(rows)
    for holds in case.holds:
        valid = valid & np.asarray(holds(rows, own), dtype=bool)
    changed = np.column_stack([(rows[name] != own[name]).to_numpy() for name in X.columns])
    steps = np.column_stack(
        [
            changed[:, j] if name in LEVELS else (rows[name] - own[name]).abs() / (X[name].max() - X[name].min())
            for j, name in enumerate(X.columns)
        ]
    )
    changes, gower = changed.sum(axis=1), steps.sum(axis=1)
    valid = valid & (changes <= case.options.get("max_changes", np.inf))
    valid = valid & (gower <= case.options.get("max_gower", np.inf) * X.shape[1] + 1e-9)
    if not valid.any():
        return None
    best = np.lexsort([gower[valid], changes[valid]])[0]
    return float(changes[valid][best]), float(gower[valid][best])


def grid(column: pd.Series) -> list[Any]:
    step = 1 if column.dtype.kind == "i" else 0.1
    return [round(value, 1) for value in np.arange(column.min(), column.max() + step / 2, step).tolist()]


def compare(case: Case, n_factuals: int) -> dict[str, int]:
    """Prove for some factuals without a counterfactual, compare with the enumeration, and count the outcomes."""
    explainer = mcce.MCCE(case.model, decision=case.decision, fixed=list(case.fixed), random_state=1).fit(case.X)
    denied = case.X[~np.asarray(case.wanted(case.X))]
    counts = {"none": 0, "found": 0, "not proven": 0}
    try:
        found = explainer.explain(denied, n_samples=1, constraints=case.constraints, **case.options)
    except mcce.InputError:  # the constraints exclude every row
        return counts
    who = found.unexplained.index[~found.unexplained["reason"].str.startswith(NO_ROOM)][:n_factuals]
    if not len(who):
        return counts
    found = explainer.explain(denied.loc[who], n_samples=1, constraints=case.constraints, **case.options)
    proven = found.with_proofs()
    for i in found.unexplained.index:
        nearest = enumerate_nearest(case, case.X.loc[i])
        if i in proven:
            measures = proven[i].measures.iloc[0]
            assert nearest is not None
            assert (measures["L0"], pytest.approx(measures["gower_sum"], abs=1e-6)) == nearest
            counts["found"] += 1
            continue
        says = proven.unexplained.loc[i, "proof"]
        assert says.startswith(("none exists", "not proven")), says
        assert nearest is None or says.startswith("not proven")
        counts["none" if says.startswith("none") else "not proven"] += 1
    return counts


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(23))
@pytest.mark.parametrize("kind", KINDS)
def test_proofs_agree_with_enumeration_on_200_problems(kind: str, seed: int) -> None:
    assert compare(make_case(seed, kind), 3)["not proven"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_proofs_agree_with_enumeration(kind: str, seed: int) -> None:
    assert compare(make_case(seed, kind), 1)["not proven"] == 0


SUMS = {"relations": ["total == a + b"]}, {"derived": {"total": "a + b"}}, {"derived": {"total": "a / b"}}


@pytest.mark.slow
@pytest.mark.parametrize("given", SUMS)
@pytest.mark.parametrize("kind", ["forest", "logistic"])
def test_computed_columns_follow_their_sources(kind: str, given: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    is_sum = "a / b" not in str(given)

    def total(rows: pd.DataFrame) -> Any:
        return rows["a"] + rows["b"] if is_sum else (rows["a"] / rows["b"]).round(2)

    X = pd.DataFrame({"a": rng.integers(0, 6, 200), "b": rng.integers(1, 6, 200), "d": rng.integers(0, 4, 200)})
    X["total"] = total(X)
    score = 2 * X["total"] + X["d"] + rng.normal(size=200)
    model = KINDS[kind](1).fit(X, score > score.quantile(0.8))
    options = {"n_samples": 1, "max_gower": 0.3, "constraints": [mcce.allow("b", direction="decrease")]}
    derived = given.get("derived")
    explainer = mcce.MCCE(model, decision=(0.6, 1), derived=derived, random_state=1)
    explainer.fit(X, relations=given.get("relations"))
    unexplained = explainer.explain(X[model.predict_proba(X)[:, 1] < 0.6], **options).unexplained.index[:3]
    found = explainer.explain(X.loc[unexplained], **options)
    proven = found.with_proofs()
    rows = pd.DataFrame(list(product(range(6), range(1, 6), range(4))), columns=["a", "b", "d"])
    rows["total"] = total(rows)
    inside = True if derived else rows["total"].between(X["total"].min(), X["total"].max())
    for i in found.unexplained.index:
        own = X.loc[i]
        gower = sum((rows[name] - own[name]).abs() / np.ptp(X[name]) for name in "abd")
        changes = sum((rows[name] != own[name]).astype(int) for name in "abd")
        valid = (model.predict_proba(rows)[:, 1] >= 0.6) & (rows["b"] <= own["b"]) & (gower <= 1.2 + 1e-9) & inside
        nearest = min(zip(changes[valid], gower[valid])) if valid.any() else None
        if i in proven:
            measures = proven[i].measures.iloc[0]
            assert (measures["L0"], pytest.approx(measures["gower_sum"], abs=1e-6)) == nearest
        else:
            assert proven.unexplained.loc[i, "proof"].startswith("not proven" if not is_sum else "none exists")
            assert nearest is None


@pytest.fixture(scope="module")
def X() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    return pd.DataFrame({"a": rng.integers(0, 9, 80), "b": rng.normal(size=80), "s": rng.integers(0, 2, 80)})


@pytest.fixture(scope="module")
def tree(X: pd.DataFrame) -> mcce.MCCE:
    model = DecisionTreeClassifier(max_depth=3, random_state=1).fit(X, (X["a"] >= 5) & (X["b"] > 0))
    return mcce.MCCE(model, random_state=1).fit(X)


def denied(X: pd.DataFrame) -> pd.DataFrame:
    return X[(X["a"] < 4) & (X["b"] < -0.5)].head(1)


def test_existing_row_is_returned_and_accepted(tree: mcce.MCCE, X: pd.DataFrame) -> None:
    found = tree.explain(denied(X), n_samples=1, max_gower=0.3)
    (who,) = found.unexplained.index
    why = found.why_unexplained(who, prove=True)
    assert why["proof"].startswith("a row exists")
    row = pd.DataFrame([why["proof_row"]]).astype(X.dtypes.to_dict())
    assert tree.model.predict(row)[0]
    assert why["proof_row"]["s"] == X.loc[who, "s"]  # not used by the model
    taken = found.with_proofs()
    assert taken.frame.iloc[0].tolist() == why["proof_row"].tolist()
    assert taken.unexplained.empty
    assert "proof" not in found.why_unexplained(who)


def test_nonexistence_is_reported_with_its_domain(tree: mcce.MCCE, X: pd.DataFrame) -> None:
    found = tree.explain(denied(X), n_samples=1, constraints=[mcce.allow("a", high=4)])
    says = found.why_unexplained(found.unexplained.index[0], prove=True)["proof"]
    assert says.startswith("none exists: no row with values inside the training ranges")
    assert "plausibility is not part" in says
    assert found.with_proofs().unexplained["proof"].tolist() == [says]


@pytest.mark.slow
def test_rules_outside_the_program_are_checked_on_solutions(tree: mcce.MCCE, X: pd.DataFrame) -> None:
    odd = mcce.rule(lambda rows, factuals: rows["a"] % 2 == 1, features=["a"], name="odd")
    found = tree.explain(denied(X), n_samples=1, max_gower=0.5, constraints=[odd])
    (who,) = found.unexplained.index
    assert found.why_unexplained(who, prove=True)["proof_row"]["a"] % 2 == 1
    never = mcce.rule(lambda rows, factuals: rows["b"] ** 2 < 0.0, features=["b"], name="negative square")
    found = tree.explain(denied(X), n_samples=1, constraints=[never])
    says = found.why_unexplained(who, prove=True)["proof"]
    assert says == "not proven: the rule 'negative square' left 50 solutions that are not valid"


def test_proof_stops_at_the_time_limit(tree: mcce.MCCE, X: pd.DataFrame) -> None:
    found = tree.explain(denied(X), n_samples=1, max_gower=0.3)
    (who,) = found.unexplained.index
    assert found.why_unexplained(who, prove=True, time_limit=1e-9)["proof"] == "not proven: the time limit was reached"
    with pytest.raises(mcce.InputError, match="time_limit"):
        found.why_unexplained(who, prove=True, time_limit=0)


def test_unsupported_models_are_not_proven_and_supported_ones_are_listed(X: pd.DataFrame) -> None:
    explainer = mcce.MCCE(lambda rows: rows["a"] / 10, decision=(0.79, 1), random_state=1).fit(X)
    found = explainer.explain(X[X["a"] == 0].head(1), n_samples=1, constraints=[mcce.allow("a", high=7)])
    says = found.why_unexplained(found.unexplained.index[0], prove=True)["proof"]
    assert says.startswith("not proven: a function cannot be read; proofs are for linear and logistic models")
