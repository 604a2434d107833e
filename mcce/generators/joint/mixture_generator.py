"""A finite mixture over all columns as a generator.

1. One mixture is fitted to the givens and the mutable features together (`mcce.samplers.mixture.model`). Its number of
   components is chosen on held-out rows.
2. Given part of a row, the components are reweighted, and each further column is again a mixture
   (`mcce.samplers.mixture.model`). A row is drawn column by column, each given all before it. This is exactly the joint
   distribution.
3. Restrictions truncate one column after the other. The weight of a row is the product of the masses that they leave.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from mcce.base.arrays import Floats
from mcce.base.checks import check_count
from mcce.generators.base import stored_as
from mcce.generators.joint.base import SequentialGenerator
from mcce.generators.registry import register_generator
from mcce.rng import derive_key
from mcce.samplers.mixture.model import Mixture, MixtureConditional, fit_mixture
from mcce.samplers.mixture.sampler import MOST_COMPONENTS
from mcce.storage.fields import check_type
from mcce.table import Feature, Kind, Table


@register_generator("mixture")
@stored_as("MixtureGenerator")
class MixtureGenerator(SequentialGenerator):
    """A finite mixture for mixed data as a joint model: any columns given any others, in closed form.

    Within a component, levels are independent of all other columns, and the normal scores of numbers are multivariate
    normal,

        p(x) = sum_k w_k p_k(levels) N_k(scores of numbers).

    The distribution is that of a chain of `mcce.MixtureSampler`, which share one fit.

    Parameters
    ----------
    fixed, kinds, random_state, n_jobs : as in `mcce.ChainModel`.
    max_components : int
        Largest number of components; 1, 2, 4, ... are compared on held-out rows.

    Attributes
    ----------
    model_ : `mcce.samplers.mixture.model.Mixture` of all columns, those given first.

    Notes
    -----
    Draws inside restrictions are truncated one column after the other, as in a chain: rows have an importance
    (``sample(..., importance=True)``). The numbers drawn are observed values.

    References
    ----------
    McLachlan and Peel (2000), "Finite Mixture Models", chapters 3 and 5.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(400).X[["age", "sex", "housing", "salary"]]
    >>> mixture = mcce.generators.MixtureGenerator(fixed=["age", "sex"], max_components=4, random_state=1).fit(X)
    >>> mixture.sample(50, X[["age", "sex"]].head(2), within={"housing": ["own"]})["housing"].unique().tolist()
    ['own']
    >>> mixture.log_density(X, per_feature=True).columns.tolist()
    ['housing', 'salary']
    """

    model_: Mixture

    def __init__(
        self,
        *,
        fixed: Sequence[Hashable] = (),
        kinds: Mapping[Any, Kind] | None = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
        max_components: int = 16,
    ) -> None:
        super().__init__(fixed=fixed, kinds=kinds, random_state=random_state, n_jobs=n_jobs)
        self.max_components = max_components

    def _fit(self, table: Table, n_given: int) -> None:
        check_count(self.max_components, "max_components", self, most=MOST_COMPONENTS)
        self.model_ = fit_mixture(table, derive_key(self.seed_, "mixture"), self.max_components)

    def check_model(self, features: Sequence[Feature], n_given: int) -> None:
        """Raise if the mixture does not match these columns."""
        check_type(self.model_, "model_", Mixture)
        self.model_.check_columns(features)

    def _conditionals(self, rows: Floats, n_given: int) -> Iterator[MixtureConditional]:
        for j in range(n_given, rows.shape[1]):
            yield self.model_.conditional(rows, range(j), j)
