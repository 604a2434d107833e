"""The command line: `mcce demo`, `mcce explain`, and the commands of other packages.

1. `demo` explains refused loans, in words, tables, a picture and a page.
2. `explain` reads tables from files, loads or trains a model, and writes counterfactuals to a file.
3. An entry point of the group `mcce.commands` adds a command: a function that takes argparse's subparsers,
   adds its parser and sets `run` on it (`set_defaults(run=...)`): arguments in, exit code out.

Exit codes: 0 done; 2 bad arguments, files or models; 3 done, but some rows that need a counterfactual have
none. Results go to standard output, everything else to standard error.
"""

from __future__ import annotations

import argparse
import base64
import io
import os
import re
import sys
import textwrap
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mcce import __version__
from mcce.counterfactuals import Counterfactuals
from mcce.datasets import load_loans
from mcce.decision import Interval
from mcce.exceptions import InputError, MCCEError, did_you_mean, listing
from mcce.explainer import ALREADY, MCCE
from mcce.plots import value_text

DONE, BAD_INPUT, SOME_UNEXPLAINED = 0, 2, 3
UNNAMED = "Unnamed: 0"  # what pandas calls a row index that was saved along
POOR = {"AUC": 0.7, "R2": 0.3}
REASONS_SHOWN = 10
DRAWS = 10_000  # for each customer of the demonstration
MOST_LEVELS = 255  # of scikit-learn's HistGradientBoosting


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments, without the name of the program; by default those of the process.
    """
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: _say(f"warning: {message}")
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
            _say(f"error: {problem}. Check the name, the folder and its permissions.")
        except MCCEError as error:
            _say(f"error: {error}")
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
    _add_demo(commands)
    _add_explain(commands)
    for point in metadata.entry_points(group="mcce.commands"):
        try:
            if point.name in commands.choices:
                raise ValueError("the name is taken")
            point.load()(commands)
        except Exception as error:  # a broken plug-in must not take the other commands along
            _say(f"warning: the command {point.name!r} ({point.value}) cannot be added: {error}")
    return parser


def _say(text: str) -> None:
    print("mcce:", " ".join(text.split()), file=sys.stderr)


# 1. The demonstration


def _add_demo(commands: Any) -> None:
    about = "Explain refused loans: the example of the paper's introduction."
    demo = commands.add_parser("demo", help="explain refused loans, an example in a few seconds", description=about)
    demo.add_argument("--out", type=Path, default=Path(), metavar="DIR", help="where to write picture and page (here)")
    demo.add_argument("--seed", type=int, default=1, help="seed of the random draws (%(default)s)")
    demo.add_argument(
        "--factuals", type=_count, default=500, metavar="N", help="how many refusals to explain (%(default)s)"
    )
    demo.set_defaults(run=run_demo)


def run_demo(arguments: argparse.Namespace) -> int:
    """Explain one refused loan in words, then many in figures; write a picture and a page."""
    clock = _Clock()
    loans = load_loans()
    names = [f"customer {i + 1}" for i in range(len(loans.X))]
    customers = loans.X.rename(columns=lambda name: name.replace("_", " ")).set_axis(names)
    model = _logistic().fit(customers, loans.y)
    risk = model.predict_proba(customers)[:, 1]
    refused = customers[risk >= 0.1]
    clock.stop("the bank's model learns from its customers")
    granted = Interval(0, 0.1, closed="left", of=True)
    explainer = MCCE(model, decision=granted, fixed=loans.fixed, random_state=arguments.seed).fit(customers)
    clock.stop("mcce learns what customers look like")
    one = _in_words(explainer.explain(customers.iloc[[0]], n_samples=DRAWS, n_counterfactuals=3))
    clock.stop("three ways for one customer")
    many = _in_words(explainer.explain(refused.head(arguments.factuals), n_samples=DRAWS))
    clock.stop(f"one way for each of {len(many.factuals)} customers")

    story = _loan_story(one, risk[0], len(customers))
    ways = [one.sentence("customer 1", rank) for rank in one.frame.index.get_level_values("rank")]
    arguments.out.mkdir(parents=True, exist_ok=True)
    picture, page = arguments.out / "mcce-demo.png", arguments.out / "mcce-demo.html"
    picture.write_bytes(_picture(one))
    page.write_text(_page("Why was the loan refused?", story, ways, picture.read_bytes(), many), "utf-8")
    clock.stop("picture and page")
    _print_demo(story, ways, one, many)
    written = [
        [str(picture), "what would have to change, as a picture"],
        [str(page), "all of it, for a browser"],
    ]
    print(f"\nHOW LONG IT TOOK\n\n{_aligned(clock.steps)}\n\nWRITTEN\n\n{_aligned(written, left=(0, 1))}\n")
    print("Now with your own files: mcce explain --help")
    return DONE


def _logistic() -> Any:
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    levels = (OneHotEncoder(), make_column_selector(dtype_include="category"))
    return make_pipeline(make_column_transformer(levels, remainder=StandardScaler()), LogisticRegression(max_iter=1000))


def _in_words(found: Counterfactuals) -> Counterfactuals:
    return replace(found, decision="probability of default below 10%")


def _loan_story(one: Counterfactuals, risk: float, n_customers: int) -> str:
    her = one.factuals.iloc[0]
    return (
        f"A woman of {her['age']} asks her bank for a loan of {her['loan amount']:,} dollars. She earns "
        f"{her['salary']:,} dollars a year, has {her['savings']:,} dollars in savings and defaulted last "
        f"year. The bank's model, learned from {n_customers:,} customers, says: the probability that she "
        f"will default on this loan is {risk:.1%}. The bank grants loans below 10% only, so she is refused. "
        "What would have had to be different for a yes? Her age and sex stay as they are."
    )


def _print_demo(story: str, ways: list[str], one: Counterfactuals, many: Counterfactuals) -> None:
    print(f"THE REFUSAL\n\n{_wrap(story)}\n\nWHAT WOULD HAVE LED TO A YES\n")
    for rank, way in enumerate(ways, 1):
        print(_wrap(way, f"  {rank}. "))
    found = one.frame.astype(object)
    table = [["", "now", *(f"way {rank}" for rank in range(1, len(found) + 1))]]
    for feature, now in one.factuals.astype(object).iloc[0].items():
        cells = ["same" if new == now else value_text(new) for new in found[str(feature)]]
        table.append([f"{feature} (fixed)" if feature in one.fixed else str(feature), value_text(now), *cells])
    risks = [*one.factual_predictions, *one.measures["prediction"]]
    table.append(["probability of default", *(f"{risk:.1%}" for risk in risks)])
    features = many.changed_features().query("not fixed")
    note = (
        "Each way is a plausible customer, taken as a whole: some of the differences help, others merely "
        "come along, as a new job does with a higher salary."
    )
    summary = (
        f"mcce found an example that gets the loan for {len(many)} of {len(many.factuals)} refused "
        f"customers. On average it differs in {many.measures['L0'].mean():.1f} of the {len(features)} "
        "features that may change. How often each of them differs:"
    )
    bars = [[str(f), f"{share:.0%}", "#" * round(30 * share)] for f, share in features["share"].items()]
    print(f"\n{_aligned(table)}\n\n{_wrap(note)}\n\nMANY REFUSALS\n\n{_wrap(summary)}\n")
    print(_aligned(bars, left=(0, 2)))


class _Clock:
    """Seconds of each step, in order."""

    def __init__(self) -> None:
        self.steps: list[list[str]] = []
        self.begun = time.perf_counter()

    def stop(self, step: str) -> None:
        now = time.perf_counter()
        self.steps.append([step, f"{now - self.begun:.2f} s"])
        self.begun = now


def _wrap(text: str, mark: str = "  ") -> str:
    return textwrap.fill(text, 88, initial_indent=mark, subsequent_indent=" " * len(mark))


def _aligned(rows: list[list[str]], left: Iterable[int] = (0,)) -> str:
    widths = [max(map(len, column)) for column in zip(*rows)]
    cells = [[c.ljust(w) if k in left else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths))] for row in rows]
    return "\n".join(f"  {'  '.join(row)}".rstrip() for row in cells)


# 2. Explanations for tables in files


def _add_explain(commands: Any) -> None:
    explain = commands.add_parser(
        "explain",
        help="explain the decisions for the rows of a file",
        description="For each row of a file find what would have to change for the wanted decision.",
        epilog="Exit codes: 0 done (rows that already have the wanted decision need nothing); 2 bad "
        "arguments, files or models; 3 done, but nothing was found for some rows.",
    )
    add = explain.add_argument
    add("--train", required=True, metavar="FILE", help="training rows: .csv, .csv.gz or .parquet")
    add("--explain", required=True, metavar="FILE", help="rows to explain, with the same features")
    add(
        "--model",
        metavar="FILE",
        help="a fitted model, saved by joblib; opening it runs code: only open your own",
    )
    add("--response", metavar="COLUMN", help="without --model: train one for this column; with: leave it out")
    add("--wanted", metavar="WHAT", help='a class, or an interval: 0.5,1 or "[0,0.1)" or "[20,inf)" ([0.5,1])')
    add("--of", metavar="CLASS", help="the class whose probability the interval is about")
    add("--fixed", type=_names, default=[], metavar="A,B", help="features that must not change")
    add("--categorical", type=_names, default=[], metavar="A,B", help="numbers that are codes; text always is")
    add("--id", metavar="COLUMN", help="column of --explain that names the rows (row number, from 1)")
    add("--n-samples", type=_count, default=1000, metavar="K", help="rows drawn for each row (%(default)s)")
    add("--n-counterfactuals", type=_count, default=1, metavar="N", help="how many for each row (%(default)s)")
    add("--sampler", default="cart", metavar="NAME", help="how features are drawn (%(default)s)")
    add(
        "--visit-sequence",
        default="data",
        metavar="ORDER",
        help="data, correlation, or A,B,... (%(default)s)",
    )
    add("--seed", type=int, default=1, metavar="N", help="seed of the random draws (%(default)s)")
    add("--jobs", type=int, metavar="N", help="threads; the result does not depend on it")
    add("--sep", type=_separator, default=",", metavar="CHAR", help=r"separator of CSV files (,); \t is a tab")
    add(
        "--out",
        metavar="FILE",
        help="write all rows as .csv, .csv.gz or .parquet; - is CSV on standard output",
    )
    add("--html", type=Path, metavar="FILE", help="write a page for a browser")
    explain.set_defaults(run=run_explain)


def run_explain(arguments: argparse.Namespace) -> int:
    """Read the files, find counterfactuals, write them; return 3 if some row that needs one has none."""
    if arguments.model is None and arguments.response is None:
        raise InputError("there is no model: give --model FILE, or --response COLUMN to train one.")
    train = _read_table("--train", arguments.train, arguments.sep)
    if not len(train):
        raise InputError(f"--train {arguments.train} has a header but no rows; give the rows to learn from.")
    text = [str(name) for name in train if pd.api.types.infer_dtype(train[name], skipna=True) == "string"]
    rows = _read_table("--explain", arguments.explain, arguments.sep, text)
    rows = _named(rows, arguments)
    for name in arguments.categorical:
        _check_column("--categorical", name, train, arguments.train)
    if arguments.response is not None:
        _check_column("--response", arguments.response, train, arguments.train)
    model = None if arguments.model is None else _load_model(arguments.model)
    X, kinds = _features(train, model, text, arguments)
    for name in X:
        _check_column("the feature", name, rows, arguments.explain)
    unused = [c for c in rows if c not in X and c not in (arguments.response, arguments.id)]
    if unused:
        _say(f"columns of {arguments.explain} that are not used: {listing(unused)}")
    if model is None:
        model, X = _train(X, train[arguments.response], arguments)
    explainer = MCCE(
        model,
        decision=_read_wanted(arguments.wanted, arguments.of, getattr(model, "classes_", None)),
        fixed=arguments.fixed,
        sampler=arguments.sampler,
        visit_sequence=_visit_sequence(arguments.visit_sequence),
        kinds=kinds,
        random_state=arguments.seed,
        n_jobs=arguments.jobs,
    ).fit(X)
    sizes = {"n_samples": arguments.n_samples, "n_counterfactuals": arguments.n_counterfactuals}
    return _write(explainer.explain(rows[list(X)], **sizes), arguments)


def _read_table(role: str, path: str, sep: str, text: Sequence[str] = ()) -> pd.DataFrame:
    """Read a table; the columns of `text` stay text even if their values look like numbers."""
    where = f"{role} {path}"
    if not Path(path).is_file():
        raise InputError(f"{where}: there is no such file; check its name and folder.")
    try:
        if path.endswith(".parquet"):
            return pd.read_parquet(path)
        table = pd.read_csv(path, sep=sep, dtype=dict.fromkeys(text, str), low_memory=False)
    except pd.errors.EmptyDataError:
        raise InputError(f"{where} is empty; it needs a header and rows.") from None
    except ImportError:
        raise InputError(f"{where}: parquet files need the package pyarrow; install it, or write a CSV.") from None
    except (ValueError, EOFError, OSError) as error:
        problem = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(f"{where} cannot be read as a table: {problem}. Check the file and --sep.") from None
    if table.shape[1] == 1 and (other := re.search(r"[;\t|,]", str(table.columns[0]))):
        raise InputError(f"{where} has one column, {table.columns[0]!r}; is it separated by --sep {other[0]!r}?")
    return table


def _named(rows: pd.DataFrame, arguments: argparse.Namespace) -> pd.DataFrame:
    """Name the rows to explain by the column `--id`, else by a saved row index, else by their number."""
    if arguments.id is None and UNNAMED not in rows:
        return rows.set_axis(pd.RangeIndex(1, len(rows) + 1))
    if arguments.id is None:
        _say(f"the column without a name in {arguments.explain} is taken for the row names")
        arguments.id = UNNAMED
    _check_column("--id", arguments.id, rows, arguments.explain)
    ids = rows[arguments.id]
    bad = ids[ids.isna() | ids.duplicated()]
    if len(bad):
        what = "missing" if pd.isna(bad.iloc[0]) else f"{bad.iloc[0]!r} more than once"
        raise InputError(f"--id {arguments.id}: {arguments.explain} has a name that is {what}; names must differ.")
    return rows.set_axis(pd.Index(ids))


def _check_column(role: str, name: Any, table: pd.DataFrame, path: str) -> None:
    if name not in table:
        raise InputError(f"{role} {name!r} is not a column of {path}; {did_you_mean(name, table.columns)}")


def _load_model(path: str) -> Any:
    import joblib

    if not Path(path).is_file():
        raise InputError(f"--model {path}: there is no such file; check its name and folder.")
    try:
        return joblib.load(path)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".")
        raise InputError(
            f"--model {path} cannot be loaded ({problem}). It must be written by joblib.dump, and the "
            "packages that made it must be installed."
        ) from None


def _features(
    train: pd.DataFrame, model: Any, text: Sequence[str], arguments: argparse.Namespace
) -> tuple[pd.DataFrame, dict[Any, Any]]:
    """Return the model's features, as it wants them, and the columns of codes that stay numbers."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        names = [c for c in train if c not in (arguments.response, arguments.id, UNNAMED)]
    for name in names:
        _check_column(f"the feature of --model {arguments.model}", name, train, arguments.train)
    X = train[list(names)]
    codes = [c for c in X if c in arguments.categorical or (model is None and c in text)]
    as_levels = [c for c in codes if model is None or c in text]  # a given model saw numbers as numbers
    return X.astype(dict.fromkeys(as_levels, "category")), {c: "categorical" for c in codes if c not in as_levels}


