"""A two-part model: a point mass, such as zeros, and the rest (Cragg 1971; Duan and others 1983)."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from mcce._utils import check_number
from mcce.exceptions import InputError, spell
from mcce.rng import derive_key, resolve_seed
from mcce.samplers.base import ConditionalSampler, check_problem, distribution_of, make_sampler, register_sampler
from mcce.samplers.design import constant_target
from mcce.samplers.distributions import Distribution, Hurdle
from mcce.samplers.logistic import LogregSampler
from mcce.samplers.margin import Margin
from mcce.table import Column, Feature, Table

Self = TypeVar("Self", bound="TwoPartSampler")


@register_sampler("twopart")
class TwoPartSampler(ConditionalSampler):
    """Logistic regression for a value with point mass, and another conditional for the other values.

    1. A logistic regression, robust to separation (`LogregSampler`), models whether the target has the value.
    2. Another conditional, fitted to the other rows, models the rest.

    Unlike in a tobit model, both parts have their own coefficients.

    Parameters
    ----------
    rest : str or ConditionalSampler
        The conditional of the other numbers: "gamma" (positive numbers), "negbin", "quantile", "cart", ...
    value : float or None
        The value with point mass, as in the encoded table; None: the least training value.
    formula : str or None
        The design of the logistic regression, and of `rest` if that is a name; see `NormSampler`.
    proper : bool
        Draw the coefficients of both parts (of `rest` if it is a name) once, at `fit`.
    random_state : int or None
        Seed of that draw; a chain sets it if it is None.

    Attributes
    ----------
    value_ : float
    share_ : the fitted `LogregSampler`; None if all rows have the value.
    rest_ : the fitted conditional of the other numbers; None if there are none.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> chain = mcce.ChainModel(sampler={"savings": "twopart", "*": "cart"}, fixed=["age", "sex"], random_state=1)
    >>> chain.fit(loans.X).conditional("savings").value_
    0.0
    """

    handles = frozenset({"numeric"})

    def __init__(
        self,
        rest: str | ConditionalSampler = "gamma",
        *,
        value: float | None = None,
        formula: str | None = None,
        proper: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.rest = rest
        self.value = value
        self.formula = formula
        self.proper = proper
        self.random_state = random_state

    def fit(self: Self, given: Table, target: Column) -> Self:
        """Fit the logistic regression (step 1) and the rest (step 2)."""
        check_problem(self, given, target)
        name = spell(target.feature.name)
        self.feature_, self.margin_ = target.feature, Margin.fit(target.values, target.feature)
        self.value_ = float(target.values.min()) if self.value is None else check_number(self.value, "value")
        is_rest = target.values != self.value_
        if is_rest.all():
            raise InputError(f"value of TwoPartSampler is {self.value!r}, and no training row of column {name} has it.")
        self.share_: LogregSampler | None = None
        self.rest_: ConditionalSampler | None = None
        if not is_rest.any():
            return self
        seed = resolve_seed(self.random_state)
        shared = {"formula": self.formula, "proper": self.proper, "random_state": seed}
        part = Feature.boolean(f"{target.feature.name} is not {self.value_:g}")
        self.share_ = LogregSampler(**shared)  # type: ignore[arg-type]
        self.share_.fit(given, Column(part, is_rest.astype(np.float64)))
        rest = make_sampler(self.rest)
        parameters = rest.get_params(deep=False)
        if isinstance(self.rest, str):
            rest.set_params(**{name: shared[name] for name in ("formula", "proper") if name in parameters})
        if parameters.get("random_state", 0) is None:
            rest.set_params(random_state=derive_key(seed, "rest"))
        rows = np.flatnonzero(is_rest)
        check_problem(rest, given, target.take(rows))
        self.rest_ = rest.fit(given.take(rows), target.take(rows))
        return self

    def distribution(self, given: Table) -> Distribution:
        """Return the point mass and the rest of each row."""
        if self.share_ is None or self.rest_ is None:
            return constant_target(self.margin_, given.n_rows)
        rest = distribution_of(self.rest_, given, self.feature_)
        return Hurdle(self.share_.probabilities(given)[:, 0], self.value_, rest, self.margin_)
