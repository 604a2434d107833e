"""Simulated bank loans, from a process whose true probability of default is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce._utils import Floats, Ints, check_count, check_number
from mcce.datasets.base import Dataset
from mcce.rng import resolve_seed

EDUCATION = ["compulsory", "upper secondary", "bachelor", "master"]
EMPLOYMENT = ["employed", "public sector", "self-employed", "unemployed", "retired"]
HOUSING = ["rent", "own", "with parents"]
SEX = ["female", "male"]
YOUNGEST = np.array([16, 18, 21, 23])  # age at which each education is completed
STATED = [
    "education",
    "employment",
    "years_employed",
    "salary",
    "housing",
    "savings",
]  # by the applicant: may be missing

SALARY_OF = {"employed": 0.0, "public sector": -0.05, "self-employed": 0.05, "unemployed": -0.75, "retired": -0.45}
RISK_OF = {
    "employment": {"employed": 0.0, "public sector": -0.3, "self-employed": 0.4, "unemployed": 0.6, "retired": -0.2},
    "housing": {"rent": 0.2, "own": -0.2, "with parents": 0.0},
}


def load_loans(n: int = 3000, *, missing: float = 0.0, random_state: int | None = 0) -> Dataset:
    r"""Simulate applicants for a bank loan, and who defaulted.

    The bank grants a loan if the predicted probability of default is at most 0.1. The paper's four features (age, sex,
    salary, defaulted_last_year) are joined by six more. Education and sex affect the default only through salary,
    employment and years_employed.

    Parameters
    ----------
    n : int
        Number of applicants.
    missing : float
        Share of the values stated by the applicant (education, employment, years_employed, salary, housing, savings)
        that are missing, completely at random.
    random_state : int, optional
        Seed of the simulation.

    Returns
    -------
    Dataset
        ``y`` is the boolean ``default``, ``fixed`` age and sex, ``decision`` (0, 0.1), and ``model`` a fitted logistic
        regression.

    Notes
    -----
    With :math:`\sigma(t) = 1/(1 + e^{-t})`, :math:`s = \log(\text{salary} / 50000)`, :math:`a = \text{age}`,
    education coded :math:`e = 0, \dots, 3`, and :math:`\varepsilon` standard normal, :math:`U` uniform:

    - age: :math:`\lfloor 18 + 62 B \rfloor` with :math:`B \sim \text{Beta}(1.7, 2.4)`
    - sex: one half each
    - education: :math:`\varepsilon - 0.01 (a - 40)` cut at -0.9, 0.4 and 1.2; at most upper secondary before 21 and
      bachelor before 23
    - employment: retired with probability :math:`\sigma((a - 66)/1.5)` from 55 on; the others unemployed (0.10, 0.07,
      0.04, 0.03 by education), self-employed (0.12), in the public sector (0.20; from bachelor on 0.30) or employed
    - years_employed: 0 without a job, else :math:`\lfloor U^{1.5} (a - a_e) \rfloor` with :math:`a_e` = 16, 18, 21, 23
    - salary: :math:`\exp(10.2 + 0.22 e + 0.55 (1 - ((a - 50)/32)^2) + 0.006\,\text{years\_employed} +
      0.08\,[\text{male}] + m + \tau \varepsilon)` to the nearest 100, at least 8000; :math:`m` depends on employment
      (0, -0.05, 0.05, -0.75, -0.45), :math:`\tau` is 0.55 for the self-employed, else 0.32
    - defaulted_last_year: with probability :math:`\sigma(-2.1 - 0.8 s - 0.025 (a - 40))`
    - housing: with parents with probability :math:`0.9\,\sigma((24 - a)/2.5)`, else own with probability
      :math:`\sigma(-0.2 + 0.05 (a - 40) + s)`, else rent
    - savings: 0 with probability :math:`\sigma(-0.9 - 1.2 s - 0.02 (a - 40) + 0.8\,\text{defaulted\_last\_year})`,
      else :math:`0.2\,\text{salary}\,\exp(0.02 (a - 40) + \varepsilon)` to the nearest 100, at least 100
    - loan_amount: :math:`0.35\,\text{salary}\,\exp(0.6 \varepsilon)` to the nearest 500, from 1000 to 300000
    - default: with the probability of `true_default_probability`

    Examples
    --------
    >>> from mcce.datasets import load_loans
    >>> loans = load_loans(1000)
    >>> list(loans.X)[:4]
    ['age', 'sex', 'education', 'employment']
    """
    check_count(n, "n")
    check_number(missing, "missing", 0.0, 1.0, below_high=True)
    rng = np.random.default_rng(abs(resolve_seed(random_state)))
    X = _simulate(rng, n)
    y = pd.Series(rng.random(n) < true_default_probability(X), name="default")
    if missing:
        X[STATED] = X[STATED].mask(rng.random((n, len(STATED))) < missing)
    description = (
        "Simulated applicants for a bank loan; the response says who defaulted, and the bank grants a loan if the "
        "predicted probability of default is at most 0.1."
    )
    return Dataset(X, y, ["age", "sex"], (0.0, 0.1), description)


def _simulate(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Draw the columns, each given those before it."""
    age = np.floor(18 + 62 * rng.beta(1.7, 2.4, n)).astype(np.int64)
    male = rng.integers(0, 2, n)
    education = np.searchsorted([-0.9, 0.4, 1.2], rng.standard_normal(n) - 0.01 * (age - 40))
    education = np.minimum(education, np.where(age < 21, 1, np.where(age < 23, 2, 3)))
    employment = _simulate_employment(rng, age, education)
    years = np.floor(rng.random(n) ** 1.5 * (age - YOUNGEST[education])).astype(np.int64) * (employment <= 2)
    log_salary = (
        10.2
        + 0.22 * education
        + 0.55 * (1 - ((age - 50) / 32) ** 2)
        + 0.006 * years
        + 0.08 * male
        + np.array(list(SALARY_OF.values()))[employment]
        + np.where(employment == 2, 0.55, 0.32) * rng.standard_normal(n)
    )
    salary = np.maximum(_round(np.exp(log_salary), 100), 8000)
    s = np.log(salary / 50_000)
    defaulted = rng.random(n) < _sigmoid(-2.1 - 0.8 * s - 0.025 * (age - 40))
    is_at_home = rng.random(n) < 0.9 * _sigmoid((24 - age) / 2.5)
    is_owner = rng.random(n) < _sigmoid(-0.2 + 0.05 * (age - 40) + s)
    saves = rng.random(n) >= _sigmoid(-0.9 - 1.2 * s - 0.02 * (age - 40) + 0.8 * defaulted)
    savings = np.maximum(_round(0.2 * salary * np.exp(0.02 * (age - 40) + rng.standard_normal(n)), 100), 100) * saves
    loan = np.clip(_round(0.35 * salary * np.exp(0.6 * rng.standard_normal(n)), 500), 1000, 300_000)
    return pd.DataFrame(
        {
            "age": age,
            "sex": pd.Categorical.from_codes(male, pd.Index(SEX)),
            "education": pd.Categorical.from_codes(education, pd.Index(EDUCATION), ordered=True),
            "employment": pd.Categorical.from_codes(employment, pd.Index(EMPLOYMENT)),
            "years_employed": years,
            "salary": salary,
            "defaulted_last_year": defaulted,
            "housing": pd.Categorical.from_codes(np.where(is_at_home, 2, np.where(is_owner, 1, 0)), pd.Index(HOUSING)),
            "savings": savings,
            "loan_amount": loan,
        }
    )


