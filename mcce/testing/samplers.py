"""The contract of `ConditionalSampler` as checks of a `Bench`."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.base import clone

from mcce._utils import Bools, Floats
from mcce.exceptions import InputError, NotFittedError, listing
from mcce.rng import RowStreams
from mcce.samplers import Within
from mcce.samplers.base import check_problem, has_distribution
from mcce.table import KINDS
from mcce.testing.requirements import (
    LEVEL,
    ConformanceError,
    difference,
    equal,
    require,
    require_agreement,
    require_floats,
    require_same_parameters,
    require_valid,
    unmoved_global_state,
)
from mcce.testing.tables import Bench, Problem, distribution, draw

Check = Callable[[Bench], None]


def check_declarations(bench: Bench) -> None:
    """Require that `handles` names kinds, and that the other declarations are booleans."""
    handles = bench.sampler.handles
    unknown = set(handles) - set(KINDS)
    require(handles and not unknown, f"handles is {sorted(handles)}; it must name one or more of {listing(KINDS)}.")
    for name in ("accepts_missing", "accepts_missing_target"):
        value = getattr(bench.sampler, name)
        require(isinstance(value, bool), f"the class attribute {name} is {value!r}; it must be True or False.")


def check_parameters(bench: Bench) -> None:
    """Require scikit-learn's conventions: parameters are stored untouched, and kept by clone() and fit()."""
    params = bench.sampler.get_params(deep=False)
    for name in params:
        probe = object()
        try:
            stored = getattr(type(bench.sampler)(**{**params, name: probe}), name)
        except Exception as error:
            raise ConformanceError(
                f"the constructor works on its parameter {name!r} ({type(error).__name__}: {error}); store it "
                "untouched, and check it in fit()."
            ) from error
        require(stored is probe, f"the constructor changes its parameter {name!r}; store it untouched.")
    for kind in bench.kinds:
        problem, sampler = bench.problem(kind), bench.unfitted()
        before = sampler.get_params(deep=False)
        require(sampler.fit(problem.given, problem.target) is sampler, "fit() does not return self.")
        require_same_parameters(sampler, before, "fit() changes")


def check_not_fitted(bench: Bench) -> None:
    """Require NotFittedError before fit(), and from the clone of a fitted sampler."""
    for _, problem, fitted in bench.fitted():
        for unfitted, when in ((bench.unfitted(), "before fit()"), (clone(fitted), "on a fresh clone")):
            try:
                draw(unfitted, problem, bench.seed)
            except NotFittedError:
                continue
            except Exception as error:
                raise ConformanceError(
                    f"a draw {when} raises {type(error).__name__}: {error}; read what is learned from attributes with "
                    "a trailing underscore only."
                ) from error
            raise ConformanceError(f"draws work {when}; learned state must be in attributes that fit() sets.")


def check_refit(bench: Bench) -> None:
    """Require that a second fit() does not depend on the first."""
    for kind in bench.kinds:
        before = bench.problem(kind, givens=("sex",), missing_target=bench.sampler.accepts_missing_target)
        problem = bench.problem(kind, seed=1, by_sex=True)
        twice = bench.fit(before)
        twice.fit(problem.given, problem.target)
        same = equal(draw(twice, problem, 1)[0], draw(bench.fit(problem), problem, 1)[0])
        require(same, f"a {kind} target, fitted after another one, is not drawn as by a fresh sampler.")


def check_values(bench: Bench) -> None:
    """Require one float for each row: a finite number or an observed level, not missing."""
    for kind, problem, fitted in bench.fitted(unobserved=True):
        rows = problem.copies()
        drawn = fitted.sample(problem.given.take(rows), RowStreams.from_seed(bench.seed, rows.size))
        require_floats(drawn, rows.size, f"{kind} target: sample()")
        require_valid(drawn, problem.target, f"{kind} target")
        for n in (1, 0):
            few = fitted.sample(problem.given.take(np.arange(n)), RowStreams.from_seed(bench.seed, n))
            require_floats(few, n, f"{kind} target, {n} row(s) to draw: sample()")


