"""Tests shared by all parametric samplers: conformance, degenerate designs, state, use in a chain."""

import functools
import itertools

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import InputError, SamplerError
from mcce.rng import RowStreams
from mcce.samplers.parametric.design import Design
from mcce.storage.learned import get_state, set_state
from mcce.storage.state import take_out_arrays
from mcce.testing import CHECKS, GOODNESS_OF_FIT
from mcce.testing.samplers import through_json
from tests.marks import nightly_but
from tests.samplers.parametric.problem import SAMPLERS, encode, frame_with_missing, kinds_of, target_of

of_every_sampler = pytest.mark.parametrize("sampler", SAMPLERS, ids=repr)
KEPT = [s for s in SAMPLERS if not s.proper or type(s) is mcce.NormSampler]
# smoothing is tested in tests/samplers/donors, the lasso in test_lasso.py
LASSO = (mcce.LassoNormSampler, mcce.LassoLogregSampler)
KEPT = [s for s in KEPT if getattr(s, "smoothing", None) is None and not isinstance(s, LASSO)]


@pytest.mark.slow
@pytest.mark.parametrize("sampler", nightly_but(SAMPLERS, *KEPT), ids=repr)
def test_conformance(sampler):
    for check in (*CHECKS, *GOODNESS_OF_FIT):
        # a single draw of the parameters is calibrated only on average over draws
        if not (sampler.proper and check.__name__ in ("check_marginal", "check_conditional")):
            check(sampler, 0)


# ---- degenerate designs


def odd_frames():
    rng = np.random.default_rng(1)
    n = 30
    x = rng.normal(size=n)
    level = pd.Categorical.from_codes(rng.integers(0, 2, n), ["u", "v", "never"])
    unseen_first = pd.Categorical.from_codes(rng.integers(1, 3, n), ["never", "u", "v"])
    only = pd.Categorical(["only"] * n, categories=["only", "never"])
    wide = {f"x{j}": rng.normal(size=n) for j in range(n + 4)}
    return {
        "no givens": {},
        "constant": {"k": np.full(n, 5.0), "zero": np.zeros(n), "only": only},
        "collinear": {"x": x, "again": x, "twice": 2 * x + 3, "l": level, "l again": level},
        "unobserved levels": {"l": level, "m": unseen_first},
        "more columns than rows": wide,
        "wild scales": {"x": 1e12 * x, "small": 1e-12 * x, "year": 2000 + rng.integers(0, 2, n) * 1e-3},
        "outlier": {"x": np.where(np.arange(n) == 0, 1e8, x)},
        "separated": {"x": np.sort(x)},
    }


ODD_TARGETS = {
    "all levels": np.sort(np.arange(30) % 3),
    "one row a class": np.arange(4),
    "constant": np.full(30, 2),
    "one rare": (np.arange(30) == 7).astype(int),
}


@functools.cache
def encode_odd(design, targets, kind):
    codes = ODD_TARGETS[targets]
    columns = {name: column[: codes.size] for name, column in odd_frames()[design].items()}
    return encode(pd.DataFrame(columns, index=range(codes.size)).assign(y=target_of(kind, codes)))


@of_every_sampler
@pytest.mark.parametrize("design", nightly_but(odd_frames(), "collinear", "separated"))
def test_odd_designs_never_crash(sampler, design):
    for targets, kind in itertools.product(ODD_TARGETS, kinds_of(sampler)):
        given, target = encode_odd(design, targets, kind)
        fitted = sampler.clone().fit(given, target)
        drawn = fitted.sample(given, RowStreams.from_seed(1, given.n_rows))
        assert np.isfinite(drawn).all(), targets
        if kind != "numeric" or not isinstance(sampler, mcce.NormSampler):
            low, high = target.values.min(), target.values.max()
            assert ((drawn >= low) & (drawn <= high)).all(), targets
        assert fitted.supports(given, drawn).all(), targets
        if targets == "constant":
            assert (drawn == target.values[0]).all()


def test_one_row():
    for sampler in SAMPLERS:
        for kind in kinds_of(sampler):
            frame = pd.DataFrame({"x": [1.0], "f": ["a"], "y": target_of(kind, np.array([1]))})
            given, target = encode(frame)
            drawn = sampler.clone().fit(given, target).sample(given, RowStreams.from_seed(1, 1))
            assert drawn[0] == target.values[0]


