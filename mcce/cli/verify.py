"""`mcce verify FOLDER`: check the hashes and the chain of records; with an explainer, reproduce the answers."""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

from mcce.cli.console import DONE, NOT_VERIFIED, escape_controls
from mcce.cli.fitting import files_of, load_explainer
from mcce.exceptions import InputError
from mcce.records import verify

LAST = (
    "last record: {}\n"
    "Keep this hash where others cannot change it: a forged chain with a new head has valid hashes as well."
)


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
    print(escape_controls(f"{checked}\n{LAST.format(checked.last)}"))
    return DONE if checked else NOT_VERIFIED
