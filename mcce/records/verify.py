"""Verify a folder of records: every hash, the chain, and, with the explainer, every answer.

1. Each file must be the canonical JSON of a record with the right hash. A flipped byte changes one or the other.
2. Each record must name the hash of the record before it, and numbers must have no gaps. So a record that was removed,
   repeated, moved or replaced is found, and so is a foreign file.
3. A missing last record is found by the head, which counts the records.
4. Hashes are not signatures. Anyone with write access to the folder can make a new chain with a new head. Keep the hash
   of the last record, which `verify` prints, where others cannot change it.
5. With the explainer, the rows are explained again, all records of the same call together. An answer does not depend
   on the other rows, so values must agree exactly and figures in all recorded digits. A record that another model,
   explainer or training table made is reported and not explained again; other versions are listed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from mcce.base.files import check_path
from mcce.exceptions import InputError, MCCEError
from mcce.records.canonical import HASH, canonical, cell, from_json, hash_of
from mcce.records.folder import HEAD, file_name, list_files, read_head, read_json
from mcce.records.record import FORMAT, VERSION, make_bodies
from mcce.table import Feature, Schema

METHODS = ("explain", "recourse")  # calls that can be repeated
COMPARED = ("factual", "decision", "answers")
PARTS = ("model", "explainer", "training")
MOST_NAMED = 20  # numbers of missing records in a row
KINDS = dict.fromkeys(("factual", "decision", "call", "versions", *PARTS), dict) | {"answers": list}
Named = tuple[str, dict[str, Any]]  # the name of a file, and its record


@dataclass(frozen=True, repr=False)
class Verification:
    """The findings of `verify`.

    Attributes
    ----------
    n_records : int
        Files of records in the folder.
    n_reproduced : int or None
        Records whose answers were found again, byte for byte; None if no explainer was given.
    faults : tuple of str
        Faults, each with the name of the file; empty if everything agrees.
    notes : tuple of str
        Differences that are not faults: other versions, other files of the same model.
    last : str or None
        The hash of the last record.

    Examples
    --------
    >>> import mcce, tempfile
    >>> X = mcce.datasets.load_loans(300).X[["age", "salary", "savings"]]
    >>> explainer = mcce.MCCE(lambda rows: rows["salary"] / 1e5, fixed=["age"], random_state=1).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = explainer.explain(X.head(3)).write_records(folder)
    ...     print(mcce.records.verify(folder, explainer))
    ...     paths[1].unlink()
    ...     print(mcce.records.verify(folder).faults[0])
    3 records: every hash is right, and the chain is complete. Reproduced byte for byte: 3 of 3.
    record 2 is missing
    """

    n_records: int
    n_reproduced: int | None
    faults: tuple[str, ...]
    notes: tuple[str, ...]
    last: str | None

    def __bool__(self) -> bool:
        return not self.faults

    def __repr__(self) -> str:
        found = f"{_count(len(self.faults), 'fault')}." if self.faults else _SOUND
        lines = [f"{_count(self.n_records, 'record')}: {found}"]
        if self.n_reproduced is not None:
            lines[0] += f" Reproduced byte for byte: {self.n_reproduced} of {self.n_records}."
        return "\n".join(
            [*lines, *(f"fault: {each}" for each in self.faults), *(f"note: {each}" for each in self.notes)]
        )


_SOUND = "every hash is right, and the chain is complete."


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def verify(
    folder: str | os.PathLike[str], explainer: Any = None, *, files: Mapping[str, str | None] | None = None
) -> Verification:
    """Verify the records of a folder; the module documents which changes are found.

    Parameters
    ----------
    folder : str or path
    explainer : MCCE, optional
        The explainer that the records were made with, fitted or loaded; the answers are then reproduced.
    files : dict, optional
        SHA-256 of the files of "model" and "explainer", to be compared with those of the records.

    Returns
    -------
    Verification
        True if there is no fault.

    Examples
    --------
    >>> import mcce, tempfile
    >>> X = mcce.datasets.load_loans(300).X[["age", "salary", "savings"]]
    >>> explainer = mcce.MCCE(lambda rows: rows["salary"] / 1e5, fixed=["age"], random_state=1).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = explainer.explain(X.head(3)).write_records(folder)
    ...     bool(mcce.records.verify(folder))
    True
    """
    folder = check_path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; give the folder of records.")
    found, others = list_files(folder)
    if not found and not (folder / HEAD).exists():
        raise InputError(f"{folder} holds no records; give the folder that they were written to.")
    files_read = [_read(number, path, keep=explainer is not None) for number, path in found]
    faults = [f"{path.name} is not a record" for path in others]
    faults += [f"{each.path.name} {each.fault}" for each in files_read if each.fault is not None]
    faults += [*_check_chain(files_read), *_check_head(folder, files_read)]
    notes: list[str] = []
    n_reproduced = None
    if explainer is not None:
        sound = [(each.path.name, each.record) for each in files_read if each.fault is None]
        n_reproduced, differing, notes = _reproduce(sound, explainer, files or {})
        faults += differing
    last = files_read[-1].hash if files_read else None
    return Verification(len(found), n_reproduced, tuple(faults), tuple(notes), last)


@dataclass(frozen=True)
class _File:
    """A file of the chain: the stated and the computed hash of its record, and the fault of the file itself."""

    number: int
    path: Path
    hash: str | None = None
    computed: str | None = None
    previous: str | None = None
    record: dict[str, Any] = field(default_factory=dict)
    fault: str | None = None


def _read(number: int, path: Path, *, keep: bool) -> _File:
    try:
        record = read_json(path)
    except InputError as error:
        return _File(number, path, fault=f"was changed: {error}")
    if (record.get("format"), record.get("version")) != (FORMAT, VERSION) or not _has_parts(record):
        return _File(number, path, fault=f"is not a record of the format {FORMAT!r}, version {VERSION}, or was changed")
    computed = hash_of(record)
    fault = None
    if record.get(HASH) != computed:
        fault = "was changed: its hash is not that of its content"
    elif canonical(record) + b"\n" != path.read_bytes():
        fault = "was changed: its bytes are not those that were written"
    elif path.name != file_name(number, record.get("id")):
        fault = "was renamed: its name is not made of its number and id"
    stated, previous = (value if isinstance(value := record.get(name), str) else None for name in (HASH, "previous"))
    return _File(number, path, stated, computed, previous, record if keep else {}, fault)


def _has_parts(record: Mapping[str, Any]) -> bool:
    """Return whether a record has the parts that are read here."""
    return all(isinstance(record.get(part), kind) for part, kind in KINDS.items())


def _check_chain(files: Sequence[_File]) -> Iterator[str]:
    """Yield faults of the chain: missing, repeated, moved or foreign records."""
    known: dict[str | None, str] = {}
    before: _File | None = None
    by_hash = {each.hash: each.path.name for each in reversed(files) if each.hash is not None}
    for each in files:
        name, number = each.path.name, 0 if before is None else before.number
        if each.number == number:
            yield f"{name} has the number of another record"
        for missing in range(number + 1, min(each.number, number + 1 + MOST_NAMED)):
            yield f"record {missing} is missing"
        if each.number > number + 1 + MOST_NAMED:
            yield f"records up to {each.number - 1} are missing"
        ends = (None,) if before is None else (before.hash, before.computed)
        if each.hash in known:
            yield f"{name} repeats {known[each.hash]}"
        elif each.fault is None and each.number == number + 1 and each.previous not in ends:
            if each.previous in by_hash:
                yield f"{name} was moved: it was written after {by_hash[each.previous]}"
            elif each.previous is None:
                yield f"{name} was moved or added: it was written as the first of a chain"
            else:
                yield f"{name}: the record before it was removed or replaced"
        if each.hash is not None:
            known.setdefault(each.hash, name)
        before = each


def _check_head(folder: Path, files: Sequence[_File]) -> Iterator[str]:
    """Yield differences between the end of the chain and the head."""
    try:
        count, last = read_head(folder)
    except FileNotFoundError:
        yield f"{HEAD} is missing: records after the last cannot be detected"
        return
    except InputError as error:
        yield f"{HEAD} was changed: {error}"
        return
    if count > len(files):
        yield f"{HEAD} counts {count} records, and there are {len(files)}"
    elif count < len(files):
        yield f"{HEAD} counts {count} records, and there are {len(files)}: some were added, or a run was interrupted"
    elif files and last not in (files[-1].hash, files[-1].computed):
        yield f"{HEAD} names another last record than {files[-1].path.name}"


def _reproduce(
    records: Sequence[Named], explainer: Any, files: Mapping[str, str | None]
) -> tuple[int, list[str], list[str]]:
    """Explain the rows again; return the number of equal answers, the differences, and notes."""
    now = explainer.fingerprint()
    faults: list[str] = []
    notes: Counter[str] = Counter()
    groups: dict[tuple[bytes, int], list[Named]] = {}
    times: Counter[tuple[bytes, bytes]] = Counter()
    for name, record in records:
        others = [part for part in PARTS if not _agree(record.get(part), now[part])]
        if record.get("seed") != now["seed"]:
            others.append("seed")
        if others:
            faults.append(f"{name} was made with another {' and another '.join(others)}")
            continue
        for part, digest in files.items():
            stated = record[part].get("file")
            if digest is not None and stated not in (None, digest):
                notes[f"the file of the {part} is another one, which answers the same"] += 1
        then, versions = record["versions"], now["versions"]
        for package in sorted({*then, *versions}):
            if then.get(package) != versions.get(package):
                notes[f"{package} {then.get(package, 'unknown')} then, {versions.get(package, 'unknown')} now"] += 1
        call = canonical(record["call"])
        call_and_id = call, canonical(record.get("id"))
        times[call_and_id] += 1
        groups.setdefault((call, times[call_and_id]), []).append((name, record))
    n_same = 0
    for group in groups.values():
        differing = _explain_again(group, explainer)
        faults += differing
        n_same += len(group) - len(differing)
    return n_same, faults, [f"{text} ({_count(count, 'record')})" for text, count in notes.items()]


def _agree(stated: Any, now: Mapping[str, Any]) -> bool:
    """Return whether a section of a record agrees with the current one; unknown values are ignored."""
    return all(stated.get(name) in (None, value) for name, value in now.items() if value is not None)


def _explain_again(group: Sequence[Named], explainer: Any) -> list[str]:
    """Return the differences after explaining the rows of records with the same call again."""
    call = group[0][1]["call"]
    try:
        if call.get("method") not in METHODS:
            raise InputError(f"{call.get('method')!s:.30} used given candidates, which a record does not hold")
        arguments = {name: from_json(value) for name, value in call["arguments"].items()}
        rows = rows_of_records([record for _, record in group], explainer.generator_.schema_)
        found = getattr(explainer, call["method"])(rows, progress=False, **arguments)
    except (MCCEError, AttributeError, LookupError, TypeError, ValueError) as error:  # of a forged record
        why = str(error).rstrip(".") if isinstance(error, MCCEError) else f"a part of it is wrong ({error})"
        return [f"{name} cannot be reproduced: {why}" for name, _ in group]
    problems = []
    for (name, record), again in zip(group, make_bodies(found)):
        words = {name: record["decision"].get(name) for name in ("wanted", "rule")}  # texts of the job
        again["decision"] |= words
        parts = [part for part in COMPARED if canonical(record[part]) != canonical(again[part])]
        if parts:
            problems.append(f"{name} is not reproduced: {_first_difference(record, again, parts)}")
    return problems


def _first_difference(stated: Any, now: Any, keys: Sequence[Any]) -> str:
    """Return the place of the first difference of two JSON values, with both values."""
    key = keys[0]
    one, other = stated[key], now[key]
    if type(one) is type(other) and isinstance(one, dict) and {*one} == {*other}:
        return f"{key}.{_first_difference(one, other, [each for each in one if one[each] != other[each]])}"
    if type(one) is type(other) and isinstance(one, list) and len(one) == len(other):
        return f"{key}.{_first_difference(one, other, [i for i in range(len(one)) if one[i] != other[i]])}"
    if isinstance(one, list) and isinstance(other, list):
        return f"{key} has {len(one)} entries, and {len(other)} now"
    return f"{key} is {one!r:.60}, and {other!r:.60} now"


def rows_of_records(records: Sequence[Mapping[str, Any]], schema: Schema) -> pd.DataFrame:
    """Return the factuals of records as a table with the columns of a schema, named by the ids."""
    index = pd.Index([record["id"] for record in records], dtype=object, tupleize_cols=False)
    columns = [
        _column(feature, [record["factual"][str(feature.name)] for record in records]) for feature in schema.features
    ]
    table = pd.DataFrame(dict(enumerate(columns)))
    table.columns = pd.Index(schema.names, tupleize_cols=False)
    return table.set_axis(index, axis=0)


def _column(feature: Feature, values: Sequence[Any]) -> pd.Series[Any]:
    """Return the values of a feature in its dtype, unchanged if the dtype cannot hold them."""
    if feature.levels is not None:
        levels = {canonical(cell(level)): level for level in feature.levels}
        values = [feature.missing if value is None else levels.get(canonical(value), value) for value in values]
    column = pd.Series(list(values), dtype=object)
    try:
        return column.astype(feature.dtype)
    except (TypeError, ValueError):
        return column if feature.levels is not None else pd.to_numeric(column)
