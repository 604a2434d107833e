"""The order of candidates: lexicographic by measures, the smallest first.

1. `resolve_measures` reads the measures given by the user: a registered measure (`mcce.register_measure`), a
   `Distance`, or any function of the candidates and the factual. Feature weights apply to every distance; L0 is a
   count, and has no weights.
2. Each `Measure` has a cost: "free" needs the table only, "density" a plausibility score, "model" the explained model.
   Free and density measures rank candidates before the model is queried, so that it is queried best-first and for few
   rows; with a model measure, it is queried for every candidate.
3. An `Ordering` holds the measures in order of priority. Ties go to the earlier draw.

The default, ("L0", "gower"), is the paper's (section 2.3); ("gower",) does not count changes.

Sparse counterfactuals in the default order are compared with caution (`Caution`). The nearest valid and plausible row
lies at the edge of the decision and of the data, where a refitted model or a stricter plausibility check rejects it.
Among rows with equally few changes, the one with the least cost is therefore chosen,

    d + caution * (1.25 max(n - t, 0) + max(0.5 t, 0.2) max(0, 1 - m / 0.25)),

where d is the sum of its steps from the factual, n its mean distance to the five nearest real rows and t the
median of that over real rows (`mcce.plausibility.score`), and m the share of accepted training rows whose score is at
most as far from an end of the decision (`Margins`). The unit is that of d. With caution 0 the nearest row is chosen.
Where real rows are dense, t is near 0, and without the 0.2 the margin would hardly count.
The default 1 and the constants above were chosen on some of the rows of benchmarks/advice.py and validated on others.
An end of the decision beyond which no training row lies is ignored: no probability is above 1. Decisions by labels and
functions have no margin, and the last term is dropped.

The steps of d are robust to long tails (`mcce.distances.measures.tail_robust`). By Gower's step, a share of the range,
42,000 more savings are a short step if one person has 760,000. With caution 0 steps are Gower's.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Floats
from mcce.base.checks import is_number
from mcce.distances.measures import MEASURES, Distance, NamedMeasure, available_measures
from mcce.exceptions import InputError, did_you_mean, listing, spell
from mcce.model.decisions import Answer, Decision
from mcce.plausibility.score import Plausibility, Scale
from mcce.storage.fields import check_number, require, stored
from mcce.storage.state import stateful
from mcce.table import Feature, Schema
from mcce.wording import Either, Parameter, PythonOnly, Setting, Value, entry

Cost = Literal["free", "density", "model"]
COSTS: tuple[Cost, ...] = ("free", "density", "model")
DEFAULT = ("L0", "gower")
OF_NEARNESS, OF_MARGIN, LEAST_OF_MARGIN, ENOUGH = 1.25, 0.5, 0.2, 0.25
ROUNDING = 1e-12  # rounding error of scores

# maps the encoded candidates and the encoded factual to one value for each candidate
Function = Callable[[Floats, Floats], Floats]
UserFunction = Callable[[pd.DataFrame, "pd.Series[Any]"], npt.ArrayLike]
MeasureLike = str | NamedMeasure | Distance | UserFunction


@dataclass(frozen=True, eq=False)
class Measure:
    """One measure of the order of candidates.

    Attributes
    ----------
    name : the name in tables and messages.
    function : a `Distance`, or a function of the encoded candidates and the encoded factual.
    cost : "free", "density" or "model", see the module.
    largest_first : whether large values are good.
    """

    name: str
    function: Distance | Function
    cost: Cost = "free"
    largest_first: bool = False

    def of_pairs(self, rows: Floats, factuals: Floats) -> Floats:
        """Return the measure of each encoded row, given its factual at the same position."""
        if isinstance(self.function, Distance):
            return self.function.between(rows, factuals)
        each = [self.function(rows[[i]], factuals[i]) for i in range(rows.shape[0])]
        return np.concatenate([np.empty(0), *each])


@dataclass(frozen=True, eq=False)
class Ordering:
    """Measures in order of priority."""

    measures: tuple[Measure, ...]

    @property
    def names(self) -> list[str]:
        """Names of the measures."""
        return [m.name for m in self.measures]

    @property
    def cost(self) -> Cost:
        """The highest cost of the measures."""
        return COSTS[max(COSTS.index(m.cost) for m in self.measures)]

    @property
    def is_of_distances(self) -> bool:
        """Whether all measures are distances, without user functions."""
        return all(isinstance(m.function, Distance) for m in self.measures)

    @property
    def is_thread_safe(self) -> bool:
        """Whether candidates can be measured in several threads; user functions may not be thread-safe."""
        return all(isinstance(m.function, Distance) or m.cost == "density" for m in self.measures)


def resolve_measures(
    measures: MeasureLike | Sequence[MeasureLike],
    features: Sequence[Feature],
    *,
    feature_weights: Mapping[Any, float] | None = None,
    training: Floats | None = None,
    decision: npt.NDArray[np.generic] | None = None,
    scorers: Mapping[str, Function] | None = None,
) -> Ordering:
    """Return the order given by the user.

    Parameters
    ----------
    measures : name, Distance, function, or several of them
        Names are those of `mcce.available_measures`.
        A function takes the candidates of a factual (DataFrame) and the factual (Series) and returns one number for
        each candidate; the smallest is the best.
    features : the columns of the encoded matrices.
    feature_weights : dict or None
        The weight of a step, by feature; 1 for features not named.
    training : encoded training rows, for "mad", "hvdm" and "ivdm".
    decision : the class of each training row, for "hvdm" and "ivdm".
    scorers : functions that compute "plausibility" of encoded candidates of an encoded factual.
    """
    if isinstance(measures, (str, Distance)) or callable(measures) or not isinstance(measures, Iterable):
        given = [measures]
    else:
        given = list(measures)
    if not given:
        raise InputError(
            Parameter("measures"), " is empty; name at least one, for example ", Setting("measures", list(DEFAULT)), "."
        )
    by_feature = resolve_feature_weights(feature_weights, features)
    found = []
    for item in given:
        if isinstance(item, (str, NamedMeasure)):
            measure = _made(find_measure(item), features, training, decision, scorers or {})
        elif isinstance(item, Distance):
            measure = Measure(item.name, _checked(item, features))
        elif callable(item):
            measure = Measure(_name_of(item), _QueriedWithFrames(item, Schema(features)))
        else:
            raise InputError(
                Parameter("measures"),
                " holds ",
                Value(item),
                "; give names",
                PythonOnly(", distances or functions of (candidates, factual)"),
                f". The names are {listing(available_measures(), len(MEASURES.known))}.",
            )
        if by_feature is not None and isinstance(measure.function, Distance) and not measure.function.counts_changes:
            measure = replace(measure, function=measure.function.weighted(by_feature))
        found.append(measure)
    scaled = [m for m in found if isinstance(m.function, Distance) and not m.function.counts_changes]
    if by_feature is not None and not scaled:
        raise InputError(
            Parameter("feature_weights"),
            f" scale distances, and {listing([m.name for m in found])} is not a distance; add one to ",
            Parameter("measures"),
            ", for example 'gower', or leave ",
            Parameter("feature_weights"),
            " out.",
        )
    twice = [m.name for i, m in enumerate(found) if m.name in [other.name for other in found[:i]]]
    if twice:
        raise InputError(Parameter("measures"), f" names {twice[0]!r} twice; name each measure once.")
    return Ordering(tuple(found))


def resolve_feature_weights(feature_weights: Mapping[Any, float] | None, features: Sequence[Feature]) -> Floats | None:
    """Return the weights in the order of the features, 1 for features not named; None without weights."""
    if feature_weights is None:
        return None
    if not isinstance(feature_weights, Mapping):
        raise InputError(
            Parameter("feature_weights"),
            " is ",
            Value(feature_weights),
            "; give weights by feature, for example ",
            Setting("feature_weights", {"age": 2}),
            ".",
        )
    names: list[Hashable] = [f.name for f in features]
    found = np.ones(len(names))
    for name, weight in feature_weights.items():
        if name not in names:
            raise InputError(
                Parameter("feature_weights"), f" names {name!r}, which is not a feature; {did_you_mean(name, names)}"
            )
        if not is_number(weight) or not 0 <= weight < np.inf:
            raise InputError(entry("feature_weights", name), " is ", Value(weight), "; give a number of at least 0.")
        found[names.index(name)] = weight
    if not found.any():
        raise InputError(
            Parameter("feature_weights"), " are all 0, so that all candidates rank equally. Give some feature a weight."
        )
    return found


def _made(
    named: NamedMeasure,
    features: Sequence[Feature],
    training: Floats | None,
    decision: npt.NDArray[np.generic] | None,
    scorers: Mapping[str, Function],
) -> Measure:
    """Return the measure registered under a name, fitted to what it needs."""
    name = named.name
    of_features = [each.name for each in MEASURES.known.values() if each.needs == ("features",)]
    if named.needs_score and name not in scorers:
        raise InputError(
            f"measure {name!r} needs the plausibility of rows, which is not computed; set ",
            Setting("sparse", True),
            f", or use measures of distance: {listing(of_features)}.",
        )
    if named.is_learned and training is None:
        raise InputError(f"measure {name!r} needs the training rows, which are not stored; fit again, or use 'gower'.")
    if "decision" in named.needs and decision is None:
        raise InputError(
            f"measure {name!r} compares values by the decisions of the training rows, which are not known; ",
            Either(("set ", Setting("condition_on_decision", True), ", or ")),
            "use 'gower'.",
        )
    score = scorers.get(name)
    made = named.make({"features": features, "training": training, "decision": decision, "score": score})
    if named.needs_score:
        return Measure(name, made, "density", largest_first=named.largest_first)
    if not named.needs:
        return Measure(name, _QueriedWithFrames(made, Schema(features)), largest_first=named.largest_first)
    if not isinstance(made, Distance):
        raise InputError(f"the measure {name!r} made {spell(made)} of the features; return a Distance.")
    return Measure(name, replace(_checked(made, features), name=name))


def _checked(distance: Distance, features: Sequence[Feature]) -> Distance:
    if distance.scale.size != len(features):
        raise InputError(
            f"the distance {distance.name!r} is of {distance.scale.size} columns and the table has {len(features)}; "
            "make it from the features of this table."
        )
    return distance


def find_measure(item: str | NamedMeasure, where: str = "measures") -> NamedMeasure:
    """Return the measure of a name."""
    if isinstance(item, NamedMeasure):
        return item
    if item not in MEASURES.known and item not in MEASURES.all():
        raise InputError(Parameter(where), f" names {item!r}; {did_you_mean(item, MEASURES.known)}")
    return MEASURES.known[item]


def _name_of(function: object) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


@dataclass(frozen=True, eq=False)
class _QueriedWithFrames:
    """A user function of (candidates, factual) as a function of encoded rows."""

    function: UserFunction
    schema: Schema

    def __call__(self, rows: Floats, factual: Floats) -> Floats:
        name = _name_of(self.function)
        candidates = self.schema.decode(np.asfortranarray(rows))
        answer = self.function(candidates, self.schema.decode(factual[None, :]).iloc[0])
        try:
            values = np.asarray(answer, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"the measure {name!r} returned {type(answer).__name__}, not numbers: {error}") from error
        if values.shape != (rows.shape[0],):
            raise InputError(
                f"the measure {name!r} returned shape {values.shape} for {rows.shape[0]} candidates; return a number "
                "for each."
            )
        if np.isnan(values).any():
            raise InputError(
                f"the measure {name!r} returned NaN for candidate {int(np.isnan(values).argmax())} (counted from 0), "
                "which has no place in an order; return inf for the worst."
            )
        return values


@stateful("Margins")
@dataclass(frozen=True)
class Margins:
    """Margins of scores: the relevant ends of the decision, and the margins of accepted training rows."""

    low: float = stored(float, finite=False)
    high: float = stored(float, finite=False)
    accepted: Scale = stored(Scale)

    def check_state(self) -> None:
        """Raise if the ends are not in order, or the weights are invalid."""
        require(self.low <= self.high, "low is above high")
        check_number(self.accepted.total, "accepted", 0.0)

    @classmethod
    def of(cls, decision: Decision, answer: Answer, weights: Floats | None = None) -> Margins | None:
        """Return the margins of training rows, given the model's predictions; None if the decision has no scores."""
        bounds = decision.bounds()
        if bounds is None or not answer.wanted.any():
            return None
        scores = np.asarray(answer.scores, dtype=np.float64)
        low = bounds[0] if (scores < bounds[0]).any() else -np.inf
        high = bounds[1] if (scores > bounds[1]).any() else np.inf
        if np.isinf(low) and np.isinf(high):
            return None
        inside = _inside(scores[answer.wanted], low, high)
        return cls(float(low), float(high), Scale.of(inside, None if weights is None else weights[answer.wanted]))

    def inside(self, scores: npt.NDArray[np.generic]) -> Floats:
        """Return the distance of scores from the ends of the decision; negative outside."""
        return _inside(np.asarray(scores, dtype=np.float64), self.low, self.high)

    def share(self, scores: npt.NDArray[np.generic]) -> Floats:
        """Return the share of accepted training rows that are at most as far inside."""
        return self.accepted.share(self.inside(scores))


