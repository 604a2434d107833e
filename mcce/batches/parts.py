"""Explain one part: from rows to two Parquet files, as bytes, and counts.

If `explain` raises, the rows at fault are found by bisection; they raise an error that names the file and the row, or
are listed and skipped. Both tables have the same column types in every part. Constraints on single factuals are passed
only to the part that has them, because `explain` raises on unknown ids.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from mcce.base.arrays import Ints
from mcce.batches.letters import Letters, Written, write_letters
from mcce.batches.sources import BadRows, Part, pyarrow
from mcce.constraints import OfFactuals, read
from mcce.counterfactuals import Counterfactuals
from mcce.exceptions import InputError, MCCEError, MCCEWarning, ModelError
from mcce.explain.problem import encode_factuals
from mcce.explain.protocol import Explainer
from mcce.explain.reference import Unusual, collect_warnings
from mcce.explain.tabulate import with_left_out
from mcce.records.canonical import canonical
from mcce.records.record import make_bodies
from mcce.report.reasons import ALREADY
from mcce.report.words import answers
from mcce.table import Feature, Schema
from mcce.table.left_out import without_unknown_levels
from mcce.wording import Setting


class Personal:
    """A request with constraints on single factuals, split by part; `unseen` has the ids that no part so far has."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._given = read(request.settings["constraints"])
        self._by_id: dict[Hashable, list[tuple[int, Any]]] = {}
        for i, each in enumerate(self._given):
            if isinstance(each, OfFactuals):
                for entry in each.by_id:
                    self._by_id.setdefault(entry[0], []).append((i, entry))
        self.unseen = dict.fromkeys(self._by_id)

    def request_for(self, part: Part) -> Request:
        """Return the request with only the constraints that concern a part."""
        if not self._by_id:
            return self.request
        mine: dict[int, list[Any]] = {}
        for id in part.factuals(self.request.id).index:
            self.unseen.pop(id, None)
            for i, entry in self._by_id.get(id, ()):
                mine.setdefault(i, []).append(entry)
        constraints: list[Any] = []
        for i, each in enumerate(self._given):
            if not isinstance(each, OfFactuals):
                constraints.append(each)
            elif i in mine:
                kind: Any = type(each)
                constraints.append(kind(tuple(mine[i])))
        return replace(self.request, settings={**self.request.settings, "constraints": constraints})


TABLES = ("counterfactuals", "unexplained")
DECISIONS = "decisions"  # of records; JSON lines
COUNTS = ("rows", "factuals", "explained", "already", "unexplained", "counterfactuals", "bad", "unusual")


@dataclass(frozen=True)
class Request:
    """A request for explanations, the same for all parts.

    Attributes
    ----------
    settings : settings of the method.
    id : the column that names the rows; None for row numbers.
    skip_bad : whether bad rows are listed; otherwise they are errors.
    prediction_type : Arrow type of the model's predictions.
    letters : letters to write; None for none.
    method : method of the explainer: "explain" or "recourse".
    records : whether decisions are written as JSON, for records.
    process : the process whose warnings are shown directly.
    """

    settings: Mapping[str, Any]
    id: str | None
    skip_bad: bool
    prediction_type: Any
    letters: Letters | None = None
    method: str = "explain"
    records: bool = False
    process: int = field(default_factory=os.getpid)


@dataclass(frozen=True)
class Explained:
    """The results of a part: the bytes of its files and counts; or the problem that stopped it.

    `unusual` has texts about rows that are unusual in the training data, `warned` the parts of all other warnings;
    `letters` is None if no letters are written.
    """

    part: Part
    files: Mapping[str, bytes] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    bad: tuple[BadRows, ...] = ()
    problem: MCCEError | None = None
    warned: tuple[tuple[Any, ...], ...] = ()
    unusual: tuple[str, ...] = ()
    letters: Written | None = None


def explain_part(explainer: Explainer, request: Request, part: Part) -> Explained:
    """Explain the rows of a part; the returned part has no cells."""
    if os.getpid() == request.process:
        return _explain(explainer, request, part)
    with warnings.catch_warnings(record=True) as caught:  # warnings of other processes are not shown
        warnings.simplefilter("always")
        found = _explain(explainer, request, part)
    messages = {str(each.message): each.message.args for each in caught if isinstance(each.message, MCCEWarning)}
    return replace(found, warned=tuple(messages.values()))


def _explain(explainer: Explainer, request: Request, part: Part) -> Explained:
    done = replace(part, rows=replace(part.rows, frame=part.rows.frame.iloc[:0], lines=None))
    try:
        with collect_warnings() as unusual:
            part, found = _explain_good(explainer, request, part, unusual)
        files = _as_files(found, explainer.generator_.schema_, request, part)
        if request.records:
            files[DECISIONS] = b"".join(canonical(body) + b"\n" for body in make_bodies(found))
        letters = None
        if request.letters is not None:
            numbers = part.rows.frame.index + (part.first - part.rows.begin)
            letters = write_letters(found, request.letters, numbers.tolist())
    except MCCEError as problem:
        return Explained(done, problem=problem)
    rows, bad = part.rows, part.rows.bad
    n_already = int((found.unexplained["reason"] == ALREADY).sum())
    counts = (
        rows.end - rows.begin,
        len(found.factuals),
        len(found.factuals) - len(found.unexplained),
        n_already,
        len(found.unexplained) - n_already,
        len(found),
        sum(b.end - b.begin for b in bad),
        unusual.n_rows,
    )
    return Explained(done, files, dict(zip(COUNTS, counts)), bad, unusual=tuple(unusual.words), letters=letters)


