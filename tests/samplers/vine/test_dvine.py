"""Pair copulas of points and intervals compared with the library's conditional functions."""

import numpy as np
import pytest
from scipy import stats

from tests.extras import NO_VINE

pv = pytest.importorskip("pyvinecopulib", reason=NO_VINE)

from mcce.samplers.vine.dvine import SETS, DVine, Pair, joined  # noqa: E402

FAMILIES = {
    "gaussian": [0.6],
    "student": [-0.5, 4.0],
    "clayton": [2.0],
    "gumbel": [2.0],
    "frank": [-3.0],
    "joe": [2.0],
    "indep": [],
}


def pair_of(name, types, rotation=0):
    parameters = np.array([[each] for each in FAMILIES[name]]) if FAMILIES[name] else np.empty((0, 0))
    types = list(types)
    bicop = pv.Bicop(family=getattr(pv.families, name), rotation=rotation, parameters=parameters, var_types=types)
    return Pair(bicop, tuple(each == "d" for each in types))


def intervals(kind, n=400):
    """Return points, or intervals of which some begin at 0, end at 1, or are extremely narrow."""
    ends = np.sort(np.random.default_rng(ord(kind)).random((2, n)), axis=0)
    if kind == "c":
        return ends[0], ends[0]
    ends[0, :80], ends[1, 60:120] = 0.0, 1.0
    ends[0, 120:160] = ends[1, 120:160] - 1e-8
    ends[0, 160:180] = ends[1, 160:180]
    return ends[0], ends[1]


@pytest.mark.parametrize("types", ["cc", "cd", "dc", "dd"])
@pytest.mark.parametrize(("name", "rotation"), [*((name, 0) for name in FAMILIES), ("clayton", 90), ("joe", 270)])
def test_both_functions_match_the_library(name, rotation, types):
    pair = pair_of(name, types, rotation)
    one, other = intervals(types[0]), tuple(np.roll(each, 30) for each in intervals(types[1]))
    first, second = pair.both(one, other)
    for k in range(2):
        # the library moves shares of 0 and 1 inwards by 1e-10, and divides by the remainder
        expected = pair.bicop.hfunc1(joined(one, (other[k], other[k])))
        np.testing.assert_allclose(first[k], expected, atol=1e-7)
        expected = pair.bicop.hfunc2(joined((one[k], one[k]), other))
        np.testing.assert_allclose(second[k], expected, atol=1e-7)
        np.testing.assert_array_equal(pair.second(one[k], other), second[k])


def test_ends_are_exact():
    pair = pair_of("clayton", "dd")
    low, high = np.array([0.0, 0.3, 0.0]), np.array([1.0, 1.0, 0.4])
    share = np.array([0.2, 0.7, 0.5])
    np.testing.assert_array_equal(pair.second(np.zeros(3), (low, high)), 0.0)
    np.testing.assert_allclose(pair.second(np.ones(3), (low, high)), 1.0, rtol=1e-15)
    assert pair.second(share, (low, high))[0] == 0.2  # the other is unknown
    by_formula = (share**-2.0 + high**-2.0 - 1.0) ** -0.5
    below = np.array([0.0, (0.7**-2.0 + 0.3**-2.0 - 1.0) ** -0.5, 0.0])
    np.testing.assert_allclose(pair.second(share, (low, high)), (by_formula - below) / (high - low), rtol=1e-13)


@pytest.mark.parametrize("families", ["gaussian", "parametric"])
def test_fit_matches_that_of_the_library(families):
    """Pair copulas of whole vines of points and intervals, fitted by the library at once."""
    rng = np.random.default_rng(0)
    u = stats.norm.cdf(rng.multivariate_normal(np.zeros(4), 0.4 + 0.6 * np.eye(4), 600))
    discrete = np.array([True, False, True, False])
    below = np.where(discrete, np.floor(4 * u) / 4, u)
    upto = np.where(discrete, below + 0.25, u)
    fitted = DVine.fit((below, upto), discrete, families)
    controls = pv.FitControlsVinecop(
        family_set=[getattr(pv.families, name) for name in SETS[families]],
        parametric_method="mle" if families == "gaussian" else "itau",
    )
    theirs = pv.Vinecop.from_data(
        np.asfortranarray(np.hstack([upto, below])),
        controls,
        structure=pv.DVineStructure([1, 2, 3, 4]),
        var_types=["d" if each else "c" for each in discrete],
    )
    pairs = [theirs.get_pair_copula(tree, edge) for tree in range(3) for edge in range(3 - tree)]
    assert [pair.family.name for pair in pairs] == list(fitted.families)
    for pair, parameters in zip(pairs, fitted.parameters):
        # Kendall's tau depends on rounding where values are tied
        np.testing.assert_allclose(parameters, pair.parameters, rtol=1e-6 if families == "gaussian" else 0.01)
