"""The single stages of mcceR in R: run by mcceR or, if it is not installed, by R code of this package.

That code (``parity.R``) implements mcceR's documentation with R's rpart or party and R's sample(). A comparison with it
checks trees, routing, random stream and arithmetic, but not the source code of mcceR.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.exceptions import InputError
from r_bridge.frames import from_r, to_r
from r_bridge.session import Session, session

ENGINES = {"rpart": "rpart", "ctree": "party"}  # the R package that grows the trees


def check_names_for_mccer(*tables: pd.DataFrame) -> None:
    """Raise if a column name is not a plain R name: mcceR pastes names into formulas, which R evaluates."""
    names = {str(name): None for table in tables for name in table.columns}
    r = session()
    unsafe = r.strings(r.call("unsafe_names", list(names)))
    if unsafe:
        raise InputError(
            f"the column name {unsafe[0]!r} is not a plain R name, and mcceR writes names into formulas; "
            "rename it: letters, digits, dots and underscores, beginning with a letter."
        )


@dataclass(frozen=True)
class RProcessed:
    """The measures and ranks of all rows, in order, and the positions of the best rows, from 0."""

    measures: pd.DataFrame
    rank: npt.NDArray[np.int64]
    best: npt.NDArray[np.int64]


@dataclass(frozen=True)
class RStages:
    """The three stages in R, on one pair of tables.

    Attributes
    ----------
    x_train, x_explain : DataFrame
    like : DataFrame without rows, with the dtypes of generated rows.
    by_mccer : whether mcceR runs them, instead of ``parity.R``.
    """

    x_train: pd.DataFrame
    x_explain: pd.DataFrame
    like: pd.DataFrame
    by_mccer: bool

    @property
    def r(self) -> Session:
        """The session."""
        return session()

    def _call(self, stage: str, *values: Any) -> Any:
        return self.r.call(f"{'mccer' if self.by_mccer else 'own'}_{stage}", *values)

    def fit(
        self,
        pred_train: npt.NDArray[np.float64],
        fixed: Sequence[Hashable],
        c_int: Sequence[float],
        engine: str,
        decision: bool,
        seed: int | None,
        controls: Mapping[str, Any],
    ) -> Any:
        """Grow the trees; return R's feature model."""
        names = [str(name) for name in fixed]
        return self._call(
            "fit", to_r(self.x_train), pred_train, names or None, list(c_int), engine, decision, seed, dict(controls)
        )

    def leaves(self, fitted: Any) -> pd.DataFrame:
        """Return R's number of the leaf of each training row, one column for each feature."""
        found = self.r.parts(self.r.call("training_leaves", fitted))
        return pd.DataFrame({name: self.r.numbers(part) for name, part in found.items()})

    def generate(self, fitted: Any, K: int, seed: int | None) -> pd.DataFrame:
        """Generate `K` consecutive rows for each factual."""
        return from_r(self._call("generate", to_r(self.x_explain), fitted, K, seed), like=self.like)

    def process(
        self,
        sim: pd.DataFrame,
        scores: npt.NDArray[np.float64],
        fitted: Any,
        measures: Sequence[str],
        remove_invalid: bool,
        best_k: int,
    ) -> RProcessed:
        """Measure and rank generated rows, and select the best."""
        arguments = (to_r(sim), scores, to_r(self.x_explain), fitted, list(measures), remove_invalid, best_k)
        found = self.r.parts(self._call("process", *arguments))
        measured = {name: self.r.numbers(part) for name, part in self.r.parts(found["measures"]).items()}
        return RProcessed(
            measures=pd.DataFrame(measured),
            rank=self.r.numbers(found["rank"]).astype(np.int64),
            best=self.r.numbers(found["best"]).astype(np.int64) - 1,
        )

    def random_seed(self) -> npt.NDArray[np.int64]:
        """Return the state of R's random stream."""
        return self.r.numbers(self.r.call("random_seed")).astype(np.int64)
