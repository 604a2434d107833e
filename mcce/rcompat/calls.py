"""Functions that the R package `mcce` (`r_bridge/r`) calls, with plain values, bytes and objects that R only holds.

1. R calls `attempt` with the name of a function. Errors and warnings are returned as text in R's syntax. Tables are
   written by `mcce.rcompat.columns`. `connect` checks that both packages have the same version.
2. A model in R is a function of (table, n_rows, parts): R builds a data frame from the parts, using the template that
   it stores under the name `table`, and returns one column. R has one thread; `RScores` rejects calls from others.
3. Explainers and results are sent as the bytes of their files. `changes`, `consequences`, `sentences` and `words`
   of a result are sent on request.
4. Rows with missing cells that the model cannot predict are listed in `unexplained`.
"""

from __future__ import annotations

import dataclasses
import inspect
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce import report
from mcce.constraints import Allow, Constraint, read
from mcce.constraints.reading import read_sections
from mcce.counterfactuals import Counterfactuals
from mcce.exceptions import InputError, MCCEError, MCCEWarning, ModelError, did_you_mean, listing, spell, warn
from mcce.explain.problem import encode_factuals
from mcce.explain.stored import check_fields, read_decision
from mcce.explain.tabulate import with_left_out
from mcce.explainer import MCCE
from mcce.generators.chain import ChainModel
from mcce.model.decisions import Interval, Not, OneOf
from mcce.rcompat.columns import (
    DATED,
    SentColumn,
    columns_of,
    describe_table,
    join_texts,
    read_column,
    read_table,
    split_texts,
    texts_of,
    write_table,
)
from mcce.rcompat.explain import explain_mcce as rcompat_explain
from mcce.rcompat.r_session import RError, lend
from mcce.rcompat.wording import RDialect
from mcce.report.plots import changes_plot
from mcce.rng.r import RGenerator
from mcce.samplers.base import SAMPLERS
from mcce.storage import load_fields
from mcce.table import Feature
from mcce.table.dtypes import is_dated
from mcce.table.frames import index_as_columns
from mcce.table.left_out import LeftOut
from mcce.table.suggest import suggest_fixed as suggest

Sent = Mapping[str, Any]  # a table: "n_rows", "columns", "index" or "labels"
CallR = Callable[[str, int, list[bytearray]], Mapping[str, Any]]


def attempt(name: str, *arguments: Any) -> dict[str, Any]:
    """Call a function of this module by name; return its `value`, or the `error` and its class, and all `warnings`."""
    outcome: dict[str, Any] = {"value": None, "error": None, "kind": None}
    dialect = RDialect(name)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", MCCEWarning)
        try:
            outcome["value"] = FUNCTIONS[name](*arguments)
        except MCCEError as error:
            outcome |= {"error": error.format_for(dialect), "kind": type(error).__name__}
        except Exception as error:
            outcome |= {"error": f"{type(error).__name__}: {error}", "kind": "PythonError"}
    outcome["warnings"] = [each.message.format_for(dialect) for each in caught if isinstance(each.message, MCCEWarning)]
    return outcome


class RScores:
    """A model in R: a function of a frame that returns one prediction for each row.

    Parameters
    ----------
    call_r : callable
        R's function.
    tables : sequence of (name, columns)
        The names of R's templates of a frame, one for each query in order; the last is used for all further queries.
    """

    def __init__(self, call_r: CallR, tables: Sequence[tuple[str, Sequence[SentColumn]]]) -> None:
        self._call_r = call_r
        self._tables = list(tables)
        self._thread = threading.get_ident()
        self.__name__ = "score"  # the predicted quantity, for messages

    def __call__(self, frame: pd.DataFrame) -> Any:
        """Return R's predictions."""
        if threading.get_ident() != self._thread:
            raise RError("R has one thread, and was called from a second one; set n_jobs = 1")
        table, columns = self._tables[0]
        if len(self._tables) > 1:
            del self._tables[0]
        parts = [part for column in write_table(frame, columns) for part in column]
        reply = self._call_r(table, len(frame), parts)
        if reply.get("error") is not None:
            raise RError(str(reply["error"]))
        column, answers = read_column({"name": "answer", **reply}, int(reply["n_rows"]))
        if column.kind in ("integer", "logical") and not pd.isna(answers).any():
            return answers.to_numpy(dtype=np.int64 if column.kind == "integer" else np.bool_)
        return np.asarray(answers) if column.kind == "double" else np.asarray(answers, dtype=object)


