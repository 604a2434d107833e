"""The contract of `Generator` as checks of a `GeneratorBench`."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from mcce._utils import Bools, Floats
from mcce.exceptions import InputError, NotFittedError
from mcce.generators import Drawn, DrawRequest
from mcce.samplers import Within
from mcce.testing.requirements import (
    ConformanceError,
    equal,
    require,
    require_agreement,
    require_same_parameters,
    unmoved_global_state,
)
from mcce.testing.tables import GeneratorBench, mixed_table

GeneratorCheck = Callable[[GeneratorBench], None]

MOST_APART = 0.08  # total variation between draws and densities; at most 0.03 for 3000 draws of the same distribution


@dataclass(frozen=True)
class MoreRooms:
    """A rule: `rooms` is at least the factual's value, or at least 2."""

    place: int
    by_factual: bool

    @property
    def columns(self) -> tuple[int, ...]:
        """The column that the rule reads."""
        return (self.place,)

    def holds(self, rows: Floats, factuals: Floats | None) -> Bools:
        """Return whether each row obeys the rule."""
        least: Any = factuals[:, self.place] if self.by_factual and factuals is not None else 2.0
        return np.asarray(rows[:, self.place] >= least)


def place_of(fitted: Any, name: str) -> int:
    """Return the position of a column in the arrangement."""
    return list(fitted.schema_.names).index(name)


def check_fitted_attributes(bench: GeneratorBench) -> None:
    """Require the columns in their arrangement, the seed, the fixed features and the training rows."""
    for with_decision in (True, False):
        training = mixed_table(bench.seed)
        fitted = bench.fit(training, with_decision=with_decision)
        names = list(fitted.schema_.names)
        require(list(fitted.fixed_) == list(training.fixed), f"fixed_ is {fitted.fixed_!r}, not {training.fixed!r}.")
        require(names[: fitted.n_fixed_] == list(training.fixed), "schema_ does not begin with the fixed features.")
        require(set(names) == set(training.X.columns), "schema_ does not describe the training columns.")
        require(isinstance(fitted.seed_, int), f"seed_ is {fitted.seed_!r}; it must be an integer.")
        conditions = bool(fitted.conditions_on_decision_)
        require(conditions == with_decision, f"conditions_on_decision_ is {conditions} after fit(X, decision).")
        matrix = fitted.schema_.encode(training.X).matrix
        require(equal(fitted.training_, matrix), "training_ are not the encoded training rows.")
        decisions = fitted.training_decision_
        same = decisions is None if not with_decision else equal(decisions, training.decision)
        require(same, "training_decision_ is not the decision of the training rows.")


def check_not_fitted(bench: GeneratorBench) -> None:
    """Require that draw() raises NotFittedError before fit()."""
    training, fitted = bench.fitted()
    try:
        clone(fitted).draw(bench.request(fitted, training, 3))
    except NotFittedError:
        return
    except Exception as error:
        raise ConformanceError(f"draw() before fit() raises {type(error).__name__}; raise NotFittedError.") from error
    raise ConformanceError("draw() works before fit(); it must raise NotFittedError.")


def check_refit(bench: GeneratorBench) -> None:
    """Require that fit() keeps the parameters, and that a refit does not depend on the first fit."""
    training, fitted = bench.fitted()
    other = bench.fit(mixed_table(bench.seed + 1))
    before = other.get_params(deep=False)
    other.fit(training.X, training.decision)
    require_same_parameters(other, before, "fit() changes")
    request = bench.request(fitted, training, 40)
    same = equal(other.draw(request).rows, fitted.draw(request).rows)
    require(same or before.get("random_state", 0) is None, "a refitted generator draws other rows than a fresh one.")


