"""The steps of the method by themselves: draw candidates, choose among candidates that somebody brings.

`Explainer.explain` does both at once, block by block.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mcce import exceptions
from mcce.assembling import assemble
from mcce.base.checks import check_count
from mcce.base.progress import working
from mcce.base.threads import count_jobs, one_native_thread
from mcce.constraints import Constraints, read, resolve
from mcce.counterfactuals import Counterfactuals
from mcce.explain.copies import TrainingRows
from mcce.explain.factuals import encode_factuals, read_factuals
from mcce.explain.order import DEFAULT, Ordering, resolve_measures
from mcce.explain.plausibility import Plausibility
from mcce.explain.pools import ConstrainedPools, draw_pools, fixed_columns, match_candidates, pool_keys
from mcce.explain.search import Block, Settings, Task, choose, concatenate
from mcce.explain.unexplained import Why
from mcce.generators.chain import ChainModel
from mcce.generators.givens import draw_index
from mcce.learning import LearnsLater
from mcce.model.ask import Asker
from mcce.model.decisions import Decision
from mcce.model.robustness import ConfirmingAsker, Lasting
from mcce.report.names import Names
from mcce.table import Data, frame_kind
from mcce.table.frames import handed


class Steps(LearnsLater):
    """The part of an explainer that takes single steps."""

    decision_: Decision
    fit_seconds_: float
    condition_on_decision: bool
    min_donors: int | None
    constraints: Any
    labels: Mapping[Any, str] | None
    units: Mapping[Any, str] | None
    formats: Mapping[Any, Any] | None

    @one_native_thread()
    def generate(
        self,
        X: Data,
        *,
        n_samples: int = 1000,
        independent: bool = False,
        constraints: Any = (),
        allow_missing: bool | Sequence[Hashable] = False,
        progress: bool | None = None,
    ) -> pd.DataFrame:
        """Step 2 alone: the candidates of every row of `X`, indexed by (id, draw).

        They are the rows that `explain` chooses from with the same `n_samples`, `independent`, `constraints` and
        `allow_missing`. Inside constraints there are fewer: those that could be drawn, numbered anew; for a factual
        without a valid one among them `explain` may draw others, for it alone. Of polars or pyarrow it is the same kind
        of frame, with `id` and `draw` as columns.

        Examples
        --------
        >>> import mcce
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
        >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
        >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
        >>> candidates = explainer.generate(X.iloc[[0, 5]], n_samples=100)
        >>> candidates.shape, list(candidates.index.names)
        ((200, 3), ['id', 'draw'])
        >>> bool((candidates["age"].loc[0] == X["age"][0]).all())
        True
        """
        self._check_fitted()
        check_count(n_samples, "n_samples")
        schema = self.generator_.schema_
        index, matrix = encode_factuals(X, schema)
        columns: Sequence[int] = range(len(schema)) if independent else fixed_columns(self.generator_)
        keys = pool_keys(self.generator_, matrix, columns)
        asked = self._constraints(constraints, allow_missing)
        if asked is None:
            pools = draw_pools(self.generator_, matrix, keys, n_samples, progress)
        else:
            with working("drawing inside the constraints", progress):
                inside = ConstrainedPools(self.generator_, asked, matrix, keys, index)
                pools = inside.draw(range(n_samples)).candidates
        sizes = pools.end - pools.begin
        draw = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        rows = pools.rows[np.repeat(pools.begin, sizes) + draw]
        owner = np.repeat(np.arange(len(index)), sizes)
        if asked is not None:
            allowed = asked.of_factuals(matrix, index).hold(rows, owner)
            rows, owner = rows[allowed], owner[allowed]
            draw = np.arange(owner.size) - np.searchsorted(owner, owner)
        drawn = schema.decode(rows, draw_index(index, n_samples)[owner * n_samples + draw])
        return handed(drawn, frame_kind(X))

    @one_native_thread()
    def select(
        self,
        candidates: pd.DataFrame,
        X: Data,
        *,
        n_counterfactuals: int = 1,
        exhaustive: bool = False,
        allow_missing: bool | Sequence[Hashable] = False,
    ) -> Counterfactuals:
        """Step 3 alone: choose among candidates, as `generate` returns them, for the rows of `X`.

        Parameters
        ----------
        candidates : DataFrame
            Rows with the training columns; the first level of the index is the id of the factual in `X`. Their order
            within an id breaks ties.
        X, n_counterfactuals, exhaustive, allow_missing : as in `explain`

        Examples
        --------
        >>> import mcce
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
        >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
        >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
        >>> candidates = explainer.generate(X.iloc[[0]], n_samples=100)
        >>> explainer.select(candidates, X.iloc[[0]]).frame.equals(explainer.explain(X.iloc[[0]], n_samples=100).frame)
        True
        >>> rich = candidates[candidates["savings"] > 50_000]
        >>> bool(explainer.select(rich, X.iloc[[0]]).frame["savings"].iloc[0] > 50_000)
        True
        """
        self._check_fitted()
        check_count(n_counterfactuals, "n_counterfactuals")
        schema = self.generator_.schema_
        factuals = read_factuals(X, schema, self.decision_, self._training.spots)
        begun = time.perf_counter()
        members = np.flatnonzero(~factuals.wanted)
        brought = match_candidates(candidates, factuals, members, schema, self._mutable)
        ordering = resolve_measures(DEFAULT, schema.features)
        asked = self._constraints((), allow_missing)
        settings = Settings(0, n_counterfactuals, exhaustive=exhaustive)
        task = self._task(settings, ordering, constraints=None if asked is None else asked.understood)
        no_keys = np.empty(0, dtype=np.uint64)
        block = Block(members, factuals.matrix[members], no_keys, range(0), factuals.index[members])
        outcome = concatenate([choose(task, brought, block)], factuals)
        return assemble(
            factuals,
            dataclasses.replace(outcome, seconds_select=time.perf_counter() - begun),
            self.generator_,
            self.decision_,
            training=self._training_rows(),
            why=Why(without_candidates=members[brought.begin == brought.end]),
            n_samples=None,
            frames=frame_kind(X),
            fit_seconds=self.fit_seconds_,
            settings={
                "n_candidates": len(candidates),
                "n_counterfactuals": n_counterfactuals,
                "exhaustive": exhaustive,
                **self._described(),
            },
            names=self.names(),
        )

    def _task(
        self,
        settings: Settings,
        ordering: Ordering,
        plausibility: Plausibility | None = None,
        excluded: TrainingRows | None = None,
        lasting: Lasting | None = None,
        constraints: Constraints | None = None,
    ) -> Task:
        model = Asker(self.decision_, self.generator_.schema_)
        asker = model if lasting is None or lasting.robust is None else ConfirmingAsker(model, lasting)
        threads = count_jobs(self.n_jobs)
        return Task(
            self.generator_, asker, self._mutable, settings, ordering, plausibility, excluded, threads, constraints
        )

    def _constraints(self, also: Any, allow_missing: bool | Sequence[Hashable]) -> Constraints | None:
        """Return the constraints of the explainer together with others; None if nothing is restricted."""
        said = [*read(self.constraints), *read(also)]
        resolved = resolve(said, self.generator_.schema_, self.generator_.fixed_, allow_missing)
        return resolved if resolved else None

    def names(self) -> Names:
        """Return what people call features, values and predictions."""
        names = Names.read(self.labels, self.units, self.formats, self.generator_.schema_.names)
        names.check_kinds(self.generator_.schema_)
        return names

    def _described(self) -> dict[str, object]:
        """Return the settings of the explainer itself, for the result."""
        generator = self.generator_
        described: dict[str, object] = {"random_state": generator.seed_}
        if isinstance(generator, ChainModel):
            described |= {"sampler": generator.sampler, "visit_sequence": list(generator.visit_sequence_)}
        else:
            described["sampler"] = type(generator).__name__
        if self.min_donors is not None:
            described["min_donors"] = self.min_donors
        return {**described, "condition_on_decision": self.condition_on_decision}

    def _check_fitted(self) -> None:
        if not hasattr(self, "fit_seconds_"):
            raise exceptions.NotFittedError("this MCCE is not fitted; call fit(X) with the training rows first.")