@dataclasses.dataclass(frozen=True)
class Fitted:
    """An explainer held by R, with the types of its columns in R."""

    explainer: MCCE
    columns: tuple[SentColumn, ...]


def connect(r_version: str) -> str:
    """Return the version of this package; raise if the R package has another one.

    Versions agree if their first three numbers do: R cannot write ".dev1".
    """
    import mcce

    if _release(r_version) != _release(mcce.__version__):
        raise InputError(
            f"the R package mcce has version {r_version}, and its engine, the Python package mcce, has version "
            f"{mcce.__version__}; both must be the same. Run install_mcce(), which installs the engine that comes with "
            "the R package, and start R again."
        )
    return mcce.__version__


def fit(model: Any, data: Sent, options: Mapping[str, Any]) -> dict[str, Any]:
    """Fit an explainer; `model` is R's function under `ask`, or a Python model."""
    frame, columns = _read(data)
    arguments = {name: _whole(value) for name, value in options.items() if name not in _READ}
    for name, reads in _READ.items():
        if options.get(name) is not None:
            arguments[name] = reads(options[name])
    if isinstance(arguments.get("random_state"), str):  # R's doubles hold integers up to 2**53 only
        arguments["random_state"] = _seed(arguments["random_state"])
    fitted = Fitted(MCCE(_model(model, columns), **arguments).fit(frame, progress=False), columns)
    return {"fitted": fitted, **describe(fitted)}


def explain(fitted: Fitted, data: Sent, options: Mapping[str, Any]) -> dict[str, Any]:
    return _explained(fitted, data, options, "explain")


def recourse(fitted: Fitted, data: Sent, options: Mapping[str, Any]) -> dict[str, Any]:
    return _explained(fitted, data, options, "recourse")


def _explained(fitted: Fitted, data: Sent, options: Mapping[str, Any], method: str) -> dict[str, Any]:
    _check_names(options, inspect.signature(getattr(MCCE, method)).parameters, f"{method}()")
    frame, _ = _read(data)
    arguments = {name: _whole(value) for name, value in options.items()}
    if arguments.get("constraints") is not None:
        arguments["constraints"] = _constraints(arguments["constraints"])
    left_out = _unreadable(fitted.explainer, frame)
    rows = frame if left_out is None else frame[left_out.kept]
    found = getattr(fitted.explainer, method)(rows, progress=False, **arguments)
    if left_out is not None:
        found = with_left_out(found, left_out, fitted.explainer.generator_.schema_)
    return {"found": found, **_result(found, fitted.columns)}


def generate(fitted: Fitted, data: Sent, n_samples: float) -> dict[str, Any]:
    frame, _ = _read(data)
    drawn = fitted.explainer.generate(frame, n_samples=_whole(n_samples), progress=False)
    return _written(drawn.reset_index(drop=True), fitted.columns)


def changes(found: Counterfactuals) -> dict[str, Any]:
    """Return every changed cell of a result."""
    table = found.changes()
    table[["from", "to"]] = table[["from", "to"]].astype(object).map(_text)
    table["feature"] = table["feature"].astype(str)
    return _written(table)


def consequences(found: Counterfactuals) -> dict[str, Any] | None:
    """Return the expected consequences of the actions of recourse; None for counterfactuals."""
    if found.consequences is None:
        return None
    table = found.consequences.copy()
    table[["low", "high"]] = table[["low", "high"]].astype(object).map(_text)
    table["feature"] = table["feature"].astype(str)
    return _written(table)


