"""mcceR's own `explain_mcce`, run in R, with the call and the result of `mcce.rcompat.explain_mcce`.

1. Write x_explain and x_train as R tables; R's arguments have dots where ours have underscores.
2. R queries a Python model, or an `RModel`, through a callback: mcceR calls a function of R, which passes the rows to
   Python and gets one number for each. A plain R object is passed to mcceR unchanged, with mcceR's own `predict_model`.
3. Read the result as DataFrames: mutable columns with x_train's dtypes, fixed ones with x_explain's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mcce._utils import Floats
from mcce.exceptions import InputError
from mcce.model.decision import Interval
from mcce.model.query import bind
from mcce.rcompat import MCCEResult, RGenerator
from mcce.rcompat.names import CONTROLS, translate
from mcce.rcompat.stages import check_fixed, check_measures
from mcce.table import Data, as_frame
from r_bridge.frames import from_r, to_r
from r_bridge.session import Session, session

TIMES = ("fit.time", "generate.time", "process.time")


def explain_mcce(
    model: Any,
    x_explain: Data,
    x_train: Data | None,
    predict_model: Any = None,
    fixed_features: str | Iterable[Hashable] | None = None,
    c_int: Sequence[float] | Interval = (0.5, 1),
    featuremodel_object: Any = None,
    fit_autoregressive_model: str = "ctree",
    fit_decision: bool = True,
    fit_seed: int | RGenerator | None = None,
    generate_K: int = 1000,
    generate_seed: int | None = None,
    process_measures: Sequence[str] = ("validation", "L0", "L1"),
    process_return_best_k: int = 1,
    process_remove_invalid: bool = True,
    process_sort_by_measures_order: bool = True,
    return_featuremodel_object: bool = False,
    return_sim_data: bool = False,
    timing: bool = True,
    **tree_arguments: Any,
) -> MCCEResult:
    """Run mcceR's `explain_mcce` in R.

    Parameters
    ----------
    model : object
        Any model that `mcce.MCCE` accepts, an `RModel`, or an R object that mcceR supports.
    predict_model : callable, R function or str, optional
        A Python function of the model and a frame; an R function of the model and a data.frame, or its code, for a
        model that is an R object.
    featuremodel_object : R object, optional
        From an earlier call of this function.
    fit_seed : int, RGenerator or None
        None continues the stream of the R session; an `RGenerator` sets the state of that stream.
    generate_seed : int or None
        None continues the stream of the fit.
    **tree_arguments
        R's arguments of the trees. These and all other parameters are those of `mcce.rcompat.explain_mcce`.

    Returns
    -------
    MCCEResult
        As of `mcce.rcompat.explain_mcce`; `featuremodel_object` is an R object.

    Examples
    --------
    >>> import mcce, r_bridge
    >>> air = mcce.datasets.load_airquality(dropna=True)
    >>> r_bridge.explain_mcce(
    ...     lambda X: 100 - X["Temp"], air.X.tail(2), air.X.iloc[:-2], fixed_features="Wind", c_int=(0, 25),
    ...     fit_autoregressive_model="rpart", fit_seed=1, generate_seed=2)  # doctest: +SKIP
    """
    r = session()
    r.need("mcceR", "r_bridge.explain_mcce")
    factuals = as_frame(x_explain, "x_explain")
    if x_train is None and featuremodel_object is None:
        raise InputError("x_train is None; give the training rows, or a featuremodel_object of an earlier call.")
    train = None if x_train is None else as_frame(x_train, "x_train")
    template = factuals if train is None else train
    _check_names(r, [*template.columns, *factuals.columns])
    fixed = check_fixed(fixed_features, list(template.columns))
    like = pd.concat([(factuals if name in fixed else template)[[name]].iloc[:0] for name in template.columns], axis=1)
    controls = _controls(fit_autoregressive_model, tree_arguments)
    if isinstance(fit_seed, RGenerator):
        r.call("set_random_seed", fit_seed.random_seed)
    arguments = {
        "fixed_features": [str(name) for name in fixed] or None,
        "c_int": [c_int.low, c_int.high] if isinstance(c_int, Interval) else [float(end) for end in c_int],
        "featuremodel_object": featuremodel_object,
        "fit.autoregressive_model": fit_autoregressive_model,
        "fit.decision": bool(fit_decision),
        "fit.seed": None if isinstance(fit_seed, RGenerator) else fit_seed,
        "generate.K": int(generate_K),
        "generate.seed": generate_seed,
        "process.measures": check_measures(process_measures),
        "process.return_best_k": int(process_return_best_k),
        "process.remove_invalid": bool(process_remove_invalid),
        "process.sort_by_measures_order": bool(process_sort_by_measures_order),
        "return_featuremodel_object": bool(return_featuremodel_object),
        "return_sim_data": bool(return_sim_data),
        "timing": bool(timing),
    }
    tables = to_r(factuals), None if train is None else to_r(train)
    with _model_for_r(r, model, predict_model, c_int, like) as (r_model, r_predict):
        answer = r.call("mccer_explain", r_model, *tables, r_predict, arguments, fit_autoregressive_model, controls)
    result = r.parts(answer)
    return MCCEResult(
        cf=from_r(result["cf"], like=like),
        cf_measures=from_r(result["cf_measures"]),
        fixed_features=tuple(r.strings(result["fixed_features"])) if "fixed_features" in result else (),
        mutable_features=tuple(r.strings(result["mutable_features"])),
        time=pd.Series(r.numbers(result["time"]), index=list(TIMES)) if timing else None,
        featuremodel_object=result.get("featuremodel_object"),
        sim_data=from_r(result["sim_data"], like=like) if return_sim_data else None,
    )


def score_function(
    model: Any, predict_model: Any, c_int: Sequence[float] | Interval
) -> Callable[[pd.DataFrame], Floats]:
    """Return a function of rows that returns the model's scores, as `mcce.rcompat` reads them."""
    interval = c_int if isinstance(c_int, Interval) else Interval(*c_int)
    bound = bind(model if predict_model is None else lambda rows: predict_model(model, rows), interval)
    return lambda rows: np.asarray(bound.answer(rows, "rows from R").prediction, dtype=np.float64)


def _controls(engine: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return R's arguments of the trees as one dict; `control` of rpart and `controls` of ctree may be dicts."""
    translate(engine, arguments)
    flat = dict(arguments)
    return {**(flat.pop(CONTROLS[engine], None) or {}), **flat}


def _check_names(r: Session, names: Iterable[Hashable]) -> None:
    """Raise if a column name is not a plain R name: mcceR pastes names into formulas, which R evaluates."""
    unsafe = r.strings(r.call("unsafe_names", list(dict.fromkeys(map(str, names)))))
    if unsafe:
        raise InputError(
            f"the column name {unsafe[0]!r} is not a plain R name, and mcceR writes names into formulas; "
            "rename it: letters, digits, dots and underscores, beginning with a letter."
        )


@contextlib.contextmanager
def _model_for_r(
    r: Session, model: Any, predict_model: Any, c_int: Sequence[float] | Interval, like: pd.DataFrame
) -> Iterator[tuple[Any, Any]]:
    """Yield the model and the `predict_model` for R (step 2)."""
    is_of_r = isinstance(model, r.ri.Sexp)
    if is_of_r and (predict_model is None or isinstance(predict_model, (str, r.ri.Sexp))):
        yield model, predict_model
        return
    score = score_function(model, predict_model, c_int)
    with r.callback(lambda _, rows: r.array(score(from_r(rows, like=like)))) as callback:
        yield model if is_of_r else "a model of Python", callback
