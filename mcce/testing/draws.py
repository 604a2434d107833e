"""Checks of what a sampler draws: valid values, from its own streams alone, with the right distribution."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd

from mcce.exceptions import SamplerError
from mcce.rng import RowStreams
from mcce.samplers import ConditionalSampler
from mcce.samplers.settle import settle
from mcce.table import Column
from mcce.testing.requirements import check, equal, require, require_agreement, require_array, require_valid
from mcce.testing.tables import Problem, draw, fit, kinds_of, make_problem, trained


@check
def check_shape(sampler: ConditionalSampler, seed: int) -> None:
    """Require that sample() returns a float64 array with one value for each row."""
    for kind, problem, fitted in trained(sampler, seed):
        drawn = draw(fitted, problem.given, seed)
        require_array(drawn, np.float64, problem.given.n_rows, f"{kind} target: sample()")


@check
def check_values(sampler: ConditionalSampler, seed: int) -> None:
    """Require that levels drawn are observed levels, that numbers are finite, and that nothing is missing."""
    for kind, problem, fitted in trained(sampler, seed, unobserved=True):
        drawn = draw(fitted, problem.given.take(problem.copies()), seed)
        require_valid(drawn, problem.target, f"{kind} target")
        require(
            not np.isnan(drawn).any(),
            f"{kind} target without missing values: {np.isnan(drawn).sum()} draws are NaN.",
        )


@check
def check_no_givens(sampler: ConditionalSampler, seed: int) -> None:
    """Require that a table without columns works: a chain's first feature may have nothing before it."""
    for kind, problem, fitted in trained(sampler, seed, givens=()):
        drawn = draw(fitted, problem.given, seed)
        require_array(drawn, np.float64, problem.given.n_rows, f"{kind} target, no givens: sample()")
        require_valid(drawn, problem.target, f"{kind} target, no givens")


@check
def check_one_row(sampler: ConditionalSampler, seed: int) -> None:
    """Require that one row, or none, can be drawn."""
    for kind, problem, fitted in trained(sampler, seed):
        for n in (1, 0):
            drawn = draw(fitted, problem.given.take(np.arange(n)), seed)
            require_array(drawn, np.float64, n, f"{kind} target, {n} row(s) to draw: sample()")


@check
def check_seeds(sampler: ConditionalSampler, seed: int) -> None:
    """Require the same draws from the same streams, and others from other streams."""
    for kind, problem, fitted in trained(sampler, seed):
        drawn = draw(fitted, problem.given, seed)
        same = "the same streams gave other draws; take all randomness from `rng`."
        require(equal(drawn, draw(fitted, problem.given, seed)), f"{kind} target, drawn again: {same}")
        require(
            equal(drawn, draw(fit(sampler, problem), problem.given, seed)),
            f"{kind} target, fitted again: {same}",
        )
        changed = not equal(drawn, draw(fitted, problem.given, seed + 1))
        require(changed, f"{kind} target: another seed gave the same draws; take all randomness from `rng`.")


@check
def check_rows_independent(sampler: ConditionalSampler, seed: int) -> None:
    """Require that a row's draw does not depend on the rows beside it, on their order or number."""
    for kind, problem, fitted in trained(sampler, seed):
        n = problem.given.n_rows
        drawn = draw(fitted, problem.given, seed)
        for what, rows in (
            ("in another order", np.random.default_rng(seed).permutation(n)),
            ("without the others", np.arange(5, n, 7)),
        ):
            again = fitted.sample(problem.given.take(rows), RowStreams.from_seed(seed, n).take(rows))
            require(
                equal(again, drawn[rows]),
                f"{kind} target: rows drawn {what} get other values; draw each by itself.",
            )


@check
def check_global_state(sampler: ConditionalSampler, seed: int) -> None:
    """Require that the global generators of numpy and of random are neither read nor moved."""
    kept = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        for kind in kinds_of(sampler):
            problem = make_problem(kind, seed)
            drawn = []
            for state in (1, 2):
                np.random.seed(state)  # noqa: NPY002
                random.seed(state)
                before = repr(np.random.get_state()), random.getstate()  # noqa: NPY002
                drawn.append(draw(fit(sampler, problem), problem.given, seed))
                after = repr(np.random.get_state()), random.getstate()  # noqa: NPY002
                require(
                    before == after,
                    f"{kind} target: a global random generator has moved; draw from `rng` only.",
                )
            require(equal(*drawn), f"{kind} target: draws depend on global random state; draw from `rng` only.")
    finally:
        np.random.set_state(kept[0])  # noqa: NPY002
        random.setstate(kept[1])