def check_rows(bench: GeneratorBench) -> None:
    """Require that fixed values are kept, and that every value is valid for its column."""
    training, fitted = bench.fitted()
    request = bench.request(fitted, training, 400, np.arange(400) % 2 == 0)
    drawn = fitted.draw(request)
    require(isinstance(drawn, Drawn), f"draw() returns a {type(drawn).__name__}; return a Drawn.")
    shape = (400, len(fitted.schema_.names))
    require(drawn.rows.shape == shape, f"draw() returns rows of shape {drawn.rows.shape}; return {shape}.")
    is_mask = drawn.rejected.shape == (400,) and drawn.rejected.dtype == bool
    require(is_mask, "rejected must have one boolean per row.")
    require(drawn.rejected.mean() < 0.1, f"{drawn.rejected.mean():.0%} of the rows are rejected without restriction.")
    accepted, n_fixed = drawn.rows[~drawn.rejected], fitted.n_fixed_
    kept = equal(accepted[:, :n_fixed], request.given[~drawn.rejected, :n_fixed])
    require(kept, "draw() changes fixed values.")
    for feature, values, training_values in zip(fitted.schema_.features, accepted.T, fitted.training_.T):
        known = values[~np.isnan(values)]
        require(known.size == values.size or feature.has_missing, f"{feature.name!r} is drawn as missing.")
        require(np.isfinite(known).all(), f"{feature.name!r} is drawn as infinite.")
        if not feature.is_numeric:
            invented = np.setdiff1d(known, training_values)
            require(not invented.size, f"{feature.name!r} is drawn as unobserved levels {invented.tolist()}.")
        elif feature.grid is not None:
            require(equal(feature.grid.round(values), values), f"{feature.name!r} is drawn off its grid.")
    again = fitted.schema_.encode(fitted.schema_.decode(accepted)).matrix
    require(equal(again, accepted), "decoded rows are other rows when they are encoded again.")


def check_streams(bench: GeneratorBench) -> None:
    """Require that a row depends on its own request and the seed only."""
    training, fitted = bench.fitted()
    request = bench.request(fitted, training, 60)
    rows = fitted.draw(request).rows
    require(equal(fitted.draw(request).rows, rows), "the same request gives other rows when it is drawn again.")
    for what, places in (("in another order", np.arange(60)[::-1]), ("without the others", np.arange(3, 60, 7))):
        same = equal(fitted.draw(request.take(places)).rows, rows[places])
        require(same, f"rows drawn {what} get other values; draw from the request's rows, draws and seed only.")
    other = fitted.draw(replace(request, seed=request.seed + 1)).rows
    require(not equal(other, rows), "another seed gives the same rows.")


def check_global_state(bench: GeneratorBench) -> None:
    """Require that the global random generators are neither read nor changed."""
    training, fitted = bench.fitted()
    request = bench.request(fitted, training, 40)
    is_unseeded = bench.generator.get_params(deep=False).get("random_state") is None
    drawn = []
    for seed in (1, 2):
        with unmoved_global_state(seed):
            drawn.append((fitted if is_unseeded else bench.fit(training)).draw(request).rows)
    require(equal(*drawn), "rows depend on global random state.")


def check_conditioning(bench: GeneratorBench) -> None:
    """Require that draws depend on the decision and on the fixed values, as the training rows do."""
    training, fitted = bench.fitted()
    n = 1200
    half = np.arange(n) % 2 == 0
    drawn = fitted.draw(bench.request(fitted, training, n, half))
    income = drawn.rows[:, place_of(fitted, "income")]
    gap = np.nanmedian(income[half & ~drawn.rejected]) - np.nanmedian(income[~half & ~drawn.rejected])
    require(gap > 10.0, f"median income differs by {gap:.3g} between the decisions, in the training rows by about 20.")
    group, since = drawn.rows[:, place_of(fitted, "group")], drawn.rows[:, place_of(fitted, "since")]
    gap = np.nanmedian(since[group == 1.0]) - np.nanmedian(since[group == 0.0])
    require(
        gap > 120.0, f"median date differs by {gap:.3g} days between the groups, in the training rows by about 250."
    )


def check_weights(bench: GeneratorBench) -> None:
    """Require that a row of weight 3 counts as three."""
    training, fitted = bench.fitted()
    heavy = training.X["grade"].to_numpy() == "high"
    weighted = bench.fit(training, sample_weight=np.where(heavy, 3, 1))
    shares = []
    for generator in (fitted, weighted):
        drawn = generator.draw(bench.request(generator, training, 1200))
        shares.append(float((drawn.rows[~drawn.rejected, place_of(generator, "grade")] == 2.0).mean()))
    message = f"rows of triple weight are {shares[1]:.0%} of the draws, and {shares[0]:.0%} without weights"
    require(shares[1] > shares[0] + 0.1, f"{message}; fit() repeats or resamples the rows: use _fit()'s table.")


