"""Whole workflows: a table, a model, fixed features, conditionals, constraints, options; fit, explain, check, write.

An `MCCEError` with a message is an answer; any other exception or warning is a failure.
"""

import pickle
import warnings
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from hypothesis import strategies as st

import mcce
from mcce.exceptions import MCCEError, MCCEWarning
from tests.fuzz.oracles import Column, Limit, Model, Oracle, evaluate, key_of, rows_of, values_of
from tests.fuzz.tables import planted, tables

FOR_ALL = ["cart", "cart", "cart", "forest", "ctree", "marginal", "parametric", "copula", "mixture"]
FOR_NUMBERS = ["norm", "normrank", "pmm", "twopart", "marginal"]


@dataclass
class Case:
    """One workflow, and what is promised of its result."""

    X: pd.DataFrame
    factuals: pd.DataFrame
    model: Model
    least: float
    is_label: bool
    fixed: list
    settings: dict
    options: dict
    limits: list = field(default_factory=list)
    rules: list = field(default_factory=list)
    derived: dict = field(default_factory=dict)
    kept: list = field(default_factory=list)  # relations that rows keep if their factual does
    any_missing: bool = False
    no_copies: bool = False

    def wants(self, score):
        return score >= self.least

    def may_become_missing(self, name):
        return self.any_missing and name not in self.fixed

    @property
    def may_draw_again(self):
        """Whether a factual without an answer in a shared pool gets draws of its own."""
        return bool(self.limits or self.rules) or bool(self.X.isna().any(axis=None))

    @property
    def constraints(self):
        allowed = [mcce.allow(limit.name, **limit.limits) for limit in self.limits]
        missing = [mcce.allow(name, missing=True) for name in self.X if self.any_missing and name not in self.fixed]
        return allowed + missing + self.rules + ([mcce.no_copies()] if self.no_copies else [])

    def explainer(self, n_jobs=None):
        model = (lambda rows: self.model(rows) >= self.least) if self.is_label else self.model
        decision = True if self.is_label else mcce.Interval(self.least, np.inf)
        return mcce.MCCE(
            model, decision=decision, fixed=self.fixed, derived=self.derived, n_jobs=n_jobs, **self.settings
        )


@st.composite
def cases(draw):
    X, equation = draw(tables()), None
    if draw(st.booleans()):
        X, equation = draw(planted(X))
    model = Model(X, draw(st.integers(0, 9)))
    scores = model(X)
    least = float(np.quantile(scores, 0.6, method="higher"))
    is_refused = scores < least
    places = [*draw(st.permutations(np.flatnonzero(is_refused).tolist()))[:4], int(np.argmax(scores))]
    use = draw(st.sampled_from(["derived", "relation", "none"])) if equation else "none"
    derived = {"total": equation.partition(" == ")[2]} if use == "derived" and is_exact(X, equation) else {}
    sparse, k = draw(st.booleans()), draw(st.sampled_from([1, 1, 2, 5]))
    fixed = [name for name in X.columns[1:] if name not in derived and draw(st.integers(0, 3)) == 0]
    case = Case(
        X,
        X.iloc[places],
        model,
        least,
        draw(st.booleans()),
        fixed,
        {
            "sampler": draw(samplers(X, fixed)),
            "random_state": draw(st.integers(0, 5)),
            "condition_on_decision": draw(st.sampled_from([True, True, False])),
            "visit_sequence": draw(st.sampled_from(["data", "data", "correlation"])),
        },
        {
            "n_samples": draw(st.sampled_from([5, 20, 60])),
            "n_counterfactuals": k,
            "sparse": sparse,
            "diverse": sparse and k > 1 and draw(st.booleans()),
            "floor": draw(st.sampled_from([0.0, 0.0, 0.05, 0.3])) if sparse else 0.05,
            "independent": draw(st.integers(0, 4)) == 0,
            "max_changes": draw(st.sampled_from([None, None, None, 1, 2])),
            "max_gower": draw(st.sampled_from([None, None, None, 0.1, 0.5])),
            "relations": [equation] if use == "relation" else draw(st.sampled_from([(), None])),
        },
        derived=derived,
        kept=[equation] if use == "relation" else [],
        any_missing=draw(st.integers(0, 2)) == 0,
        no_copies=draw(st.integers(0, 7)) == 0,
    )
    for name in draw(st.lists(st.sampled_from(list(X)), max_size=2, unique_by=key_of)):
        draw(add_constraint(case, name))
    return case