@check
def check_inputs_unchanged(sampler: ConditionalSampler, seed: int) -> None:
    """Require that fit() and sample() do not write into the tables they get."""
    for kind in kinds_of(sampler):
        problem = make_problem(kind, seed)
        given, target = problem.given.matrix.copy(), problem.target.values.copy()
        fitted = fit(sampler, problem)
        require(
            equal(given, problem.given.matrix),
            f"{kind} target: fit() writes into given.matrix; copy it first.",
        )
        require(
            equal(target, problem.target.values),
            f"{kind} target: fit() writes into target.values; copy it first.",
        )
        draw(fitted, problem.given, seed)
        require(
            equal(given, problem.given.matrix),
            f"{kind} target: sample() writes into given.matrix; copy it first.",
        )


@check
def check_missing(sampler: ConditionalSampler, seed: int) -> None:
    """Require, where missing values are handled, that draws are missing only if training values were."""
    if not sampler.handles_missing:
        return
    for kind in kinds_of(sampler):
        for givens, target in ((True, False), (False, True), (True, True)):
            problem = make_problem(kind, seed, missing_givens=givens, missing_target=target)
            holders = " and ".join(["the givens"] * givens + ["the target"] * target)
            where = f"{kind} target, missing values in {holders}"
            drawn = draw(fit(sampler, problem), problem.given, seed)
            require_valid(drawn, problem.target, where)
            require(target or not np.isnan(drawn).any(), f"{where}: {np.isnan(drawn).sum()} draws are NaN.")
            require(not np.isnan(drawn).all(), f"{where}: all draws are NaN.")


@check
def check_marginal(sampler: ConditionalSampler, seed: int) -> None:
    """Require the training distribution, drawn at the training givens, which say nothing of the target."""
    for kind, problem, fitted in trained(sampler, seed):
        drawn = draw(fitted, problem.given.take(problem.copies()), seed)
        require_agreement(
            kind, drawn, problem.target.values, f"{kind} target: draws are not distributed as the training values"
        )


@check
def check_conditional(sampler: ConditionalSampler, seed: int) -> None:
    """Require the training distribution within each level of a two-level given that moves the target."""
    if sampler.ignores_given:
        return
    for kind, problem, fitted in trained(sampler, seed, givens=("sex",), by_sex=True):
        rows = problem.copies()
        drawn = draw(fitted, problem.given.take(rows), seed)
        sex = problem.given.matrix[:, 0]
        for level in (0.0, 1.0):
            require_agreement(
                kind,
                drawn[sex[rows] == level],
                problem.target.values[sex == level],
                f"{kind} target: given level {level:.0f} of a two-level column, draws are not distributed as the "
                "training values",
                " A sampler that ignores the givens on purpose says so: ignores_given = True.",
            )


@check
def check_grid(sampler: ConditionalSampler, seed: int) -> None:
    """Require that draws, put on the grid of a column of integers or of tenths as a chain does, are still right.

    They have the training distribution, and where only training values are declared to be drawn (`draws_observed`)
    there are no others.
    """
    if "numeric" not in sampler.handles:
        return
    for name, what in (("whole", "whole numbers"), ("tenths", "tenths")):
        where = f"numeric target of {what}"
        problem = make_problem("numeric", seed, givens=("sex",), **{name: True})
        fitted = fit(sampler, problem)
        given = problem.given.take(problem.copies())
        n, observed, feature = given.n_rows, problem.target.values, problem.target.feature
        raw = draw(fitted, given, seed)
        if sampler.draws_observed:
            new = ~np.isin(raw, observed)
            require(
                not new.any(),
                f"{where}: {new.sum()} of {n} draws are no training values, which draws_observed declares.",
            )
        settled = settle(raw, sampler, feature, n)
        seen = feature.encode(pd.Series(feature.decode(settled)), "the draws")
        require(equal(seen, settled), f"{where}: draws change when they are written as {feature.dtype}.")
        require_agreement(
            "numeric",
            settled,
            observed,
            f"{where}: draws, rounded to the nearest, are not distributed as the training values",
            " Leave the rounding to the chain.",
        )


@check
def check_weights(sampler: ConditionalSampler, seed: int) -> None:
    """Require that a sampler which takes weights draws by them: what weighs three times as much, about so much more."""
    if not sampler.takes_weights:
        return
    for kind in kinds_of(sampler):
        problem = make_problem(kind, seed, givens=("sex",))
        values = problem.target.values
        heavy = values > np.median(values) if kind == "numeric" else values == values[0]
        try:
            sampler.check_weights(problem.target.feature)
        except SamplerError:  # a refusal
            return
        weighted = Column(problem.target.feature, values, np.where(heavy, 3.0, 1.0))
        fitted = fit(sampler, Problem(problem.given, weighted))
        drawn = draw(fitted, problem.given, seed)
        found = float((drawn > np.median(values)).mean() if kind == "numeric" else (drawn == values[0]).mean())
        plain = float(heavy.mean())
        wanted = 3.0 * plain / (3.0 * plain + 1.0 - plain)
        require(
            found > (plain + wanted) / 2.0,  # a normal distribution, say, follows by its mean only
            f"{kind} target: values of {wanted:.0%} of the weight are {found:.0%} of the draws, and {plain:.0%} of the "
            "rows; heed target.weights in fit(), or do not declare takes_weights.",
        )
