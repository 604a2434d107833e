"""Encoding of two tables for a comparison: real and generated rows, or counterfactuals and training rows.

The schema is that of the real table, widened to hold further values of the other table (fractions, levels, missing
values) without changing ranges. Columns declared as copied (`fixed`) are checked.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Floats
from mcce.constraints import allow
from mcce.exceptions import InputError, listing
from mcce.explain.protocol import Explainer
from mcce.generators.base import Generator
from mcce.generators.requests import DrawRequest
from mcce.generators.sampling import occurrences
from mcce.rng import derive_key, hash_rows
from mcce.table import Data, Feature, Kind, Schema, as_frame
from mcce.table.checks import check_fixed
from mcce.table.dtypes import holds_missing, is_dated


@dataclass(frozen=True)
class TablePair:
    """Real and generated rows as matrices with the same columns."""

    features: tuple[Feature, ...]
    real: Floats
    generated: Floats

    @property
    def names(self) -> list[Any]:
        return [f.name for f in self.features]


def read_pair(real: Data, generated: Data, kinds: Mapping[Any, Kind] | None = None, fewest: int = 1) -> TablePair:
    """Encode two tables with the same columns, in any order, each of at least `fewest` rows."""
    left, _ = as_frame(real, "real")
    right, _ = as_frame(generated, "generated")
    for frame, name, other, other_name in ((left, "real", right, "generated"), (right, "generated", left, "real")):
        absent = [column for column in other.columns if column not in frame.columns]
        if absent:
            raise InputError(
                f"{name} lacks the column(s) {listing(absent)} of {other_name}; compare tables with the same columns."
            )
        if len(frame) < fewest:
            raise InputError(f"{name} has {len(frame)} row(s); the comparison needs at least {fewest} of each.")
    if not len(left.columns):
        raise InputError("real and generated have no columns; give the features to compare.")
    schema = Schema.from_data(left, kinds, "real")
    schema = Schema([widen(f, right[f.name]) for f in schema.features])
    both = (schema.encode(frame, name).matrix for frame, name in ((left, "real"), (right, "generated")))
    return TablePair(schema.features, *both)


def find_copied(pair: TablePair, fixed: Sequence[Hashable]) -> list[int]:
    """Return the positions of the fixed columns; raise if they are not copied."""
    places = [pair.names.index(name) for name in check_fixed(fixed, pair.names)]
    both = np.concatenate([pair.generated[:, places], pair.real[:, places]])
    group = np.asarray(np.unique(hash_rows(both), return_inverse=True)[1], dtype=np.int64)
    n_generated, n_real = pair.generated.shape[0], pair.real.shape[0]
    counts = [np.bincount(part, minlength=group.max() + 1) for part in (group[:n_generated], group[n_generated:])]
    differ = int((counts[0] * n_real != counts[1] * n_generated).sum())
    if differ:
        raise InputError(
            f"fixed names {listing(fixed)}, but generated does not copy them from real: {differ} of "
            f"{group.max() + 1} distinct rows of these columns are not as frequent in both. Give fixed=() if they were "
            "drawn, or compare with the real rows that generated was drawn for."
        )
    return places


def widen(feature: Feature, column: pd.Series[Any]) -> Feature:
    """Return a feature that can hold the values of a column; its range and level codes are unchanged."""
    missing = bool(column.isna().any())
    if feature.levels is not None:
        known = set(feature.levels)
        further = [level for level in column.dropna().unique() if level not in known]
        if not further and (not missing or holds_missing(feature.dtype)):
            return feature
        levels: pd.Index[Any] = pd.Index([*feature.levels, *further], dtype=object)
        dtype: Any = pd.CategoricalDtype(levels) if isinstance(feature.dtype, pd.CategoricalDtype) else np.dtype(object)
        return replace(feature, levels=levels, dtype=dtype, missing=None)
    lossless = is_dated(feature.dtype) or (
        _holds_exactly(feature, column) and (not missing or holds_missing(feature.dtype))
    )
    return feature if lossless else replace(feature, dtype=np.dtype(np.float64))


def _holds_exactly(feature: Feature, column: pd.Series[Any]) -> bool:
    try:
        feature.encode(column, "X")
    except InputError:
        return False
    return True


def encode_widely(schema: Schema, X: Data, where: str) -> tuple[Schema, Floats]:
    """Encode a table with values beyond the training data; return the widened schema and the matrix."""
    frame, _ = as_frame(X, where)
    absent = [name for name in schema.names if name not in frame.columns]
    if absent:
        raise InputError(
            f"{where} lacks the column(s) {listing(absent)} of the training data; it has {listing(frame.columns)}."
        )
    features = [widen(feature, frame[feature.name]) for feature in schema.features]
    for known, wider in zip(schema.features, features):
        if known.levels is not None and known.kind == "ordered" and wider.n_levels > known.n_levels:
            assert wider.levels is not None
            raise InputError(
                f"column {known.name!r} of {where} holds the level {wider.levels[-1]!r}, which is not in the "
                f"order of the training levels ({listing(known.levels)}); map it to one of them, or drop the row."
            )
    array_dtype = schema.array_dtype
    if array_dtype is not None and any(a.dtype != b.dtype for a, b in zip(schema.features, features)):
        array_dtype = np.result_type(array_dtype, *(np.asarray([], dtype=f.dtype) for f in features))
    wide = Schema(features, array_dtype, schema.frames)
    return wide, wide.encode(frame[schema.names], where).matrix


def spread(n: int, most: int) -> npt.NDArray[np.intp]:
    """Return up to `most` positions spread evenly over `n` rows."""
    return np.unique(np.linspace(0, max(n - 1, 0), min(most, n)).astype(np.intp))


BLOCK_CELLS = 4_000_000  # cells of candidates in memory at a time


def draw_like(generator: Generator, matrix: Floats, wanted: npt.NDArray[np.bool_], seed: int) -> Floats:
    """Draw a row for each encoded row, given its fixed values and its decision."""
    givens = generator.givens_of(matrix, wanted)
    keys = hash_rows(givens)
    request = DrawRequest(givens, keys, occurrences(keys), derive_key(seed, "diagnose"))
    return generator.draw(request, progress=False).rows


def candidate_table(explainer: Explainer, factuals: pd.DataFrame, n_samples: int) -> pd.DataFrame:
    """Return the numbers of candidates of each factual.

    Parameters
    ----------
    explainer : fitted MCCE
    factuals : DataFrame
        Rows with the training columns and a unique index.
    n_samples : int
        K, the number of rows drawn for each factual.

    Returns
    -------
    DataFrame
        Indexed as `factuals`: `candidates` (K; fewer with constraints), `distinct`, `valid` and
        `distinct_valid`, counts; and `validity`, the share of the candidates with the wanted decision.
    """
    schema = explainer.generator_.schema_
    at_once = max(1, BLOCK_CELLS // (n_samples * len(schema)))
    counts = []
    for begin in range(0, len(factuals), at_once):
        some = factuals.iloc[begin : begin + at_once]
        drawn = explainer.generate(some, n_samples=n_samples, constraints=[allow("*", missing=True)], progress=False)
        matrix = schema.encode(drawn, "candidates").matrix
        _, first, place = np.unique(hash_rows(matrix), return_index=True, return_inverse=True)
        wanted = explainer.decision_.evaluate(schema.decode_for_model(matrix[first]), "the candidates").wanted
        sizes = drawn.index.get_level_values(0).value_counts(sort=False).reindex(some.index, fill_value=0)
        for rows in np.split(place, np.cumsum(sizes.to_numpy())[:-1]):  # constraints may leave fewer than K
            distinct = np.unique(rows)
            counts.append((rows.size, distinct.size, int(wanted[rows].sum()), int(wanted[distinct].sum())))
    names = ["candidates", "distinct", "valid", "distinct_valid"]
    table = pd.DataFrame(counts, index=factuals.index, columns=names)
    return table.assign(validity=table["valid"] / table["candidates"].clip(lower=1))
