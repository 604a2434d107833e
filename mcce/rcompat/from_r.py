"""What the R package `mcce` (`r_bridge/r`) calls, and what it shares with `r_bridge`: tables, calls, conditionals.

1. Tables travel as bytes, because converters between the languages lose missing integers, logicals and texts. A column
   is a dict of `name`, `kind` (one of `KINDS`), `values` (little-endian: float64 of numbers, of days of dates and of
   seconds of times, int32 of the rest), `missing` (a byte for each row; empty if none is missing), `texts` (UTF-8, each
   ended by a zero byte: the levels that codes 0, 1, ... refer to) and `zone`. A table has `n_rows`, `columns`, and row
   numbers (`index`) or row names (`labels`).
2. R calls `attempt` with the name of a function; errors and warnings come back as text. A model in R is a function of a
   table (`RScores`).
3. A conditional in R (`RConditional`) is fitted by a function of (x, y), and drawn from by a function of new rows and
   a uniform number for each of them.

R has one thread: calls from others are errors.
"""

from __future__ import annotations

import datetime
import inspect
import threading
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api import types as ptypes

from mcce._utils import Bools, Floats
from mcce.constraints import allow
from mcce.counterfactuals import Counterfactuals
from mcce.exceptions import InputError, MCCEError, MCCEWarning, did_you_mean, listing, spell
from mcce.explainer import MCCE
from mcce.model import Interval
from mcce.rcompat.explain import explain_mcce as explain_as_mccer
from mcce.rcompat.random import RGenerator
from mcce.rng import RowStreams, resolve_seed
from mcce.samplers import ConditionalSampler, MarginalSampler, make_sampler
from mcce.table import Column, Feature, Table
from mcce.table.dtypes import EXACT, UNITS, from_ticks, is_date, python_dates, tick_length, ticks_of

KINDS = ("double", "integer", "logical", "character", "factor", "ordered", "Date", "POSIXct")
LARGEST_SEED = 2**31 - 1
PROBED = 6  # training rows that are drawn together and apart, to see whether the draws depend on other rows

Sent = Mapping[str, Any]


class RError(MCCEError):
    """A function of R failed, or was called from a second thread."""


# ---------------------------------------------------------------------------------------------------------------------
# tables
# ---------------------------------------------------------------------------------------------------------------------


def read_table(sent: Sent) -> pd.DataFrame:
    """Return a table that R sends; integers and logicals have dtypes that can be missing.

    Examples
    --------
    >>> import numpy as np
    >>> age = {"name": "age", "kind": "integer", "values": np.array([36, 0], "<i4").tobytes(), "missing": b"\\0\\1"}
    >>> read_table({"n_rows": 2, "columns": [age]})["age"].tolist()
    [36, <NA>]
    """
    n_rows, names = int(sent["n_rows"]), [str(column["name"]) for column in sent["columns"]]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"the data frame has the column name(s) {listing(twice)} more than once; rename them.")
    values = {j: read_column(column, n_rows) for j, column in enumerate(sent["columns"])}
    frame = pd.DataFrame(values, index=pd.RangeIndex(n_rows)).set_axis(pd.Index(names, dtype=object), axis=1)
    if sent.get("labels") is not None:
        frame.index = pd.Index(split_texts(sent["labels"]), dtype=object)
    elif sent.get("index") is not None:
        frame.index = pd.Index(np.frombuffer(bytes(sent["index"]), dtype="<i4").astype(np.int64))
    return frame


def read_column(sent: Sent, n_rows: int) -> Any:
    """Return the values of one column that R sends, as an array of pandas or numpy."""
    name, kind = str(sent["name"]), str(sent["kind"])
    if kind not in KINDS:
        raise InputError(f"column {name!r} has the kind {kind!r}; known are {listing(KINDS)}. Convert it in R.")
    is_double = kind in ("double", "Date", "POSIXct")
    values: Any = np.frombuffer(bytes(sent["values"]), dtype="<f8" if is_double else "<i4")
    missing = np.frombuffer(bytes(sent.get("missing") or bytes(n_rows)), dtype=np.bool_)
    if values.size != n_rows or missing.size != n_rows:
        raise InputError(f"column {name!r} has {values.size} values and {missing.size} marks for {n_rows} rows.")
    if kind == "double":
        return np.where(missing, np.nan, values)
    if kind == "logical":
        return pd.arrays.BooleanArray(values != 0, missing.copy())
    if kind == "integer":
        return pd.arrays.IntegerArray(values.astype(np.int64), missing.copy())
    if is_double:
        return _read_dates(name, kind, values, missing, str(sent.get("zone") or "UTC"))
    texts, codes = split_texts(sent.get("texts") or b""), np.where(missing, -1, values)
    if kind == "character":
        return pd.array(np.array([*texts, None], dtype=object)[codes], dtype=pd.StringDtype("python"))
    return pd.Categorical.from_codes(codes, pd.Index(texts, dtype=object), ordered=kind == "ordered")


