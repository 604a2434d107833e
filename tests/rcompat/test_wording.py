"""Messages shown by R are in R syntax."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mcce import InputError, Interval, Not, OneOf
from mcce.rcompat import calls
from mcce.rcompat.wording import RDialect
from mcce.rng.r import RGenerator
from mcce.samplers import CartSampler
from mcce.wording import Either, Parameter, PythonOnly, Setting, Value, Values, call, entry
from tests.python_syntax import R_CALLS, find_python
from tests.rcompat.problem import people
from tests.rcompat.test_calls import OPTIONS, PlayedR, sent


def interval(**more: Any) -> dict[str, Any]:
    return {**OPTIONS["decision"], **more}


def one_of(*labels: Any) -> dict[str, Any]:
    return {"kind": "one_of", "labels": list(labels), "label": None}


def answering(answer: Any) -> dict[str, Any]:
    """An R model with a constant answer."""
    column = np.asarray(answer, dtype="<f8")
    reply = {"kind": "double", "values": column.tobytes(), "states": b"", "n_rows": column.size, "error": None}
    return {"ask": lambda *_: reply}


def sampler(name: str, **parameters: Any) -> dict[str, Any]:
    return {"sampler": name, "parameters": parameters}


FITS: dict[str, dict[str, Any]] = {  # invalid options of mcce() in R
    "fixed of nothing": {"fixed": ["agee"]},
    "fixed twice": {"fixed": ["age", "age"]},
    "all fixed": {"fixed": list(people().columns)},
    "fixed is a text": {"fixed": "age"},
    "sampler unknown": {"sampler": "carrt"},
    "sampler of another kind": {"sampler": "norm"},
    "sampler for a fixed feature": {"sampler": {"age": "cart", "*": "cart"}},
    "sampler without the rest": {"sampler": {"income": "cart"}},
    "min_leaf": {"sampler": sampler("cart", min_leaf=0.0)},
    "min_leaf a text": {"sampler": sampler("cart", min_leaf="few")},
    "cp": {"sampler": sampler("cart", cp="small")},
    "dialect": {"sampler": sampler("cart", dialect="rpartt")},
    "honest": {"sampler": sampler("cart", honest="yes")},
    "n_trees": {"sampler": sampler("forest", n_trees=0.0)},
    "max_features": {"sampler": sampler("forest", max_features="all")},
    "mincriterion": {"sampler": sampler("ctree", mincriterion=2.0)},
    "a parameter of another sampler": {"sampler": {"income": sampler("pmm", k=0.0), "*": "cart"}},
    "n_donors": {"sampler": {"income": sampler("pmm", n_donors=0.0), "*": "cart"}},
    "bandwidth": {"sampler": {"income": sampler("empirical", bandwidth=-1.0), "*": "cart"}},
    "learning_rate": {"sampler": sampler("boosting", learning_rate=0.0)},
    "random_state": {"random_state": 1.5},
    "n_jobs": {"n_jobs": 0.0},
    "condition_on_decision": {"condition_on_decision": "yes"},
    "condition_on_decision is missing": {"condition_on_decision": None},
    "visit_sequence unknown": {"visit_sequence": "dta"},
    "visit_sequence of one": {"visit_sequence": ["income"]},
    "visit_sequence of a fixed one": {"visit_sequence": ["age", "job", "grade", "owns", "town", "income"]},
    "visit_sequence of nothing": {"visit_sequence": ["jobb", "grade", "owns", "town", "income"]},
    "nobody wanted": {"decision": interval(low=900.0, high=1000.0)},
    "closed": {"decision": interval(closed="all")},
    "interval upside down": {"decision": interval(low=1.0, high=0.5)},
    "interval empty": {"decision": interval(low=1.0, high=1.0, closed="left")},
    "interval of a missing end": {"decision": interval(low=math.nan)},
    "margin": {"decision": interval(margin=-1.0)},
    "margin too wide": {"decision": interval(margin=5.0)},
    "label": {"decision": interval(label=" ")},
    "class of a score": {"decision": one_of("yes")},
    "no class": {"decision": one_of()},
    "class twice": {"decision": one_of("yes", "yes")},
    "names": {"names": {"label": {"age": "Age"}}},
    "labels of nothing": {"names": {"labels": {"agee": "Age"}}},
    "labels alike": {"names": {"labels": {"age": "Age", "income": "Age"}}},
    "labels of a number": {"names": {"labels": {"age": 3.0}}},
    "units of levels": {"names": {"units": {"job": "EUR"}}},
    "formats": {"names": {"formats": {"age": "abc"}}},
    "formats of dates": {"names": {"formats": {"income": "%d.%m.%Y"}}},
    "formats of a number": {"names": {"formats": {"income": 3.0}}},
    "formats of levels": {"names": {"formats": {"job": {"pilott": "flyer"}}}},
    "constraint without anything": {"constraints": [{"feature": "income"}]},
    "constraint unknown": {"constraints": [{"feature": "income", "lowest": 18.0}]},
    "constraint of no kind": {"constraints": [3.0]},
    "constraint in a list": {"constraints": [[{"feature": "income", "low": 1.0}]]},
    "rule": {"constraints": ["income >="]},
}
CALLS: dict[str, dict[str, Any]] = {  # invalid arguments of explain_mcce() in R
    "generate.K": {"generate_K": 0.0},
    "process.measures": {"process_measures": ["L3"]},
    "process.measures empty": {"process_measures": []},
    "process.return_best_k": {"process_return_best_k": 0.0},
    "c_int": {"c_int": [1.0, 0.5]},
    "c_int of three": {"c_int": [1.0, 2.0, 3.0]},
    "fixed_features": {"fixed_features": ["agee"]},
    "fixed_features all": {"fixed_features": ["age", "job", "income"]},
    "fit.autoregressive_model": {"fit_autoregressive_model": "rparrt"},
    "an unknown argument": {"generate_KK": 3.0},
    "minsplit": {"minsplit": "few"},
    "cp": {"cp": "small"},
    "control": {"control": 3.0},
    "fit.seed": {"fit_seed": 1e12},
}
EXPLAINS: dict[str, dict[str, Any]] = {  # invalid options of explain() in R
    "n_samples": {"n_samples": 0.0},
    "n_samples a text": {"n_samples": "many"},
    "n_samples missing": {"n_samples": None},
    "n_samples a flag": {"n_samples": True},
    "n_counterfactuals": {"n_counterfactuals": 0.0},
    "sparse": {"sparse": "yes"},
    "floor": {"sparse": True, "floor": 1.5},
    "floor a flag": {"sparse": True, "floor": True},
    "floor without sparse": {"floor": 0.2},
    "caution": {"sparse": True, "caution": -1.0},
    "caution without sparse": {"caution": 2.0},
    "diverse": {"diverse": True},
    "diverse and auto": {"diverse": True, "n_counterfactuals": 3.0, "n_samples": "auto"},
    "diverse a text": {"diverse": "yes"},
    "independent": {"independent": "yes"},
    "measures unknown": {"measures": ["L0", "gowerr"]},
    "measures empty": {"measures": []},
    "measures twice": {"measures": ["L0", "L0"]},
    "measures of numbers": {"measures": [3.0]},
    "measures without sparse": {"measures": ["plausibility"]},
    "weights unknown": {"feature_weights": {"agee": 2.0}},
    "weights negative": {"feature_weights": {"income": -2.0}},
    "weights all 0": {"feature_weights": {name: 0.0 for name in people().columns}},
    "weights a list": {"feature_weights": [1.0, 2.0]},
    "max_changes": {"max_changes": 0.0},
    "max_gower": {"max_gower": -1.0},
    "robust without noise": {"robust": 0.9},
    "robust": {"robust": 3.0},
    "low above high": {"constraints": [{"feature": "income", "low": 9.0, "high": 1.0}]},
    "levels of numbers": {"constraints": [{"feature": "income", "levels": ["a"]}]},
    "levels unknown": {"constraints": [{"feature": "job", "levels": ["pilott"]}]},
    "levels a text": {"constraints": [{"feature": "job", "levels": "pilot"}]},
    "levels empty": {"constraints": [{"feature": "job", "levels": []}]},
    "all levels never": {"constraints": [{"feature": "job", "never": ["pilot", "clerk", "cook"]}]},
    "direction": {"constraints": [{"feature": "income", "direction": "increas"}]},
    "direction without an order": {"constraints": [{"feature": "job", "direction": "increase"}]},
    "low without an order": {"constraints": [{"feature": "job", "low": "pilot"}]},
    "low a text": {"constraints": [{"feature": "income", "low": "much"}]},
    "step": {"constraints": [{"feature": "income", "step": -1.0}]},
    "step of levels": {"constraints": [{"feature": "job", "step": 2.0}]},
    "step too large": {"constraints": [{"feature": "income", "step": 1e6, "low": 1.0}]},
    "max_share": {"constraints": [{"feature": "income", "max_share": 3.0}]},
    "max_step": {"constraints": [{"feature": "income", "max_step": -3.0}]},
    "missing": {"constraints": [{"feature": "income", "missing": "yes"}]},
    "star": {"constraints": [{"feature": "*", "low": 3.0}]},
    "nothing left of the data": {"constraints": [{"feature": "income", "low": 1e6}]},
    "contradiction": {"constraints": ["income >= 1000 + age", "income <= 1"]},
    "rule of text": {"constraints": ["job >= 3"]},
    "rule of a level": {"constraints": ["job == 'pilott'"]},
    "constraint on a fixed feature": {"constraints": [{"feature": "age", "direction": "increase"}]},
    "k_anonymous": {"constraints": [{"k_anonymous": {"k": 1e6, "keys": ["age"]}}]},
    "k_anonymous of a text": {"constraints": [{"k_anonymous": {"k": 5.0, "keys": "age"}}]},
}


OF_MCCER = {"fixed_features": ["age"], "c_int": [0.6, 1.0], "fit_autoregressive_model": "rpart", "generate_K": 5.0}


def without(name: str) -> pd.DataFrame:
    return people().head(5).drop(columns=name)


TABLES: dict[str, Any] = {  # rows to explain that raise or warn
    "a column lacks": without("income"),
    "a column too many": people().head(5).assign(note="x"),
    "an unknown level in all": people().head(5).assign(job="baker"),
    "an unknown level in one": people().head(5).assign(town=["Rome", "Oslo", "Oslo", "Oslo", "Oslo"]),
    "text for numbers": people().head(5).assign(income="much"),
    "infinite": people().head(5).assign(income=math.inf),
    "missing": people().head(5).assign(age=[None, 20, 30, 40, 50]).astype({"age": "Int32"}),
    "far outside": people().head(5).assign(income=1e7),
    "fixed values unseen": people().head(5).assign(age=95),
}
TRAINING: dict[str, Any] = {  # training rows that raise or warn
    "no rows": people().head(0),
    "infinite": people().assign(income=math.inf),
    "an identifier": people().assign(passport=[f"P{i:05}" for i in range(300)]),
    "a level of one row": people().assign(town=["Rome", *people()["town"][1:]]),
    "facts": people().assign(previous_default=np.arange(300) % 2, sex=np.where(np.arange(300) % 3, "f", "m")),
    "a sum": people().assign(rent=np.arange(300) % 17 + 3.0).assign(total=lambda t: t["rent"] + t["income"]),
    "wide integers": people().assign(number=2.0**53 + 2.0 * np.arange(300)).astype({"number": "int64"}),
}


def shown(name: str, *arguments: Any) -> list[str]:
    """Return what R shows for a call."""
    outcome = calls.attempt(name, *arguments)
    reasons = (
        [] if outcome["value"] is None or name != "explain" else list(outcome["value"]["found"].unexplained["reason"])
    )
    return [*([] if outcome["error"] is None else [outcome["error"]]), *outcome["warnings"], *reasons]


def fitted(**options: Any) -> Any:
    data = people()
    answer = calls.attempt("fit", {"ask": PlayedR(data)}, sent(data), {**OPTIONS, **options})
    assert answer["error"] is None, answer["error"]
    return answer["value"]["fitted"]


def provoke() -> dict[str, list[str]]:
    """Return all that R shows, by action."""
    data = people()
    session = bytes(RGenerator(7).random_seed.astype("<i4").tobytes())
    said: dict[str, list[str]] = {}
    for name, options in FITS.items():
        said[f"fit: {name}"] = shown("fit", {"ask": PlayedR(data)}, sent(data), {**OPTIONS, **options})
    for name, table in TRAINING.items():
        said[f"train: {name}"] = shown("fit", {"ask": PlayedR(table)}, sent(table), OPTIONS)
    explainer = fitted()
    for name, options in EXPLAINS.items():
        options = {"n_samples": 20.0, **options}
        said[f"explain: {name}"] = shown("explain", explainer, sent(data.head(3)), options)
    few = data[["age", "job", "income"]]
    for name, options in CALLS.items():
        options = {"fixed_features": ["age"], "c_int": [0.6, 1.0], "fit_autoregressive_model": "rpart", **options}
        arguments = PlayedR(few), sent(few.head(3)), sent(few.iloc[3:]), options, session
        said[f"explain_mcce: {name}"] = shown("explain_mcce", *arguments)
    holes = few.assign(income=few["income"].where(few.index > 0))
    said["explain_mcce: missing"] = shown("explain_mcce", PlayedR(holes), sent(holes), sent(holes), OF_MCCER, session)
    said["explain_mcce: no training"] = shown("explain_mcce", PlayedR(few), sent(few), None, OF_MCCER, session)
    found = calls.attempt("explain", explainer, sent(data.head(20)), {"n_samples": 20.0})["value"]["found"]
    said["letter of nobody"] = shown("letter", found, 999.0)
    said["picture of nobody"] = shown("picture", found, "x.png", 999.0, 1.0, [1.0, 1.0, 72.0])
    explained = float(found.frame.index[0][0])
    said["picture of another rank"] = shown("picture", found, "x.png", explained, 7.0, [1.0, 1.0, 72.0])
    said["a damaged file"] = shown("restore_result", b"no file")
    said["a file of something else"] = shown("restore_explainer", {"ask": PlayedR(data)}, sent(data), b"no", 1.0)
    said["columns of a file"] = shown("columns_of_file", sent(few), bytes(calls.attempt("dump", explainer)["value"]))
    said["a model that stops"] = shown("fit", {"ask": lambda *_: {"error": "out of order"}}, sent(data), OPTIONS)
    said["a model of three values"] = shown("fit", answering([1.0, 2.0, 3.0]), sent(data), OPTIONS)
    said["a model of missing values"] = shown("fit", answering([math.nan] * 300), sent(data), OPTIONS)
    said["nobody is explained"] = shown(
        "explain", explainer, sent(data.head(9)), {"n_samples": 1.0, "max_changes": 1.0}
    )
    for name, table in TABLES.items():
        said[f"rows: {name}"] = shown("explain", explainer, sent(table), {"n_samples": 20.0})
    return said


@pytest.fixture(scope="module")
def said() -> dict[str, list[str]]:
    return provoke()


@pytest.mark.slow
def test_r_messages_contain_no_python(said):
    messages = {text for texts in said.values() for text in texts}
    assert len(messages) >= 42
    assert [name for name, texts in said.items() if not texts] == []
    found = {text: python for text in messages if (python := find_python(text, R_CALLS))}
    assert found == {}


@pytest.mark.parametrize(
    ("provoked", "remedy"),
    [
        ("fit: fixed of nothing", "fixed feature 'agee' is not a column of data; did you mean 'age'?"),
        ("fit: fixed is a text", """for example c("age", "sex")."""),
        ("fit: min_leaf", """min_leaf of sampler("cart") is 0"""),
        ("fit: sampler of another kind", """sampler("norm") cannot model 'job'"""),
        ("fit: sampler without the rest", """as in sampler = list(`*` = "cart")."""),
        ("fit: condition_on_decision", "condition_on_decision is 'yes'; it must be TRUE or FALSE."),
        ("fit: nobody wanted", "or set condition_on_decision = FALSE."),
        ("fit: interval empty", """a single score needs closed = "both"."""),
        ("fit: no class", """give one or more, as in one_of("paid") or one_of(c("paid", "due"))"""),
        ("fit: names", """as in names = list(labels = list(salary = "pay"))"""),
        ("train: a level of one row", """as in allow("town", never = c("Rome"))."""),
        (
            "train: facts",
            """Name them in fixed = c("previous_default", ...); or, if they may change, limit their values, as in """
            """constraints = list(allow("previous_default", ...)).""",
        ),
        ("explain: n_samples missing", "n_samples is NULL"),
        ("explain: diverse and auto", """diverse = TRUE chooses among all draws at once, and n_samples = "auto\""""),
        ("explain: measures without sparse", "set sparse = TRUE, or use"),
        ("explain: weights a list", "feature_weights is c(1, 2); give weights by feature, for example "),
        ("explain: weights a list", " for example feature_weights = list(age = 2)"),
        ("explain: weights negative", "feature_weights of 'income' is -2; give a number"),
        ("explain: levels a text", """for example c("pilot")."""),
        ("explain_mcce: generate.K", "generate.K is 0; it must be"),
        ("explain_mcce: an unknown argument", "did you mean 'generate.K'?"),
        ("explain_mcce: c_int", "c_int is c(1, 0.5); give two numbers, the lower one first, Inf for no bound."),
        ("rows: a column lacks", "newdata lacks the column(s) 'income'"),
        ("rows: far outside", "newdata has 5 rows far outside the training data"),
    ],
)  # fmt: skip
def test_fixes_are_in_r(said, provoked, remedy):
    assert any(remedy in text for text in said[provoked]), said[provoked]


