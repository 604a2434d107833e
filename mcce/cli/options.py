"""The options of all commands on files: one table for the command line, TOML files (`--config`) and `--help`.

An option has the same name in a TOML file, with underscores. File names in it are relative to its folder; constraints
have the same form as in a file of constraints. The command line overrides the file. The options of a run are written
beside the results, so that `--config` repeats them. Parsing a command line does not import samplers and generators, so
an unknown option is reported at once.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from pathlib import Path
from typing import Any

from mcce import __version__
from mcce.cli import readers as read
from mcce.exceptions import InputError, did_you_mean

STORED = (".mcce", ".joblib", ".pkl")  # files of explainers
BARE = re.compile(r"[A-Za-z0-9_-]+")  # a key of TOML that needs no quotes
REGISTERED = re.compile(r"\{(samplers|generators|measures|constraints|languages)\}")  # in a help text


@dataclass(frozen=True)
class Option:
    """One option, on the command line and in a TOML file.

    Attributes
    ----------
    name : name in a file
    read : reader of its value
    metavar, help : for `--help`; {} in the text becomes the default, {samplers} and so on the registered names
    default : value if it is not given
    group : topic, by which commands select options (`COMMANDS`)
    """

    name: str
    read: Callable[[Any], Any]
    metavar: str
    help: str
    default: Any = None
    group: str = "fit"

    @property
    def flag(self) -> str:
        """The option on a command line."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def is_path(self) -> bool:
        """Whether it names a file, relative to the folder of a TOML file."""
        return self.read in (read.path, read.constraints)