def _inside(scores: Floats, low: float, high: float) -> Floats:
    """Return the distance of scores from the nearer end; infinite ends are ignored, even for infinite scores."""
    above = scores - low if low > -np.inf else np.full(scores.shape, np.inf)
    return np.minimum(above, high - scores) if high < np.inf else above


@dataclass(frozen=True)
class Caution:
    """The trade-off of nearness, plausibility and margin; with `strength` 0 the nearest row is best.

    `distance` sums the steps from the factual; None for the distance of the order.
    """

    plausibility: Plausibility
    margins: Margins | None = None
    strength: float = 1.0
    distance: Distance | None = None

    def cost(self, steps: Floats, near: Floats, scores: npt.NDArray[np.generic]) -> Floats:
        """Return the costs of rows.

        Parameters
        ----------
        steps, near : the sum of steps to the factual, and the mean distance to the nearest real rows.
        scores : the model's scores.
        """
        typical = self.plausibility.typical_distance
        cost = steps + self.strength * OF_NEARNESS * np.maximum(near - typical, 0.0)
        if self.margins is None:
            return cost
        lacking = np.maximum(0.0, 1.0 - self.margins.share(scores) / ENOUGH)
        return np.asarray(cost + self.strength * max(OF_MARGIN * typical, LEAST_OF_MARGIN) * lacking)

    def farthest(self, steps: Floats, most: Floats) -> Floats:
        """Return the largest distance from real rows at which rows with these steps cost less than `most`."""
        left = (most - steps) * (1.0 + 1e-9) + 1e-9  # plus rounding; the exact cost is compared later
        return self.plausibility.typical_distance + left / (self.strength * OF_NEARNESS)

    def harm(self, scores: npt.NDArray[np.generic], without: npt.NDArray[np.generic]) -> Floats:
        """Return by how much changes make the decision worse: the loss of margin relative to scores `without` them."""
        if self.margins is None:
            return np.zeros(scores.size)
        now, otherwise = self.margins.inside(scores), self.margins.inside(without)
        return np.subtract(otherwise, now, out=np.zeros(scores.size), where=otherwise > now + ROUNDING)
