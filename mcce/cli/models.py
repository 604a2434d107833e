"""Models of `mcce explain`: loaded from a file, or trained (gradient boosting) if none is given.

.skops   only trusted types are constructed; others must be named by `--trusted`
.onnx    a computational graph, run by onnxruntime; nothing else is executed
others   joblib pickles, which execute the code that they hold; a note is printed

An ONNX model has one input matrix, or one input for each feature, named like it. Its outputs are a label and scores of
the classes, or one number for each row. If the scores do not name their classes, the classes are inferred from the
labels of the training rows, or refused if these are not conclusive.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.files import atomic_write
from mcce.base.progress import working
from mcce.base.threads import one_native_thread
from mcce.cli.checking import read_decision, read_interval
from mcce.cli.console import notify
from mcce.exceptions import InputError, listing, spell
from mcce.table.dtypes import is_dated, is_numeric

NUMBERS: dict[str, Any] = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}
TEXT = "tensor(string)"


@dataclass(frozen=True)
class Input:
    """One input of the graph: its name, type and number of columns (None if unknown)."""

    name: str
    type: str
    width: int | None


class OnnxRegressor:
    """A graph with one number per row."""

    def __init__(self, where: str, session: Any) -> None:
        self.where = where
        self.session = session
        self.inputs = [_input_of(where, each) for each in session.get_inputs()]
        if len(self.inputs) > 1 or self.inputs[0].width == 1:
            wide = [each.name for each in self.inputs if each.width not in (1, None)]
            if wide:
                raise InputError(
                    f"{where} has several inputs of which {listing(wide)} have more than one column; export it with "
                    "one matrix, or with one input for each feature."
                )
            self.feature_names_in_ = np.array([each.name for each in self.inputs], dtype=object)

    def predict(self, X: pd.DataFrame) -> npt.NDArray[Any]:
        return np.asarray(self._run(X)[0]).reshape(len(X))

    def check(self, X: pd.DataFrame) -> None:
        """Raise if a table does not fit the inputs."""
        if hasattr(self, "feature_names_in_"):
            return
        width = self.inputs[0].width
        if width is not None and width != X.shape[1]:
            raise InputError(
                f"{self.where} takes {width} features, but there are {X.shape[1]}: {listing(X.columns, 30)}. Leave out "
                "the others, name the response by --response and the names by --id."
            )
        text = [name for name in X if not pd.api.types.is_numeric_dtype(X[name].dtype)]
        if text and self.inputs[0].type != TEXT:
            raise InputError(
                f"{self.where} takes one matrix of numbers, but {listing(text)} are not numeric. Export it with one "
                "input for each feature, named like it."
            )

    def _run(self, X: pd.DataFrame) -> list[Any]:
        if not len(X):  # some operators fail on empty tables
            return [np.empty(0)] * len(self.session.get_outputs())
        if hasattr(self, "feature_names_in_"):
            tensors = {each.name: _as_tensor(self.where, X[[each.name]], each.type) for each in self.inputs}
        else:
            tensors = {self.inputs[0].name: _as_tensor(self.where, X, self.inputs[0].type)}
        answer: list[Any] = self.session.run(None, tensors)
        return answer


class OnnxClassifier(OnnxRegressor):
    """A graph with a label and scores by class; call `learn_classes` before `predict_proba`."""

    classes_: npt.NDArray[Any]

    def predict(self, X: pd.DataFrame) -> npt.NDArray[Any]:
        return np.asarray(self._run(X)[0]).reshape(len(X))

    def predict_proba(self, X: pd.DataFrame) -> npt.NDArray[np.float64]:
        scores = self._run(X)[1]
        if not len(X):
            return np.empty((0, len(self.classes_)))
        if isinstance(scores, list):
            return np.array([[row[label] for label in self.classes_.tolist()] for row in scores], dtype=np.float64)
        return _two_columns(np.asarray(scores, dtype=np.float64))

    def learn_classes(self, X: pd.DataFrame) -> None:
        labels, scores = self._run(X)[:2]
        if isinstance(scores, list):
            self.classes_ = np.array(list(scores[0]))
            return
        columns, labels = _two_columns(np.asarray(scores)), np.asarray(labels).reshape(len(X))
        first = {int(best): label for best, label in zip(columns.argmax(axis=1)[::-1], labels[::-1])}
        differing = [label for best, label in zip(columns.argmax(axis=1), labels) if first[int(best)] != label]
        if differing or len(first) < columns.shape[1]:
            known = [label.item() if isinstance(label, np.generic) else label for label in first.values()]
            raise InputError(
                f"{self.where} has scores for {columns.shape[1]} classes without their names, and its labels "
                f"for the training rows ({listing(known)}) are not conclusive. Export it with scores by class (zipmap)."
            )
        self.classes_ = np.array([first[place] for place in range(columns.shape[1])])


def load_onnx(where: str, path: str) -> OnnxRegressor:
    try:
        import onnxruntime
    except ImportError:
        raise InputError(f"{where}: .onnx files need onnxruntime; pip install 'mcce[onnx]'.") from None
    settings = onnxruntime.SessionOptions()
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")  # spinning threads block other work
    try:
        session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    except Exception as error:
        problem = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".")
        raise InputError(f"{where} cannot be loaded ({problem}). It must be an ONNX file of a trained model.") from None
    outputs = session.get_outputs()
    if len(outputs) == 1 and outputs[0].type in NUMBERS:
        return OnnxRegressor(where, session)
    if len(outputs) == 2:
        return OnnxClassifier(where, session)
    raise InputError(
        f"{where} has the outputs {_described(outputs)}; a label and scores of classes, or one number per row, "
        "can be used."
    )


def _input_of(where: str, each: Any) -> Input:
    if each.type not in NUMBERS and each.type != TEXT:
        raise InputError(f"{where} has the input {_described([each])}; tensors of numbers and of text can be used.")
    width = each.shape[1] if len(each.shape or []) > 1 else 1
    return Input(each.name, each.type, width if isinstance(width, int) else None)


def _described(each: Sequence[Any]) -> str:
    return listing(f"{one.name}: {one.type}" for one in each)


def _as_tensor(where: str, X: pd.DataFrame, kind: str) -> npt.NDArray[Any]:
    """Return columns as an input tensor of the graph."""
    missing = [name for name in X if X[name].isna().any()]
    if missing and kind not in ("tensor(float)", "tensor(double)"):
        raise InputError(f"{where}: {listing(missing)} has missing values, which its input of type {kind} cannot hold.")
    if kind == TEXT:
        return X.astype(str).to_numpy(dtype=object)
    try:
        return X.to_numpy(dtype=np.float64, na_value=np.nan).astype(NUMBERS[kind])
    except (TypeError, ValueError) as error:
        raise InputError(f"{where} takes {listing(X)} as numbers ({kind}), which they are not: {error}") from None


def _two_columns(scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return scores with a column for each class; a single column is that of the second of two classes."""
    wide = scores.reshape(len(scores), -1)
    return np.column_stack([1 - wide, wide]) if wide.shape[1] == 1 else wide