OPTIONS = (
    Option("train", read.path, "FILE", "training rows: .csv, .csv.gz, .tsv, .xlsx or .parquet"),
    Option("explain", read.path, "FILE", "rows to explain, with the same features", group="rows"),
    Option(
        "explainer",
        read.path,
        "FILE",
        "a fitted explainer instead of --train, written by mcce fit or MCCE.save; or by joblib, which runs code",
        group="rows",
    ),
    Option(
        "model",
        read.path,
        "FILE",
        "a fitted model: .skops, .onnx, or saved by joblib, which runs code when it is opened: open trusted files only",
        group="model",
    ),
    Option(
        "trusted",
        read.names,
        "A,B",
        "types that a .skops file may hold besides those known to be safe",
        [],
        group="model",
    ),
    Option("response", read.text, "COLUMN", "without --model: train one for this column; with it: exclude the column"),
    Option(
        "decision",
        read.decision,
        "WHAT",
        'a class, or an interval: 0.5,1 or "[0,0.1)" or "[20,inf)" ([0.5,1]); '
        'a negative one is written --decision=-5,3 or "[-5,3]"',
    ),
    Option("of", read.decision, "CLASS", "the class whose probability the interval is about"),
    Option("fixed", read.names, "A,B", "features that must not change", [], group="what"),
    Option("drop", read.names, "A,B", "columns that are not used", [], group="what"),
    Option(
        "kinds",
        read.pairs,
        "A=KIND,..",
        "numeric or categorical, for ambiguous columns: codes that are numbers, numbers such as 007",
        {},
    ),
    Option(
        "derived",
        read.derived,
        "A=FORMULA",
        'column computed from others, never changed by itself: "dti=(rent + instalment) / income"; repeatable',
        {},
    ),
    Option("ordered", read.ordered, "A=LOW<..<HIGH", 'ordered levels: "size=small<large"; repeatable', {}),
    Option("missing", read.names, "NA,?", "cells that mean a missing value, besides blank ones", [], group="read"),
    Option("sep", read.sep, "CHAR", r"separator of text files; \t is a tab (detected)", group="read"),
    Option("decimal", read.mark, "MARK", "decimal mark of text files, . or , (detected)", group="read"),
    Option("thousands", read.mark, "MARK", "thousands mark of text files (detected)", group="read"),
    Option(
        "date_format",
        read.date_format,
        "FORMAT",
        "format of dates as %d.%m.%Y, or A=FORMAT,.. by column (ISO)",
        {},
        group="read",
    ),
    Option("encoding", read.text, "NAME", "of text files, as cp1252 (UTF-8, or by the file's mark)", group="read"),
    Option(
        "sheet",
        read.sheet,
        "NAME",
        "sheet of workbooks that have several; or train=NAME,explain=NAME",
        {},
        group="read",
    ),
    Option(
        "id", read.text, "COLUMN", "column of --explain with the row names, as text (row number, from 1)", group="rows"
    ),
    Option("n_samples", read.count_or_auto, "K", "rows drawn for each row, or auto ({})", 1000, group="ask"),
    Option("n_counterfactuals", read.count, "N", "how many for each row ({})", 1, group="ask"),
    Option(
        "allow_missing", read.names, "A,B", "features whose known values may become missing (none)", [], group="ask"
    ),
    Option(
        "sparse",
        read.flag,
        "",
        "change as few features as possible, instead of returning whole drawn rows",
        False,
        group="ask",
    ),
    Option(
        "floor",
        read.number,
        "SHARE",
        "with --sparse: the least plausibility of returned rows, as a share of real rows (0.05)",
        group="ask",
    ),
    Option(
        "caution",
        read.number,
        "NUMBER",
        "with --sparse: weight of the distance from the edge of the data and of the decision; 0 for the nearest (1)",
        group="ask",
    ),
    Option("diverse", read.flag, "", "with --n-counterfactuals: choose ones that differ", False, group="ask"),
    Option(
        "measures",
        read.names,
        "A,B",
        "order of the answers, as in gower,L0 (L0,gower); there are {measures}",
        [],
        group="ask",
    ),
    Option("feature_weights", read.numbers_by_name, "A=2,..", "weights of features in distances (1)", {}, group="ask"),
    Option("max_changes", read.count, "N", "largest number of changes", group="ask"),
    Option("max_gower", read.number, "D", "largest Gower distance", group="ask"),
    Option(
        "recourse",
        read.flag,
        "",
        "find actions whose consequences reach the decision, by the causal graph, instead of counterfactuals",
        False,
        group="ask",
    ),
    Option(
        "actions",
        read.names,
        "A,B",
        "with --recourse: the features that a person can act on (all of the graph that may change)",
        [],
        group="ask",
    ),
    Option(
        "assurance",
        read.number,
        "SHARE",
        "with --recourse: the least probability of the decision over the consequences of the actions (0.9)",
        group="ask",
    ),
    Option(
        "keep",
        read.number,
        "SHARE",
        "with --recourse: share of the row's own noise that its consequences keep, from 0 to 1 (1)",
        group="ask",
    ),
    Option(
        "takes",
        read.takes,
        "A=TIME,..",
        'with --recourse: the time that an action takes: "education=2 years"; in a TOML file also steps by column',
        {},
        group="ask",
    ),
    Option("max_actions", read.count, "N", "with --recourse: largest number of actions (3)", group="ask"),
    Option("exclude_training", read.flag, "", "return no row that equals a training row", False, group="ask"),
    Option("min_donors", read.count, "N", "least number of training rows from which a value is drawn"),
    Option(
        "noise", read.number_or_by_name, "SHARE", "relative error of numbers, as in 0.02; or A=0.02,..", group="ask"
    ),
    Option(
        "robust",
        read.number,
        "SHARE",
        "with --noise: share of noisy rows that must have the wanted decision",
        group="ask",
    ),
    Option(
        "constraints",
        read.constraints,
        "FILE",
        "constraints on changes: .toml or .json with {constraints}",
        group="what",
    ),
    Option(
        "sampler",
        read.samplers,
        "NAME",
        "how features are drawn, or A=NAME,*=NAME by feature ({}); there are {samplers}",
        "cart",
    ),
    Option(
        "generator",
        read.text,
        "NAME",
        "generator of whole rows, instead of a chain of samplers; there are {generators}",
    ),
    Option("visit_sequence", read.visit_sequence, "ORDER", "data, correlation, or A,B,... ({})", "data"),
    Option(
        "graph",
        read.path,
        "FILE",
        "an assumed causal graph: .dot, .gv or .json; features are drawn given their parents; for --recourse",
    ),
    Option("random_state", read.whole, "N", "seed of the random draws ({})", 1),
    Option(
        "n_jobs",
        read.whole,
        "N",
        "threads, for explain-batches processes (1; -1 for all cores); the result does not depend on it",
        group="what",
    ),
    Option(
        "out",
        read.path,
        "FILE",
        "write all counterfactuals as .csv, .csv.gz, .xlsx or .parquet, the rows without one beside it as "
        ".unexplained.csv, and the options of the run as .job.toml; - is CSV on standard output",
        group="write",
    ),
    Option(
        "spreadsheet_safe",
        read.flag,
        "",
        "put an apostrophe before texts of a CSV that a spreadsheet would run as a formula (default); "
        "mcce removes it when it reads the file, other programs do not",
        True,
        group="cells",
    ),
    Option("html", read.path, "FILE", "write a page for a browser", group="write"),
    Option(
        "records",
        read.path,
        "FOLDER",
        "append a record of each decision, in a chain that mcce verify checks; it holds the values of the person",
        group="records",
    ),
    Option("reviewed_by", read.text, "NAME", "with --records: the person who reviewed the answers", group="write"),
    Option("reviewed_at", read.text, "WHEN", "with --records: the date of the review, as in 2026-11-18", group="write"),
    Option(
        "rules", read.count, "N", "with --sparse: at most N rules that reach the decision for most rows", group="write"
    ),
    Option(
        "letters",
        read.path,
        "FOLDER",
        "write a letter for each row, a page to print; rows whose answers need a review get none",
        group="letters",
    ),
    Option("all", read.flag, "", "write letters also for answers that need a review", False, group="letters"),
    Option("language", read.text, "CODE", "language of the letters ({}); there are {languages}", "en", group="letters"),
    Option("texts", read.path, "FILE", "own texts of the letters, as TOML", group="letters"),
    Option(
        "reasons",
        read.reasons,
        "",
        "add the principal reasons to the letters, and the rights to give one's own view and to a person's review; "
        "in a TOML file also a table of own texts, or codes and texts, by feature",
        False,
        group="letters",
    ),
    Option("in_words", read.text, "TEXT", 'the wanted decision in words, as in "the loan is granted"', group="what"),
    Option(
        "labels", read.pairs, "A=TEXT,..", "names of features; prediction is the output of the model", {}, group="what"
    ),
    Option("units", read.pairs, "A=EUR,..", "units of features", {}, group="what"),
    Option(
        "formats",
        read.formats,
        "A=0.0%,..",
        "formats of values; in a TOML file also words for levels",
        {},
        group="what",
    ),
)
REPEATABLE = (read.derived, read.ordered)
COMMANDS = {  # the groups of each
    "explain": ("fit", "model", "rows", "what", "read", "ask", "write", "cells", "records", "letters"),
    "letters": ("fit", "model", "rows", "what", "read", "ask", "write", "cells", "records", "letters"),
    "fit": ("fit", "model", "what", "read"),
    "explain-batches": ("model", "rows", "what", "read", "ask", "cells", "records", "letters"),
}


