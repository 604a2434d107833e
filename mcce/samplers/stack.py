"""Stacking: a mixture of conditionals weighted by their held-out log score.

1. At most `max_rows` training rows are split into folds. Every candidate is fitted on the rows outside a fold and
   scored by the log density of the rows inside, mixed with a small uniform component
   (`mcce.samplers.density.comparable`), so that no score is infinite.
2. The weights w >= 0, sum w = 1, maximise the mean over the rows of log sum_k w_k p_k(y | x) (Yao et al. 2018,
   equation 5). The function is concave; the EM algorithm for the weights of a mixture with known components climbs it.
3. Candidates with a weight below `NEGLIGIBLE` are dropped, the others are fitted on all rows.

The density is sum_k w_k p_k(y | x), and a draw is from a component chosen by weight. A restricted draw is from a
component chosen in proportion to its weight times its probability of the allowed values. It is exact if the restricted
draws of the components and their `log_mass` are.

A candidate that cannot model the target, fails, or has no density with respect to the base measure of the column is
left out, with the reason in `left_out_`. With fewer than two rows per fold the weights are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import scipy

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.checks import check_count
from mcce.exceptions import MCCEError, SamplerError
from mcce.rng import RowStreams, derive_key, resolve_seed
from mcce.samplers.base import BaseMeasure, ConditionalSampler, RestrictedDraw, Within
from mcce.samplers.copula.sampler import joint_table, place_in_root
from mcce.samplers.density import comparable
from mcce.samplers.dp import DPSampler
from mcce.samplers.estimator import deal_rows
from mcce.samplers.ranks import DistributionFunctions
from mcce.samplers.registry import Candidates, read_candidates, register_sampler
from mcce.samplers.restricted import log_of
from mcce.storage.fields import FLOAT, learned, require
from mcce.storage.learned import disclosed
from mcce.table import Column, Feature, Table
from mcce.table.weights import mean_of

Self = TypeVar("Self", bound="StackSampler")

CANDIDATES = ("ctree", "parametric", "mixture")
NEGLIGIBLE = 0.01
EM_STEPS = 500
ONE = np.zeros(1, dtype=np.int64)  # one row, to check that there is a density


def stacking_weights(log_densities: Floats, row_weights: Floats | None = None) -> Floats:
    """Return the weights of the columns that maximise the mean log density of the mixture (step 2)."""
    densities = np.exp(log_densities - log_densities.max(axis=1, keepdims=True))
    weights = np.full(densities.shape[1], 1.0 / densities.shape[1])
    for _ in range(EM_STEPS):
        shares = densities * weights
        weights = np.asarray(mean_of(shares / shares.sum(axis=1, keepdims=True), row_weights))
    return weights


@register_sampler("stack")
class StackSampler(ConditionalSampler):
    """Draws from a mixture of samplers, weighted by their held-out log score.

    Parameters
    ----------
    candidates : list, or dict by name
        Names of samplers, or samplers.
    n_folds : int
        Number of folds.
    max_rows : int
        Largest number of training rows to learn the weights from, chosen at random.
    random_state : int or None
        Seed of the folds. The seed of the chain is not used, because all features of a chain share the folds.

    Attributes
    ----------
    labels_, weights_, components_ : tuple of str, array, tuple of fitted samplers
        The kept candidates, with weights that sum to 1.
    left_out_ : dict
        The reason why a candidate has no weight, by its label.

    References
    ----------
    Yao, Vehtari, Simpson and Gelman (2018), "Using Stacking to Average Bayesian Predictive Distributions", Bayesian
    Analysis 13 (3), section 3.1.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(400).X[["age", "sex", "salary", "housing"]]
    >>> stack = mcce.StackSampler(["cart", "parametric", "marginal"])
    >>> chain = mcce.ChainModel(sampler=stack, fixed=["age", "sex"], random_state=1).fit(X)
    >>> salary = chain.samplers_["salary"]
    >>> dict(zip(salary.labels_, salary.weights_.round(2).tolist()))
    {'cart': 0.1, 'parametric': 0.61, 'marginal': 0.29}
    """

    handles_missing = True
    takes_weights = True
    discloses = "{disclosed_by_components}"

    labels_: tuple[str, ...] = learned(tuple, "components", of=str)
    weights_: Floats = learned(FLOAT, "components", least=0.0, most=1.0, filled=True)
    components_: tuple[ConditionalSampler, ...] = learned(tuple, "components", of=ConditionalSampler)
    left_out_: dict[str, str] = learned(dict)

    def __init__(
        self,
        candidates: Candidates = CANDIDATES,
        *,
        n_folds: int = 5,
        max_rows: int = 1000,
        random_state: int | None = 0,
    ) -> None:
        self.candidates = candidates
        self.n_folds = n_folds
        self.max_rows = max_rows
        self.random_state = random_state

    @property
    def thread_safe(self) -> bool:  # type: ignore[override]
        return all(candidate.thread_safe for candidate in self._read_candidates().values())

    @property
    def disclosed_by_components(self) -> str:
        """The training values disclosed by the components."""
        return "; ".join(f"{label}: {disclosed(part)}" for label, part in zip(self.labels_, self.components_))

    def fit(self: Self, given: Table, target: Column) -> Self:
        self.check_training(target)
        scores: dict[str, Floats] = {}
        components: dict[str, ConditionalSampler] = {}
        self.left_out_ = {}
        parts = list(self._cut(given, target))
        for label, candidate in self._read_candidates().items():
            try:
                _check_suited(candidate, given, target)
                held_out = [_log_scores(self._fit(candidate, *fold[:2]), *fold[1:]) for fold in parts]
                scores[label] = np.concatenate(held_out) if held_out else np.zeros(1)
                components[label] = self._fit(candidate, given, target)
                _log_scores(components[label], target, given.take(ONE), target.take(ONE))
            except MCCEError as error:
                self.left_out_[label] = str(error)
                scores.pop(label, None)
        if not scores:
            reasons = "; ".join(f"{label}: {why}" for label, why in self.left_out_.items())
            raise SamplerError(
                f"no candidate of {self!r} can model {target.feature.name!r} ({reasons}). Give other candidates."
            )
        row_weights = [observed.weights for *_, observed in parts if observed.weights is not None]
        weights = stacking_weights(
            np.column_stack(list(scores.values())), np.concatenate(row_weights) if row_weights else None
        )
        kept = weights >= NEGLIGIBLE
        self.labels_ = tuple(label for label, keep in zip(scores, kept) if keep)
        self.weights_ = weights[kept] / weights[kept].sum()
        self.components_ = tuple(components[label] for label in self.labels_)
        self.left_out_ |= {label: "its weight is negligible" for label, keep in zip(scores, kept) if not keep}
        return self

    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        if within is not None:
            return self.sample_within(given, rng, within).values
        chosen = rng.categorical(self.weights_)
        values = np.empty(given.n_rows)
        for k, component in enumerate(self.components_):
            rows = np.flatnonzero(chosen == k)
            if rows.size:
                values[rows] = component.sample(given.take(rows), rng.child("component", k).take(rows))
        return values

    def sample_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        """Draw one allowed value for each row, from a component chosen by weight and mass of the allowed values."""
        weighted = replace(within, weighted=True)
        found = [
            _draw_weighted(component, given, rng.child("component", k), weighted)
            for k, component in enumerate(self.components_)
        ]
        mass = self.weights_ * np.exp(np.column_stack([each.log_mass for each in found if each.log_mass is not None]))
        total = mass.sum(axis=1)
        rejected = ~(total > 0.0)
        chosen = rng.categorical(np.where(rejected[:, None], 1.0, mass))
        values = np.stack([each.values for each in found])[chosen, np.arange(given.n_rows)]
        return RestrictedDraw.of(values, rejected, log_of(total))

    def supports(self, given: Table, values: Floats) -> Bools:
        return np.asarray(np.any([component.supports(given, values) for component in self.components_], axis=0))

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None = None) -> Floats:
        self.refuse_training_rows(training_rows)
        each = np.column_stack([component.log_density(given, values) for component in self.components_])
        return np.asarray(scipy.special.logsumexp(each, axis=1, b=self.weights_))

    def distribution(self, given: Table) -> DistributionFunctions:
        return DistributionFunctions.mixed([each.distribution(given) for each in self.components_], self.weights_)

    def base_measure(self) -> BaseMeasure:
        return self.components_[0].base_measure()

    def check_state(self, given: Sequence[Feature], target: Feature, n_rows: int) -> None:
        super().check_state(given, target, n_rows)
        require(abs(self.weights_.sum() - 1.0) < 1e-9, "weights_ do not sum to 1")
        for component in self.components_:
            component.check_target(target)
            component.check_state(given, target, n_rows)

    def _read_candidates(self) -> dict[str, ConditionalSampler]:
        read = read_candidates(self.candidates, "candidates of StackSampler")
        private = [label for label, each in read.items() if isinstance(each, DPSampler)]
        if private:
            raise SamplerError(
                f"candidates of StackSampler includes {private[0]!r}, a DPSampler; the weights and the other "
                "candidates would not be private. Use sampler=mcce.Privacy(...) instead of a stack."
            )
        return read

    def check_parameters(self) -> None:
        check_count(self.n_folds, "n_folds", self, least=2)
        check_count(self.max_rows, "max_rows", self, least=2 * self.n_folds)
        self._read_candidates()

    def _cut(self, given: Table, target: Column) -> Iterator[tuple[Table, Column, Table, Column]]:
        """Yield the givens and values to learn from and to predict for each fold (step 1).

        All features of a chain share the tables of the folds, so that candidates with a joint model of all columns fit
        it once per fold.
        """
        place, positions, joint = place_in_root(given, target), given.positions, given.root
        if place is None or joint is None:
            place, positions = len(given.features), tuple(range(len(given.features)))
            joint = joint_table(given, target)
        seed = resolve_seed(self.random_state)

        def deal(table: Table) -> list[tuple[Table, Table]]:
            folds = deal_rows(table.n_rows, seed, self.n_folds, self.max_rows)[1]
            return [(table.take(outside), table.take(inside)) for outside, inside in folds]

        if target.values.size < 2 * self.n_folds:
            return
        for training, unseen in joint.shared(f"stack {self.n_folds} {self.max_rows} {seed}", deal):
            yield training.select(positions), training.column(place), unseen.select(positions), unseen.column(place)

    def _fit(self, candidate: ConditionalSampler, given: Table, target: Column) -> ConditionalSampler:
        made = candidate.clone()
        made.seed_fit(derive_key(self.fit_seed(self.random_state), "component"))
        return made.fit(given, target)


def _check_suited(candidate: ConditionalSampler, given: Table, target: Column) -> None:
    """Raise if a candidate does not handle the kind, missing values or weights of the target."""
    candidate.check_target(target.feature)
    if target.weights is not None:
        candidate.check_weights(target.feature)
    if not candidate.handles_missing and any(feature.has_missing for feature in (*given.features, target.feature)):
        raise SamplerError(f"{candidate!r} does not handle missing values.")


def _log_scores(fitted: ConditionalSampler, target: Column, new: Table, observed: Column) -> Floats:
    """Return the log densities of new values; raise if they are not comparable."""
    measure = fitted.base_measure()
    is_coarse = measure == "counting" and target.feature.is_numeric and fitted.has_coarse_probabilities
    scores = None if is_coarse else comparable(fitted.log_density(new, observed.values), measure, target, observed)
    if scores is None or np.isnan(scores).any():
        raise SamplerError(f"{fitted!r} has no density that can be compared.")
    return scores


def _draw_weighted(component: ConditionalSampler, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
    """Return restricted draws with their masses, estimated if the component does not provide them."""
    drawn = component.sample_within(given, rng, within)
    if drawn.log_mass is not None:
        return drawn
    return ConditionalSampler.sample_within(component, given, rng, within)
