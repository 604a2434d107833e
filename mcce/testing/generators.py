"""Checks of a generator, and the small tables they use.

1. The object: fitted attributes, parameters, storage, and use by an explainer.
2. The draws: values, streams, conditioning, weights, restrictions, rules, densities.
"""

from __future__ import annotations

import copy
import itertools
import pickle
import random
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mcce import exceptions
from mcce.base.arrays import Bools, Floats
from mcce.constraints import allow
from mcce.exceptions import MCCEError, SamplerError
from mcce.explainer import MCCE
from mcce.generators.base import Generator
from mcce.generators.requests import Drawn, DrawRequest
from mcce.samplers import Within
from mcce.testing.requirements import ConformanceError, GeneratorCheck, equal, member_of, require
from mcce.testing.tables import levels_of

ROWS = 400
FIXED = ("group", "age")


@dataclass(frozen=True)
class Training:
    """A table with a decision and fixed features."""

    X: pd.DataFrame
    decision: Bools
    fixed: tuple[str, ...]


def mixed_table(seed: int) -> Training:
    """Return columns of every kind; income, rooms and job depend on the decision, job, since and debt on the group."""
    rng = np.random.default_rng([seed, 1])
    group = rng.integers(0, 2, ROWS)
    wanted = rng.random(ROWS) < 0.5
    job = np.where(rng.random(ROWS) < 0.75, group + wanted, rng.integers(0, 3, ROWS))
    income = 30.0 + 20.0 * wanted + rng.gamma(2.0, 4.0, ROWS)
    frame = pd.DataFrame(
        {
            "income": np.round(income, 2),
            "group": np.array(["a", "b"], dtype=object)[group],
            "job": levels_of(job, ["clerk", "cook", "pilot", "never"]),
            "age": 20 + rng.integers(0, 5, ROWS),
            "grade": levels_of(rng.integers(0, 3, ROWS), ["low", "mid", "high"], ordered=True),
            "rooms": (1 + rng.poisson(1.0 + 2.0 * wanted)).astype(np.int16),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 300, ROWS) + 250 * group, unit="D"),
            "debt": np.where(rng.random(ROWS) < 0.2, np.nan, np.round(rng.normal(5.0 + 4.0 * group, 2.0), 3)),
        }
    )
    return Training(frame, wanted, FIXED)


def small_table(seed: int) -> Training:
    """Return three columns of few levels, whose combinations can be enumerated, and an informative decision."""
    rng = np.random.default_rng([seed, 2])
    group, wanted = rng.integers(0, 2, ROWS), rng.random(ROWS) < 0.4
    home = (rng.random(ROWS) < 0.2 + 0.5 * wanted).astype(int)
    size = np.digitize(rng.logistic(size=ROWS) + 1.5 * home - group, [-0.5, 1.0])
    frame = pd.DataFrame(
        {
            "group": levels_of(group, ["a", "b"]),
            "home": levels_of(home, ["rents", "owns"]),
            "size": levels_of(size, ["small", "middle", "large"], ordered=True),
        }
    )
    return Training(frame, wanted, ("group",))


def fit(generator: Generator, training: Training, *, with_decision: bool = True, **more: Any) -> Any:
    """Return a fitted copy of the generator with the fixed features of the table."""
    made: Any = copy.deepcopy(generator)
    made.fixed = list(training.fixed)
    made.fit(training.X, training.decision if with_decision else None, progress=False, **more)
    return made


_SHARED: dict[tuple[int, int, str], tuple[Generator, Any]] = {}


def fitted_once(generator: Generator, seed: int, table: str = "mixed") -> tuple[Training, Any]:
    """Return a table and a copy fitted to it, shared by the checks that only draw."""
    training = {"mixed": mixed_table, "small": small_table}[table](seed)
    key = (id(generator), seed, table)
    if key not in _SHARED or _SHARED[key][0] is not generator:
        if len(_SHARED) > 8:
            _SHARED.clear()
        _SHARED[key] = generator, fit(generator, training)
    return training, _SHARED[key][1]


def forget_fits() -> None:
    """Clear the shared fits."""
    _SHARED.clear()


