"""`mcce explore`: the explorer in a browser, for the people of a file.

If a search is running at the interrupt, the process is ended at once, since its threads would keep it alive.
"""

from __future__ import annotations

import argparse
import os
import sys
import webbrowser

import pandas as pd

from mcce.cli.console import DONE, notify
from mcce.cli.fitting import load_explainer, rows_like
from mcce.cli.tables import UNNAMED, ReadOptions, check_columns, name_rows, read_table
from mcce.exceptions import InputError, listing
from mcce.table import Schema


def run_explore(arguments: argparse.Namespace) -> int:
    """Serve the explorer until it is interrupted."""
    from mcce.explore import ExplorerSession
    from mcce.explore.server import serve

    explainer = load_explainer(arguments.explainer, arguments.model, arguments.trusted)
    schema = explainer.generator_.schema_
    people = _read_rows(schema, "PEOPLE", arguments.people, arguments)
    training = None if arguments.train is None else _read_rows(schema, "--train", arguments.train, arguments)
    session = ExplorerSession(explainer, people, training)

    def announce(address: str) -> None:
        notify(f"{len(session)} people; end with Ctrl-C. Anyone who knows this address can read their data:")
        print(address, flush=True)
        if not arguments.no_browser:
            webbrowser.open(address)

    if not serve(session, arguments.port, announce):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(DONE)
    return DONE


def _read_rows(schema: Schema, role: str, path: str, arguments: argparse.Namespace) -> pd.DataFrame:
    """Read the columns of a fitted table from a file."""
    rows = read_table(role, path, ReadOptions.from_arguments(arguments), arguments.sheet)
    rows = name_rows(rows, arguments.id if role == "PEOPLE" else None)
    check_columns("column", schema.names, rows.table, path)
    unused = [name for name in rows.table if name not in schema.names and name not in (arguments.id, UNNAMED)]
    if unused:
        notify(f"columns of {path} that are not used: {listing(unused)}")
    if not len(rows.table):
        raise InputError(f"{role} {path} has a header but no rows; give some.")
    return rows_like(rows, schema)