def _train(X: pd.DataFrame, y: pd.Series[Any], arguments: argparse.Namespace) -> tuple[Any, pd.DataFrame]:
    """Train gradient boosting on the rows with a response, and say how good it is."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

    known = y.notna()
    if not known.all():
        _say(f"{int((~known).sum())} training rows without {y.name!r} are left out")
        X, y = X[known], y[known]
    counts = y.value_counts()
    is_number = pd.api.types.is_numeric_dtype(y) and not pd.api.types.is_bool_dtype(y)
    is_class = not is_number or len(counts) == 2 or y.name in arguments.categorical
    _check_trainable(X, y, counts, is_class, arguments)
    settings = {"max_leaf_nodes": 8, "categorical_features": "from_dtype", "random_state": 0}
    if is_class:
        model = HistGradientBoostingClassifier(**settings)
        measure, scoring = "AUC", "roc_auc" if len(counts) == 2 else "roc_auc_ovr"
        folds: Any = StratifiedKFold(min(5, max(2, counts.min())), shuffle=True, random_state=0)
    else:
        model = HistGradientBoostingRegressor(**settings)
        measure, scoring, folds = "R2", "r2", KFold(min(5, len(y)), shuffle=True, random_state=0)
    try:
        quality = cross_val_score(model, X, y, cv=folds, scoring=scoring, error_score="raise").mean()
        model.fit(X, y)
    except (TypeError, ValueError) as error:
        problem = str(error).strip().splitlines()[0].rstrip(".")
        raise InputError(f"no model can be trained on {arguments.train}: {problem}. Give a --model.") from error
    kind = "class" if is_class else "number"
    _say(f"trained a {type(model).__name__} for the {kind} {y.name!r}; cross-validated {measure} {quality:.2f}")
    if not quality >= POOR[measure]:
        _say(f"warning: that is poor: the model says little about {y.name!r}, and so will its explanations")
    return model, X


def _check_trainable(
    X: pd.DataFrame, y: pd.Series[Any], counts: pd.Series[int], is_class: bool, arguments: argparse.Namespace
) -> None:
    wanted = arguments.wanted
    if wanted is None:
        choice = f"one of {listing(counts.index)}" if is_class else "an interval such as 10,20"
        raise InputError(f"--response {y.name} needs --wanted: {choice}.")
    if not is_class and _read_interval(wanted, None) is None:
        raise InputError(
            f"--wanted is {wanted!r}, but --response {y.name} is a number ({len(counts)} different values): "
            f"give an interval, as in 10,20; if its values are classes, add --categorical {y.name}."
        )
    if is_class:
        _read_wanted(wanted, arguments.of, counts.index)
    if len(counts) < 2 or (is_class and counts.min() < 2):
        rare = "no value" if not len(counts) else f"{counts.index[-1]!r} in {counts.iloc[-1]} rows only"
        raise InputError(f"--response {y.name} has {rare}; training needs two values or more, each at least twice.")
    for name in X.select_dtypes("category"):
        if X[name].nunique() > MOST_LEVELS:
            raise InputError(
                f"column {name!r} of {arguments.train} has {X[name].nunique()} different values, more than "
                f"the {MOST_LEVELS} that the model can take. Remove it if it is a name, or give a --model."
            )


def _read_wanted(wanted: str | None, of: str | None, classes: Any) -> Any:
    """Return the wanted decision: an interval, or the model's class that is spelled like `wanted`."""
    interval = _read_interval("0.5,1" if wanted is None else wanted, _read_class("--of", of, classes))
    if interval is not None:
        return interval
    if of is not None:
        raise InputError(f"--of {of} goes with an interval, but --wanted is {wanted!r}; leave --of out.")
    return _read_class("--wanted", wanted, classes)


