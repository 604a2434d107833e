"""The privacy account: the spent part of a budget (epsilon, delta), by fit, and the remainder.

Two tables are neighbours if one has a row more than the other. A fit is (epsilon, delta)-differentially private if for
neighbours and any set of outcomes P(outcome) <= exp(epsilon) P'(outcome) + delta. Replacing a row removes one and adds
another, with twice the epsilon and (1 + exp(epsilon)) times the delta. A person with k rows has k times the epsilon,
and more than k times the delta.

1. Within a tree a row is in one leaf and one bin: all counts together cost as much as one (parallel composition).
2. Each tree and each feature uses every row: their costs add up (sequential composition).
3. With delta = 0 the epsilons add up. With delta > 0 costs are in rho of zero-concentrated differential privacy (Bun
   and Steinke 2016), which adds up too; epsilon of the discrete Laplace distribution costs at most rho = epsilon^2 / 2.
   rho implies (epsilon, delta) with (Canonne, Kamath and Steinke 2020, corollary 13)

       delta = min over a > 1 of  exp((a - 1)(a rho - epsilon)) (1 - 1 / a)^a / (a - 1),

   which is below the well-known epsilon = rho + 2 sqrt(rho log(1 / delta)).

Budgets and costs are fractions, so that shares add up exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import pandas as pd

from mcce.base.checks import is_number
from mcce.exceptions import InputError, spell
from mcce.privacy.noise import Mechanism
from mcce.storage.fields import require, stored
from mcce.storage.state import register, stateful

NOT_COVERED = (
    "the model explained, which is taken to answer row by row, and whatever it was trained on",
    "the rows that are explained",
    "what is stated as public: names and dtypes of columns, bounds, levels, decimals, which may be missing",
    "settings that were chosen by a look at the rows",
    "more rows of the same person, which count as more people",
    "whether the table has any rows: an explainer refuses an empty table, and fits to one row",
    "what a fit shows while it runs: its time, its progress, and errors of the model about a row",
    "other fits to the same rows, each of which has an account of its own",
    "figures from training rows that are given again, as in diagnose(training=...)",
)


def rational(value: Any, name: str, *, least: int = 0, included: bool = False) -> Fraction:
    """Return a parameter as the fraction of its decimals, 1/10 for 0.1; raise if it is not above `least`."""
    if isinstance(value, Fraction):
        found = value
    elif is_number(value) and math.isfinite(value):
        found = Fraction(repr(float(value))) if not isinstance(value, int) else Fraction(value)
    else:
        raise InputError(f"{name} is {spell(value)}; it must be a number above {least}.")
    if found < least or (found == least and not included):
        raise InputError(
            f"{name} is {spell(value)}; it must be a number {'of at least' if included else 'above'} {least}."
        )
    return found


def delta_of(rho: float, epsilon: float) -> float:
    """Return the delta at which rho-zCDP is (epsilon, delta)-differentially private (step 3)."""
    if rho == 0.0:
        return 0.0

    def slope(a: float) -> float:
        return (2.0 * a - 1.0) * rho - epsilon + math.log1p(-1.0 / a)

    low, high = 1.0 + 1e-9, (epsilon + 1.0) / (2.0 * rho) + 2.0
    for _ in range(200):
        middle = (low + high) / 2.0
        low, high = (middle, high) if slope(middle) < 0.0 else (low, middle)
    a = high
    exponent = (a - 1.0) * (a * rho - epsilon) + a * math.log1p(-1.0 / a) - math.log(a - 1.0)
    return math.exp(min(exponent, 0.0))


def epsilon_of(rho: float, delta: float) -> float:
    """Return the least epsilon at which rho-zCDP is (epsilon, delta)-differentially private."""
    if rho == 0.0:
        return 0.0
    low, high = 0.0, rho + 2.0 * math.sqrt(rho * math.log(1.0 / delta))
    for _ in range(200):
        middle = (low + high) / 2.0
        low, high = (low, middle) if delta_of(rho, middle) <= delta else (middle, high)
    return high


@lru_cache(maxsize=256)
def rho_of(epsilon: float, delta: float) -> Fraction:
    """Return a rho, to seven digits the greatest, that is (epsilon, delta)-differentially private."""
    low, high = 0.0, epsilon + 1.0
    while delta_of(high, epsilon) <= delta:
        high *= 2.0
    for _ in range(200):
        middle = (low + high) / 2.0
        low, high = (middle, high) if delta_of(middle, epsilon) <= delta else (low, middle)
    scale = 10 ** max(0, 7 - math.floor(math.log10(low)) - 1)
    return Fraction(math.floor(low * scale), scale)


@stateful("privacy.Spent")
@dataclass(frozen=True)
class Spent:
    """A cost: epsilon of pure differential privacy, or rho of zCDP."""

    what: str = stored(str, longest=10_000)
    epsilon: Fraction | None = stored(Fraction, optional=True, default=None)
    rho: Fraction | None = stored(Fraction, optional=True, default=None)

    def check_state(self) -> None:
        """Raise unless a cost has exactly one of epsilon and rho."""
        require((self.epsilon is None) != (self.rho is None), "a cost has epsilon and rho, or neither")
        require((self.epsilon or self.rho or 0) > 0, "a cost is not above 0")

    @property
    def as_rho(self) -> Fraction:
        """The cost in rho."""
        if self.rho is not None:
            return self.rho
        assert self.epsilon is not None
        return self.epsilon**2 / 2


@stateful("PrivacyAccount")
@dataclass(frozen=True, repr=False)
class PrivacyAccount:
    """A budget of differential privacy, and its spent part.

    Parameters
    ----------
    epsilon : float
        The budget, for tables that differ in one row more or less. See `mcce.privacy.account`.
    delta : float
        The probability by which the bound may fail; 0 for never.
    spent : tuple
        The costs, see `spend`.
    for_tests : bool
        Whether noise came from a testing seed; the fit is then not private, regardless of the account.

    Examples
    --------
    >>> import mcce
    >>> account = mcce.PrivacyAccount(epsilon=1)
    >>> account = account.spend("salary", epsilon=0.3).spend("housing", epsilon=0.3)
    >>> float(account.epsilon_spent), float(account.left)
    (0.6, 0.4)
    >>> try:
    ...     account.spend("age", epsilon=0.5)
    ... except mcce.InputError as error:
    ...     print(error)
    'age' would cost epsilon = 0.5, and 0.4 of the budget of 1 is left; nothing was spent. Ask for less, or make an
    account with a larger budget.
    >>> two_fits = mcce.PrivacyAccount(epsilon=2).include(account, "first: ").include(account, "second: ")
    >>> two_fits.table["what"].tolist()
    ['first: salary', 'first: housing', 'second: salary', 'second: housing']
    """

    epsilon: Any = stored(Fraction)
    delta: Any = stored(Fraction, default=Fraction(0))
    spent: tuple[Spent, ...] = stored(tuple, of=Spent, default=())
    for_tests: bool = stored(bool, default=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", rational(self.epsilon, "epsilon"))
        object.__setattr__(self, "delta", rational(self.delta, "delta", included=True))
        if self.delta >= 1:
            raise InputError(f"delta is {float(self.delta):g}; it must be a probability from 0 to below 1.")

    def check_state(self) -> None:
        """Raise if more than the budget was spent."""
        require(self.left >= 0, "more was spent than the budget holds")

    @property
    def is_pure(self) -> bool:
        """Whether the bound never fails (delta is 0); costs are then counted in epsilon, else in rho."""
        return bool(self.delta == 0)

    @property
    def budget(self) -> Fraction:
        """The whole budget: epsilon, or the rho equivalent to (epsilon, delta)."""
        epsilon: Fraction = self.epsilon
        return epsilon if self.is_pure else rho_of(float(self.epsilon), float(self.delta))

    @property
    def left(self) -> Fraction:
        """The remainder of `budget`."""
        return self.budget - sum((self._cost(each) for each in self.spent), Fraction(0))

    @property
    def epsilon_spent(self) -> Fraction | float:
        """The epsilon of all costs, at the delta of the account."""
        if self.is_pure:
            return sum((self._cost(each) for each in self.spent), Fraction(0))
        return epsilon_of(float(sum(each.as_rho for each in self.spent)), float(self.delta))

    def spend(
        self, what: object, *, epsilon: float | Fraction | None = None, rho: float | Fraction | None = None
    ) -> PrivacyAccount:
        """Return the account after a cost in epsilon or rho; raise if it exceeds the remaining budget."""
        if (epsilon is None) == (rho is None):
            raise InputError(f"spend({what!r}) needs epsilon or rho, one of them.")
        cost = Spent(
            str(what),
            None if epsilon is None else rational(epsilon, "epsilon"),
            None if rho is None else rational(rho, "rho"),
        )
        wanted, left = self._cost(cost), self.left
        if wanted > left:
            unit = "epsilon" if self.is_pure else "rho"
            raise InputError(
                f"{cost.what!r} would cost {unit} = {float(wanted):.6g}, and {float(left):.6g} of the budget of "
                f"{float(self.budget):.6g} is left; nothing was spent. Ask for less, or make an account with a larger "
                "budget."
            )
        return replace(self, spent=(*self.spent, cost))

    def include(self, other: PrivacyAccount, what: str = "") -> PrivacyAccount:
        """Return the account after the costs of another one, for example of a second fit to the same rows."""
        account = replace(self, for_tests=self.for_tests or other.for_tests)
        for each in other.spent:
            account = account.spend(f"{what}{each.what}", epsilon=each.epsilon, rho=each.rho)
        return account

    def share(self, parts: int) -> Mechanism:
        """Return the mechanism that costs one of several equal parts of the budget."""
        part = self.budget / parts
        return Mechanism(epsilon=part) if self.is_pure else Mechanism(rho=part)

    @property
    def table(self) -> pd.DataFrame:
        """The costs, one row each."""
        unit = "epsilon" if self.is_pure else "rho"
        return pd.DataFrame({"what": [s.what for s in self.spent], unit: [float(self._cost(s)) for s in self.spent]})

    def __repr__(self) -> str:
        delta = "" if self.is_pure else f", delta = {float(self.delta):g}"
        lines = [
            f"PrivacyAccount: epsilon = {float(self.epsilon):g}{delta}, for one row more or less",
            f"spent {float(self.epsilon_spent):.6g} of it on {len(self.spent)} tables of noisy counts",
            "not covered: " + "; ".join(NOT_COVERED),
        ]
        if self.for_tests:
            lines.insert(1, "NOT PRIVATE: the noise is of a testing seed")
        return "\n".join(lines)

    def _cost(self, spent: Spent) -> Fraction:
        if not self.is_pure:
            return spent.as_rho
        if spent.epsilon is None:
            raise InputError(
                f"{spent.what!r} costs rho, which no epsilon without a delta is worth; make an account with a delta "
                "above 0."
            )
        return spent.epsilon


def _read_fraction(fields: dict[str, Any]) -> Fraction:
    top, bottom = fields["top"], fields["bottom"]
    longest = 400  # digits; more would be slow, and no account has them
    sound = all(isinstance(part, str) and part.isdecimal() and len(part) <= longest for part in (top, bottom))
    require(sound and int(bottom) > 0, "a fraction is not of two whole numbers")
    return Fraction(int(top), int(bottom))


def _write_fraction(value: Fraction) -> dict[str, Any]:
    if value < 0:
        raise InputError("which is negative.")
    return {"top": str(value.numerator), "bottom": str(value.denominator)}


register("Fraction", Fraction, _write_fraction, _read_fraction)