def check_no_givens(bench: Bench) -> None:
    """Require that a table without columns works: the first feature of a chain may have no givens."""
    for kind, problem, fitted in bench.fitted(givens=()):
        require_valid(draw(fitted, problem, bench.seed)[0], problem.target, f"{kind} target, no givens")


def check_seeds(bench: Bench) -> None:
    """Require the same draws from the same streams, and different draws from other streams."""
    for kind, problem, fitted in bench.fitted():
        drawn = draw(fitted, problem, 1)[0]
        same = "the same streams gave other draws; draw from `rng` only"
        require(equal(drawn, draw(fitted, problem, 1)[0]), f"{kind} target, drawn again: {same}.")
        again = draw(bench.fit(problem), problem, 1)[0]
        require(equal(drawn, again), f"{kind} target, fitted again: {same}, and let random_state seed fit().")
        other = draw(fitted, problem, 2)[0]
        require(not equal(drawn, other), f"{kind} target: another seed gave the same draws; draw from `rng` only.")


def check_rows_independent(bench: Bench) -> None:
    """Require that a row's draw does not depend on the other rows, their order or their number."""
    for kind, problem, fitted in bench.fitted():
        n = problem.given.n_rows
        drawn = draw(fitted, problem, 1)[0]
        for what, rows in (
            ("in another order", np.random.default_rng(bench.seed).permutation(n)),
            ("without the others", np.arange(5, n, 7)),
        ):
            again = distribution(fitted, problem, rows).sample(RowStreams.from_seed(1, n).take(rows))[0]
            same = equal(again, drawn[rows])
            require(same, f"{kind} target: rows drawn {what} get other values; draw each row independently.")


def check_global_state(bench: Bench) -> None:
    """Require that the global generators of numpy and of random are neither read nor changed."""
    for kind in bench.kinds:
        problem = bench.problem(kind)
        drawn = []
        for seed in (1, 2):
            with unmoved_global_state(seed, f"{kind} target: "):
                drawn.append(draw(bench.fit(problem), problem, 1)[0])
        require(equal(*drawn), f"{kind} target: draws depend on global random state; draw from `rng` only.")


def check_inputs_unchanged(bench: Bench) -> None:
    """Require that fit() and draws do not write into their input."""
    for kind in bench.kinds:
        problem = bench.problem(kind)
        given, target = problem.given.matrix.copy(), problem.target.values.copy()
        fitted = bench.fit(problem)
        require(equal(given, problem.given.matrix), f"{kind} target: fit() writes into given.matrix; copy it first.")
        require(equal(target, problem.target.values), f"{kind} target: fit() writes into target.values; copy it first.")
        draw(fitted, problem, bench.seed)
        require(equal(given, problem.given.matrix), f"{kind} target: a draw writes into given.matrix; copy it first.")


def check_missing(bench: Bench) -> None:
    """Require that declared missing values work, that others are refused, and that none come from nowhere."""
    sampler = bench.sampler
    for kind in bench.kinds:
        for gaps in ({"missing_givens": True}, {"missing_target": True}):
            problem = bench.problem(kind, **gaps)
            where = f"{kind} target, missing values in the {'givens' if 'missing_givens' in gaps else 'target'}"
            if not (sampler.accepts_missing if "missing_givens" in gaps else sampler.accepts_missing_target):
                try:
                    check_problem(sampler, problem.given, problem.target)
                except InputError:
                    continue
                raise ConformanceError(f"{where}: they are not accepted, and check_problem() does not say so.")
            drawn = draw(bench.fit(problem), problem, bench.seed)[0]
            require_valid(drawn, problem.target, where)
            if "missing_target" in gaps:
                share = float(np.isnan(drawn).mean())
                require(0.1 < share < 0.5, f"{where}: {share:.0%} of the draws are missing, of the training rows 30%.")


def check_given(bench: Bench) -> None:
    """Require that draws depend on a two-level given that shifts the target far, unless `uses_given` is False."""
    if not bench.uses_given:
        return
    for kind, problem, fitted in bench.fitted(givens=("sex",), by_sex=True):
        rows = problem.copies()
        drawn, sex = draw(fitted, problem, bench.seed, rows)[0], problem.given.matrix[rows, 0]
        p = difference(kind, drawn[sex == 0.0], drawn[sex == 1.0])[0]
        require(p < LEVEL, f"{kind} target: draws do not depend on a column that moves the target far (p = {p:.2g}).")