def _read_interval(text: str, of: Any) -> Interval | None:
    parts = re.fullmatch(r"\s*([\[(]?)([^,]+),([^,\])]+)([\])]?)\s*", text)
    if parts is None:
        return None
    try:
        low, high = float(parts[2]), float(parts[3])
    except ValueError:
        return None
    if bool(parts[1]) != bool(parts[4]):
        raise InputError(f"--wanted is {text!r}; write an interval as 0,1 or [0,1] or [0,1) or (0,inf).")
    closed = {"[]": "both", "[)": "left", "(]": "right", "()": "neither", "": "both"}[parts[1] + parts[4]]
    return Interval(low, high, closed=closed, of=of)


def _read_class(role: str, text: str | None, classes: Any) -> Any:
    if text is None:
        return None
    if classes is None:
        raise InputError(
            f"{role} is {text!r}, but the model declares no classes; give --wanted an interval, as in 10,20."
        )
    known = [c.item() if isinstance(c, np.generic) else c for c in classes]
    for label in known:
        if str(label).lower() == text.strip().lower() or (isinstance(label, float) and f"{label:g}" == text.strip()):
            return label
    raise InputError(f"{role} is {text!r}, which is no class of the model; {did_you_mean(text, known)}")


def _visit_sequence(text: str) -> str | list[str]:
    return text if text in ("data", "correlation") else _names(text)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _separator(text: str) -> str:
    char = {r"\t": "\t", "tab": "\t"}.get(text, text)
    if len(char) != 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a single character")
    return char


