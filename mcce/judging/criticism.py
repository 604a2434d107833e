"""Criticism of a fitted chain on rows that it was not fitted on.

1. Each conditional is scored given the row's own values before it (`mcce.judging.scores`).
2. Calibration: the smooth test of its PITs.
3. Dependence: if the conditional is right, its PITs are uniform *given* all columns before it, also those that it does
   not use. For each of these columns, Q is an orthonormal basis of 2 polynomials of its ranks, or of its levels, and of
   missingness, all orthogonal to 1; phi_1, phi_2 are the first two Legendre polynomials of the PITs. Then
   |Q' phi_1|^2 + |Q' phi_2|^2 is asymptotically chi-squared with 2 m degrees of freedom for m columns of Q.
4. All p-values are adjusted together by Holm's method: if all conditionals are right, the probability that any test
   rejects is at most `level`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import chdtrc
from scipy.stats import binom
from sklearn.base import clone

from mcce._utils import Bools, Floats, check_number, one_native_thread
from mcce.exceptions import InputError, spell
from mcce.generators import ChainModel
from mcce.generators.base import check_decision
from mcce.generators.missing import WithMissing
from mcce.judging.scores import holm, legendre, score_rows, smooth_test
from mcce.rng import RowStreams, derive_key, resolve_seed
from mcce.samplers import ConditionalSampler, Margin, distribution_of
from mcce.table import Data, Feature

LEAST_ROWS = 20  # known values, for a chi-squared distribution
LEAST_COUNT = 5  # rows of a level with an indicator of its own
BINS = 10  # of the histograms


@dataclass(frozen=True, eq=False)
class Criticism:
    """The findings of `criticise`.

    Attributes
    ----------
    table : DataFrame
        A row for each mutable feature in visiting order: `sampler`, `n` (known values), `log_score`, `crps` (Brier
        score of unordered levels), `bias` (above 0: values tend to lie above their distribution), `spread` (above 0:
        they lie in its tails too often, so it is too narrow), `p_calibration`, `p_dependence` and `depends_on` (the
        column with the smallest p-value), `p_adjusted` (smallest of the feature's, adjusted for all tests) and
        `passes`. `bias` and `spread` are means of Legendre polynomials with standard deviation 1.
    dependence : DataFrame
        A row for each feature and column before it: `location` and `scale`, the correlations of the column with where
        the value lies in its distribution, and how far out, with `p` and `p_adjusted`.
    pit : DataFrame
        The PIT of each row and feature; NaN for missing values.
    level : float
        Level of all tests together.
    """

    table: pd.DataFrame
    dependence: pd.DataFrame
    pit: pd.DataFrame
    level: float

    def __repr__(self) -> str:
        failed = int((~self.table["passes"]).sum())
        head = f"{failed} of {len(self.table)} conditionals rejected at level {self.level:g}"
        shown = ["sampler", "crps", "bias", "spread", "p_calibration", "p_dependence", "depends_on", "passes"]
        return f"{head}\n{self.table[shown].round(3).to_string()}"

    def plot(self, n_columns: int = 4) -> npt.NDArray[Any]:
        """Draw the histogram of the PITs of each feature; return the axes.

        If a conditional is right, all bars of its panel lie in the band with a probability of at least 95 per cent.
        """
        import matplotlib.pyplot as plt

        n_columns = min(n_columns, self.pit.shape[1])
        n_rows = -(-self.pit.shape[1] // n_columns)
        size = (2.2 * n_columns, 1.9 * n_rows)
        figure, axes = plt.subplots(n_rows, n_columns, figsize=size, squeeze=False, sharex=True, layout="constrained")
        for ax, name, passes in zip(axes.flat, self.pit, self.table["passes"]):
            pits = self.pit[name].dropna().to_numpy()
            tail = 0.05 / BINS / 2
            low, high = (float(binom.ppf(q, pits.size, 1.0 / BINS)) for q in (tail, 1.0 - tail))
            counts, expected = np.histogram(pits, BINS, (0.0, 1.0))[0], max(pits.size, 1) / BINS
            edges = np.linspace(0.0, 1.0, BINS + 1)
            ax.bar(
                edges[:-1],
                counts / expected,
                1.0 / BINS,
                align="edge",
                color="0.75" if passes else "#c44e52",
                edgecolor="white",
            )
            ax.axhspan(low / expected, high / expected, color="#4c72b0", alpha=0.25, lw=0)
            ax.axhline(1.0, color="0.3", lw=0.8)
            ax.set_title(str(name), fontsize=9, loc="left")
            ax.tick_params(labelsize=8)
            ax.spines[["top", "right"]].set_visible(False)
        for ax in axes.flat[self.pit.shape[1] :]:
            ax.set_visible(False)
        figure.supxlabel("PIT: share of its distribution below the value", fontsize=9)
        return np.asarray(axes)


@one_native_thread()
def criticise(
    chain: ChainModel,
    X_new: Data,
    *,
    decision: bool | npt.ArrayLike = True,
    level: float = 0.05,
    random_state: int | None = 0,
) -> Criticism:
    """Test the conditionals of a chain on rows that it was not fitted on.

    Parameters
    ----------
    chain : fitted ChainModel
    X_new : DataFrame or array
        New rows, with the columns of the training table.
    decision : bool or array of bools
        Whether the rows have the wanted decision, for a chain that conditions on it.
    level : float
        Level of all tests together.
    random_state : int or None
        Seed of the random part of the PITs.

    Returns
    -------
    Criticism
        `table`, `dependence` and `pit`, and a picture by `plot()`.

    Notes
    -----
    The tests take the fit as the model: with many more new rows than training rows its estimation error is rejected,
    however right the family. `crps` and the picture show whether a finding matters.

    A better conditional does not give better answers, see `mcce.compare_conditionals`.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(2000).X[["age", "education", "salary"]]
    >>> chain = mcce.ChainModel(sampler="norm", fixed=["age", "education"], random_state=1).fit(X[:1500])
    >>> found = mcce.criticise(chain, X[1500:])
    >>> found.table.index.to_list(), found.table["passes"].to_list()
    (['salary'], [False])
    """
    if not isinstance(chain, ChainModel):
        raise InputError(f"chain is a {type(chain).__name__}; give a fitted ChainModel, whose conditionals are tested.")
    check_number(level, "level", 0, 1, above_low=True, below_high=True)
    chain.check_fitted()
    seed, schema = resolve_seed(random_state), chain.schema_
    matrix = schema.encode(X_new, "X_new").matrix
    if np.ndim(decision) == 0 and not isinstance(decision, (bool, np.bool_)):
        raise InputError(f"decision is {spell(decision)}; give True, False or one of them for each row of X_new.")
    decisions = check_decision(np.full(len(matrix), decision) if np.ndim(decision) == 0 else decision, len(matrix))
    assert decisions is not None
    tables = chain.conditional_tables(matrix, decisions)
    rows, dependence, pits = [], [], {}
    for place, (name, sampler) in enumerate(zip(chain.visit_sequence_, chain.samplers_), chain.n_fixed_):
        given, values = tables[name]
        feature, margin = schema.features[place], Margin.fit(chain.training_[:, place], schema.features[place])
        streams = RowStreams.from_seed(derive_key(seed, "criticise", place), values.size)
        scores = score_rows(distribution_of(sampler, given, feature), values, feature, margin, streams)
        pits[name] = scores["pit"].to_numpy()
        is_known = ~np.isnan(values)
        moments = legendre(pits[name][is_known], 2).mean(axis=0) if is_known.any() else np.full(2, np.nan)
        enough = int(is_known.sum()) >= LEAST_ROWS
        rows.append(
            {
                "sampler": _text(sampler),
                "n": int(is_known.sum()),
                "log_score": scores["log_score"].mean(),
                "crps": scores["crps"].mean(),
                "bias": moments[0],
                "spread": moments[1],
                "p_calibration": smooth_test(pits[name][is_known]) if enough else np.nan,
            }
        )
        before = [(other.name, other, matrix[:, j]) for j, other in enumerate(schema.features[:place])]
        if chain.conditions_on_decision_:
            label = "<decision>" if "decision" in schema.names else "decision"
            before.append((label, Feature.boolean(label), decisions.astype(np.float64)))
        for column, other, column_values in before if enough else []:
            tested = residual_dependence(
                pits[name][is_known], column_values[is_known], is_ordered=other.kind != "categorical"
            )
            dependence.append({"feature": name, "column": column, **tested})
    names = pd.Index(chain.visit_sequence_, name="feature", tupleize_cols=False)
    columns = ["feature", "column", "location", "scale", "p"]
    table, depends = pd.DataFrame(rows, index=names), pd.DataFrame(dependence, columns=columns)
    frame = pd.DataFrame(dict(enumerate(pits.values())), index=getattr(X_new, "index", None))
    frame.columns = pd.Index([*pits], tupleize_cols=False)
    return Criticism(*_adjust(table, depends, level), frame, level)


def _text(sampler: ConditionalSampler) -> str:
    """Return the sampler as it was given to the chain."""
    family = clone(sampler.family if isinstance(sampler, WithMissing) else sampler)
    if "random_state" in family.get_params(deep=False):
        family.set_params(random_state=None)
    return " ".join(str(family).split())


def _adjust(table: pd.DataFrame, depends: pd.DataFrame, level: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Adjust all p-values together, and add the worst dependence and the verdict to the table (step 4)."""
    adjusted = holm(np.concatenate([table["p_calibration"], depends["p"]]).astype(np.float64))
    depends = depends.assign(p_adjusted=adjusted[len(table) :])
    tested = depends.dropna(subset="p")
    worst = tested.loc[tested.groupby("feature", sort=False)["p"].idxmin()].set_index("feature").reindex(table.index)
    table = table.assign(
        p_dependence=worst["p"].astype(np.float64),
        depends_on=worst["column"],
        p_adjusted=np.fmin(adjusted[: len(table)], worst["p_adjusted"].astype(np.float64)),
    )
    return table.assign(passes=~(table["p_adjusted"] <= level)), depends


def residual_dependence(pits: Floats, values: Floats, *, is_ordered: bool) -> dict[str, float]:
    """Test whether PITs depend on a column (step 3); the p-value of a constant column is NaN."""
    basis = _basis(values, is_ordered)
    if not basis.shape[1]:
        return {"location": 0.0, "scale": 0.0, "p": np.nan}
    along = basis.T @ legendre(pits, 2)
    squares = (along**2).sum(axis=0)
    location, scale = np.sqrt(squares / pits.size)
    return {"location": location, "scale": scale, "p": float(chdtrc(2.0 * basis.shape[1], squares.sum()))}


def _basis(values: Floats, is_ordered: bool) -> Floats:
    """Return orthonormal columns, orthogonal to 1, that describe a column."""
    is_missing = np.isnan(values)
    columns = [is_missing.astype(np.float64)]
    if is_ordered:
        ranks = pd.Series(values).rank(pct=True).to_numpy()
        columns += list(np.where(is_missing[:, None], 0.0, legendre(np.nan_to_num(ranks), 2)).T)
    else:
        levels, counts = np.unique(values[~is_missing], return_counts=True)
        columns += [(values == level).astype(np.float64) for level in levels[counts >= LEAST_COUNT]]
    design = np.column_stack(columns)
    vectors, sizes, _ = np.linalg.svd(design - design.mean(axis=0), full_matrices=False)
    is_kept: Bools = sizes > 1e-8 * np.sqrt(len(values))
    return np.asarray(vectors[:, is_kept])
