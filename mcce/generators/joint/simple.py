"""Anything with ``fit(X)`` and ``sample(n, given)`` as a generator.

1. ``fit(frame)`` learns from the training rows: the user's columns, and one of booleans for the decision.
2. ``sample(n, given)`` returns a frame of `n` rows with the mutable columns; `given` is a dict of the fixed values and
   the decision by column, empty if nothing is given. Fewer rows are taken as those that could be had; the others are
   dead, of "the fixed values".

How draws become reproducible, and what is refused: `mcce.generators.joint.foreign`.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from mcce.exceptions import InputError, SamplerError, spell
from mcce.generators.joint.foreign import ForeignGenerator, Seeding
from mcce.table import Kind


class SampleGenerator(ForeignGenerator):
    """Draws from a model with the methods ``fit(X)`` and ``sample(n, given)``.

    Parameters
    ----------
    model : object
        An unfitted model; it is copied. ``fit(X)`` gets a frame with the training columns and, if the generator
        conditions on the decision, one more of booleans, named ``"<decision>"``. ``sample(n, given)`` returns a frame
        of `n` rows given the values of a dict by column. If it has a parameter `random_state` or `seed`, it is given an
        integer. To take weights of rows, its `fit` has a parameter `sample_weight`.
    fixed, kinds, random_state, n_jobs : as in `mcce.ChainModel`; blocks are drawn one at a time.
    seed : callable or None
        ``seed(model, number)`` seeds a model that has a random state of its own. None seeds the global states of
        Python, numpy and torch, and calls `set_random_state` if there is one.

    Notes
    -----
    It has no density, and cannot be saved but by pickle. Restrictions and rules are obeyed by rejection, of 20 draws at
    most. A subclass of `mcce.generators.JointGenerator` can have both,
    and draws faster, since it need not draw in blocks.

    Examples
    --------
    >>> import mcce
    >>> class Alike:
    ...     def fit(self, X):
    ...         self.X = X
    ...     def sample(self, n, given, random_state=None):
    ...         alike = self.X
    ...         for name, value in given.items():
    ...             alike = alike[alike[name] == value]
    ...         return (alike if len(alike) else self.X).sample(n, replace=True, random_state=random_state)
    >>> X = mcce.datasets.load_loans(500).X[["sex", "housing", "salary"]]
    >>> generator = mcce.generators.SampleGenerator(Alike(), fixed=["sex"], random_state=1)
    >>> explainer = mcce.MCCE(lambda rows: rows["salary"] / 120_000, fixed=["sex"], generator=generator).fit(X)
    >>> len(explainer.explain(X.head(20), n_samples=100)) > 0
    True
    """

    def __init__(
        self,
        model: Any,
        *,
        fixed: Sequence[Hashable] = (),
        kinds: Mapping[Any, Kind] | None = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
        seed: Seeding | None = None,
    ) -> None:
        self.model = model
        self.fixed = fixed
        self.kinds = kinds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.seed = seed

    def _copy_foreign(self, frame: pd.DataFrame) -> Any:
        for name in ("fit", "sample"):
            if isinstance(self.model, type) or not callable(getattr(self.model, name, None)):
                raise InputError(
                    f"model is {spell(self.model)}, which has no method {name!r} to call; give an unfitted object with "
                    "fit(X) and sample(n, given)."
                )
        return copy.deepcopy(self.model)

    def _draw_block(self, n: int, given: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, int]:
        draw = self.foreign_.sample
        taken = [name for name in ("random_state", "seed") if name in inspect.signature(draw).parameters]
        values = given.iloc[0].to_dict() if len(given.columns) else {}
        drawn = self._call(draw, n, values, seed=seed) if not taken else self._seed_by(taken[0], draw, n, values, seed)
        if not len(drawn):
            raise SamplerError(f"{self!r} drew no rows given {values}; let sample(n, given) return at least one.")
        n_met = min(len(drawn), n)
        while len(drawn) < n:  # what stands in for rows that could not be had
            drawn = pd.concat([drawn, drawn], ignore_index=True)
        return drawn.iloc[:n], n_met

    def _seed_by(self, name: str, draw: Any, n: int, values: dict[Any, Any], seed: int) -> pd.DataFrame:
        return self._call(lambda: draw(n, values, **{name: seed % 2**32}), seed=seed)