# 3. What is written


def _write(found: Counterfactuals, arguments: argparse.Namespace) -> int:
    """Write tables and page; say which rows have no counterfactual, and why."""
    if arguments.out is None:
        print(found)
    elif arguments.out == "-":
        found.to_frame().to_csv(sys.stdout, sep=arguments.sep, index=False)
    else:
        out = Path(arguments.out)
        _write_table(found.to_frame(), out, arguments.sep)
        _say(f"wrote {len(found)} rows to {out}")
        if len(found.unexplained):
            rest = out.with_name(re.sub(r"(\.\w+)?(\.gz)?$", "", out.name) + ".unexplained.csv")
            _write_table(found.unexplained.reset_index(), rest, arguments.sep)
            _say(f"wrote {len(found.unexplained)} rows without a counterfactual to {rest}")
    reasons = list(found.unexplained.groupby("reason", sort=False).groups.items())
    for reason, ids in reasons[:REASONS_SHOWN]:
        _say(f"not explained, {reason}: {listing(ids)}")
    if len(reasons) > REASONS_SHOWN:
        _say(f"and {len(reasons) - REASONS_SHOWN} more reasons")
    if arguments.html is not None:
        ids = found.frame.index.get_level_values("id").unique()[:3]
        sentences = [f"Row {i}: {found.sentence(i)}" for i in ids]
        intro = "What would have led to the wanted decision: the first rows in words, the first as a picture."
        picture = _picture(found) if len(found) else None
        arguments.html.write_text(_page("Counterfactuals", intro, sentences, picture, found), "utf-8")
        _say(f"wrote the page {arguments.html}")
    return SOME_UNEXPLAINED if (found.unexplained["reason"] != ALREADY).any() else DONE


