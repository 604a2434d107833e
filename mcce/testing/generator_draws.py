"""Checks of what a generator draws: values, streams, conditioning, weights, restrictions, rules, densities."""

from __future__ import annotations

import inspect
import itertools
import random
from dataclasses import replace
from typing import Any

import numpy as np

from mcce.exceptions import SamplerError
from mcce.generators.base import Drawn, DrawRequest, Generator
from mcce.samplers import Within
from mcce.testing.generator_tables import (
    column,
    equal,
    factuals_for,
    fit,
    fitted_once,
    mixed_table,
    request_for,
    rule_of_rooms,
)
from mcce.testing.requirements import check_generator_by, require

check = check_generator_by

MOST_APART = 0.08  # total variation between draws and densities; 3000 draws of the same are 0.03 apart at most


@check
def check_rows(generator: Generator, seed: int) -> None:
    """Require that fixed values stay, and that every value is one that its column could hold, and levels observed."""
    training, fitted = fitted_once(generator, seed)
    request = request_for(fitted, training, 400, seed, np.arange(400) % 2 == 0)
    drawn = fitted.draw(request)
    shape = (400, len(fitted.schema_))
    require(isinstance(drawn, Drawn), f"draw() returns a {type(drawn).__name__}; return a Drawn.")
    require(drawn.rows.shape == shape, f"draw() returns rows of shape {drawn.rows.shape}; return {shape}.")
    require(drawn.dead.shape == (400,) and drawn.dead.dtype == bool, "dead is not one boolean a row.")
    require(not drawn.dead.all(), "all rows are dead, though nothing restricts them.")
    alive = drawn.rows[~drawn.dead]
    n_fixed = len(fitted.fixed_)
    kept = equal(fitted.givens_of(alive)[:, :n_fixed], request.givens[~drawn.dead, :n_fixed])
    require(kept, "draw() changes fixed values.")
    matrix = fitted.schema_.encode(training.X).matrix
    for j, feature in enumerate(fitted.schema_.features):
        values, known = alive[:, j], ~np.isnan(alive[:, j])
        require(known.all() or feature.has_missing, f"{feature.name!r} is drawn missing, and no training value is.")
        require(np.isfinite(values[known]).all(), f"{feature.name!r} is drawn infinite.")
        if feature.levels is not None:
            invented = np.setdiff1d(values[known], matrix[:, j])
            require(invented.size == 0, f"{feature.name!r} is drawn as levels {invented.tolist()}, never observed.")
        else:
            on_grid = equal(feature.grid.put(values), values)
            require(on_grid, f"{feature.name!r} is drawn off its grid (decimals {feature.decimals}).")
    again = fitted.schema_.encode(fitted.schema_.decode(alive)).matrix
    require(equal(again, alive), "rows do not come back from the dtypes of the training table as they were.")


@check
def check_streams(generator: Generator, seed: int) -> None:
    """Require that a row is a function of seed, stream key and draw index: in any block, order and thread."""
    training, fitted = fitted_once(generator, seed)
    request = request_for(fitted, training, 90, seed)
    rows = fitted.draw(request).rows
    require(equal(fitted.draw(request).rows, rows), "the same request gives other rows the second time.")
    for part in (slice(0, 7), slice(7, 90), slice(41, 42), slice(None, None, -1)):
        require(equal(fitted.draw(request.take(part)).rows, rows[part]), "rows depend on what is drawn beside them.")
    for n_jobs in (1, 2):
        require(equal(fitted.draw(request, n_jobs=n_jobs).rows, rows), "rows depend on n_jobs.")
    other = fitted.draw(replace(request, seed=seed + 1)).rows
    require(not equal(other, rows), "another seed gives the same rows.")
    same_givens = replace(request.take(slice(0, 1)).take([0] * 60), draw_indices=np.arange(60, dtype=np.uint64))
    distinct = np.unique(fitted.draw(same_givens).rows, axis=0).shape[0]
    require(distinct > 5, f"60 draws with other draw indices are only {distinct} different rows.")
    keyed = replace(same_givens, stream_keys=same_givens.stream_keys + np.uint64(1))
    require(not equal(fitted.draw(keyed).rows, fitted.draw(same_givens).rows), "rows do not depend on the stream key.")


@check
def check_global_state(generator: Generator, seed: int) -> None:
    """Require that fit() and draw() neither read nor leave changes in global random states, nor in their inputs."""
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
    require(same, "fit() or draw() changes what it is given.")


@check
def check_conditioning(generator: Generator, seed: int) -> None:
    """Require that what is drawn depends on the decision and on the fixed values, as in the training rows."""
    training, fitted = fitted_once(generator, seed)
    drawn = {wanted: fitted.draw(request_for(fitted, training, 400, seed, wanted)) for wanted in (True, False)}
    median = {wanted: np.median(column(fitted, rows, "income")) for wanted, rows in drawn.items()}
    gap = float(median[True] - median[False])
    require(gap > 10.0, f"the decision moves the median of a number by {gap:.3g}, where it is 20 in the training rows.")
    effects = []
    for wanted, rows in drawn.items():
        in_b, has_job = column(fitted, rows, "group") == 1.0, column(fitted, rows, "job") == 1.0 + wanted
        effects.append(float(has_job[in_b & ~rows.dead].mean() - has_job[~in_b & ~rows.dead].mean()))
    told = " and ".join(f"{effect:.3g}" for effect in effects)
    require(max(effects) > 0.1, f"a fixed level moves the shares of another by {told}; in training rows by 0.75.")