def load_model(path: str, trusted: Sequence[str] = ()) -> Any:
    where = f"--model {path}"
    suffix = Path(path).suffix.lower()
    if trusted and suffix != ".skops":
        raise InputError(f"--trusted goes with a model saved by skops, but --model is {path}; leave --trusted out.")
    if suffix == ".onnx":
        return load_onnx(where, path)
    return _load_skops(where, path, trusted) if suffix == ".skops" else load_joblib(where, path)


def load_joblib(where: str, path: str) -> Any:
    """Load a file of joblib, with a note that this runs code."""
    import joblib

    notify(f"opening {where} runs the code that it holds; .skops and .onnx files run none")
    try:
        return joblib.load(path)
    except Exception as error:
        raise InputError(
            f"{where} cannot be loaded ({_problem(error)}). It must be written by joblib.dump, and the "
            "packages that made it must be installed."
        ) from None


def _load_skops(where: str, path: str, trusted: Sequence[str]) -> Any:
    try:
        from skops import io
    except ImportError:
        raise InputError(f"{where}: .skops files need skops; pip install 'mcce[skops]'.") from None
    try:
        unknown = [name for name in io.get_untrusted_types(file=path) if name not in trusted]
        if not unknown:
            return io.load(path, trusted=list(trusted))
    except Exception as error:
        raise InputError(
            f"{where} cannot be loaded ({_problem(error)}). It must be written by skops.io.dump, and the packages "
            "that made it must be installed."
        ) from None
    raise InputError(
        f"{where} holds types that are not trusted: {listing(unknown)}. If you trust them, add --trusted "
        f"{','.join(unknown)}."
    )


def _problem(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".")


OURS = (  # types of the models of `train_model`, which run no code when they are loaded
    "functools.partial",
    "mcce.cli.models.in_days",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.utils.validation.check_array",
)


