"""The order of candidates: measures that are compared one after the other, the smallest first.

1. `resolve_measures` reads what a user names: a registered measure (`mcce.register_measure`), a `Distance`, or any
   function of the candidates and the factual. Weights by feature enter every distance; L0 is a count, and has none.
2. Each `Measure` says what it costs: "free" needs the table alone, "density" a score of how plausible a row is, "model"
   the explained model. Free and density measures rank candidates before the model is asked, so that it is asked
   best-first and few rows are; a model measure has every candidate asked.
3. An `Ordering` holds them in the order in which they decide. Ties of all are broken by the earlier draw.

The default, ("L0", "gower"), is the paper's (section 2.3); ("gower",) drops the step that counts changes.

Sparse counterfactuals in the default order are compared with caution (`Caution`). The nearest valid and plausible row
stands at the edge of the decision and at the edge of the data, where a refitted model or a stricter judge rejects it.
So among rows with equally few changes the one with the least cost is taken,

    d + caution * (1.25 max(n - t, 0) + 0.5 t max(0, 1 - m / 0.25)),

where d is the sum of its steps from the factual, n its mean distance to the five nearest real rows and t the
median of that over real rows (`mcce.plausibility.score`), and m the share of accepted training rows whose score is as
near to an end of the decision or nearer (`Margins`). All is in steps of d. With caution 0 the nearest row is taken; 1,
the default, and the numbers above were chosen on some of the rows of benchmarks/advice.py and tried on others. An end
of the decision that no training row is beyond is not an edge: no probability is above 1. Labels and functions have no
margin, and m does not count.

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
OF_NEARNESS, OF_MARGIN, ENOUGH = 1.25, 0.5, 0.25
ROUNDING = 1e-12  # of scores

# of the encoded candidates and the encoded factual: a value for each candidate
Function = Callable[[Floats, Floats], Floats]
UserFunction = Callable[[pd.DataFrame, "pd.Series[Any]"], npt.ArrayLike]
MeasureLike = str | NamedMeasure | Distance | UserFunction


@dataclass(frozen=True, eq=False)
class Measure:
    """One thing that candidates are compared by.

    Attributes
    ----------
    name : what it is called in tables and messages.
    function : a `Distance`, or a function of the encoded candidates and the encoded factual.
    cost : "free", "density" or "model", see above.
    largest_first : whether large values are good.
    """

    name: str
    function: Distance | Function
    cost: Cost = "free"
    largest_first: bool = False

    def of_pairs(self, rows: Floats, factuals: Floats) -> Floats:
        """Return the measure of each encoded row against the factual at the same place."""
        if isinstance(self.function, Distance):
            return self.function.between(rows, factuals)
        each = [self.function(rows[[i]], factuals[i]) for i in range(rows.shape[0])]
        return np.concatenate([np.empty(0), *each])


@dataclass(frozen=True, eq=False)
class Ordering:
    """Measures in the order in which they decide."""

    measures: tuple[Measure, ...]

    @property
    def names(self) -> list[str]:
        """Names of the measures."""
        return [m.name for m in self.measures]

    @property
    def cost(self) -> Cost:
        """The cost of the dearest of the measures."""
        return COSTS[max(COSTS.index(m.cost) for m in self.measures)]

    @property
    def is_of_distances(self) -> bool:
        """Whether all measures are distances, none of them a user's function."""
        return all(isinstance(m.function, Distance) for m in self.measures)

    @property
    def is_thread_safe(self) -> bool:
        """Whether candidates can be measured in several threads: a user's function need not be safe for them."""
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
    """Return the order that a user asks for.

    Parameters
    ----------
    measures : name, Distance, function, or several of them
        Names are those of `mcce.available_measures`.
        A function takes the candidates of a factual (DataFrame) and the factual (Series) and returns a number for each
        candidate; the smallest is the best.
    features : the columns of the encoded matrices.
    feature_weights : dict or None
        What a step in a feature counts, by name; 1 for those not named.
    training : encoded training rows, for "mad", "hvdm" and "ivdm".
    decision : the class of each training row, for "hvdm" and "ivdm".
    scorers : what finds "plausibility" of encoded candidates of an encoded factual.
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
            measure = Measure(_name_of(item), _AskedWithFrames(item, Schema(features)))
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
            f" scale distances, and {listing([m.name for m in found])} is none; add a distance to ",
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
    """Return the weights in the order of the features, 1 for those not named; None for none."""
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
    """Return a measure that was registered by name, made of what it needs."""
    name = named.name
    of_features = [each.name for each in MEASURES.known.values() if each.needs == ("features",)]
    if named.needs_score and name not in scorers:
        raise InputError(
            f"measure {name!r} needs the plausibility of rows, which is not computed; set ",
            Setting("sparse", True),
            f", or use measures of distance: {listing(of_features)}.",
        )
    if named.is_learned and training is None:
        raise InputError(f"measure {name!r} needs the training rows, which are not there; fit again, or use 'gower'.")
    if "decision" in named.needs and decision is None:
        raise InputError(
            f"measure {name!r} compares what values say about the decision, and the decision of the "
            "training rows is not known; ",
            Either(("set ", Setting("condition_on_decision", True), ", or ")),
            "use 'gower'.",
        )
    score = scorers.get(name)
    made = named.make({"features": features, "training": training, "decision": decision, "score": score})
    if named.needs_score:
        return Measure(name, made, "density", largest_first=named.largest_first)
    if not named.needs:
        return Measure(name, _AskedWithFrames(made, Schema(features)), largest_first=named.largest_first)
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
class _AskedWithFrames:
    """A user's function of (candidates, factual) as a function of encoded rows."""

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
    """How far inside the decision scores are: its ends that matter, and the margins of accepted training rows."""

    low: float = stored(float, finite=False)
    high: float = stored(float, finite=False)
    accepted: Scale = stored(Scale)

    def check_state(self) -> None:
        """Raise if the ends have no order, or the weights of the rows no sum."""
        require(self.low <= self.high, "low is above high")
        check_number(self.accepted.total, "accepted", 0.0)

    @classmethod
    def of(cls, decision: Decision, answer: Answer, weights: Floats | None = None) -> Margins | None:
        """Return the margins of training rows, by the model's answer; None if the decision is not about scores."""
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
        """Return how far inside the decision scores are; below 0 outside."""
        return _inside(np.asarray(scores, dtype=np.float64), self.low, self.high)

    def share(self, scores: npt.NDArray[np.generic]) -> Floats:
        """Return the share of accepted training rows that are as near to an end or nearer."""
        return self.accepted.share(self.inside(scores))


