"""`mcce fit`: an explainer fitted to the rows of a file, saved, for `explain`, `letters`, `explain-batches`, `explore`.

1. Fit, as `mcce explain` does (`mcce.cli.fitting`).
2. Save the explainer with all that answers need, so that the training file is not needed any more, and without its
   model. What it says of the model's file is its name and checksum; a model that was trained here is written beside.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mcce.cli.checking import check_options, read_constraints
from mcce.cli.console import DONE, path_name, say
from mcce.cli.fitting import WITHOUT_CODE, about_model, fit_files
from mcce.cli.models import save_model
from mcce.cli.options import add_options, complete
from mcce.cli.outputs import check_outputs


def add_fit(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    fit = commands.add_parser(
        "fit",
        help="learn from a file once, for explaining later",
        description="Learn what rows look like, and what a model says of them, and save that: mcce fit --train "
        "customers.xlsx --model model.skops --fixed age,sex --save bank.mcce. The file holds values of training rows; "
        "mcce inspect says which.",
        epilog="Exit codes: 0 done; 2 bad arguments, files or models; 130 interrupted.",
    )
    fit.add_argument(
        "--config", default=argparse.SUPPRESS, metavar="FILE", help="a TOML file with any of these options"
    )
    add_options(fit, "fit")
    fit.add_argument("--save", required=True, type=path_name, metavar="FILE", help="where to: bank.mcce")
    fit.add_argument("--force", action="store_true", default=argparse.SUPPRESS, help="overwrite files that exist")
    fit.set_defaults(run=run_fit, refuse=fit.error, command="fit")


def run_fit(given: argparse.Namespace) -> int:
    """Fit an explainer and save it."""
    arguments = complete(given)
    if arguments.train is None:
        given.refuse("the following arguments are required: --train")
    arguments.explain = arguments.explainer = None
    check_options(arguments)
    target, model = Path(arguments.save), None if arguments.model is None else Path(arguments.model)
    read = {f"--{role}": getattr(arguments, role) for role in ("train", "model", "constraints", "config")}
    inputs = {role: Path(path) for role, path in read.items() if isinstance(path, str)}
    check_outputs({"--save": target}, inputs, force=arguments.force)
    job = fit_files(arguments, read_constraints(arguments))
    if model is None:
        model = save_model(job.explainer.model, target, force=arguments.force)
        say(f"wrote the model {model}")
    job.explainer.save(target, about=about_model(model, job.explainer.model, target))
    say(f"wrote {target}, which holds values of training rows; mcce inspect {target} says which")
    also = "" if model.suffix.lower() in WITHOUT_CODE and model.parent == target.parent else f" --model {model}"
    say(f"mcce letters {target} people.xlsx{also} --letters folder writes letters")
    return DONE