def _read_dates(name: str, kind: str, values: Floats, missing: Bools, zone: str) -> Any:
    """Return dates in seconds, times in the zone in microseconds unless whole seconds are exact."""
    seconds = np.where(missing, 0.0, values) * (86_400.0 if kind == "Date" else 1.0)
    if not (np.abs(seconds) < 2.0**43).all():
        raise InputError(f"column {name!r} holds a time that is infinite or too far away; make it missing in R.")
    unit = "s" if (seconds == np.rint(seconds)).all() else "us"
    dtype: Any = np.dtype(f"M8[{unit}]")
    if kind == "POSIXct":
        try:
            dtype = pd.DatetimeTZDtype(unit, zone)
        except (KeyError, ValueError, OSError, TypeError):  # unknown to Python: the instants are the same
            dtype = pd.DatetimeTZDtype(unit, "UTC")
    return from_ticks(np.rint(seconds * (1.0 if unit == "s" else 1e6)).astype(np.int64), missing, dtype, None)


def write_table(frame: pd.DataFrame) -> dict[str, Any]:
    """Return a table for R; the index is not written."""
    return {"n_rows": len(frame), "columns": [write_column(frame.iloc[:, j]) for j in range(frame.shape[1])]}


def write_column(column: pd.Series[Any]) -> dict[str, Any]:
    """Return one column for R, by its dtype, and a column of objects by the dtype of its values."""
    name, cell = str(column.name), python_dates(column)
    if column.dtype == object and cell is None:
        column = column.convert_dtypes()
    dtype: Any = column.dtype
    missing = column.isna().to_numpy(dtype=bool)
    texts: Sequence[str] = ()
    values: npt.NDArray[Any]
    if isinstance(dtype, pd.CategoricalDtype):
        kind, texts = "ordered" if dtype.ordered else "factor", texts_of(dtype.categories, name)
        values = column.cat.codes.to_numpy(dtype=np.int32)
    elif cell is not None or is_date(dtype):
        kind, values = _write_dates(column, missing, cell)
    elif ptypes.is_bool_dtype(dtype):
        kind, values = "logical", column.to_numpy(dtype=np.bool_, na_value=False).astype(np.int32)
    elif ptypes.is_integer_dtype(dtype):
        whole = column.to_numpy(dtype=np.int64, na_value=0)
        largest = max(-int(whole.min(initial=0)), int(whole.max(initial=0)))
        if largest > EXACT:
            raise InputError(f"column {name!r} holds integers beyond 2**53, which R cannot hold; use text.")
        kind, values = ("integer", whole.astype(np.int32)) if largest < 2**31 else ("double", whole.astype(np.float64))
    elif ptypes.is_float_dtype(dtype):
        kind, values = "double", column.to_numpy(dtype=np.float64, na_value=np.nan)
    elif ptypes.is_string_dtype(dtype):
        codes, distinct = pd.factorize(column)
        kind, texts, values = "character", [str(text) for text in distinct], codes.astype(np.int32)
    else:
        raise InputError(
            f"column {name!r} has dtype {dtype}, for which R has no type; convert it to numbers, text or dates."
        )
    values = np.where(missing, np.zeros((), dtype=values.dtype), values)
    return {
        "name": name,
        "kind": kind,
        "values": bytearray(values.astype(values.dtype.newbyteorder("<")).tobytes()),
        "missing": bytearray(missing.tobytes() if missing.any() else b""),
        "texts": join_texts(texts, name),
        "zone": str(getattr(dtype, "tz", None) or "UTC"),
    }


