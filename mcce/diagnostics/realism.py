"""Whether generated rows look like real ones: the paper's Experiment 3, and copies of training rows (its appendix).

- `discriminator`: the accuracy of a random forest that distinguishes generated from real rows, held out (Borisov et al.
  2023, "Language models are realistic tabular data generators").
- `marginal_distances`: the distributions of each column.
- `correlations`, `compare_correlations`: two numbers or ordered levels have Spearman's or Pearson's correlation, a
  number and an unordered column the correlation ratio of the ranks, two unordered columns Cramer's V; the last two are
  corrected for the number of levels as in `mcce.generators.visit`.
- `copies`: which rows are equal to a training row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd

from mcce._utils import Floats, check_count, check_number, map_threads
from mcce.diagnostics.pairs import TablePair, read_pair
from mcce.diagnostics.utility import largest_gap
from mcce.exceptions import InputError, spell
from mcce.generators.visit import association_matrix
from mcce.rng import derive_key, hash_rows, resolve_seed
from mcce.table import Data, Feature, Kind, Schema, Table

FEWEST_ROWS = 10  # of each table, for training and test


def discriminator(
    real: Data,
    generated: Data,
    *,
    n_trials: int = 5,
    test_size: float = 0.3,
    n_trees: int = 100,
    paired: bool = False,
    kinds: Mapping[Any, Kind] | None = None,
    random_state: int | None = 0,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """Measure how well a random forest distinguishes generated from real rows, out of sample.

    Parameters
    ----------
    real, generated : DataFrame or array
        Tables with the same columns, in any order. Give real rows that the generator was **not** fitted on; see Notes.
    n_trials : int
        Repetitions, each with new rows, split and forest.
    test_size : float
        Share of the rows held out.
    n_trees : int
        Trees of the forest; other settings are scikit-learn's. The paper does not state its settings.
    paired : bool
        Whether row i of `generated` was drawn given the fixed values of row i of `real`. Both are then on the same side
        of the split: otherwise the forest would recognise the fixed values, seen under the other label.
    kinds : dict, optional
        Kinds of columns, as for `ChainModel`.
    random_state : int or None
        Seed; None draws one.
    n_jobs : int, optional
        Threads; the result does not depend on them.

    Returns
    -------
    DataFrame
        A row for each trial: `accuracy` (0.5: cannot be distinguished), `n_train` and `n_test` rows.

    Notes
    -----
    Equally many rows of both tables enter as ranks among all rows: unordered levels by frequency, missing values below
    all others. Accuracy increases with the number of rows, so compare generators at equal sizes.

    An accuracy below 0.5 beyond chance means that `generated` was fitted on `real` and is nearer to single real rows
    than real rows are to each other. It is not better than 0.5, and hides other faults.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(2000).X
    >>> seen, new = X.iloc[:1000], X.iloc[1000:]
    >>> def accuracy(sampler):
    ...     chain = mcce.ChainModel(sampler=sampler, random_state=1).fit(seen)
    ...     return mcce.diagnostics.discriminator(new, chain.sample(1000), n_trees=50)["accuracy"].mean()
    >>> bool(accuracy("cart") < accuracy("marginal"))
    True
    """
    check_count(n_trials, "n_trials")
    check_count(n_trees, "n_trees")
    check_number(test_size, "test_size", 0, 1, above_low=True, below_high=True)
    seed = resolve_seed(random_state)
    pair = read_pair(real, generated, kinds, FEWEST_ROWS)
    ranked, n_real = _ranks(pair), pair.real.n_rows
    n_generated = pair.generated.n_rows
    if paired and n_real != n_generated:
        raise InputError(
            f"paired=True, but real has {n_real} rows and generated {n_generated}; give one generated row for each "
            "real one, in the same order."
        )
    n_rows = min(n_real, n_generated)
    n_test = min(max(round(test_size * n_rows), 1), n_rows - 1)

    def accuracy(trial: int) -> float:
        from sklearn.ensemble import RandomForestClassifier

        rng = np.random.default_rng(derive_key(seed, "discriminator", trial))
        of_real = rng.permutation(n_real)[:n_rows]
        of_generated = n_real + (of_real if paired else rng.permutation(n_generated)[:n_rows])
        train, test = np.r_[of_real[n_test:], of_generated[n_test:]], np.r_[of_real[:n_test], of_generated[:n_test]]
        forest = RandomForestClassifier(n_trees, random_state=int(rng.integers(2**31)), n_jobs=1)
        forest.fit(ranked[train], train < n_real)
        return float(forest.score(ranked[test], test < n_real))

    accuracies = map_threads(accuracy, range(n_trials), n_jobs, "training discriminators")
    index = pd.RangeIndex(1, n_trials + 1, name="trial")
    return pd.DataFrame({"accuracy": accuracies, "n_train": 2 * (n_rows - n_test), "n_test": 2 * n_test}, index=index)


def _ranks(pair: TablePair) -> Floats:
    """Return all rows, real rows first, as ranks of the distinct values of each column; missing is 0."""
    ranked = np.zeros((pair.real.n_rows + pair.generated.n_rows, len(pair.features)))
    for j, (feature, *values) in enumerate(pair.columns()):
        column = pd.Series(np.concatenate(values))
        if feature.kind == "categorical":  # neither the names of levels nor their order are information
            column = column.map(column.value_counts()) + column / (feature.n_levels + 1)
        ranked[:, j] = column.rank(method="dense").fillna(0.0)
    return ranked


# ---------------------------------------------------------------------------------------------------------------------


def marginal_distances(real: Data, generated: Data, *, kinds: Mapping[Any, Kind] | None = None) -> pd.DataFrame:
    """Compare the distributions of each column.

    Parameters
    ----------
    real, generated : DataFrame or array
        Tables with the same columns, of any sizes.
    kinds : dict, optional
        Kinds of columns, as for `ChainModel`.

    Returns
    -------
    DataFrame
        Indexed by feature: `kind`; `distance`, the largest difference in probability: Kolmogorov and Smirnov's for
        numbers without missing values, total variation for levels, missing being one of them; `wasserstein` in standard
        deviations of the real numbers, `hellinger` for levels; the shares `missing_real` and `missing_generated`.

    Examples
    --------
    >>> import pandas as pd, mcce
    >>> real = pd.DataFrame({"age": [20, 30, 40, 50], "job": ["clerk", "clerk", "pilot", "pilot"]})
    >>> generated = pd.DataFrame({"age": [20, 30, 40, 40], "job": ["clerk", "pilot", "pilot", "pilot"]})
    >>> mcce.diagnostics.marginal_distances(real, generated)["distance"].to_dict()
    {'age': 0.25, 'job': 0.25}
    """
    pair = read_pair(real, generated, kinds)
    rows = [_compare_column(*column) for column in pair.columns()]
    return pd.DataFrame(rows, index=pd.Index(pair.names, name="feature", tupleize_cols=False))


def _compare_column(feature: Feature, real: Floats, generated: Floats) -> dict[str, Any]:
    p, q = (values[~np.isnan(values)] for values in (real, generated))
    wasserstein = hellinger = np.nan
    if feature.is_numeric:
        distance, wasserstein = largest_gap(p, q), _wasserstein(p, q)
    else:
        codes = (np.where(np.isnan(values), feature.n_levels, values).astype(int) for values in (real, generated))
        a, b = (np.bincount(code, minlength=feature.n_levels + 1) / code.size for code in codes)
        distance = float(np.abs(a - b).sum() / 2)
        hellinger = float(np.sqrt(((np.sqrt(a) - np.sqrt(b)) ** 2).sum() / 2))
    return {
        "kind": feature.kind,
        "distance": distance,
        "wasserstein": wasserstein,
        "hellinger": hellinger,
        "missing_real": float(np.isnan(real).mean()),
        "missing_generated": float(np.isnan(generated).mean()),
    }


def _wasserstein(p: Floats, q: Floats) -> float:
    if not (p.size and q.size):
        return 0.0 if p.size == q.size else np.nan
    from scipy.stats import wasserstein_distance

    area, spread = float(wasserstein_distance(p, q)), float(p.std())
    return area / spread if spread > 0 else 0.0 if area == 0 else np.inf


# ---------------------------------------------------------------------------------------------------------------------

Method = Literal["spearman", "pearson"]


def correlations(X: Data, *, method: Method = "spearman", kinds: Mapping[Any, Kind] | None = None) -> pd.DataFrame:
    """Return the correlation of every two columns, as a matrix.

    Parameters
    ----------
    X : DataFrame or array
    method : {"spearman", "pearson"}
        The correlation of two numbers or ordered levels, over rows without missing values.
    kinds : dict, optional
        Kinds of columns, as for `ChainModel`.

    Examples
    --------
    >>> import pandas as pd, mcce
    >>> X = pd.DataFrame({"age": [20, 30, 40, 50], "debt": [4, 3, 2, 1], "job": ["a", "a", "b", "b"]})
    >>> mcce.diagnostics.correlations(X).round(2).loc["age"].to_dict()
    {'age': 1.0, 'debt': -1.0, 'job': 0.84}
    """
    return _correlate(Schema.from_data(X, kinds).encode(X), method)


def compare_correlations(
    real: Data, generated: Data, *, method: Method = "spearman", kinds: Mapping[Any, Kind] | None = None
) -> pd.DataFrame:
    """Compare the correlations of two tables.

    Parameters
    ----------
    real, generated : DataFrame or array
        Tables with the same columns, of any sizes.
    method, kinds : as for `correlations`.

    Returns
    -------
    DataFrame
        A row for each two columns: `feature`, `other`, `real`, `generated` and `difference` (generated minus real), the
        largest absolute difference first.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans().X
    >>> compared = mcce.diagnostics.compare_correlations(X, mcce.ChainModel(random_state=1).fit(X).sample(len(X)))
    >>> bool(compared["difference"].abs().mean() < 0.05)
    True
    """
    pair = read_pair(real, generated, kinds)
    a, b = (_correlate(table, method).to_numpy() for table in (pair.real, pair.generated))
    i, j = np.triu_indices(len(a), 1)
    names = pd.Index(pair.names, tupleize_cols=False)
    columns = {"feature": names[i], "other": names[j], "real": a[i, j], "generated": b[i, j]}
    table = pd.DataFrame(columns).assign(difference=(b - a)[i, j])
    order = np.argsort(-table["difference"].abs().to_numpy(), kind="stable")
    return table.iloc[order].reset_index(drop=True)


def _correlate(table: Table, method: Method) -> pd.DataFrame:
    if method not in ("spearman", "pearson"):
        raise InputError(f"method is {spell(method)}; allowed: 'spearman', 'pearson'.")
    has_order = np.array([feature.kind != "categorical" for feature in table.features])
    values = np.eye(has_order.size) if has_order.all() else association_matrix(table).to_numpy().copy()
    numbers = pd.DataFrame(table.matrix[:, has_order]).corr(method, min_periods=2).fillna(0.0)  # 0: a constant column
    values[np.ix_(has_order, has_order)] = numbers
    np.fill_diagonal(values, 1.0)
    names = pd.Index(table.names, tupleize_cols=False)
    return pd.DataFrame(values, index=names, columns=names)


# ---------------------------------------------------------------------------------------------------------------------


def copies(rows: Data, training: Data, *, kinds: Mapping[Any, Kind] | None = None) -> pd.Series[bool]:
    """Return for each row whether it is equal to a training row; missing is equal to missing.

    Parameters
    ----------
    rows : DataFrame or array
        Generated rows, or the `frame` of counterfactuals.
    training : DataFrame or array
    kinds : dict, optional
        Kinds of columns, as for `ChainModel`.

    Examples
    --------
    >>> import pandas as pd, mcce
    >>> training = pd.DataFrame({"age": [20, 30], "job": ["clerk", "pilot"]})
    >>> rows = pd.DataFrame({"age": [20, 20], "job": ["clerk", "pilot"]})
    >>> mcce.diagnostics.copies(rows, training).to_list()
    [True, False]
    """
    pair = read_pair(training, rows, kinds, names=("training", "rows"))
    training_hashes, hashes = (hash_rows(table.matrix) for table in (pair.real, pair.generated))
    return pd.Series(np.isin(hashes, training_hashes), index=getattr(rows, "index", None), name="copy")
