"""The parts of `Generator.sample`: the user's restrictions, fixed values to draw given, and importance.

1. The user's bounds or levels become a `Within` for every row. Fixed values are the user's, or those of a bootstrap of
   the training rows.
2. Rejected rows are left out, with a warning that counts them by constraint; it is an error if no row is left.
3. The importance of a row is exp(log weight), divided by its mean over the draws of the same row of `given` (over all
   draws without `given`), rejected ones included.
4. Resampling is systematic (Kitagawa 1996): with running sums W_i of the importance scaled to n, row i is taken as
   often as numbers u, u + 1, ..., u + n - 1 lie in (W_(i-1), W_i], for one uniform u. A row is taken n w_i times,
   rounded up or down.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
import pandas as pd

from mcce.base.arrays import Floats, Ints, UInts
from mcce.constraints import Rule, rule
from mcce.constraints.rules import resolve_rule
from mcce.exceptions import InputError, did_you_mean, listing, spell, warn
from mcce.generators.layout import check_training_decision
from mcce.generators.requests import Drawn, DrawRequest, RowRule
from mcce.rng import RowStreams, derive_key
from mcce.samplers import Within
from mcce.samplers.donors.base import draw_rows
from mcce.table import Data, Feature, Schema, Table, as_frame
from mcce.table.checks import check_magnitudes, check_missing, rows_of
from mcce.table.frames import is_other_frame, read_frame
from mcce.table.weights import read_weights

Rules = str | Rule | Sequence[str | Rule | RowRule]
Allowed = Within | tuple[Any, Any] | Sequence[Any]
Weighted = tuple[pd.DataFrame, "pd.Series[float]"]
MOST_ROWS = 10**9  # drawn at once


class SampleOptions(TypedDict, total=False):
    """The options of `ChainModel.sample` other than `importance`."""

    decision: bool | None
    random_state: int | None
    progress: bool | None
    within: Mapping[Any, Allowed] | None
    rules: Rules
    resample: bool


def read_restrictions(
    within: Mapping[Any, Allowed] | None, schema: Schema, fixed: Sequence[Hashable], n_ids: int, n_draws: int
) -> dict[Hashable, Within]:
    """Return the restriction of each draw by feature, for `n_draws` draws of each of `n_ids` rows (step 1)."""
    if within is None:
        return {}
    if not isinstance(within, Mapping):
        raise InputError(f'within is {within!r}; give a dict, for example {{"salary": (0, 500)}}.')
    mutable = [name for name in schema.names if name not in fixed]
    found: dict[Hashable, Within] = {}
    for name, allowed in within.items():
        if name not in mutable:
            what = "is fixed: restrict the rows of given instead" if name in fixed else "is not a column of X"
            raise InputError(f"within names {name!r}, which {what}; {did_you_mean(name, mutable)}")
        feature = schema.features[schema.position(name)]
        if isinstance(allowed, Within):
            found[name] = _repeat(allowed, f"within[{name!r}]", n_ids, n_draws)
        else:
            found[name] = _read(allowed, feature, n_ids * n_draws)
    return found


def _repeat(allowed: Within, where: str, n_ids: int, n_draws: int) -> Within:
    """Return the restriction of all draws, from one row for each id or one for all."""
    rows = {1: np.zeros(n_ids * n_draws, dtype=np.int64), n_ids: np.repeat(np.arange(n_ids), n_draws)}
    parts = (allowed.low, allowed.high, allowed.levels, allowed.missing)
    wrong = [len(part) for part in parts if part is not None and len(part) not in rows]
    if wrong:
        raise InputError(f"{where} has {wrong[0]} rows; give {n_ids}, one for each row of given, or one for all.")
    return allowed.each(lambda part: part[rows[len(part)]])


def _read(allowed: Any, feature: Feature, n_rows: int) -> Within:
    where = f"within[{feature.name!r}]"
    if isinstance(allowed, tuple) and len(allowed) == 2 and feature.kind != "categorical":
        ends = [None if end is None else _encode(end, feature, where) for end in allowed]
        low, high = (None if end is None else np.full(n_rows, end) for end in ends)
        if ends[0] is not None and ends[1] is not None and ends[0] > ends[1]:
            raise InputError(f"{where} is {allowed!r}, an empty range; give (low, high) with low <= high.")
        return Within(low=low, high=high)
    if isinstance(allowed, (list, set, frozenset)) and not feature.is_numeric and allowed:
        levels = np.zeros(feature.n_levels, dtype=bool)
        levels[[int(_encode(level, feature, where)) for level in allowed]] = True
        return Within(levels=np.tile(levels, (n_rows, 1)))
    wanted = "a list of levels" if not feature.is_numeric else "a tuple (low, high), None for no bound"
    raise InputError(f"{where} is {spell(allowed)}; {feature.name!r} is {feature.kind}, so give {wanted}, or a Within.")


def _encode(value: Any, feature: Feature, where: str) -> float:
    """Return an encoded bound or level; a number need not be a value of the column, and may be infinite."""
    if feature.is_numeric and isinstance(value, (int, float, np.number)) and not isinstance(value, bool):
        if np.isnan(value):
            raise InputError(f"a bound of {where} is missing; give a number, or None for no bound.")
        return float(value)
    return float(feature.encode(pd.Series([value], dtype=None if feature.is_numeric else object), where)[0])


def read_rules(rules: Rules, schema: Schema) -> tuple[RowRule, ...]:
    """Return the user's rules for the columns of a table (step 1)."""
    found: list[RowRule] = []
    for each in [rules] if isinstance(rules, (str, Rule)) else rules:
        given = rule(each) if isinstance(each, str) else each
        if isinstance(given, Rule):
            resolved = resolve_rule(given, schema)
            if given.says is not None and resolved.reads_factual:
                raise InputError(
                    f"the rule {str(given)!r} reads the factual by was(), and sample draws rows without a factual; "
                    "leave it out, or draw with MCCE.generate(X, constraints=...)."
                )
            found.append(resolved)
        elif all(hasattr(given, name) for name in ("columns", "holds", "within_for")):
            found.append(given)
        else:
            raise InputError(f"rules has {spell(given)}; give texts or mcce.rule(...), as in rules=['rent <= salary'].")
    return tuple(found)


