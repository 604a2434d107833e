"""Tests of whether two samplers without a common seed draw from the same distribution.

1. Fit a chain with each sampler on the same rows, and draw the same number of rows from each, by independent streams.
2. Every drawn feature: Kolmogorov-Smirnov's distance for numbers and ordered levels, with the p-value of a permutation
   of the rows (which allows for ties and missing values; Phipson and Smyth 2010), chi-square for levels (those expected
   fewer than five times are pooled).
3. All features together: the largest difference between the two correlation matrices (ranks of numbers, indicators of
   levels), with the p-value of a permutation of the rows; and a classifier trained on one half of the rows to
   distinguish the samplers (`mcce.diagnostics.discriminator`), with a binomial p-value of its accuracy on the other
   half (Lopez-Paz and Oquab 2017).
4. Correct all p-values for multiple testing by Holm's method: equal samplers are called different in at most a share
   `level` of comparisons.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Floats
from mcce.base.checks import check_count
from mcce.diagnostics import Correlations, Discriminator, compare_correlations, discriminator, marginal_distances
from mcce.diagnostics.pairs import TablePair, read_pair
from mcce.exceptions import InputError, listing
from mcce.generators.chain import ChainModel
from mcce.generators.layout import Predictors, Samplers
from mcce.generators.visit import VisitSequence
from mcce.judging.feature import holm
from mcce.rng import derive_key, resolve_seed
from mcce.table import Data, Kind, as_frame
from r_bridge.report import as_html, as_text
from r_bridge.two_samples import chi_square, permuted_ks

JOINT = "all features"
COMMON_LEVEL = 0.05  # least share of rows of a level in the correlations


@dataclass(frozen=True, repr=False, eq=False)
class SamplerComparison:
    """The outcome of tests of whether two samplers draw from the same distribution.

    Attributes
    ----------
    table : DataFrame
        A row for each drawn feature and two for all together: feature, kind, test, statistic, p_value, p_adjusted
        (Holm), verdict ("same" or "different").
    marginals : DataFrame
        Distances between the two samples, feature by feature, see `mcce.diagnostics.marginal_distances`.
    correlations : Correlations
        Their correlation matrices: "real" is the first sampler, "generated" the second.
    discriminator : Discriminator
        How well a forest distinguishes the samplers: an accuracy of 0.5 is chance.
    names : pair of str
        The samplers.
    rows : pair of DataFrame
        The drawn rows.
    level : float
        The share of comparisons in which samplers that are the same may be called different.
    random_state : int
        The seed.
    """

    table: pd.DataFrame
    marginals: pd.DataFrame
    correlations: Correlations
    discriminator: Discriminator
    names: tuple[str, str]
    rows: tuple[pd.DataFrame, pd.DataFrame]
    level: float
    random_state: int

    @property
    def same(self) -> bool:
        """Whether no test distinguishes the samplers."""
        return bool((self.table["verdict"] == "same").all())

    @property
    def different(self) -> list[Any]:
        """The features with different distributions; "all features" for a difference between several together."""
        return list(dict.fromkeys(self.table.loc[self.table["verdict"] == "different", "feature"]))

    def _headline(self) -> list[str]:
        what = "no difference found" if self.same else f"different in {listing(self.different)}"
        return [
            f"{self.names[0]} and {self.names[1]}: {what} ({len(self.rows[0]):,} rows of each, "
            f"level {self.level:g} after Holm's correction for {len(self.table)} tests)."
        ]

    def _notes(self) -> list[str]:
        pairs = self.correlations.pairs
        lines = [f"A forest distinguishes the samplers with accuracy {self.discriminator.accuracy:.3f} (0.5: chance)."]
        if len(pairs):
            first = pairs.iloc[0]
            lines.append(
                f"Largest difference of two correlations: {first['feature']} with {first['other']}, "
                f"{first['real']:.2f} and {first['generated']:.2f}."
            )
        return lines

    def __repr__(self) -> str:
        return as_text(self._headline(), self.table, self._notes())

    def _repr_html_(self) -> str:
        return as_html(self._headline(), self.table, self._notes(), list(self.table["verdict"] == "different"))


def compare_samplers(
    sampler_a: Samplers | pd.DataFrame,
    sampler_b: Samplers | pd.DataFrame,
    X: Data,
    *,
    fixed: Sequence[Hashable] = (),
    visit_sequence: VisitSequence = "data",
    predictors: Predictors | None = None,
    kinds: Mapping[Any, Kind] | None = None,
    n_samples: int = 2000,
    level: float = 0.05,
    n_permutations: int = 999,
    n_trees: int = 100,
    random_state: int | None = None,
    n_jobs: int | None = None,
) -> SamplerComparison:
    """Compare the draws of two samplers fitted to the same rows.

    Parameters
    ----------
    sampler_a, sampler_b : name, ConditionalSampler, dict of them by feature, or DataFrame
        As for `ChainModel`. A DataFrame holds rows drawn by another program that was fitted to `X`; the rows must be
        independent of each other and of the other sample.
    X : DataFrame or array
        Rows to fit both on.
    fixed, visit_sequence, predictors, kinds, n_jobs
        Of both chains, see `ChainModel`. Fixed features are drawn by a bootstrap of `X` and not tested separately.
    n_samples : int
        Rows to draw from each.
    level : float
        The share of comparisons in which samplers that are the same may be called different.
    n_permutations : int
        Number of permutations; increased if the number of tests requires it.
    n_trees : int
        Trees of the classifier.
    random_state : int or None
        Seed; None draws a fresh one.

    Returns
    -------
    SamplerComparison

    Examples
    --------
    >>> import mcce, r_bridge
    >>> X = mcce.datasets.load_loans(400).X[["age", "salary", "housing"]]
    >>> r_bridge.compare_samplers("cart", mcce.CartSampler(min_leaf=5), X, n_samples=300, random_state=1).same
    True
    >>> r_bridge.compare_samplers("cart", "marginal", X, n_samples=1000, random_state=1).different
    ['all features']
    """
    check_count(n_samples, "n_samples", least=20)
    check_count(n_permutations, "n_permutations")
    if not isinstance(level, float) or not 0 < level < 1:
        raise InputError(f"level is {level!r}; give a share between 0 and 1, such as 0.05.")
    seed = resolve_seed(random_state)
    frame, _ = as_frame(X)
    settings: dict[str, Any] = {
        "fixed": fixed,
        "visit_sequence": visit_sequence,
        "predictors": predictors,
        "kinds": kinds,
        "n_jobs": n_jobs,
    }
    rows_a, rows_b = rows = (
        _rows(sampler_a, "sampler_a", frame, n_samples, derive_key(seed, "sampler_a") >> 1, settings),
        _rows(sampler_b, "sampler_b", frame, n_samples, derive_key(seed, "sampler_b") >> 1, settings),
    )
    pair = read_pair(rows_a, rows_b, kinds)
    rng = np.random.default_rng(derive_key(seed, "permutations"))
    n_tests = len(pair.features) - len(set(fixed)) + 2
    n_permutations = max(n_permutations, int(np.ceil(2 * n_tests / level)))
    forest = discriminator(
        *rows, n_seeds=1, test_size=0.5, max_rows=None, n_trees=n_trees, kinds=kinds, random_state=seed, n_jobs=n_jobs
    )
    tests = [_test_feature(pair, j, n_permutations, rng) for j, name in enumerate(pair.names) if name not in set(fixed)]
    tests += [_test_correlations(pair, n_permutations, rng), _test_classifier(forest)]
    table = pd.DataFrame(tests, columns=["feature", "kind", "test", "statistic", "p_value"])
    table["p_adjusted"] = holm(table["p_value"].to_numpy())
    table["verdict"] = np.where(table["p_adjusted"] <= level, "different", "same")
    return SamplerComparison(
        table=table,
        marginals=marginal_distances(*rows, kinds=kinds),
        correlations=compare_correlations(*rows, kinds=kinds),
        discriminator=forest,
        names=(_name(sampler_a), _name(sampler_b)),
        rows=rows,
        level=level,
        random_state=seed,
    )


def _rows(sampler: Any, which: str, X: pd.DataFrame, n: int, seed: int, settings: dict[str, Any]) -> pd.DataFrame:
    """Return the rows of one sampler (step 1)."""
    if isinstance(sampler, pd.DataFrame):
        if len(sampler) < n:
            raise InputError(
                f"{which} has {len(sampler)} rows, fewer than n_samples={n}; give more, or lower n_samples."
            )
        return sampler.iloc[:n]
    return ChainModel(sampler=sampler, random_state=seed, **settings).fit(X).sample(n)


def _name(sampler: Any) -> str:
    if isinstance(sampler, pd.DataFrame):
        return "the rows given"
    if isinstance(sampler, Mapping):
        return "{" + ", ".join(f"{k}: {_name(v)}" for k, v in sampler.items()) + "}"
    return sampler if isinstance(sampler, str) else repr(sampler)


def _test_feature(pair: TablePair, j: int, n_permutations: int, rng: np.random.Generator) -> list[Any]:
    """Test one feature (step 2): its name, kind, test, statistic and p-value."""
    feature, a, b = pair.features[j], pair.real[:, j], pair.generated[:, j]
    if feature.kind == "categorical":
        return [feature.name, feature.kind, "chi-square", *chi_square(a, b)]
    return [feature.name, feature.kind, "Kolmogorov-Smirnov", *permuted_ks(a, b, n_permutations, rng)]


def _test_correlations(pair: TablePair, n_permutations: int, rng: np.random.Generator) -> list[Any]:
    """Test the correlations of all features together (step 3)."""
    columns, owner = _columns(pair)
    apart = owner[:, None] != owner[None, :]
    n_a = pair.real.shape[0]
    if not apart.any():
        return [JOINT, None, "correlations", 0.0, 1.0]
    whole_sums, whole_products = columns.sum(axis=0), columns.T @ columns

    def difference(rows: npt.NDArray[np.intp]) -> float:
        part = columns[rows]
        sums, products = part.sum(axis=0), part.T @ part
        one = _correlate(sums, products, n_a)
        two = _correlate(whole_sums - sums, whole_products - products, len(columns) - n_a)
        return float(np.abs(one - two)[apart].max())

    observed = difference(np.arange(n_a))
    permuted = [difference(rng.permutation(len(columns))[:n_a]) for _ in range(n_permutations)]
    p_value = (1 + int((np.array(permuted) >= observed - 1e-12).sum())) / (1 + n_permutations)
    return [JOINT, None, "correlations", observed, p_value]


def _columns(pair: TablePair) -> tuple[Floats, npt.NDArray[np.intp]]:
    """Return both samples as ranks of numbers and indicators of common levels, and the feature of each column."""
    columns: list[Floats] = []
    owner: list[int] = []
    for j, feature in enumerate(pair.features):
        values = np.concatenate([pair.real[:, j], pair.generated[:, j]])
        if feature.kind == "categorical":
            found, counts = np.unique(values[~np.isnan(values)], return_counts=True)
            common = found[(counts >= COMMON_LEVEL * values.size) & (counts < values.size)]
            made = [
                (values == level).astype(np.float64) for level in common[: max(len(common) - (len(common) == 2), 0)]
            ]
        else:
            made = [pd.Series(values).rank(pct=True).fillna(0.5).to_numpy()]
        columns += [column - column.mean() for column in made]
        owner += [j] * len(made)
    matrix = np.column_stack(columns) if columns else np.empty((len(pair.real) + len(pair.generated), 0))
    return matrix, np.array(owner, dtype=np.intp)


def _correlate(sums: Floats, products: Floats, n: int) -> Floats:
    covariance = products / n - np.outer(sums, sums) / n**2
    scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale[scale < 1e-9] = np.inf  # a constant column has correlation 0
    correlation: Floats = covariance / np.outer(scale, scale)
    return correlation


def _test_classifier(forest: Discriminator) -> list[Any]:
    """Test whether the classifier is more accurate than chance (step 3)."""
    from scipy.stats import binom

    trials = 2 * int(forest.settings["n_test"])
    hits = round(forest.accuracy * trials)
    return [JOINT, None, "classifier", forest.accuracy, float(binom.sf(hits - 1, trials, 0.5))]