def _explain_good(explainer: Explainer, request: Request, part: Part, unusual: Unusual) -> tuple[Part, Counterfactuals]:
    """Return the part with all bad rows listed, and the result for the others."""
    if part.rows.bad and not request.skip_bad:
        raise _refusal(part)
    try:
        return part, _explain_rows(explainer, request, part, unusual)
    except MCCEError as error:
        frame = part.factuals(request.id)
        kept, left_out = without_unknown_levels(frame, explainer.generator_.schema_, or_all=True)
        places = np.arange(len(frame)) if left_out is None else np.flatnonzero(left_out.kept)
        bad = _find_bad(explainer, kept, places)
        if not bad:
            raise type(error)(f"{part.where}, rows {part.rows.begin} to {part.rows.end - 1}: ", *error.args) from error
        if len(bad) == len(kept) and all(isinstance(e, ModelError) for _, e in bad):
            raise  # the model is at fault, not the rows
    without = replace(part, rows=part.rows.drop([(i, str(e)) for i, e in bad]))
    if not request.skip_bad:
        raise _refusal(without)
    return without, _explain_rows(explainer, request, without, unusual)


def _explain_rows(explainer: Explainer, request: Request, part: Part, unusual: Unusual) -> Counterfactuals:
    schema = explainer.generator_.schema_
    frame, left_out = without_unknown_levels(part.factuals(request.id), schema, or_all=True)
    if not len(frame):  # an empty part has no dtypes
        frame = schema.decode(np.empty((0, len(schema))), frame.index)
    found: Counterfactuals = getattr(explainer, request.method)(frame, **request.settings, progress=False)
    if left_out is None:
        return found
    unusual.n_rows += len(left_out.reasons)
    unusual.words.append(f"{left_out.words()} They are not explained; `unexplained` says so.")
    return with_left_out(found, left_out, schema)


def _refusal(part: Part) -> InputError:
    """Return the error about the first bad row of a part."""
    first, n = part.rows.bad[0], sum(b.end - b.begin for b in part.rows.bad)
    others = f" ({n - 1} more in this part)" if n > 1 else ""
    return InputError(
        f"{part.where}, {first.place}: {first.problem}{others} Finished parts are kept. Run it again with ",
        Setting("skip_bad", True),
        " to list bad rows and go on without them; a corrected source needs a new folder.",
    )


def _find_bad(explainer: Explainer, frame: pd.DataFrame, places: Ints) -> list[tuple[int, MCCEError]]:
    """Return the rows, with their places, that cannot be encoded or on which the model fails, by bisection."""
    schema = explainer.generator_.schema_
    try:
        _, matrix = encode_factuals(frame, schema)
        if len(matrix):
            explainer.decision_.evaluate(schema.decode_for_model(matrix), "factuals")
    except MCCEError as error:
        if len(frame) == 1:
            return [(int(places[0]), error)]
        half = len(frame) // 2
        halves = (frame.iloc[:half], places[:half]), (frame.iloc[half:], places[half:])
        return [bad for some, at in halves if len(some) for bad in _find_bad(explainer, some, at)]
    return []


def _as_files(found: Counterfactuals, schema: Schema, request: Request, part: Part) -> dict[str, bytes]:
    """Write both tables."""
    rows = found.to_frame() if found.consequences is None else answers(found)  # with roles of changes
    others = found.unexplained.rename_axis("id").reset_index()
    n = len(schema)
    named = dict(zip(rows.columns[2 : 2 + n], schema.features))
    types: dict[Any, Any] = {name: _lazy_type(feature) for name, feature in named.items()}
    id_type = pyarrow().int64() if request.id is None else part.id_type
    types |= {rows.columns[0]: id_type, rows.columns[2 + n]: request.prediction_type}
    types |= dict.fromkeys(rows.columns[len(found.to_frame().columns) :], pyarrow().string())
    of_others = {"id": id_type, "reason": pyarrow().string(), "prediction": request.prediction_type}
    return {"counterfactuals": _as_parquet(rows, types), "unexplained": _as_parquet(others, of_others)}


def _lazy_type(feature: Feature) -> Any:
    """Return a function that finds the Arrow type of a feature from its levels or range."""

    def find() -> Any:
        known = np.arange(feature.n_levels) if feature.levels is not None else np.array([feature.low, feature.high])
        return pyarrow().array(pd.Series(feature.decode(known[~np.isnan(known)])), from_pandas=True).type

    return find


def _as_parquet(frame: pd.DataFrame, types: Mapping[Any, Any]) -> bytes:
    """Return a frame as Parquet; columns whose type cannot be inferred get that of `types`."""
    arrow = pyarrow()
    by_text = {str(name): type_ for name, type_ in types.items()}
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    try:
        table = arrow.Table.from_pandas(frame, preserve_index=False)
        for i, column in enumerate(table.schema):
            wanted = by_text.get(column.name)
            if callable(wanted):
                wanted = wanted() if arrow.types.is_null(column.type) else column.type
            if wanted is None:
                wanted = arrow.float64() if arrow.types.is_null(column.type) else column.type
            if column.type != wanted:
                table = table.set_column(i, column.name, table.column(i).cast(wanted))
    except (arrow.ArrowException, TypeError, ValueError) as error:
        raise InputError(
            f"the result cannot be written as Parquet: {str(error).splitlines()[0]} Columns with values of several "
            "types must be converted to text before fit."
        ) from error
    sink = arrow.BufferOutputStream()
    arrow.parquet.write_table(table, sink)
    return bytes(sink.getvalue())