def test_no_rows_raise():
    given, target = encode(pd.DataFrame({"x": [1.0], "y": [2.0]}))
    with pytest.raises(InputError, match="no rows to learn 'y' from"):
        mcce.NormSampler().fit(given.take(np.arange(0)), type(target)(target.feature, target.values[:0]))


def test_design_order_and_dummies():
    frame = pd.DataFrame(
        {
            "f": pd.Categorical(["b", "a", "c", "a"], categories=["a", "b", "c", "never"]),
            "x": [1.0, 2.0, 3.0, 4.0],
            "g": pd.Categorical(["lo", "hi", "hi", "lo"], categories=["lo", "hi"], ordered=True),
            "z": [0.5, 0.0, 1.0, 2.0],
            "y": [1.0, 2.0, 3.0, 4.0],
        }
    )
    given, _ = encode(frame)
    expected = [[1, 0.5, 1, 0, 0], [2, 0, 0, 0, 1], [3, 1, 0, 1, 1], [4, 2, 0, 0, 0]]
    design = Design.read(given, keep_constants=False)
    np.testing.assert_array_equal(design.matrix(given), expected)
    coef = np.arange(10.0).reshape(2, 5)
    predicted = design.predict(given, np.array([10.0, 20.0]), coef)
    np.testing.assert_allclose(predicted, np.array([10.0, 20.0]) + np.array(expected) @ coef.T)


def test_unobserved_level_counts_as_base_and_constant_keeps_its_value():
    frame = pd.DataFrame(
        {
            "f": pd.Categorical(["a", "b"] * 20, categories=["a", "b", "never"]),
            "k": 5.0,
            "y": np.random.default_rng(0).normal(size=40) + np.arange(40) % 2,
        }
    )
    given, target = encode(frame)
    fitted = mcce.NormSampler().fit(given, target)
    matrix = np.array([[0.0, 5.0], [2.0, 5.0], [0.0, -100.0]])
    predicted = fitted.predict(type(given)(given.features, matrix))
    assert predicted[0] == predicted[1] == predicted[2]


# ---- parameters and state


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (mcce.NormSampler(proper="yes"), "proper of NormSampler is 'yes'; it must be True or False"),
        (mcce.PmmSampler(n_donors=0), "n_donors of PmmSampler is 0; it must be a whole number of at least 1"),
        (mcce.NormRankSampler(smoothing="spline"), "smoothing of NormRankSampler is 'spline'; it must be None"),
        (mcce.ParametricSampler(smoothing="spline"), "smoothing of ParametricSampler is 'spline'"),
        (mcce.NormSampler(random_state=1.5), "random_state is 1.5"),
    ],
)
def test_invalid_parameters_raise(sampler, message):
    given, target = encode(pd.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2.0]}))
    with pytest.raises(InputError, match=message):
        sampler.fit(given, target)


def test_targets_of_the_wrong_kind_raise():
    given, target = encode(pd.DataFrame({"x": [1.0, 2.0], "y": ["a", "b"]}))
    for name in ("norm", "normrank", "pmm", "polr"):
        with pytest.raises(SamplerError, match="cannot model 'y': it is categorical"):
            mcce.available_samplers()[name]().fit(given, target)


@of_every_sampler
def test_state_contains_only_arrays_and_json_and_restores_everything(sampler):
    for kind in kinds_of(sampler):
        frame, _ = frame_with_missing(kind, n=300)
        given, target = encode(frame)
        fitted = sampler.clone().fit(given, target)
        state = through_json(get_state(fitted))
        restored = set_state(sampler.clone(), state)
        streams = [RowStreams.from_seed(1, 300) for _ in range(2)]
        np.testing.assert_array_equal(fitted.sample(given, streams[0]), restored.sample(given, streams[1]))
        np.testing.assert_array_equal(fitted.supports(given, target.values), restored.supports(given, target.values))
        if getattr(sampler, "smoothing", None) is None:
            np.testing.assert_array_equal(
                fitted.log_density(given, target.values), restored.log_density(given, target.values)
            )


def test_parametric_chooses_like_synthpop():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0]})
    targets = {
        "NormRankSampler": [1.0, 2.0, 3.0],
        "LogregSampler": ["a", "b", "a"],
        "PolyregSampler": ["a", "b", "c"],
        "PolrSampler": pd.Categorical(["a", "b", "a"], ordered=True),
    }
    for expected, values in targets.items():
        fitted = mcce.ParametricSampler(proper=True).fit(*encode(frame.assign(y=values)))
        assert type(fitted.sampler_).__name__ == expected
        assert fitted.sampler_.proper