@check
def check_weights(generator: Generator, seed: int) -> None:
    """Require that a generator which takes weights draws by them, and not from rows of weight 0."""
    if "sample_weight" not in inspect.signature(generator.fit).parameters:
        return
    training = mixed_table(seed)
    grade = training.X["grade"].to_numpy(dtype=object)
    weights = np.select([grade == "low", grade == "mid"], [0.0, 1.0], 3.0)
    try:
        fitted = fit(generator, training, sample_weight=weights)
    except SamplerError:  # a refusal
        return
    drawn = fitted.draw(request_for(fitted, training, 400, seed))
    found = fitted.schema_.decode(drawn.rows[~drawn.dead])["grade"].to_numpy(dtype=object)
    require("low" not in found, "a level is drawn that only rows of weight 0 have.")
    counts = [float((grade == level).sum()) for level in ("mid", "high")]
    rows, wanted = counts[1] / sum(counts), 3.0 * counts[1] / (counts[0] + 3.0 * counts[1])
    share = float((found == "high").mean())
    require(
        share > (rows + wanted) / 2.0,
        f"a level of {wanted:.0%} of the weight is {share:.0%} of the draws, and {rows:.0%} of the rows; heed "
        "sample_weight in fit(), or refuse it by a SamplerError.",
    )


@check
def check_restrictions(generator: Generator, seed: int) -> None:
    """Require that living rows are inside their restrictions, and dead where nothing is; free rows are as without."""
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
        require(inside[~drawn.dead].all(), f"{name!r}: {(~inside & ~drawn.dead).sum()} living rows lie outside.")
        require(drawn.dead[~some].all(), f"{name!r}: rows that allow nothing are not dead.")
        lost = float((drawn.dead & some & ~free.dead).sum() / some.sum())
        require(lost < 0.8, f"{name!r}: {lost:.0%} of the rows are dead, though likely values are allowed.")
        _require_account(drawn, name)
    everything = Within(low=np.full(n, -np.inf), high=np.full(n, np.inf), missing=np.full(n, True))
    unbound = fitted.draw(replace(request, restrictions={"income": everything, "debt": everything}))
    require(equal(unbound.rows, free.rows), "a restriction that excludes nothing changes what is drawn.")


def _require_account(drawn: Drawn, name: str) -> None:
    """Require that what rows died of fits to which are dead."""
    if drawn.died_of is None:
        return
    require(equal(drawn.died_of >= 0, drawn.dead), f"{name!r}: died_of and dead do not agree.")
    table = drawn.acceptance()
    died = table["tried"] - table["passed"]
    require(int(died.sum()) == int(drawn.dead.sum()), f"{name!r}: acceptance() does not count the dead rows.")
    require((table["passed"] >= 0).all(), f"{name!r}: more rows died of a constraint than came to it.")


@check
def check_rules(generator: Generator, seed: int) -> None:
    """Require that living rows obey rules, also those that compare them with their factuals."""
    training, fitted = fitted_once(generator, seed)
    n = 80
    request = request_for(fitted, training, n, seed)
    factuals = factuals_for(fitted, training, n)
    for by_factual in (False, True):
        rule = rule_of_rooms(fitted, by_factual=by_factual)
        drawn = fitted.draw(replace(request, rules=(rule,), factuals=factuals))
        holds = rule.holds(drawn.rows, factuals)
        require(holds[~drawn.dead].all(), f"{rule}: {(~holds & ~drawn.dead).sum()} living rows break the rule.")
        require(drawn.dead.mean() < 0.6, f"{rule}: {drawn.dead.mean():.0%} of the rows are dead, though many obey it.")
        _require_account(drawn, str(rule))
    weighted = fitted.draw(replace(request, rules=(rule_of_rooms(fitted, by_factual=False),), weighted=True))
    if weighted.log_weight is not None:
        alive = weighted.log_weight[~weighted.dead]
        require(np.isfinite(alive).all() and (alive < 1e-9).all(), "a living row has no weight, or one above 1.")
        require(np.isneginf(weighted.log_weight[weighted.dead]).all(), "a dead row has weight.")


@check
def check_densities(generator: Generator, seed: int) -> None:
    """Require that probabilities of all rows of a small table sum to 1, and are about those of the draws.

    A density may be smoother than the draws (that of trees is): shares may differ a little.
    """
    _, fitted = fitted_once(generator, seed, "small")
    rows = np.array(list(itertools.product(range(2), range(2), range(3))), dtype=float)
    for wanted in (True, False):
        try:
            by_feature = fitted.feature_log_densities(rows, wanted)
        except SamplerError:  # a refusal
            return
        require([*by_feature] == ["home", "size"], f"densities are of {[*by_feature]}, not of the mutable features.")
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
    require(not counts[shares * n < 1e-3].any(), "rows are drawn that have no probability.")
    distance = float(np.abs(counts / n - shares).sum() / 2.0)
    found = np.round(counts / n, 3).tolist()
    told = f"draws have the shares {found}, the densities say {np.round(shares, 3).tolist()}"
    require(distance < MOST_APART, f"{told}: a total variation distance of {distance:.2g}.")
