"""What was found of a conditional, in one sentence.

1. One that no test accuses at the level, adjusted for the number of features, passes.
2. Otherwise each test with a p-value of at most the level says its word: the shape by the largest of its parts, levels
   by the one that is most unlike, the region by what differs there from elsewhere.
3. One that predicts worse than the marginal is said to do so, accused or not.
"""

from __future__ import annotations

import numpy as np

from mcce.criticism.feature import FeatureCriticism
from mcce.criticism.uniformity import LOCATION
from mcce.trees.texts import text_of

WORSE = -0.01
UNSEEN, NOTABLE = 2.0, 3.0  # standard errors: nothing wrong inside; something wrong outside, to be told too


def sentence(found: FeatureCriticism, level: float) -> str:
    """Return the sentence."""
    words = _accusation(found, level) if found.p_adjusted <= level else _acquittal(found)
    if found.skill < WORSE:
        words += "; predicts worse than the marginal"
    return f"{found.name}: {words}"


def _acquittal(found: FeatureCriticism) -> str:
    if np.isnan(found.p):
        return "nothing to test, it is always the same"
    return f"passes ({p_text(found.p)})"


def _accusation(found: FeatureCriticism, level: float) -> str:
    """Return what the tests say that found something (step 2)."""
    said = []
    shape = _shape(found) if found.p_shape <= level else ""
    levels = _levels(found) if found.p_levels <= level else ""
    if levels and (found.p_levels <= found.p_shape or not shape):
        said.append(levels)
    elif shape:
        said.append(shape)
    if found.p_where <= level and found.failure is not None:
        where = _where(found)
        same = said and where.startswith(f"{said[0]} where ")
        said = [f"{said[0]}, most {where.removeprefix(f'{said[0]} ')}"] if same else [*said, where]
    return "; ".join(said)


def _shape(found: FeatureCriticism) -> str:
    assert found.shape is not None
    most = int(np.abs(found.shape).argmax())
    return _word(most, float(found.shape[most])) if most < 2 else "of the wrong shape"


def _word(component: int, value: float) -> str:
    """Return what the location or the spread of PITs says."""
    if component == LOCATION:
        return "too low" if value > 0.0 else "too high"
    return "too narrow" if value > 0.0 else "too wide"


def _levels(found: FeatureCriticism) -> str:
    assert found.calibration is not None
    tested = found.calibration
    is_named = [0 <= column < found.levels.size for column in tested.columns]
    most = int((np.abs(tested.z) - np.where(is_named, 0.0, 0.5)).argmax())  # of two cells, the one with a name
    if abs(tested.evenness) > abs(tested.z[most]):
        what = "point masses" if found.feature.is_numeric else "probabilities"
        return f"{what} too even" if tested.evenness > 0.0 else f"{what} too extreme"
    seldom = "seldom" if tested.z[most] > 0.0 else "often"
    return f"{cell_text(found, most)} too {seldom} ({tested.drawn[most]:.0%} of draws, {tested.seen[most]:.0%} of rows)"


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
    """Return what is wrong in the region that explains most, or outside of it if it is wrong there alone."""
    assert found.failure is not None
    failure = found.failure
    if found.pit is None:
        seldom = "seldom" if failure.inside_z > 0.0 else "often"
        return f"{cell_text(found, failure.residual)} too {seldom} where {failure}"
    words, rest = _word(failure.residual, failure.inside_z), _word(failure.residual, failure.outside_z)
    if abs(failure.inside_z) < min(UNSEEN, abs(failure.outside_z)):
        return f"{rest} except where {failure}"
    also = words != rest and abs(failure.outside_z) > NOTABLE
    return f"{words} where {failure}" + (f", {rest} elsewhere" if also else "")


def p_text(p: float) -> str:
    """Return a p-value with two digits, or that it is very small."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"