def _simulate_employment(rng: np.random.Generator, age: Ints, education: Ints) -> Ints:
    """Draw codes of `EMPLOYMENT`: first who is retired, then what the others do."""
    retired = rng.random(len(age)) < np.where(age >= 55, _sigmoid((age - 66) / 1.5), 0.0)
    unemployed = np.array([0.10, 0.07, 0.04, 0.03])[education]
    public = np.where(education >= 2, 0.30, 0.20)
    u = rng.random(len(age))
    bounds = np.column_stack([unemployed, unemployed + 0.12, unemployed + 0.12 + public])
    works = np.array([3, 2, 1, 0])[(u[:, None] >= bounds).sum(axis=1)]
    return np.where(retired, 4, works)


def true_default_probability(X: pd.DataFrame) -> Floats:
    r"""Return the probability with which each applicant of `load_loans` defaults.

    Notes
    -----
    With :math:`s = \log(\text{salary}/50000)`,

    .. math::
        \begin{array}{rl}
        \text{logit}\, p = -1.7 &- 2.6 s + 1.1\,\text{defaulted last year} + 0.6 \log(\text{loan amount}/15000) \\
        &- 0.12 \log(1 + \text{savings}/1000) - 0.03 \min(\text{years employed}, 15) \\
        &- 0.01 (\text{age} - 40) + r_\text{employment} + r_\text{housing}
        \end{array}

    where :math:`r_\text{employment}` is 0 employed, -0.3 public sector, 0.4 self-employed, 0.6 unemployed, -0.2
    retired, and :math:`r_\text{housing}` is 0.2 rent, -0.2 own, 0 with parents.

    Examples
    --------
    >>> from mcce.datasets import load_loans, true_default_probability
    >>> true_default_probability(load_loans(100).X.assign(salary=90_000)).shape
    (100,)
    """
    number: dict[str, Any] = {name: X[name].to_numpy(dtype=np.float64) for name in X.select_dtypes(["number", "bool"])}
    risk = sum(X[name].astype(object).map(risks).to_numpy(dtype=np.float64) for name, risks in RISK_OF.items())
    return _sigmoid(
        -1.7
        - 2.6 * np.log(number["salary"] / 50_000)
        + 1.1 * number["defaulted_last_year"]
        + 0.6 * np.log(number["loan_amount"] / 15_000)
        - 0.12 * np.log1p(number["savings"] / 1000)
        - 0.03 * np.minimum(number["years_employed"], 15)
        - 0.01 * (number["age"] - 40)
        + risk
    )


def _sigmoid(t: npt.ArrayLike) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-np.asarray(t, dtype=np.float64))))


def _round(values: Floats, unit: int) -> Ints:
    return (np.rint(values / unit) * unit).astype(np.int64)
