"""The job that `mcce explain` does: options of the command line, of a TOML file, and defaults, in this order.

1. `--config job.toml` holds any of the options by their names, lists and tables as TOML has them, and constraints as
   [[allow]], [[rule]] and [[only]] as in a file of constraints. Names of files are seen from the folder of the file.
2. The job as run is written beside its results, so that `mcce explain --config X.job.toml` repeats it to the byte.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from datetime import date, time
from pathlib import Path
from typing import Any

from mcce import __version__
from mcce.cli.numerals import WORD_OF, Decimals
from mcce.cli.options import OPTIONS, Option, says_nothing
from mcce.constraints.reading import SECTIONS
from mcce.exceptions import InputError, did_you_mean

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BARE = re.compile(r"[A-Za-z0-9_-]+")


def complete(given: argparse.Namespace) -> argparse.Namespace:
    """Return all options: those given, those of `--config`, defaults (step 1)."""
    said = {name: value for name, value in vars(given).items()}
    if isinstance(said.get("ordered"), list):  # the option may be repeated
        said["ordered"] = {name: levels for each in said["ordered"] for name, levels in each.items()}
    config = said.get("config")
    of_file = {} if config is None else read_config(config)
    defaults = {option.name: option.default for option in OPTIONS}
    return argparse.Namespace(**{"config": None, "force": False, **defaults, **of_file, **said})


def read_config(path: str) -> dict[str, Any]:
    """Return the options of a TOML file, checked."""
    where = f"--config {path}"
    if not Path(path).is_file():
        raise InputError(f"{where}: there is no such file; check its name and folder.")
    try:
        said = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (ValueError, UnicodeDecodeError) as error:
        raise InputError(f"{where} is no TOML file: {error}; correct it there.") from None
    known = {option.name: option for option in OPTIONS}
    inline = {section: said.pop(section) for section in SECTIONS if section in said}
    found: dict[str, Any] = {}
    for key, value in said.items():
        name = key.replace("-", "_")
        if name not in known:
            raise InputError(f"{where}: there is no option {key!r}; {did_you_mean(name, [*known, *SECTIONS])}")
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
    """Return the job as TOML (step 2), its files seen from the folder of `beside`, the file to write."""
    values = {option.name: _written(option, getattr(arguments, option.name), beside.parent) for option in OPTIONS}
    values = {option.name: values[option.name] for option in OPTIONS if not says_nothing(values[option.name])}
    constraints = values.pop("constraints") if isinstance(values.get("constraints"), dict) else {}
    tables = {name: values.pop(name) for name in list(values) if isinstance(values[name], dict)}
    lines = [f"# written by mcce {__version__}; `mcce explain --config {beside.name} --force` repeats it"]
    lines += [f"{name} = {_toml(value)}" for name, value in values.items()]
    for name, table in tables.items():
        lines += ["", f"[{name}]", *(f"{_key(key)} = {_toml(value)}" for key, value in table.items())]
    for section, entries in constraints.items():
        for entry in [entries] if isinstance(entries, (dict, str)) else entries:
            said = {"says": entry} if isinstance(entry, str) else entry
            lines += ["", f"[[{section}]]", *(f"{_key(key)} = {_toml(value)}" for key, value in said.items())]
    return "\n".join(lines) + "\n"


def _written(option: Option, value: Any, folder: Path) -> Any:
    if option.is_path and isinstance(value, str) and value != "-":
        try:
            return Path(os.path.relpath(value, folder)).as_posix()
        except ValueError:  # on another drive
            return os.path.abspath(value)
    if isinstance(value, Decimals):
        return WORD_OF[value.rest] if value.rest else {name: WORD_OF[mark] for name, mark in value.by_column}
    return value


def _toml(value: Any) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):  # JSON escapes what TOML does, but for one character
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return repr(value)


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else _toml(name)
