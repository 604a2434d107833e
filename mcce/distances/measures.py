"""Distances between rows, and measures by name: sums over the columns of the steps from one value to the other.

A distance of x and y is  finish(sum_j w_j s_j(x_j, y_j)^power), with power 1 or 2; `finish` divides (a mean) or takes
the square root. What differs between distances is the step s_j. Two rules hold for all: between a missing value and a
value is a whole step, 1, and between two missing values none (Wilson and Martinez count 1 there as well: a row with a
missing value would not be at 0 from itself); a changed value of a column that is constant in the training data is a
whole step. A factual outside the training range may be farther than 1 from a row in one feature.

A distance registers itself by the name that a user orders counterfactuals by (`register_measure`):

name       step                                                                                      sum
L0         1 for any change                                                                          plain
gower_sum  |x - y| / range for numbers, difference of ranks / (levels - 1) for ordered levels,       plain
           1 for different unordered levels (what the paper's tables call L1)
gower      the same                                                                                  mean: paper, eq. 3
l2         the same                                                                                  root of squares
l1_raw     |x - y| for numbers and level codes of ordered columns, 1 for unordered levels            plain
l2_raw     the same                                                                                  root of squares
mad        |x - y| / MAD: median absolute deviation from the median; where that is 0, the mean       plain
           absolute deviation from the median. Level codes of ordered columns alike; unordered 1
hvdm       |x - y| / (4 sd) for numbers and level codes of ordered columns; for unordered levels     root of squares
           sqrt(sum_c (P(c | x) - P(c | y))^2), which is `normalized_vdm2`
ivdm       sum_c (p_c(x) - p_c(y))^2, with P(c | level) for levels, ordered or not (VDM with q = 2)  squares
           and interpolated p_c(x) for numbers

HVDM and IVDM are of Wilson and Martinez (1997), J. Artif. Intell. Res. 6, 1-34, sections 3 and 4. The class c is the
decision of the training rows; sd is that of the training rows (dividing by n). For IVDM a number's range is cut into
s = max(5, classes) intervals of equal width; p_c is the share of class c in an interval, put at its midpoint and joined
by straight lines. Beyond the outer midpoints p_c falls to 0 within one width, and levels or intervals without training
rows have p_c = 0, as in that paper.

`tail_robust` has no name for users; sparse search orders by it (`mcce.explain.order`). It is gower_sum with |x - y|
divided by the geometric mean of the range and the distance between the 5 and the 95 per cent point. A range is set by
the two most extreme rows: relative to it, a step that few people can make is short if a column has a long tail. The
spread alone makes steps in numbers long relative to changes of levels, so levels change in their place.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.registry import Registry
from mcce.distances.kernels import CURVES, LEVELS, SCALED, CandidateBlocks, Steps, Tables, measure_candidates
from mcce.exceptions import InputError, listing, spell
from mcce.storage.fields import FLOAT, INT, require, stored
from mcce.storage.state import stateful
from mcce.table import Data, Feature, Schema
from mcce.table.weights import quantiles

Maker = TypeVar("Maker", bound=Callable[..., Any])
MIDDLE = 0.05, 0.95  # the shares below the points that a spread is between
CHUNK = 512  # rows measured at a time: their sums stay in the nearest cache
SMALLEST = np.finfo(np.float64).tiny  # of a spread below, the inverse is infinite


@stateful("Distance")
@dataclass(frozen=True, eq=False)
class Distance:
    """One distance, by column as `Steps` and `Tables` of `mcce.distances.kernels` describe it.

    Attributes
    ----------
    name : what it is called in tables and messages.
    how, scale, whole, begin, size : by column.
    table : steps between levels and class probabilities, all columns in a row.
    classes : number of classes that the curves in `table` are of.
    squared : whether steps are squared.
    root : whether the square root is taken of the sum.
    divisor : what the sum is divided by.

    Examples
    --------
    >>> import numpy as np
    >>> from mcce.distances.measures import scaled
    >>> years_and_level = scaled("mine", np.array([0.1, 0.0]))  # a tenth of a step a year; any change of level is one
    >>> years_and_level.between(np.array([[30.0, 2.0], [45.0, 1.0]]), np.array([[40.0, 1.0], [40.0, 1.0]]))
    array([2. , 0.5])
    """

    name: str = stored(str)
    scale: Floats = stored(FLOAT, "columns", least=0.0, finite=True)
    whole: Floats = stored(FLOAT, "columns", least=0.0, finite=True)
    how: Ints = stored(INT, "columns", least=SCALED, most=CURVES)
    begin: Ints = stored(INT, "columns", least=0, most=2**40)
    size: Ints = stored(INT, "columns", least=0, most=2**20)
    table: Floats = stored(FLOAT, "numbers", finite=True, default_factory=lambda: np.empty(0))
    classes: int = stored(int, least=0, most=2**20, default=0)
    squared: bool = stored(bool, default=False)
    root: bool = stored(bool, default=False)
    divisor: float = stored(float, least=0.0, default=1.0)

    def check_state(self) -> None:
        """Raise if a column refers to a missing part of the table, because kernels do not check bounds."""
        length = np.where(self.how == LEVELS, self.size**2, 1 + (self.size + 1) * self.classes)
        ends = self.begin + np.where(self.how == SCALED, 0, length)
        require(bool((ends <= self.table.size)[self.how != SCALED].all()), "begin and size lead beyond the table")
        require(self.divisor > 0.0, "divisor is 0")

    def finish(self, sums: Floats) -> Floats:
        """Return the distances for sums of steps; the order is the same."""
        return np.sqrt(sums) if self.root else sums / self.divisor

    def sums(self, rows: Floats, factuals: Floats) -> Floats:
        """Return the sum of steps of each encoded row to the factual at the same place."""
        if self.table.size:
            each = np.arange(rows.shape[0])
            return np.asarray(self._measure(rows, factuals, each, each + 1)[1])
        return self._sum_scaled(rows, factuals, changed_columns(rows, factuals))

    def to_each(self, rows: Floats, others: Floats) -> tuple[Floats, Floats]:
        """Return how many features differ, and the sum of steps, for all pairs: (other rows, rows)."""
        n, m = rows.shape[0], others.shape[0]
        if self.table.size:
            n_changes, sums = self._measure(rows, others, np.zeros(m, dtype=np.int64), np.full(m, n))
            return n_changes.reshape(m, n), sums.reshape(m, n)
        n_changes, sums = np.empty((2, m, n))
        for k, other in enumerate(others):
            changed = changed_columns(rows, other)
            n_changes[k], sums[k] = changed.sum(axis=1), self._sum_scaled(rows, other, changed)
        return n_changes, sums

    def _sum_scaled(self, rows: Floats, factuals: Floats, changed: Bools) -> Floats:
        """Return the sums of steps without tables, in plain numpy: few rows do not justify compiling a kernel."""
        with np.errstate(over="ignore", invalid="ignore"):  # numbers may be as far apart as floats
            steps = np.abs(rows - factuals) * self.scale
            steps = np.where((self.scale == 0.0) | np.isnan(steps), self.whole, steps)
            steps = np.where(changed, steps * steps if self.squared else steps, 0.0)
        return np.asarray(sum(steps.T, start=np.zeros(rows.shape[0])))  # column by column, as the kernels sum

    def _measure(self, rows: Floats, factuals: Floats, begin: Ints, end: Ints) -> Floats:
        """Return how many features differ, and the sum of steps, of rows begin[i] to end[i] to factual i."""
        m, p = factuals.shape
        plain = np.zeros((1, p), dtype=np.bool_)
        compared = CandidateBlocks(columnwise(rows), begin, end, rowwise(factuals), np.arange(m), np.arange(p), plain)
        sizes = end - begin
        values: Floats = np.empty((2, int(sizes.sum())))
        measure_candidates(compared, *stack([self]), np.empty((3, min(CHUNK, int(sizes.max(initial=1))))), values)
        return values

    def between(self, rows: Floats, factuals: Floats) -> Floats:
        """Return the distance of each encoded row to the factual at the same place."""
        return self.finish(self.sums(rows, factuals))

    def take(self, columns: Ints) -> Distance:
        """Return the distance of tables that have some of the columns, in the order given."""
        by_column = ("scale", "whole", "how", "begin", "size")
        return replace(self, **{name: getattr(self, name)[columns] for name in by_column})

    def weighted(self, weights: Floats) -> Distance:
        """Return the distance with a weight for each column; a mean is divided by the sum of the weights."""
        factor = np.sqrt(weights) if self.squared else weights
        scale = np.where(self.how == SCALED, self.scale * factor, self.scale)
        table = self.table.copy()
        for j in np.flatnonzero(self.how == LEVELS):
            table[self.begin[j] : self.begin[j] + self.size[j] ** 2] *= factor[j]
        divisor = 1.0 if self.divisor == 1.0 else float(weights.sum())
        return replace(self, scale=scale, whole=self.whole * factor, table=table, divisor=divisor)

    @property
    def counts_changes(self) -> bool:
        """Whether the sum is L0."""
        return not self.table.size and not self.scale.any() and bool((self.whole == 1.0).all())

    def adds_like(self, other: Distance) -> bool:
        """Whether sums of steps are those of another distance without tables."""
        return not (self.table.size or other.table.size) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in ("scale", "whole", "squared")
        )


def stack(distances: Sequence[Distance]) -> tuple[Steps, Tables | None]:
    """Put distances together for the kernels."""
    steps = Steps(
        scale=np.stack([d.scale for d in distances]),
        whole=np.stack([d.whole for d in distances]),
        squared=np.array([d.squared for d in distances], dtype=np.bool_),
    )
    if not any(d.table.size for d in distances):
        return steps, None
    offset = np.cumsum([0, *(d.table.size for d in distances)])
    tables = Tables(
        how=np.stack([d.how for d in distances]),
        begin=np.stack([d.begin + at for d, at in zip(distances, offset)]),
        size=np.stack([d.size for d in distances]),
        table=np.concatenate([d.table for d in distances]),
        classes=np.array([d.classes for d in distances], dtype=np.int64),
    )
    return steps, tables


def columnwise(rows: Floats) -> Floats:
    """Return a matrix with the values of a column side by side, as the kernels read candidates."""
    return np.require(rows.T, np.float64, ["C", "W"])


def rowwise(rows: Floats) -> Floats:
    """Return a matrix with the values of a row side by side, as the kernels read factuals."""
    return np.require(rows, np.float64, ["C", "W"])


# ---------------------------------------------------------------- measures by name


Function = Callable[..., Any]
ARGUMENTS = ("candidates", "factual")  # parameters of a function that is a measure
NEEDS = ("features", "training", "decision", "score")  # parameters of a function that creates a measure
RESERVED = ("prediction", "log_density")  # columns of `Counterfactuals.measures` that are something else


@dataclass(frozen=True)
class NamedMeasure:
    """A measure that was registered by name.

    Attributes
    ----------
    name : the name in settings, tables and messages.
    function : the measure, or a function that creates it.
    needs : the parameters of a function that creates it, among `NEEDS`; empty for a measure.
    largest_first : whether large values are good.
    """

    name: str
    function: Function
    needs: tuple[str, ...]
    largest_first: bool = False

    @property
    def is_learned(self) -> bool:
        """Whether it is learned from the training rows."""
        return "training" in self.needs

    @property
    def needs_score(self) -> bool:
        """Whether it needs a score of how plausible rows are."""
        return "score" in self.needs

    def make(self, known: Mapping[str, Any]) -> Any:
        """Return the measure; a function that is a measure is returned unchanged."""
        return self.function(**{need: known[need] for need in self.needs}) if self.needs else self.function


def _register(name: str, measure: Any, largest_first: bool = False) -> None:
    """Register a measure, after checking the parameters of its function."""
    if isinstance(measure, NamedMeasure):  # of a plug-in whose module registers it under another name
        measure, largest_first = measure.function, measure.largest_first
    taken = tuple(inspect.signature(measure).parameters) if callable(measure) else ()
    if taken != ARGUMENTS and (not taken or any(each not in NEEDS for each in taken)):
        raise InputError(
            f"register_measure({name!r}) got {spell(measure)}; it needs a function of (candidates, factual) that "
            f"returns a number for each candidate, or one that makes a distance of {listing(NEEDS[:3])}, as many of "
            "these as it needs."
        )
    if largest_first and taken not in (ARGUMENTS, ("score",)):
        raise InputError(f"register_measure({name!r}): of distances the smallest is the best; leave largest_first out.")
    if name in RESERVED:
        raise InputError(f"the measure name {name!r} is reserved in results; choose another name.")
    MEASURES.add(name, NamedMeasure(name, measure, () if taken == ARGUMENTS else taken, largest_first))


MEASURES: Registry[NamedMeasure] = Registry("measure", "mcce.measures", _register)


def register_measure(name: str, *, largest_first: bool = False) -> Callable[[Maker], Maker]:
    """Register a distance or another measure by name; a decorator of a function.

    Parameters
    ----------
    name : str
        Name for ``explain(measures=...)``, jobs and the command line. It must be unique.
    largest_first : bool
        Whether large values are good; not for distances.

    Notes
    -----
    The parameter names determine the kind of function.

    ``function(candidates, factual)``
        Returns a number for each candidate (DataFrame) of a factual (Series), as in ``explain(measures=function)``.
    ``function(features)``, ``function(features, training)``, ``function(features, training, decision)``
        Returns a `Distance` of the columns (`mcce.table.Feature`), optionally learned from the encoded training rows
        and their decisions. It is fast and supports ``feature_weights=``.

    Examples
    --------
    >>> import mcce
    >>> from mcce.distances.measures import gower
    >>> mcce.register_measure("gower")(gower) is gower
    True
    """

    def decorate(function: Maker) -> Maker:
        _register(name, function, largest_first)
        return function

    return decorate


def available_measures() -> list[str]:
    """Return the names of the measures that counterfactuals can be ordered by, plug-ins included.

    Examples
    --------
    >>> import mcce
    >>> mcce.available_measures()[:3]
    ['L0', 'gower', 'gower_sum']
    """
    return list(MEASURES.all())


# ---------------------------------------------------------------- distances that need the features alone


def scales(features: Sequence[Feature]) -> Floats:
    """Return 1 / range for numeric and ordered columns; 0 where any change counts 1."""
    return np.array([0.0 if f.kind == "categorical" else _inverse(f.span) for f in features])


def changed_columns(rows: Floats, factuals: Floats) -> Bools:
    """Return which cells of encoded rows differ from those of their factuals; missing ones do not."""
    return np.asarray((rows != factuals) & ~(np.isnan(rows) & np.isnan(factuals)))


@register_measure("L0")
def changes(features: Sequence[Feature]) -> Distance:
    """Return L0, the number of features changed; a feature is unchanged only if it is exactly equal."""
    return scaled("L0", np.zeros(len(features)))


@register_measure("gower")
def gower(features: Sequence[Feature]) -> Distance:
    """Return the paper's Gower distance (equation 3), a mean over the features."""
    return replace(scaled("gower", scales(features)), divisor=float(len(features)))


