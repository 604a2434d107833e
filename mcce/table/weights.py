"""Weights of training rows.

A weight counts copies; rows of weight 0 are left out. Whole numbers are used as they are: a fit equals that on repeated
rows. Other weights are relative, and scaled to a mean of 1 over the rows with positive weight.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce import exceptions
from mcce.base.arrays import Floats, Ints
from mcce.exceptions import InputError
from mcce.rng import derive_key
from mcce.table.checks import rows_of
from mcce.table.schema import Data, Table

MOST_ROWS = 2**31 - 1  # largest number of repeated rows that a tree can index
WIDEST = 1e9  # largest ratio of two weights: beyond it, sums lose the small ones
DIGITS = 28  # binary digits of a relative weight, so that rounding errors of scaled weights do not matter
FINE = 20  # largest mean number of copies of a row
TINY = float(np.finfo(np.float64).tiny)
MANY_COPIES = 100.0  # mean above which whole weights are probably not counts


def read_weights(sample_weight: object, n_rows: int, *, warn: bool = True) -> Floats:
    """Return the scaled weights of all rows, zeros included; with `warn`, warn if they do not look like counts."""
    given = _numbers(sample_weight)
    if given.shape != (n_rows,):
        found = f"{given.size} weights" if given.ndim == 1 else f"an array of shape {given.shape}"
        raise InputError(f"sample_weight has {found}, and X has {n_rows} rows; give one weight for each row.")
    for what, wrong in (("missing", np.isnan(given)), ("infinite", np.isinf(given)), ("negative", given < 0)):
        if wrong.any():
            first = int(np.argmax(wrong))
            raise InputError(
                f"sample_weight has {int(wrong.sum())} {what} weight(s), the first, {given[first]}, in row {first}; "
                "weights are numbers of at least 0, and 0 leaves a row out."
            )
    counted = given > 0
    if not counted.any():
        raise InputError(f"sample_weight is zero for all {n_rows} rows, which leaves no rows; leave it out.")
    low, high = float(given[counted].min()), float(given.max())
    if high > WIDEST * low:
        raise InputError(
            f"sample_weight has weights from {low:.3g} to {high:.3g}; compared with the largest, those below "
            f"{high / WIDEST:.3g} are lost in rounding. Set them to 0, or cap the large ones."
        )
    if not (given == np.floor(given)).all():
        mantissa, exponent = np.frexp(given / given[counted].mean())
        return np.asarray(np.ldexp(np.round(mantissa * 2.0**DIGITS) / 2.0**DIGITS, exponent), dtype=np.float64)
    total = float(given.sum())
    if total > MOST_ROWS:
        raise InputError(
            f"sample_weight sums to {total:.4g}; whole numbers count copies of rows, and there can be {MOST_ROWS:,} at "
            "most. If they are not counts, scale them: sample_weight / sample_weight.mean()."
        )
    if warn and total > MANY_COPIES * counted.sum() and counted.sum() > 1:
        exceptions.warn(
            f"sample_weight is {total / counted.sum():,.0f} on average; whole numbers count copies of rows, so "
            "bounds such as min_leaf are soon reached. If they are not counts, scale them: sample_weight / "
            "sample_weight.mean()."
        )
    return given


def _numbers(sample_weight: object) -> Floats:
    """Return given weights as an array of floats."""
    values: Any = sample_weight.to_numpy() if isinstance(sample_weight, pd.Series) else sample_weight
    try:
        numbers = np.asarray(values)
        if numbers.dtype.kind not in "biuf":
            if any(isinstance(each, (str, bytes)) for each in numbers.ravel()):
                raise TypeError("it holds text")
            numbers = np.array([np.nan if each is pd.NA or each is None else each for each in numbers.ravel()])
            if numbers.dtype.kind not in "biuf":
                raise TypeError(f"its dtype is {numbers.dtype}")
        return numbers.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"sample_weight is not an array of numbers ({error}); give one weight for each row.") from None


def rows_with_weight(X: Data, frame: pd.DataFrame, sample_weight: object) -> tuple[Data, pd.DataFrame, Floats | None]:
    """Return a table and its frame without rows of weight 0, and the given weights of the other rows."""
    if sample_weight is None:
        return X, frame, None
    kept = np.flatnonzero(read_weights(sample_weight, len(frame), warn=False))
    weights = _numbers(sample_weight)[kept]
    return (X, frame, weights) if kept.size == len(frame) else (rows_of(X, kept), frame.iloc[kept], weights)


def count_distinct(values: Floats, weights: Floats | None) -> tuple[Floats, npt.NDArray[Any]]:
    """Return the distinct values in order, each with the sum of its weights."""
    if weights is None:
        distinct, times = np.unique(values, return_counts=True)
        return distinct, times
    distinct, place = np.unique(values, return_inverse=True)
    return distinct, np.bincount(place.ravel(), weights, minlength=distinct.size)


def sorted_with_weights(values: Floats, weights: Floats | None) -> tuple[Floats, Floats | None]:
    """Return values in order, missing ones last, each with its weight."""
    if weights is None:
        return np.sort(values), None
    order = np.argsort(values, kind="stable")
    return values[order], weights[order]


def quantiles(values: Floats, shares: Any, weights: Floats | None) -> Floats:
    """Return quantiles, of each column if there are several; with weights, those of the repeated values.

    They are interpolated linearly, as numpy does by default.
    """
    if weights is None and values.ndim == 1:
        return np.asarray(np.quantile(values, shares))
    if weights is not None and values.ndim > 1:
        return np.stack([quantiles(column, shares, weights) for column in values.T], axis=-1)
    if weights is None:  # sorting many columns is several times faster than their quantiles by numpy
        ordered, upto = np.sort(np.ascontiguousarray(values.T)).T, np.arange(1.0, len(values) + 1.0)
    else:
        ordered, of_ordered = sorted_with_weights(values, weights)
        assert of_ordered is not None
        upto = np.cumsum(of_ordered)
    at = np.asarray(shares, dtype=np.float64) * max(upto[-1] - 1.0, 0.0)
    lower = np.floor(at)
    low, high = (ordered[place_of_copy(upto, position)] for position in (lower, lower + 1.0))
    part = np.reshape(at - lower, at.shape + (1,) * (values.ndim - 1))
    return np.asarray(np.where(part < 0.5, low + (high - low) * part, high - (high - low) * (1.0 - part)))


def place_of_copy(upto: Floats, position: Floats) -> Ints:
    """Return the value to which the copy at each position belongs; `upto` is the cumulative sum of the weights."""
    return np.minimum(np.searchsorted(upto, position, side="right"), upto.size - 1)


def whole_counts(weights: Floats, most: float) -> Ints | None:
    """Return weights as numbers of copies; None if they are not whole numbers, or their sum exceeds `most`."""
    whole = bool((weights == np.floor(weights)).all()) and float(weights.sum()) <= most
    return weights.astype(np.int64) if whole else None


def copies_at(weights: Floats, positions: Ints, n_copies: int) -> Ints:
    """Return the rows of copies by their positions among `n_copies` copies, numbered row by row."""
    upto = np.cumsum(weights)
    return place_of_copy(upto, (positions + 0.5) * (upto[-1] / n_copies))


def count_copies(weights: Floats | None, n_rows: int) -> int:
    """Return the number of rows including copies; weights that are not counts are ignored."""
    if weights is None:
        return n_rows
    counts = whole_counts(weights, FINE * n_rows)
    return n_rows if counts is None else int(counts.sum())


def as_copies(table: Table) -> Table:
    """Return a table with rows repeated by their weights, without weights; unchanged if they are not counts."""
    counts = None if table.weights is None else whole_counts(table.weights, FINE * table.n_rows)
    return table if counts is None else replace(table.take(np.repeat(np.arange(table.n_rows), counts)), weights=None)


def rows_by_weight(weights: Floats, seed: int) -> Ints:
    """Return rows with equal weights that represent weighted rows, for tests.

    Counts repeat their rows. With other weights, or counts above 20 on average, each row is kept independently with
    probability w_i / max w, by the seed. The kept rows are an independent sample of the weighted population, so tests
    keep their level, which repeated rows would not.
    """
    counts = whole_counts(weights, FINE * weights.size)
    if counts is not None:
        return np.repeat(np.arange(weights.size), counts)
    chance = np.random.default_rng(derive_key(seed, "rows by weight")).random(weights.size)
    return np.flatnonzero(chance < weights / weights.max())


def equal_chances(values: Floats, weights: Floats | None) -> Floats:
    """Return sorted values with equal weights that represent weighted values.

    Counts repeat their values. Other weights, or too large counts, give evenly spaced quantiles, `FINE` for each value.
    """
    if weights is None or values.size == 0:
        return np.sort(values)
    ordered, of_ordered = sorted_with_weights(values, weights)
    assert of_ordered is not None
    counts = whole_counts(weights, FINE * values.size)
    n = FINE * values.size if counts is None else int(counts.sum())
    return ordered[copies_at(of_ordered, np.arange(n), n)]


def mean_of(values: Floats, weights: Floats | None) -> Any:
    return values.mean(axis=0) if weights is None else weights @ values / weights.sum()


def deviation_of(values: Floats, weights: Floats | None, ddof: int = 0) -> Any:
    if weights is None:
        return values.std(axis=0, ddof=ddof)
    centred = values - mean_of(values, weights)
    return np.sqrt(weights @ centred**2 / max(weights.sum() - ddof, TINY))