def check_restrictions(bench: GeneratorBench) -> None:
    """Require that accepted rows are inside the restrictions, and follow the unrestricted draws there."""
    training, fitted = bench.fitted()
    n = 1200
    income, rooms, grade = (place_of(fitted, name) for name in ("income", "rooms", "grade"))
    within = {
        income: Within(low=np.full(n, 45.0), high=np.full(n, 70.0)),
        grade: Within(levels=np.tile([False, True, True], (n, 1))),
    }
    request = bench.request(fitted, training, n)
    free = fitted.draw(request)
    drawn = fitted.draw(replace(request, within=within))
    accepted = drawn.rows[~drawn.rejected]
    require(len(accepted) > 0.5 * n, f"{drawn.rejected.mean():.0%} of the rows are rejected, though many fit.")
    for column, restriction in within.items():
        outside = (~restriction.take(~drawn.rejected).allows(accepted[:, column])).sum()
        require(not outside, f"{outside} accepted rows break the restriction of {fitted.schema_.names[column]!r}.")
    inside = ~free.rejected
    for column, restriction in within.items():
        inside &= restriction.allows(free.rows[:, column])
    require_agreement(
        "numeric", accepted[:, income], free.rows[inside, income], "restricted rows do not follow the free ones inside"
    )
    nothing = fitted.draw(replace(request, within={rooms: Within(low=np.full(n, np.inf))}))
    require(nothing.rejected.all(), "rows whose restriction nothing fulfils are accepted.")


def check_rules(bench: GeneratorBench) -> None:
    """Require that accepted rows obey the rules, also those that compare them with their factual."""
    training, fitted = bench.fitted()
    n = 600
    request = bench.request(fitted, training, n)
    factuals = fitted.training_[np.arange(n) % 50]
    for by_factual in (False, True):
        rule = MoreRooms(place_of(fitted, "rooms"), by_factual)
        drawn = fitted.draw(replace(request, rules=(rule,), factuals=factuals if by_factual else None))
        broken = (~rule.holds(drawn.rows, factuals) & ~drawn.rejected).sum()
        name = "rooms >= factual rooms" if by_factual else "rooms >= 2"
        require(not broken, f"{name}: {broken} accepted rows break the rule.")
        require(drawn.rejected.mean() < 0.6, f"{name}: {drawn.rejected.mean():.0%} of the rows are rejected.")


def check_densities(bench: GeneratorBench) -> None:
    """Require that probabilities of all rows of a small table sum to 1, and agree approximately with the draws.

    A density may be smoother than the draws (as for trees), so shares may differ slightly.
    """
    _, fitted = bench.fitted("small")
    rows = np.array(list(itertools.product(range(2), range(2), range(3))), dtype=float)
    arranged = ["group", "home", "size"]
    rows = rows[:, [arranged.index(name) for name in fitted.schema_.names]]
    for wanted in (True, False):
        try:
            by_feature = fitted.log_density(fitted.schema_.decode(rows), wanted)
        except InputError:  # a generator without densities
            return
        require(set(by_feature.columns) == {"home", "size"}, f"densities are for {[*by_feature.columns]}.")
        shares = np.exp(by_feature.to_numpy().sum(axis=1))
        for group in (0.0, 1.0):
            in_group = rows[:, 0] == group
            total = float(shares[in_group].sum())
            require(abs(total - 1.0) < 1e-6, f"the probabilities of all rows given one group sum to {total:.6g}.")
            _require_frequencies(fitted, rows[in_group], shares[in_group], wanted, bench.seed)


def _require_frequencies(fitted: Any, rows: Floats, shares: Floats, wanted: bool, seed: int) -> None:
    n = 3000
    givens = fitted.givens_of(np.repeat(rows[:1], n, axis=0), wanted)
    drawn = fitted.draw(DrawRequest(givens, np.full(n, 17, np.uint64), np.arange(n, dtype=np.uint64), seed)).rows
    counts = np.array([(drawn == row).all(axis=1).sum() for row in rows], dtype=float)
    distance = float(np.abs(counts / n - shares).sum() / 2.0)
    drawn_shares, expected = np.round(counts / n, 3).tolist(), np.round(shares, 3).tolist()
    evidence = f"draws have the shares {drawn_shares}, densities give {expected}"
    require(distance < MOST_APART, f"{evidence}: a total variation distance of {distance:.2g}.")


def check_pickle(bench: GeneratorBench) -> None:
    """Require that a pickled generator draws the same rows."""
    training, fitted = bench.fitted()
    request = bench.request(fitted, training, 60)
    same = equal(pickle.loads(pickle.dumps(fitted)).draw(request).rows, fitted.draw(request).rows)
    require(same, "a pickled copy draws other rows.")


GENERATOR_CHECKS: tuple[GeneratorCheck, ...] = (
    check_fitted_attributes,
    check_not_fitted,
    check_refit,
    check_rows,
    check_streams,
    check_global_state,
    check_conditioning,
    check_weights,
    check_restrictions,
    check_rules,
    check_densities,
    check_pickle,
)
