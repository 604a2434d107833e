"""The mixture as a sampler: conformance, use in a chain, degenerate targets, errors."""

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import InputError
from mcce.rng import RowStreams
from mcce.samplers.mixture.model import Mixture, fit_mixture
from mcce.testing import CHECKS, GOODNESS_OF_FIT
from tests.marks import nightly_but_named
from tests.samplers.mixture.test_model import encode, frame_of

CONFORMING = mcce.MixtureSampler(max_components=2)  # one object: checks that only draw share its fits


# the others share the code of other samplers
KEPT = ("check_conditional", "check_missing", "check_sample_within", "check_log_density", "check_weights")


@pytest.mark.parametrize(
    "check", nightly_but_named([*CHECKS, *GOODNESS_OF_FIT], *KEPT), ids=lambda check: check.__name__
)
def test_conformance(check):
    check(CONFORMING, 0)


@pytest.mark.slow
def test_chain_has_one_mixture_of_all_its_columns():
    frame, _ = frame_of()
    chain = mcce.ChainModel(sampler="mixture", fixed=["x"], random_state=1).fit(frame)
    weights = [sampler.mixture_.weights.tolist() for sampler in chain.samplers_.values()]
    assert weights[0] == weights[1] == weights[2]
    assert [len(sampler.mixture_.columns) for sampler in chain.samplers_.values()] == [2, 3, 4]
    two = mcce.ChainModel(sampler="mixture", fixed=["x"], random_state=1, n_jobs=2).fit(frame)
    pd.testing.assert_frame_equal(two.sample(20), chain.sample(20))
    other = mcce.ChainModel(sampler=mcce.MixtureSampler(random_state=9), fixed=["x"], random_state=1).fit(frame)
    assert other.samplers_["y"].mixture_.weights.tolist() != weights[0]


@pytest.mark.parametrize(
    "values",
    [[5.0], [1.0, 2.0], [3.0] * 30, [np.nan] * 30, ["a"], ["a", "b"], [1.0, np.nan]],
    ids=["one row", "two rows", "constant", "all missing", "one level", "two levels", "one known"],
)
def test_small_and_constant_targets(values):
    n = len(values)
    frame = pd.DataFrame({"x": np.arange(n, dtype=float), "y": values})
    if isinstance(values[0], str):
        frame["y"] = pd.Categorical(values, ["a", "b"])
    given, target = encode(frame)
    fitted = mcce.MixtureSampler().fit(given, target)
    drawn = fitted.sample(given, RowStreams.from_seed(1, n))
    assert np.isin(drawn[~np.isnan(drawn)], target.values).all()
    assert np.isfinite(fitted.log_density(given, target.values)).all()
    assert fitted.supports(given, drawn).all()


def test_invalid_parameters_and_no_rows_raise():
    given, target = encode(frame_of(30)[0])
    with pytest.raises(InputError, match="max_components of MixtureSampler is 0"):
        mcce.MixtureSampler(max_components=0).fit(given, target)
    with pytest.raises(InputError, match=r"random_state is 0\.5"):
        mcce.MixtureSampler(random_state=0.5).fit(given, target)
    nothing = np.empty(0, dtype=np.int64)
    with pytest.raises(InputError, match="got no rows to learn 'z' from"):
        mcce.MixtureSampler().fit(given.take(nothing), type(target)(target.feature, target.values[nothing]))
    assert isinstance(fit_mixture(given, 1), Mixture)


def test_equal_givens_share_one_conditional(monkeypatch):
    given, target = encode(frame_of(60)[0])
    fitted = mcce.MixtureSampler(max_components=2).fit(given, target)
    repeated, streams = given.take(np.repeat(np.arange(60), 5)), RowStreams.from_seed(1, 300)
    alone = [fitted.sample(repeated.take(np.array([i])), streams.take(np.array([i])))[0] for i in range(0, 300, 7)]
    seen, conditional = [], Mixture.conditional
    monkeypatch.setattr(
        Mixture, "conditional", lambda self, rows, *args: seen.append(len(rows)) or conditional(self, rows, *args)
    )
    np.testing.assert_array_equal(fitted.sample(repeated, streams.take(np.arange(300)))[::7], alone)
    assert seen == [60]
