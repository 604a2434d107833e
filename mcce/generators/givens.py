"""Fixed values that rows are drawn given: those of the user, or of a bootstrap of the training rows; their request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from mcce.base.arrays import Floats, Ints, UInts
from mcce.exceptions import InputError, listing
from mcce.generators.base import DrawRequest
from mcce.generators.layout import ChainLayout, check_training_decision
from mcce.rng import RowStreams, derive_key, hash_rows
from mcce.samplers import ConditionalSampler
from mcce.samplers.base import samplers_that_handle_missing
from mcce.samplers.donors.base import draw_rows
from mcce.table import Data, Schema, Table, as_frame
from mcce.table.checks import check_magnitudes, check_missing, rows_of
from mcce.table.frames import is_other_frame, read_frame
from mcce.table.weights import read_weights


def request_of(
    n: int,
    given: Data | None,
    decision: bool | None,
    seed: int,
    training: tuple[Floats, Floats | None],
    schema: Schema,
    layout: ChainLayout,
    samplers: Iterable[ConditionalSampler],
) -> tuple[DrawRequest, pd.Index[Any], Ints]:
    """Return what `n` draws for each row of `given` depend on, or `n` draws in all; also their index and their rows.

    `training` are the givens of the training rows, and their weights.
    """
    if decision is not None and not (layout.with_decision and isinstance(decision, (bool, np.bool_))):
        raise InputError(
            f"decision is {decision!r}; it must be True, False or None."
            if layout.with_decision
            else "this chain was fitted without a decision; there is none to condition on."
        )
    if given is None:
        if not len(training[0]):
            raise InputError(
                "this chain was saved with donors='none', without the training rows that fixed values are drawn from; "
                "say what is fixed by `given`."
            )
        givens, keys, index = bootstrap_givens(training[0], int(n), decision, seed, training[1])
        return DrawRequest(givens, keys, np.arange(n, dtype=np.uint64), seed), index, np.zeros(n, dtype=np.int64)
    givens, ids = encode_givens(given, True if decision is None else decision, schema, layout, samplers)
    keys = hash_rows(givens)
    draws: UInts = np.asarray(
        occurrences(keys)[:, None] * np.uint64(n) + np.arange(n, dtype=np.uint64), dtype=np.uint64
    ).ravel()
    request = DrawRequest(np.repeat(givens, n, axis=0), np.repeat(keys, n), draws, seed)
    return request, draw_index(ids, n), np.repeat(np.arange(len(ids)), n)


def weighted_rows(X: Data, decision: Any, sample_weight: object) -> tuple[Data, Any, Floats | None]:
    """Return the training rows that have weight, their decisions and their weights; None if there are none."""
    if sample_weight is None:
        return X, decision, None
    n_rows = len(as_frame(X)[0])
    weights = read_weights(sample_weight, n_rows)
    check_training_decision(decision, n_rows)
    kept = np.flatnonzero(weights)
    if kept.size == n_rows:
        return X, decision, weights
    return rows_of(X, kept), None if decision is None else np.asarray(decision)[kept], weights[kept]


def encode_givens(
    given: Data, decision: bool, schema: Schema, layout: ChainLayout, samplers: Iterable[ConditionalSampler]
) -> tuple[Floats, pd.Index[Any]]:
    """Encode the fixed features that a user gives, and the decision; return them with the names of the rows."""
    fixed = [schema.names[j] for j in layout.fixed_positions]
    if is_other_frame(given):
        given = read_frame(given, "given")
    if not isinstance(given, pd.DataFrame):
        raise InputError(
            f"given is a {type(given).__name__}; give a DataFrame with the fixed features {listing(fixed)}."
        )
    extra = [name for name in given.columns if name not in fixed]
    if extra:
        raise InputError(
            f"given has the column(s) {listing(extra)}, which are not fixed in this chain; leave them out."
        )
    if isinstance(given.index, pd.MultiIndex):
        raise InputError("the index of given has several levels; it names the rows. Use given.reset_index(drop=True).")
    table = schema.subset(fixed).encode(given, "given") if fixed else Table((), np.empty((len(given), 0)))
    check_magnitudes(table, "given")
    check_missing(table, given.index, "given")
    incomplete = [name for j, name in enumerate(fixed) if np.isnan(table.matrix[:, j]).any()]
    refusing = [repr(s) for s in samplers if not s.handles_missing]
    if incomplete and refusing:
        raise InputError(
            f"given has missing values in {listing(incomplete)}, which {refusing[0]} does not handle; fill them, "
            f"or use a sampler that does ({samplers_that_handle_missing()})."
        )
    givens = np.empty((len(given), layout.n_given), order="F")
    givens[:, : len(fixed)] = table.matrix
    if layout.with_decision:
        givens[:, -1] = float(decision)
    return givens, given.index


def bootstrap_givens(
    givens: Floats, n: int, decision: bool | None, seed: int, weights: Floats | None = None
) -> tuple[Floats, UInts, pd.Index[Any]]:
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
    return givens[drawn], np.zeros(n, dtype=np.uint64), pd.RangeIndex(n)


def draw_index(ids: pd.Index[Any], n: int) -> pd.MultiIndex:
    """Return the index (id, draw) of `n` draws for each id."""
    codes, distinct = pd.factorize(ids)
    levels: Any = [distinct, pd.RangeIndex(n)]
    pairs: Any = [np.repeat(codes, n), np.tile(np.arange(n), len(ids))]
    return pd.MultiIndex(levels=levels, codes=pairs, names=["id", "draw"])


def occurrences(keys: UInts) -> UInts:
    """Return how many rows before each one have its key, so that equal rows get different draws."""
    return np.asarray(pd.Series(keys).groupby(keys, sort=False).cumcount(), dtype=np.uint64)
