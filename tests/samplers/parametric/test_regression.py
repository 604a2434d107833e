"""Missing targets and missing givens of the parametric samplers."""

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.rng import RowStreams
from mcce.samplers.parametric.design import Design
from mcce.storage.learned import get_state, set_state
from tests.samplers.parametric.problem import SAMPLERS, encode, frame_with_missing, kinds_of


@pytest.mark.parametrize("sampler", [s for s in SAMPLERS if not s.proper], ids=repr)
def test_missing_targets_follow_a_separate_regression(sampler):
    for kind in kinds_of(sampler):
        frame, x = frame_with_missing(kind)
        given, target = encode(frame)
        fitted = sampler.clone().fit(given, target)
        drawn = fitted.sample(given, RowStreams.from_seed(1, len(frame)))
        for rows in (x > 0, x <= 0):
            share, observed = np.isnan(drawn[rows]).mean(), np.isnan(target.values[rows]).mean()
            # four standard errors; a logit in x smooths the step at 0
            assert abs(share - observed) < 4 * np.sqrt(0.25 / rows.sum()) + 0.05
        assert fitted.supports(given, drawn).all()


def test_missing_givens_have_an_indicator_and_a_level():
    frame, _ = frame_with_missing("numeric")
    given, _ = encode(frame)
    design = Design.read(given, keep_constants=False)
    x = design.matrix(given)
    missing = np.isnan(given.matrix)
    assert x.shape[1] == 4
    np.testing.assert_array_equal(x[:, 1], missing[:, 0])
    np.testing.assert_array_equal(x[:, 3], missing[:, 1])
    assert (x[missing[:, 0], 0] == 0).all()


def test_given_first_missing_when_drawing_takes_mean_and_base_level():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(5, 1, 50), "f": rng.choice(["u", "v"], 50), "y": rng.normal(size=50)})
    given, target = encode(frame)
    fitted = mcce.NormSampler().fit(given, target)
    at = type(given)(given.features, np.array([[np.nan, np.nan], [frame["x"].mean(), 0.0]]))
    predicted = fitted.predict(at)
    assert predicted[0] == pytest.approx(predicted[1], abs=1e-12)


def test_all_targets_missing():
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": [np.nan, np.nan]})
    given, target = encode(frame)
    fitted = mcce.NormRankSampler().fit(given, target)
    assert np.isnan(fitted.sample(given, RowStreams.from_seed(1, 2))).all()
    assert fitted.supports(given, np.array([np.nan, 1.0])).tolist() == [True, False]
    assert fitted.log_density(given, np.array([np.nan, 1.0])).tolist() == [0.0, -np.inf]
    restored = set_state(mcce.NormRankSampler(), get_state(fitted))
    assert np.isnan(restored.sample(given, RowStreams.from_seed(1, 2))).all()


def test_density_of_missing_and_levels_sums_to_one():
    frame, _ = frame_with_missing("categorical")
    given, target = encode(frame)
    fitted = mcce.PolyregSampler().fit(given, target)
    each = [np.exp(fitted.log_density(given, np.full(len(frame), v))) for v in (0.0, 1.0, 2.0, 3.0, np.nan)]
    np.testing.assert_allclose(np.sum(each, axis=0), 1.0, atol=1e-12)