def factuals_for(fitted: Any, training: Training, n: int) -> Floats:
    """Return encoded training rows, three of each group in turn, `n` times."""
    matrix: Floats = fitted.schema_.encode(training.X).matrix
    group = matrix[:, fitted.schema_.names.index("group")]
    some = np.concatenate([np.flatnonzero(group == code)[:3] for code in (0.0, 1.0)])
    return np.asarray(matrix[some[np.arange(n) % some.size]])


def request_for(fitted: Any, training: Training, n: int, seed: int, decision: bool | Bools = True) -> DrawRequest:
    """Return a request for `n` rows with the fixed values of a few training rows, each with a separate stream."""
    keys, draws = np.arange(n, dtype=np.uint64) % np.uint64(6), np.arange(n, dtype=np.uint64) // np.uint64(6)
    givens = fitted.givens_of(factuals_for(fitted, training, n), decision)
    return DrawRequest(givens, keys * np.uint64(7919), draws, seed)


@dataclass(frozen=True)
class MoreRoomsThan:
    """A rule: `rooms` is at least the factual's value, or at least 2."""

    place: int
    by_factual: bool
    columns: tuple[int, ...] = field(default=())

    def holds(self, rows: Floats, factuals: Floats | None) -> Bools:
        """Return whether each row obeys the rule."""
        least: Any = factuals[:, self.place] if self.by_factual and factuals is not None else 2.0
        return np.asarray(rows[:, self.place] >= least)

    def within_for(self, column: int, rows: Floats, factuals: Floats | None) -> None:
        """Return no bounds: rows that break the rule are redrawn."""

    def __str__(self) -> str:
        return "rooms >= factual rooms" if self.by_factual else "rooms >= 2"


def rule_of_rooms(fitted: Any, *, by_factual: bool) -> MoreRoomsThan:
    """Return a rule on the column `rooms`."""
    place = fitted.schema_.names.index("rooms")
    return MoreRoomsThan(place, by_factual, (place,))


def column(fitted: Any, drawn: Drawn, name: str) -> Floats:
    """Return one drawn column."""
    return np.asarray(drawn.rows[:, fitted.schema_.names.index(name)])


CHECKS: list[GeneratorCheck] = []
check = member_of(CHECKS)


@check
def check_fit(generator: Generator, seed: int) -> None:
    """Require that fit() stores the columns, the seed, the fixed features, and the givens of the training rows."""
    training = mixed_table(seed)
    for with_decision in (True, False):
        fitted = fit(generator, training, with_decision=with_decision)
        names = [name for name in training.X.columns if name in training.fixed]
        require(list(fitted.fixed_) == names, f"fixed_ is {fitted.fixed_!r}; it must list {names!r}, in data order.")
        require(list(fitted.schema_.names) == [*training.X.columns], "schema_ does not describe the training columns.")
        require(isinstance(fitted.seed_, int), f"seed_ is {fitted.seed_!r}; it must be an integer.")
        conditions = fitted.conditions_on_decision_
        require(bool(conditions) == with_decision, f"conditions_on_decision_ is {conditions!r} after fit(X, decision).")
        matrix = fitted.schema_.encode(training.X).matrix
        wanted = fitted.givens_of(matrix, training.decision)
        columns = [matrix[:, fitted.schema_.names.index(name)] for name in names]
        columns += [training.decision.astype(float)] if with_decision else []
        require(equal(wanted, np.column_stack(columns)), "givens_of() is not the fixed values, then the decision.")
        require(equal(fitted.training_givens_, wanted), "training_givens_ are not the givens of the training rows.")


@check
def check_not_fitted(generator: Generator, seed: int) -> None:
    """Require that draw() raises NotFittedError before fit()."""
    training, fitted = fitted_once(generator, seed)
    request = request_for(fitted, training, 3, seed)
    try:
        copy.deepcopy(generator).draw(request)
    except exceptions.NotFittedError:
        return
    except Exception as error:
        raise ConformanceError(f"draw() before fit() raises {type(error).__name__}; raise NotFittedError.") from error
    raise ConformanceError("draw() works before fit(); it must raise NotFittedError.")


