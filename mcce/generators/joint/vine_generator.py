"""A vine copula over all columns as a generator."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from mcce.base.arrays import Floats
from mcce.base.checks import check_count
from mcce.exceptions import InputError, did_you_mean
from mcce.generators.base import stored_as
from mcce.generators.joint.base import SequentialGenerator
from mcce.generators.registry import register_generator
from mcce.samplers.vine.dvine import SETS, Families, library
from mcce.samplers.vine.joint import ColumnConditional, JointVine
from mcce.table import Kind, Table
from mcce.table.weights import as_copies
from mcce.wording import Value


@register_generator("vine")
@stored_as("VineGenerator")
class VineGenerator(SequentialGenerator):
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

    def _conditionals(self, rows: Floats, n_given: int) -> Iterator[ColumnConditional]:
        model = self.model_
        known = model.known(model.cover(rows[:, :n_given]))
        for j in range(n_given, rows.shape[1]):
            yield model.conditional(j, known, len(rows))
            if j + 1 < rows.shape[1]:
                known = model.columns[j].add_to(known, rows[:, j])