def _inside(scores: Floats, low: float, high: float) -> Floats:
    """Return how far scores are from the nearer end; an end at infinity does not count, even for an infinite score."""
    above = scores - low if low > -np.inf else np.full(scores.shape, np.inf)
    return np.minimum(above, high - scores) if high < np.inf else above


@dataclass(frozen=True)
class Caution:
    """The trade-off of nearness, plausibility and margin; `strength` 0 is for the nearest row.

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
        return np.asarray(cost + self.strength * OF_MARGIN * typical * lacking)

    def farthest(self, steps: Floats, most: Floats) -> Floats:
        """Return how far from real rows those may be that cost less than `most`, at these steps from the factual."""
        left = (most - steps) * (1.0 + 1e-9) + 1e-9  # a rounding more, since what costs as much is found out later
        return self.plausibility.typical_distance + left / (self.strength * OF_NEARNESS)

    def harm(self, scores: npt.NDArray[np.generic], without: npt.NDArray[np.generic]) -> Floats:
        """Return by how much changes make the decision worse: how much farther inside the scores `without` them are."""
        if self.margins is None:
            return np.zeros(scores.size)
        now, otherwise = self.margins.inside(scores), self.margins.inside(without)
        return np.subtract(otherwise, now, out=np.zeros(scores.size), where=otherwise > now + ROUNDING)
