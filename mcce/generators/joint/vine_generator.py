"""A vine copula over all columns as a generator."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from mcce.base.arrays import Floats
from mcce.base.checks import check_count
from mcce.exceptions import InputError, did_you_mean
from mcce.generators.base import stored_as
from mcce.generators.joint.base import JointGenerator
from mcce.generators.joint.drawing import Withins
from mcce.generators.registry import register_generator
from mcce.generators.requests import RULE_ATTEMPTS
from mcce.rng import RowStreams
from mcce.samplers import RestrictedDraw
from mcce.samplers.restricted import Within
from mcce.samplers.vine.dvine import SETS, Families, library
from mcce.samplers.vine.joint import JointVine
from mcce.table import Kind, Table
from mcce.table.weights import as_copies
from mcce.wording import Value


@register_generator("vine")
@stored_as("VineGenerator")
class VineGenerator(JointGenerator):
    """A vine copula as a joint model: one D-vine over all columns, with the empirical margins of the training data.

    The fixed features and the decision are at one end of its path. So each column given all before it,

        p(x^m | x^f, y') = prod_j p(x_j | x_1, ..., x_j-1),

    has exactly the distribution function H(u_j | u_1, ..., u_j-1) of the Rosenblatt transform. Numbers and ordered
    levels are drawn by inverting H on the shares of the training values, discrete ones included, and their densities
    are differences of H. Unordered levels are indicators, drawn one after the other until one is 1, each fitted to the
    rows in which those before it are 0.

    Parameters
    ----------
    fixed, kinds, random_state, n_jobs : as in `mcce.ChainModel`; the vine is fitted in one thread.
    families : {"parametric", "gaussian", "student", "nonparametric"}
        Pair copulas, as in `mcce.VineSampler`. "parametric" ones are chosen by AIC and fitted by Kendall's tau, which
        suits numbers; with many levels "gaussian", fitted by likelihood, does better.
    n_trees : int
        Number of trees of the vine: a variable depends on this many variables before it, in data order. The time of
        fits and draws grows with it.

    Attributes
    ----------
    model_ : `mcce.samplers.vine.joint.JointVine`.

    Notes
    -----
    Needs pyvinecopulib: ``pip install 'mcce[vine]'``. Draws inside restrictions are truncated one column after the
    other, as in a chain: rows have an importance (``sample(..., importance=True)``). The values drawn are observed
    values. Missing values are drawn by a separate indicator; a given missing value enters by this indicator only.

    References
    ----------
    Aas, Czado, Frigessi and Bakken (2009), "Pair-copula constructions of multiple dependence", Insurance: Mathematics
    and Economics 44. Panagiotelis, Czado and Joe (2012), "Pair copula constructions for multivariate discrete data",
    JASA 107. Brechmann, Czado and Aas (2012), "Truncated regular vines in high dimensions", Canadian Journal of
    Statistics 40.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(300).X[["age", "sex", "salary", "savings"]]
    >>> vine = mcce.generators.VineGenerator(fixed=["age", "sex"], random_state=1).fit(X)
    >>> rows = vine.sample(20, X[["age", "sex"]].head(2), within={"salary": (40_000, None)})
    >>> rows.shape, bool((rows["salary"] >= 40_000).all())
    ((40, 4), True)
    >>> vine.log_density(X, per_feature=True).columns.tolist()
    ['salary', 'savings']
    """

    restricts: ClassVar[bool] = True
    attempts: ClassVar[int] = RULE_ATTEMPTS
    draws_observed: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True

    model_: JointVine

    def __init__(
        self,
        *,
        fixed: Sequence[Hashable] = (),
        kinds: Mapping[Any, Kind] | None = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
        families: Families = "gaussian",
        n_trees: int = 20,
    ) -> None:
        super().__init__(fixed=fixed, kinds=kinds, random_state=random_state, n_jobs=n_jobs)
        self.families = families
        self.n_trees = n_trees

    def _fit(self, table: Table, n_given: int) -> None:
        check_count(self.n_trees, "n_trees", self)
        if self.families not in SETS:
            raise InputError(
                "families of ",
                Value(VineGenerator),
                " is ",
                Value(self.families),
                f"; {did_you_mean(self.families, SETS)}",
            )
        library()
        self.model_ = JointVine.fit(as_copies(table), self.families, int(self.n_trees))

    def _draw(self, givens: Floats, streams: RowStreams) -> Floats:
        return self.draw_within(givens, streams, {}, weighted=False).values

    def draw_within(self, givens: Floats, streams: RowStreams, within: Withins, *, weighted: bool) -> RestrictedDraw:
        """Draw whole rows, each column inside its restriction, given all before it."""
        n, n_given = givens.shape
        values = np.empty((n, len(self.model_.columns) - n_given), order="F")
        log_mass, known = np.zeros(n), self.model_.known(self.model_.cover(givens))
        anything = Within(missing=np.ones(n, dtype=bool))
        for k in range(values.shape[1]):
            j = n_given + k
            conditional, own = self.model_.conditional(j, known, n), streams.child("column", j)
            found = conditional.draw_within(own, within.get(k, anything))
            values[:, k] = found.values
            if k in within:
                assert found.log_mass is not None
                log_mass += found.log_mass
                if found.rejected.any():  # a rejected row continues with a value that is not allowed
                    free = conditional.draw_within(streams.child("free", j), anything).values
                    values[found.rejected, k] = free[found.rejected]
            if k + 1 < values.shape[1]:
                known = self.model_.columns[j].add_to(known, values[:, k])
        rejected = np.isneginf(log_mass)
        values[rejected] = np.nan
        return RestrictedDraw(values, rejected, log_mass)

    def _log_densities(self, table: Table) -> Floats:
        first, model = self._layout.n_given, self.model_
        known = model.known(model.cover(table.matrix[:, :first]))
        found = np.empty((table.n_rows, table.matrix.shape[1] - first))
        for j in range(first, table.matrix.shape[1]):
            conditional = model.conditional(j, known, table.n_rows)
            found[:, j - first] = conditional.log_density(table.matrix[:, j])
            if j + 1 < table.matrix.shape[1]:
                known = model.columns[j].add_to(known, table.matrix[:, j])
        return found