@pytest.mark.parametrize(
    ("part", "python", "r"),
    [
        (Parameter("X"), "X", "newdata"),
        (Parameter("generate_K"), "generate_K", "generate.K"),
        (Setting("n_samples", 5000), "n_samples=5000", "n_samples = 5000"),
        (Setting("fixed", ["age", ...]), "fixed=['age', ...]", 'fixed = c("age", ...)'),
        (Setting("kinds", {"a b": "level"}), "kinds={'a b': 'level'}", 'kinds = list(`a b` = "level")'),
        (Value([1, "a"]), "[1, 'a']", 'list(1, "a")'),
        (Value([True, False]), "[True, False]", "c(TRUE, FALSE)"),
        (Value([]), "[]", "list()"),
        (Value(-math.inf), "-inf", "-Inf"),
        (Value(np.bool_(True)), "True", "TRUE"),
        (Value('a "b"'), "'a \"b\"'", "'a \"b\"'"),
        (Values([True, "x"]), "True, 'x'", "TRUE, 'x'"),
        (Value(CartSampler(min_leaf=20)), "CartSampler(min_leaf=20)", 'sampler("cart", min_leaf = 20)'),
        (Value(CartSampler), "CartSampler", 'sampler("cart")'),
        (Value(Interval(0, 1, closed="left")), None, 'interval(0, 1, closed = "left")'),
        (Value(OneOf(["a", "b"])), "OneOf(['a', 'b'])", 'one_of("a", "b")'),
        (Value(Not("a")), "Not('a')", 'none_of("a")'),
        (call("mcce.allow", "*", missing=True), "mcce.allow('*', missing=True)", 'allow("*", missing = TRUE)'),
        (call("mcce.rule", "a <= b"), "mcce.rule('a <= b')", '"a <= b"'),
        (Setting("constraints", [call("mcce.rule", "a <= b")]), None, 'constraints = list("a <= b")'),
        (Either(Setting("relations", ()), "no relations"), "relations=()", "no relations"),
        (PythonOnly(" Use X.iloc."), " Use X.iloc.", ""),
        (entry("feature_weights", "age"), "feature_weights['age']", "feature_weights of 'age'"),
        (Setting("relations", ()), "relations=()", "relations"),  # without a counterpart: the bare name
    ],
)
def test_message_parts_in_python_and_in_r(part, python, r):
    error = InputError("give ", part)
    assert error.format_for(RDialect("explain")) == f"give {r}"
    if python is not None:
        assert str(error) == f"give {python}"


def test_nested_message_keeps_its_parts():
    inner = InputError("set ", Setting("sparse", True))
    outer = InputError("constraints: ", *inner.args)
    assert str(outer) == "constraints: set sparse=True"
    assert outer.format_for(RDialect("explain")) == "constraints: set sparse = TRUE"


@pytest.mark.parametrize(
    "text",
    [
        "n_samples=5",
        "give [1, 'a']",
        "say True",
        "mcce.allow('a')",
        "X has",
        "{'a': 1}",
        "CartSampler()",
        "call fit(X)",
    ],
)
def test_python_is_recognised(text):
    assert find_python(f"so it is; {text}.")


def test_r_fixes_are_not_mistaken_for_python(said):
    assert not find_python("""the interval [0, 1) in [[allow]]: allow("a b", never = c('x', "y=1")), closed = TRUE""")
    assert all(re.search(r"[.?)']$|\w$", text) for texts in said.values() for text in texts)
