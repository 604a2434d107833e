"""The conditional of a vine copula with empirical margins (pyvinecopulib, extra `vine`).

1. A number or an ordered level covers the shares from F(v-) to F(v), or their midpoint if the column has no point mass.
   Unordered levels are one indicator each, except the most frequent.
2. The `max_givens` variables whose normal scores are most correlated with the target's follow it in a D-vine (`dvine`).
3. A draw inverts H(u | givens) on the shares of the training values by bisection. A restricted draw is exact: it
   inverts H between its values at the ends of the allowed interval.
4. A probability is a difference of H; a density is that of the margin (`mcce.samplers.copula.margins`) times the slope
   of H. Both are mixed with the margin, with weight 0.001.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import scipy

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.checks import check_count
from mcce.exceptions import InputError, did_you_mean
from mcce.rng import RowStreams
from mcce.samplers.base import (
    IMPOSSIBLE,
    BaseMeasure,
    ConditionalSampler,
    RestrictedDraw,
    Within,
    refuse_missing,
    supported_by,
)
from mcce.samplers.copula.margins import Margin, by_frequency, place_numbers
from mcce.samplers.ranks import DistributionFunctions
from mcce.samplers.registry import register_sampler
from mcce.samplers.restricted import log_of
from mcce.samplers.vine.dvine import SETS, DVine, Families
from mcce.storage.fields import learned, require, stored
from mcce.storage.state import stateful
from mcce.table import Column, Feature, Table
from mcce.table.weights import mean_of


@stateful("vine.VineColumn")
@dataclass(frozen=True)
class VineColumn:
    """One variable of a vine: column `source` of the givens, or the indicator of its `level` (-1: none)."""

    source: int = stored(int, least=0, most=2**31)
    level: int = stored(int, least=-1, most=2**31)
    margin: Margin = stored(Margin)

    def check_state(self) -> None:
        """Raise if the margin is not ordered."""
        require(self.margin.ordered, "margin is that of an unordered column")

    def check_column(self, given: Sequence[Feature]) -> None:
        """Raise if the variable does not belong to these columns."""
        require(self.source < len(given), f"source is {self.source}, and there are {len(given)} columns")
        unordered = given[self.source].kind == "categorical"
        require(unordered == (self.level >= 0), "level is set for an ordered column, or missing for an unordered one")

    @property
    def is_discrete(self) -> bool:
        """Whether a value has point mass."""
        return bool(self.margin.atoms.any())

    def cover(self, matrix: Floats) -> tuple[Floats, Floats]:
        """Return the shares below, and up to and including, the value of each row."""
        values = matrix[:, self.source]
        return self.margin.cover(values if self.level < 0 else (values == self.level).astype(np.float64))


def read_variables(given: Table, weights: Floats | None = None) -> list[VineColumn]:
    """Return the variables of complete givens without the constant ones; weights count as copies."""
    found = []
    total = None if weights is None else float(weights.sum())
    for j, feature in enumerate(given.features):
        values = given.matrix[:, j]
        if feature.kind != "categorical":
            margin = Margin.from_column(Column(feature, values, weights))
            found += [VineColumn(j, -1, margin)] if margin.n_latents else []
            continue
        levels, counts = by_frequency(values, weights)
        for level, count in zip(levels[1:], counts[1:]):
            shares = np.array([0.0, 1.0 - count / (values.size if total is None else total), 1.0])
            indicator = Margin(np.array([0.0, 1.0]), shares, np.array([True, True]), True, values.size, total)
            found.append(VineColumn(j, int(level), indicator))
    return found


OF_THE_MARGIN = 1e-3
_STEP = 1e-4  # in shares, for the slope of H


@dataclass(frozen=True)
class VineConditional:
    """The distributions of one column in some rows.

    Attributes
    ----------
    margin : margin of the column.
    is_number : whether the column holds numbers; else ordered levels.
    below : H, a function of one share per row.
    """

    margin: Margin
    is_number: bool
    below: Callable[[Floats], Floats]

    def draw_within(self, rng: RowStreams, within: Within, n: int) -> RestrictedDraw:
        """Draw one allowed value for each of `n` rows."""
        margin = self.margin
        if not self.is_number and within.levels is not None:
            return self._draw_levels(rng, within, n)
        low, high = within.bounds(n)
        first = np.searchsorted(margin.values, low)
        last = np.searchsorted(margin.values, high, side="right") - 1
        possible = first <= last
        first, last = np.where(possible, first, 0), np.where(possible, last, 0)
        begin, end = self.below(margin.shares[first]), self.below(margin.shares[last + 1])
        mass = np.where(possible, end - begin, 0.0)
        wanted = begin + rng.uniform() * (end - begin)
        while (first < last).any():
            middle = (first + last) // 2
            beyond = self.below(margin.shares[middle + 1]) > wanted
            first, last = np.where(beyond, first, middle + 1), np.where(beyond, middle, last)
            first = np.minimum(first, last)
        return RestrictedDraw.of(margin.values[first], ~(mass > 0.0), log_of(mass))

    def _draw_levels(self, rng: RowStreams, within: Within, n: int) -> RestrictedDraw:
        """Draw one of the allowed ordered levels, which need not be an interval."""
        shares, codes = self.margin.shares, self.margin.values.astype(np.intp)
        below = np.column_stack([self.below(np.full(n, share)) for share in shares])
        weights = np.maximum(np.diff(below, axis=1), 0.0) * within.level_mask(n, int(codes.max()) + 1)[:, codes]
        return RestrictedDraw.by_weight(self.margin.values, weights, rng)

    def distribution(self) -> DistributionFunctions:
        """Return the distribution of each row over the observed values."""
        margin = self.margin
        return DistributionFunctions.of_atoms(
            margin.values,
            lambda high: self.below(margin.shares[np.searchsorted(margin.values, high, side="right")]),
            n_donors=margin.values.size if self.is_number else None,
        )

    def supports(self, values: Floats) -> Bools:
        """Return whether each value is within the local spacing of an observed one and not too extreme."""
        margin = self.margin
        drawable, weights = margin.training_values
        near = supported_by(drawable, values, is_number=self.is_number, weights=weights)
        below, upto = margin.cover(np.where(near, values, margin.values[0]))
        tails = np.minimum(self.below(upto), 1.0 - self.below(below))
        return np.asarray(near & ((tails > IMPOSSIBLE) | (margin.n_latents == 0)))

    def log_density(self, values: Floats) -> Floats:
        """Return the log probability of levels and numbers with point mass, the log density of other numbers."""
        margin = self.margin
        at = margin.position(values)
        if margin.n_latents == 0 or not self.is_number:
            low, high = margin.shares[np.maximum(at, 0)], margin.shares[np.maximum(at, 0) + 1]
            return np.where(at >= 0, log_of(self._mass(low, high)), -np.inf)
        places = place_numbers(margin, values)
        low, high = scipy.special.ndtr(places.low), scipy.special.ndtr(places.high)
        low = np.where(places.is_atom, low, np.maximum(low - _STEP, 0.0))
        high = np.where(places.is_atom, high, np.minimum(high + _STEP, 1.0))
        mass = self._mass(low, high)
        density = np.where(places.is_atom, mass, places.slope * mass / (high - low))
        return np.where(places.possible, log_of(density), -np.inf)

    def _mass(self, low: Floats, high: Floats) -> Floats:
        """Return the probability of a share between bounds, mixed with the margin."""
        mass = np.maximum(self.below(high) - self.below(low), 0.0)
        return np.asarray((1.0 - OF_THE_MARGIN) * mass + OF_THE_MARGIN * (high - low))


Self = TypeVar("Self", bound="VineSampler")


@register_sampler("vine")
class VineSampler(ConditionalSampler):
    """Draws from the conditional of a vine copula with empirical margins.

    Parameters
    ----------
    families : {"parametric", "gaussian", "student", "nonparametric"}
        Pair copulas. "parametric": the best of the common one-parameter families and Student's t, by AIC. "gaussian":
        with continuous columns a Gaussian copula. "student": Student's t, with tail dependence; correlations by
        Kendall's tau, degrees of freedom by profile likelihood (the t copula is the case with k more degrees of freedom
        in tree k than in the first). "nonparametric": kernel estimates for continuous columns; they oversmooth columns
        with few values.
    max_givens : int
        Largest number of variables that the target depends on, the most correlated ones. The time of a fit and of a
        draw grows with its square.

    Attributes
    ----------
    variables_ : the givens in the order of the vine.
    vine_ : `mcce.samplers.vine.dvine.DVine`, the target first.

    Notes
    -----
    Needs pyvinecopulib: ``pip install 'mcce[vine]'``. Numbers and ordered levels are modelled; use another sampler for
    unordered levels, as in the example. Every feature has a separate vine. Draws are observed values.

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
    discloses = (
        "the {margin_.values} distinct training values of it with their shares, "
        "and {variables_.margin.values} of the columns it is drawn given"
    )

    variables_: tuple[VineColumn, ...] = learned(tuple, of=VineColumn)
    margin_: Margin = learned(Margin)
    vine_: DVine = learned(DVine)
    is_number_: bool = learned(bool)

    def __init__(self, *, families: Families = "parametric", max_givens: int = 5) -> None:
        self.families = families
        self.max_givens = max_givens

    def fit(self: Self, given: Table, target: Column) -> Self:
        self.check_training(target)
        refuse_missing(self, given, target)
        self.margin_ = Margin.from_column(target)
        self.is_number_ = target.feature.is_numeric
        below, upto = self.margin_.cover(target.values)
        variables = read_variables(given, target.weights) if self.margin_.n_latents else []
        covers = [variable.cover(given.matrix) for variable in variables]
        score = scipy.special.ndtri((below + upto) / 2)
        strength = [-_correlation(score, scipy.special.ndtri((b + u) / 2), target.weights) for b, u in covers]
        chosen = np.argsort(strength, kind="stable")[: self.max_givens]
        self.variables_ = tuple(variables[k] for k in chosen)
        discrete = np.array([bool(self.margin_.atoms.any()), *(v.is_discrete for v in self.variables_)])
        columns = [(below, upto), *(covers[k] for k in chosen)]
        lows, highs = (np.column_stack(each) for each in zip(*columns))
        self.vine_ = DVine.fit((lows, highs), discrete, self.families, weights=target.weights)
        return self

    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        return self.sample_within(given, rng, Within() if within is None else within).values

    def sample_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        return self._conditional(given).draw_within(rng, within, given.n_rows)

    def supports(self, given: Table, values: Floats) -> Bools:
        return self._conditional(given).supports(values)

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None = None) -> Floats:
        self.refuse_training_rows(training_rows)
        return self._conditional(given).log_density(values)

    def distribution(self, given: Table) -> DistributionFunctions:
        return self._conditional(given).distribution()

    def base_measure(self) -> BaseMeasure:
        return self.margin_.base_measure if self.is_number_ else "counting"

    def check_state(self, given: Sequence[Feature], target: Feature, n_rows: int) -> None:
        super().check_state(given, target, n_rows)
        require(self.is_number_ == target.is_numeric, "is_number_ does not match the target")
        self.margin_.check_column(target, n_rows)
        for variable in self.variables_:
            variable.check_column(given)
        discrete = [bool(self.margin_.atoms.any()), *(variable.is_discrete for variable in self.variables_)]
        require(self.vine_.discrete.tolist() == discrete, "vine_ does not match the variables")

    def _conditional(self, given: Table) -> VineConditional:
        refuse_missing(self, given)
        covers = [variable.cover(given.matrix) for variable in self.variables_]
        shape = (given.n_rows, len(covers))
        below, upto = (np.array([cover[side] for cover in covers]).T.reshape(shape) for side in (0, 1))
        return VineConditional(self.margin_, self.is_number_, self.vine_.given(below, upto).below)

    def check_parameters(self) -> None:
        check_count(self.max_givens, "max_givens", self, 0, 1000)
        if self.families not in SETS:
            raise InputError(f"families of VineSampler is {self.families!r}; {did_you_mean(self.families, SETS)}")


def _correlation(a: Floats, b: Floats, weights: Floats | None) -> float:
    """Return the absolute correlation of scores."""
    if weights is None:
        return abs(float(np.corrcoef(a, b)[0, 1]))
    a, b = a - mean_of(a, weights), b - mean_of(b, weights)
    return abs(float((weights * a) @ b / np.sqrt((weights * a) @ a * ((weights * b) @ b))))
