"""Two tables encoded together, for a comparison of real and generated rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mcce._utils import Floats
from mcce.exceptions import InputError, did_you_mean, listing, spell
from mcce.rng import hash_rows
from mcce.table import Data, Feature, Kind, Schema, Table, as_frame


@dataclass(frozen=True)
class TablePair:
    """Real and generated rows with the same columns; the levels of both tables are numbered together."""

    real: Table
    generated: Table

    @property
    def features(self) -> tuple[Feature, ...]:
        """The columns, in the order of the real table."""
        return tuple(self.real.features)

    @property
    def names(self) -> list[Any]:
        """The names of the columns."""
        return [feature.name for feature in self.features]

    def columns(self) -> list[tuple[Feature, Floats, Floats]]:
        """Return each column with its real and its generated values."""
        return list(zip(self.features, self.real.matrix.T, self.generated.matrix.T))


def read_pair(
    real: Data,
    generated: Data,
    kinds: Mapping[Any, Kind] | None = None,
    least: int = 1,
    names: tuple[str, str] = ("real", "generated"),
) -> TablePair:
    """Encode two tables with the same columns, in any order, each of at least `least` rows."""
    frames = [as_frame(data, name) for data, name in zip((real, generated), names)]
    left, right = frames
    for frame, name, other, other_name in ((left, names[0], right, names[1]), (right, names[1], left, names[0])):
        absent = [column for column in other.columns if column not in frame.columns]
        if absent:
            raise InputError(
                f"{name} lacks the column(s) {listing(absent)} of {other_name}; compare tables with the same columns."
            )
        if len(frame) < least:
            raise InputError(f"{name} has {len(frame)} row(s); the comparison needs at least {least} of each table.")
    both = pd.DataFrame({j: _stack(left[name], right[name]) for j, name in enumerate(left.columns)})
    both.columns = left.columns
    schema, alone = Schema.from_data(both, kinds, " and ".join(names)), Schema.from_data(left, kinds, names[0])
    for feature, left_feature in zip(schema.features, alone.features):
        if left_feature.is_numeric and not feature.is_numeric:
            raise InputError(
                f"column {spell(feature.name)} holds numbers or dates in {names[0]}, and something else in {names[1]} "
                f"({right[feature.name].dtype}); convert it."
            )
    table = schema.encode(both)
    return TablePair(table.take(np.arange(len(left))), table.take(np.arange(len(left), len(both))))


def _stack(real: pd.Series[Any], generated: pd.Series[Any]) -> pd.Series[Any]:
    """Return one column with the values of both; categories that only `generated` has follow the others."""
    if isinstance(real.dtype, pd.CategoricalDtype):
        further = [level for level in pd.unique(generated.dropna()) if level not in real.cat.categories]
        dtype = pd.CategoricalDtype([*real.cat.categories, *further], real.cat.ordered)
        return pd.concat([real.astype(dtype), generated.astype(dtype)], ignore_index=True)
    if isinstance(generated.dtype, pd.CategoricalDtype):
        generated = generated.astype(object)
    return pd.concat([real, generated], ignore_index=True)


def find_copied(pair: TablePair, fixed: Sequence[Hashable]) -> list[int]:
    """Return the positions of the columns that `generated` copies from `real`; raise if it does not."""
    for name in fixed:
        if name not in pair.names:
            raise InputError(f"fixed names {spell(name)}, which is not a column; {did_you_mean(name, pair.names)}")
    places = [pair.names.index(name) for name in fixed]
    shares = [
        pd.Series(hash_rows(table.matrix[:, places])).value_counts(normalize=True)
        for table in (pair.real, pair.generated)
    ]
    differ = shares[0].sub(shares[1], fill_value=0.0).abs() > 1e-9
    if differ.any():
        raise InputError(
            f"fixed names {listing(fixed)}, but generated does not copy them from real: {differ.sum()} of "
            f"{differ.size} distinct rows of these columns are not as frequent in both. Give fixed=() if they were "
            "drawn, or compare with the real rows that generated was drawn for."
        )
    return places
