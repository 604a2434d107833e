"""The command line: `mcce demo`, `mcce fit`, `mcce explain`, and commands of other packages.

A job is a TOML file; its tables are keyword arguments of `pandas.read_csv`, `MCCE` and `MCCE.explain`, and its model is
a file of joblib. Nothing in a job is code: samplers are registered names, rules and formulas are read by a whitelist.

An entry point of the group `mcce.commands` is a function that adds a parser to argparse's subparsers and sets `run` on
it. Results go to standard output, notes to standard error. Exit codes: 0 done, 2 bad input, 3 some rows have no
counterfactual, 130 interrupted.
"""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points, version
from pathlib import Path
from typing import Any

import joblib
import pandas as pd
from pandas.api.types import infer_dtype

from mcce._utils import atomic_path
from mcce.constraints import allow, no_copies
from mcce.counterfactuals import ALREADY, Counterfactuals
from mcce.exceptions import InputError, MCCEError, did_you_mean, listing, spell
from mcce.explainer import MCCE, load
from mcce.model import Interval
from mcce.report.text import value_text

DONE, BAD_INPUT, SOME_UNEXPLAINED, INTERRUPTED = 0, 2, 3, 130
PICTURES = (".png", ".svg", ".pdf")
MOST_REASONS = 10  # rows without a counterfactual that are named

JOB = """\
a job, with paths relative to its folder:

  model = "model.joblib"        # a fitted model, saved by joblib.dump (a file is trusted like code)
  train = "train.csv"           # training rows: the features of the model, without the response
  rows = "applicants.csv"       # the rows to explain

  [read_csv]                    # pandas.read_csv, for both files
  usecols = ["id", "age", "sex", "salary", "savings", "since"]
  index_col = "id"
  parse_dates = ["since"]
  dtype = { sex = "category" }

  [MCCE]                        # mcce.MCCE
  decision = [0.5, 1.0]         # or a class, or { low = 0, high = 0.1, closed = "left", of = true }
  fixed = ["age", "sex"]
  sampler = { salary = "norm", "*" = "cart" }
  constraints = ["savings <= 2 * salary", { feature = "salary", max_step = 5000 }]
  random_state = 1

  [explain]                     # MCCE.explain
  sparse = true
  n_counterfactuals = 3

With `explainer = "model.mcce"`, which `mcce fit` wrote, a job needs neither model, train nor [MCCE].

exit codes: 0 done, 2 bad input, 3 some rows have no counterfactual
"""

