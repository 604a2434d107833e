"""The criticism of one conditional: its scores on new rows, tests, and regions of misfit.

1. Mean scores. Skill is 1 - score / score of the marginal, which predicts each row by the values of all others: half of
   the mean distance of two values (CRPS), the share of pairs that differ (Brier score).
2. Sharpness is the mean distance of two draws divided by that of two values: 1 for the marginal, 0 for a point.
3. Tests of the shape of the PITs, of levels and point masses (`mcce.judging.calibration`), and of regions of the givens
   (`mcce.judging.regions`). The p-value of a feature is that of the smallest of its k p-values, 1 - (1 - smallest)^k.
4. Over the features, p-values are adjusted by Holm's method: if all conditionals are right, the probability of
   rejecting any is at most the level.

The finding in one sentence:

5. A conditional that no test rejects at the level, adjusted for the number of features, passes.
6. Otherwise each test with a p-value of at most the level is described: the shape by its largest component, levels by
   the one with the largest difference, the region by the difference from other rows.
7. A conditional that predicts worse than the marginal is reported, rejected or not.
8. For a rejected conditional a sampler is suggested, chosen by the training values: twopart for a point mass at the
   smallest value, beta for shares, gamma for positive numbers, else quantile; a regression for levels.
9. If the misfit is in a region, the suggested formula has a term for it: the interaction of two columns, or a spline of
   one. A spread that is too wide or too narrow in a region concerns the distribution, and needs no term.
10. `mcce.Auto` with several samplers is suggested for counts, for levels without a region, and if the rejected sampler
    is that of step 8. An existing formula is kept, and gets further terms.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mcce.base.arrays import Floats
from mcce.judging.calibration import LOCATION, Calibration, calibrate, smooth_test
from mcce.judging.regions import Failure, where_levels_fail, where_pit_fails
from mcce.judging.scores import Scores, mean_distance, missing_distance, score_levels
from mcce.rng import derive_key
from mcce.samplers.base import SAMPLERS
from mcce.samplers.parametric.formula import name_in_formula
from mcce.table import Feature, Table
from mcce.trees.nodes import text_of

WORSE = -0.01
MOST_COUNTS = 100  # larger whole numbers are amounts
REGRESSIONS, WITHOUT_FORMULA = ("logreg", "polyreg", "polr"), ("ctree", "mixture")
_FORMULA = re.compile(r"formula='([^']*)'")
UNSEEN, NOTABLE = 2.0, 3.0  # standard errors: no misfit inside; a misfit outside that is mentioned too


def sentence(found: FeatureCriticism, level: float) -> str:
    """Return the finding in one sentence (steps 5 to 7)."""
    words = _rejection_text(found, level) if found.p_adjusted <= level else _pass_text(found)
    if found.skill < WORSE:
        words += "; predicts worse than the marginal"
    return f"{found.name}: {words}"


def remedy(found: FeatureCriticism, level: float) -> str:
    """Return a sampler to try for a rejected conditional (steps 8 to 10), as a setting; "" if it passes."""
    if not found.p_adjusted <= level:
        return ""
    suited, term = _suited(found), _term(found, level)
    given = _FORMULA.search(found.sampler)
    formula = given[1] if given else ""
    tried = [name for name in suited if _is_tried(name, found)]
    if term and term not in formula and tried in ([], suited[:1]):
        formula = f"{formula or '~ .'} + {term}"
        left = suited if _is_count(found.feature) else suited[:1]
    elif tried or _is_count(found.feature) or not found.feature.is_numeric:
        left = [name for name in suited if name not in tried]
    else:
        left = suited[:1]
    samplers = [f"{name}({formula})" if formula and name not in WITHOUT_FORMULA else name for name in left]
    shown = repr(samplers[0]) if len(samplers) == 1 else f"mcce.Auto({samplers!r})"
    return f"sampler={{{found.name!r}: {shown}}}"


def _is_count(feature: Feature) -> bool:
    return feature.is_numeric and feature.grid.decimals == 0 and feature.low >= 0.0 and feature.high <= MOST_COUNTS


def _is_tried(name: str, found: FeatureCriticism) -> bool:
    """Return whether `name` is the rejected sampler; `parametric` includes the regressions of levels."""
    is_regression = name in REGRESSIONS and found.sampler.startswith("ParametricSampler")
    return found.sampler.startswith(f"{SAMPLERS.find(name).__name__}(") or is_regression


def _suited(found: FeatureCriticism) -> list[str]:
    """Return samplers that suit the values of a feature, the best guess first (step 8)."""
    feature = found.feature
    if not feature.is_numeric:
        regression = "polr" if feature.kind == "ordered" else "logreg" if feature.n_levels == 2 else "polyreg"
        return [regression, "ctree", "mixture"]
    low, high = feature.low, feature.high
    if _is_count(feature):
        return ["negbin", "quantile", "twopart"]
    if low >= 0.0 and bool((found.levels == low).any()):
        return ["twopart", "quantile"]
    if low > 0.0:
        return [*(["beta"] if high < 1.0 else ["gamma", "lognorm"]), "quantile"]
    return ["quantile", "mixture"]


def _term(found: FeatureCriticism, level: float) -> str:
    """Return the term for the region with the largest misfit (step 9); "" if no term would help."""
    if found.failure is None or not found.p_where <= level:
        return ""
    if found.pit is not None and found.failure.residual != LOCATION:
        return ""
    conditions = found.failure.conditions
    names = [name_in_formula(each.feature.name) for each in conditions]
    if not all(names):
        return ""
    if len(names) == 2:
        return ":".join(names)
    is_cut = conditions[0].sign in ("at most", "above")
    return f"bs({names[0]}, 4)" if is_cut and conditions[0].feature.is_numeric else ""


def _pass_text(found: FeatureCriticism) -> str:
    if np.isnan(found.p):
        return "nothing to test, it is constant"
    return f"passes ({p_text(found.p)})"


def _rejection_text(found: FeatureCriticism, level: float) -> str:
    """Return the findings of the significant tests in words (step 6)."""
    complaints = []
    shape = _shape(found) if found.p_shape <= level else ""
    levels = _levels(found) if found.p_levels <= level else ""
    if levels and (found.p_levels <= found.p_shape or not shape):
        complaints.append(levels)
    elif shape:
        complaints.append(shape)
    if found.p_where <= level and found.failure is not None:
        where = _where(found)
        same = complaints and where.startswith(f"{complaints[0]} where ")
        complaints = (
            [f"{complaints[0]}, most {where.removeprefix(f'{complaints[0]} ')}"] if same else [*complaints, where]
        )
    return "; ".join(complaints)


def _shape(found: FeatureCriticism) -> str:
    assert found.shape is not None
    most = int(np.abs(found.shape).argmax())
    return _word(most, float(found.shape[most])) if most < 2 else "of the wrong shape"


def _word(component: int, value: float) -> str:
    """Return the location or the spread of PITs in words."""
    if component == LOCATION:
        return "too low" if value > 0.0 else "too high"
    return "too narrow" if value > 0.0 else "too wide"


def _levels(found: FeatureCriticism) -> str:
    assert found.calibration is not None
    tested = found.calibration
    is_named = [0 <= column < found.levels.size for column in tested.columns]
    most = int((np.abs(tested.z) - np.where(is_named, 0.0, 0.5)).argmax())  # a named level is preferred
    if abs(tested.evenness) > abs(tested.z[most]):
        what = "point masses" if found.feature.is_numeric else "probabilities"
        return f"{what} too even" if tested.evenness > 0.0 else f"{what} too extreme"
    direction = "seldom" if tested.z[most] > 0.0 else "often"
    return (
        f"{cell_text(found, most)} too {direction} ({tested.drawn[most]:.0%} of draws, {tested.seen[most]:.0%} of rows)"
    )


def cell_text(found: FeatureCriticism, cell: int) -> str:
    """Return the name of a level or a number with point mass."""
    assert found.calibration is not None
    column = found.calibration.columns[cell]
    if column < 0:
        return "rare levels"
    if column >= found.levels.size:
        return "other numbers"
    value = float(found.levels[column])
    if np.isnan(value):
        return "missing"
    text = text_of(found.feature, value)
    return text if found.feature.is_numeric else f"'{text}'"


def _where(found: FeatureCriticism) -> str:
    """Return the misfit in the region in words, or the misfit outside if there is none inside."""
    assert found.failure is not None
    failure = found.failure
    if found.pit is None:
        direction = "seldom" if failure.inside_z > 0.0 else "often"
        return f"{cell_text(found, failure.residual)} too {direction} where {failure}"
    words, rest = _word(failure.residual, failure.inside_z), _word(failure.residual, failure.outside_z)
    if abs(failure.inside_z) < min(UNSEEN, abs(failure.outside_z)):
        return f"{rest} except where {failure}"
    also = words != rest and abs(failure.outside_z) > NOTABLE
    return f"{words} where {failure}" + (f", {rest} elsewhere" if also else "")


def p_text(p: float) -> str:
    """Return a p-value with two digits, or "p < 0.001"."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