@register_measure("gower_sum")
def gower_sum(features: Sequence[Feature]) -> Distance:
    """Return Gower's distance without dividing by the number of features."""
    return scaled("gower_sum", scales(features))


@register_measure("l2")
def l2(features: Sequence[Feature]) -> Distance:
    """Return the Euclidean distance of columns scaled to their training range."""
    return replace(scaled("l2", scales(features)), squared=True, root=True)


@register_measure("l1_raw")
def l1_raw(features: Sequence[Feature]) -> Distance:
    """Return the sum of differences on the columns' own scales."""
    return scaled("l1_raw", _units(features))


@register_measure("l2_raw")
def l2_raw(features: Sequence[Feature]) -> Distance:
    """Return the Euclidean distance on the columns' own scales."""
    return replace(scaled("l2_raw", _units(features)), squared=True, root=True)


# ---------------------------------------------------------------- distances that need the training rows


@register_measure("mad")
def mad(features: Sequence[Feature], training: Floats) -> Distance:
    """Return the sum of differences over the median absolute deviation of the encoded training rows."""
    return scaled("mad", np.array([_over(f, training[:, j], _median_deviation) for j, f in enumerate(features)]))


@register_measure("hvdm")
def hvdm(features: Sequence[Feature], training: Floats, decision: npt.NDArray[np.generic]) -> Distance:
    """Return Wilson and Martinez's HVDM; `decision` is the class of each encoded training row."""
    classes = _classes(training, decision)
    scale = np.array([_over(f, training[:, j], lambda x: 4.0 * float(x.std())) for j, f in enumerate(features)])
    tables = {
        j: np.sqrt(_squared_differences(_shares(training[:, j], classes, f.n_levels)))
        for j, f in enumerate(features)
        if f.kind == "categorical"
    }
    return replace(_with_tables(scaled("hvdm", scale), LEVELS, tables), squared=True, root=True)


