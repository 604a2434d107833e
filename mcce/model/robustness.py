"""Robust recourse: counterfactuals that refitted models accept too, also if their numbers are perturbed.

1. Refits are the model fitted to bootstrap samples of its training rows with new seeds (`bootstrap_refits`), or models
   of the user. A row is robust if the lower confidence bound (Clopper and Pearson 1934) of the share of all such refits
   that accept it reaches the share that is demanded. The row that is returned is chosen by the same refits among many,
   and some rows please these refits alone; the bound therefore has the one-sided level 1 - 0.05 / 25, which leaves 95
   per cent for the best of 25 rows (Bonferroni). For a share of 0.9 all of 59 refits must accept (`refits_needed`). A
   share of 1 requires all given refits, and guarantees nothing about others.
   Not promised: that models fitted to new people accept the row. The model in use and its refits share the chance
   errors of the training rows (benchmarks/results/robust.md).
2. Noise moves every mutable number by a share of its value, uniformly, on the column's grid; it is a function of seed
   and row. A row is robust if enough perturbed rows have the wanted decision.
3. `ConfirmedModel` queries the model first; refits and noise only for rows that it accepts and that can still pass.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.checks import check, check_count, is_number
from mcce.base.progress import progress_bar
from mcce.base.threads import one_native_thread
from mcce.exceptions import InputError, did_you_mean
from mcce.model.decisions import Decision, resolve_decision
from mcce.model.queries import EncodedModel
from mcce.rng import RowStreams, derive_key, hash_rows, resolve_seed
from mcce.table import Schema
from mcce.table.checks import rows_of
from mcce.table.dtypes import is_dated
from mcce.table.frames import is_other_frame
from mcce.wording import Parameter, PythonOnly

NEIGHBOURS = 32  # of a row, with noise
MISTAKEN = 0.05  # probability that a returned row has less than the required share
CHOSEN_AMONG = 25  # rows that the bound allows for
USUAL_NOISE = 0.02  # if only a share is given
Noise = float | Mapping[Any, float]


@dataclass(frozen=True, kw_only=True)
class Robust:
    """Robustness requirement of counterfactuals to refits and small errors, for `MCCE.explain(robust=...)`.

    Parameters
    ----------
    refits : list of models
        Models for the same decision, as returned by `bootstrap_refits`; `measures["refits"]` of the result is the share
        of them that gives a counterfactual the wanted decision. The counterfactual was selected with these refits;
        fresh refits accept it less often.
    noise : float or dict
        Relative perturbation of the numbers of a counterfactual, for all mutable features or by feature;
        `measures["noise"]` is the share of perturbed rows that have the wanted decision.
    share : float or None
        Minimum share of refits, including fresh ones, and of perturbed rows that accept a counterfactual; None measures
        the shares without a requirement. For refits it is a lower confidence bound of 95 per cent
        (`mcce.model.robustness`): for 0.9 all of 59 refits must accept, and fewer refits raise an error. A share of 1
        refers to the given refits only. Refits and noise are evaluated last, for rows that the model accepts.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(300).X[["age", "salary", "savings"]]
    >>> explainer = mcce.MCCE(lambda rows: rows["salary"] > 40_000, decision=True, random_state=1).fit(X)
    >>> found = explainer.explain(X.head(30), robust=mcce.Robust(noise=0.05, share=1.0))
    >>> float(found.measures["noise"].min())
    1.0
    """

    refits: Sequence[Any] = ()
    noise: Noise = 0.0
    share: float | None = None

    @classmethod
    def read(cls, given: Any) -> Robust | None:
        """Return the requirement that a user gives: a share alone means noise of 2 per cent; None means none."""
        if given is None or isinstance(given, Robust):
            return given
        return cls(noise=USUAL_NOISE, share=_check_share(given))


def refusals_allowed(n_refits: int, share: float) -> int:
    """Return how many refits may reject a row such that the bound reaches the share; -1 if no number suffices."""
    if share == 1.0:
        return 0
    chance = scipy.special.bdtr(np.arange(n_refits + 1), n_refits, 1.0 - share)
    return int((chance <= MISTAKEN / CHOSEN_AMONG).sum()) - 1


def refits_needed(share: float) -> int:
    """Return the smallest number of refits that can show a share below 1, if all of them accept a row.

    Examples
    --------
    >>> from mcce.model.robustness import refits_needed
    >>> refits_needed(0.9), refits_needed(0.5)
    (59, 9)
    """
    return math.ceil(math.log(MISTAKEN / CHOSEN_AMONG) / math.log(share))


@dataclass(frozen=True)
class Robustness:
    """A robustness requirement resolved for a table: refits, and relative noise by column (0 for none).

    `share` is the required share of refits and of perturbed rows with the wanted decision; None for no requirement.
    """

    model: EncodedModel
    refits: tuple[EncodedModel, ...]
    noise: Floats
    seed: int
    share: float | None

    @classmethod
    def resolve(
        cls,
        robust: Robust,
        decision: Any,
        model: Decision,
        schema: Schema,
        mutable: Ints,
        seed: int,
    ) -> Robustness:
        """Resolve a requirement for a table; `model` is the wanted decision bound to the model."""
        refits, noise = robust.refits, robust.noise
        if isinstance(refits, (str, Mapping)) or not isinstance(refits, Sequence):
            raise InputError(f"refits is a {type(refits).__name__}; give a list of models, as bootstrap_refits makes.")
        by_column = _read_noise(noise, schema, mutable)
        share = None if robust.share is None else _check_share(robust.share)
        if not len(refits) and not by_column.any():
            raise InputError(
                f"{robust!r} has nothing to be robust against; give refits=[...], as mcce.bootstrap_refits(model, X, "
                "y) makes, or noise=0.02."
            )
        if len(refits) and callable(decision):
            raise InputError(
                "the decision is a function of the rows, which refits do not change; give an interval or a class label."
            )
        if len(refits) and share is not None and refusals_allowed(len(refits), share) < 0:
            raise InputError(
                f"{len(refits)} refits cannot show that a share of {share:g} of all refits accepts a row; that takes "
                f"{refits_needed(share)}. Give that many, as from mcce.bootstrap_refits(model, X, y, share={share:g}), "
                "or share=1 for all of those at hand."
            )
        models = tuple(EncodedModel(resolve_decision(decision, refit), schema) for refit in refits)
        return cls(EncodedModel(model, schema), models, by_column, derive_key(seed, "noise"), share)

    def described(self) -> dict[str, object]:
        """Return the requirement as settings of a result."""
        return {"refits": len(self.refits), "noise": float(self.noise.max()), "robust": self.share}

    def shares(self, rows: Floats) -> dict[str, Floats]:
        """Return the share of refits, and of perturbed rows, that give each encoded row the wanted decision."""
        shares = {}
        if self.refits:
            shares["refits"] = np.mean([refit.predict_encoded(rows)[1] for refit in self.refits], axis=0)
        if self.noise.any():
            shares["noise"] = self._noise_share(rows)
        return {name: np.asarray(share, dtype=np.float64).reshape(rows.shape[0]) for name, share in shares.items()}

    def hold(self, rows: Floats) -> Bools:
        """Return which encoded rows reach the required share."""
        least = 0.0 if self.share is None else self.share
        allowed = refusals_allowed(len(self.refits), least) if self.refits and least else len(self.refits)
        refused = np.zeros(rows.shape[0], dtype=np.int64)
        for refit in self.refits:
            left = np.flatnonzero(refused <= allowed)
            if not left.size:
                break
            refused[left] += ~refit.predict_encoded(rows[left])[1]
        holds = refused <= allowed
        if self.noise.any() and holds.any():
            holds[holds] = self._noise_share(rows[holds]) >= least - 1e-9
        return holds

    def _noise_share(self, rows: Floats) -> Floats:
        n = rows.shape[0]
        keys = np.repeat(hash_rows(rows), NEIGHBOURS)
        streams = RowStreams(self.seed, keys, np.tile(np.arange(NEIGHBOURS, dtype=np.uint64), n))
        moved = np.repeat(rows, NEIGHBOURS, axis=0)
        for j in np.flatnonzero(self.noise):
            shift = 1.0 + self.noise[j] * (2.0 * streams.uniform() - 1.0)
            moved[:, j] = self.model.schema.features[j].grid.put(moved[:, j] * shift)
        return np.asarray(self.model.predict_encoded(moved)[1].reshape(n, NEIGHBOURS).mean(axis=1))


@dataclass(frozen=True)
class ConfirmedModel:
    """Queries the model and, for accepted rows, refits and perturbed rows."""

    model: EncodedModel
    robustness: Robustness

    def predict_encoded(self, rows: Floats) -> tuple[npt.NDArray[Any], Bools]:
        """Return the model's scores of encoded candidates, and which robustly have the wanted decision."""
        scores, wanted = self.model.predict_encoded(rows)
        robust = wanted.copy()
        robust[wanted] = self.robustness.hold(rows[wanted])
        return scores, robust


