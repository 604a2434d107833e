"""`mcce disclosure`: attack a saved explainer and report what its answers disclose (`mcce.diagnostics.disclosure`)."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mcce.cli.console import DONE
from mcce.cli.fitting import load_explainer, read_values
from mcce.cli.tables import ReadOptions
from mcce.exceptions import InputError
from mcce.table.spreadsheet import escape_formulas


def run_disclosure(arguments: argparse.Namespace) -> int:
    """Attack the explainer, and print the findings."""
    from mcce.diagnostics.disclosure_risk.disclosure import RELEASES, disclosure

    out = None if arguments.out is None else Path(arguments.out)
    if out is not None and out.suffix != ".csv":
        raise InputError(f"--out {out} does not end in .csv; the table is written as CSV. Rename it.")
    if out is not None and out.exists():
        raise InputError(f"--out {out} exists; remove it, or name another file.")
    explainer = load_explainer(arguments.explainer, arguments.model, arguments.trusted)
    schema, options = explainer.generator_.schema_, ReadOptions(missing=arguments.missing)
    settings: dict[str, Any] = {"n_samples": arguments.n_samples}
    if arguments.constraints is not None:
        settings["constraints"] = Path(arguments.constraints)
    found = disclosure(
        explainer,
        read_values("--train", arguments.train, schema, options),
        holdout=read_values("--holdout", arguments.holdout, schema, options),
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
