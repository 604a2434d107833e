"""`mcce disclosure`: attack a saved explainer and report what its answers disclose (`mcce.diagnostics.disclosure`)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mcce.batches.sources import open_source
from mcce.cli.batches import load_explainer
from mcce.cli.console import DONE
from mcce.exceptions import InputError
from mcce.table import Schema
from mcce.table.spreadsheet import escape_formulas

AT_ONCE = 10_000  # rows of a file


def run_disclosure(arguments: argparse.Namespace) -> int:
    """Attack the explainer, and print the findings."""
    from mcce.diagnostics.disclosure_risk.disclosure import RELEASES, disclosure

    out = None if arguments.out is None else Path(arguments.out)
    if out is not None and out.suffix != ".csv":
        raise InputError(f"--out {out} does not end in .csv; the table is written as CSV. Rename it.")
    if out is not None and out.exists():
        raise InputError(f"--out {out} exists; remove it, or name another file.")
    explainer = load_explainer(arguments.explainer, arguments.model, arguments.trusted)
    schema = explainer.generator_.schema_
    settings: dict[str, Any] = {"n_samples": arguments.n_samples}
    if arguments.constraints is not None:
        settings["constraints"] = Path(arguments.constraints)
    found = disclosure(
        explainer,
        read_rows("--train", arguments.train, schema, arguments.missing),
        holdout=read_rows("--holdout", arguments.holdout, schema, arguments.missing),
        keys=arguments.keys,
        targets=arguments.targets,
        k=arguments.k,
        releases=RELEASES if arguments.releases is None else arguments.releases,
        n_attacks=arguments.n_attacks,
        max_factuals=arguments.max_factuals,
        **settings,
    )
    print(found)
    if out is not None:
        table = found.table.assign(sentence=found.sentences).reset_index()
        escape_formulas(table).to_csv(out, index=False)
    return DONE


def read_rows(option: str, path: str, schema: Schema, missing: Sequence[str]) -> pd.DataFrame:
    """Read the training columns of a file; raise on a row that cannot be read."""
    parts = []
    for part in open_source(path, schema, None, missing).parts(AT_ONCE, lambda _: False):
        for bad in part.rows.bad:
            raise InputError(f"{option} {part.where}, {bad.place}: {bad.problem}; correct it there.")
        parts.append(part.factuals(None))
    if not parts:
        raise InputError(f"{option} {path} has no rows; give a file with some.")
    return pd.concat(parts)