def check_grid(bench: Bench) -> None:
    """Require that the draws of whole numbers and of tenths can be written in the column, and fit its values."""
    if "numeric" not in bench.sampler.handles:
        return
    for decimals in {"any": (0, 1), "counts": (0,), "shares": (2,)}[bench.numbers]:
        problem = bench.problem("numeric", givens=("sex",), decimals=decimals)
        feature = problem.target.feature
        drawn = draw(bench.fit(problem), problem, bench.seed)[0]
        written = feature.encode(pd.Series(feature.decode(drawn)), "the draws")
        require(equal(written, drawn), f"numbers of {decimals} decimals: draws change when written as {feature.dtype}.")


def check_within(bench: Bench) -> None:
    """Require that restricted draws are allowed, follow the conditional there, and are rejected if nothing is."""
    for kind, problem, fitted in bench.fitted(givens=("sex",), by_sex=True):
        rows = np.zeros(4 * problem.given.n_rows, dtype=np.intp)  # the first row, many times
        free = draw(fitted, problem, 1, rows)[0]
        possible = np.arange(rows.size) % 4 > 0
        for name, within in _restrictions(problem, free, possible):
            drawn, rejected = draw(fitted, problem, 2, rows, within)
            where = f"{kind} target, within {name}"
            require_floats(drawn, rows.size, f"{where}: a draw")
            outside = (~within.allows(drawn) & ~rejected).sum()
            require(not outside, f"{where}: {outside} of {rows.size} draws lie outside.")
            wrong = (rejected == possible).sum()
            require(not wrong, f"{where}: {wrong} of {rows.size} rows are wrongly rejected or wrongly accepted.")
            require(np.isnan(drawn[rejected]).all(), f"{where}: rejected rows have a value; it must be NaN.")
            anywhere = within.take(np.full(rows.size, np.argmax(possible)))
            message = f"{where}: draws do not follow the conditional restricted to it"
            require_agreement(kind, drawn[possible], free[anywhere.allows(free)], message)


def _restrictions(problem: Problem, free: Floats, possible: Bools) -> list[tuple[str, Within]]:
    """Return restrictions to a probable part of unrestricted draws; empty ones where not `possible`."""
    restrictions = []
    if problem.kind != "categorical":
        low, high = np.quantile(free, [0.4, 0.9], method="nearest")
        restrictions.append(("an interval", Within(np.full(free.size, low), np.where(possible, high, low - 1.0))))
        restrictions.append(("a lower bound", Within(low=np.where(possible, low, np.inf))))
    if problem.kind != "numeric":
        shares = np.bincount(free.astype(np.intp), minlength=problem.target.feature.n_levels)
        likeliest = np.isin(np.arange(shares.size), np.argsort(-shares, kind="stable")[:2])
        restrictions.append(("two levels", Within(levels=likeliest & possible[:, None])))
    return restrictions


def check_density(bench: Bench) -> None:
    """Require that a density is positive for draws, that levels' probabilities sum to 1 and agree with the draws."""
    if not has_distribution(bench.sampler):
        return
    for kind, problem, fitted in bench.fitted(givens=("sex",), by_sex=True):
        rows = problem.copies()
        drawn, distributions = draw(fitted, problem, bench.seed, rows)[0], distribution(fitted, problem, rows)
        density = distributions.log_density(drawn)
        require_floats(density, rows.size, f"{kind} target: log_density()")
        impossible = (~np.isfinite(density)).sum()
        require(not impossible, f"{kind} target: log_density() is not finite for {impossible} draws.")
        if kind == "numeric":
            continue
        levels = np.arange(float(problem.target.feature.n_levels))
        shares = np.exp([distributions.log_density(np.full(rows.size, level)) for level in levels])
        worst = float(np.abs(shares.sum(axis=0) - 1.0).max())
        require(worst < 1e-6, f"{kind} target: the levels' probabilities do not sum to 1 (by {worst:.2g}).")
        apart = float(np.abs(shares.mean(axis=1) - [(drawn == level).mean() for level in levels]).max())
        require(
            apart < 0.05, f"{kind} target: draws have a level more or less often than its probability ({apart:.2g})."
        )