def sentences(found: Counterfactuals) -> dict[str, Any]:
    """Return one sentence for each factual, and the ids."""
    texts = report.sentences(found)
    return {"texts": join_texts([str(text) for text in texts]), "ids": _index(texts.index)}


def words(found: Counterfactuals) -> str:
    return repr(found)


def suspicious(found: Counterfactuals, level: str) -> dict[str, Any]:
    """Return the counterfactuals that need a review before they are sent, and why."""
    return _written(index_as_columns(found.suspicious(level)))


def criticise(fitted: Fitted, data: Sent, options: Mapping[str, Any]) -> dict[str, Any]:
    """Evaluate each conditional of a chain on new rows."""
    _check_names(options, inspect.signature(ChainModel.criticise).parameters, "criticise()")
    generator = fitted.explainer.generator_
    frame, _ = _read(data)
    wanted = (
        fitted.explainer.decision_.evaluate(frame, "new rows").wanted if generator.conditions_on_decision_ else None
    )
    found = generator.criticise(frame, decision=wanted, progress=False, **_whole(options))
    table = _written(index_as_columns(found.table))
    return {"table": table, "rejected": list(map(str, found.rejected)), "words": repr(found)}


def suggest_fixed(data: Sent, fixed: Sequence[str], kinds: Mapping[Any, Any] | None) -> dict[str, Any]:
    """Return the features of a table that look like unchangeable facts."""
    return _written(index_as_columns(suggest(_read(data)[0], list(fixed), kinds)))


def summary(found: Counterfactuals) -> dict[str, Any]:
    """Return the summary figures of a result, as numbers."""
    table = found.summary()
    figures = pd.to_numeric(table["value"], errors="coerce").astype(np.float64)
    return _written(pd.DataFrame({"figure": table.index.astype(str), "value": figures.to_numpy()}))