NONE = float("nan")


@dataclass(frozen=True, eq=False)
class FeatureCriticism:
    """The criticism of one conditional.

    Attributes
    ----------
    feature, sampler : the feature, and the text of its sampler.
    n_rows : number of new rows.
    log_score : mean log score of the rows with positive density; NaN without a density.
    impossible : share of the rows that have density 0; NaN without a density.
    score : mean CRPS, or Brier score of unordered levels.
    skill : 1 - score / score of the marginal.
    sharpness : mean distance of two draws, divided by that of two values.
    pit, shape : the PITs, and c_1 to c_4 of the smooth test; None for unordered levels.
    calibration : observed levels or point masses compared with drawn ones; None for numbers without point mass.
    failure : the region of the givens with the largest misfit, whether significant or not; None without regions.
    p_shape, p_levels, p_where : p-values of the three tests; NaN for a test that does not apply.
    p, p_adjusted : p-value of the feature, and the one adjusted for the number of features.
    seconds : time that drawing took.
    levels : the encoded values that `calibration` counts, NaN for missing.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans().X[["age", "education", "salary"]]
    >>> chain = mcce.ChainModel(sampler="norm", fixed=["age", "education"], random_state=1).fit(X[:1500])
    >>> salary = chain.criticise(X[1500:])["salary"]
    >>> salary.n_rows, salary.p_adjusted < 0.05
    (1500, True)
    """

    feature: Feature
    sampler: str
    n_rows: int
    log_score: float
    impossible: float
    score: float
    skill: float
    sharpness: float
    pit: Floats | None
    shape: Floats | None
    calibration: Calibration | None
    failure: Failure | None
    p_shape: float
    p_levels: float
    p_where: float
    p: float
    seconds: float
    levels: Floats
    p_adjusted: float = NONE

    @property
    def name(self) -> Any:
        """The feature's name."""
        return self.feature.name


