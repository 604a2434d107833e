"""The account: composition and conversion compared with closed forms, the budget, storage and text."""

import math
from fractions import Fraction

import numpy as np
import pytest

import mcce
from mcce import InputError, PrivacyAccount
from mcce.privacy.account import Spent, delta_of, epsilon_of, rho_of
from mcce.storage.state import from_state, to_state


def test_epsilons_add_up_exactly():
    account = PrivacyAccount(epsilon=0.3)
    for k in range(3):
        account = account.spend(k, epsilon=0.1)
    assert account.left == 0  # as floats, 0.1 + 0.1 + 0.1 is more than 0.3
    assert account.epsilon_spent == Fraction(3, 10)
    with pytest.raises(InputError, match=r"'more' would cost epsilon = 1e-12, and 0 of the budget of 0.3 is left"):
        account.spend("more", epsilon=1e-12)


def test_shares_sum_to_the_whole():
    for parts in (3, 7, 13):
        account = PrivacyAccount(epsilon=1)
        share = account.share(parts)
        for k in range(parts):
            account = account.spend(k, epsilon=share.epsilon)
        assert account.left == 0


def test_rho_adds_up_including_laplace():
    account = PrivacyAccount(epsilon=1, delta=1e-6)
    account = account.spend("gaussian", rho=0.01).spend("laplace", epsilon=0.1)
    assert account.budget - account.left == Fraction(1, 100) + Fraction(1, 200)
    assert account.epsilon_spent == pytest.approx(epsilon_of(0.015, 1e-6))
    with pytest.raises(InputError, match=r"'much' would cost rho = 0.02, and 0.0093"):
        account.spend("much", rho=0.02)


@pytest.mark.parametrize("rho", [1e-3, 0.05, 0.5, 3.0])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 8.0])
def test_delta_is_minimal_over_all_orders(rho, epsilon):
    """Corollary 13 of Canonne, Kamath and Steinke (2020), on a grid of orders."""
    a = 1.0 + np.geomspace(1e-4, 1e5, 200_001)
    log_delta = (a - 1) * (a * rho - epsilon) + a * np.log1p(-1 / a) - np.log(a - 1)
    assert delta_of(rho, epsilon) == pytest.approx(math.exp(min(log_delta.min(), 0.0)), rel=1e-5)


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_conversions_are_inverse_and_below_the_known_bound(epsilon, delta):
    rho = rho_of(epsilon, delta)
    assert delta_of(float(rho), epsilon) <= delta
    assert delta_of(float(rho) * (1 + 1e-5), epsilon) > delta
    assert epsilon_of(float(rho), delta) == pytest.approx(epsilon, rel=1e-5)
    known = (math.sqrt(math.log(1 / delta) + epsilon) - math.sqrt(math.log(1 / delta))) ** 2  # Bun and Steinke 2016
    assert known < rho < epsilon


def test_gaussian_conversion_is_above_the_analytic_delta():
    """The analytic delta of one Gaussian of variance 1 / (2 rho) (Balle and Wang 2018) is below that of its rho."""
    from scipy.stats import norm

    for rho, epsilon in ((0.02, 1.0), (0.1, 1.0), (0.5, 3.0)):
        s = math.sqrt(1 / (2 * rho))
        exact = norm.cdf(0.5 / s - epsilon * s) - math.exp(epsilon) * norm.cdf(-0.5 / s - epsilon * s)
        assert exact < delta_of(rho, epsilon) < 30 * exact


def test_two_fits_in_one_account():
    fit = PrivacyAccount(epsilon=1).spend("salary", epsilon=1)
    both = PrivacyAccount(epsilon=2).include(fit, "first fit: ").include(fit, "second fit: ")
    assert both.left == 0
    assert both.table["what"].tolist() == ["first fit: salary", "second fit: salary"]
    with pytest.raises(InputError, match="would cost epsilon = 1, and 0 of the budget of 2 is left"):
        both.include(fit)


def test_account_round_trips():
    account = PrivacyAccount(epsilon=0.1, delta=1e-7).spend("x", rho=Fraction(1, 3 * 10**7))
    again = from_state(to_state(account))
    assert again == account
    state = to_state(PrivacyAccount(epsilon=1).spend("x", epsilon=1))
    state["epsilon"] = to_state(Fraction(1, 2))
    with pytest.raises(InputError, match="more was spent than the budget holds"):
        from_state(state)
    with pytest.raises(InputError, match="a fraction is not of two whole numbers"):
        from_state({"type": "Fraction", "top": "1", "bottom": "0"})
    with pytest.raises(InputError, match="a cost has epsilon and rho, or neither"):
        from_state({**to_state(Spent("x", Fraction(1))), "epsilon": None})


def test_repr_of_an_account():
    text = repr(PrivacyAccount(epsilon=1, delta=1e-5).spend("x", rho=0.01))
    assert "epsilon = 1, delta = 1e-05, for one row more or less" in text
    assert "not covered: the model explained" in text
    assert "NOT PRIVATE" not in text
    assert "NOT PRIVATE: the noise is of a testing seed" in repr(PrivacyAccount(epsilon=1, for_tests=True))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"epsilon": 0}, "epsilon is 0; it must be a number above 0"),
        ({"epsilon": "1"}, "epsilon is '1'; it must be a number above 0"),
        ({"epsilon": math.inf}, "epsilon is inf; it must be a number above 0"),
        ({"epsilon": 1, "delta": -1e-9}, "delta is -1e-09; it must be a number of at least 0"),
        ({"epsilon": 1, "delta": 1}, "delta is 1; it must be a probability from 0 to below 1"),
    ],
)
def test_invalid_budgets(options, said):
    with pytest.raises(InputError, match=said):
        mcce.PrivacyAccount(**options)


def test_invalid_costs():
    account = PrivacyAccount(epsilon=1)
    with pytest.raises(InputError, match="needs epsilon or rho, one of them"):
        account.spend("x")
    with pytest.raises(InputError, match="costs rho, which no epsilon without a delta is worth"):
        account.spend("x", rho=0.1)