# ---- in a chain


def test_in_a_chain_with_the_decision():
    loans = mcce.datasets.load_loans()
    X = loans.X
    decision = (X["salary"] > X["salary"].median()).to_numpy()
    sampler = {"salary": "normrank", "employment": "polyreg", "*": "cart"}
    chain = mcce.ChainModel(sampler=sampler, fixed=["age", "sex"], random_state=1).fit(X, decision=decision)
    wanted = chain.sample(n=2000, decision=True)
    unwanted = chain.sample(n=2000, decision=False)
    assert (wanted.dtypes == X.dtypes).all()
    assert wanted["salary"].isin(X["salary"]).all()
    observed = [X["salary"][decision].mean(), X["salary"][~decision].mean()]
    drawn = [wanted["salary"].mean(), unwanted["salary"].mean()]
    assert drawn[0] - drawn[1] > 0.7 * (observed[0] - observed[1])


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["parametric", mcce.ParametricSampler(proper=True, smoothing="density")], ids=repr)
def test_whole_chains(sampler):
    loans = mcce.datasets.load_loans()
    decision = np.arange(len(loans.X)) % 2 == 0
    chain = mcce.ChainModel(sampler=sampler, fixed=["age"], random_state=1).fit(loans.X, decision=decision)
    rows = chain.sample(n=300)
    again = mcce.ChainModel(sampler=sampler, fixed=["age"], random_state=1, n_jobs=1).fit(loans.X, decision=decision)
    pd.testing.assert_frame_equal(rows, again.sample(n=300))
    assert (rows.dtypes == loans.X.dtypes).all()


# ---- the chain's seed


def fitted_numbers(sampler):
    """Return all fitted arrays, concatenated."""
    arrays = []
    take_out_arrays(get_state(sampler), lambda array: arrays.append(np.ravel(array)) or {})
    return np.concatenate(arrays)


@pytest.mark.parametrize("sampler", [s for s in SAMPLERS if s.proper], ids=repr)
def test_proper_parameters_follow_the_chain_seed(sampler):
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 2 if isinstance(sampler, mcce.LogregSampler) else 3, 120)
    frame = pd.DataFrame({"x": codes + rng.normal(size=120), "y": target_of(kinds_of(sampler)[-1], codes)})

    def fit(seed, n_jobs=1):
        chain = mcce.ChainModel(sampler=sampler, fixed=["x"], random_state=seed, n_jobs=n_jobs)
        return fitted_numbers(chain.fit(frame).samplers_["y"])

    assert not np.array_equal(fit(1), fit(2), equal_nan=True)
    assert np.array_equal(fit(1), fit(1, n_jobs=2), equal_nan=True)
    alone, again = (fitted_numbers(sampler.clone().fit(*encode(frame))) for _ in range(2))
    assert np.array_equal(alone, again, equal_nan=True)


@pytest.mark.nightly
def test_coefficients_over_chain_seeds_follow_their_posterior():
    """Features have independent draws: coefficients over 300 chains have the covariance sigma^2 V, uncorrelated."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=80)
    frame = pd.DataFrame({"x": x, "a": x + rng.normal(size=80), "b": 2 * x + rng.normal(size=80)})
    drawn = {"a": [], "b": []}
    for seed in range(300):
        chain = mcce.ChainModel(
            sampler=mcce.NormSampler(proper=True), fixed=["x"], predictors={"b": ["x"]}, random_state=seed, n_jobs=1
        ).fit(frame)
        for name, values in drawn.items():
            values.append(chain.samplers_[name].coef_[1])
    design = np.column_stack([np.ones(80), x])
    for name, values in drawn.items():
        beta, rss = np.linalg.lstsq(design, frame[name], rcond=None)[:2]
        # sigma*^2 is rss over a chi-square with 78 degrees of freedom, of mean rss / 76
        sd = np.sqrt(rss[0] / 76 * np.linalg.inv(design.T @ design)[1, 1])
        assert np.mean(values) == pytest.approx(beta[1], abs=4 * sd / np.sqrt(300))
        assert np.std(values) == pytest.approx(sd, rel=4 / np.sqrt(600))
    assert abs(np.corrcoef(drawn["a"], drawn["b"])[0, 1]) < 4 / np.sqrt(300)
