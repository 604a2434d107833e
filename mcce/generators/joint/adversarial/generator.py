"""An adversarial random forest as a generator: grown by `growing`, with the distribution of its `leaves`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from mcce.base.arrays import Floats
from mcce.base.checks import check_count, check_not_negative, check_share
from mcce.generators.base import stored_as
from mcce.generators.joint.adversarial.growing import Coding, grow
from mcce.generators.joint.adversarial.leaves import Leaves
from mcce.generators.joint.base import JointGenerator
from mcce.generators.joint.drawing import Withins
from mcce.generators.registry import register_generator
from mcce.generators.requests import RULE_ATTEMPTS
from mcce.rng import RowStreams, derive_key
from mcce.samplers import RestrictedDraw
from mcce.table import Kind, Table
from mcce.table.weights import as_copies


@register_generator("forest")
@stored_as("AdversarialForest")
class AdversarialForest(JointGenerator):
    """An adversarial random forest: a mixture over leaves in which the features are independent (Watson et al. 2023).

    Each forest is trained to distinguish real rows from rows drawn from the leaves of the previous forest, until it
    cannot. The distribution is then a mixture over leaves, each a product of univariate distributions,

        f(x) = sum_leaf q_leaf prod_j f_leaf,j(x_j),

    with q the share of training rows in a leaf. Levels, missing values and numbers with point mass have their shares in
    the leaf, other numbers a normal distribution truncated at the leaf's bounds. Given the fixed values and the
    decision, the leaves are reweighted by their likelihoods: conditional draws and densities are exact, and so are
    draws inside restrictions.

    Parameters
    ----------
    fixed, kinds, random_state, n_jobs : as in `mcce.ChainModel`; the forest is grown in one thread.
    n_trees : int
    min_leaf : int
        Smallest number of training rows in a leaf; with weights, their smallest total weight.
    delta : float
        Growing stops when the out-of-bag accuracy of a forest is at most 1/2 + delta.
    max_rounds : int
        Largest number of forests; growing also stops when the accuracy does not fall.
    smoothing : float
        Shares in a leaf are mixed with those of all training rows inside its bounds, which count as this many rows.

    Attributes
    ----------
    model_ : the leaves; ``model_.accuracies`` has the out-of-bag accuracy of the forest of each round.

    References
    ----------
    Watson, Blesch, Kapar and Wright (2023), "Adversarial random forests for density estimation and generative
    modeling", AISTATS.

    Examples
    --------
    >>> import mcce, tempfile
    >>> X = mcce.datasets.load_loans(600).X[["age", "sex", "housing", "salary"]]
    >>> forest = mcce.generators.AdversarialForest(fixed=["age", "sex"], n_trees=10, random_state=1).fit(X)
    >>> rows = forest.sample(50, X[["age", "sex"]].head(2), within={"salary": (40_000, None)})
    >>> rows.shape, bool((rows["salary"] >= 40_000).all())
    ((100, 4), True)
    >>> bool(forest.log_density(X).mean() > forest.log_density(X.assign(salary=X["salary"].max())).mean())
    True
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     forest.save(f"{folder}/forest.mcce")
    ...     again = mcce.generators.AdversarialForest.load(f"{folder}/forest.mcce")
    >>> again.sample(5).equals(forest.sample(5))
    True
    """

    restricts: ClassVar[bool] = True
    attempts: ClassVar[int] = RULE_ATTEMPTS
    takes_weights: ClassVar[bool] = True

    model_: Leaves

    def __init__(
        self,
        *,
        fixed: Sequence[Hashable] = (),
        kinds: Mapping[Any, Kind] | None = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
        n_trees: int = 30,
        min_leaf: int = 10,
        delta: float = 0.0,
        max_rounds: int = 10,
        smoothing: float = 1.0,
    ) -> None:
        super().__init__(fixed=fixed, kinds=kinds, random_state=random_state, n_jobs=n_jobs)
        self.n_trees = n_trees
        self.min_leaf = min_leaf
        self.delta = delta
        self.max_rounds = max_rounds
        self.smoothing = smoothing

    def _fit(self, table: Table, n_given: int) -> None:
        for name in ("n_trees", "min_leaf", "max_rounds"):
            check_count(getattr(self, name), name, self)
        smoothing, delta = check_not_negative(self.smoothing, "smoothing"), check_share(self.delta, "delta")
        table = as_copies(table)
        features = enumerate(table.features)
        codings = tuple(Coding.of(table.matrix[:, j], feature, table.weights) for j, feature in features)
        codes = np.ascontiguousarray([coding.encode(table.matrix[:, j]) for j, coding in enumerate(codings)])
        trees, accuracies = grow(
            codes,
            np.array([coding.n_codes for coding in codings], dtype=np.int64),
            n_trees=self.n_trees,
            min_leaf=self.min_leaf,
            delta=delta,
            max_rounds=self.max_rounds,
            seed=derive_key(self.seed_, "adversarial forest"),
            weights=table.weights,
        )
        self.model_ = Leaves.of(codings, codes, trees, float(smoothing), accuracies, table.weights)

    def _draw(self, givens: Floats, streams: RowStreams) -> Floats:
        return self.model_.draw(givens, streams)

    def draw_within(self, givens: Floats, streams: RowStreams, within: Withins, *, weighted: bool) -> RestrictedDraw:
        """Draw whole rows inside restrictions, with leaves weighted by the probability of the restrictions."""
        return self.model_.draw_within(givens, streams, within)

    def _log_densities(self, table: Table) -> Floats:
        return self.model_.log_densities(table.matrix, self._layout.n_given)