KEYS = {  # of a job
    "model": str,
    "train": str,
    "rows": str,
    "explainer": str,
    "read_csv": dict,
    "MCCE": dict,
    "explain": dict,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; `argv` are the arguments, by default those of the process."""
    typed = sys.argv[1:] if argv is None else list(argv)
    arguments = make_parser(typed[0] if typed else "").parse_args(typed)
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: _note(f"warning: {message}")
        try:
            return int(arguments.run(arguments))
        except BrokenPipeError:  # the output is closed, as by `| head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return DONE
        except OSError as error:
            _note(f"error: {error.filename}: {error.strerror}" if error.filename else f"error: {error}")
        except MCCEError as error:
            _note(f"error: {error}")
        except KeyboardInterrupt:
            _note("interrupted")
            return INTERRUPTED
        return BAD_INPUT


def make_parser(command: str = "") -> argparse.ArgumentParser:
    """Return the parser with our commands and those of installed packages, of which only `command` is imported."""
    parser = argparse.ArgumentParser(
        prog="mcce",
        description="Explain decisions of a model by counterfactuals: similar rows with the wanted decision.",
        epilog=JOB,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mcce {version('mcce')}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(name: str, run: Callable[[argparse.Namespace], int], about: str) -> argparse.ArgumentParser:
        command_parser = commands.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.")
        command_parser.set_defaults(run=run)
        return command_parser

    demo = add("demo", run_demo, "explain refused loans of an embedded table")
    demo.add_argument("-o", "--out", metavar="FILE.png", help="also draw the first answer")
    fit = add("fit", run_fit, "fit an explainer and save it")
    fit.add_argument("job", metavar="JOB.toml", help="see mcce --help")
    fit.add_argument(
        "-o", "--out", required=True, metavar="FILE", help="the file to write, with the training rows in it"
    )
    explain = add("explain", run_explain, "explain the rows of a file")
    explain.add_argument("job", metavar="JOB.toml", help="see mcce --help")
    explain.add_argument(
        "-o", "--out", metavar="FILE.csv", help="factuals and counterfactuals as a table (else printed)"
    )
    for point in entry_points(group="mcce.commands"):
        try:
            if point.name == command:
                point.load()(commands)
            else:
                commands.add_parser(point.name, help=f"see mcce {point.name} --help")
        except Exception as error:  # a broken plug-in must not stop other commands
            _note(f"warning: the command {point.name!r} ({point.value}) cannot be added: {error}")
    return parser


def _note(text: str) -> None:
    """Write one line to standard error, whatever the text holds."""
    print(value_text(" ".join(text.split())), file=sys.stderr)


# ---------------------------------------------------------------------------------------------------------------------
# commands
# ---------------------------------------------------------------------------------------------------------------------


def explain_loans() -> Counterfactuals:
    """Explain five refused loans: the example of the README, whose lines `mcce demo` prints."""
    import mcce

    loans = mcce.datasets.load_loans()
    explainer = mcce.MCCE(loans.model, decision=loans.decision, fixed=loans.fixed, random_state=1).fit(loans.X)
    refused = loans.X[loans.model.predict_proba(loans.X)[:, 1] > 0.1]
    return explainer.explain(refused.head(5), sparse=True)


def run_demo(arguments: argparse.Namespace) -> int:
    """Print the lines of the example, its answers, and the first one as a sentence and, if asked for, as a picture."""
    if arguments.out is not None and Path(arguments.out).suffix.lower() not in PICTURES:
        raise InputError(f"-o is {arguments.out}; give the name of a picture, which ends in {' or '.join(PICTURES)}.")
    lines = inspect.getsource(explain_loans).splitlines()[2:]  # without its name and docstring
    code = [line.strip().replace("return ", "counterfactuals = ") for line in lines if line.strip()]
    print("\n".join(f">>> {line}" for line in [*code, "print(counterfactuals)"]), flush=True)
    counterfactuals = explain_loans()
    first = counterfactuals.factuals.index[0]
    print(f"{counterfactuals}\n>>> print(counterfactuals.sentence({first}))\n{counterfactuals.sentence(first)}")
    if arguments.out is not None:
        print(f">>> counterfactuals.plot({first}).figure.savefig({arguments.out!r})")
        _draw(counterfactuals, first, arguments.out)
    _note("With your own table and model: mcce --help")
    return DONE


def _draw(counterfactuals: Counterfactuals, label: Any, out: str) -> None:
    """Write the picture of one row."""
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")  # no window is opened
    figure: Any = counterfactuals.plot(label).figure
    with atomic_path(out) as path:
        figure.savefig(path, dpi=150)
    plt.close(figure)


def run_fit(arguments: argparse.Namespace) -> int:
    """Fit the explainer of a job and save it."""
    job = read_job(arguments.job)
    if "explainer" in job:
        raise InputError("the job has explainer, which has no effect in mcce fit; take it out.")
    _check_output(arguments.out, arguments.job, job)
    fit_job(job).save(arguments.out)
    _note(f"wrote {arguments.out}, which holds the model and the training rows")
    return DONE


def run_explain(arguments: argparse.Namespace) -> int:
    """Explain the rows of a job; return 3 if a row that needs a counterfactual has none."""
    job = read_job(arguments.job)
    _need(job, "rows")
    options = _check_arguments(job.get("explain", {}), MCCE.explain, "[explain]", without=("self", "X"))
    if "constraints" in options:
        options["constraints"] = read_constraints(options["constraints"], "[explain]")
    if arguments.out is not None:
        _check_output(arguments.out, arguments.job, job)
    if "explainer" in job:
        beside = [name for name in ("model", "train", "MCCE") if name in job]
        if beside:
            raise InputError(
                f"the job has {listing(beside)} beside explainer, where they have no effect; take them out."
            )
        explainer = load(job["explainer"])
    else:
        explainer = fit_job(job)
    features = explainer.generator_.schema_.features
    texts = [f.name for f in features if f.levels is not None and infer_dtype(f.levels) == "string"]
    counterfactuals = explainer.explain(read_table(job, "rows", texts), **options)
    if arguments.out is None:
        print(counterfactuals)
    else:
        with atomic_path(arguments.out) as path:
            counterfactuals.to_frame().to_csv(path, index=False)
        _note(
            f"wrote {arguments.out}: {len(counterfactuals)} counterfactuals of {len(counterfactuals.predictions)} rows"
        )
    unexplained = counterfactuals.unexplained
    labels = unexplained.index[unexplained["code"] != ALREADY]
    for label in labels[:MOST_REASONS]:
        _note(counterfactuals.sentence(label))
    if len(labels) > MOST_REASONS:
        _note(f"... and for {len(labels) - MOST_REASONS} further rows")
    return SOME_UNEXPLAINED if len(labels) else DONE


# ---------------------------------------------------------------------------------------------------------------------
# jobs
# ---------------------------------------------------------------------------------------------------------------------


def read_job(path: str) -> dict[str, Any]:
    """Return the entries of a job, checked by name and type, with the paths of its files."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        job = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, or nested too deep
        raise InputError(f"{path} is not a TOML file: {error}.") from error
    for key, value in job.items():
        if key not in KEYS:
            raise InputError(f"{path} has the key {key!r}, which a job does not have; {did_you_mean(key, KEYS)}")
        if not isinstance(value, KEYS[key]) or (isinstance(value, str) and "\0" in value):
            kind = "a text, the name of a file" if KEYS[key] is str else f"a table, [{key}]"
            raise InputError(f"{key} of {path} is {spell(value)}; it must be {kind}.")
    folder = Path(path).parent
    return {key: str(folder / value) if KEYS[key] is str else value for key, value in job.items()}


def fit_job(job: Mapping[str, Any]) -> MCCE:
    """Return the fitted explainer of a job."""
    for key in ("model", "train"):
        _need(job, key)
    options = _check_arguments(job.get("MCCE", {}), MCCE, "[MCCE]", without=("model", "generator"))
    decision = options.get("decision")
    if isinstance(decision, dict):
        _check_arguments(decision, Interval, "decision", without=())
        if not {"low", "high"} <= set(decision):
            raise InputError(f"decision is {decision}; give low and high, as in {{ low = 0, high = 0.1, of = true }}.")
        options["decision"] = Interval(**decision)
    elif isinstance(decision, list) and len(decision) == 2 and not any(isinstance(end, str) for end in decision):
        options["decision"] = tuple(decision)
    if "constraints" in options:
        options["constraints"] = read_constraints(options["constraints"], "[MCCE]")
    explainer = MCCE(read_model(job["model"]), **options)
    return explainer.fit(read_table(job, "train"))


def read_model(path: str) -> Any:
    """Return the model in a file of joblib."""
    try:
        return joblib.load(path)
    except OSError:
        raise
    except Exception as error:  # a pickle may raise anything
        raise InputError(
            f"{path} is not a model that joblib can load ({type(error).__name__}: {error}); save it by "
            "joblib.dump(model, path), with the same packages installed."
        ) from error


def read_table(job: Mapping[str, Any], key: str, texts: Sequence[Any] = ()) -> pd.DataFrame:
    """Return the table in a file of the job, read by pandas with the arguments of [read_csv].

    `texts` are columns of texts, which might look like numbers in another file.
    """
    options = _check_arguments(
        job.get("read_csv", {}), pd.read_csv, "[read_csv]", without=("filepath_or_buffer", "iterator", "chunksize")
    )
    dtype = options.get("dtype") or {}
    if texts and isinstance(dtype, dict):
        options["dtype"] = {**dict.fromkeys(texts, str), **dtype}
    try:
        return pd.read_csv(job[key], **options)
    except Exception as error:  # arguments from outside may raise anything
        if isinstance(error, OSError) and error.filename:
            raise
        raise InputError(
            f"pandas.read_csv cannot read {job[key]} ({type(error).__name__}: {error}); see [read_csv]."
        ) from error


def read_constraints(constraints: Any, where: str) -> list[Any]:
    """Return constraints: rules as texts, and tables of arguments of `allow`, or { no_copies = true }."""
    if not isinstance(constraints, list):
        raise InputError(f'constraints of {where} is {constraints!r}; give a list, as in ["savings <= salary"].')
    read = []
    for constraint in constraints:
        if not isinstance(constraint, dict):
            read.append(constraint)
        elif constraint == {"no_copies": True}:
            read.append(no_copies())
        else:
            options = _check_arguments(constraint, allow, f"a constraint of {where}", without=())
            if "feature" not in options:
                raise InputError(
                    f'a constraint of {where} is {constraint}; say which feature, as in {{ feature = "salary" }}.'
                )
            read.append(allow(options.pop("feature"), **options))
    return read


def _check_arguments(arguments: Any, function: Any, where: str, without: tuple[str, ...]) -> dict[str, Any]:
    """Return arguments for a function, all of which it has."""
    parameters = [name for name in inspect.signature(function).parameters if name not in without]
    for name in arguments:
        if name not in parameters:
            raise InputError(f"{where} has {name!r}, which it does not accept; {did_you_mean(name, parameters)}")
    return dict(arguments)


def _check_output(out: str, path: str, job: Mapping[str, Any]) -> None:
    """Raise if an output would replace the job or an input."""
    inputs = {"the job": path, **{f"{key} of the job": job[key] for key in job if KEYS[key] is str}}
    for what, file in inputs.items():
        if os.path.realpath(out) == os.path.realpath(file):
            raise InputError(f"-o is {out}, which is {what}; give another name.")


def _need(job: Mapping[str, Any], key: str) -> None:
    if key not in job:
        raise InputError(
            f'the job has no {key}; add a line such as {key} = "{key}.{"joblib" if key == "model" else "csv"}".'
        )
