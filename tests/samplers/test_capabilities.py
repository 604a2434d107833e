"""The table of conditionals in the documentation matches the declarations and behaviour of the samplers.

Expected entries are read from the classes' attributes and parameters, and each declaration is tried out: a target of
each kind, with and without missing values, its density, a restricted draw.
"""

import inspect
import re
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import mcce
from mcce import ChainModel, EstimatorSampler, SamplerError, Within
from mcce.rng import RowStreams
from mcce.table import KINDS, Schema
from tests.extras import HAS_VINE

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "vignettes" / "choosing-conditionals.md"
ABSENT = () if HAS_VINE else ("vine",)
OURS = {
    name: kind
    for name, kind in mcce.available_samplers().items()
    if kind.__module__.startswith("mcce.") and name not in ABSENT
}
ESTIMATOR = "EstimatorSampler(estimator)"
STATED = {"bounds": {"x": (-4, 4), "y": (-6, 6)}, "levels": "schema", "missing": "schema"}
QUICK = {"boosting": {"n_quantiles": 3, "max_trees": 5}, "dp": {**STATED, "epsilon": 20, "testing_seed": 1}}
QUICK |= {"stack": {"candidates": ["cart", "parametric"], "n_folds": 2}}
N = 200


def read_table():
    """Return the rows of the table of samplers by name; a row may describe several."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("| name | draws |"))
    head = [cell.strip(" `") for cell in lines[first].strip("|").split("|")]
    rows = {}
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            return rows
        cells = dict(zip(head, (cell.strip() for cell in line.strip("|").split("|")), strict=True))
        rows |= dict.fromkeys(re.findall(r"`([^`]+)`", cells["name"]), cells)
    raise AssertionError("the table has no end")


TABLE = read_table()
of_every_sampler = pytest.mark.parametrize("name", [*OURS, ESTIMATOR])


def cell(name, column):
    return TABLE[name][column]


def make(name, kind):
    if name != ESTIMATOR:
        return OURS[name](**QUICK.get(name, {}))
    return EstimatorSampler(LinearRegression() if kind == "numeric" else LogisticRegression())


def frame_with(kind, gaps=False, numbers="any"):
    """Return a given `x` and a target `y` that depends on it, of numbers that the sampler models."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=N)
    y = x + rng.normal(size=N)
    if numbers == "counts":
        y = np.where(rng.random(N) < 0.2, 0, rng.negative_binomial(3, 1 / (1 + np.exp(x / 3))))
    elif numbers != "any":
        y = 1 / (1 + np.exp(-y))
    levels = pd.Categorical.from_codes(np.digitize(y, [-1, 1]), ["a", "b", "c"], ordered=kind == "ordered")
    frame = pd.DataFrame({"x": x, "y": y if kind == "numeric" else levels})
    return frame.mask(rng.random(frame.shape) < 0.2) if gaps else frame


def numbers_of(name):
    """Return which numbers a sampler models; the second part of a two-part model is positive."""
    return "positive" if name == "twopart" else getattr(OURS.get(name), "numbers", "any")


def kinds_of(name):
    return [kind for kind in KINDS if kind in (OURS[name] if name != ESTIMATOR else EstimatorSampler).handles]


@cache
def fitted(name, kind):
    """Return a sampler fitted in a chain to a target without missing values, the givens and the target."""
    frame = frame_with(kind, numbers=numbers_of(name))
    chain = ChainModel(sampler={"y": make(name, kind), "*": "cart"}, fixed=["x"]).fit(frame)
    table = chain.schema_.encode(frame)
    return chain.samplers_["y"], table.first(1), table.column(1)


def test_table_has_every_sampler():
    assert set(TABLE) - {'dialect="rpart"'} == {*OURS, *ABSENT, ESTIMATOR}


@of_every_sampler
def test_targets(name):
    handled = set(kinds_of(name))
    said = cell(name, "targets")
    if name == ESTIMATOR:
        assert said == "by the estimator"
    elif handled == set(KINDS):
        assert said == "all"
    elif handled == {"numeric"}:
        assert said == "numbers"
    elif handled == {"numeric", "ordered"}:
        assert said == "numbers and ordered levels"
    else:
        assert "levels" in said
        assert handled <= {"categorical", "ordered"}
    for kind in KINDS:
        if kind in handled:
            fitted(name, kind)
        else:
            with pytest.raises(SamplerError, match=f"cannot model 'y': it is {kind}"):
                fitted(name, kind)


@of_every_sampler
def test_missing_values(name):
    declared = (OURS[name] if name != ESTIMATOR else EstimatorSampler).handles_missing
    assert cell(name, "missing values") == ("yes" if declared else "no")
    for kind in kinds_of(name):
        frame = frame_with(kind, gaps=True, numbers=numbers_of(name))
        chain = ChainModel(sampler={"y": make(name, kind), "*": "cart"}, fixed=["x"], random_state=1)
        if declared:
            drawn = chain.fit(frame).sample(given=frame[["x"]])["y"]
            assert 0 < drawn.isna().mean() < 0.5
        else:
            with pytest.raises(SamplerError, match="does not handle missing values"):
                chain.fit(frame)


@of_every_sampler
def test_densities(name):
    said = cell(name, "density")
    for kind in kinds_of(name):
        sampler, given, target = fitted(name, kind)
        if name == ESTIMATOR and kind == "numeric":
            assert said == "classifiers"
            with pytest.raises(SamplerError, match="has no density"):
                sampler.log_density(given, target.values)
            continue
        assert said
        density = sampler.log_density(given, target.values)
        assert np.isfinite(density).mean() > 0.9
        if said == "probability":
            assert (density <= 0).all()


@of_every_sampler
def test_restricted_draws(name):
    assert cell(name, "restricted draws")
    for kind in kinds_of(name):
        sampler, given, _ = fitted(name, kind)
        within = Within(low=np.zeros(N)) if kind == "numeric" else Within(levels=np.tile([False, True, True], (N, 1)))
        drawn = sampler.sample(given, RowStreams.from_seed(1, N), within)
        possible = ~np.isnan(drawn)
        assert possible.mean() > 0.5  # a leaf may have no allowed donor
        assert within.take(np.flatnonzero(possible)).allows(drawn[possible]).all()


@of_every_sampler
def test_parameters(name):
    parameters = inspect.signature((OURS[name] if name != ESTIMATOR else EstimatorSampler).__init__).parameters
    proper, smoothing = "proper" in parameters, "smoothing" in parameters
    said = {(False, False): "", (True, False): "proper", (True, True): "both"}[proper, smoothing]
    assert TABLE[name]["proper, smoothing"] == said


def test_choices_of_parametric():
    two = frame_with("numeric").assign(
        y=lambda rows: pd.Categorical.from_codes(np.digitize(rows["y"], [0]), ["no", "yes"])
    )
    table = Schema.from_data(two).encode(two)
    chosen = [mcce.ParametricSampler().fit(table.first(1), table.column(1))]
    chosen += [fitted("parametric", kind)[0] for kind in KINDS]
    classes = {type(sampler.sampler_) for sampler in chosen}
    said = re.findall(r"`(\w+)`", TABLE["parametric"]["draws"])
    assert {OURS[name] for name in said} == classes