def _write_dates(column: pd.Series[Any], missing: Bools, cell: type | None) -> tuple[str, Floats]:
    """Return dates without a time in days, times in seconds."""
    dtype: Any = column.dtype
    is_days = isinstance(dtype, pd.PeriodDtype) and str(dtype) == "period[D]"
    length = UNITS["D"] if is_days else tick_length(dtype, cell)
    if getattr(dtype, "kind", "") == "m" or not length:
        raise InputError(
            f"column {str(column.name)!r} has dtype {dtype}, for which R has no type that keeps it; convert it to "
            "numbers, such as .dt.total_seconds(), or to dates by .dt.to_timestamp()."
        )
    ticks = ticks_of(column, missing, cell)
    if length == UNITS["D"]:
        return "Date", ticks.astype(np.float64)
    return "POSIXct", ticks / (UNITS["s"] / length)


def texts_of(levels: pd.Index[Any], name: str) -> list[str]:
    """Return levels in R's spelling: TRUE for True, 5 for 5 and for 5.0."""
    texts = [text_of(level) for level in levels]
    if len(set(texts)) < len(texts):
        raise InputError(f"the levels {listing(levels)} of column {name!r} are not distinct as text, as R needs them.")
    return texts


def text_of(value: Any) -> str:
    """Return a value as R writes it."""
    if isinstance(value, (bool, np.bool_)):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime.datetime):
        return str(value).removesuffix(" 00:00:00")
    return f"{value:.15g}" if isinstance(value, (float, np.floating)) else str(value)


def split_texts(texts: bytes) -> list[str]:
    """Return the texts of bytes in which a zero byte ends each text."""
    return bytes(texts).decode("utf-8").split("\0")[:-1]


def r_holds(text: str) -> bool:
    """Return whether R can hold a text: without null characters and halves of surrogate pairs."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def join_texts(texts: Sequence[str], name: str = "") -> bytearray:
    """Return the bytes of texts, each ended by a zero byte."""
    for text in texts:
        if not r_holds(text):
            raise InputError(f"column {name!r} holds {text!r}, with a character that R cannot hold; replace it.")
    return bytearray("".join(f"{text}\0" for text in texts).encode("utf-8"))


# ---------------------------------------------------------------------------------------------------------------------
# calls
# ---------------------------------------------------------------------------------------------------------------------

FUNCTIONS: dict[str, Callable[..., Any]] = {}


def _call_from_r(function: Callable[..., Any]) -> Callable[..., Any]:
    FUNCTIONS[function.__name__] = function
    return function


def attempt(name: str, *arguments: Any) -> dict[str, Any]:
    """Call a function of this module by name; return its `value`, or the `error` and its class, and the `warnings`."""
    outcome: dict[str, Any] = {"value": None, "error": None, "kind": None}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", MCCEWarning)
        try:
            outcome["value"] = FUNCTIONS[name](*arguments)
        except MCCEError as error:
            outcome |= {"error": str(error), "kind": type(error).__name__}
        except Exception as error:
            outcome |= {"error": f"{type(error).__name__}: {error}", "kind": "PythonError"}
    outcome["warnings"] = [str(warning.message) for warning in caught]
    return outcome


class RScores:
    """A model in R as a function of a frame; `name` is the predicted quantity, for messages."""

    def __init__(self, call_r: Callable[[Sent], Sent], name: str = "score") -> None:
        self.call_r = OneThread(call_r)
        self.__name__ = name

    def __call__(self, frame: pd.DataFrame) -> Any:
        """Return R's predictions: numbers, or labels."""
        reply = self.call_r(write_table(frame))
        answers = read_column({"name": self.__name__, **reply}, int(reply["n_rows"]))
        if isinstance(answers, pd.arrays.BooleanArray) and not answers.isna().any():
            return answers.to_numpy(dtype=np.bool_)
        return np.asarray(answers, dtype=np.float64 if reply["kind"] in ("double", "integer") else object)


class OneThread:
    """A function of R, which returns a dict; its `error` is raised, and so is a call from another thread."""

    def __init__(self, function: Callable[..., Sent]) -> None:
        self.function, self.thread = function, threading.get_ident()

    def __call__(self, *arguments: Any) -> Sent:
        if threading.get_ident() != self.thread:
            raise RError("R has one thread, and was called from a second one; leave n_jobs at 1.")
        reply = self.function(*arguments)
        if reply.get("error") is not None:
            raise RError(str(reply["error"]))
        return reply

    def __deepcopy__(self, memo: Any) -> OneThread:
        return self  # scikit-learn's clone copies parameters; R's functions do not change


