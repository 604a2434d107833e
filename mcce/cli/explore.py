"""`mcce explore`: the explorer in a browser, for the people of a file.

If a search is running at the interrupt, the process is ended at once, since its threads would keep it alive.
"""

from __future__ import annotations

import argparse
import os
import sys
import webbrowser

from mcce.cli.console import DONE, notify
from mcce.cli.fitting import load_explainer, read_like, read_values, values_of
from mcce.cli.tables import ReadOptions, name_rows


def run_explore(arguments: argparse.Namespace) -> int:
    """Serve the explorer until it is interrupted."""
    from mcce.explore import ExplorerSession
    from mcce.explore.server import serve

    explainer = load_explainer(arguments.explainer, arguments.model, arguments.trusted)
    schema = explainer.generator_.schema_
    options = ReadOptions.from_arguments(arguments)
    rows = read_like("PEOPLE", arguments.people, schema, options, arguments.sheet, arguments.id)
    people, training = values_of(name_rows(rows, arguments.id), schema), None
    if arguments.train is not None:
        training = read_values("--train", arguments.train, schema, options, arguments.sheet)
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