@register_measure("ivdm")
def ivdm(features: Sequence[Feature], training: Floats, decision: npt.NDArray[np.generic]) -> Distance:
    """Return Wilson and Martinez's IVDM; `decision` is the class of each encoded training row."""
    classes = _classes(training, decision)
    n_classes = int(classes.max()) + 1
    n_intervals = max(5, n_classes)
    levels, curves = {}, {}
    scale = np.zeros(len(features))
    for j, f in enumerate(features):
        if not f.is_numeric:
            levels[j] = _squared_differences(_shares(training[:, j], classes, f.n_levels))
        elif _inverse(f.span):
            width = f.span / n_intervals
            scale[j] = 1.0 / width
            interval = np.minimum(np.floor((training[:, j] - f.low) / width), n_intervals - 1.0)
            shares = np.zeros((n_intervals + 2, n_classes))
            shares[1:-1] = _shares(interval, classes, n_intervals)
            curves[j] = np.concatenate([[f.low - width / 2], shares.ravel()])
    plain = replace(scaled("ivdm", scale), squared=True, classes=n_classes)
    found = _with_tables(_with_tables(plain, LEVELS, levels), CURVES, curves)
    return replace(found, size=np.where(found.how == CURVES, n_intervals + 1, found.size))


def tail_robust(features: Sequence[Feature], training: Floats, weights: Floats | None = None) -> Distance:
    """Return gower_sum with numbers over the geometric mean of their range and the spread of their middle 90 per cent.

    Where more than nine tenths of a column are one value, the spread may be 0; then the range alone is taken, by which
    a step between two levels that are written as numbers counts 1.
    """
    scale = scales(features)
    for j, feature in enumerate(features):
        seen = ~np.isnan(training[:, j])
        if feature.is_numeric and seen.any():
            low, high = quantiles(training[seen, j], MIDDLE, None if weights is None else weights[seen])
            if high > low:
                scale[j] = np.sqrt(scale[j] * _inverse(float(high - low)))
    return scaled("tail_robust", scale)