@_call_from_r
def connect(r_version: str) -> str:
    """Return the version of this package; raise if that of the R package is another one."""
    version = metadata.version("mcce")
    if r_version.split(".")[:3] != version.split(".")[:3]:  # R cannot write ".dev1"
        raise InputError(
            f"the R package mcce has version {r_version}, and its engine, the Python package mcce, has {version}; "
            "run install_mcce(), which installs the engine that comes with the R package, and start R again."
        )
    return version


@_call_from_r
def loans(load_loans: Callable[..., Any], n: float) -> dict[str, Any]:
    """Return the simulated loans of `mcce.datasets`, the response last."""
    dataset = load_loans(_plain(n))
    return write_table(dataset.X.assign(default=np.asarray(dataset.y, dtype=bool)))


@_call_from_r
def fit(model: Any, data: Sent, options: Mapping[str, Any]) -> dict[str, Any]:
    """Fit an explainer; `model` is {"ask": a function of R, "name": its quantity}, or a Python model."""
    options = _plain(options)
    constructor = {name: value for name, value in options.items() if name not in ("sample_weight", "relations")}
    _check_names(constructor, inspect.signature(MCCE).parameters, "mcce()")
    readers: dict[str, Callable[[Any], Any]] = {
        "decision": _read_decision,
        "sampler": _read_sampler,
        "constraints": _read_constraints,
    }
    for name, read in readers.items():
        if name in constructor:
            constructor[name] = read(constructor[name])
    queried = RScores(model["ask"], model["name"]) if isinstance(model, Mapping) else model
    further = {name: options[name] for name in options if name not in constructor}
    explainer = MCCE(queried, **constructor).fit(read_table(data), **further)
    return {"explainer": explainer, "seed": str(explainer.generator_.seed_), "seconds": explainer.fit_seconds_}


@_call_from_r
def explain(explainer: MCCE, data: Sent, options: Mapping[str, Any]) -> dict[str, Any]:
    """Explain rows; return the result and its tables."""
    arguments = _plain(options)
    _check_names(arguments, inspect.signature(MCCE.explain).parameters, "explain()")
    if "constraints" in arguments:
        arguments["constraints"] = _read_constraints(arguments["constraints"])
    result = explainer.explain(read_table(data), progress=False, **arguments)
    changes = result.changes()
    changes[["from", "to"]] = changes[["from", "to"]].map(lambda cell: None if pd.isna(cell) else text_of(cell))
    settings = {k: v for k, v in result.settings.items() if v is None or isinstance(v, (bool, int, float, str))}
    return {
        "python": result,
        "rows": write_table(result.frame),
        "index": write_table(result.frame.index.to_frame(index=False)),
        "measures": write_table(result.measures),
        "unexplained": write_table(result.unexplained.reset_index().infer_objects()),
        "changes": write_table(changes.astype({"feature": str, "direction": str})),
        "text": repr(result),
        "settings": {**settings, "seed": str(settings["seed"])},
    }


@_call_from_r
def sentence(result: Counterfactuals, id: Any, rank: float) -> str:
    """Return one counterfactual as a sentence."""
    return result.sentence(_label(result, id), int(rank))


@_call_from_r
def summarise(result: Counterfactuals) -> dict[str, Any]:
    """Return the figures of a result: what, of, value."""
    table = result.summary().reset_index()
    return write_table(table.astype({"what": str, "of": str, "value": np.float64}))