TITLES = {  # of the groups, in `--help`
    **dict.fromkeys(("model", "rows"), "explainer, model and rows"),
    "fit": "fit of an explainer",
    "what": "features and names",
    "read": "reading of files",
    "ask": "search",
    **dict.fromkeys(("write", "cells", "records"), "results"),
    "letters": "letters",
}


def is_absent(value: Any) -> bool:
    """Return whether a value is that of an option without a default that was not given."""
    return value is None or value is False or value in ([], {})


def is_given(arguments: argparse.Namespace, name: str) -> bool:
    """Return whether an option has another value than its default."""
    default = next(option.default for option in OPTIONS if option.name == name)
    return bool(getattr(arguments, name, default) != default)


def check_letters(arguments: argparse.Namespace, also: Sequence[str] = ()) -> None:
    """Raise if options about letters, or those of `also`, are given without --letters."""
    if arguments.letters is not None:
        return
    for option in OPTIONS:
        if (option.group == "letters" or option.name in also) and is_given(arguments, option.name):
            raise InputError(f"{option.flag} goes with --letters; add --letters FOLDER, or leave {option.flag} out.")


def options_of(command: str) -> list[Option]:
    return [option for option in OPTIONS if option.group in COMMANDS[command]]


class CommandParser(argparse.ArgumentParser):
    """A parser whose help lists registered names, in place of {samplers} and so on; they are imported for help only."""

    def format_help(self) -> str:
        listed = [action for action in self._actions if REGISTERED.search(action.help or "")]
        if listed:
            names = _registered_names()
            for action in listed:
                action.help = REGISTERED.sub(lambda found: names[found[1]], action.help or "")
        return super().format_help()


