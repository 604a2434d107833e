"""R functions as conditionals: a model that R fits, and draws from.

`mcce.rcompat.from_r.RConditional` checks what R returns; this module calls R, in the session of `r_bridge.session`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mcce._utils import Floats
from mcce.exceptions import InputError, spell
from mcce.rcompat.from_r import RConditional
from r_bridge.frames import to_r
from r_bridge.session import HoldsR, session


class RSampler(RConditional):
    """A conditional whose model is fitted and drawn from by functions of R.

    Parameters
    ----------
    learn : str
        R code of ``function(x, y)``: fit a model of the vector y, a number or a factor, given the data frame x, and
        return it. Numbers and dates are doubles, all other columns factors.
    draw : str
        R code of ``function(object, newdata, u)``: one value for each row of newdata, a function of the row and of
        u, its uniform random number. Or of ``function(object, newdata)``, which uses R's generator (`rnorm`,
        `sample`): it is called for each row alone, after `set.seed` from the stream of the row. This is slow, 0.1 to
        50 ms a row.
    random_state : int or None
        Seed of R's generator in `learn`; with None, the chain sets it.

    Notes
    -----
    R has one thread, so that a chain with such a sampler needs n_jobs=1. Draws have no density; restricted draws are
    repeated until they are allowed.

    Examples
    --------
    >>> import mcce, r_bridge
    >>> air = mcce.datasets.load_airquality(dropna=True)
    >>> temperature = r_bridge.RSampler(
    ...     "function(x, y) lm(y ~ ., cbind(x, y = y))",
    ...     "function(object, newdata, u) predict(object, newdata) + sigma(object) * qnorm(u)")
    >>> chain = mcce.ChainModel(sampler={"Temp": temperature}, fixed=["Month"], random_state=1).fit(air.X)
    >>> chain.sample(given=air.X[["Month"]].head(2), n=3).shape
    (6, 5)

    A univariate method of mice imputes a missing last row, here among the training rows:

    >>> pmm = r_bridge.RSampler(
    ...     "function(x, y) list(x = data.matrix(x), y = y)",
    ...     '''function(object, newdata) mice::mice.impute.pmm(
    ...       c(object$y, NA), c(!is.na(object$y), FALSE), rbind(object$x, data.matrix(newdata)))''')

    One of synthpop draws for new rows, of which some methods need at least two:

    >>> normrank = r_bridge.RSampler(
    ...     "function(x, y) list(x = x, y = y)",
    ...     "function(object, newdata) synthpop::syn.normrank(object$y, object$x, newdata[c(1, 1), ])$res[1]")
    """

    maker = "RSampler"

    def __init__(self, learn: str, draw: str, *, random_state: int | None = None) -> None:
        self.learn = learn
        self.draw = draw
        self.random_state = random_state

    def fit_in_r(self, x: pd.DataFrame, y: pd.Series[Any], seed: int) -> DrawsInR:
        """Return R's fitted model as a function that draws."""
        r = session()
        learn, draw = (_as_function(code, name) for name, code in (("learn", self.learn), ("draw", self.draw)))
        column = next(iter(to_r(y.to_frame())))
        model = r.call("learn_conditional", learn, to_r(x), column, seed)
        return DrawsInR(draw, model, list(y.cat.categories) if isinstance(y.dtype, pd.CategoricalDtype) else [])


@dataclass(frozen=True)
class DrawsInR(HoldsR):
    """Draws from a model of R: for each row a number, or the position of a level."""

    draw: Any
    model: Any
    levels: list[str]

    def __call__(self, rows: pd.DataFrame, uniform: Floats, seed: int) -> Floats:
        r = session()
        drawn = r.call("query_conditional", self.draw, self.model, to_r(rows), self.levels or None, uniform, seed)
        return np.asarray(r.numbers(drawn), dtype=np.float64)


def _as_function(code: Any, name: str) -> Any:
    """Return the R function that the code defines."""
    r = session()
    if not isinstance(code, str):
        raise InputError(f"{name} of RSampler is {spell(code)}; give a text, the R code of a function.")
    function = r.evaluate(code)
    if not isinstance(function, r.ri.SexpClosure):
        raise InputError(f"{name} of RSampler is {spell(code)}, which is not a function in R; write function(...) ....")
    return function