def criticise_feature(scores: Scores, given: Table, values: Floats, sampler: str, seed: int) -> FeatureCriticism:
    """Criticise a conditional by its scores on new rows, and the givens and values of these rows (steps 1 to 3)."""
    rng = np.random.default_rng(derive_key(seed, "where", scores.feature.name))
    calibration: Calibration | None = calibrate(scores.levels)
    if calibration is not None and np.isnan(calibration.p):
        calibration = None
    shape, p_shape = (None, NONE) if scores.pit is None else smooth_test(scores.pit)
    if scores.pit is not None:
        failure = where_pit_fails(given, scores.pit, rng)
    else:
        failure = None if calibration is None else where_levels_fail(given, calibration, rng)
    p_levels = NONE if calibration is None else calibration.p
    p_where = NONE if failure is None else failure.p
    marginal_score, marginal_spread = _marginal(scores, values)
    score = float(scores.from_draws.mean())
    log_score, impossible = _log_score(scores.log_score)
    return FeatureCriticism(
        feature=scores.feature,
        sampler=sampler,
        n_rows=values.size,
        log_score=log_score,
        impossible=impossible,
        score=score,
        skill=1.0 - score / marginal_score if marginal_score > 0.0 else NONE,
        sharpness=float(scores.spread.mean()) / marginal_spread if marginal_spread > 0.0 else NONE,
        pit=scores.pit,
        shape=shape,
        calibration=calibration,
        failure=failure,
        p_shape=p_shape,
        p_levels=p_levels,
        p_where=p_where,
        p=_smallest([p_shape, p_levels, p_where]),
        seconds=scores.seconds,
        levels=scores.levels.levels,
    )


def adjust(found: Sequence[FeatureCriticism]) -> list[FeatureCriticism]:
    """Return the criticisms with p-values adjusted by Holm's method (step 4); untested features are not counted."""
    adjusted = holm(np.array([each.p for each in found]))
    return [replace(each, p_adjusted=float(value)) for each, value in zip(found, adjusted)]


def holm(p: Floats) -> Floats:
    """Return p-values adjusted by Holm's method; missing ones are not counted."""
    adjusted = np.full(p.size, NONE)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(order.size, 0, -1)), 1.0)
    return adjusted


def _smallest(p_values: Sequence[float]) -> float:
    """Return the p-value of the smallest of some p-values (step 3)."""
    tested = [p for p in p_values if not np.isnan(p)]
    return 1.0 - (1.0 - min(tested)) ** len(tested) if tested else NONE


def _marginal(scores: Scores, values: Floats) -> tuple[float, float]:
    """Return the score of the marginal, and its spread (steps 1 and 2)."""
    if scores.pit is None:
        counts = np.bincount(scores.levels.observed, minlength=scores.levels.counts.shape[1])[None, :]
        differ = float(score_levels(counts, np.zeros(1, dtype=np.int64))[1][0])
        return differ, differ
    spread = mean_distance(values, missing_distance(scores.feature))
    return 0.5 * spread, spread


def _log_score(log_scores: Floats | None) -> tuple[float, float]:
    if log_scores is None:
        return NONE, NONE
    possible = np.isfinite(log_scores)
    return float(log_scores[possible].mean()) if possible.any() else -np.inf, float(1.0 - possible.mean())
