"""Sentences for given figures."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from mcce.judging.calibration import Calibration
from mcce.judging.feature import FeatureCriticism, p_text, sentence
from mcce.judging.regions import Condition, Failure
from mcce.table import Schema

X = pd.DataFrame({"age": np.arange(40.0), "home": ["own", "rent"] * 20, "salary": np.arange(40.0)})
AGE, HOME, SALARY = Schema.from_data(X).features
NONE = float("nan")
OLD, YOUNG = Condition(0, AGE, "above", 55.0), Condition(0, AGE, "at most", 20.0)


def said(feature=SALARY, shape=None, p_shape=NONE, failure=None, calibration=None, levels=(NONE,), **figures):
    found = FeatureCriticism(
        feature=feature,
        sampler="",
        n_rows=100,
        log_score=NONE,
        impossible=NONE,
        score=1.0,
        skill=figures.get("skill", 0.2),
        sharpness=0.8,
        pit=None if feature is HOME else np.full(100, 0.5),
        shape=None if shape is None else np.array(shape, dtype=float),
        calibration=calibration,
        failure=failure,
        p_shape=p_shape,
        p_levels=NONE if calibration is None else calibration.p,
        p_where=NONE if failure is None else failure.p,
        p=figures.get("p", 0.001),
        seconds=0.0,
        levels=np.array(levels),
        p_adjusted=figures.get("p", 0.001),
    )
    return sentence(found, 0.05)


def failing(inside_z, outside_z, *conditions, residual=1, p=0.001):
    return Failure(conditions or (OLD,), residual, p, np.full(100, True), inside_z, outside_z)


def levels(z, evenness=0.0, columns=(0, 1), p=0.001):
    shares = np.full(len(z), 1 / len(z))
    return Calibration(p, np.empty((0, len(z))), np.empty(0, dtype=int), columns, np.array(z), shares, shares, evenness)


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((5, 0, 1, 1), "too low"),
        ((-5, 4, 1, 1), "too high"),
        ((1, 5, 0, 0), "too narrow"),
        ((1, -5, 0, 0), "too wide"),
        ((1, -2, 5, 0), "of the wrong shape"),
    ],
)
def test_shape_is_described_by_its_largest_component(shape, words):
    assert said(shape=shape, p_shape=0.001) == f"salary: {words}"


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (failing(4, 1), "too narrow where age is above 55"),
        (failing(-4, 1), "too wide where age is above 55"),
        (failing(4, 1, residual=0), "too low where age is above 55"),
        (failing(4, -3.5), "too narrow where age is above 55, too wide elsewhere"),
        (failing(1, -5, OLD, YOUNG), "too wide except where age is above 55 and age is at most 20"),
    ],
)
def test_region_is_described_with_its_deviation(failure, words):
    assert said(failure=failure) == f"salary: {words}"


def test_overall_and_regional_deviation_is_stated_once():
    narrow = {"shape": (0, 5, 0, 0), "p_shape": 0.001}
    assert said(failure=failing(4, 2), **narrow) == "salary: too narrow, most where age is above 55"
    assert said(failure=failing(-4, 2), **narrow) == "salary: too narrow; too wide where age is above 55"
    assert said(failure=failing(4, 2, p=0.2), **narrow) == "salary: too narrow"


def test_levels_and_point_masses_are_named():
    assert said(HOME, calibration=levels([-4, 1]), levels=(0.0, 1.0, NONE)) == (
        "home: 'own' too often (50% of draws, 50% of rows)"
    )
    assert said(HOME, calibration=levels([1, 1], evenness=-4)) == "home: probabilities too extreme"
    assert said(calibration=levels([1, 1], evenness=4)) == "salary: point masses too even"
    zero_or_other = levels([4, -4.1], columns=(0, 2))
    assert said(calibration=zero_or_other, levels=(0.0, NONE)).startswith("salary: 0 too seldom (")
    assert said(calibration=levels([1, 4], columns=(0, 1)), levels=(0.0, NONE)).startswith("salary: missing too seldom")
    assert said(HOME, calibration=levels([1, 4], columns=(0, -1)), levels=(0.0, 1.0)).startswith(
        "home: rare levels too"
    )
    where = failing(-4, 1, residual=0)
    assert said(HOME, calibration=levels([1, 1], p=0.5), failure=where, levels=(0.0, 1.0)) == (
        "home: 'own' too often where age is above 55"
    )


def test_unrejected_feature_passes_and_may_predict_badly():
    assert said(p=0.43, shape=(5, 0, 0, 0), p_shape=0.001) == "salary: passes (p = 0.43)"
    assert said(p=0.43, skill=-0.2) == "salary: passes (p = 0.43); predicts worse than the marginal"
    assert said(p=NONE) == "salary: nothing to test, it is constant"


def test_small_p_values_are_abbreviated():
    assert (p_text(1e-9), p_text(0.0123)) == ("p < 0.001", "p = 0.012")


def test_criticism_is_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError, match="inside_z"):
        failing(1, 1).inside_z = 2