# ---------------------------------------------------------------- a measure that is not a distance


@register_measure("plausibility", largest_first=True)
def plausibility(score: Function) -> Function:
    """Return the plausibility of candidates (`mcce.plausibility.score`); the most plausible comes first."""
    return score


# ---------------------------------------------------------------- parts


def scaled(name: str, scale: Floats) -> Distance:
    """Return the plain sum of |x - y| * scale by column; 0 where any change counts 1."""
    p = scale.size
    none = np.zeros(p, dtype=np.int64)
    return Distance(name, scale, np.ones(p), np.full(p, SCALED, dtype=np.int64), none, none)


def _with_tables(distance: Distance, how: int, tables: dict[int, Floats]) -> Distance:
    """Append a table for some columns; that of levels is square."""
    step_kinds, begin, size = distance.how.copy(), distance.begin.copy(), distance.size.copy()
    parts, at = [distance.table], distance.table.size
    for j, table in tables.items():
        step_kinds[j], begin[j], size[j] = how, at, table.shape[0]
        parts.append(table.ravel())
        at += table.size
    return replace(distance, how=step_kinds, begin=begin, size=size, table=np.concatenate(parts))


def _inverse(spread: float) -> float:
    return 1.0 / spread if spread >= SMALLEST else 0.0


def _units(features: Sequence[Feature]) -> Floats:
    return np.array([0.0 if f.kind == "categorical" else 1.0 for f in features])


