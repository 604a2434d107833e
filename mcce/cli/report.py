"""What `mcce explain` writes: tables, a page, the job as run, and which rows have no counterfactual."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from mcce.candidates.reasons import ALREADY
from mcce.cli.cells import Reading
from mcce.cli.console import DONE, SOME_UNEXPLAINED, say
from mcce.cli.inputs import Source
from mcce.cli.job import job_text
from mcce.cli.outputs import Outputs
from mcce.cli.spelling import Spelling
from mcce.counterfactuals import Counterfactuals
from mcce.exceptions import listing
from mcce.files import written_whole
from mcce.report.binding import binding_lines
from mcce.table.spreadsheet import without_formulas

REASONS_SHOWN = 10


@dataclass(frozen=True)
class Style:
    """How a CSV is written: separator, decimal mark and encoding, like the CSV that was read."""

    sep: str
    decimal: str
    encoding: str
    spreadsheet_safe: bool = False

    @classmethod
    def of(cls, source: Source, decimal: str) -> Style:
        """Write as a file was; one that is not plain UTF-8 as UTF-8 with a mark, by which Excel knows it."""
        return cls(source.sep or ",", decimal, "utf-8-sig" if source.encoding not in ("", "utf-8") else "utf-8")

    def write(self, table: pd.DataFrame, path: Any, **options: Any) -> None:
        """Write a table."""
        table = without_formulas(table) if self.spreadsheet_safe else table
        table.to_csv(path, sep=self.sep, decimal=self.decimal, index=False, **options)


@dataclass(frozen=True)
class Spellings:
    """How cells were spelled in CSV files, to write them back alike.

    Attributes
    ----------
    columns : spelling of each feature; none if the training file is a Parquet file
    factuals, texts : values and cells of the rows to explain, named
    style : how tables are written
    """

    columns: dict[Any, Spelling]
    factuals: pd.DataFrame
    texts: pd.DataFrame
    style: Style

    @classmethod
    def of(
        cls, train: Source, rows: Source, factuals: pd.DataFrame, both: Mapping[Any, tuple[Reading, Reading]]
    ) -> Spellings:
        """Learn them from both files; `both` says how each column is read in them."""
        commas = any(own.kind == "number" and own.mark == "," for own, _ in both.values())
        style = Style.of(train if train.sep else rows, "," if commas else ".")
        spelled = {
            name: Spelling.of(train.column(name), own, other) for name, (own, other) in both.items() if not own.native
        }
        return cls(spelled, factuals, rows.table, style)

    def write(self, found: Counterfactuals) -> pd.DataFrame:
        """Return the table of all counterfactuals, its features as they are spelled in the files."""
        table = found.to_frame()
        ids = found.frame.index.get_level_values("id")
        own, texts = self.factuals.loc[ids], self.texts.loc[ids]
        return table.assign(**{n: s.write(table[n], own[n], texts[n]) for n, s in self.columns.items()})


def write(found: Counterfactuals, outputs: Outputs, spellings: Spellings, arguments: argparse.Namespace) -> int:
    """Write tables and page; say which rows have no counterfactual, and why."""
    style = replace(spellings.style, spreadsheet_safe=arguments.spreadsheet_safe)
    if arguments.out is None:
        print(found)
    elif outputs.table is None:
        style.write(spellings.write(found), sys.stdout)
    else:
        is_parquet = outputs.table.suffix == ".parquet"
        _write_table(found.to_frame() if is_parquet else spellings.write(found), outputs.table, outputs, style)
        say(f"wrote {len(found)} rows to {outputs.table}")
    rest = outputs.unexplained
    if rest is not None and (len(found.unexplained) or rest.exists()):  # an earlier run's rows are not this one's
        _write_table(found.unexplained.reset_index(), rest, outputs, style)
        say(f"wrote {len(found.unexplained)} rows without a counterfactual to {rest}")
    for line in binding_lines(found.constraints):
        say(f"constraint {line}")
    reasons = list(found.unexplained.groupby("reason", sort=False).groups.items())
    for reason, ids in reasons[:REASONS_SHOWN]:
        say(f"not explained, {reason}: {listing(ids)}")
    if len(reasons) > REASONS_SHOWN:
        say(f"and {len(reasons) - REASONS_SHOWN} more reasons")
    if outputs.page is not None:
        intro = "What would have led to the wanted decision: the first rows in words and pictures, then all of them."
        page = str(replace(found, timings={}).to_html(intro=intro))  # a job that is repeated writes the same page
        with written_whole(outputs.page, overwrite=outputs.force) as beside:
            beside.write_text(page, encoding="utf-8")
        say(f"wrote the page {outputs.page}")
    if outputs.letters is not None:
        _write_letters(found, outputs.letters, force=outputs.force)
    if outputs.job is not None:
        with written_whole(outputs.job, overwrite=outputs.force) as beside:
            beside.write_text(job_text(arguments, outputs.job), encoding="utf-8")
        say(f"wrote the job as run, {outputs.job}; mcce explain --config {outputs.job} repeats it")
    return SOME_UNEXPLAINED if (found.unexplained["reason"] != ALREADY).any() else DONE


def _write_letters(found: Counterfactuals, folder: Path, *, force: bool) -> None:
    """Write a letter about each row, under its name as far as files can be called so."""
    folder.mkdir(exist_ok=True)
    taken: set[str] = set()
    for place, who in enumerate(found.factuals.index, 1):
        name = re.sub(r"[^\w-]+", "_", str(who))
        name = name if name not in taken else f"{name}-{place}"
        taken.add(name)
        with written_whole(folder / f"{name}.html", overwrite=force) as beside:
            beside.write_text(found.letter(who, html=True), encoding="utf-8")
    say(f"wrote {len(found.factuals)} letters to {folder}")


def _write_table(table: pd.DataFrame, path: Path, outputs: Outputs, style: Style) -> None:
    with written_whole(path, overwrite=outputs.force) as beside:
        if path.suffix == ".parquet":
            table.to_parquet(beside, index=False)
        else:
            style.write(table, beside, encoding=style.encoding)