@check
def check_settings(generator: Generator, seed: int) -> None:
    """Require that fit() does not change the parameters, and that a refit does not depend on the first fit."""
    training, fitted = fitted_once(generator, seed)
    made: Any = copy.deepcopy(generator)
    made.fixed = list(training.fixed)
    before = made.get_params(deep=False)
    made.fit(training.X, training.decision, progress=False)
    for name, value in before.items():
        now = getattr(made, name)
        require(now is value, f"fit() changes the parameter {name!r} from {value!r} to {now!r}.")
    other = fit(generator, mixed_table(seed + 1))
    other.fit(training.X, training.decision, progress=False)
    request = request_for(fitted, training, 40, seed)
    same = equal(other.draw(request).rows, fitted.draw(request).rows)
    random_state = before.get("random_state", 0)
    require(same or random_state is None, "a refitted generator draws other rows than a fresh one.")


MOST_APART = 0.08  # total variation between draws and densities; at most 0.03 for 3000 draws from the same distribution


@check
def check_rows(generator: Generator, seed: int) -> None:
    """Require that fixed values are kept, that every value is valid for its column, and that levels were observed."""
    training, fitted = fitted_once(generator, seed)
    request = request_for(fitted, training, 400, seed, np.arange(400) % 2 == 0)
    drawn = fitted.draw(request)
    shape = (400, len(fitted.schema_))
    require(isinstance(drawn, Drawn), f"draw() returns a {type(drawn).__name__}; return a Drawn.")
    require(drawn.rows.shape == shape, f"draw() returns rows of shape {drawn.rows.shape}; return {shape}.")
    require(drawn.rejected.shape == (400,) and drawn.rejected.dtype == bool, "rejected must have one boolean per row.")
    require(not drawn.rejected.all(), "all rows are rejected, though nothing restricts them.")
    accepted = drawn.rows[~drawn.rejected]
    n_fixed = len(fitted.fixed_)
    kept = equal(fitted.givens_of(accepted)[:, :n_fixed], request.givens[~drawn.rejected, :n_fixed])
    require(kept, "draw() changes fixed values.")
    matrix = fitted.schema_.encode(training.X).matrix
    for j, feature in enumerate(fitted.schema_.features):
        values, known = accepted[:, j], ~np.isnan(accepted[:, j])
        require(known.all() or feature.has_missing, f"{feature.name!r} is drawn as missing; no training value is.")
        require(np.isfinite(values[known]).all(), f"{feature.name!r} is drawn as infinite.")
        if feature.levels is not None:
            invented = np.setdiff1d(values[known], matrix[:, j])
            require(invented.size == 0, f"{feature.name!r} is drawn as unobserved levels {invented.tolist()}.")
        else:
            on_grid = equal(feature.grid.put(values), values)
            require(on_grid, f"{feature.name!r} is drawn off its grid (decimals {feature.decimals}).")
    again = fitted.schema_.encode(fitted.schema_.decode(accepted)).matrix
    require(equal(again, accepted), "rows change in a round trip through the dtypes of the training table.")


@check
def check_streams(generator: Generator, seed: int) -> None:
    """Require that a row is a function of seed, stream key and draw index: in any block, order and thread."""
    training, fitted = fitted_once(generator, seed)
    request = request_for(fitted, training, 90, seed)
    rows = fitted.draw(request).rows
    require(equal(fitted.draw(request).rows, rows), "the same request returns other rows the second time.")
    for part in (slice(0, 7), slice(7, 90), slice(41, 42), slice(None, None, -1)):
        require(equal(fitted.draw(request.take(part)).rows, rows[part]), "rows depend on other rows of the request.")
    for n_jobs in (1, 2):
        threaded = copy.copy(fitted)
        threaded.n_jobs = n_jobs
        require(equal(threaded.draw(request).rows, rows), "rows depend on n_jobs.")
    other = fitted.draw(replace(request, seed=seed + 1)).rows
    require(not equal(other, rows), "another seed returns the same rows.")
    same_givens = replace(request.take(slice(0, 1)).take([0] * 60), draw_indices=np.arange(60, dtype=np.uint64))
    distinct = np.unique(fitted.draw(same_givens).rows, axis=0).shape[0]
    require(distinct > 5, f"60 draws with other draw indices are only {distinct} different rows.")
    keyed = replace(same_givens, stream_keys=same_givens.stream_keys + np.uint64(1))
    require(not equal(fitted.draw(keyed).rows, fitted.draw(same_givens).rows), "rows do not depend on the stream key.")