def _over(feature: Feature, column: Floats, spread: object) -> float:
    """Return 1 / spread of the values that are not missing; 0 for unordered levels and where there is no spread."""
    seen = column[~np.isnan(column)]
    if feature.kind == "categorical" or not seen.size:
        return 0.0
    assert callable(spread)
    return _inverse(float(spread(seen)))


def _median_deviation(values: Floats) -> float:
    deviations = np.abs(values - np.median(values))
    return float(np.median(deviations)) or float(deviations.mean())


def _classes(training: Floats, decision: npt.NDArray[np.generic]) -> Ints:
    """Return the decision as codes 0, 1, ..."""
    if np.shape(decision) != (training.shape[0],) or not training.shape[0]:
        raise InputError(
            f"the decision has shape {spell(np.shape(decision))} for {training.shape[0]} training rows; give one value "
            "for each row, and at least one row."
        )
    return np.asarray(np.unique(decision, return_inverse=True)[1], dtype=np.int64)


def _shares(codes: Floats, classes: Ints, n_codes: int) -> Floats:
    """Return P(class | code), a row for each code; 0 for a code that no row has."""
    known = ~np.isnan(codes)
    counts = np.zeros((n_codes, int(classes.max()) + 1))
    np.add.at(counts, (codes[known].astype(np.intp), classes[known]), 1.0)
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0))


