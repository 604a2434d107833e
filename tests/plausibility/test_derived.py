"""Formulas of derived columns: rounded like the training rows, ordered, stored, and satisfied."""

import math
import re
from decimal import ROUND_FLOOR, ROUND_HALF_UP, ROUND_UP, Decimal

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import InputError
from mcce.exceptions import MCCEWarning
from mcce.plausibility.derived import Formula, fit_derived, fit_formula, fit_formulas, order_formulas, with_functions
from mcce.plausibility.relations import Relations, derived_relation, keep_relations
from mcce.storage.state import from_state, to_state
from mcce.table import Schema
from tests.plausibility.related_tables import rng


def bank(n=600, seed=1):
    r = rng(seed)
    X = pd.DataFrame(
        {
            "rent": r.integers(300, 2000, n),
            "instalment": r.integers(0, 900, n),
            "income": r.integers(1500, 9000, n),
            "card_used": r.integers(0, 4000, n),
            "card_limit": 500 * r.integers(1, 20, n),
            "applied_on": pd.Timestamp("2023-01-01") + pd.to_timedelta(r.integers(0, 700, n), unit="D"),
            "savings": r.gamma(2, 3000, n).round(),
        }
    )
    X["hired_on"] = X["applied_on"] - pd.to_timedelta(r.integers(10, 9000, n), unit="D")
    X["dti"] = ((X["rent"] + X["instalment"]) / X["income"]).round(2)
    X["utilisation_pct"] = np.floor(100 * X["card_used"] / X["card_limit"])
    X["job_years"] = [
        a.year - h.year - ((a.month, a.day) < (h.month, h.day)) for a, h in zip(X["applied_on"], X["hired_on"])
    ]
    X["in_debt"] = X["dti"] > 0.5
    return X


FORMULAS = {
    "in_debt": "dti > 0.5",
    "dti": "(rent + instalment) / income",
    "job_years": "years(applied_on - hired_on)",
    "utilisation_pct": "100 * card_used / card_limit",
}
EXACT = {"half up": ROUND_HALF_UP, "floor": ROUND_FLOOR, "ceil": ROUND_UP}


@pytest.mark.parametrize("decimals", [0, 1, 2])
@pytest.mark.parametrize("rounding", ["half even", *EXACT])
def test_rounding_follows_the_training_rows(rounding, decimals):
    r = rng(3)
    X = pd.DataFrame({"a": r.integers(0, 4000, 500), "b": r.choice([8, 16, 40, 200], 500)})
    unit = Decimal(1).scaleb(-decimals)
    exact = [Decimal(a) / Decimal(b) for a, b in X[["a", "b"]].to_numpy().tolist()]
    X["c"] = [float(each.quantize(unit, EXACT[rounding])) for each in exact] if rounding in EXACT else None
    if rounding == "half even":
        X["c"] = (X["a"] / X["b"]).round(decimals)
    for expression in ("a / b", lambda frame: frame["a"] / frame["b"]):
        formula = fit_formula("c", expression, X)
        assert (formula.exceptions, formula.inputs) == (0, ("a", "b"))
        again = formula.compute(X[["a", "b"]], Schema.from_data(X))
        assert again.tolist() == X["c"].tolist()


def test_truncation_is_distinguished_from_rounding_down():
    X = pd.DataFrame({"a": np.arange(-300, 300)})
    X["b"] = [math.trunc(a / 7) for a in X["a"]]
    assert fit_formula("b", "a / 7", X).says == "b == trunc(a / 7)"