def save_model(model: Any, beside: Path, *, force: bool) -> Path:
    """Write a trained model beside an explainer: by skops if it is installed, else by joblib."""
    try:
        from skops import io

        path, dump = beside.with_suffix(".skops"), io.dump
    except ImportError:
        import joblib

        path, dump = beside.with_suffix(".joblib"), joblib.dump
    with atomic_write(path, overwrite=force) as new:
        dump(model, new)
    return path


POOR = {"AUC": 0.7, "R2": 0.3}
MOST_LEVELS = 255  # of scikit-learn's HistGradientBoosting


@one_native_thread()
def train_model(
    X: pd.DataFrame, y: pd.Series[Any], arguments: argparse.Namespace, of_codes: bool
) -> tuple[Any, pd.DataFrame]:
    """Train gradient boosting on the rows with a response, and report its quality; `of_codes`: codes of classes."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    known = y.notna()
    if not known.all():
        notify(f"{int((~known).sum())} training rows without {y.name!r} are left out")
        X, y = X[known], y[known]
    counts = y.value_counts()
    is_class = not is_numeric(y.dtype) or len(counts) == 2 or of_codes
    _check_trainable(X, y, counts, is_class, arguments)
    settings = {"max_leaf_nodes": 8, "categorical_features": "from_dtype", "random_state": 0}
    if is_class:
        model = HistGradientBoostingClassifier(**settings)
        measure, scoring = "AUC", "roc_auc" if len(counts) == 2 else "roc_auc_ovr"
        folds: Any = StratifiedKFold(min(5, max(2, counts.min())), shuffle=True, random_state=0)
    else:
        model = HistGradientBoostingRegressor(**settings)
        measure, scoring, folds = "R2", "r2", KFold(min(5, len(y)), shuffle=True, random_state=0)
    name = type(model).__name__
    if any(is_dated(dtype) for dtype in X.dtypes):
        model = make_pipeline(FunctionTransformer(in_days), model)
    try:
        with working("training a model", None):
            quality = cross_val_score(model, X, y, cv=folds, scoring=scoring, error_score="raise").mean()
            model.fit(X, y)
    except (TypeError, ValueError) as error:
        problem = str(error).strip().splitlines()[0].rstrip(".")
        raise InputError(f"no model can be trained on {arguments.train}: {problem}. Give a --model.") from error
    kind = "class" if is_class else "number"
    notify(f"trained a {name} for the {kind} {y.name!r}; cross-validated {measure} {quality:.2f}")
    if not quality >= POOR[measure]:
        notify(f"warning: that is poor: the model predicts {y.name!r} badly, so its explanations are of little use")
    return model, X


def in_days(X: pd.DataFrame) -> pd.DataFrame:
    """Return a table with its dates and durations as numbers of days."""
    return X.assign(**{str(name): _days(X[name]) for name in X if is_dated(X[name].dtype)})


def _days(dates: pd.Series[Any]) -> pd.Series[float]:
    if isinstance(dates.dtype, pd.DatetimeTZDtype):
        dates = dates.dt.tz_convert("UTC").dt.tz_localize(None)
    since: Any = dates - pd.Timestamp(0) if dates.dtype.kind == "M" else dates
    days: pd.Series[float] = since.dt.total_seconds() / 86_400
    return days


def _check_trainable(
    X: pd.DataFrame, y: pd.Series[Any], counts: pd.Series[int], is_class: bool, arguments: argparse.Namespace
) -> None:
    wanted = arguments.decision
    if wanted is None:
        choice = f"one of {listing(counts.index)}" if is_class else "an interval such as 10,20"
        raise InputError(f"--response {y.name} needs --decision: {choice}.")
    if not is_class and read_interval(wanted, None) is None:
        raise InputError(
            f"--decision is {wanted!r}, but --response {y.name} is a number ({len(counts)} different values): "
            f"give an interval, as in 10,20; if its values are classes, add --kinds {y.name}=categorical."
        )
    if is_class:
        read_decision(wanted, arguments.of, counts.index)
    if len(counts) < 2 or (is_class and counts.min() < 2):
        rare = "no value" if not len(counts) else f"{spell(counts.index[-1])} in {counts.iloc[-1]} rows only"
        raise InputError(f"--response {y.name} has {rare}; training needs two values or more, each at least twice.")
    for name in X.select_dtypes("category"):
        if X[name].nunique() > MOST_LEVELS:
            raise InputError(
                f"column {name!r} of {arguments.train} has {X[name].nunique()} different values, more than "
                f"the {MOST_LEVELS} that the model can take. Remove it if it is a name, or give a --model."
            )
