"""Explain a Dask DataFrame: the rows of `MCCE.explain`, partition by partition, on one machine or a cluster.

The answer for a row depends on the explainer, the options and the row's values only, because draws are counted
and not streamed. So partitions are explained apart, in any order and by any worker, and a lost one is computed again;
scheduling, retries and memory are Dask's. Score and relations are learned before the explainer is sent. It is one task
of the graph, so that workers that die and others that join get it again; Dask warns if it is large.

A run that was interrupted continues with the partitions that are missing if each of them is written as a whole::

    @dask.delayed
    def write(part, name):
        part.to_parquet(f"answers/_{name}", index=True)  # readers pass over such names
        os.replace(f"answers/_{name}", f"answers/{name}")
    os.makedirs("answers", exist_ok=True)
    parts = {f"{i:05}.parquet": part for i, part in enumerate(answers.to_delayed())}
    dask.compute(*[write(part, name) for name, part in parts.items() if not os.path.exists(f"answers/{name}")])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype

from mcce.counterfactuals import AS_TEXT, plain_column
from mcce.exceptions import InputError, listing, spell
from mcce.explainer import MCCE
from mcce.table import Feature, Schema

NULLABLE = {"b": "boolean", "i": "Int64", "u": "UInt64"}  # a row with an unknown level has no prediction
TEXT = pd.Series(["text"]).dtype
RANK, CODE, FEATURES = 1, 2, 3  # places in `Counterfactuals.to_frame`, after the id


def explain(explainer: MCCE, table: Any, **options: Any) -> Any:
    """Return the counterfactuals of a Dask DataFrame as a Dask DataFrame, which is computed when it is asked for.

    Parameters
    ----------
    explainer : MCCE
        Fitted; it and its model are pickled.
    table : dask.dataframe.DataFrame
        Rows with the training columns; the index names them, and each label occurs once: the labels of all rows are
        read first, to check this.
    **options
        Options of `MCCE.explain`, apart from `progress`.

    Returns
    -------
    dask.dataframe.DataFrame
        The columns of `Counterfactuals.to_frame`, indexed as `table`. Answers are in the order of `table`: a row
        that is explained has one for each counterfactual, with `code` "explained" and its `rank` from 1; any other
        row has one, with the `code` of `Counterfactuals.unexplained`, `rank` 0 and the row's own values. Of a
        categorical column, a level that no training row has is missing; of another one, a value that the training
        dtype cannot hold is an error.

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
        from dask.delayed import delayed
    except ImportError as error:
        raise InputError("mcce.distributed needs Dask; install it: pip install 'mcce[dask]'.") from error
    if not isinstance(explainer, MCCE):
        raise InputError(f"explainer is {spell(explainer)}; give a fitted mcce.MCCE.")
    if not isinstance(table, dd.DataFrame):
        raise InputError(f"table is a {type(table).__name__}; give a Dask DataFrame, or call explainer.explain.")
    if "progress" in options:
        raise InputError("progress has no effect on Dask; leave it out, and use dask.diagnostics.ProgressBar.")
    meta = _meta(explainer, table._meta, options)
    _check_labels(table.index.compute())
    sent = delayed(explainer, name=f"mcce-{uuid4().hex}", traverse=False)
    return table.map_partitions(_explain_partition, sent, options, meta, meta=meta)  # type: ignore[no-untyped-call]