@pytest.mark.parametrize(
    ("given", "suggested", "divisor"),
    [
        ("years(applied_on - hired_on)", "days(applied_on - hired_on) / 365.25", 365.25),
        ("months(applied_on - hired_on) + 1", "(days(applied_on - hired_on) / 30.4375) + 1", 30.4375),
    ],
)
def test_fractional_years_are_suggested_if_completed_years_disagree(given, suggested, divisor):
    X = bank()
    days = (X["applied_on"] - X["hired_on"]).dt.days
    X["since"] = (days / divisor + given.endswith("+ 1")).round(1)
    X.loc[3, "since"] = 99.0
    schema = Schema.from_data(X)
    with pytest.warns(MCCEWarning, match=f"counts completed .* training rows agree with '{re.escape(suggested)}'"):
        fit_derived({"since": given}, X, schema, [])
    with pytest.warns(MCCEWarning, match=r"1 of 600 .* disagree.*correct these rows\.$"):
        fit_derived({"since": suggested}, X, schema, [])


def test_formulas_of_a_bank():
    X = bank()
    schema = Schema.from_data(X)
    formulas = {each.target: each for each in fit_formulas(FORMULAS, X, schema)}
    assert list(formulas).index("dti") < list(formulas).index("in_debt")
    assert [each.exceptions for each in formulas.values()] == [0] * 4
    assert formulas["utilisation_pct"].says == "utilisation_pct == floor(100 * card_used / card_limit)"
    assert formulas["dti"].says == "dti == (rent + instalment) / income"
    assert formulas["in_debt"].says == "in_debt == (dti > 0.5)"
    assert formulas["job_years"].inputs == ("applied_on", "hired_on")
    for name, each in formulas.items():
        assert each.compute(X, schema).tolist() == X[name].tolist()


def test_inconsistent_rows_are_counted_and_named():
    X = bank().set_index(pd.Index([f"r{k}" for k in range(600)]))
    X.loc[["r7", "r300"], "dti"] = [0.123, 9.99]
    X.loc["r20", "dti"] = np.nan
    formula = fit_formula("dti", FORMULAS["dti"], X)
    assert (formula.rows, formula.exceptions, formula.first) == (599, 2, ("r7", "r300"))
    assert formula.says == "dti == round((rent + instalment) / income, 2)"  # although one value has three decimals
    assert "2 of 599 training rows, 0.33%, disagree; the first: r7, r300" in str(formula)


def test_levels_are_computed():
    X = pd.DataFrame({"age": np.arange(60), "band": np.where(np.arange(60) >= 18, "adult", "minor")})
    for expression in ("if(age >= 18, 'adult', 'minor')", lambda X: np.where(X["age"] >= 18, "adult", "minor")):
        formula = fit_formula("band", expression, X)
        assert formula.exceptions == 0
        assert formula.compute(X[["age"]], Schema.from_data(X)).tolist() == X["band"].tolist()


def test_cycles_are_named():
    X = pd.DataFrame({"a": [1.0, 2, 3], "b": [2.0, 4, 6], "c": [3.0, 6, 9]})
    with pytest.raises(
        InputError, match=r"in a cycle: 'a' -> 'b' -> 'c' -> 'a'. Compute one of them from other columns"
    ):
        fit_formulas({"a": "b / 2", "b": "2 * c / 3", "c": "3 * a"}, X)
    with pytest.raises(InputError, match=r"in a cycle: 'b' -> 'b'"):
        order_formulas([Formula("b", "b == a", ("b",))])


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("2 * dti", "reads no column other than the one that it computes"),
        ("2", "reads no column other"),
        ("was(rent) / income", r"reads the factual \(was\); a derived column is computed from its row"),
        ("if rent > 2 then income == 3", r"is a rule; write if\(condition, a, b\)"),
        ("rentt / income", "'rentt' is not a column; did you mean 'rent'"),
        (3, "is 3; give a text such as"),
        (lambda X: X["nothing"], "raised KeyError: 'nothing'. It is called with a frame of the columns 'rent'"),
        (lambda X: 1, r"returned an array of shape \(\) for 50 rows; return one value for each"),
        (lambda X: np.ones(len(X)), "reads none of the other columns. Name those that it reads as inputs="),
        (lambda X: X["rent"].astype(str) + "x", "are not numbers"),
    ],
)
def test_invalid_formulas_raise(expression, said):
    with pytest.raises(InputError, match=said):
        fit_formula("dti", expression, bank(60))


