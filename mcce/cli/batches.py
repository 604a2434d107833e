"""`mcce explain-batches`: counterfactuals for files of any size, by a saved explainer.

Parquet and plain CSV (commas, points, UTF-8) are read batch by batch. Workbooks and other text files are read as a
whole, because their marks and formats are detected from all cells. The same command resumes an interrupted run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mcce.batches import BatchResult, Letters
from mcce.batches.folder import UNLETTERED
from mcce.cli.checking import demands, explain_options, given_names, named_by_text, read_constraints
from mcce.cli.console import DONE, SOME_UNEXPLAINED, notify
from mcce.cli.fitting import kept_fixed, load_explainer, read_like, values_of
from mcce.cli.options import check_letters, complete, is_given
from mcce.cli.outputs import Style, check_outputs, print_unlettered, write_tables
from mcce.cli.tables import WORKBOOKS, ReadOptions, check_columns
from mcce.constraints import Constraint
from mcce.exceptions import InputError
from mcce.table import Schema

STREAMED = (".parquet", ".pq")
PLAIN = (".csv", ".csv.gz")
TEXTS = (*PLAIN, ".tsv", ".txt", *WORKBOOKS)
IN_LETTERS = ("labels", "units", "formats", "in_words")  # options that affect letters only
LOOKED_AT = 1 << 16  # bytes by which a plain CSV is detected
READ = ("sep", "decimal", "thousands", "encoding", "date_format", "sheet")  # options that exclude a plain CSV


def run_explain_batches(given: argparse.Namespace) -> int:
    """Explain the files; return 3 if a row that needs a counterfactual has none, or is bad."""
    arguments = complete(given)
    settings = explain_options(arguments)
    letters = _letters(arguments)
    if arguments.table is not None:
        check_outputs({"--table": Path(arguments.table)}, {}, force=arguments.force)
    elif not arguments.spreadsheet_safe:
        raise InputError("--no-spreadsheet-safe goes with --table FILE.csv; add it, or leave the option out.")
    constraints: list[Constraint] = read_constraints(arguments)
    explainer = load_explainer(arguments.explainer, arguments.model, arguments.trusted)
    schema = explainer.generator_.schema_
    constraints += [*kept_fixed(explainer, arguments), *demands(arguments)]
    source: Any = arguments.explain
    paths = _files(Path(source))
    if not all(_is_streamed(path, arguments) for path in paths):
        source = list(_frames(paths, schema, arguments))
        constraints = named_by_text(constraints) if arguments.id is not None else constraints
    if constraints:
        settings["constraints"] = constraints
    result = explainer.explain_batches(
        source,
        arguments.out,
        recourse=arguments.recourse,
        id=arguments.id,
        batch_size=arguments.batch_size,
        n_jobs=arguments.n_jobs,
        skip_bad=arguments.skip_bad,
        missing=arguments.missing,
        letters=letters,
        records=arguments.records,
        progress=None if sys.stderr.isatty() else "log",
        **settings,
    )
    totals = result.totals
    notify(
        f"{totals['rows']} rows: {totals['explained']} explained, {totals['already']} already have the wanted "
        f"decision, nothing was found for {totals['unexplained']}, {totals['bad']} are bad; see {result.folder}"
    )
    if letters is not None:
        _print_letters(result, letters)
    if arguments.records is not None:
        notify(
            f"wrote {totals['factuals']} records to {arguments.records}; mcce verify {arguments.records} checks them"
        )
    if arguments.table is not None:
        found, others = (pd.read_parquet(result.folder / name) for name in ("counterfactuals", "unexplained"))
        tables, style = {"answers": found, "no answer": others}, Style(arguments.spreadsheet_safe)
        write_tables(Path(arguments.table), tables, style, force=arguments.force)
        notify(f"wrote {len(found)} rows to {arguments.table}")
    return SOME_UNEXPLAINED if totals["unexplained"] or totals["bad"] else DONE


def _letters(arguments: argparse.Namespace) -> Letters | None:
    """Return the settings of the letters, None without --letters."""
    check_letters(arguments, IN_LETTERS)
    if arguments.letters is None:
        return None
    return Letters(
        arguments.letters,
        language=arguments.language,
        texts=arguments.texts,
        all=arguments.all,
        reasons=bool(arguments.reasons),
        names=given_names(arguments),
        decision=arguments.in_words,
    )


def _print_letters(result: BatchResult, letters: Letters) -> None:
    notify(f"wrote {result.totals['letters']} letters to {letters.folder}")
    if result.totals["already"]:
        notify(f"no letter for {result.totals['already']} rows that the model accepts")
    without = [each for part in result.manifest["parts"] for each in part["unlettered"]]
    print_unlettered(pd.Series([each["why"] for each in without], [each["id"] for each in without], dtype=object))
    if without:
        notify(f"all of them are in {result.folder / UNLETTERED}")


def _files(path: Path) -> list[Path]:
    """Return the file, or the readable files of a folder in order of their names."""
    if not path.is_dir():
        return [path]
    return sorted(each for each in path.iterdir() if each.name.lower().endswith((*STREAMED, *TEXTS)))


def _is_streamed(path: Path, arguments: argparse.Namespace) -> bool:
    """Return whether a file is read batch by batch."""
    name = path.name.lower()
    if name.endswith(STREAMED):
        return True
    if not name.endswith(PLAIN):
        return not name.endswith(TEXTS)  # reading it raises
    if any(is_given(arguments, option) for option in READ):
        return False
    if name.endswith(".gz"):
        return True
    with path.open("rb") as file:
        head = file.read(LOOKED_AT)
    first = head.partition(b"\n")[0]
    try:
        head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.end < len(head) - 4:  # not a truncated character
            return b"," in first
    return b"," in first or not any(mark in first for mark in (b";", b"\t", b"|"))


def _frames(paths: Sequence[Path], schema: Schema, arguments: argparse.Namespace) -> Iterator[pd.DataFrame]:
    """Read files as `mcce explain` does; raise on a cell that cannot be read."""
    options = ReadOptions.from_arguments(arguments)
    for path in paths:
        rows = read_like("--explain", str(path), schema, options, arguments.sheet.get("explain"), arguments.id)
        frame = values_of(rows, schema)
        if arguments.id is not None:
            check_columns("--id", [arguments.id], rows.table, rows.path)
            frame[arguments.id] = rows.table[arguments.id].map(str, na_action="ignore")
        frame.attrs["source"] = str(path)
        yield frame