@one_native_thread()
def bootstrap_refits(
    model: Any, X: Any, y: Any, n: int | None = None, *, share: float = 0.9, random_state: int | None = 0
) -> list[Any]:
    """Refit a model to bootstrap samples of its training rows, for `Robust(refits=...)`.

    Parameters
    ----------
    model : scikit-learn estimator
        It is cloned. Parameters named ``random_state`` get a new seed for each refit, so refits differ by their rows
        and by their random numbers.
    X, y : the training rows of the model.
    n : int or None
        Number of refits; None for the number needed for `share`, 59 for 0.9.
    share : float
        The share that `Robust` will require.
    random_state : int or None
        Seed of the samples and of the refits.

    Returns
    -------
    list of fitted models. Samples that lack a class of `y` are redrawn.

    Examples
    --------
    >>> import mcce
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = mcce.datasets.load_loans(500).X.select_dtypes("number")
    >>> y = X["savings"] > X["savings"].median()
    >>> len(mcce.bootstrap_refits(LogisticRegression(max_iter=2000), X, y, n=3))
    3
    """
    from sklearn.base import clone  # scikit-learn takes long to import

    if n is None:
        check(is_number(share) and 0.0 < share < 1.0, share, "share", "no number of refits shows it; give n.")
    n = refits_needed(share) if n is None else check_count(n, "n")
    n_rows, answers = len(X), np.asarray(y)
    if n_rows != answers.shape[0]:
        raise InputError(f"X has {n_rows} rows and y {answers.shape[0]}; give the rows that the model was fitted to.")
    rng = np.random.default_rng(resolve_seed(random_state))
    classes = np.unique(answers) if hasattr(model, "classes_") or hasattr(model, "predict_proba") else None
    refits: list[Any] = []
    with progress_bar(n, "fitting again", None) as bar:
        while len(refits) < n:
            sample = rng.integers(0, n_rows, n_rows)
            if classes is not None and np.unique(answers[sample]).size < classes.size:
                continue
            is_frame = isinstance(X, pd.DataFrame) or is_other_frame(X)
            refit = _reseeded(clone(model), rng)
            refits.append(refit.fit(rows_of(X if is_frame else np.asarray(X), sample), answers[sample]))
            bar.update()
    return refits