@_call_from_r
def draw_picture(result: Counterfactuals, path: str, id: Any, rank: float) -> None:
    """Write the plot of one row, or of all, as a PNG file."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    axes = result.plot() if id is None else result.plot(_label(result, id), int(rank))
    figure: Any = axes.figure
    figure.savefig(path, dpi=200, bbox_inches="tight")
    pyplot.close(figure)


@_call_from_r
def explain_mcce(
    call_r: Callable[[Sent, bytearray], Sent],
    x_explain: Sent,
    x_train: Sent | None,
    predictions: bytes,
    options: Mapping[str, Any],
    random_seed: bytes,
) -> dict[str, Any]:
    """Run `mcce.rcompat.explain_mcce`; streams without a seed continue R's session stream, `.Random.seed`.

    As in mcceR, the training rows are predicted before the stream is read (`predictions`), and the generated rows with
    the stream that generating leaves, which `call_r` gets with them: predicting may draw random numbers too.
    """
    arguments = _plain(options)
    session = RGenerator.from_random_seed(np.frombuffer(bytes(random_seed), dtype="<i4"))
    seeds = (arguments.pop("fit_seed", None), arguments.pop("generate_seed", None))
    fit_stream = session if seeds[0] is None else RGenerator(seeds[0])
    is_fitted = arguments.get("featuremodel_object") is not None
    stream = (session if is_fitted else fit_stream) if seeds[1] is None else RGenerator(seeds[1])
    of_training = [] if is_fitted else [np.frombuffer(bytes(predictions), dtype="<f8")]
    ask = OneThread(call_r)

    def predict_model(_: Any, frame: pd.DataFrame) -> Any:
        if of_training:
            return of_training.pop()
        reply = ask(write_table(frame), bytearray(stream.random_seed.astype("<i4").tobytes()))
        return read_column({"name": "prediction", **reply}, int(reply["n_rows"]))

    result = explain_as_mccer(
        None,
        read_table(x_explain),
        None if x_train is None else read_table(x_train),
        predict_model,
        fit_seed=fit_stream,
        generate_seed=stream,
        **{**arguments, "c_int": tuple(arguments["c_int"])},
    )
    return {
        "cf": write_table(result.cf),
        "cf_measures": write_table(result.cf_measures),
        "fixed_features": [str(name) for name in result.fixed_features],
        "mutable_features": [str(name) for name in result.mutable_features],
        "time": None if result.time is None else [float(seconds) for seconds in result.time],
        "featuremodel_object": result.featuremodel_object,
        "sim_data": None if result.sim_data is None else write_table(result.sim_data),
    }


def _plain(value: Any) -> Any:
    """Return R's values as Python's: whole doubles as integers, since most numbers of R are doubles."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list) else value


def _read_decision(sent: Mapping[str, Any]) -> Any:
    """Return an interval, or a list of labels."""
    if "labels" in sent:
        return list(sent["labels"])
    return Interval(sent["low"], sent["high"], closed=sent["closed"], of=sent.get("of"))


def _read_sampler(sent: Any) -> Any:
    """Return a name, a sampler with parameters, a conditional of R, or a dict of these by feature."""
    if not isinstance(sent, Mapping):
        return sent
    if "fit_in_r" in sent:
        return LentSampler(OneThread(sent["fit_in_r"]))
    if set(sent) != {"sampler", "parameters"}:
        return {name: _read_sampler(sampler) for name, sampler in sent.items()}
    sampler = make_sampler(sent["sampler"])
    _check_names(sent["parameters"], sampler.get_params(deep=False), f"sampler({spell(sent['sampler'])})")
    return sampler.set_params(**sent["parameters"])


def _read_constraints(sent: Any) -> list[Any]:
    """Return constraints: rules are texts, allow() is a dict of its arguments."""
    constraints: list[Any] = []
    for constraint in sent:
        if isinstance(constraint, Mapping):
            step = constraint.get("max_step")
            step = pd.Timedelta(**step) if isinstance(step, Mapping) else step  # of a difftime R sends the seconds
            constraint = allow(**{**constraint, "max_step": step})
        constraints.append(constraint)
    return constraints


def _check_names(arguments: Iterable[str], parameters: Iterable[str], of: str) -> None:
    """Raise if an argument has a name that the function does not take."""
    names = [name for name in parameters if name not in ("self", "X", "model", "progress")]
    for name in arguments:
        if name not in names:
            raise InputError(f"{of} has no argument {name!r}; {did_you_mean(name, names)}")


def _label(result: Counterfactuals, id: Any) -> Any:
    """Return the label of a row as the result has it: R's row names are whole numbers or text."""
    if result.predictions.index.dtype.kind not in "iu":
        return str(_plain(id))
    try:
        return int(id)
    except (TypeError, ValueError, OverflowError):
        return id


# ---------------------------------------------------------------------------------------------------------------------
# conditionals
# ---------------------------------------------------------------------------------------------------------------------