def picture(found: Counterfactuals, path: str, id: Any, rank: int, size: Sequence[float]) -> None:
    """Write the plot of one factual, or of the changes of all factuals, as a PNG file."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    axes = changes_plot(found) if id is None else found.plot(_label(found, id), int(rank))
    figure: Any = axes.figure
    figure.set_size_inches(float(size[0]), float(size[1]))
    figure.savefig(path, dpi=float(size[2]), bbox_inches="tight")
    pyplot.close(figure)


def letter(found: Counterfactuals, id: Any, reasons: bool = False) -> str:
    return report.letter(found, _label(found, id), reasons=reasons)


def dump(stored: Any) -> bytearray:
    """Return the bytes of the file of an explainer or a result."""
    with _file() as path:
        (stored.explainer if isinstance(stored, Fitted) else stored).save(path)
        return bytearray(path.read_bytes())


def restore_explainer(model: Any, data: Sent, file: bytes, n_jobs: Any) -> Fitted:
    """Return the explainer of a file; `data` is a table without rows that gives the types of the columns in R."""
    _, columns = _read(data)
    with _file(file) as path:
        return Fitted(MCCE.load(path, _model(model, columns), n_jobs=_whole(n_jobs)), columns)


def columns_of_file(data: Sent, file: bytes) -> dict[str, Any]:
    """Return what R needs to know about an explainer's file before its model can be queried.

    `data` has the columns as they are in R, and possibly others. The result has the `names` of the explainer's columns
    in order, the `levels` and the `units` of time that R's columns need, the `fixed` features, and whether the decision
    is `by_label`.
    """
    with _file(file) as path:
        fields = load_fields(path, "MCCE", lambda read: check_fields(read, read["settings"]))
    features = fields["generator"].schema_.features
    known = {column.name: column for column in _read(data)[1]}
    absent = [each.name for each in features if each.name not in known]
    if absent:
        raise InputError(f"data lacks the column(s) {listing(absent)} of the explainer in the file; give all of them.")
    columns = [_as_in_file(known[each.name], each) for each in features]
    return {
        "names": [column.name for column in columns],
        "levels": [join_texts(column.levels) for column in columns],
        "units": [column.unit for column in columns],
        "fixed": [str(name) for name in fields["settings"]["fixed"]],
        "by_label": not isinstance(read_decision(fields["decision"], None, None), Interval),
    }


def describe(fitted: Fitted) -> dict[str, Any]:
    """Return the seed, the decision and other properties of a fitted explainer."""
    generator = fitted.explainer.generator_
    return {
        "units": [column.unit for column in fitted.columns],
        "seed": str(generator.seed_),
        "decision": fitted.explainer.decision_.describe(),
        "generator": type(generator).__name__,
        "seconds": float(fitted.explainer.fit_seconds_),
    }


def _as_in_file(column: SentColumn, feature: Feature) -> SentColumn:
    """Return a column of R that can hold all values the explainer draws: with its levels and its unit of time."""
    if column.kind in ("factor", "ordered"):
        levels = texts_of(feature.levels, column.name) if feature.levels is not None else []
        more = [level for level in column.levels if level not in levels]
        if column.kind == "ordered":
            return dataclasses.replace(column, levels=(*levels, *more))
        return dataclasses.replace(column, levels=(*column.levels, *(x for x in levels if x not in column.levels)))
    if column.kind in DATED and is_dated(feature.dtype):
        dtype: Any = feature.dtype
        return dataclasses.replace(column, unit=np.datetime_data(getattr(dtype, "base", dtype))[0])
    return column


def restore_result(file: bytes) -> Counterfactuals:
    with _file(file) as path:
        return Counterfactuals.load(path)


def explain_mcce(
    call_r: CallR, x_explain: Sent, x_train: Sent | None, options: Mapping[str, Any], random_seed: bytes
) -> dict[str, Any]:
    """Run `mcce.rcompat.explain_mcce`; without a seed, continue R's session stream, `.Random.seed`."""
    arguments = {name: _whole(value) for name, value in options.items()}
    session = RGenerator.from_random_seed(np.frombuffer(bytes(random_seed), dtype="<i4"))
    model = arguments.pop("featuremodel_object", None)
    if arguments.get("fit_seed") is None and model is None:
        arguments["fit_seed"] = session
    elif arguments.get("generate_seed") is None and model is not None:
        arguments["generate_seed"] = session
    factuals, explained = _read(x_explain)
    train, trained = (None, explained) if x_train is None else _read(x_train)
    fixed = arguments.get("fixed_features") or []
    known = {column.name: column for column in explained}
    kept = set(fixed if model is None else map(str, model.fixed_features))
    generated = [known.get(column.name, column) if column.name in kept else column for column in trained]
    templates = [("sim", generated)] if model is not None else [("train", trained), ("sim", generated)]
    scores = RScores(call_r, templates)
    found = rcompat_explain(None, factuals, train, lambda _, rows: scores(rows), featuremodel_object=model, **arguments)
    ids = [SentColumn(name, "integer") for name in ("id_explain", "counterfactual_rank")]
    written: dict[str, Any] = {
        "cf": _written(found.cf, [*ids, *generated]),
        "cf_measures": _written(found.cf_measures),
        "fixed_features": list(map(str, found.fixed_features)),
        "mutable_features": list(map(str, found.mutable_features)),
        "time": None if found.time is None else [float(seconds) for seconds in found.time],
        "featuremodel_object": found.featuremodel_object,
        "random_seed": bytearray(session.random_seed.astype("<i4").tobytes()),
    }
    if found.sim_data is not None:
        written["sim_data"] = _written(found.sim_data, [ids[0], *generated])
    return written


def send_frame(frame: pd.DataFrame) -> dict[str, Any]:
    """Return a frame created in Python, for example by `mcce.datasets`."""
    return _written(frame.reset_index(drop=True))


def round_trip(data: Sent) -> dict[str, Any]:
    """Return a table unchanged after conversion to a frame and back; for tests."""
    frame, columns = _read(data)
    return _written(frame, columns) | {"units": [column.unit for column in columns]}


FUNCTIONS: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        connect,
        lend,
        fit,
        explain,
        recourse,
        generate,
        changes,
        consequences,
        sentences,
        words,
        suspicious,
        criticise,
        suggest_fixed,
        summary,
        picture,
        letter,
        dump,
        restore_explainer,
        columns_of_file,
        describe,
        restore_result,
        explain_mcce,
        send_frame,
        round_trip,
    )
}