def _registered_names() -> dict[str, str]:
    from mcce.constraints import available_constraints
    from mcce.distances.measures import available_measures
    from mcce.generators.auto import AUTO
    from mcce.generators.registry import available_generators
    from mcce.report.languages import available_languages
    from mcce.samplers import available_samplers

    return {
        "samplers": ", ".join([*available_samplers(), AUTO]),
        "generators": ", ".join(available_generators()),
        "measures": ", ".join(available_measures()),
        "constraints": ", ".join(f"[[{name}]]" for name in available_constraints()),
        "languages": ", ".join(available_languages()),
    }


def add_options(parser: argparse.ArgumentParser, command: str) -> None:
    """Add the options of a command to its parser; what is not given is not in its result."""
    groups = {title: parser.add_argument_group(title) for title in dict.fromkeys(TITLES.values())}
    for option in options_of(command):
        group = groups[TITLES[option.group]]
        about = option.help.replace("%", "%%").replace("{}", str(option.default))
        if option.read in (read.flag, read.reasons):
            action: Any = argparse.BooleanOptionalAction if option.default else "store_true"
            group.add_argument(option.flag, dest=option.name, action=action, default=argparse.SUPPRESS, help=about)
        else:
            group.add_argument(
                option.flag,
                dest=option.name,
                type=option.read,
                action="append" if option.read in REPEATABLE else "store",
                default=argparse.SUPPRESS,
                metavar=option.metavar,
                help=about,
            )


def complete(given: argparse.Namespace) -> argparse.Namespace:
    """Return all options: those of the command line, those of `--config`, defaults."""
    typed = dict(vars(given))
    typed |= _files_of(typed.pop("files", []))
    for name in ("derived", "ordered"):  # options that may be repeated
        if isinstance(typed.get(name), list):
            typed[name] = {key: value for each in typed[name] for key, value in each.items()}
    config = typed.get("config")
    of_file = {} if config is None else read_config(config)
    defaults = {option.name: option.default for option in OPTIONS}
    return argparse.Namespace(**{"config": None, "force": False, **defaults, **of_file, **typed})


READ = ("train", "explain", "explainer", "model", "constraints", "graph", "texts")  # options that name files to read
NEEDED = {
    "fit": ("train",),
    "explain": ("train", "explain"),
    "letters": ("train", "explain", "letters"),
    "explain-batches": ("explainer", "explain"),
}


FOLDERS = ("FOLDER", "--explain")


def check_needed(given: argparse.Namespace) -> None:
    """Raise if an option that a command needs is missing, or a file that it reads; `complete` adds those of a file."""
    if "show_texts" in given:
        return
    arguments = complete(given)
    needed = set(NEEDED[given.command])
    if arguments.explainer is not None:  # instead of training rows
        needed.discard("train")
    absent = [option.flag for option in OPTIONS if option.name in needed and getattr(arguments, option.name) is None]
    if absent:
        given.refuse(f"the following arguments are required: {', '.join(absent)}")
    check_exist({f"--{name}": path for name in READ if isinstance(path := getattr(arguments, name), str)})