class RConditional(ConditionalSampler):
    """A conditional whose model is fitted and drawn from by functions of R; a subclass says how they are called.

    Givens are a data frame: numbers and dates are doubles, levels factors. The draws use one uniform number for each
    row, so they are those of the row's own stream; they have no density. Without givens, and for a constant target,
    training values are drawn.
    """

    maker: str  # the function that the user called, for messages
    random_state: int | None

    @abstractmethod
    def fit_in_r(self, x: pd.DataFrame, y: pd.Series[Any], seed: int) -> Callable[[pd.DataFrame, Floats, int], Floats]:
        """Return a function (rows, uniform numbers, seed) that draws from the model that R fits to x and y.

        Levels are drawn as positions among those of y. `seed` is that of R's generator, on which no draw may depend.
        """

    def fit(self, given: Table, target: Column) -> RConditional:
        """Fit R's model."""
        values = np.unique(target.values)
        self.feature_, self.codes_ = target.feature, None if target.feature.is_numeric else values
        self.marginal_ = None
        if not given.features or values.size < 2:
            self.marginal_ = MarginalSampler().fit(given, target)
            return self
        y = pd.Series(as_column(target.feature, target.values, self.codes_), name="y")
        seed = resolve_seed(self.random_state) % LARGEST_SEED
        self.draw_ = self._in_r("learn", self.fit_in_r, as_frame(given), y, seed)
        self._check_rows_alone(given)
        return self

    def sample(self, given: Table, rng: RowStreams) -> Floats:
        """Draw one value for each row."""
        if self.marginal_ is not None:
            return self.marginal_.sample(given, rng)
        return self._draw(given, rng.uniform(), 1)

    def _draw(self, given: Table, uniform: Floats, seed: int) -> Floats:
        if not given.n_rows:
            return np.empty(0)
        drawn = np.asarray(self._in_r("draw", self.draw_, as_frame(given), uniform, seed), dtype=np.float64)
        return drawn if self.codes_ is None else self.codes_[drawn.astype(np.intp)]

    def _in_r(self, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call R; an error names the feature and the function."""
        try:
            return function(*arguments)
        except MCCEError as error:
            raise RError(f"column {spell(self.feature_.name)}: {what} of {self.maker} stopped. {error}") from error

    def _check_rows_alone(self, given: Table) -> None:
        """Raise if the draw of a row depends on other rows, or on the state of R's generator."""
        rows = np.unique(np.linspace(0, given.n_rows - 1, PROBED).astype(np.intp))
        uniform = (np.arange(rows.size) + 0.5) / rows.size
        together = self._draw(given.take(rows), uniform, 1)[::-2]
        apart = self._draw(given.take(rows[::-2]), uniform[::-2], 2)
        if not np.allclose(together, apart, rtol=1e-9, atol=1e-12):
            raise InputError(
                f"column {spell(self.feature_.name)}: draw of {self.maker} returns another value for a row among other "
                "rows, or at another state of R's generator. With the argument u it must be a function of the row and "
                "of its uniform number; to use R's generator, give a function of (object, newdata) without u."
            )


class LentSampler(RConditional):
    """A conditional in the R session that runs Python; `functions` is a function of (x, y, seed)."""

    maker = "r_sampler()"

    def __init__(self, functions: OneThread, random_state: int | None = None) -> None:
        self.functions = functions
        self.random_state = random_state

    def fit_in_r(self, x: pd.DataFrame, y: pd.Series[Any], seed: int) -> Callable[[pd.DataFrame, Floats, int], Floats]:
        fitted = self.functions(write_table(x), write_column(y), seed)
        return LentDraws(OneThread(fitted["draw"]))


@dataclass(frozen=True)
class LentDraws:
    """Draws from a model that R holds."""

    draw: OneThread

    def __call__(self, rows: pd.DataFrame, uniform: Floats, seed: int) -> Floats:
        answer = self.draw(write_table(rows), bytearray(uniform.astype("<f8").tobytes()), seed)
        return np.frombuffer(bytes(answer["values"]), dtype="<f8")


def as_frame(given: Table) -> pd.DataFrame:
    """Return givens as a frame for R, with their names and levels."""
    columns = {str(f.name): as_column(f, given.matrix[:, j]) for j, f in enumerate(given.features)}
    if len(columns) < len(given.features):
        raise InputError(f"the names {listing(f.name for f in given.features)} are not distinct as text; rename them.")
    return pd.DataFrame(columns)


def as_column(feature: Feature, values: Floats, codes: Floats | None = None) -> Any:
    """Return one column for R: numbers as they are, levels by name, all or those with the given codes."""
    if feature.levels is None:
        return values
    names = texts_of(feature.levels, str(feature.name))
    used = np.arange(float(feature.n_levels)) if codes is None else codes
    place = np.where(np.isnan(values), -1, np.searchsorted(used, values)).astype(np.intp)
    levels = pd.Index([names[int(code)] for code in used], dtype=object)
    return pd.Categorical.from_codes(place, levels, ordered=feature.kind == "ordered")