def test_undefined_results_are_missing():
    X = pd.DataFrame({"a": [1.0, -1.0, np.nan, 2.0], "b": [0.0, 9.0, np.nan, math.log(2)]})
    formula = fit_formula("b", "log(a)", X)
    assert (formula.rows, formula.exceptions, formula.first) == (3, 1, (1,))
    assert formula.compute(X, Schema.from_data(X)).isna().tolist() == [False, True, True, False]


def test_texts_are_stored_and_functions_are_passed_again():
    X = bank(200)
    schema = Schema.from_data(X)
    ratio = lambda frame: (frame["rent"] + frame["instalment"]) / frame["income"]  # noqa: E731
    for expression in (FORMULAS["dti"], ratio):
        formula = fit_formula("dti", expression, X)
        stored = from_state(to_state(Relations((derived_relation(formula),), True)))
        again = from_state(to_state(formula))
        assert (again, stored[0]) == (formula, derived_relation(formula))
        if expression is ratio:
            with pytest.raises(
                InputError, match="is computed by a Python function, which is not stored; give it again"
            ):
                again.compute(X, schema)
            again = again.with_function(ratio)
            (given,) = with_functions([stored[0].formula], {"dti": ratio})
            assert given.function is ratio
        assert again.compute(X, schema).tolist() == X["dti"].tolist()


@pytest.mark.parametrize("as_function", [False, True])
def test_derived_column_is_computed_for_candidates(as_function):
    X = bank()
    schema = Schema.from_data(X)
    given = dict(FORMULAS)
    if as_function:
        given["dti"] = lambda frame: (frame["rent"] + frame["instalment"]) / frame["income"]
    formulas = fit_formulas(given, X, schema)
    kept = keep_relations(Relations(tuple(map(derived_relation, formulas)), True), schema, ())
    names = list(schema.names)
    assert {names[j] for j in kept.determined} == set(FORMULAS)
    factuals = schema.encode(X.head(50)).matrix
    rows = factuals.copy()
    rows[:, names.index("rent")] = 1000
    rows[:, names.index("hired_on")] = factuals[0, names.index("hired_on")]
    found = schema.decode(kept.complete(rows, factuals))
    dti = ((1000 + found["instalment"]) / found["income"]).round(2)
    inside = dti.between(X["dti"].min(), X["dti"].max())
    assert (found["dti"] == dti)[inside].all()
    assert inside.sum() > 40
    assert (found["in_debt"] == (dti > 0.5))[inside].all()
    stays = X["utilisation_pct"].head(50)
    assert (found["utilisation_pct"] == stays).all()
    born = X["hired_on"][0]
    years = [a.year - born.year - ((a.month, a.day) < (born.month, born.day)) for a in found["applied_on"]]
    assert found["job_years"].tolist() == years
    assert kept.of_factuals(factuals).hold(kept.complete(rows, factuals), np.arange(50))[inside.to_numpy()].all()
    assert not kept.of_factuals(factuals).hold(rows, np.arange(50)).all()


@pytest.mark.slow
def test_answers_satisfy_formulas_given_as_relations():
    X = bank()
    score = lambda rows: rows["savings"] / 9000 - rows["dti"] - rows["utilisation_pct"] / 200 + rows["job_years"] / 50  # noqa: E731
    explainer = mcce.MCCE(score, decision=(0.3, np.inf), fixed=["applied_on"], random_state=1)
    explainer.fit(X, relations=fit_formulas(FORMULAS, X))
    found = explainer.explain(X[score(X) < 0.3].head(20), sparse=True, n_samples=200).frame
    assert len(found) == 20
    assert (found["dti"] == ((found["rent"] + found["instalment"]) / found["income"]).round(2)).all()
    assert (found["utilisation_pct"] == np.floor(100 * found["card_used"] / found["card_limit"])).all()
    assert (found["in_debt"] == (found["dti"] > 0.5)).all()
