"""Results of `mcce explain` as files: tables, a page, letters and the options as run.

Output files are checked before the work begins: input files and, without `--force`, existing files are not overwritten,
and the folder must be writable. A workbook has the sheets `answers` (changed cells are marked, with the old value as a
comment), `changes` and `no answer`, of recourse also `consequences`. Text stays text, and the same tables give the same
bytes.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from mcce import report
from mcce.base.files import atomic_write
from mcce.cli.console import DONE, SOME_UNEXPLAINED, notify
from mcce.cli.fitting import files_of
from mcce.cli.options import complete, job_text
from mcce.cli.tables import ISO, Reading, TableFile
from mcce.counterfactuals import Counterfactuals
from mcce.exceptions import InputError, listing
from mcce.records.folder import end_of_chain
from mcce.report.letter_layout import letter_name
from mcce.report.reasons import ALREADY, UNREADABLE
from mcce.report.result_letters import NOT_REFUSED
from mcce.report.rows import compare_rows
from mcce.report.words import changes_in_words, constraint_lines
from mcce.table.spreadsheet import escape_formula, escape_formulas

UNWRITTEN = (".xlsm", ".xls", ".ods", ".json", ".html")


@dataclass(frozen=True)
class Outputs:
    """The files that `mcce explain` writes; None for those that it does not write.

    Attributes
    ----------
    table : all counterfactuals
    unexplained : the rows without one, beside the table
    page : the page for a browser
    letters : the folder of letters
    records : the folder of records
    job : the options of the run, beside the results
    force : whether existing files are overwritten
    """

    table: Path | None
    unexplained: Path | None
    page: Path | None
    letters: Path | None
    records: Path | None
    job: Path | None
    force: bool

    @classmethod
    def from_arguments(cls, arguments: argparse.Namespace) -> Outputs:
        """Return the checked files of the arguments."""
        table = None if arguments.out in (None, "-") else Path(arguments.out)
        if table is not None and not table.name:  # the current folder or the root
            raise InputError(f"--out {table} is a folder; give the name of a file.")
        if table is not None and table.suffix.lower() in UNWRITTEN:
            raise InputError(
                f"--out {table}: results are written as .csv, .csv.gz, .xlsx or .parquet; give such a name."
            )
        page = None if arguments.html is None else Path(arguments.html)
        letters = None if arguments.letters is None else Path(arguments.letters)
        if letters is not None and letters.exists() and not letters.is_dir():
            raise InputError(f"--letters {letters} is a file; give the name of a folder.")
        if letters is not None and letters.is_dir() and any(letters.iterdir()) and not arguments.force:
            raise InputError(f"--letters {letters}: the folder has files; give another one, or add --force.")
        records = _records_folder(arguments)
        rest = None if table is None else _beside(table, ".unexplained.csv")
        first = next((path for path in (table, page) if path is not None and not _is_unnamed(path)), None)
        job = None if first is None else _beside(first, ".job.toml")
        named = {"--out": table, "the unexplained rows of --out": rest, "--html": page, "the job as run,": job}
        read = {
            f"--{role}": getattr(arguments, role)
            for role in ("train", "explain", "explainer", "model", "constraints", "config", "texts")
        }
        if job is not None and arguments.config is not None and _is_same(job, Path(arguments.config)):
            _check_overwritten_job(arguments, job)
            del named["the job as run,"]
            job = None
        check_outputs(
            {role: path for role, path in named.items() if path is not None},
            {role: Path(path) for role, path in read.items() if isinstance(path, str)},
            force=arguments.force,
        )
        return cls(table, rest, page, letters, records, job, arguments.force)


def _records_folder(arguments: argparse.Namespace) -> Path | None:
    """Return the folder of records; raise if its chain cannot be continued."""
    if arguments.records is None:
        given = [name for name in ("reviewed_by", "reviewed_at") if getattr(arguments, name) is not None]
        if given:
            raise InputError(f"--{given[0].replace('_', '-')} goes with --records; add it, or leave it out.")
        return None
    folder = Path(arguments.records)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--records {folder} is a file; give the name of a folder.")
    if arguments.reviewed_at is not None and arguments.reviewed_by is None:
        raise InputError("--reviewed-at goes with --reviewed-by; name the person, or leave it out.")
    if folder.is_dir():
        end_of_chain(folder)
    return folder


def _check_overwritten_job(arguments: argparse.Namespace, job: Path) -> None:
    """Raise if the job would overwrite the file of `--config` with other options."""
    as_read = complete(argparse.Namespace(config=arguments.config, command=arguments.command))
    if job_text(as_read, job) != job_text(arguments, job):
        raise InputError(
            f"--config {arguments.config} would be overwritten by this job, which has other options; give "
            "another --out."
        )


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(re.sub(r"(\.\w+)?(\.gz)?$", "", path.name) + ending)


def _is_unnamed(path: Path) -> bool:
    """Return whether a path is a device, a pipe or a folder."""
    return path.exists() and not path.is_file()


def check_outputs(outputs: Mapping[str, Path], inputs: Mapping[str, Path], *, force: bool) -> None:
    """Raise on files that cannot or must not be written; keys are their roles, as `--out`."""
    taken = dict(inputs)
    for role, path in outputs.items():
        where = f"{role} {path}"
        for other, known in taken.items():
            if _is_same(path, known):
                what = "which is read" if other in inputs else "which is written too"
                raise InputError(f"{where} is the file of {other} {known}, {what}; give another name.")
        taken[role] = path
        folder = Path(os.path.realpath(path)).parent
        if not folder.is_dir():
            raise InputError(f"{where}: there is no folder {folder}; make it, or give another name.")
        if path.is_dir():
            raise InputError(f"{where} is a folder; give the name of a file.")
        if path.exists() and not path.is_file():
            continue  # a pipe or a device
        if path.exists() and not force:
            raise InputError(f"{where}: the file exists; give another name, or add --force to overwrite it.")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(f"{where}: no file can be written to {folder}; check its permissions.")


def _is_same(path: Path, other: Path) -> bool:
    if path.exists() and other.exists():
        return path.is_file() and path.samefile(other)  # links count as their files
    return os.path.realpath(path) == os.path.realpath(other)


REASONS_SHOWN = 10
WORKBOOK = ".xlsx"
Marks: TypeAlias = Mapping[tuple[int, int], tuple[bool, str]]


@dataclass(frozen=True)
class Style:
    """The format of written CSV files: that of the CSV that was read; formulas are escaped if `spreadsheet_safe`."""

    spreadsheet_safe: bool
    sep: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    date_formats: Mapping[Any, str] = field(default_factory=dict)

    @classmethod
    def from_file(cls, source: TableFile, readings: Mapping[Any, Reading], spreadsheet_safe: bool) -> Style:
        """Return the style of a file; encodings other than UTF-8 become UTF-8 with a byte-order mark, for Excel."""
        commas = any(each.kind == "numeric" and each.marks.decimal == "," for each in readings.values())
        forms = {name: each.form for name, each in readings.items() if each.form not in ("", ISO)}
        encoding = "utf-8-sig" if source.encoding not in ("", "utf-8") else "utf-8"
        return cls(spreadsheet_safe, source.sep or ",", "," if commas else ".", encoding, forms)

    def write(self, table: pd.DataFrame, path: Any) -> None:
        forms = {name: form for name, form in self.date_formats.items() if name in table}
        table = table.assign(**{name: table[name].dt.strftime(form) for name, form in forms.items()})
        table = escape_formulas(table) if self.spreadsheet_safe else table
        table.to_csv(path, sep=self.sep, decimal=self.decimal, index=False, encoding=self.encoding)


def write(found: Counterfactuals, outputs: Outputs, style: Style, arguments: argparse.Namespace) -> int:
    """Write the results, and report the rows without a counterfactual."""
    if arguments.out is None and arguments.command == "explain":
        print(found)
    elif arguments.out is None:
        pass  # letters alone
    elif outputs.table is None:
        style.write(report.answers(found), sys.stdout)
    else:
        is_book = outputs.table.suffix.lower() == WORKBOOK
        tables, marks = (_sheets(found), _marks(found)) if is_book else ({"answers": report.answers(found)}, None)
        write_tables(outputs.table, tables, style, force=outputs.force, marks=marks)
        notify(f"wrote {len(found)} rows to {outputs.table}")
    rest = outputs.unexplained
    if rest is not None and (len(found.unexplained) or rest.exists()):  # also over those of an earlier run
        write_tables(rest, {"no answer": found.unexplained.reset_index()}, style, force=outputs.force)
        notify(f"wrote {len(found.unexplained)} rows without a counterfactual to {rest}")
    for line in constraint_lines(found.constraints):
        notify(f"constraint {line}")
    reasons = list(found.unexplained.groupby("reason", sort=False).groups.items())
    for reason, ids in reasons[:REASONS_SHOWN]:
        notify(f"not explained, {reason}: {listing(ids)}")
    if len(reasons) > REASONS_SHOWN:
        notify(f"and {len(reasons) - REASONS_SHOWN} more reasons")
    if arguments.rules is not None and (len(found) or (found.unexplained["reason"] != ALREADY).any()):
        for line in str(found.rules(arguments.rules)).splitlines():
            notify(line)
    if outputs.page is not None:
        intro = "What would have led to the wanted decision: the first rows in words and pictures, then all of them."
        page = str(replace(found, run=replace(found.run, timings={})).to_html(intro=intro))  # reproducible
        with atomic_write(outputs.page, overwrite=outputs.force) as beside:
            beside.write_text(page, encoding="utf-8")
        notify(f"wrote the page {outputs.page}")
    if outputs.letters is not None:
        _write_letters(found, outputs.letters, arguments)
    if outputs.records is not None:
        review = {"reviewed_by": arguments.reviewed_by, "reviewed_at": arguments.reviewed_at}
        new = found.write_records(outputs.records, files=files_of(arguments.explainer, arguments.model), **review)
        notify(f"wrote {len(new)} records to {outputs.records}; mcce verify {outputs.records} checks them")
    if outputs.job is not None:
        with atomic_write(outputs.job, overwrite=outputs.force) as beside:
            beside.write_text(job_text(arguments, outputs.job), encoding="utf-8")
        notify(f"wrote the job as run, {outputs.job}; mcce {arguments.command} --config {outputs.job} repeats it")
    return SOME_UNEXPLAINED if (found.unexplained["reason"] != ALREADY).any() else DONE


def _write_letters(found: Counterfactuals, folder: Path, arguments: argparse.Namespace) -> None:
    """Write a letter for each row, named by its id, and report the rows without a letter."""
    folder.mkdir(exist_ok=True)
    force = arguments.force
    letters = report.letters(
        found,
        all=arguments.all,
        html=True,
        language=arguments.language,
        texts=arguments.texts,
        reasons=bool(arguments.reasons),
    )
    taken: set[str] = set()
    for place, case_id in enumerate(found.factuals.index, 1):
        name = letter_name(case_id)
        name = name if name not in taken else f"{name}.{place}"  # no name of a letter has a full stop
        taken.add(name)
        if case_id in letters.index:
            with atomic_write(folder / f"{name}.html", overwrite=force) as beside:
                beside.write_text(letters[case_id], encoding="utf-8")
        elif force:
            (folder / f"{name}.html").unlink(missing_ok=True)  # of an earlier run
    notify(f"wrote {len(letters)} letters to {folder}")
    without = report.unlettered(found, all=arguments.all)
    not_refused = without.index[without == NOT_REFUSED]
    if len(not_refused):
        notify(f"no letter for {len(not_refused)} rows that the model accepts: {listing(not_refused)}")
    print_unlettered(without[without != NOT_REFUSED])


def print_unlettered(without: pd.Series[Any]) -> None:
    """Report the refused rows without a letter; `without` has the reasons by id."""
    unread = without.astype(str).str.startswith(UNREADABLE).to_numpy(dtype=bool)
    for why, some in (
        ("that could not be read", without[unread]),
        ("whose examples need a review first (--all writes these as well)", without[~unread]),
    ):
        if len(some):
            notify(f"no letter for {len(some)} rows, {why}:")
        for case_id, words in some.iloc[:REASONS_SHOWN].items():
            notify(f"  {case_id}: {words}")
        if len(some) > REASONS_SHOWN:
            notify(f"  and {len(some) - REASONS_SHOWN} more")


def _sheets(found: Counterfactuals) -> dict[str, pd.DataFrame]:
    """Return the tables of a workbook, the answers first."""
    unexplained = found.unexplained.rename_axis("id").reset_index()
    sheets = {"answers": report.answers(found), "changes": found.changes(), "no answer": unexplained}
    return sheets if found.consequences is None else {**sheets, "consequences": found.consequences}


def _marks(found: Counterfactuals) -> Marks:
    """Return the changed cells of the answers, each with the old value as a note."""
    _, changed = compare_rows(found)
    return {
        (row, 2 + j): (change.comes_along, f"was {change.before}")  # after id and rank
        for _, row, changes in changes_in_words(found)
        for j, change in zip(np.flatnonzero(changed[row]).tolist(), changes)
    }


def write_tables(
    path: Path, tables: Mapping[str, pd.DataFrame], style: Style, *, force: bool, marks: Marks | None = None
) -> None:
    """Write tables as the sheets of a workbook, the first one alone to any other file."""
    first = next(iter(tables.values()))
    with atomic_write(path, overwrite=force) as beside:
        if path.suffix.lower() == WORKBOOK:
            write_workbook(beside, tables, marks or {})
        elif path.suffix.lower() == ".parquet":
            first.to_parquet(beside, index=False)
        else:
            style.write(first, beside)


NEEDED, ALONG = "FFFFD966", "FFFFF2CC"  # fills: orange and a pale one
MOST_ROWS = 1_048_576
WIDEST = 60
_SAME_TIME = datetime(1980, 1, 1)


def write_workbook(path: Path, sheets: Mapping[str, pd.DataFrame], marks: Marks) -> None:
    """Write tables as sheets; `marks` has, for cells of the first, whether the change is incidental, and a note."""
    try:
        from openpyxl import Workbook
        from openpyxl.comments import Comment
        from openpyxl.styles import Font, PatternFill
        from openpyxl.utils import get_column_letter
    except ImportError:
        raise InputError(f"{path}: .xlsx files need openpyxl; pip install 'mcce[excel]', or write a CSV.") from None
    book = Workbook()
    book.properties.created = book.properties.modified = _SAME_TIME
    book.remove(book.active)
    for title, table in sheets.items():
        if len(table) >= MOST_ROWS:
            raise InputError(
                f"{path}: a sheet holds {MOST_ROWS - 1:,} rows, and there are {len(table):,}; write a CSV."
            )
        sheet = book.create_sheet(title)
        for j, name in enumerate(table.columns, 1):
            _put(sheet.cell(1, j), str(name)).font = Font(bold=True)
            values = table.iloc[:, j - 1].astype(object)
            for i, value in enumerate(values, 2):
                _put(sheet.cell(i, j), value)
            texts = [str(name), *map(str, values.head(100).dropna())]
            sheet.column_dimensions[get_column_letter(j)].width = min(max(map(len, texts)) + 2, WIDEST)
        sheet.freeze_panes = "A2"
    first = book.worksheets[0]
    fills = {along: PatternFill("solid", fgColor=ALONG if along else NEEDED) for along in (False, True)}
    for (row, column), (along, note) in marks.items():
        cell = first.cell(row + 2, column + 1)
        cell.fill = fills[along]
        cell.comment = Comment(_plain(note), "mcce")
    held = io.BytesIO()
    book.save(held)
    with zipfile.ZipFile(held) as made, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name in made.namelist():
            data = made.read(name)
            if name == "docProps/core.xml":
                data = _with_same_time(data)
            file.writestr(zipfile.ZipInfo(name, _SAME_TIME.timetuple()[:6]), data, zipfile.ZIP_DEFLATED)


def _put(cell: Any, value: Any) -> Any:
    """Write a value; text as text, times without their zone, which Excel does not support."""
    if value is None or (not isinstance(value, (list, tuple)) and pd.isna(value)):
        return cell
    if isinstance(value, (bool, np.bool_)):
        cell.value = bool(value)
    elif isinstance(value, (int, np.integer)) and abs(int(value)) < 10**15:
        cell.value = int(value)
    elif isinstance(value, (float, np.floating)) and np.isfinite(value):
        cell.value = float(value)
    elif isinstance(value, pd.Timestamp) and 1900 < value.year < 9999:
        cell.value = value.tz_localize(None).to_pydatetime()
    else:
        text = _plain(str(value))
        cell.value = text
        cell.data_type = "s"  # a text that begins with = is not a formula
        cell.quotePrefix = escape_formula(text) is not text  # also after editing the cell
    return cell


def _plain(text: str) -> str:
    """Return a text without control characters and no longer than a cell."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "\ufffd" for letter in text)[:32_000]


def _with_same_time(data: bytes) -> bytes:
    same = _SAME_TIME.strftime("%Y-%m-%dT%H:%M:%SZ").encode()
    return re.sub(rb"(<dcterms:modified[^>]*>)[^<]*(</dcterms:modified>)", rb"\g<1>" + same + rb"\g<2>", data)
