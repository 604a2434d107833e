"""The propensity score mean squared error: how well a model tells generated rows from real ones.

As synthpop's `utility.gen` (Snoke, Raab, Nowok, Dibben and Slavkovic 2018, "General and specific utility measures for
synthetic data", JRSS A 181):

1. Score every row: the probability that it is generated (`mcce.diagnostics.propensity`). N rows, a share c generated.
2. pMSE = mean of (score - c)^2: 0 if the model cannot tell.
3. Expected if the generated rows are drawn from a correct model of the real ones: for the logistic regression
   k (1 - c)^2 c / N with k coefficients beside the intercept; for the tree half the mean over trees grown for t
   permuted, since a permutation lets both tables vary. S_pMSE is pMSE over that. Columns that generated rows copy from
   real ones (`fixed`) cannot differ: k counts the coefficients that are left beside those of the fixed columns and
   their products, and t is permuted among rows with the same fixed values.
4. From the scores also SPECKS, the Kolmogorov-Smirnov distance between those of generated and real rows; PO50, the rows
   predicted rightly (generated above 0.5) in per cent over 50; U, the Mann-Whitney count.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from mcce.arrays import Floats, Ints
from mcce.checks import check_count, check_share
from mcce.diagnostics.pairs import find_copied, read_pair
from mcce.diagnostics.propensity import Scores, TreeModel, logit_scores
from mcce.diagnostics.tables import count_above
from mcce.exceptions import InputError
from mcce.progress import working
from mcce.rng import derive_key, resolve_seed
from mcce.table import Data, Kind
from mcce.workers import count_jobs, one_native_thread, run_in_threads

FEWEST_ROWS = 2


@dataclass(frozen=True, repr=False, eq=False)
class PMSE:
    """How well a model tells generated rows from real ones by their propensity scores.

    Attributes
    ----------
    pMSE : float
        Mean squared distance of the scores to the share of generated rows; 0: cannot tell.
    expected : float
        The pMSE to expect if the generated rows were drawn from the distribution of the real ones; NaN for a tree
        without permutations.
    S_pMSE : float
        pMSE over expected. At best it is 1 if the rows were generated from `real` itself; 1 / (1 - c),
        which is 2 for equal sizes, if they are independent of it. With fixed columns it is so where the regression
        can express how the drawn columns depend on them, else below.
    SPECKS, PO50, U : float
        Kolmogorov-Smirnov distance of the scores, per cent predicted rightly over 50, Mann-Whitney count.
    size : int
        Coefficients beside the intercept, or leaves.
    scores : array
        The score of every row, generated rows first.
    settings : mapping
        model, max_order, fixed, n_real, n_generated, converged, n_permutations, ...
    drawn : int
        Coefficients that `expected` counts: all, less those of the fixed columns; the leaves of a tree.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(400).X[["age", "salary", "savings"]]
    >>> drawn = mcce.ChainModel(random_state=1).fit(X[:200]).sample(200)
    >>> told = mcce.diagnostics.pmse(X[200:], drawn)
    >>> told.pMSE < 0.01, told.size
    (True, 6)
    """

    pMSE: float
    expected: float
    S_pMSE: float
    SPECKS: float
    PO50: float
    U: float
    size: int
    scores: Floats
    settings: Mapping[str, Any] = field(default_factory=dict)
    drawn: int = 0

    def __repr__(self) -> str:
        size = f"{self.size} coefficients" if self.settings["model"] == "logit" else f"{self.size} leaves"
        standardised = "" if math.isnan(self.S_pMSE) else f", S_pMSE {self.S_pMSE:.3g}"
        n_real, n_generated = self.settings["n_real"], self.settings["n_generated"]
        return (
            f"PMSE({self.settings['model']}, {size}: pMSE {self.pMSE:.4g}{standardised}, SPECKS {self.SPECKS:.3g}, "
            f"PO50 {self.PO50:.3g}; {n_real:,} real and {n_generated:,} generated rows)"
        )


@one_native_thread()
@working("measuring pMSE", None)
def pmse(
    real: Data,
    generated: Data,
    *,
    fixed: Sequence[Hashable] = (),
    model: Literal["logit", "cart"] = "logit",
    max_order: int = 1,
    cp: float = 1e-3,
    min_leaf: int = 5,
    n_permutations: int = 50,
    kinds: Mapping[Any, Kind] | None = None,
    random_state: int | None = 0,
    n_jobs: int | None = None,
) -> PMSE:
    """Measure how well propensity scores tell generated rows from real ones.

    Parameters
    ----------
    real, generated : DataFrame or array
        Tables with the same columns, of any sizes; features only.
    fixed : list of column names
        Columns that `generated` copies from `real` (synthpop's `not.synthesised`): they take part in the scores, but
        not in what is expected.
    model : "logit" or "cart"
        A logistic regression, or a classification tree as rpart grows it.
    max_order : 0 or 1
        For the regression: the columns alone, or also their products two by two.
    cp, min_leaf : float, int
        For the tree: rpart's complexity parameter and rows in a leaf.
    n_permutations : int
        For the tree: permutations that estimate the expected pMSE; 0 for none, which leaves S_pMSE missing.
    kinds : dict or None
        Overrides of column kinds, as for `ChainModel`.
    random_state : int or None
        Seed of the permutations; nothing else is random.
    n_jobs : int or None
        Threads for the permutations; the result does not depend on it.

    Returns
    -------
    PMSE

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(1000).X
    >>> good, bad = (
    ...     mcce.ChainModel(sampler=sampler, random_state=1).fit(X).sample(1000) for sampler in ("cart", "marginal"))
    >>> bool(mcce.diagnostics.pmse(X, good).S_pMSE < 3 < mcce.diagnostics.pmse(X, bad).S_pMSE)
    True
    """
    if model not in ("logit", "cart"):
        raise InputError(f"model is {model!r}; allowed: 'logit', 'cart'.")
    if max_order not in (0, 1) or isinstance(max_order, bool):
        raise InputError(f"max_order is {max_order!r}; allowed: 0 (columns alone), 1 (and their products).")
    check_count(min_leaf, "min_leaf")
    check_count(n_permutations, "n_permutations", least=0)
    check_share(cp, "cp")
    pair = read_pair(real, generated, kinds, FEWEST_ROWS)
    n_real, n_generated = pair.real.shape[0], pair.generated.shape[0]
    share = n_generated / (n_real + n_generated)
    places, group = find_copied(pair, fixed)
    settings: dict[str, Any] = {"model": model, "fixed": list(fixed), "n_real": n_real, "n_generated": n_generated}
    if model == "logit":
        scores = logit_scores(pair, max_order, places)
        expected = scores.drawn * (1 - share) ** 2 * share / (n_real + n_generated)
        settings |= {"max_order": max_order, "converged": scores.converged}
    else:
        seed = resolve_seed(random_state)
        tree = TreeModel(pair, cp, min_leaf)
        scores = tree.grow()
        expected = _expected_by_permutation(tree, group if places else None, share, n_permutations, seed, n_jobs)
        settings |= {"cp": cp, "min_leaf": min_leaf, "n_permutations": n_permutations, "random_state": seed}
    return _measure(scores, expected, n_generated, settings)


def _expected_by_permutation(
    tree: TreeModel, group: Ints | None, share: float, n_permutations: int, seed: int, n_jobs: int | None
) -> float:
    """Return half the mean pMSE of trees for rows permuted, within groups if there are some (step 3)."""

    def grow(k: int) -> float:
        permuted = tree.grow(np.random.default_rng(derive_key(seed, "pmse", k)), group)
        return float(((permuted.values - share) ** 2).mean())

    values = run_in_threads(grow, list(range(n_permutations)), count_jobs(n_jobs), "permuting", None)
    return float(np.mean(list(values))) / 2 if n_permutations else math.nan


def _measure(scores: Scores, expected: float, n_generated: int, settings: dict[str, Any]) -> PMSE:
    """Return the measures of the scores (steps 2 and 4)."""
    values = scores.values
    share = n_generated / values.size
    error = float(((values - share) ** 2).mean())
    of_generated, of_real = values[:n_generated], values[n_generated:]
    right = (of_generated > 0.5).sum() + (of_real <= 0.5).sum()
    at = np.unique(values)
    steps = [np.searchsorted(np.sort(v), at, side="right") / v.size for v in (of_generated, of_real)]
    return PMSE(
        pMSE=error,
        expected=expected,
        S_pMSE=error / expected if expected > 0 else math.nan,
        SPECKS=float(np.abs(steps[0] - steps[1]).max()),
        PO50=float(100 * right / values.size - 50),
        U=count_above(of_generated, of_real),
        size=scores.size,
        scores=values,
        settings=settings,
        drawn=scores.drawn,
    )
