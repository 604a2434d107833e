"""The state of every built-in sampler is arrays and JSON and restores an equivalent sampler."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import mcce
from mcce import InputError, NotFittedError, SamplerError, Within
from mcce.rng import RowStreams
from mcce.storage.learned import get_state, set_state
from mcce.storage.state import from_state, to_state
from mcce.table import Schema
from mcce.testing.samplers import through_json
from tests.extras import HAS_VINE

SAMPLERS = [
    mcce.CartSampler(),
    mcce.CartSampler(dialect="rpart", cp=1e-3),
    mcce.CtreeSampler(),
    mcce.CartSampler(honest=True, proper=True),
    mcce.ForestSampler(n_trees=3),
    mcce.ForestSampler(n_trees=2, pooling="trees"),
    mcce.CartSampler(smoothing="density"),
    mcce.EmpiricalSampler(),
    mcce.BoostingSampler(n_quantiles=3, max_trees=5),
    mcce.MarginalSampler(),
    mcce.MixtureSampler(max_components=2),
    mcce.StackSampler(["ctree", "parametric"], n_folds=2),
    mcce.NormSampler(),
    mcce.GaussianSampler(),
    mcce.NormSampler(transform="cuberoot"),
    mcce.NormBootSampler(),
    mcce.LassoNormSampler(),
    mcce.MidastouchSampler(),
    mcce.LdaSampler(),
    mcce.LassoLogregSampler(n_folds=2, n_penalties=2),
    mcce.NormRankSampler(),
    mcce.NormRankSampler(smoothing="density", proper=True),
    mcce.PmmSampler(),
    mcce.PmmSampler(smoothing="density"),
    mcce.LogregSampler(proper=True),
    mcce.PolyregSampler(),
    mcce.PolrSampler(),
    mcce.ParametricSampler(),
    mcce.CatallSampler(n_groups=2),
    mcce.NestedSampler(),
    mcce.GaussianCopulaSampler(particles=3),
    *([mcce.VineSampler(families="gaussian", max_givens=2)] if HAS_VINE else []),
]


def make_table(kind, *, missing):
    """Return givens of every kind, under non-text labels, and a target that depends on them."""
    rng = np.random.default_rng(7)
    x, n = rng.normal(size=250), 250
    frame = pd.DataFrame(
        {
            "x": x,
            7: pd.Categorical(rng.integers(0, 3, n), ordered=True),
            ("job", 1): np.array([True, "cook", ("a", 2)], dtype=object)[rng.integers(0, 3, n)],
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 90, n), unit="D"),
        }
    )
    y = pd.Series((3.0 * x + rng.normal(size=n)).round(1))
    if kind != "numeric":
        y = pd.cut(y, [-99, -2, 0, 2, 99])
        y = y if kind == "ordered" else y.cat.as_unordered()
    if missing:
        y = y.mask(rng.random(n) < 0.2)
        frame["x"] = frame["x"].mask(rng.random(n) < 0.2)
    frame["y"] = y
    return Schema.from_data(frame).encode(frame)


def is_quick(place, sampler, kind, missing):
    """Return whether this is the quick case of a sampler: the next kind of each, with missing values if supported."""
    if isinstance(sampler, mcce.GaussianCopulaSampler):
        return kind == "ordered"
    kinds = [each for each in ("ordered", "numeric", "categorical") if each in sampler.handles]
    if getattr(sampler, "smoothing", None) and not isinstance(sampler, mcce.CartSampler):
        return False  # all share the smoothing of donors
    if isinstance(sampler, mcce.BoostingSampler) or "density" in repr(sampler):
        return kind == kinds[-1] and not missing
    return kind == kinds[place % len(kinds)] and missing == sampler.handles_missing


CASES = [
    pytest.param(sampler, kind, missing, marks=[pytest.mark.nightly] * (not is_quick(place, sampler, kind, missing)))
    for place, sampler in enumerate(SAMPLERS)
    for kind in ("numeric", "categorical", "ordered")
    for missing in (False, True)
    if kind in sampler.handles and (sampler.handles_missing or not missing)
]


@pytest.mark.parametrize(("sampler", "kind", "missing"), CASES, ids=str)
def test_sampler_restored_from_state_is_equivalent(sampler, kind, missing):
    table = make_table(kind, missing=missing)
    given, values = table.first(4), table.matrix[:, 4]
    fitted = sampler.clone().fit(given, table.column(4))
    again = set_state(sampler.clone(), through_json(get_state(fitted)))
    whole = from_state(to_state(fitted))
    assert repr(whole) == repr(fitted)
    may = np.arange(250) % 2 == 0
    within = Within(levels=np.tile([True, False, True, True], (250, 1)), missing=may)
    within = Within(low=np.zeros(250), missing=may) if kind == "numeric" else within

    def done_by(one):
        yield one.sample(given, RowStreams.from_seed(3, 250))
        found = one.sample_within(given, RowStreams.from_seed(4, 250), within)
        yield from (found.rejected, found.values)
        yield one.sample(given, RowStreams.from_seed(4, 250), within)
        yield one.supports(given, values)
        if getattr(sampler, "smoothing", None) is None:
            yield one.log_density(given, values)

    expected = list(done_by(fitted))
    for restored in (again, whole):
        for found, known in zip(done_by(restored), expected, strict=True):
            np.testing.assert_array_equal(found, known)
        if getattr(sampler, "smoothing", None) is None:
            assert restored.base_measure() == fitted.base_measure()
        if hasattr(type(sampler), "tree"):
            assert str(restored.tree) == str(fitted.tree)
            assert str(restored.missing_tree) == str(fitted.missing_tree)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=repr)
def test_unfitted_sampler_has_no_state(sampler):
    with pytest.raises(NotFittedError, match="is not fitted; call fit"):
        get_state(sampler.clone())
    assert repr(from_state(to_state(sampler))) == repr(sampler)


def test_refit_discards_the_earlier_fit():
    table = make_table("numeric", missing=True)
    with_gaps = mcce.PmmSampler().fit(table.first(4), table.column(4))
    table = make_table("numeric", missing=False)
    complete = mcce.PmmSampler().fit(table.first(4), table.column(4))
    with_gaps.unknown_ = 1
    set_state(with_gaps, get_state(complete))
    assert not hasattr(with_gaps, "unknown_")
    drawn = [s.sample(table.first(4), RowStreams.from_seed(1, 250)) for s in (with_gaps, complete)]
    np.testing.assert_array_equal(*drawn)


def test_estimator_has_no_state():
    table = make_table("numeric", missing=False)
    sampler = mcce.EstimatorSampler(LinearRegression()).fit(table.first(4), table.column(4))
    with pytest.raises(SamplerError, match="holds a scikit-learn estimator, which cannot be written as arrays"):
        get_state(sampler)
    with pytest.raises(InputError, match=r"is EstimatorSampler\(.*which has no state: .*scikit-learn estimator"):
        to_state(sampler)


class Label:
    def __repr__(self):
        return "Label()"


def test_label_that_cannot_be_stored_is_named():
    frame = pd.DataFrame({Label(): [1.0, 2.0, 3.0], "y": [1.0, 2.0, 3.0]})
    table = Schema.from_data(frame).encode(frame)
    sampler = mcce.CartSampler().fit(table.first(1), table.column(1))
    with pytest.raises(SamplerError, match=r"CartSampler.given_features_ is a tuple; .*\[0\].name is Label\(\)"):
        get_state(sampler)