@check
def check_global_state(generator: Generator, seed: int) -> None:
    """Require that fit() and draw() neither read nor change global random states, and do not change their inputs."""
    training, fitted = fitted_once(generator, seed)
    request = request_for(fitted, training, 30, seed)
    inputs = request.givens.copy(), training.X.copy(), training.decision.copy()
    rows = fitted.draw(request).rows
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    before = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index]  # noqa: NPY002
    require(equal(fitted.draw(request).rows, rows), "draw() reads a global random state.")
    fit(generator, training)
    after = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index]  # noqa: NPY002
    require(before == after, "fit() or draw() changes a global random state.")
    same = equal(inputs[0], request.givens) and inputs[1].equals(training.X) and equal(inputs[2], training.decision)
    require(same, "fit() or draw() changes its input.")


@check
def check_conditioning(generator: Generator, seed: int) -> None:
    """Require that draws depend on the decision and on the fixed values, as the training rows do."""
    training, fitted = fitted_once(generator, seed)
    drawn = {wanted: fitted.draw(request_for(fitted, training, 400, seed, wanted)) for wanted in (True, False)}
    median = {wanted: np.median(column(fitted, rows, "income")) for wanted, rows in drawn.items()}
    gap = float(median[True] - median[False])
    require(gap > 10.0, f"the decision moves the median of a number by {gap:.3g}, where it is 20 in the training rows.")
    effects = []
    for wanted, rows in drawn.items():
        in_b, has_job = column(fitted, rows, "group") == 1.0, column(fitted, rows, "job") == 1.0 + wanted
        effects.append(float(has_job[in_b & ~rows.rejected].mean() - has_job[~in_b & ~rows.rejected].mean()))
    shown = " and ".join(f"{effect:.3g}" for effect in effects)
    require(max(effects) > 0.1, f"a fixed level moves the shares of another by {shown}; in training rows by 0.75.")


@check
def check_weights(generator: Generator, seed: int) -> None:
    """Require that a generator which supports weights uses them, and does not draw from rows of weight 0."""
    if not generator.takes_weights:
        return
    training = mixed_table(seed)
    grade = training.X["grade"].to_numpy(dtype=object)
    weights = np.select([grade == "low", grade == "mid"], [0.0, 1.0], 3.0)
    try:
        fitted = fit(generator, training, sample_weight=weights)
    except SamplerError:  # a refusal
        return
    drawn = fitted.draw(request_for(fitted, training, 400, seed))
    found = fitted.schema_.decode(drawn.rows[~drawn.rejected])["grade"].to_numpy(dtype=object)
    require("low" not in found, "a drawn level occurs only in rows of weight 0.")
    counts = [float((grade == level).sum()) for level in ("mid", "high")]
    rows, wanted = counts[1] / sum(counts), 3.0 * counts[1] / (counts[0] + 3.0 * counts[1])
    share = float((found == "high").mean())
    require(
        share > (rows + wanted) / 2.0,
        f"a level of {wanted:.0%} of the weight is {share:.0%} of the draws, and {rows:.0%} of the rows; use "
        "sample_weight in fit(), or raise a SamplerError.",
    )


