"""Several models at once, compared with separate queries of each."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import SVC

from mcce import MCCE, InputError, Interval, MCCEWarning, ModelError, Not, Several
from mcce.model.decisions import resolve_decision
from tests.marks import nightly

RNG = np.random.default_rng(11)
X = pd.DataFrame({"a": RNG.normal(size=400).round(1), "b": RNG.normal(size=400).round(1), "g": RNG.choice([0, 1], 400)})
SCORE = X["a"] + 0.5 * X["b"] + 0.3 * RNG.normal(size=400)
CLASSES = np.array(["refused", "due", "paid"])[np.digitize(SCORE, [-0.5, 0.5])]


def profit(rows):
    return 5 * rows["a"] - rows["b"] ** 2


LOGIT = LogisticRegression().fit(X, SCORE > 0)
FOREST = RandomForestClassifier(20, max_depth=4, random_state=1).fit(X, CLASSES)
MACHINE = SVC().fit(X, CLASSES)
LINE = LinearRegression().fit(X, SCORE)
PAIRS = [
    (LOGIT, (0.6, 1)),
    (FOREST, Not("refused")),
    (MACHINE, "paid"),
    (LINE, (-math.inf, 1.5)),
    (profit, (0, math.inf)),
    (None, lambda rows: rows["b"] > -1),
]


def by_hand(rows):
    return np.column_stack(
        [
            LOGIT.predict_proba(rows)[:, 1] >= 0.6,
            FOREST.predict(rows) != "refused",
            MACHINE.predict(rows) == "paid",
            LINE.predict(rows) <= 1.5,
            profit(rows) >= 0,
            rows["b"] > -1,
        ]
    )


@pytest.mark.parametrize(
    ("agree", "needed"), [("all", 6), ("majority", 4), (0.5, 3), (2 / 3, 4), (0.67, 5), (1, 6), (1.0, 6), (0.01, 1)]
)
def test_at_least_k_of_six_models(agree, needed):
    answer = resolve_decision(Several(PAIRS, agree=agree), None).evaluate(X, "rows")
    yes = by_hand(X).sum(axis=1)
    np.testing.assert_allclose(answer.scores, yes / 6)
    np.testing.assert_array_equal(answer.wanted, yes >= needed)
    assert answer.scores.dtype == float


def test_share_is_robust_to_rounding():
    for n in range(1, 40):
        for k in range(1, n + 1):
            assert Several([(profit, (0, 1))] * n, agree=k / n).needed == k


def test_majority_is_more_than_half():
    assert [Several([(profit, (0, 1))] * n, agree="majority").needed for n in (1, 2, 3, 4, 5)] == [1, 2, 2, 3, 3]


@pytest.mark.parametrize("sparse", [False, *nightly(True)])
@pytest.mark.usefixtures("no_pictures")
def test_counterfactuals_accepted_by_all_models(sparse):
    pairs = PAIRS[:3]
    explainer = MCCE(None, decision=Several(pairs), fixed=["g"], random_state=1).fit(X)
    denied = X[~by_hand(X)[:, :3].all(axis=1)].iloc[:12]
    found = explainer.explain(denied, n_samples=200, sparse=sparse)
    assert len(found) == 12
    assert by_hand(found.frame)[:, :3].all()
    assert (found.measures["prediction"] == 1).all()
    np.testing.assert_allclose(found.factual_predictions, by_hand(denied)[:, :3].mean(axis=1))
    if not sparse:
        whole = explainer.select(explainer.generate(denied, n_samples=200), denied, exhaustive=True)
        pd.testing.assert_frame_equal(found.frame, whole.frame)
    again = pickle.loads(pickle.dumps(explainer)).explain(denied, n_samples=200, sparse=sparse)
    pd.testing.assert_frame_equal(found.frame, again.frame)
    words = (
        "yes from all 3 models [LogisticRegression: probability of class True at least 0.6; "
        "RandomForestClassifier: any class but 'refused'; SVC: predicted class 'paid']"
    )
    assert found.decision == words
    assert words in repr(found)
    assert words in found.sentence(denied.index[0])
    assert words.replace("'", "&#x27;") in found.to_html()


def test_custom_labels():
    named = {"bank": (LOGIT, (0.6, 1)), "insurer": (profit, (0, math.inf)), "law": (None, lambda rows: rows["b"] > -1)}
    decision = Several(named, agree="majority")
    assert resolve_decision(decision, None).describe() == (
        "yes from at least 2 of 3 models [bank: probability of class True at least 0.6; insurer: profit at least 0; "
        "law: predicate <lambda>]"
    )
    assert repr(decision) == "Several(bank, insurer, law, agree='majority')"
    assert resolve_decision(Several(named, label="good enough"), None).describe() == "good enough"
    assert (
        resolve_decision(Several([(profit, (0, 1))]), None).describe()
        == "yes from one model [profit: profit from 0 to 1]"
    )
    assert "Several(bank, insurer, law, agree='majority')" in repr(MCCE(None, decision=decision))


def test_nested_several():
    inner = Several(PAIRS[:3], agree="majority")
    answer = resolve_decision(Several([(None, inner), (profit, (0, math.inf))]), None).evaluate(X, "rows")
    yes = by_hand(X)
    np.testing.assert_array_equal(answer.wanted, (yes[:, :3].sum(axis=1) >= 2) & yes[:, 4])


def test_random_model_is_detected():
    rng = np.random.default_rng(1)
    pairs = [(profit, (-math.inf, math.inf)), (lambda rows: rng.random(len(rows)), (0.5, 1))]
    explainer = MCCE(None, decision=Several(pairs), random_state=1).fit(X)
    with pytest.warns(MCCEWarning, match="the model answered differently when"):
        explainer.explain(X.iloc[:5], n_samples=20)


def test_class_unknown_to_one_model():
    two = LogisticRegression().fit(X, np.where(SCORE > 0, "paid", "due"))
    said = r"LogisticRegression, one of 2 models in Several: decision is 'refused', but .* classes are 'due', 'paid'"
    with pytest.raises(InputError, match=said):
        resolve_decision(Several([(FOREST, Not("refused")), (two, Not("refused"))]), None)
    said = r"second, one of 2 models in Several: the model \(a dict\) cannot be queried"
    with pytest.raises(ModelError, match=said):
        resolve_decision(Several({"first": (profit, (0, 1)), "second": ({}, "paid")}), None)


def test_missing_replies_name_the_model():
    def torn(rows):
        return np.where(np.arange(len(rows)) == 2, np.nan, 1.0)

    with pytest.raises(ModelError, match=r"the model torn, queried with 400 rows .* 1 of 400 rows, at positions 2"):
        resolve_decision(Several([(profit, (0, 1)), (torn, (0, 1))]), None).evaluate(X, "rows")


def test_no_rows():
    answer = resolve_decision(Several(PAIRS), None).evaluate(X[:0], "rows")
    assert answer.scores.shape == answer.wanted.shape == (0,)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Several([]), "Several holds no model; give at least one pair"),
        (lambda: Several(profit), r"Several holds a function; give a list of pairs \(model, decision\)"),
        (lambda: Several([(profit, (0, 1)), profit]), r"Several holds <function profit.* at place 1; give a pair"),
        (lambda: Several({"bank": (profit,)}), r"under 'bank'; give a pair"),
        (
            lambda: Several([(profit, (0, 1))], agree="most"),
            "agree is 'most'; it must be 'all', 'majority', or a share",
        ),
        (lambda: Several([(profit, (0, 1))] * 3, agree=2), "agree is 2; it must be .* as in 2/3"),
        (lambda: Several([(profit, (0, 1))], agree=0), "agree is 0; it must be"),
        (lambda: Several([(profit, (0, 1))], agree=float("nan")), "agree is nan; it must be"),
        (lambda: Several([(profit, (0, 1))], label=1), "label is 1; give"),
        (lambda: MCCE(LOGIT, decision=Several(PAIRS)).fit(X), "but the model is a LogisticRegression; give model=None"),
        (lambda: MCCE(Several(PAIRS)).fit(X), r"which is a decision; give model=None and decision=Several"),
        (
            lambda: resolve_decision(Several([(LOGIT, Interval(0.5, 0.6, margin=0.1))]), None),
            "one of 1 models .* empty",
        ),
    ],
)
def test_bad_several(make, message):
    with pytest.raises(InputError, match=message):
        make()