@contextmanager
def _file(content: bytes = b"") -> Iterator[Path]:
    """Yield a temporary path of a file with this content."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "object.mcce"
        path.write_bytes(bytes(content))
        yield path


def _read(data: Sent) -> tuple[pd.DataFrame, tuple[SentColumn, ...]]:
    n_rows = int(data["n_rows"])
    index: Any = None
    if data.get("labels") is not None:
        index = pd.Index(split_texts(data["labels"]), dtype=object)
    elif data.get("index") is not None:
        index = np.frombuffer(bytes(data["index"]), dtype="<i4").astype(np.int64)
    return read_table(data["columns"], n_rows, index)


def _written(frame: pd.DataFrame, columns: Sequence[SentColumn] | None = None) -> dict[str, Any]:
    """Return a table for R; column types are included only if R has no template for them."""
    plain = frame if columns is not None else frame.set_axis(frame.columns.astype(str), axis=1)
    known = columns_of(plain) if columns is None else columns
    return describe_table(plain, known)


def _result(found: Counterfactuals, columns: Sequence[SentColumn]) -> dict[str, Any]:
    """Return the tables of a result that need no further computation."""
    return {
        "frame": _written(found.frame.reset_index(drop=True), columns),
        "index": _index(found.frame.index.get_level_values("id")),
        "rank": [int(rank) for rank in found.frame.index.get_level_values("rank")],
        "measures": _written(found.measures.reset_index(drop=True)),
        "unexplained": _written(index_as_columns(found.unexplained[["reason", "prediction"]].rename_axis("id"))),
        "settings": {
            name: value
            for name, value in found.run.settings.items()
            if isinstance(value, (bool, int, float, str)) or value is None
        },
    }


def _index(labels: pd.Index[Any]) -> dict[str, Any]:
    """Return ids as row numbers or row names of R."""
    if labels.dtype.kind in "iu":
        return {"index": bytearray(labels.to_numpy().astype("<i4").tobytes())}
    return {"labels": join_texts([str(label) for label in labels])}


def _label(found: Counterfactuals, id: Any) -> Any:
    """Return the label of a factual as its index has it: R's row names are whole numbers or text."""
    if found.factuals.index.dtype.kind in "iu":
        try:
            return int(id)
        except (TypeError, ValueError, OverflowError):
            return id
    return str(_whole(id))


def _text(value: Any) -> str | None:
    if pd.isna(value):
        return None
    return f"{value:.15g}" if isinstance(value, (float, np.floating)) else str(value)


def _model(model: Any, columns: Sequence[SentColumn]) -> Any:
    """Return the model: a function of R under `ask`, or a Python object unchanged."""
    if isinstance(model, Mapping):
        return RScores(model["ask"], [("data", columns)])
    return model


