"""`mcce verify FOLDER`: check the hashes and the chain of records; with an explainer, reproduce the answers."""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path
from typing import Any

from mcce.cli import readers as read
from mcce.cli.console import DONE, NOT_VERIFIED, harmless
from mcce.cli.fitting import files_of, load_explainer
from mcce.exceptions import InputError
from mcce.records import verify

LAST = (
    "last record: {}\n"
    "Keep this hash where others cannot change it: a forged chain with a new head has valid hashes as well."
)


def add_verify(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    parser = commands.add_parser(
        "verify",
        description="Check the records that mcce explain --records wrote: each hash, and that none was changed, "
        "removed, repeated or moved. With the explainer, reproduce the answers and compare them byte for byte.",
        epilog="Exit codes: 0 no fault; 2 bad arguments, files or models; 4 faults.",
    )
    parser.add_argument("folder", type=read.path, metavar="FOLDER", help="the folder of records")
    parser.add_argument("--explainer", type=read.path, metavar="FILE", help="the explainer, to reproduce the answers")
    parser.add_argument("--model", type=read.path, metavar="FILE", help="its model, if it is not beside the explainer")
    parser.add_argument(
        "--trusted", type=read.names, default=[], metavar="A,B", help="types that a .skops file may hold"
    )
    parser.set_defaults(run=run_verify)


def run_verify(arguments: argparse.Namespace) -> int:
    """Print the findings; return 4 if there is a fault."""
    if arguments.explainer is None and arguments.model is not None:
        raise InputError("--model goes with --explainer; add it, or leave --model out.")
    explainer, hashes = None, {}
    if arguments.explainer is not None:
        explainer = load_explainer(arguments.explainer, arguments.model, arguments.trusted)
        files = files_of(arguments.explainer, arguments.model)
        hashes = {part: hashlib.sha256(Path(path).read_bytes()).hexdigest() for part, path in files.items()}
    checked = verify(arguments.folder, explainer, files=hashes)
    print(harmless(f"{checked}\n{LAST.format(checked.last)}"))
    return DONE if checked else NOT_VERIFIED
