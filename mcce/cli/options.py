"""The options of `mcce explain`: one table, for the command line and for a TOML file.

An option has the same name in both, with dashes there and underlines (or dashes) here. A command line holds only what
it was given, so that a file can say the rest and defaults come last (`mcce.cli.job`).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mcce.cli import readers as read
from mcce.cli.numerals import Decimals


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes
    ----------
    name : as in a file
    read : reads its value
    metavar, help : for `--help`; the default stands in the text as {}
    default : its value if nobody gives one
    is_path : whether it names a file, which in a TOML file is seen from there
    """

    name: str
    read: Callable[[Any], Any]
    metavar: str
    help: str
    default: Any = None
    is_path: bool = False

    @property
    def flag(self) -> str:
        """The option as it is written on a command line."""
        return f"--{self.name.replace('_', '-')}"


OPTIONS = (
    Option("train", read.text, "FILE", "training rows: .csv, .csv.gz, .tsv, .xlsx or .parquet", is_path=True),
    Option("explain", read.text, "FILE", "rows to explain, with the same features", is_path=True),
    Option(
        "model",
        read.text,
        "FILE",
        "a fitted model, saved by joblib; opening it runs code: only open your own. A .skops or .onnx file runs none",
        is_path=True,
    ),
    Option(
        "trusted", read.names, "A,B", "types that a .skops file may hold besides those that are known to be safe", []
    ),
    Option("response", read.text, "COLUMN", "without --model: train one for this column; with: leave it out"),
    Option(
        "wanted",
        read.wanted,
        "WHAT",
        'a class, or an interval: 0.5,1 or "[0,0.1)" or "[20,inf)" ([0.5,1]); '
        'a negative one is written --wanted=-5,3 or "[-5,3]"',
    ),
    Option("of", read.wanted, "CLASS", "the class whose probability the interval is about"),
    Option("fixed", read.names, "A,B", "features that must not change", []),
    Option("kinds", read.pairs, "A=KIND,..", "what columns are, if that is not clear: number, level or date", {}),
    Option("categorical", read.names, "A,B", "the same as --kinds A=level: numbers that are codes; text always is", []),
    Option("numeric", read.names, "A,B", "the same as --kinds A=number: numbers that look like codes, as 007 does", []),
    Option(
        "dates",
        read.dates,
        "A=dmy,B",
        "columns of dates and how they are written: dmy, mdy, ymd or a format such as %d.%m.%Y; found if it is clear",
        {},
    ),
    Option(
        "ordered",
        read.ordered,
        "A=LOW<..<HIGH",
        'levels that have an order, as in "size=small<medium<large"; without a column, for all that have these levels',
        {},
    ),
    Option(
        "missing",
        read.names,
        "NA,?",
        "cells of a CSV that mean a missing value; an empty cell always does, nothing else by itself",
        [],
    ),
    Option(
        "decimal",
        read.decimal,
        "MARK",
        "point or comma, or A=comma,B=point by column; thousands then stand apart by the other one; found if "
        "it is clear",
        Decimals(),
    ),
    Option("encoding", read.text, "NAME", "of text files, as in cp1252; found if it is clear"),
    Option("sep", read.sep, "CHAR", r"separator of text files; \t is a tab; found if it is clear"),
    Option("sheet", read.sheet, "NAME", "sheet of workbooks that have several; or train=NAME,explain=NAME", {}),
    Option("id", read.text, "COLUMN", "column of --explain that names the rows, as text (row number, from 1)"),
    Option("n_samples", read.count_or_auto, "K", "rows drawn for each row, or auto ({})", 1000),
    Option("n_counterfactuals", read.count, "N", "how many for each row ({})", 1),
    Option("allow_missing", read.names, "A,B", "features whose known values may become missing (none)", []),
    Option("sparse", read.flag, "", "change as few features as it takes, instead of taking whole drawn rows", False),
    Option(
        "floor",
        read.number,
        "SHARE",
        "with --sparse: the least plausibility of what is returned, as a share of real rows (0.05)",
    ),
    Option("diverse", read.flag, "", "with --n-counterfactuals: choose ones that differ", False),
    Option("measures", read.names, "A,B", "what comes first, as in gower,L0 or mad or plausibility (L0,gower)", []),
    Option("weights", read.numbers_by_name, "A=2,..", "what a step in a feature counts in distances (1)", {}),
    Option("max_changes", read.count, "N", "at most so many changes"),
    Option("max_gower", read.number, "D", "at most so far away, in Gower's distance"),
    Option("exclude_training", read.flag, "", "return no row that equals a training row", False),
    Option("min_donors", read.count, "N", "draw values from at least so many training rows"),
    Option("noise", read.number_or_by_name, "SHARE", "by how much numbers may be off, as in 0.02; or A=0.02,.."),
    Option("robust", read.number, "SHARE", "with --noise: share of noisy rows that must have the wanted decision"),
    Option(
        "constraints",
        read.constraints,
        "FILE",
        "what may change and how: .toml or .json with [[allow]], [[rule]] and [[only]]",
        is_path=True,
    ),
    Option("sampler", read.text_or_pairs, "NAME", "how features are drawn, or A=NAME,*=NAME by feature ({})", "cart"),
    Option("visit_sequence", read.visit_sequence, "ORDER", "data, correlation, or A,B,... ({})", "data"),
    Option("seed", read.whole, "N", "seed of the random draws ({})", 1),
    Option("jobs", read.whole, "N", "threads; the result does not depend on it"),
    Option(
        "out",
        read.text,
        "FILE",
        "write all rows as .csv, .csv.gz or .parquet, those without a counterfactual beside it as .unexplained.csv, "
        "and the job as run as .job.toml; - is CSV on standard output",
        is_path=True,
    ),
    Option(
        "spreadsheet_safe",
        read.flag,
        "",
        "put an apostrophe before texts of a CSV that a spreadsheet would run as a formula",
        False,
    ),
    Option("html", read.text, "FILE", "write a page for a browser", is_path=True),
    Option("letters", read.text, "FOLDER", "write a letter for each row: a page to print and forward", is_path=True),
    Option("in_words", read.text, "TEXT", 'the wanted decision in words, as in "the loan is granted"'),
    Option("labels", read.pairs, "A=TEXT,..", "what features are called; prediction is what the model says", {}),
    Option("units", read.pairs, "A=EUR,..", "units of features", {}),
    Option("formats", read.formats, "A=0.0%,..", "how values are written; in a TOML file also words for levels", {}),
)
NEEDED = ("train", "explain")


def says_nothing(value: Any) -> bool:
    """Say whether a value is that of an option that nobody gave and that has no default."""
    return value is None or value is False or value in ([], {}, Decimals())


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options to a parser; what is not given is not in its result."""
    for option in OPTIONS:
        told = option.help.replace("%", "%%").replace("{}", str(option.default))
        if option.read is read.flag:
            parser.add_argument(
                option.flag, dest=option.name, action="store_true", default=argparse.SUPPRESS, help=told
            )
        else:
            parser.add_argument(
                option.flag,
                dest=option.name,
                type=option.read,
                action="append" if option.read is read.ordered else "store",
                default=argparse.SUPPRESS,
                metavar=option.metavar,
                help=told,
            )