def _reseeded(model: Any, rng: np.random.Generator) -> Any:
    """Return a model with new seeds, including those of its steps."""
    names = sorted(name for name in model.get_params() if name.rpartition("__")[2] == "random_state")
    return model.set_params(**{name: int(rng.integers(2**31)) for name in names})


def _read_noise(noise: Noise, schema: Schema, mutable: Ints) -> Floats:
    by_column = np.zeros(len(schema.features))
    numbers = [int(j) for j in mutable if schema.features[j].is_numeric and not is_dated(schema.features[j].dtype)]
    if not isinstance(noise, Mapping):
        by_column[numbers] = _check_noise(noise, "noise")
        return by_column
    names = [schema.names[j] for j in numbers]
    for name, share in noise.items():
        if name not in names:
            raise InputError(
                Parameter("noise"),
                f" names {name!r}, which is not a number that may change; {did_you_mean(name, names)}",
            )
        by_column[schema.names.index(name)] = _check_noise(share, f"noise[{name!r}]")
    return by_column


def _check_share(value: Any) -> float:
    must_be = ("it is a share, above 0 and at most 1, as 0.9 for nine in ten", PythonOnly(", or a mcce.Robust"), ".")
    check(is_number(value) and 0.0 < value <= 1.0, value, "robust", *must_be)
    return float(value)


def _check_noise(value: Any, name: str) -> float:
    fits = is_number(value) and 0.0 <= value < 1.0
    check(fits, value, name, "it is a share of the value, as 0.02 for two per cent.")
    return float(value)
