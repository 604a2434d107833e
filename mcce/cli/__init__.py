"""The command line.

Commands are `demo`, `fit`, `explain`, `letters`, `explain-batches`, `explore`, `verify`, `card`, `inspect` and
`disclosure`. An entry point of the group `mcce.commands` adds a command: a function that takes argparse's subparsers,
adds its parser and sets `run` on it (`set_defaults(run=...)`). Exit codes: 0 done; 2 bad arguments, files or models;
3 done, but some rows have no counterfactual; 4 records are not verified; 130 interrupted. Results go to standard
output, everything else to standard error.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence

from mcce import __version__
from mcce.base.registry import installed
from mcce.cli.batches import add_explain_batches
from mcce.cli.card import add_card
from mcce.cli.console import BAD_INPUT, DONE, INTERRUPTED, SOME_UNEXPLAINED, say
from mcce.cli.demo import add_demo, run_demo
from mcce.cli.disclosure import add_disclosure
from mcce.cli.explain import add_explain, add_fit, add_letters, run_explain
from mcce.cli.explore import add_explore
from mcce.cli.inspect import add_inspect
from mcce.cli.verify import add_verify
from mcce.cli.wording import COMMAND_LINE
from mcce.exceptions import MCCEError
from mcce.wording import Message

__all__ = ["BAD_INPUT", "DONE", "INTERRUPTED", "SOME_UNEXPLAINED", "main", "make_parser", "run_demo", "run_explain"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments, without the name of the program; by default those of the process.
    """
    with warnings.catch_warnings():
        told: set[str] = set()

        def tell(message: Warning | str, *_: object, **__: object) -> None:
            words = message.worded(COMMAND_LINE) if isinstance(message, Message) else str(message)
            if words not in told:
                told.add(words)
                say(f"warning: {words}")

        warnings.showwarning = tell
        # A model trained on an array takes frames too.
        warnings.filterwarnings("ignore", "X has feature names, but")
        arguments = make_parser().parse_args(argv)
        try:
            return int(arguments.run(arguments))
        except BrokenPipeError:  # the reader of our output, as in `| head`, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return DONE
        except OSError as error:
            problem = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            say(f"error: {problem}. Check the name, the folder and its permissions.")
        except MCCEError as error:
            say(f"error: {error.worded(COMMAND_LINE)}")
        except KeyboardInterrupt:
            say("interrupted; a file that was not finished is as it was before")
            return INTERRUPTED
        return BAD_INPUT


def make_parser() -> argparse.ArgumentParser:
    """Return the parser with our commands and those of installed packages."""
    parser = argparse.ArgumentParser(
        prog="mcce",
        description="Explain a model's decision by similar cases that it would have decided as wanted.",
        epilog="`mcce demo` shows what it does; `mcce explain --help` tells how to use it on your own files.",
    )
    parser.add_argument("--version", action="version", version=f"mcce {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add_demo(commands)
    add_fit(commands)
    add_explain(commands)
    add_letters(commands)
    add_explain_batches(commands)
    add_explore(commands)
    add_verify(commands)
    add_card(commands)
    add_inspect(commands)
    add_disclosure(commands)
    for point in installed("mcce.commands"):
        try:
            if point.name in commands.choices:
                raise ValueError("the name is taken")
            point.load()(commands)
        except Exception as error:  # a broken plug-in must not take the other commands along
            say(f"warning: the command {point.name!r} ({point.value}) cannot be added: {error}")
    return parser