def _whole(value: Any) -> Any:
    """Return integer-valued doubles as integers, also in lists and dicts; most numbers in R are doubles."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_whole(each) for each in value]
    if isinstance(value, Mapping):
        return {name: _whole(each) for name, each in value.items()}
    return value


def _decision(sent: Any) -> Any:
    """Return the decision: the ends of an interval, or wanted or unwanted labels."""
    if not isinstance(sent, Mapping):
        return _whole(sent)
    kind, rest = sent["kind"], {name: value for name, value in sent.items() if name != "kind" and value is not None}
    if kind == "interval":
        return Interval(**rest)
    labels = rest.pop("labels")
    if kind == "none_of":
        return Not(labels, **rest)
    return labels[0] if len(labels) == 1 and not rest else OneOf(labels, **rest)


def _sampler(sent: Any) -> Any:
    """Return samplers: a name, a name with parameters, or a dict of these by feature."""
    if not isinstance(sent, Mapping):
        return sent
    if "sampler" not in sent or "parameters" not in sent:
        return {name: _sampler(each) for name, each in sent.items()}
    cls, parameters = SAMPLERS.find(sent["sampler"]), _whole(sent["parameters"])
    _check_names(parameters, inspect.signature(cls).parameters, f'sampler("{sent["sampler"]}")')
    return cls(**parameters)


def _constraints(sent: Any) -> list[Constraint]:
    """Return constraints: rules as text, allow() as a named list, or named lists with the sections of a file."""
    if isinstance(sent, (str, Mapping)):
        sent = [sent]
    if not isinstance(sent, list):
        raise InputError(f"constraints are a {type(sent).__name__}; give a list of allow() and of rules as text.")
    found: list[Any] = []
    for place, each in enumerate(_whole(sent)):
        where = f"constraints, entry {place}"
        if not isinstance(each, Mapping):
            found.append(each)
        elif "feature" in each:
            found.append(Allow.from_table(each, where))
        else:
            found += read_sections(each, where)
    return read(found)


def _check_names(given: Iterable[str], known: Iterable[str], of: str) -> None:
    """Raise if an argument has a name that the function does not take."""
    names = [name for name in known if name not in ("self", "X", "X_new", "decision")]
    for name in given:
        if name not in names:
            raise InputError(f"{of} has no argument {name!r}; {did_you_mean(name, names)}")


def _release(version: str) -> list[str]:
    return version.split(".")[:3]


def _seed(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InputError(f"random_state is {spell(text)}; give a whole number, beyond 2^53 as text.") from None


def _unreadable(explainer: MCCE, frame: pd.DataFrame) -> LeftOut | None:
    """Return the rows with missing cells that the model cannot predict; None if there are none.

    Rows with the same missing columns are queried together, and all rejected if the model fails on the first of them.
    If the model fails on every row, no row is left out: the model's error is more informative.
    """
    schema = explainer.generator_.schema_
    if any(name not in frame.columns for name in schema.names):
        return None
    missing = frame[schema.names].isna().to_numpy(dtype=bool)
    rows = np.flatnonzero(missing.any(axis=1))
    if not rows.size or _answers(explainer, frame.iloc[rows]):
        return None
    patterns, pattern_of = np.unique(missing[rows], axis=0, return_inverse=True)
    reasons: dict[int, str] = {}
    for k, pattern in enumerate(patterns):
        lacking = listing([name for name, is_missing in zip(schema.names, pattern) if is_missing])
        for place in _refused(explainer, frame, rows[pattern_of.ravel() == k]):
            reasons[place] = f"the model cannot predict rows in which {lacking} is missing"
    if not reasons or len(reasons) == len(frame):
        return None
    left_out = LeftOut(frame, dict(sorted(reasons.items())))
    some = "; ".join(f"{spell(frame.index[place])} ({why})" for place, why in list(left_out.reasons.items())[:5])
    warn(
        f"{len(reasons)} of {len(frame)} rows are not explained: {some}{'; ...' if len(reasons) > 5 else ''}. Impute "
        "or drop such rows; `unexplained` lists them."
    )
    return left_out


def _refused(explainer: MCCE, frame: pd.DataFrame, rows: npt.NDArray[np.intp]) -> list[int]:
    """Return which of the given rows the model cannot predict, by bisection."""
    if not rows.size or _answers(explainer, frame.iloc[rows]):
        return []
    if not _answers(explainer, frame.iloc[rows[:1]]):
        return [int(place) for place in rows]
    half = rows.size // 2
    return _refused(explainer, frame, rows[:half]) + _refused(explainer, frame, rows[half:])


def _answers(explainer: MCCE, frame: pd.DataFrame) -> bool:
    """Return whether the model can predict all given rows; rows that cannot be encoded are left to `explain`."""
    schema = explainer.generator_.schema_
    try:
        _, matrix = encode_factuals(frame, schema)
    except InputError:
        return True
    try:
        explainer.decision_.evaluate(schema.decode_for_model(matrix), "rows with missing cells")
    except ModelError:
        return False
    return True


_READ = {"decision": _decision, "sampler": _sampler, "constraints": _constraints}
