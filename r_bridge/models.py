"""Models fitted in R, queried from Python.

1. Read the training columns (types, levels and their order) from the R object and, for a classifier, its classes.
2. Write the rows to predict as R expects them (`r_bridge.frames`): a level unknown to the model is an error; levels in
   another order or given as text are matched by name.
3. Call R's ``predict``, for probabilities if the class of the model has them, since a decision is about a score.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce._utils import Floats
from mcce.exceptions import InputError, listing
from mcce.rcompat.from_r import RError
from mcce.table import as_frame
from r_bridge.frames import columns_of, read_columns, to_r
from r_bridge.session import HoldsR, session

NUMBERS_LEVELS = ("ranger",)  # models that use the codes of levels and may not store their names
PROBABILITIES = ("response", "prob", "probs", "probability")  # the value of `type` for probabilities


class RModel(HoldsR):
    """A model fitted in R, which can be explained like any other.

    Parameters
    ----------
    r_object : R object
        Fitted in R: by `lm`, `glm`, `rpart`, `ranger`, `party::ctree`, `nnet::multinom`, or anything else that has
        `predict`.
    like : DataFrame or R data.frame, optional
        A table with the training columns; needed only if the R object does not store their levels (`ranger`) and the
        columns are text.
    predict : R function or str, optional
        ``function(object, newdata)`` in place of R's `predict`: an R function, or its R code.
    **options
        Passed on to `predict`, as in ``type="link"``; ``**{"na.action": ...}`` for names with dots.

    Attributes
    ----------
    classes_ : list
        The classes of a classifier: R's levels as text, ``[False, True]`` or ``[0, 1]`` for a binary `glm` of such a
        response. Only classifiers have this attribute.
    columns_ : dict of RColumn
        The types of the columns that R expects, as far as the model stores them.

    Notes
    -----
    Only classifiers have `predict_proba`. Unlike in mcceR, the default score of every `glm` is its response, not its
    link; ``type="link"`` returns the latter.

    A forest of votes, such as `ranger` without ``probability = TRUE``, breaks ties at random. `mcce.MCCE` asks
    twice, and returns only rows with the wanted answer both times. Counted votes are the same each time:

    >>> votes = '''function(object, newdata) {
    ...   trees <- predict(object, newdata, predict.all = TRUE)$predictions
    ...   rowMeans(trees == which(object$forest$levels == "yes"))
    ... }'''  # RModel(forest, predict=votes)

    Examples
    --------
    >>> import mcce, r_bridge
    >>> air = mcce.datasets.load_airquality(dropna=True)
    >>> ozone = r_bridge.RModel.from_code("lm(Ozone ~ ., data = data)", air.X.assign(Ozone=air.y))
    >>> ozone
    RModel(lm)
    >>> explainer = mcce.MCCE(ozone, decision=(-float("inf"), 15), fixed=air.fixed, random_state=1).fit(air.X)
    >>> len(explainer.explain(air.X.tail(3)).frame)
    3
    """

    def __init__(self, r_object: Any, *, like: Any = None, predict: Any = None, **options: Any) -> None:
        r = session()
        if not isinstance(r_object, r.ri.Sexp):
            raise InputError(
                f"RModel got a {type(r_object).__name__}; give a model that R fitted, for example by "
                "RModel.from_code('lm(y ~ ., data = data)', data), or one that rpy2 holds."
            )
        self.r_object = r_object
        self.like = like
        self.predict_function = r.evaluate(predict) if isinstance(predict, str) else predict
        self.options = {
            name: to_r(value) if isinstance(value, pd.DataFrame) else value for name, value in options.items()
        }
        described = r.parts(r.call("describe_model", r_object))
        self.r_class = r.strings(described["class"])[0]
        self.columns_ = read_columns(described["columns"])
        if like is not None:
            table = to_r(like) if isinstance(like, pd.DataFrame) else like
            self.columns_ |= columns_of(table, text_is_factor=self.r_class in NUMBERS_LEVELS)
        classes = r.strings(described["classes"])
        if classes and predict is None and options.get("type", "prob") in PROBABILITIES:
            kind = r.strings(described["class_type"])[0]
            self.classes_ = classes if kind == "text" else [False, True] if kind == "logical" else [0, 1]

    @classmethod
    def from_code(cls, code: str, data: pd.DataFrame, **options: Any) -> RModel:
        """Fit a model in R.

        Parameters
        ----------
        code : str
            R code whose value is the model; the table is called `data` in it.
        data : DataFrame
            See `to_r` for the types of its columns in R.
        **options
            As for `RModel`; `like` is `data` unless given.
        """
        table = to_r(data)
        return cls(session().evaluate(code, table), **{"like": table, **options})

    @classmethod
    def from_rds(cls, path: str | Path, **options: Any) -> RModel:
        """Read a model that R saved by `saveRDS`. Only open files you trust: an R object can hold code."""
        if not Path(path).is_file():
            raise InputError(f"there is no file {str(path)!r}; in R: saveRDS(model, {str(path)!r}).")
        return cls(session().evaluate("readRDS(data)", str(path)), **options)

    def predict(self, X: pd.DataFrame) -> npt.NDArray[Any]:
        """Return R's prediction for each row: a number or, for a classifier, the most probable class."""
        if hasattr(self, "classes_"):
            likeliest = np.argmax(self._probabilities(X), axis=1)
            return np.array([self.classes_[k] for k in likeliest], dtype=object)
        return self._query(X)

    @property
    def predict_proba(self) -> Any:
        """A function of the rows: the probability of each class, in the order of `classes_`."""
        if not hasattr(self, "classes_"):
            raise AttributeError(f"{self!r} is not a classifier that returns probabilities; use predict.")
        return self._probabilities

    def score(self, X: pd.DataFrame) -> Floats:
        """Return one number for each row, as in mcceR: the prediction, or the probability of the second class."""
        if not hasattr(self, "classes_"):
            return np.asarray(self._query(X), dtype=np.float64)
        if len(self.classes_) != 2:
            raise InputError(
                f"{self!r} has the classes {listing(self.classes_)}; a score needs two. Give predict= a function of "
                "R that returns the one probability you mean."
            )
        return self._probabilities(X)[:, 1]

    def _probabilities(self, X: pd.DataFrame) -> Floats:
        reply = np.asarray(self._query(X), dtype=np.float64)
        if reply.ndim == 1:
            reply = np.column_stack([1.0 - reply, reply])
        if reply.shape[1] != len(self.classes_):
            raise InputError(
                f"R's predict of the {self.r_class} returned {reply.shape[1]} columns for the classes "
                f"{listing(self.classes_)}; give predict= a function that returns one number."
            )
        return reply

    def _query(self, X: pd.DataFrame) -> npt.NDArray[Any]:
        """Return R's predictions: a vector of numbers or labels, or a matrix of numbers."""
        r = session()
        frame = as_frame(X)
        if len(frame) == 0:  # not every predict method of R supports zero rows
            return np.empty((0, len(self.classes_)) if hasattr(self, "classes_") else 0)
        self._check_levels_known(frame)
        rows = to_r(frame, self.columns_)
        answer, columns = r.call("query_model", self.r_object, rows, self.predict_function, self.options)
        if isinstance(answer, r.ri.StrSexpVector):
            return np.array(r.strings(answer), dtype=object)
        if isinstance(answer, r.ri.BoolSexpVector):
            return r.numbers(answer).astype(bool)
        numbers = r.numbers(answer).astype(np.float64)
        return numbers if columns[0] == 1 else numbers.reshape(-1, columns[0], order="F")

    def _check_levels_known(self, frame: pd.DataFrame) -> None:
        """Raise if R would convert text to a factor of only the levels present in the rows."""
        if self.predict_function is not None or self.r_class not in NUMBERS_LEVELS:
            return
        for name, dtype in frame.dtypes.items():
            is_text = not isinstance(dtype, pd.CategoricalDtype) and pd.api.types.is_string_dtype(dtype)
            if is_text and str(name) not in self.columns_:
                raise RError(
                    f"the {self.r_class} does not keep the levels of {name!r}, and the column is text, so R would "
                    "number the levels of each batch separately. Give RModel like=, the table it was fitted on."
                )

    def __repr__(self) -> str:
        return f"RModel({self.r_class})"
