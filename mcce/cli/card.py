"""`mcce card EXPLAINER`: describe a saved explainer on one page."""

from __future__ import annotations

import argparse
from pathlib import Path

from mcce.cli.console import DONE, notify
from mcce.cli.fitting import load_explainer, read_values
from mcce.cli.outputs import check_outputs
from mcce.cli.tables import ReadOptions
from mcce.diagnostics.card import card


def run_card(arguments: argparse.Namespace) -> int:
    """Write or print the card."""
    if arguments.out is not None:
        check_outputs({"--out": Path(arguments.out)}, {"EXPLAINER": Path(arguments.explainer)}, force=arguments.force)
    explainer = load_explainer(arguments.explainer, arguments.model, arguments.trusted, role="EXPLAINER")
    rows = None
    if arguments.rows is not None:
        schema = explainer.generator_.schema_
        rows = read_values("--rows", arguments.rows, schema, ReadOptions())
    made = card(explainer, rows, title=arguments.title)
    if arguments.out is None:
        print(made, end="")
    else:
        made.save(arguments.out, overwrite=arguments.force)
        notify(f"wrote the card {arguments.out}")
    return DONE
