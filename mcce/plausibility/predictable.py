"""Columns that all others predict almost perfectly, such as columns that are computed from others.

1. At most 2,000 rows; every other row is held out.
2. Numbers become normal scores, levels become indicators; missing values are 0. Each column is regressed on all others
   by ridge regression, for all columns at once: the inverse of the Gram matrix gives the coefficients of every block of
   columns. A second regression uses the numbers, their squares and cubes, for smooth functions of single columns.
3. A number counts if the held-out R² of either regression is above 0.99. A level counts if fewer than 0.5 % of the
   held-out rows, and fewer than a tenth of the rows without its most frequent level, are predicted wrongly, by the
   regression or by a small decision tree. In wide tables, the tree uses the 40 columns with the largest correlation,
   of their encoding or its square, with an indicator of a level in the training rows; a column for which a tree of a
   fifth of the rows makes more than half of the errors of its most frequent level is excluded first.

Functions that are not sums of smooth functions of single columns are not detected.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from mcce.base.arrays import Floats, Ints
from mcce.exceptions import AdviceWarning, spell, warn
from mcce.plausibility.equations import standardised
from mcce.table import Feature, Schema
from mcce.wording import Setting

MOST_ROWS, FEWEST_ROWS = 2000, 200
LEAST_R2, MOST_ERROR = 0.99, 0.005
EXTREME = 0.01  # share of extreme rows, which alone must not explain a column
MOST_LEVELS = 20  # most levels of a column that is used or predicted
TREE_DEPTH = 4
MOST_TRIED = 40  # columns that a tree uses
SCREENED, FEWEST_WRONG = 5, 10  # in wide tables, a tree of one in so many rows first; fewest errors that exclude
MOST_NAMED = 5
RIDGE = 1e-6
FEWEST_ROWS_PER_POWER = 5.0  # rows, half of them for training, for each column of the second regression


@dataclass(frozen=True)
class Predicted:
    """A column that the others predict: its name, and the held-out R² (numbers) or error rate (levels)."""

    name: Hashable
    measure: str
    value: float

    def __str__(self) -> str:
        return (
            f"{spell(self.name)} ({self.measure} {self.value:.2%})"
            if self.measure == "error"
            else (f"{spell(self.name)} (R² {self.value:.3f})")
        )


def find_predictable(matrix: Floats, schema: Schema, besides: Collection[Hashable] = ()) -> list[Predicted]:
    """Return the columns that the others predict almost perfectly, in the order of the table, except given ones."""
    some = np.unique(np.linspace(0, matrix.shape[0] - 1, MOST_ROWS).astype(np.intp))
    rows = matrix[some]
    if rows.shape[0] < FEWEST_ROWS or rows.shape[1] < 2:
        return []
    train, test = slice(0, None, 2), slice(1, None, 2)
    scores = [_block(feature, rows[:, j], train) for j, feature in enumerate(schema.features)]
    residuals = _residuals(scores, train)
    both = [(scores, residuals)]
    n_powers = sum((3 if f.is_numeric else 1) * block.shape[1] for f, block in zip(schema.features, scores))
    if n_powers <= rows.shape[0] / FEWEST_ROWS_PER_POWER:
        powers = [_powers(rows[:, j]) if f.is_numeric else scores[j] for j, f in enumerate(schema.features)]
        both.append((powers, _residuals(powers, train)))
    used = _columns_of_trees(scores, train)
    found = []
    for j, feature in enumerate(schema.features):
        known = ~np.isnan(rows[test, j])
        if feature.name in besides or not scores[j].size or known.sum() < FEWEST_ROWS / 4:
            continue
        if feature.is_numeric:
            value = max(_r_squared(blocks[j][test][known, 0], left[j][test][known, 0]) for blocks, left in both)
            found += [Predicted(feature.name, "R²", value)] if value > LEAST_R2 else []
            continue
        residual = residuals[j][test]
        codes = rows[test, j][known].astype(np.intp)
        usual = 1.0 - float(np.bincount(codes).max() / codes.size)
        predicted = (scores[j][test] - residual)[known].argmax(axis=1)
        error = float((predicted != codes).mean())
        if error >= MOST_ERROR and usual > MOST_ERROR:
            error = _tree_error(rows[:, used[j]], rows[:, j])
        if error < MOST_ERROR and error < usual / 10.0:
            found.append(Predicted(feature.name, "error", error))
    return found


def _r_squared(values: Floats, residuals: Floats) -> float:
    """Return the R² of all rows, or without the most extreme rows if that is less.

    A few extreme values shared by columns, such as codes for missing values, explain nothing of the other rows.
    """
    distance = np.abs(values - np.median(values))
    usual = distance <= np.quantile(distance, 1.0 - EXTREME)
    spreads = values.var(), values[usual].var()
    if min(spreads) <= 0.0:  # no evidence if all values are equal
        return 0.0
    return float(1.0 - max((residuals**2).mean() / spreads[0], (residuals[usual] ** 2).mean() / spreads[1]))


def _residuals(blocks: Sequence[Floats], train: slice) -> list[Floats]:
    """Return the residuals of each block after a regression on all others, fitted to the training rows (step 2)."""
    design = np.column_stack(blocks)
    fitted = design[train]
    gram = fitted.T @ fitted / fitted.shape[0]
    inverse = np.linalg.inv(gram + RIDGE * np.eye(gram.shape[0]))
    places = np.split(np.arange(design.shape[1]), np.cumsum([block.shape[1] for block in blocks])[:-1])
    product = design @ inverse
    return [product[:, own] @ np.linalg.pinv(inverse[np.ix_(own, own)]) for own in places]


def _columns_of_trees(blocks: Sequence[Floats], train: slice) -> list[Ints]:
    """Return by column the columns that its tree uses: all others, or the most correlated of many (step 3)."""
    p = len(blocks)
    if p - 1 <= MOST_TRIED:
        return [np.delete(np.arange(p), j) for j in range(p)]
    design = np.column_stack(blocks)[train]
    owner = np.repeat(np.arange(p), [block.shape[1] for block in blocks])
    standard = [standardised(design)[0], standardised(design**2)[0]]
    correlation = np.maximum(*(np.abs(standard[0].T @ each) for each in standard))
    largest = np.zeros((p, p))
    np.maximum.at(largest, (owner[:, None], owner[None, :]), correlation)
    np.fill_diagonal(largest, -1.0)
    return list(np.sort(np.argsort(-largest, axis=1, kind="stable")[:, :MOST_TRIED], axis=1))


def warn_of_predictable(found: Sequence[Predicted]) -> None:
    """Warn of columns that the others predict, and name the remedy."""
    if not found:
        return
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    one = len(found) == 1
    warn(
        f"{'1 column is' if one else f'{len(found)} columns are'} predicted almost perfectly by the others, but no "
        f"formula was found: {', '.join(map(str, found[:MOST_NAMED]))}{more}. If such a column is computed from "
        "others, give its formula, as in ",
        Setting("derived", {"ratio": "a / b"}),
        "; otherwise fix it or leave it out, as values that do not fit together are not advice.",
        category=AdviceWarning,
    )


def _block(feature: Feature, column: Floats, train: slice) -> Floats:
    """Return the encoding of a column: normal scores, or an indicator of each level (step 2)."""
    known = ~np.isnan(column)
    if feature.is_numeric:
        return _normal_scores(column, known)
    if feature.n_levels > MOST_LEVELS:
        return np.empty((column.size, 0))
    block = np.zeros((column.size, feature.n_levels))
    block[known, column[known].astype(np.intp)] = 1.0
    block[known] -= block[train].mean(axis=0)
    return block


def _powers(column: Floats) -> Floats:
    """Return a number, its square and its cube, each with mean 0 and variance 1; missing values are 0."""
    known = ~np.isnan(column)
    if np.unique(column[known]).size < 2:
        return np.empty((column.size, 0))
    scaled = column / np.abs(column[known]).max()
    centred = (scaled - scaled[known].mean()) / np.ptp(scaled[known])
    powers = np.column_stack([centred, centred**2, centred**3])
    powers = (powers - powers[known].mean(axis=0)) / np.maximum(powers[known].std(axis=0), np.finfo(np.float64).tiny)
    return np.asarray(np.where(known[:, None], powers, 0.0))


def _normal_scores(column: Floats, known: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Floats:
    from scipy.special import ndtri

    scores = np.zeros((column.size, 1))
    if known.sum() < 2:
        return np.empty((column.size, 0))
    values, place, counts = np.unique(column[known], return_inverse=True, return_counts=True)
    if values.size < 2:
        return np.empty((column.size, 0))
    middle = np.cumsum(counts) - counts / 2.0
    scores[known, 0] = ndtri(middle / counts.sum())[place]
    return np.asarray(scores / scores.std())


def _tree_error(others: Floats, column: Floats) -> float:
    """Return the share of held-out rows for which a tree predicts another level."""
    from sklearn.tree import DecisionTreeClassifier  # scikit-learn is slow to import

    known, filled = ~np.isnan(column), np.where(np.isnan(others), -1e9, others)
    train, test = np.flatnonzero(known)[::2], np.flatnonzero(known)[1::2]
    codes: Ints = np.where(known, column, 0).astype(np.intp)
    tree = DecisionTreeClassifier(max_depth=TREE_DEPTH, min_samples_leaf=3, random_state=0)
    for step in (SCREENED, 1) if others.shape[1] >= MOST_TRIED else (1,):
        wrong = (
            tree.fit(filled[train[::step]], codes[train[::step]]).predict(filled[test[::step]]) != codes[test[::step]]
        )
        usual = 1.0 - float(np.bincount(codes[test[::step]]).max() / wrong.size)
        if wrong.sum() >= FEWEST_WRONG and wrong.mean() > usual / 2.0:
            break
    return float(wrong.mean())