def check_exist(paths: Mapping[str, str | None]) -> None:
    """Raise if a file does not exist, or a file or folder of `FOLDERS`; keys are the arguments that name them."""
    for role, path in paths.items():
        if path is not None and not (Path(path).exists() if role in FOLDERS else Path(path).is_file()):
            what = "file or folder" if role in FOLDERS else "file"
            raise InputError(f"{role} {path}: there is no such {what}; check its name and folder.")


def _files_of(files: Sequence[str]) -> dict[str, str]:
    """Return the files of positional arguments: an explainer, rows, or both in this order."""
    if len(files) > 2:
        raise InputError(f"there are {len(files)} files without an option; give an explainer and rows.")
    if len(files) == 1 and not files[0].lower().endswith(STORED):
        return {"explain": files[0]}
    return dict(zip(("explainer", "explain"), files))


def read_config(path: str) -> dict[str, Any]:
    """Return the options of a TOML file, checked."""
    check_exist({"--config": path})
    from mcce.constraints import available_constraints
    from mcce.constraints.reading import parse_file

    where = f"--config {path}"
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{where} is not a TOML file: {error}; correct it there.") from None
    content = parse_file(text, "TOML", where)
    known = {option.name: option for option in OPTIONS}
    sections = [section for section in available_constraints() if section not in known]
    inline = {section: content.pop(section) for section in sections if section in content}
    found: dict[str, Any] = {}
    for key, value in content.items():
        name = key.replace("-", "_")
        if name not in known:
            raise InputError(f"{where}: there is no option {key!r}; {did_you_mean(name, [*known, *sections])}")
        try:
            found[name] = known[name].read(value)
        except argparse.ArgumentTypeError as error:
            raise InputError(f"{where}: {key}: {error}; correct it there.") from None
        if known[name].is_path and isinstance(value, str) and value != "-":
            found[name] = os.path.join(os.path.dirname(path), value)
    if inline and "constraints" in found:
        raise InputError(f"{where} names a file of constraints and has [[{next(iter(inline))}]]; give one of them.")
    return {**found, "constraints": inline} if inline else found


def job_text(arguments: argparse.Namespace, beside: Path) -> str:
    """Return the options as TOML for the file `beside`, with paths relative to its folder."""
    values = {option.name: _written(option, getattr(arguments, option.name), beside.parent) for option in OPTIONS}
    absent = [option.name for option in OPTIONS if option.default is not True and is_absent(values[option.name])]
    values = {name: value for name, value in values.items() if name not in absent}
    constraints = values.pop("constraints") if isinstance(values.get("constraints"), dict) else {}
    tables = {name: values.pop(name) for name in list(values) if isinstance(values[name], dict)}
    command = getattr(arguments, "command", "explain")
    lines = [f"# written by mcce {__version__}; `mcce {command} --config {beside.name} --force` repeats it"]
    lines += [f"{name} = {to_toml(value)}" for name, value in values.items()]
    for name, table in tables.items():
        lines += ["", f"[{name}]", *(f"{_key(key)} = {to_toml(value)}" for key, value in table.items())]
    for section, entries in constraints.items():
        if isinstance(entries, bool):  # before the first table
            lines.insert(1, f"{_key(section)} = {to_toml(entries)}")
            continue
        for entry in [entries] if isinstance(entries, (dict, str)) else entries:
            parts = {"says": entry} if isinstance(entry, str) else entry
            lines += ["", f"[[{_key(section)}]]", *(f"{_key(key)} = {to_toml(value)}" for key, value in parts.items())]
    return "\n".join(lines) + "\n"


def _written(option: Option, value: Any, folder: Path) -> Any:
    if option.is_path and isinstance(value, str) and value != "-":
        try:
            return Path(os.path.relpath(value, folder)).as_posix()
        except ValueError:  # on another drive
            return os.path.abspath(value)
    return value


def to_toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):  # TOML escapes one character more than JSON
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {to_toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(to_toml, value)) + "]"
    return repr(value)


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else to_toml(name)
