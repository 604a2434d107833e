"""`mcce card EXPLAINER`: describe a saved explainer on one page."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mcce.cli import readers as read
from mcce.cli.console import DONE, say
from mcce.cli.fitting import load_explainer, rows_like
from mcce.cli.outputs import check_outputs
from mcce.cli.tables import ReadOptions, check_columns, read_table
from mcce.diagnostics.card import card


def add_card(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    parser = commands.add_parser(
        "card",
        description="Describe a saved explainer in the form of a model card: data, fixed features, constraints, "
        "conditionals, plausibility, privacy and limits; with held-out rows, measured quality.",
        epilog="Exit codes: 0 done; 2 bad arguments, files or models.",
    )
    parser.add_argument("explainer", type=read.path, metavar="EXPLAINER", help="written by mcce fit or MCCE.save")
    parser.add_argument("--model", type=read.path, metavar="FILE", help="its model, if it is not beside the explainer")
    parser.add_argument("--trusted", type=read.names, default=[], metavar="A,B", help="types a .skops file may hold")
    parser.add_argument("--rows", type=read.path, metavar="FILE", help="held-out rows")
    parser.add_argument("--title", default="Explainer card", metavar="TEXT", help="title of the page (%(default)s)")
    parser.add_argument("--out", type=read.path, metavar="FILE", help=".html or .md (Markdown on standard output)")
    parser.add_argument("--force", action="store_true", help="overwrite the file of --out")
    parser.set_defaults(run=run_card)


def run_card(arguments: argparse.Namespace) -> int:
    """Write or print the card."""
    if arguments.out is not None:
        check_outputs({"--out": Path(arguments.out)}, {"EXPLAINER": Path(arguments.explainer)}, force=arguments.force)
    explainer = load_explainer(arguments.explainer, arguments.model, arguments.trusted, role="EXPLAINER")
    rows = None
    if arguments.rows is not None:
        schema = explainer.generator_.schema_
        table = read_table("--rows", arguments.rows, ReadOptions())
        check_columns("the feature", schema.names, table.table, table.path)
        rows = rows_like(table, schema)
    made = card(explainer, rows, title=arguments.title)
    if arguments.out is None:
        print(made, end="")
    else:
        made.save(arguments.out, overwrite=arguments.force)
        say(f"wrote the card {arguments.out}")
    return DONE