def _meta(explainer: MCCE, rows: pd.DataFrame, options: Mapping[str, Any]) -> pd.DataFrame:
    """Return columns and dtypes of the answers, without rows; options are checked, score and relations learned.

    `rows` are the columns and dtypes of the table, without rows.
    """
    explainer.explain(rows, **options, progress=False)
    generator = explainer.generator_
    schema, wanted = generator.schema_, explainer._wanted
    refused = 0 if wanted is None else int(np.argmin(wanted))
    result = explainer.explain(schema.decode(generator.training_[[refused]]), **options, progress=False)
    flat = result.to_frame().iloc[:0, RANK:]
    names = flat.columns
    dtypes: dict[Any, Any] = {names[CODE - RANK]: TEXT}
    for name, feature in zip(names[FEATURES - RANK :], _features(schema)):
        is_text = feature.levels is not None and infer_dtype(feature.levels) in ("string", *AS_TEXT)
        if is_text and flat[name].dtype == object:
            dtypes[name] = TEXT
    dtype = result.predictions.infer_objects().dtype
    dtypes[names[FEATURES - RANK + len(schema)]] = NULLABLE.get(dtype.kind, dtype)
    return flat.astype(dtypes).set_index(rows.index)


def _features(schema: Schema) -> list[Feature]:
    """Return the features in the order of the table's columns."""
    return [schema.features[j] for j in schema.places]


def _explain_partition(
    part: pd.DataFrame, explainer: MCCE, options: Mapping[str, Any], meta: pd.DataFrame
) -> pd.DataFrame:
    """Return the answers for the rows of one partition."""
    schema = explainer.generator_.schema_
    is_unknown = np.zeros(len(part), dtype=bool)
    for feature in schema.features:
        is_unknown |= feature.is_unknown(part[feature.name], "table")
    answers = _unknown_levels(part[is_unknown], schema, meta)
    places = np.flatnonzero(is_unknown)
    if not is_unknown.all():  # an empty partition has no dtypes
        flat = explainer.explain(part[~is_unknown], **options, progress=False).to_frame()
        is_factual = flat.iloc[:, RANK] == 0
        of_row = np.flatnonzero(~is_unknown)[np.cumsum(is_factual) - 1]
        is_answer = ~(is_factual & (flat.iloc[:, CODE] == "explained")).to_numpy(dtype=bool)
        places = np.append(places, of_row[is_answer])
        answers = pd.concat([answers, flat[is_answer].iloc[:, RANK:].astype(meta.dtypes)])
    order = np.argsort(places, kind="stable")
    return answers.iloc[order].set_index(part.index[places[order]])


def _unknown_levels(rows: pd.DataFrame, schema: Schema, meta: pd.DataFrame) -> pd.DataFrame:
    """Return the answers for rows with a level that no training row has, which `explain` keeps apart."""
    columns: list[Any] = [0, "unknown_level", *(_own_values(rows[f.name], f).array for f in _features(schema))]
    for dtype in meta.dtypes.iloc[len(columns) :]:
        is_required = isinstance(dtype, np.dtype) and dtype.kind in "ib"  # L0 and below_floor
        columns.append(dtype.type(0) if is_required else None)
    answers = pd.DataFrame(dict(enumerate(columns)), index=pd.RangeIndex(len(rows)))
    return answers.set_axis(meta.columns, axis=1).astype(meta.dtypes)


def _own_values(column: pd.Series[Any], feature: Feature) -> pd.Series[Any]:
    """Return a column in the training dtype, as `Counterfactuals.to_frame` writes it."""
    if isinstance(feature.dtype, pd.CategoricalDtype):
        as_objects = column.astype(object).mask(feature.is_unknown(column, "table"))
        return plain_column(as_objects.astype(feature.dtype))
    try:
        held = column.astype(feature.dtype)
    except (TypeError, ValueError):
        feature.encode(column, "table")  # says which value does not convert
        raise
    is_same, known = np.array(held.isna()), np.array(column.notna())
    is_same[known] = held[known].astype(object).to_numpy() == column[known].astype(object).to_numpy()
    feature.check_held(column, is_same, "table")
    return plain_column(held)


def _check_labels(index: pd.Index[Any]) -> None:
    """Raise on a label that names two rows."""
    if not index.is_unique:
        raise InputError(
            f"the index of table holds {listing(index[index.duplicated()].unique())} more than once; give each row "
            "a label of its own: table.set_index(column), where no value of the column repeats."
        )