def weighted_rows(X: Data, decision: Any, sample_weight: object) -> tuple[Data, Any, Floats | None]:
    """Return the training rows with positive weights, their decisions and their weights; None without weights."""
    if sample_weight is None:
        return X, decision, None
    n_rows = len(as_frame(X)[0])
    weights = read_weights(sample_weight, n_rows)
    check_training_decision(decision, n_rows)
    kept = np.flatnonzero(weights)
    if kept.size == n_rows:
        return X, decision, weights
    return rows_of(X, kept), None if decision is None else np.asarray(decision)[kept], weights[kept]


def encode_given(given: Data, schema: Schema, fixed: list[Any]) -> tuple[Floats, pd.Index[Any]]:
    """Encode the fixed features that a user gives; return them with the index of the rows."""
    if is_other_frame(given):
        given = read_frame(given, "given")
    if not isinstance(given, pd.DataFrame):
        raise InputError(
            f"given is a {type(given).__name__}; give a DataFrame with the fixed features {listing(fixed)}."
        )
    extra = [name for name in given.columns if name not in fixed]
    if extra:
        raise InputError(f"given has the column(s) {listing(extra)}, which are not fixed; leave them out.")
    if isinstance(given.index, pd.MultiIndex):
        raise InputError("the index of given has several levels; it names the rows. Use given.reset_index(drop=True).")
    table = schema.subset(fixed).encode(given, "given") if fixed else Table((), np.empty((len(given), 0)))
    check_magnitudes(table, "given")
    check_missing(table, given.index, "given")
    return table.matrix, given.index


def bootstrap_givens(givens: Floats, n: int, decision: bool | None, seed: int, weights: Floats | None = None) -> Floats:
    """Draw the givens of n rows from those of the training rows; `decision` keeps the rows that have it."""
    if decision is not None:
        has_it = givens[:, -1] == float(decision)
        givens, weights = givens[has_it], None if weights is None else weights[has_it]
        if not len(givens):
            raise InputError(
                f"no training row has the decision {decision}; there is nothing to draw the fixed features from."
            )
    streams = RowStreams(derive_key(seed, "bootstrap"), np.zeros(n, dtype=np.uint64), np.arange(n, dtype=np.uint64))
    drawn = draw_rows(np.arange(len(givens)), streams, weights)
    return np.asarray(givens[drawn])


