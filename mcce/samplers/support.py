"""What a conditional supports: the one definition that `ConditionalSampler.supports` stands on.

1. A value is supported that the conditional could have produced: one whose probability, or that of values at least as
   extreme, is above `IMPOSSIBLE`.
2. A sampler that gives training values back (donors, ranks, residuals) also supports numbers between them: inside the
   range of what it can draw for the row, and no farther from the nearest of these values than the local spacing.
3. The local spacing is the median gap between neighbours among the values that the row's draw comes from, one for each
   training row (the lower one of two medians; 0 with fewer than three values). So nothing is supported between two
   far-away clusters, and where most values are tied, as whole numbers are, the values themselves only.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import scipy

from mcce.arrays import Bools, Floats
from mcce.table.weights import sorted_with_weights

IMPOSSIBLE = 1e-12
REACH = float(-scipy.special.ndtri(IMPOSSIBLE))  # standard deviations: a normal draw farther out counts as impossible


def local_spacing(drawable: Floats, weights: Floats | None = None) -> float:
    """Return the local spacing (step 3) of sorted values; weights count as copies, whose gaps are 0."""
    if weights is None:
        return float(np.quantile(np.diff(drawable), 0.5, method="lower")) if drawable.size > 2 else 0.0
    copies = max(int(weights.sum()), drawable.size)
    wanted = (copies - 2) // 2 - (copies - drawable.size)
    return float(np.sort(np.diff(drawable))[wanted]) if copies > 2 and wanted >= 0 else 0.0


def distance_to(drawable: Floats, values: Floats) -> Floats:
    """Return how far each value is from the nearest of some sorted ones, of which there is at least one."""
    after = np.searchsorted(drawable, values)
    above, below = drawable[np.minimum(after, drawable.size - 1)], drawable[np.maximum(after - 1, 0)]
    return np.minimum(np.abs(above - values), np.abs(values - below))


def supported_by(
    drawable: Floats,
    values: Floats,
    *,
    is_number: bool,
    slack: Floats | float = 0.0,
    weights: Floats | None = None,
) -> Bools:
    """Return whether values are supported by those that the draw comes from (step 2); a missing one is not.

    Parameters
    ----------
    drawable : array
        Values that the draw comes from, one for each training row, in any order; missing ones do not count.
    values : array
    is_number : bool
        Whether they are numbers; a level is supported by itself only.
    slack : float or array
        What rounding may add to a distance.
    weights : array or None
        Of the training rows, if they have any.
    """
    known = ~np.isnan(drawable)
    drawable, weights = sorted_with_weights(drawable[known], None if weights is None else weights[known])
    if drawable.size == 0:
        return np.zeros(values.size, dtype=bool)
    spacing = local_spacing(drawable, weights) if is_number else 0.0
    inside = (values >= drawable[0] - slack) & (values <= drawable[-1] + slack)
    return np.asarray(inside & (distance_to(drawable, values) <= spacing + slack))


def supported_in_segments(
    supported: Callable[[Floats, Floats], Bools],
    drawable: Floats,
    first: npt.NDArray[np.integer],
    after: npt.NDArray[np.integer],
    values: Floats,
) -> Bools:
    """Return ``supported(drawable[first:after], values)``, where each value has its own part of them.

    A part may be in pieces: `first` and `after` then have a column for each.
    """
    found = np.zeros(values.size, dtype=bool)
    n_pieces = first.size // max(values.size, 1)
    parts, part_of_row = np.unique(np.column_stack([first, after]), axis=0, return_inverse=True)
    rows_by_part = np.argsort(part_of_row.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(part_of_row.ravel(), minlength=len(parts)))
    for part, rows in zip(parts, np.split(rows_by_part, ends[:-1])):
        pieces = [drawable[begin:end] for begin, end in zip(part[:n_pieces], part[n_pieces:])]
        found[rows] = supported(np.concatenate(pieces), values[rows])
    return found
