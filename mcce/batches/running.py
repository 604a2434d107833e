"""A batch run: open the source, lock the folder, explain and write the parts, finish."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mcce.base.checks import check, check_count
from mcce.base.files import check_path
from mcce.base.locks import hold_lock
from mcce.base.progress import Progress, progress_bar
from mcce.batches.folder import (
    MANIFEST,
    BatchResult,
    Folder,
    check_settings,
    describe_explainer,
    describe_letters,
    describe_settings,
    describe_versions,
)
from mcce.batches.letters import Letters
from mcce.batches.parts import Personal, Request
from mcce.batches.sources import Part, RowSource, open_source, pyarrow
from mcce.batches.workers import run_parts
from mcce.constraints import read
from mcce.exceptions import InputError, MCCEWarning, spell_all
from mcce.explain.protocol import Explainer
from mcce.model.queries import SpotCheck
from mcce.records.canonical import HASH
from mcce.records.folder import append_records, end_of_chain
from mcce.records.record import Origin, make_records
from mcce.report.names import Names
from mcce.wording import Value

COUNTED = "Such rows of other parts are not listed: the manifest counts them as 'unusual'."


def explain_batches(
    explainer: Explainer,
    source: Any,
    out: str | os.PathLike[str],
    *,
    method: str,
    settings: Mapping[str, Any],
    learned: Mapping[str, Any],
    spots: SpotCheck,
    id: str | None,
    batch_size: int,
    n_jobs: int | None,
    skip_bad: bool,
    missing: Sequence[str],
    letters: Letters | str | os.PathLike[str] | None,
    records: str | os.PathLike[str] | None,
    progress: Progress,
) -> BatchResult:
    """Explain a source into a folder; see `MCCE.explain_batches`.

    `method` is "explain" or "recourse" and `settings` are its settings; `learned` replaces those that workers cannot
    learn; `spots` are training rows that identify an explainer.
    """
    pyarrow()
    check_count(batch_size, "batch_size")
    are_texts = not isinstance(missing, str) and all(isinstance(text, str) for text in missing)
    check(are_texts, missing, "missing", "give a list of texts, for example ", Value(["NA", "?"]), ".")
    whole = check_settings(explainer, settings, method)
    to_write = Letters.read(letters)
    if to_write is not None:
        Names.read(to_write.names, explainer.generator_.schema_.names).check_kinds(explainer.generator_.schema_)
    folder = check_path(out)
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise InputError(f"out is {folder}, but {there} is a file; give a new folder, or that of an earlier run.")
    if records is not None:
        _check_records(check_path(records), folder)
    opened = open_source(source, explainer.generator_.schema_, id, missing)
    if isinstance(source, (str, os.PathLike)) and Path(source).resolve() in (
        folder.resolve(),
        *folder.resolve().parents,
    ):
        raise InputError(f"out is {folder}, inside the source {source}; give another folder.")
    head = {
        "settings": {
            **({"recourse": True} if method == "recourse" else {}),
            **describe_settings(explainer, whole, spots.rows),
            "batch_size": batch_size,
            "id": id,
            "missing": list(missing),
            **describe_letters(explainer, to_write),
            **({} if records is None else {"records": True}),
        },
        "explainer": describe_explainer(explainer, spots.rows),
        "versions": describe_versions(),
        "input": opened.describe(),
    }
    answers = pyarrow().array(spots.answer.scores.tolist()).type
    request = Request({**whole, **learned}, id, skip_bad, answers, to_write, method, records is not None)
    folder.mkdir(parents=True, exist_ok=True)
    with hold_lock(folder):
        to_folder = Folder(folder, None if to_write is None else to_write.path)
        result = _run(explainer, opened, to_folder, head, request, batch_size, n_jobs, progress)
        if records is not None:
            arguments = {name: value for name, value in whole.items() if name != "constraints"}
            origin = Origin.from_call(explainer.fingerprint(), method, arguments, read(whole["constraints"]))
            append_records(records, lambda last: _records_after(last, make_records(to_folder.decisions(), origin)))
    return result


def _check_records(records: Path, out: Path) -> None:
    """Raise if the folder of records cannot be written, or has records although the run is new."""
    if records.exists() and not records.is_dir():
        raise InputError(f"records is {records}, which is a file; give the name of a folder.")
    if out.resolve() in (records.resolve(), *records.resolve().parents):
        raise InputError(f"records is {records}, inside out, {out}; give another folder.")
    if records.is_dir() and end_of_chain(records)[0] and not (out / MANIFEST).exists():
        raise InputError(f"records is {records}, which has records already; give a new or empty folder.")


def _records_after(last: str | None, records: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the records behind the one with the hash `last`; all of them for None."""
    if last is not None and all(record[HASH] != last for record in records):
        raise InputError("the folder of records has a chain of another run; give a new or empty folder.")
    yield from records


def _run(
    explainer: Explainer,
    source: RowSource,
    folder: Folder,
    head: Mapping[str, Any],
    request: Request,
    batch_size: int,
    n_jobs: int | None,
    progress: Progress,
) -> BatchResult:
    folder.begin(head)
    personal = Personal(request)
    n_parts = 0
    resumed = False  # finished parts may have no ids
    shown: set[str] = set()
    unusual_shown = False
    with progress_bar(source.total, "explaining", progress) as bar:

        def unfinished() -> Iterator[tuple[Request, Part]]:
            nonlocal n_parts, resumed
            for part in source.parts(batch_size, folder.is_done):
                n_parts += 1
                if not folder.is_done(part.number):
                    yield personal.request_for(part), part
                    continue
                resumed = True
                folder.check_same(part, request.skip_bad)
                n = part.rows.end - part.rows.begin
                if not bar.disable:
                    bar.initial += n  # rate and remaining time of this run only
                bar.update(n)

        for explained in run_parts(explainer, unfinished(), n_jobs):
            folder.write(explained)
            unusual = [
                (f"{explained.part.where} {words} {COUNTED}",) for words in explained.unusual if not unusual_shown
            ]
            unusual_shown = unusual_shown or bool(unusual)
            for warning in (MCCEWarning(*parts) for parts in (*explained.warned, *unusual)):
                if str(warning) not in shown:
                    shown.add(str(warning))
                    warnings.warn(warning, stacklevel=4)  # the line that called explain_batches
            bar.update(explained.part.rows.end - explained.part.rows.begin)
    if personal.unseen and not resumed:
        named = "are numbered from 0" if request.id is None else f"are named by the column {request.id!r}"
        unknown = (
            f"constraints name the factual(s) {spell_all(personal.unseen)}, which are not in the source, where rows "
        )
        warnings.warn(MCCEWarning(unknown + f"{named}; these constraints had no effect."), stacklevel=3)
    return folder.finish(head, n_parts)
