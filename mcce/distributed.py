"""Explain a Dask DataFrame: the rows of `MCCE.explain`, partition by partition, on one machine or a cluster.

The answer for a row depends on the explainer, the options and the row's values only, because draws are counted
and not streamed. So partitions are explained apart, in any order and by any worker, and a lost one is computed again;
scheduling, retries and memory are Dask's. Score and relations are learned before the explainer is sent to the workers,
once to each.

A run that was interrupted continues with the partitions that are missing if each of them is written as a whole::

    @dask.delayed
    def write(part, path):
        part.to_parquet(f"{path}.part", index=True)
        os.replace(f"{path}.part", path)
    paths = [f"answers/{i:05}.parquet" for i in range(answers.npartitions)]
    dask.compute(*[write(part, p) for part, p in zip(answers.to_delayed(), paths) if not os.path.exists(p)])
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd

from mcce.exceptions import InputError, listing, spell
from mcce.explainer import MCCE
from mcce.table import Schema
from mcce.table.checks import find_labels

NULLABLE = {"b": "boolean", "i": "Int64", "u": "UInt64"}  # a row with an unknown level has no prediction
RANK, CODE, FEATURES = 1, 2, 3  # places in `Counterfactuals.to_frame`, after the id


def explain(explainer: MCCE, table: Any, **options: Any) -> Any:
    """Return the counterfactuals of a Dask DataFrame as a Dask DataFrame, which is computed when it is asked for.

    Parameters
    ----------
    explainer : MCCE
        Fitted; it and its model are pickled.
    table : dask.dataframe.DataFrame
        Rows with the training columns; the index names them, and each label occurs once. If Dask does not know how the
        index is divided among the partitions, the labels of all rows are read first.
    **options
        Options of `MCCE.explain`, apart from `progress`.

    Returns
    -------
    dask.dataframe.DataFrame
        The columns of `Counterfactuals.to_frame`, indexed as `table`. Answers are in the order of `table`: a row
        that is explained has one for each counterfactual, with `code` "explained" and its `rank` from 1; any other
        row has one, with the `code` of `Counterfactuals.unexplained`, `rank` 0 and the row's own values (of a
        categorical column, a level that no training row has is missing).

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import mcce
    >>> from mcce.distributed import explain
    >>> loans = mcce.datasets.load_loans(500)
    >>> explainer = mcce.MCCE(loans.model, decision=(0, 0.1), fixed=["age", "sex"], random_state=1).fit(loans.X)
    >>> answers = explain(explainer, dd.from_pandas(loans.X.head(20), npartitions=2), n_samples=50)
    >>> answers.compute()["code"].value_counts().to_dict()
    {'explained': 11, 'already': 9}
    """
    try:
        import dask.dataframe as dd
    except ImportError as error:
        raise InputError("mcce.distributed needs Dask; install it: pip install 'mcce[dask]'.") from error
    if not isinstance(explainer, MCCE):
        raise InputError(f"explainer is {spell(explainer)}; give a fitted mcce.MCCE.")
    if not isinstance(table, dd.DataFrame):
        raise InputError(f"table is a {type(table).__name__}; give a Dask DataFrame, or call explainer.explain.")
    if "progress" in options:
        raise InputError("progress has no effect on Dask; leave it out, and use dask.diagnostics.ProgressBar.")
    meta = _meta(explainer, table._meta, options)
    if not table.known_divisions:
        _check_labels(table.index.compute())
    sent = _scatter(explainer)
    return table.map_partitions(_explain_partition, sent, options, meta, meta=meta)  # type: ignore[no-untyped-call]


def _scatter(explainer: MCCE) -> Any:
    """Return the explainer as a task of Dask; on a cluster, every worker has it from now on."""
    from dask.delayed import delayed

    sent: Any = explainer
    if "distributed" in sys.modules:  # a cluster is used by Dask only if the caller has made a client
        from distributed import default_client

        with suppress(ValueError):  # there is no client
            sent = default_client().scatter(explainer, broadcast=True, hash=False)  # type: ignore[no-untyped-call]
    return delayed(sent, name=f"mcce-{uuid4().hex}")


def _meta(explainer: MCCE, rows: pd.DataFrame, options: Mapping[str, Any]) -> pd.DataFrame:
    """Return columns and dtypes of the answers, without rows; options are checked, score and relations learned.

    `rows` are the columns and dtypes of the table, without rows.
    """
    explainer.explain(rows, **options, progress=False)
    generator = explainer.generator_
    result = explainer.explain(generator.schema_.decode(generator.training_[:1]), **options, progress=False)
    flat = result.to_frame().iloc[:0, RANK:]
    code, prediction = flat.columns[[CODE - RANK, FEATURES + len(generator.schema_) - RANK]]
    dtype = result.predictions.infer_objects().dtype
    dtypes = {code: str, prediction: NULLABLE.get(dtype.kind, dtype)}
    return flat.astype(dtypes).set_index(rows.index)


def _explain_partition(
    part: pd.DataFrame, explainer: MCCE, options: Mapping[str, Any], meta: pd.DataFrame
) -> pd.DataFrame:
    """Return the answers for the rows of one partition."""
    _check_labels(part.index)
    schema = explainer.generator_.schema_
    is_unknown = np.zeros(len(part), dtype=bool)
    for feature in schema.features:
        is_unknown |= feature.is_unknown(part[feature.name], "table")
    answers = _unknown_levels(part[is_unknown], schema, meta)
    places = np.flatnonzero(is_unknown)
    if not is_unknown.all():  # an empty partition has no dtypes
        flat = explainer.explain(part[~is_unknown], **options, progress=False).to_frame()
        flat = flat[(flat.iloc[:, RANK] > 0) | (flat.iloc[:, CODE] != "explained")]  # without the explained factuals
        places = np.append(places, find_labels(part.index, pd.Index(flat.iloc[:, 0], tupleize_cols=False)))
        answers = pd.concat([answers, flat.iloc[:, RANK:].astype(meta.dtypes)])
    order = np.argsort(places, kind="stable")
    return answers.iloc[order].set_index(part.index[places[order]])


def _unknown_levels(rows: pd.DataFrame, schema: Schema, meta: pd.DataFrame) -> pd.DataFrame:
    """Return the answers for rows with a level that no training row has, which `explain` keeps apart."""
    columns: list[Any] = [0, "unknown_level"]
    for feature in schema.features:
        column = rows[feature.name]
        is_level = feature.levels is not None
        columns.append(
            column.astype(feature.dtype).array if is_level else feature.decode(feature.encode(column, "table"))
        )
    for dtype in meta.dtypes.iloc[len(columns) :]:
        is_required = isinstance(dtype, np.dtype) and dtype.kind in "ib"  # L0 and below_floor
        columns.append(dtype.type(0) if is_required else None)
    answers = pd.DataFrame(dict(enumerate(columns)), index=pd.RangeIndex(len(rows)))
    return answers.set_axis(meta.columns, axis=1).astype(meta.dtypes)


def _check_labels(index: pd.Index[Any]) -> None:
    """Raise on a label that names two rows."""
    if not index.is_unique:
        raise InputError(
            f"the index of table holds {listing(index[index.duplicated()].unique())} more than once; give each row "
            "a label of its own: table.set_index(column), where no value of the column repeats."
        )