def draw_index(ids: pd.Index[Any], n: int) -> pd.MultiIndex:
    """Return the index (id, draw) of `n` draws for each id."""
    codes, distinct = pd.factorize(ids)
    levels: Any = [distinct, pd.RangeIndex(n)]
    pairs: Any = [np.repeat(codes, n), np.tile(np.arange(n), len(ids))]
    return pd.MultiIndex(levels=levels, codes=pairs, names=["id", "draw"])


def occurrences(keys: UInts) -> UInts:
    """Return the number of earlier rows with the same key, so that equal rows get different draws."""
    return np.asarray(pd.Series(keys).groupby(keys, sort=False).cumcount(), dtype=np.uint64)


def choose_rows(drawn: Drawn, request: DrawRequest, group: Ints, *, resample: bool) -> tuple[Ints, Ints, Floats]:
    """Return the rows to return to the user, their places in the index, and the weights (steps 2 to 4).

    `group` is the row number in `given` of each draw; draws of a row are adjacent.
    """
    kept = np.flatnonzero(~drawn.rejected)
    if drawn.log_weight is None or not resample:
        _warn_of_rejected(drawn, kept)
        weights = np.ones(group.size) if drawn.log_weight is None else relative_weights(drawn.log_weight, group)
        return kept, kept, weights[kept]
    begins = np.flatnonzero(np.diff(group, prepend=-1))
    key = derive_key(request.seed, "resample")
    streams = RowStreams(key, request.stream_keys[begins], request.draw_indices[begins])
    rows, places = systematic(relative_weights(drawn.log_weight, group), group, streams.uniform())
    _warn_of_rejected(drawn, places)
    return rows, places, np.ones(rows.size)


def _warn_of_rejected(drawn: Drawn, kept: Ints) -> None:
    """Warn of the number of rejected rows by constraint; raise if no row is left (step 2)."""
    n_rows = drawn.rejected.size
    if kept.size == n_rows:
        return
    acceptance = drawn.acceptance()
    rejected = acceptance["tried"] - acceptance["passed"]
    reasons = ", ".join(f"{count} rejected by {str(name)!r}" for name, count in rejected.items() if count)
    if not kept.size:
        raise InputError(
            f"none of {n_rows} rows could be drawn within the restrictions and rules ({reasons}); relax them."
        )
    warn(
        f"{n_rows - kept.size} of {n_rows} rows could not be drawn within the restrictions and rules, and are left out "
        f"({reasons})."
    )


def relative_weights(log_weight: Floats, group: Ints) -> Floats:
    """Return the weights divided by the mean of their group; 0 in a group with total weight 0 (step 3)."""
    largest = pd.Series(log_weight).groupby(group).transform("max").to_numpy()
    weights = np.exp(log_weight - np.where(np.isneginf(largest), 0.0, largest))
    mean = pd.Series(weights).groupby(group).transform("mean").to_numpy()
    return np.asarray(np.divide(weights, mean, out=np.zeros(weights.size), where=mean > 0.0))


def systematic(weights: Floats, group: Ints, uniform: Floats) -> tuple[Ints, Ints]:
    """Return the rows to take, as many for each group as it has, and their places among all rows (step 4).

    A group with total weight 0 gets no rows.
    """
    taken, places = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    begins = np.searchsorted(group, np.arange(uniform.size + 1))
    for u, begin, end in zip(uniform, begins[:-1], begins[1:]):
        total = np.cumsum(weights[begin:end])
        if total[-1] > 0.0:
            marks = (u + np.arange(end - begin)) * (total[-1] / (end - begin))
            last = np.flatnonzero(weights[begin:end])[-1]  # rounding may exceed it
            taken.append(begin + np.minimum(np.searchsorted(total, marks, side="right"), last))
            places.append(np.arange(begin, end))
    return np.concatenate(taken), np.concatenate(places)