@check
def check_restrictions(generator: Generator, seed: int) -> None:
    """Require that rows are inside their restrictions, or rejected if these are empty; free rows must not change."""
    training, fitted = fitted_once(generator, seed)
    n = 90
    request = request_for(fitted, training, n, seed)
    free = fitted.draw(request)
    possible, levels = np.arange(n) % 3 > 0, np.array([True, True, True, False])
    for name, within, some in (
        ("income", Within(low=np.full(n, 48.0), high=np.where(possible, 62.0, 47.0)), possible),
        ("job", Within(levels=np.where(possible[:, None], levels & (np.arange(4) != 0), False)), possible),
        ("rooms", Within(low=np.full(n, 1.6), high=np.full(n, 4.4)), np.ones(n, dtype=bool)),
    ):
        drawn = fitted.draw(replace(request, restrictions={name: within}))
        inside = within.allows(column(fitted, drawn, name))
        require(
            inside[~drawn.rejected].all(), f"{name!r}: {(~inside & ~drawn.rejected).sum()} accepted rows lie outside."
        )
        require(drawn.rejected[~some].all(), f"{name!r}: rows that allow nothing are not rejected.")
        lost = float((drawn.rejected & some & ~free.rejected).sum() / some.sum())
        require(lost < 0.8, f"{name!r}: {lost:.0%} of the rows are rejected, though likely values are allowed.")
        _require_account(drawn, name)
    everything = Within(low=np.full(n, -np.inf), high=np.full(n, np.inf), missing=np.full(n, True))
    unbound = fitted.draw(replace(request, restrictions={"income": everything, "debt": everything}))
    require(equal(unbound.rows, free.rows), "a restriction that excludes nothing changes the draws.")


def _require_account(drawn: Drawn, name: str) -> None:
    """Require that the counts of rejections agree with the rejected rows."""
    if drawn.rejected_by is None:
        return
    require(equal(drawn.rejected_by >= 0, drawn.rejected), f"{name!r}: rejected_by and rejected do not agree.")
    table = drawn.acceptance()
    by_constraint = table["tried"] - table["passed"]
    require(
        int(by_constraint.sum()) == int(drawn.rejected.sum()),
        f"{name!r}: acceptance() does not count the rejected rows.",
    )
    require((table["passed"] >= 0).all(), f"{name!r}: a constraint rejected more rows than it checked.")


@check
def check_rules(generator: Generator, seed: int) -> None:
    """Require that accepted rows obey rules, including rules that compare them with their factuals."""
    training, fitted = fitted_once(generator, seed)
    n = 80
    request = request_for(fitted, training, n, seed)
    factuals = factuals_for(fitted, training, n)
    for by_factual in (False, True):
        rule = rule_of_rooms(fitted, by_factual=by_factual)
        drawn = fitted.draw(replace(request, rules=(rule,), factuals=factuals))
        holds = rule.holds(drawn.rows, factuals)
        require(
            holds[~drawn.rejected].all(), f"{rule}: {(~holds & ~drawn.rejected).sum()} accepted rows break the rule."
        )
        require(
            drawn.rejected.mean() < 0.6,
            f"{rule}: {drawn.rejected.mean():.0%} of the rows are rejected, though many obey it.",
        )
        _require_account(drawn, str(rule))
    weighted = fitted.draw(replace(request, rules=(rule_of_rooms(fitted, by_factual=False),), weighted=True))
    if weighted.log_weight is not None:
        accepted = weighted.log_weight[~weighted.rejected]
        require(
            np.isfinite(accepted).all() and (accepted < 1e-9).all(), "an accepted row has weight 0 or a weight above 1."
        )
        require(np.isneginf(weighted.log_weight[weighted.rejected]).all(), "a rejected row has a positive weight.")


@check
def check_densities(generator: Generator, seed: int) -> None:
    """Require that probabilities of all rows of a small table sum to 1, and approximate those of the draws.

    A density may be smoother than the draws (as for trees), so shares may differ slightly.
    """
    _, fitted = fitted_once(generator, seed, "small")
    rows = np.array(list(itertools.product(range(2), range(2), range(3))), dtype=float)
    for wanted in (True, False):
        try:
            by_feature = fitted.feature_log_densities(rows, wanted)
        except SamplerError:  # a refusal
            return
        require([*by_feature] == ["home", "size"], f"densities are for {[*by_feature]}, not for the mutable features.")
        shares = np.exp(sum(by_feature.values()))
        for group in (0.0, 1.0):
            mine = rows[:, 0] == group
            total = float(shares[mine].sum())
            require(abs(total - 1.0) < 1e-6, f"the probabilities of all rows given one group sum to {total:.6g}.")
            _require_frequencies(fitted, rows[mine], shares[mine], wanted, seed)


