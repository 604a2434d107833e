"""The accuracy of a classifier that distinguishes generated from real rows.

The discriminator of the paper's Experiment 3 (Borisov et al. 2023, "Language models are realistic tabular data
generators"): the accuracy of a random forest on held-out rows, equally many real and generated, as ranks, averaged
over repetitions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mcce.base.checks import check_count
from mcce.base.progress import working
from mcce.base.threads import count_jobs, one_native_thread, run_in_threads
from mcce.diagnostics.pairs import read_pair
from mcce.exceptions import InputError
from mcce.rng import derive_key, resolve_seed
from mcce.table import Data, Kind
from mcce.wording import Value

Ranks = npt.NDArray[np.float32]

FEWEST_ROWS = 10


@dataclass(frozen=True, repr=False)
class Discriminator:
    """The accuracy in distinguishing real from generated rows: 0.5 for chance, 1 for perfect.

    Attributes
    ----------
    accuracy : float
        Mean over the seeds, also as ``float(d)``.
    sd : float
        Standard deviation over the seeds (NaN for one seed). The seeds share the data, so this measures the
        variation of splits and forests, not of the rows.
    accuracies : tuple of float
        One for each seed.
    settings : mapping
        The settings: n_rows (of each table), n_test (of each table), n_seeds, test_size, n_trees,
        min_leaf, max_rows, paired, random_state.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(400).X[["age", "salary", "savings"]]
    >>> drawn = mcce.ChainModel(random_state=1).fit(X[:200]).sample(200)
    >>> found = mcce.diagnostics.discriminator(X[200:], drawn, n_seeds=2, n_trees=20)
    >>> found.accuracy < 0.75
    True
    """

    accuracy: float
    sd: float
    accuracies: tuple[float, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __float__(self) -> float:
        return self.accuracy

    def __repr__(self) -> str:
        n_seeds = len(self.accuracies)
        spread = f", sd {self.sd:.3f} over {n_seeds} seeds" if n_seeds > 1 else ", one seed"
        n_rows, n_test = self.settings["n_rows"], self.settings["n_test"]
        return (
            f"Discriminator(accuracy {self.accuracy:.3f}{spread}; {n_rows:,} real and {n_rows:,} generated rows, "
            f"{n_test:,} of each for the test; 0.5: cannot be distinguished)"
        )


@one_native_thread()
@working("training discriminators", None)
def discriminator(
    real: Data,
    generated: Data,
    *,
    n_seeds: int = 5,
    test_size: float = 0.3,
    n_trees: int = 100,
    min_leaf: int = 1,
    max_rows: int | None = None,
    paired: bool = False,
    kinds: Mapping[Any, Kind] | None = None,
    random_state: int | None = 0,
    n_jobs: int | None = None,
) -> Discriminator:
    """Measure how well a random forest distinguishes generated from real rows, out of sample.

    Parameters
    ----------
    real, generated : DataFrame or two-dimensional array
        Tables of features with the same columns, in any order. Give real rows that the generator was **not** fitted
        on; see Notes.
    n_seeds : int
        The number of repetitions, each with new rows, split and forest.
    test_size : float
        Share of the rows held out for the test.
    n_trees, min_leaf : int
        Number of trees and rows in a leaf. Other settings are the defaults of scikit-learn: bootstrap samples, the
        square root of the number of columns in each split, unlimited depth. The paper does not state its settings.
    max_rows : int or None
        The largest number of rows of each table; by default that of the smaller table.
    paired : bool
        Whether row i of `generated` was drawn given the fixed values of row i of `real`. Both are then on the same
        side of the split. Otherwise the forest would recognise the fixed values, seen under the other label.
    kinds : dict or None
        Overrides of column kinds, as for `ChainModel`.
    random_state : int or None
        Seed; None draws one.
    n_jobs : int or None
        Threads, as in `ChainModel`. The result does not depend on it.

    Returns
    -------
    Discriminator

    Notes
    -----
    Columns are converted to ranks in both tables together, since a forest uses only their order: numbers, dates and
    ordered levels by their order, unordered levels by frequency (so that names and order matter only for ties), and
    missing values below all others. Levels and numbers in one table only are allowed.

    An accuracy below 0.5, beyond chance, means that the generator was fitted on `real` and generated rows are nearer to
    single real rows than real rows are to each other: a forest trained on the original classifies its copy as real. A
    bootstrap of `real` is the extreme case. Such a result is not better than 0.5, and hides other faults; compare with
    rows that the generator was not fitted on.

    Accuracy increases with the number of rows: compare generators at equal sizes.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(2000).X
    >>> seen, new = X.iloc[:1000], X.iloc[1000:]
    >>> def judge(sampler):
    ...     chain = mcce.ChainModel(sampler=sampler, fixed=["age", "sex"], random_state=1).fit(seen)
    ...     generated = chain.sample(given=new[["age", "sex"]])
    ...     return mcce.diagnostics.discriminator(new, generated, paired=True, n_trees=50)
    >>> judge("cart").accuracy < judge("marginal").accuracy
    True
    """
    left, right = _as_ranks(real, generated, kinds)
    n_rows = _count_rows(len(left), len(right), max_rows, paired)
    n_test = _count_test_rows(n_rows, test_size)
    for name, value in (("n_seeds", n_seeds), ("n_trees", n_trees), ("min_leaf", min_leaf)):
        check_count(value, name)
    seed = resolve_seed(random_state)

    def accuracy(k: int) -> float:
        return _accuracy(left, right, n_rows, n_test, paired, n_trees, min_leaf, derive_key(seed, "discriminator", k))

    threads = count_jobs(n_jobs)
    accuracies = tuple(run_in_threads(accuracy, list(range(n_seeds)), threads, "discriminating", None))
    settings = {
        "n_rows": n_rows,
        "n_test": n_test,
        "n_seeds": n_seeds,
        "test_size": test_size,
        "n_trees": n_trees,
        "min_leaf": min_leaf,
        "max_rows": max_rows,
        "paired": paired,
        "random_state": seed,
    }
    sd = float(np.std(accuracies, ddof=1)) if n_seeds > 1 else math.nan
    return Discriminator(float(np.mean(accuracies)), sd, accuracies, settings)


def _accuracy(
    real: Ranks, generated: Ranks, n_rows: int, n_test: int, paired: bool, n_trees: int, min_leaf: int, key: int
) -> float:
    """Split, train and test once."""
    from sklearn.ensemble import RandomForestClassifier

    rng = np.random.default_rng(key)
    of_real = rng.permutation(len(real))[:n_rows]
    of_generated = of_real if paired else rng.permutation(len(generated))[:n_rows]
    train = np.concatenate([real[of_real[n_test:]], generated[of_generated[n_test:]]])
    test = np.concatenate([real[of_real[:n_test]], generated[of_generated[:n_test]]])
    forest = RandomForestClassifier(
        n_trees, min_samples_leaf=min_leaf, random_state=int(rng.integers(2**31)), n_jobs=1
    ).fit(train, np.repeat([1, 0], n_rows - n_test))
    predicted = forest.predict_proba(test)[:, 1] >= 0.5
    return float(np.mean(predicted == np.repeat([True, False], n_test)))


def _as_ranks(real: Data, generated: Data, kinds: Mapping[Any, Kind] | None) -> tuple[Ranks, Ranks]:
    """Return both tables as ranks of the joint values; missing is 0."""
    pair = read_pair(real, generated, kinds, FEWEST_ROWS)
    n_real = pair.real.shape[0]
    ranks = np.empty((n_real + pair.generated.shape[0], len(pair.features)), dtype=np.float32, order="F")
    for j, feature in enumerate(pair.features):
        both = np.concatenate([pair.real[:, j], pair.generated[:, j]])
        ranks[:, j] = _rank(both, by_frequency=feature.kind == "categorical")
    return ranks[:n_real], ranks[n_real:]


def _rank(values: npt.NDArray[np.float64], *, by_frequency: bool) -> npt.NDArray[np.float64]:
    distinct, place, counts = np.unique(values, return_inverse=True, return_counts=True, equal_nan=True)
    order = np.argsort(counts, kind="stable") if by_frequency else np.arange(distinct.size)
    rank = np.empty(distinct.size)
    rank[order] = np.arange(1, distinct.size + 1)
    rank[np.isnan(distinct)] = 0
    return rank[place]


def _count_rows(n_real: int, n_generated: int, max_rows: int | None, paired: bool) -> int:
    if paired and n_real != n_generated:
        raise InputError(
            f"paired=True, but real has {n_real} rows and generated {n_generated}; it needs one generated row for each "
            "real one, in the same order."
        )
    if max_rows is None:
        return min(n_real, n_generated)
    most = check_count(max_rows, "max_rows", least=FEWEST_ROWS, or_else=(", or ", Value(None), " for all"))
    return min(n_real, n_generated, most)


def _count_test_rows(n_rows: int, test_size: float) -> int:
    """Return the number of test rows of each table: at least one, with at least one row for training."""
    if not isinstance(test_size, (float, np.floating)) or not 0 < test_size < 1:
        raise InputError(f"test_size is {test_size!r}; give the share of the rows to test on, between 0 and 1.")
    return min(max(round(test_size * n_rows), 1), n_rows - 1)
