"""`mcce explain-batches`: counterfactuals for files of any size, by an explainer that was fitted and saved.

1. Load the explainer.
2. Explain the files, batch by batch, into a folder (`mcce.batches`). Interrupted or killed, the same command goes on.
3. Say how many rows there were, and what became of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

from mcce.cli.console import DONE, SOME_UNEXPLAINED, name_list, path_name, positive_integer, say
from mcce.cli.models import load_joblib, load_model
from mcce.exceptions import InputError
from mcce.explainer import MCCE


def add_explain_batches(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    batches = commands.add_parser(
        "explain-batches",
        help="explain files of any size, and go on after an interruption",
        description="For each row of Parquet or CSV files find what would have to change for the wanted decision. "
        "Killed at any moment, the same command goes on; the result is that of an undisturbed run.",
        epilog="Exit codes: 0 done (rows that already have the wanted decision need nothing); 2 bad "
        "arguments, files or models; 3 done, but nothing was found for some rows, or some are bad; 130 interrupted.",
    )
    add = batches.add_argument
    add(
        "--explainer",
        required=True,
        type=path_name,
        metavar="FILE",
        help="a fitted mcce.MCCE: written by its save, with --model; or by joblib, which runs code when it is opened",
    )
    add(
        "--model",
        type=path_name,
        metavar="FILE",
        help="the model of an explainer written by save: .onnx, .skops, or joblib's",
    )
    add("--trusted", type=name_list, default=[], metavar="A,B", help="types of a .skops model that you trust")
    add(
        "--explain",
        required=True,
        type=path_name,
        metavar="PATH",
        help=".parquet, .csv or .csv.gz, or a folder of such files",
    )
    add(
        "--out",
        required=True,
        type=path_name,
        metavar="FOLDER",
        help="a new folder, or one that this command has begun",
    )
    add("--id", metavar="COLUMN", help="column that names the rows (row number, from 0)")
    add("--batch-size", type=positive_integer, default=10_000, metavar="N", help="rows of a part (%(default)s)")
    add("--jobs", type=int, metavar="N", help="processes; the result does not depend on it")
    add("--skip-bad", action="store_true", help="list bad rows in bad-rows.csv instead of stopping at the first")
    add("--missing", type=name_list, default=[], metavar="NA,?", help="cells of a CSV that mean a missing value")
    add("--n-samples", type=positive_integer, default=1000, metavar="K", help="rows drawn for each row (%(default)s)")
    add("--n-counterfactuals", type=positive_integer, default=1, metavar="N", help="for each row (%(default)s)")
    add("--sparse", action="store_true", help="change as few features as it takes")
    add("--floor", type=float, metavar="SHARE", help="with --sparse: the least plausibility (0.05)")
    add("--constraints", type=path_name, metavar="FILE", help="what may change and how: .toml or .json")
    batches.set_defaults(run=run_explain_batches)


def run_explain_batches(arguments: argparse.Namespace) -> int:
    """Explain the files; return 3 if some row that needs a counterfactual has none, or is bad."""
    settings: dict[str, Any] = {"sparse": arguments.sparse}
    if arguments.floor is not None:
        if not arguments.sparse:
            raise InputError(f"--floor {arguments.floor:g} goes with --sparse; add it, or leave --floor out.")
        settings["floor"] = arguments.floor
    if arguments.constraints is not None:
        settings["constraints"] = Path(arguments.constraints)
    explainer = load_explainer(arguments.explainer, arguments.model, arguments.trusted)
    result = explainer.explain_batches(
        arguments.explain,
        arguments.out,
        id=arguments.id,
        batch_size=arguments.batch_size,
        n_jobs=arguments.jobs,
        skip_bad=arguments.skip_bad,
        missing=arguments.missing,
        n_samples=arguments.n_samples,
        n_counterfactuals=arguments.n_counterfactuals,
        **settings,
    )
    totals = result.totals
    say(
        f"{totals['rows']} rows: {totals['explained']} explained, {totals['already']} already have the wanted "
        f"decision, nothing was found for {totals['unexplained']}, {totals['bad']} are bad; see {result.folder}"
    )
    return SOME_UNEXPLAINED if totals["unexplained"] or totals["bad"] else DONE


def load_explainer(path: str, model: str | None, trusted: Sequence[str] = ()) -> MCCE:
    """Load a fitted explainer: what `MCCE.save` wrote, with its model, or what joblib wrote, which runs code."""
    if not Path(path).is_file():
        raise InputError(f"--explainer {path}: there is no such file; check its name and folder.")
    if model is not None:
        return MCCE.load(path, load_model(model, trusted))
    if is_zipfile(path):
        raise InputError(f"--explainer {path} was written by MCCE.save, without its model; give that by --model.")
    loaded = load_joblib(f"--explainer {path}", path)
    if not isinstance(loaded, MCCE):
        raise InputError(f"--explainer {path} holds a {type(loaded).__name__}; it must be a fitted mcce.MCCE.")
    return loaded