def _require_frequencies(fitted: Any, rows: Any, shares: Any, wanted: bool, seed: int) -> None:
    n = 3000
    givens = fitted.givens_of(np.repeat(rows[:1], n, axis=0), wanted)
    keys = np.full(n, 17, dtype=np.uint64)
    drawn = fitted.draw(DrawRequest(givens, keys, np.arange(n, dtype=np.uint64), seed)).rows
    counts = np.array([(drawn == row).all(axis=1).sum() for row in rows], dtype=float)
    require(not counts[shares * n < 1e-3].any(), "some drawn rows have probability 0.")
    distance = float(np.abs(counts / n - shares).sum() / 2.0)
    found = np.round(counts / n, 3).tolist()
    shares_found = f"draws have the shares {found}, the densities give {np.round(shares, 3).tolist()}"
    require(distance < MOST_APART, f"{shares_found}: a total variation distance of {distance:.2g}.")


@check
def check_storage(generator: Generator, seed: int) -> None:
    """Require that a pickled generator, and a saved one where saving is supported, draws the same rows."""
    training, fitted = fitted_once(generator, seed)
    request = request_for(fitted, training, 60, seed)
    rows = fitted.draw(request).rows
    require(equal(pickle.loads(pickle.dumps(fitted)).draw(request).rows, rows), "a pickled copy draws other rows.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "generator.mcce"
        try:
            fitted.save(path)
        except MCCEError:  # a refusal
            return
        again = type(fitted).load(path)
    require(equal(again.draw(request).rows, rows), "the loaded generator draws other rows than the saved one.")
    matrix = fitted.schema_.encode(training.X).matrix[:20]
    try:
        before = fitted.feature_log_densities(matrix)
    except MCCEError:
        return
    after = again.feature_log_densities(matrix)
    same = all(equal(before[name], after[name]) for name in before)
    require(same, "the loaded generator has other densities than the saved one.")


@check
def check_explains(generator: Generator, seed: int) -> None:
    """Require that an explainer finds counterfactuals: plain, inside constraints, and sparse with a floor."""
    training = mixed_table(seed)
    made: Any = copy.deepcopy(generator)
    made.fixed = list(training.fixed)
    explainer = MCCE(_income, decision=(50.0, np.inf), fixed=training.fixed, generator=made)
    explainer.fit(training.X, progress=False)
    denied = training.X[_income(training.X) < 50.0].head(12)
    ways: tuple[dict[str, Any], ...] = (
        {},
        {"constraints": [allow("income", high=60), allow("rooms", direction="increase")]},
        {"sparse": True, "floor": 0.01},
    )
    for options in ways:
        constraints = [allow("*", missing=True), *options.get("constraints", [])]
        settings: dict[str, Any] = {"n_samples": 150, "progress": False, **options, "constraints": constraints}
        found = explainer.explain(denied, **settings)
        where = f"explain({', '.join(options)})"
        require(len(found) > 0, f"{where} finds no counterfactual.")
        ids = found.frame.index.get_level_values("id")
        require((_income(found.frame) >= 50.0).all(), f"{where} returns rows without the wanted decision.")
        for name in training.fixed:
            kept = found.frame[name].to_numpy() == denied.loc[ids, name].to_numpy()
            require(kept.all(), f"{where} changes {name!r}, which is fixed.")
        if "constraints" in options:
            more = found.frame["rooms"].to_numpy() >= denied.loc[ids, "rooms"].to_numpy()
            inside = (_income(found.frame) <= 60.0).all() and more.all()
            require(inside, f"{where} returns rows that break the constraints.")
        alone = explainer.explain(denied.iloc[[3]], **settings).frame
        together = found.frame[ids == denied.index[3]]
        require(alone.equals(together), f"{where} explains a factual alone differently than among others.")


def _income(rows: Any) -> Any:
    return rows["income"].to_numpy(dtype=float)
