"""What `mcce explain` writes: tables, a page, and which rows have no counterfactual."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from mcce.candidates.reasons import ALREADY
from mcce.cli.cells import CellKind, Spelling
from mcce.cli.console import DONE, SOME_UNEXPLAINED, say
from mcce.cli.inputs import Source
from mcce.cli.outputs import Outputs
from mcce.counterfactuals import Counterfactuals
from mcce.exceptions import listing
from mcce.files import written_whole
from mcce.report.binding import binding_lines

REASONS_SHOWN = 10


@dataclass(frozen=True)
class Spellings:
    """How cells were spelled in CSV files, to write them back alike.

    Attributes
    ----------
    columns : spelling of each feature; none if the training file is no CSV
    factuals, texts : values and cells of the rows to explain, named
    """

    columns: dict[Any, Spelling]
    factuals: pd.DataFrame
    texts: pd.DataFrame

    @classmethod
    def of(cls, train: Source, rows: Source, factuals: pd.DataFrame, kinds: Mapping[Any, CellKind]) -> Spellings:
        """Learn them from both files."""
        if not train.is_text:
            return cls({}, factuals, factuals)
        spelled = {name: Spelling.of(train.column(name), kind) for name, kind in kinds.items()}
        return cls(spelled, factuals, rows.table)

    def write(self, found: Counterfactuals) -> pd.DataFrame:
        """Return the table of all counterfactuals, its features as they are spelled in the files."""
        table = found.to_frame()
        ids = found.frame.index.get_level_values("id")
        own, texts = self.factuals.loc[ids], self.texts.loc[ids]
        return table.assign(**{n: s.write(table[n], own[n], texts[n]) for n, s in self.columns.items()})


def write(found: Counterfactuals, outputs: Outputs, spellings: Spellings, arguments: argparse.Namespace) -> int:
    """Write tables and page; say which rows have no counterfactual, and why."""
    if arguments.out is None:
        print(found)
    elif outputs.table is None:
        spellings.write(found).to_csv(sys.stdout, sep=arguments.sep, index=False)
    else:
        is_parquet = outputs.table.suffix == ".parquet"
        _write_table(found.to_frame() if is_parquet else spellings.write(found), outputs.table, outputs, arguments.sep)
        say(f"wrote {len(found)} rows to {outputs.table}")
    rest = outputs.unexplained
    if rest is not None and (len(found.unexplained) or rest.exists()):  # an earlier run's rows are not this one's
        _write_table(found.unexplained.reset_index(), rest, outputs, arguments.sep)
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
        page = str(found.to_html(intro=intro))
        with written_whole(outputs.page, overwrite=outputs.force) as beside:
            beside.write_text(page, encoding="utf-8")
        say(f"wrote the page {outputs.page}")
    return SOME_UNEXPLAINED if (found.unexplained["reason"] != ALREADY).any() else DONE


def _write_table(table: pd.DataFrame, path: Path, outputs: Outputs, sep: str) -> None:
    with written_whole(path, overwrite=outputs.force) as beside:
        if path.suffix == ".parquet":
            table.to_parquet(beside, index=False)
        else:
            table.to_csv(beside, sep=sep, index=False)