def is_exact(X, equation):
    rows = [dict(zip(X.columns, row)) for row in rows_of(X)]
    return all(evaluate(equation, row, row) for row in rows)


@st.composite
def samplers(draw, X, fixed):
    """Draw a sampler for all features, or another one for some."""
    if draw(st.booleans()):
        return draw(st.sampled_from(FOR_ALL))
    names = [name for name in X if key_of(name) not in {"'*'", *map(key_of, fixed)}]
    is_number = {name: Column(X[name]).is_number and X[name].notna().any() for name in names}
    return {
        name: draw(st.sampled_from(FOR_NUMBERS if is_number[name] else ["polyreg", "ctree", "marginal"]))
        for name in names
        if draw(st.booleans())
    } | ({"*": "cart"} if "*" not in X else {})


@st.composite
def add_constraint(draw, case, name):
    """Add a limit or a rule, mostly one that fits the feature."""
    column = case.X[name]
    known = [value for value in values_of(column) if value is not None]
    if name in case.fixed or name in case.derived or not known:
        return
    pick = draw(st.sampled_from(known))
    is_plain_number = isinstance(pick, (int, float)) and not isinstance(pick, bool) and column.dtype.kind in "iuf"
    is_level = not Column(column).is_number
    if is_plain_number and isinstance(name, str) and name and draw(st.booleans()):
        case.rules.append(f"`{name}` {draw(st.sampled_from([f'>= was(`{name}`)', f'<= {pick!r}']))}")
    elif is_plain_number:
        limits = [{"low": pick}, {"high": pick}, {"max_step": abs(pick)}, {"direction": "decrease"}]
        case.limits.append(Limit(name, **draw(st.sampled_from(limits))))
    elif is_level:
        is_ordered = isinstance(column.dtype, pd.CategoricalDtype) and column.cat.ordered
        limits = [{"levels": [pick]}, {"direction": "none"}] + [{"direction": "increase"}, {"low": pick}] * is_ordered
        case.limits.append(Limit(name, **draw(st.sampled_from(limits))))
    else:
        case.limits.append(Limit(name, **draw(st.sampled_from([{"low": pick}, {"direction": "increase"}]))))


def run(case, data):
    """Fit, explain, check and write; return "explained", "unexplained" or "refused"."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", MCCEWarning)
        oracle = Oracle(case)
        try:
            explainer = case.explainer().fit(case.X)
            result = explainer.explain(case.factuals, constraints=case.constraints, **case.options)
        except MCCEError as error:
            refusal = str(error)
        else:
            refusal = ""
        assert not refusal or len(refusal) > 40, f"the message says little: {refusal}"
        if refusal:
            return f"refused: {refusal[:60]}"
        oracle.check(result)
        if not (case.options["sparse"] or case.kept):
            shared = {name: case.options[name] for name in ("n_samples", "independent")}
            oracle.check_best(result, explainer.generate(case.factuals, constraints=case.constraints, **shared))
        if data.draw(st.integers(0, 2)) == 0:
            check_same(case, result, data.draw(st.booleans()))
        if data.draw(st.integers(0, 2)) == 0:
            write(case, result)
    return "explained" if len(result) else "unexplained"


def check_same(case, result, half):
    """The same rows in another order, for half of the factuals, in two threads."""
    factuals = case.factuals.iloc[:: -2 if half else -1]
    again = case.explainer(n_jobs=2).fit(case.X).explain(factuals, constraints=case.constraints, **case.options)

    def by_label(answer):
        rows = zip(answer.frame.index.get_level_values("id"), rows_of(answer.frame))
        labels = {key_of(label) for label in factuals.index}
        return sorted(
            ((key_of(label), rank, row) for rank, (label, row) in enumerate(rows)), key=lambda t: t[:2]
        ), labels

    (before, labels), (after, _) = by_label(result), by_label(again)
    assert [(key, row) for key, _, row in before if key in labels] == [(key, row) for key, _, row in after]


def write(case, result):
    """Every form of a result."""
    assert "<script>x" not in (result._repr_html_() or "")
    assert repr(result)
    changes = result.changes()
    if not case.derived:
        assert len(changes) == result.measures["L0"].sum()
    assert result.summary()["rows"]["given"] == len(case.factuals)
    for label in case.factuals.index:
        assert result.sentence(label)
    table = result.to_frame()
    assert table.columns.is_unique
    copy = pickle.loads(pickle.dumps(result))
    pd.testing.assert_frame_equal(copy.frame, result.frame)
    pd.testing.assert_frame_equal(copy.unexplained, result.unexplained)
