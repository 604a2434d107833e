"""The conditional of a finite mixture of all columns (`mcce.samplers.mixture.model`).

One mixture is fitted to all columns of the chain, or to the givens and the target of a sampler fitted on its own.
Draws, densities and restricted draws are exact; missing is one more value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.checks import check_count
from mcce.rng import RowStreams, hash_rows, resolve_seed
from mcce.samplers.base import BaseMeasure, ConditionalSampler, RestrictedDraw, Within
from mcce.samplers.copula.sampler import joint_table, place_in_root
from mcce.samplers.mixture.model import Mixture, MixtureConditional, fit_mixture
from mcce.samplers.ranks import DistributionFunctions
from mcce.samplers.registry import register_sampler
from mcce.storage.fields import learned
from mcce.table import Column, Feature, Table

Self = TypeVar("Self", bound="MixtureSampler")

MOST_COMPONENTS = 1000


@register_sampler("mixture")
class MixtureSampler(ConditionalSampler):
    """Draws from the conditional of a finite mixture over numbers, levels and missing values.

    Parameters
    ----------
    max_components : int
        Largest number of components; 1, 2, 4, ... are compared on held-out rows.
    random_state : int or None
        Seed of the held-out rows and of the starting values. The seed of the chain is not used, because all features of
        a chain share one fit.

    Attributes
    ----------
    mixture_ : `mcce.samplers.mixture.model.Mixture` of the givens, then the target: weights, probabilities of levels
        and of frequent numbers, means and covariances of the normal scores of all other numbers.

    Notes
    -----
    Within a component levels are independent of all other columns, and numbers depend on each other through normal
    scores. So one component is a Gaussian copula of the numbers with independent levels; more components add
    interactions, several modes and changing spread, as far as held-out rows support them. Draws are observed values.

    References
    ----------
    McLachlan and Peel (2000), "Finite Mixture Models", chapters 3 and 5. Hunt and Jorgensen (2003), "Mixture model
    clustering for mixed data with missing information", Computational Statistics & Data Analysis 41.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> sampler = mcce.MixtureSampler(max_components=4)
    >>> chain = mcce.ChainModel(sampler=sampler, fixed=["age", "sex"], random_state=1).fit(loans.X)
    >>> chain.sample(given=loans.X.loc[[0], ["age", "sex"]], n=2).shape
    (2, 10)
    """

    handles_missing = True
    thread_safe = True
    draws_observed = True
    takes_weights = True
    discloses = (
        "{mixture_.columns.classes} frequent and {mixture_.columns.margin.values} other training values of it "
        "and of the columns it is drawn given, with their shares"
    )

    mixture_: Mixture = learned(Mixture)

    def __init__(self, *, max_components: int = 16, random_state: int | None = 0) -> None:
        self.max_components = max_components
        self.random_state = random_state

    def fit(self: Self, given: Table, target: Column) -> Self:
        self.check_training(target)
        seed = resolve_seed(self.random_state)

        def fit(table: Table) -> Mixture:
            return fit_mixture(table, seed, self.max_components)

        place = place_in_root(given, target)
        if place is None or self.random_state is None:
            self.mixture_ = fit(joint_table(given, target))
        else:
            joint = given.shared(f"mixture {self.max_components} {seed}", fit)
            self.mixture_ = joint.take([*given.positions, place])
        return self

    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        if within is not None:
            return self.sample_within(given, rng, within).values
        return self._conditional(given).draw(rng)

    def sample_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        return self._conditional(given).draw_within(rng, within)

    def supports(self, given: Table, values: Floats) -> Bools:
        return self._conditional(given).supports(values)

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None = None) -> Floats:
        self.refuse_training_rows(training_rows)
        return self._conditional(given).log_density(values)

    def distribution(self, given: Table) -> DistributionFunctions:
        return self._conditional(given).distribution()

    def base_measure(self) -> BaseMeasure:
        return self.mixture_.columns[-1].base_measure

    def check_state(self, given: Sequence[Feature], target: Feature, n_rows: int) -> None:
        super().check_state(given, target, n_rows)
        self.mixture_.check_columns([*given, target])

    def _conditional(self, given: Table) -> MixtureConditional:
        _, first, place = np.unique(hash_rows(given.matrix), return_index=True, return_inverse=True)
        q, distinct = len(given.features), given.matrix[first]
        matrix = np.column_stack([distinct, np.full(len(distinct), np.nan)])
        return self.mixture_.conditional(matrix, range(q), q).take(place)

    def check_parameters(self) -> None:
        check_count(self.max_components, "max_components", self, 1, MOST_COMPONENTS)
        resolve_seed(self.random_state)
