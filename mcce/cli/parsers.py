"""The parsers of all commands. The module that runs a command is imported only once its arguments have been parsed."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import Any

from mcce.cli import readers as read
from mcce.cli.options import COMMANDS, OPTIONS, add_options, check_exist, check_needed

CODES = (
    "Exit codes: 0 done (rows that already have the wanted decision need nothing); 2 bad arguments, files or models; "
    "3 done, but nothing was found for some rows; 130 interrupted. Defaults are in parentheses."
)
EXPLAINER = "a fitted explainer, written by mcce fit or MCCE.save"
FILES = "a fitted explainer (.mcce) and the rows to explain, instead of --explainer and --explain"
EXPLORED = ("model", "trusted", "id", "missing", "sep", "decimal", "thousands", "date_format", "encoding")


def _imported(place: str, *files: str) -> Callable[[argparse.Namespace], int]:
    """Return a function that imports a "module:function" when it is called, and calls it.

    `files` are the arguments that name its input files, in capitals those without an option.
    """

    def run(arguments: argparse.Namespace) -> int:
        if "command" in arguments:
            check_needed(arguments)
        check_exist({role: getattr(arguments, role.lower().lstrip("-")) for role in files})
        module, _, function = place.partition(":")
        return int(getattr(import_module(module), function)(arguments))

    return run


def add_demo(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    about = "Explain refused loans: the example of the paper's introduction."
    demo = commands.add_parser("demo", description=about)
    demo.add_argument(
        "--out", type=read.path, default=".", metavar="DIR", help="where to write picture and page (here)"
    )
    demo.add_argument("--random-state", type=int, default=1, metavar="N", help="seed of the random draws (%(default)s)")
    demo.add_argument(
        "--factuals", type=read.count, default=500, metavar="N", help="how many refusals to explain (%(default)s)"
    )
    demo.add_argument("--force", action="store_true", help="overwrite picture and page of an earlier run")
    demo.set_defaults(run=_imported("mcce.cli.demo:run_demo"))


def add_fit(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    fit = commands.add_parser(
        "fit",
        description="Fit an explainer to training rows and a model, and save it: mcce fit --train "
        "customers.xlsx --model model.skops --fixed age,sex --save bank.mcce. The file holds values of training rows; "
        "mcce inspect lists them.",
        epilog="Exit codes: 0 done; 2 bad arguments, files or models; 130 interrupted.",
    )
    _add_arguments(fit, "fit")
    fit.add_argument("--save", required=True, type=read.path, metavar="FILE", help="the file to write, as bank.mcce")
    fit.set_defaults(run=_imported("mcce.cli.explain:run_fit"), refuse=fit.error, command="fit")


def add_explain(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    explain = commands.add_parser(
        "explain",
        description="For each row of a file find the changes that lead to the wanted decision, by a training file "
        "and a model, or by an explainer saved by mcce fit.",
        epilog=CODES,
    )
    _add_arguments(explain, "explain")
    explain.set_defaults(run=_imported("mcce.cli.explain:run_explain"), refuse=explain.error, command="explain")


def add_letters(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    letters = commands.add_parser(
        "letters",
        description="For each person of a file who would be refused write a letter that says what would have led to "
        "another decision: mcce letters bank.mcce people.xlsx --letters folder --language nb. Answers that need a "
        "review first get no letter and are listed.",
        epilog=CODES,
    )
    _add_arguments(letters, "letters")
    letters.add_argument(
        "--show-texts",
        default=argparse.SUPPRESS,
        metavar="CODE",
        help="print the texts of a language, as a template for --texts, and exit",
    )
    letters.set_defaults(run=_imported("mcce.cli.explain:run_letters"), refuse=letters.error, command="letters")


def _add_arguments(parser: argparse.ArgumentParser, command: str) -> None:
    if "rows" in COMMANDS[command]:
        parser.add_argument("files", nargs="*", metavar="FILE", help=FILES)
    parser.add_argument(
        "--config",
        default=argparse.SUPPRESS,
        metavar="FILE",
        help="a TOML file with any of these options; the command line overrides it",
    )
    add_options(parser, command)
    parser.add_argument("--force", action="store_true", default=argparse.SUPPRESS, help="overwrite files that exist")


def add_explain_batches(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    batches = commands.add_parser(
        "explain-batches",
        description="For each row of Parquet, CSV or Excel files find the changes that lead to the wanted decision. "
        "The same command resumes an interrupted run, with the same result as an uninterrupted one.",
        epilog="Exit codes: 0 done (rows that already have the wanted decision need nothing); 2 bad "
        "arguments, files or models; 3 done, but nothing was found for some rows, or some are bad; 130 interrupted.",
    )
    batches.add_argument("files", nargs="*", metavar="FILE", help="explainer and rows, as --explainer and --explain")
    add_options(batches, "explain-batches")
    add = batches.add_argument
    add("--out", required=True, type=read.path, metavar="FOLDER", help="a new folder, or that of the run to resume")
    add("--batch-size", type=read.count, default=10_000, metavar="N", help="rows per part (%(default)s)")
    add("--skip-bad", action="store_true", help="list bad rows in bad-rows.csv; otherwise the first is an error")
    add(
        "--table",
        type=read.path,
        metavar="FILE",
        help="also write all counterfactuals as one .csv, .csv.gz, .xlsx or .parquet at the end",
    )
    add("--force", action="store_true", help="overwrite the file of --table")
    batches.set_defaults(
        run=_imported("mcce.cli.batches:run_explain_batches"), refuse=batches.error, command="explain-batches"
    )


def add_explore(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    explore = commands.add_parser(
        "explore",
        description="Open a local page with the people of a file: plans for each within adjustable limits and costs, "
        "values entered by hand, and letters. Ends with Ctrl-C.",
        epilog="Exit codes: 0 ended; 2 bad arguments, files or models. Needs pip install 'mcce[explore]'.",
    )
    add = explore.add_argument
    add("explainer", type=read.path, metavar="EXPLAINER", help=EXPLAINER)
    add("people", type=read.path, metavar="PEOPLE", help="their rows: .csv, .csv.gz, .tsv, .xlsx or .parquet")
    for option in OPTIONS:
        if option.name in EXPLORED:
            about = option.help.replace("%", "%%").replace("--explain", "PEOPLE")
            add(
                option.flag,
                dest=option.name,
                type=option.read,
                default=option.default,
                metavar=option.metavar,
                help=about,
            )
    add("--sheet", metavar="NAME", help="sheet of a workbook that has several")
    add("--train", type=read.path, metavar="FILE", help="the training rows, for the costs in the second tab")
    add("--port", type=int, default=0, metavar="N", help="local port (a free one)")
    add("--no-browser", action="store_true", help="print the address without opening a browser")
    explore.set_defaults(run=_imported("mcce.cli.explore:run_explore", "EXPLAINER", "PEOPLE", "--train", "--model"))


def _add_model(parser: argparse.ArgumentParser) -> None:
    """Add the options for the model of an explainer."""
    parser.add_argument("--model", type=read.path, metavar="FILE", help="its model, if it is not beside the explainer")
    parser.add_argument(
        "--trusted", type=read.names, default=[], metavar="A,B", help="types that a .skops file may hold"
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
    _add_model(parser)
    parser.set_defaults(run=_imported("mcce.cli.verify:run_verify", "FOLDER", "--explainer", "--model"))


def add_card(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    parser = commands.add_parser(
        "card",
        description="Describe a saved explainer in the form of a model card: data, fixed features, constraints, "
        "conditionals, plausibility, privacy and limits; with held-out rows, measured quality.",
        epilog="Exit codes: 0 done; 2 bad arguments, files or models.",
    )
    parser.add_argument("explainer", type=read.path, metavar="EXPLAINER", help=EXPLAINER)
    _add_model(parser)
    parser.add_argument("--rows", type=read.path, metavar="FILE", help="held-out rows")
    parser.add_argument("--title", default="Explainer card", metavar="TEXT", help="title of the page (%(default)s)")
    parser.add_argument("--out", type=read.path, metavar="FILE", help=".html or .md (Markdown on standard output)")
    parser.add_argument("--force", action="store_true", help="overwrite the file of --out")
    parser.set_defaults(run=_imported("mcce.cli.card:run_card", "EXPLAINER", "--model", "--rows"))


def add_inspect(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    parser = commands.add_parser(
        "inspect",
        description="Describe a file written by `save`, and what it discloses of the training data. No code is run.",
    )
    parser.add_argument(
        "file",
        type=read.path,
        metavar="FILE",
        help="a file that a generator (such as ChainModel), MCCE or Counterfactuals saved",
    )
    parser.add_argument("--json", action="store_true", help="everything as JSON, level names in full")
    parser.set_defaults(run=_imported("mcce.cli.inspect:run_inspect", "FILE"))


def add_disclosure(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    parser = commands.add_parser(
        "disclosure",
        description="Attack a fitted explainer by its answers, with its training rows and other rows of the same "
        "population, and report the disclosure: copies, keys, singling out, membership.",
    )
    add = parser.add_argument
    add("--explainer", required=True, type=read.path, metavar="FILE", help=EXPLAINER)
    _add_model(parser)
    add("--train", required=True, type=read.path, metavar="FILE", help="the training rows: .csv, .xlsx or .parquet")
    add("--holdout", required=True, type=read.path, metavar="FILE", help="rows that were not used for fitting")
    add("--missing", type=read.names, default=[], metavar="NA,?", help="cells that mean a missing value")
    add("--keys", type=read.names, metavar="A,B", help="columns that an attacker knows (the fixed features)")
    add("--targets", type=read.names, metavar="A,B", help="columns that an attacker wants to know (all others)")
    add(
        "--k",
        type=read.count,
        default=5,
        metavar="K",
        help="a row counts as linked if at most K training rows share its keys (%(default)s)",
    )
    add("--releases", type=read.names, metavar="A,B", help="of plain, sparse, generated (all of them)")
    add("--n-samples", type=read.count, default=1000, metavar="K", help="rows drawn for each row (%(default)s)")
    add("--n-attacks", type=read.count, default=500, metavar="N", help="of each kind, at most (%(default)s)")
    add("--max-factuals", type=read.count, default=100, metavar="N", help="rows to explain (%(default)s)")
    add("--constraints", type=read.path, metavar="FILE", help="what may change and how: .toml or .json")
    add("--out", type=read.path, metavar="FILE", help="write the table as .csv")
    files = "--explainer", "--model", "--train", "--holdout", "--constraints"
    parser.set_defaults(run=_imported("mcce.cli.disclosure:run_disclosure", *files))


def add_notebook(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    parser = commands.add_parser(
        "notebook",
        description='Write the page "Getting started" as a Jupyter notebook, and open it if Jupyter is installed.',
        epilog="Exit codes: 0 done; 2 bad arguments or files. Opening it needs pip install jupyterlab.",
    )
    parser.add_argument(
        "--out",
        type=read.path,
        default="getting-started.ipynb",
        metavar="FILE",
        help="the notebook to write (%(default)s)",
    )
    parser.add_argument("--force", action="store_true", help="overwrite the file of --out")
    parser.add_argument("--no-open", action="store_true", help="write the notebook, and do not start Jupyter")
    parser.set_defaults(run=_imported("mcce.cli.notebook:run_notebook"))