def check_distribution_function(bench: Bench) -> None:
    """Require that draws have uniform values of the distribution function, and that ppf() returns them."""
    if not has_distribution(bench.sampler):
        return
    for kind, problem, fitted in bench.fitted(givens=("sex",), by_sex=True):
        rows = problem.copies()
        drawn, distributions = draw(fitted, problem, bench.seed, rows)[0], distribution(fitted, problem, rows)
        below, upto = distributions.cdf(drawn, below=True), distributions.cdf(drawn)
        ordered = (below >= 0.0) & (below <= upto) & (upto <= 1.0)
        require(ordered.all(), f"{kind} target: cdf() is not between 0 and 1, or below that of smaller values.")
        ranks = below + RowStreams.from_seed(bench.seed + 1, rows.size).uniform() * (upto - below)
        p = float(stats.kstest(ranks, "uniform").pvalue)
        require(p > LEVEL, f"{kind} target: cdf() is not that of the draws (Kolmogorov-Smirnov p = {p:.2g}).")
        slack = 1e-6 * (np.ptp(drawn) + 1.0) if kind == "numeric" else 0.0
        lost = (np.abs(distributions.ppf(upto) - drawn) > slack).sum()
        require(not lost, f"{kind} target: ppf(cdf(y)) is another value than y for {lost} of {rows.size} draws.")
        few = np.arange(5, rows.size, 50)
        same = equal(distributions.take(few).cdf(drawn[few]), upto[few])
        require(same, f"{kind} target: take() of the distributions returns other ones.")


def check_pickle(bench: Bench) -> None:
    """Require that a pickled copy draws the same values."""
    for kind, problem, fitted in bench.fitted():
        again = pickle.loads(pickle.dumps(fitted))
        same = equal(draw(fitted, problem, 1)[0], draw(again, problem, 1)[0])
        require(same, f"{kind} target: a pickled copy draws other values.")


def check_threads(bench: Bench) -> None:
    """Require that threads that share a fitted sampler draw the same values as one alone."""
    for kind, problem, fitted in bench.fitted():
        expected = [draw(fitted, problem, seed)[0] for seed in range(6)]
        with ThreadPoolExecutor(3) as threads:
            drawn = [threads.submit(draw, fitted, problem, seed) for seed in range(6)]
            same = all(equal(future.result()[0], values) for future, values in zip(drawn, expected))
        require(same, f"{kind} target: draws differ in several threads; a draw must not change the sampler.")


def check_marginal(bench: Bench) -> None:
    """Goodness of fit: require the training distribution, given training rows that are independent of the target."""
    for kind, problem, fitted in bench.fitted():
        drawn = draw(fitted, problem, bench.seed, problem.copies())[0]
        message = f"{kind} target: draws are not distributed as the training values"
        require_agreement(kind, drawn, problem.target.values, message)


def check_conditional(bench: Bench) -> None:
    """Goodness of fit: require the training distribution within each level of a given that shifts the target."""
    if not bench.uses_given:
        return
    for kind, problem, fitted in bench.fitted(givens=("sex",), by_sex=True):
        rows = problem.copies()
        drawn, sex = draw(fitted, problem, bench.seed, rows)[0], problem.given.matrix[:, 0]
        for level in (0.0, 1.0):
            message = f"{kind} target: given a level of a column, draws are not distributed as the training values"
            require_agreement(kind, drawn[sex[rows] == level], problem.target.values[sex == level], message)


CHECKS: tuple[Check, ...] = (
    check_declarations,
    check_parameters,
    check_not_fitted,
    check_values,
    check_no_givens,
    check_seeds,
    check_refit,
    check_rows_independent,
    check_global_state,
    check_inputs_unchanged,
    check_missing,
    check_given,
    check_grid,
    check_within,
    check_density,
    check_distribution_function,
    check_pickle,
    check_threads,
)
GOODNESS_OF_FIT: tuple[Check, ...] = (check_marginal, check_conditional)
