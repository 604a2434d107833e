"""mcceR's call: the three stages in sequence, on one stream of R."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mcce._utils import Floats, check_count
from mcce.exceptions import InputError, spell
from mcce.model.decision import Interval
from mcce.model.query import bind
from mcce.rcompat.names import translate
from mcce.rcompat.random import RGenerator
from mcce.rcompat.stages import (
    DECISION,
    RESULT_COLUMNS,
    FeatureModel,
    check_fixed,
    check_measures,
    check_names,
    check_present,
    fit_autoregressive,
    generate,
    process,
)
from mcce.table import Data, as_frame

Seed = int | np.integer[Any] | RGenerator | None


@dataclass(frozen=True)
class MCCEResult:
    """The result of mcceR's `explain_mcce`.

    Attributes
    ----------
    cf : DataFrame
        The counterfactuals: `id_explain` (row of x_explain, from 1), `counterfactual_rank`, and the features.
    cf_measures : DataFrame
        For the same rows `id_explain`, `counterfactual_rank`, `pred`, and `measure_...` for each measure.
    fixed_features, mutable_features : tuple
        Names; `decision`, if used, is the last of the fixed ones.
    time : Series or None
        Seconds: `fit.time`, `generate.time`, `process.time` (None with timing=False).
    featuremodel_object : FeatureModel or None
        With return_featuremodel_object=True: the fitted trees, which can be passed to another call.
    sim_data : DataFrame or None
        With return_sim_data=True: every generated row, `id_explain` first.
    """

    cf: pd.DataFrame
    cf_measures: pd.DataFrame
    fixed_features: tuple[Hashable, ...]
    mutable_features: tuple[Hashable, ...]
    time: pd.Series[float] | None = None
    featuremodel_object: FeatureModel | None = None
    sim_data: pd.DataFrame | None = None

    def __repr__(self) -> str:
        return self.cf.to_string(index=False, float_format="{:.4g}".format)


def explain_mcce(
    model: Any,
    x_explain: Data,
    x_train: Data | None,
    predict_model: Callable[[Any, Any], Any] | None = None,
    fixed_features: str | Iterable[Hashable] | None = None,
    c_int: Sequence[float] | Interval = (0.5, 1),
    featuremodel_object: FeatureModel | None = None,
    fit_autoregressive_model: str = "ctree",
    fit_decision: bool = True,
    fit_seed: Seed = None,
    generate_K: int = 1000,
    generate_seed: Seed = None,
    process_measures: Sequence[str] = ("validation", "L0", "L1"),
    process_return_best_k: int = 1,
    process_remove_invalid: bool = True,
    process_sort_by_measures_order: bool = True,
    return_featuremodel_object: bool = False,
    return_sim_data: bool = False,
    timing: bool = True,
    **tree_arguments: Any,
) -> MCCEResult:
    """Explain predictions as mcceR's `explain_mcce` does: with the same seeds, the same numbers.

    Parameters
    ----------
    model : object
        The model: anything that `mcce.MCCE` takes, or what `predict_model` takes as its first argument.
    x_explain, x_train : DataFrame or array
        Factuals and training rows. Factors are category columns; integers, doubles and logicals keep their types.
    predict_model : callable, optional
        A function of the model and a frame that returns one number for each row.
    fixed_features : str or list, optional
        Features that may not change.
    c_int : pair of numbers
        The wanted predictions, both ends included. An `Interval` can name the class of the score.
    featuremodel_object : FeatureModel, optional
        From an earlier call; x_train, fixed_features, c_int and everything about the fit are then taken from it.
    fit_autoregressive_model : {"ctree", "rpart"}
    fit_decision : bool
        Whether the trees condition on the decision.
    fit_seed, generate_seed : int, RGenerator or None
        R's seeds. `generate_seed=None` continues the stream of the fit. `fit_seed=None` draws a fresh seed, where R
        would continue its session's stream; an `RGenerator` continues that stream.
    generate_K : int
        Rows generated for each factual.
    process_measures : sequence of {"validation", "L0", "L1", "L2", "gower"}
        In order of priority in sorting.
    process_return_best_k : int
        Counterfactuals for each factual, at most.
    process_remove_invalid : bool
        Whether rows without the wanted prediction are dropped.
    process_sort_by_measures_order : bool
        Without effect, as in mcceR: rows are always sorted.
    return_featuremodel_object, return_sim_data, timing : bool
        Whether the result also holds the trees, the generated rows and the times.
    **tree_arguments
        R's arguments of `rpart.control` or `ctree_control`: cp, minsplit, minbucket, maxdepth, xval, mincriterion, ...

    Returns
    -------
    MCCEResult

    Examples
    --------
    On R's airquality. mcceR prints the same:

    >>> from sklearn.linear_model import LinearRegression
    >>> from mcce.datasets import load_airquality
    >>> from mcce.rcompat import explain_mcce
    >>> air = load_airquality(dropna=True)
    >>> model = LinearRegression().fit(air.X, air.y)
    >>> explain_mcce(model, air.X.tail(3), air.X.iloc[:-3], fixed_features="Wind", c_int=(-float("inf"), 15),
    ...              fit_seed=1, generate_seed=2)
     id_explain  counterfactual_rank  Solar.R  Wind  Temp  Month  Day
              1                    1       92  14.3    64      9   28
              2                    1       65     8    61      9   29
              3                    1       36  11.5    69      9   30
    """
    measures = check_measures(process_measures)
    check_count(generate_K, "generate_K")
    check_count(process_return_best_k, "process_return_best_k")
    predict = _predictor(model, predict_model, c_int)
    reseeded = None if generate_seed is None else _stream(generate_seed)
    factuals, array_dtype = as_frame(x_explain, "x_explain"), _dtype_of_array(x_explain)
    if featuremodel_object is not None:
        fitted, rng = featuremodel_object, RGenerator(None)
    elif x_train is None:
        raise InputError("x_train is None; give the training rows, or a featuremodel_object of an earlier call.")
    else:
        frame, array_dtype = as_frame(x_train, "x_train"), _dtype_of_array(x_train)
        added = [DECISION] if fit_decision else []
        check_names(frame.columns, [*added, *RESULT_COLUMNS, *(f"measure_{name}" for name in measures)])
        check_present(frame, frame.columns, "x_train")
        check_present(factuals, frame.columns, "x_explain")
        check_fixed(fixed_features, list(frame.columns))
        translate(fit_autoregressive_model, tree_arguments)  # raise for a misspelt argument before the model is queried
        rng = _stream(fit_seed)
        fitted = fit_autoregressive(
            frame,
            predict(_model_input(frame, array_dtype), "the training rows"),
            fixed_features,
            _ends(c_int),
            fit_autoregressive_model,
            fit_decision,
            rng,
            **tree_arguments,
        )
    simulated = generate(factuals, fitted, generate_K, reseeded or rng)
    predictions = predict(_model_input(simulated.frame, array_dtype), "the generated rows")
    best = process(simulated, predictions, measures, process_remove_invalid, process_return_best_k)
    seconds = {
        "fit.time": fitted.seconds if featuremodel_object is None else 0.0,
        "generate.time": simulated.seconds,
        "process.time": best.seconds,
    }
    return MCCEResult(
        cf=best.cf,
        cf_measures=best.cf_measures,
        fixed_features=fitted.fixed_features,
        mutable_features=fitted.mutable_features,
        time=pd.Series(seconds) if timing else None,
        featuremodel_object=fitted if return_featuremodel_object else None,
        sim_data=simulated.with_ids() if return_sim_data else None,
    )


def _predictor(
    model: Any, predict_model: Callable[[Any, Any], Any] | None, c_int: Sequence[float] | Interval
) -> Callable[[Any, str], Floats]:
    """Return the function to query: the model, or `predict_model` with the model as its first argument."""
    interval = c_int if isinstance(c_int, Interval) else Interval(*_ends(c_int))
    queried = model
    if predict_model is not None:
        if not callable(predict_model):
            raise InputError(
                f"predict_model is a {type(predict_model).__name__}; give a function of the model and a frame, or None."
            )

        def queried(frame: Any) -> Any:
            return predict_model(model, frame)

        queried.__name__ = getattr(predict_model, "__name__", type(predict_model).__name__)
    bound = bind(queried, interval)
    return lambda frame, what: np.asarray(bound.answer(frame, what).prediction, dtype=np.float64)


def _ends(c_int: Sequence[float] | Interval) -> tuple[float, float]:
    """Return the two ends of the interval; mcceR's interval is closed."""
    if isinstance(c_int, Interval):
        if c_int.closed != "both":
            raise InputError(f"c_int is {c_int}; mcceR's interval includes both ends: use closed='both'.")
        return c_int.low, c_int.high
    ends = list(c_int) if isinstance(c_int, (Sequence, np.ndarray)) and not isinstance(c_int, str) else []
    is_number = [isinstance(end, (int, float, np.number)) and not math.isnan(end) for end in ends]
    if is_number != [True, True] or ends[0] > ends[1]:
        raise InputError(f"c_int is {spell(c_int)}; give two numbers, the lower one first, math.inf for no bound.")
    return float(ends[0]), float(ends[1])


def _stream(seed: Seed) -> RGenerator:
    return seed if isinstance(seed, RGenerator) else RGenerator(seed)


def _dtype_of_array(rows: Any) -> Any:
    """Return the dtype of an array, None for a frame, which may have a column of this name."""
    return rows.dtype if isinstance(rows, np.ndarray) else None


def _model_input(frame: pd.DataFrame, array_dtype: Any) -> Any:
    """Return the input of the model: an array if x_train was one."""
    return frame if array_dtype is None else frame.to_numpy(dtype=array_dtype)
