"""A table as a chain sees it: what is fixed, the order of the rest, and what each feature is modelled on."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from mcce.arrays import Floats
from mcce.exceptions import InputError
from mcce.generators.layout import ChainLayout, check_training_decision
from mcce.generators.predictors import Predictors, choose_predictors
from mcce.generators.visit import VisitSequence, make_visit_sequence
from mcce.table import Data, Kind, Schema, Table
from mcce.table.checks import check_fixed, check_magnitudes


@dataclass(frozen=True)
class Arranged:
    """Training rows in the order of a chain.

    Attributes
    ----------
    table, ordered : the encoded rows, columns in data order, and in chain order with the decision.
    visit_sequence : the mutable features in visiting order.
    associations : behind a correlation order, or None.
    given_columns : the chain columns of features with predictors of their own.
    """

    schema: Schema
    table: Table
    ordered: Table
    layout: ChainLayout
    visit_sequence: list[Any]
    associations: pd.DataFrame | None
    given_columns: Mapping[int, Sequence[int]]


def arrange(
    X: Data,
    decision: Any,
    *,
    fixed: Sequence[Hashable],
    visit_sequence: VisitSequence,
    predictors: Predictors | None,
    kinds: Mapping[Any, Kind] | None,
    schema: Schema | None = None,
    weights: Floats | None = None,
    progress: bool | None = None,
) -> Arranged:
    """Read a table, check what is said of it, and order its columns; see `ChainModel` for the parts."""
    schema = Schema.from_data(X, kinds) if schema is None else schema
    table = schema.encode(X)
    if weights is not None:
        table = replace(table, weights=weights)
    check_magnitudes(table, "X")
    given = check_fixed(fixed, schema.names)
    visited, associations = make_visit_sequence(visit_sequence, table, given, progress)
    if not visited:
        raise InputError(f"all {len(given)} columns of X are fixed; leave at least one mutable.")
    check_training_decision(decision, table.n_rows)
    layout = ChainLayout.arrange(schema, given, visited, decision is not None)
    ordered = layout.order(table.matrix, True if decision is None else np.asarray(decision))
    if weights is not None:
        ordered = replace(ordered, weights=weights)
    names = [feature.name for feature in layout.features]
    given_columns = choose_predictors(predictors, names, layout.n_given, with_decision=decision is not None)
    return Arranged(schema, table, ordered, layout, visited, associations, given_columns)