def _write_table(table: pd.DataFrame, path: Path, sep: str) -> None:
    if path.suffix == ".parquet":
        table.to_parquet(path, index=False)
    else:
        table.to_csv(path, sep=sep, index=False)


def _picture(found: Counterfactuals) -> bytes:
    """Draw the first counterfactual, without the global state of pyplot."""
    from matplotlib.figure import Figure

    height = 1.7 + 0.45 * max(found.measures["L0"].iloc[0], 1)
    figure = Figure(figsize=(7, height), layout="constrained")
    found.plot(ax=figure.subplots())
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=150)
    return stream.getvalue()


LEGEND = "In the table: L0 counts the changes; gower is the distance, from 0 (alike) to 1 (far apart)."
STYLE = """
:root{--jp-layout-color0:#fff;color:#1d2330;background:#fff;font:16px/1.5 system-ui,sans-serif}
body{max-width:82rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;line-height:1.2}
p,li{max-width:46rem}
li{margin:.4rem 0}
img{display:block;width:50rem;max-width:100%;height:auto;margin:1.5rem 0}
"""


def _page(title: str, intro: str, sentences: list[str], picture: bytes | None, found: Counterfactuals) -> str:
    """Return a complete page that needs nothing else: sentences, a picture of the first, a table."""
    said = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    image = ""
    if picture is not None:
        data = base64.b64encode(picture).decode()
        image = f'<img alt="{escape(sentences[0])}" src="data:image/png;base64,{data}">'
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body><h1>{escape(title)}</h1>"
        f"<p>{escape(intro)}</p><ol>{said}</ol>\n{image}\n<p>{LEGEND}</p>\n{found._repr_html_()}</body></html>\n"
    )


if __name__ == "__main__":
    sys.exit(main())
