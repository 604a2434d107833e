"""The conditional of a vine copula with the training data's own margins (pyvinecopulib, extra `vine`).

1. Margins are those of the copula, levels without an order as indicators (`mcce.samplers.vine.columns`).
2. The `max_givens` variables whose normal scores are correlated most with the target's follow it, in this order, in a
   D-vine (`mcce.samplers.vine.dvine`; Kraus and Czado 2017 choose the order by likelihood).
3. Draws, restricted or not, and densities are those of the margin and of H (`mcce.samplers.vine.conditional`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import scipy

from mcce.arrays import Bools, Floats, Ints
from mcce.checks import check_count
from mcce.exceptions import InputError, SamplerError, did_you_mean, listing
from mcce.rng import RowStreams
from mcce.samplers.base import BaseMeasure, ConditionalSampler, RestrictedDraw, Within
from mcce.samplers.copula.margins import Margin, kernel_margin
from mcce.samplers.vine.columns import VineColumn, cover, read_variables
from mcce.samplers.vine.conditional import VineConditional, measure_of
from mcce.samplers.vine.dvine import SETS, DVine, Families
from mcce.soundness import check_flag, check_type, require
from mcce.table import Column, Feature, Table
from mcce.table.weights import mean_of

Self = TypeVar("Self", bound="VineSampler")


class VineSampler(ConditionalSampler):
    """Draws from the conditional of a vine copula with empirical margins.

    Parameters
    ----------
    families : {"parametric", "gaussian", "student", "nonparametric"}
        Pair copulas: the best of the common one-parameter families and Student's t, by AIC; all Gaussian, which with
        continuous columns is a Gaussian copula; all Student's t, correlations by Kendall's tau and degrees of freedom
        by profile likelihood, of which the t copula is one (in tree k with k more degrees of freedom than in the
        first): numbers that are extreme together; or kernel estimates, for continuous columns: those of columns with
        few values are blurred.
    max_givens : int
        Most variables that the target depends on, those that are correlated most with it; the time of a fit and of a
        draw grows with the square of their number.

    Attributes
    ----------
    variables_ : the givens in the order of the vine.
    vine_ : `mcce.samplers.vine.dvine.DVine`, the target first.

    Notes
    -----
    Needs pyvinecopulib: ``pip install 'mcce[vine]'``. Numbers and ordered levels are modelled; give unordered levels
    another sampler, as in the example. Every feature has a vine of its own. The values drawn are observed values.

    References
    ----------
    Aas, Czado, Frigessi and Bakken (2009), "Pair-copula constructions of multiple dependence", Insurance: Mathematics
    and Economics 44. Bedford and Cooke (2002), "Vines: a new graphical model for dependent random variables", Annals of
    Statistics 30. Kraus and Czado (2017), "D-vine copula based quantile regression", Computational Statistics & Data
    Analysis 110. Panagiotelis, Czado and Joe (2012), "Pair copula constructions for multivariate discrete data", JASA
    107.

    Examples
    --------
    >>> import mcce
    >>> mcce.ChainModel(sampler={"salary": mcce.VineSampler(max_givens=3), "*": "cart"}).sampler["salary"]
    VineSampler(max_givens=3)
    """

    handles = frozenset({"numeric", "ordered"})
    thread_safe = True
    draws_observed = True
    takes_weights = True

    variables_: tuple[VineColumn, ...]
    margin_: Margin
    vine_: DVine
    is_number_: bool

    def __init__(self, *, families: Families = "parametric", max_givens: int = 5) -> None:
        self.families = families
        self.max_givens = max_givens

    def fit(self: Self, given: Table, target: Column) -> Self:
        """Read the margins, choose the variables and fit the vine (steps 1 and 2)."""
        self._check_parameters()
        self.check_target(target.feature)
        self._check_complete(given)
        if np.isnan(target.values).any() or not target.values.size:
            what = "has no rows" if not target.values.size else "has some"
            raise SamplerError(
                f"{self!r} does not handle missing values, and the target {target.feature.name!r} {what}; fill them, "
                "or use a sampler that does (cart)."
            )
        self.margin_ = Margin.from_column(target)
        self.is_number_ = target.feature.is_numeric
        below, upto = cover(self.margin_, target.values)
        variables = read_variables(given, target.weights) if self.margin_.n_latents else []
        covers = [variable.cover(given.matrix) for variable in variables]
        score = scipy.special.ndtri((below + upto) / 2)
        strength = [-_correlation(score, scipy.special.ndtri((b + u) / 2), target.weights) for b, u in covers]
        chosen = np.argsort(strength, kind="stable")[: self.max_givens]
        self.variables_ = tuple(variables[k] for k in chosen)
        discrete = np.array([bool(self.margin_.atoms.any()), *(v.is_discrete for v in self.variables_)])
        columns = [(below, upto), *(covers[k] for k in chosen)]
        lows, highs = (np.column_stack(each) for each in zip(*columns))
        self.vine_ = DVine.fit(lows, highs, discrete, self.families, target.weights)
        vars(self).pop("_kernel", None)
        return self

    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        """Draw one value for each row (step 3)."""
        return self.sample_within(given, rng, Within() if within is None else within).values

    def sample_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        """Draw one allowed value for each row; exact (step 3)."""
        return self._conditional(given).draw_within(rng, within, given.n_rows)

    def supports(self, given: Table, values: Floats) -> Bools:
        """Return whether each value was observed, or is a number as close to such as they are, and is possible."""
        return self._conditional(given).supports(values)

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None = None) -> Floats:
        """Return the log probability of levels and numbers with point mass, the log density of others (step 3)."""
        self.refuse_training_rows(training_rows)
        return self._conditional(given).log_density(values, self._kernel)

    def base_measure(self) -> BaseMeasure:
        """Return what the density is with respect to."""
        self.check_fitted("vine_")
        return measure_of(self.margin_, is_number=self.is_number_)

    def set_state(self: Self, state: dict[str, Any]) -> Self:
        """Take over a state made by `get_state`."""
        super().set_state(state)
        vars(self).pop("_kernel", None)
        return self

    def check_state(self, given: Sequence[Feature], target: Feature, n_rows: int) -> None:
        """Refuse variables that are not of these columns, and a vine that is not of so many."""
        self._check_parameters()
        check_flag(self.is_number_, "is_number_")
        require(self.is_number_ == target.is_numeric, "is_number_ is not as in the target")
        check_type(self.margin_, "margin_", Margin)
        check_type(self.variables_, "variables_", tuple)
        check_type(self.vine_, "vine_", DVine)
        self.margin_.check_column(target, n_rows)
        for variable in self.variables_:
            check_type(variable, "variables_", VineColumn)
            variable.check_column(given)
        discrete = [bool(self.margin_.atoms.any()), *(variable.is_discrete for variable in self.variables_)]
        require(self.vine_.discrete.tolist() == discrete, "vine_ is not of the variables")

    def disclosed(self) -> str:
        """Return that the distinct training values of all variables stand in the state."""
        others = sum(variable.margin.values.size for variable in self.variables_)
        return (
            f"the {self.margin_.values.size:,} distinct training values of it with their shares, "
            f"and {others:,} of the columns it is drawn given"
        )

    @cached_property
    def _kernel(self) -> tuple[Floats, Floats]:
        return kernel_margin(self.margin_)

    def _conditional(self, given: Table) -> VineConditional:
        covers = self._read(given)
        return VineConditional(self.margin_, self.is_number_, self.vine_.given(*covers).below)

    def _read(self, given: Table) -> tuple[Floats, Floats]:
        """Return the shares below and up to each variable of the givens."""
        self.check_fitted("vine_")
        self._check_complete(given)
        covers = [variable.cover(given.matrix) for variable in self.variables_]
        shape = (given.n_rows, len(covers))
        return np.array([c[0] for c in covers]).T.reshape(shape), np.array([c[1] for c in covers]).T.reshape(shape)

    def _check_parameters(self) -> None:
        check_count(self.max_givens, "max_givens", self, 0, 1000)
        if self.families not in SETS:
            raise InputError(f"families of VineSampler is {self.families!r}; {did_you_mean(self.families, SETS)}")

    def _check_complete(self, given: Table) -> None:
        holders = [f.name for j, f in enumerate(given.features) if np.isnan(given.matrix[:, j]).any()]
        if holders:
            raise SamplerError(
                f"{self!r} does not handle missing values, and {listing(holders)} has some; fill them, or use a "
                "sampler that does (cart)."
            )


def _correlation(a: Floats, b: Floats, weights: Floats | None) -> float:
    """Return how strongly scores are correlated, whatever the sign."""
    if weights is None:
        return abs(float(np.corrcoef(a, b)[0, 1]))
    a, b = a - mean_of(a, weights), b - mean_of(b, weights)
    return abs(float((weights * a) @ b / np.sqrt((weights * a) @ a * ((weights * b) @ b))))