def _squared_differences(shares: Floats) -> Floats:
    return np.asarray(((shares[:, None, :] - shares[None, :, :]) ** 2).sum(axis=2))


def gower_distance(X: Data, Y: Data, *, training: Data | Schema) -> npt.NDArray[np.float64]:
    """Return the Gower distance of each row of `X` to the corresponding row of `Y`.

    Parameters
    ----------
    X, Y : tables with the training columns and equally many rows; a single row is compared with all of the other.
    training : DataFrame, array or Schema
        Source of the kinds and ranges.

    Examples
    --------
    >>> import pandas as pd, mcce
    >>> people = pd.DataFrame({"age": [20, 60, 40], "job": ["clerk", "pilot", "pilot"]})
    >>> mcce.gower_distance(people, people.iloc[[1]], training=people)
    array([1.  , 0.  , 0.25])
    """
    schema = training if isinstance(training, Schema) else Schema.from_data(training, where="training")
    a, b = schema.encode(X, "X").matrix, schema.encode(Y, "Y").matrix
    if 1 not in (a.shape[0], b.shape[0]) and a.shape[0] != b.shape[0]:
        raise InputError(f"X has {a.shape[0]} rows and Y {b.shape[0]}; give equally many, or one row on one side.")
    n = max(a.shape[0], b.shape[0]) if min(a.shape[0], b.shape[0]) else 0
    shape = (n, len(schema))
    return gower(schema.features).between(np.broadcast_to(a, shape), np.broadcast_to(b, shape))
