"""The command line.

An entry point of the group `mcce.commands` adds a command: a function that takes argparse's subparsers, adds its parser
and sets `run` on it (`set_defaults(run=...)`). Only the command that is run is imported, after its arguments have been
parsed. Exit codes: 0 done; 2 bad arguments, files or models; 3 done, but some rows have no counterfactual; 4 records
are not verified; 130 interrupted. Results go to standard output, everything else to standard error.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence

from mcce import __version__
from mcce.base.registry import installed
from mcce.cli import parsers
from mcce.cli.console import BAD_INPUT, DONE, INTERRUPTED, SOME_UNEXPLAINED, notify
from mcce.cli.options import CommandParser
from mcce.exceptions import MCCEError
from mcce.wording import Message

__all__ = ["BAD_INPUT", "DONE", "INTERRUPTED", "SOME_UNEXPLAINED", "main", "make_parser"]

COMMANDS = {  # the function of `mcce.cli.parsers` that adds the parser, and its help
    "demo": ("add_demo", "explain refused loans, an example in a few seconds"),
    "notebook": ("add_notebook", 'write and open "Getting started" as a Jupyter notebook'),
    "fit": ("add_fit", "fit an explainer to a file and save it"),
    "explain": ("add_explain", "explain the decisions for the rows of a file"),
    "letters": ("add_letters", "write letters about the decisions for the rows of a file"),
    "explain-batches": (
        "add_explain_batches",
        "explain files of any size; interrupted runs can be resumed",
    ),
    "explore": ("add_explore", "explore the rows of a file one by one in a browser"),
    "verify": ("add_verify", "verify records of decisions: hashes, chain and answers"),
    "card": ("add_card", "describe an explainer on one page"),
    "inspect": ("add_inspect", "describe a file saved by mcce, and what it discloses"),
    "disclosure": ("add_disclosure", "measure what an explainer discloses of its training rows"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments, without the name of the program; by default those of the process.
    """
    with warnings.catch_warnings():
        printed: set[str] = set()

        def print_once(message: Warning | str, *_: object, **__: object) -> None:
            words = _format_message(message) if isinstance(message, Message) else str(message)
            if words not in printed:
                printed.add(words)
                notify(f"warning: {words}")

        warnings.showwarning = print_once
        # models trained on arrays also take frames
        warnings.filterwarnings("ignore", "X has feature names, but")
        typed = sys.argv[1:] if argv is None else list(argv)
        arguments = make_parser(typed[0] if typed else None).parse_args(typed)
        try:
            return int(arguments.run(arguments))
        except BrokenPipeError:  # the output is closed, as by `| head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return DONE
        except OSError as error:
            problem = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            notify(f"error: {problem}. Check the name, the folder and its permissions.")
        except MCCEError as error:
            notify(f"error: {_format_message(error)}")
        except KeyboardInterrupt:
            notify("interrupted; unfinished files were not written")
            return INTERRUPTED
        return BAD_INPUT


def make_parser(command: str | None = None) -> argparse.ArgumentParser:
    """Return the parser with the commands of mcce and of installed packages.

    Parameters
    ----------
    command : str or None
        The first argument: the only command whose arguments are added.
    """
    parser = argparse.ArgumentParser(
        prog="mcce",
        description="Explain a model's decisions by similar cases with the wanted decision.",
        epilog="`mcce demo` shows an example; `mcce explain --help` lists the options for your own files.",
    )
    parser.add_argument("--version", action="version", version=f"mcce {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=CommandParser)
    for name, (function, line) in COMMANDS.items():
        if name == command:
            getattr(parsers, function)(commands)
        else:
            commands.add_parser(name, help=line)
    for point in installed("mcce.commands"):
        try:
            if point.name in commands.choices:
                raise ValueError("the name is taken")
            if command in (point.name, "-h", "--help"):  # --help lists all commands
                point.load()(commands)
            else:
                commands.add_parser(point.name)
        except Exception as error:  # a broken plug-in must not stop other commands
            notify(f"warning: the command {point.name!r} ({point.value}) cannot be added: {error}")
    return parser


def _format_message(message: Message) -> str:
    if all(isinstance(part, str) for part in message.args):
        return str(message)
    from mcce.cli.wording import COMMAND_LINE  # imports the families of samplers and generators

    return message.format_for(COMMAND_LINE)
