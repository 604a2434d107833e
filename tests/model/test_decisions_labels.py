"""Wanted classes compared with the model's labels and probabilities by hand."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC, LinearSVC

from mcce import MCCE, InputError, ModelError, Not, OneOf
from mcce.model.decisions import resolve_decision
from mcce.storage.state import from_state, to_state
from tests.marks import nightly_rows

RNG = np.random.default_rng(7)
X = pd.DataFrame({"a": RNG.normal(size=400).round(1), "b": RNG.normal(size=400).round(1), "g": RNG.choice([0, 1], 400)})
LEVEL = np.digitize(X["a"] + 0.5 * X["b"] + 0.3 * RNG.normal(size=400), [-0.8, 0.1, 0.9])
NAMES = np.array(["refused", "late", "due", "paid"])
FOREST = RandomForestClassifier(10, max_depth=4, random_state=1).fit(X, NAMES[LEVEL])


class OnlyLabels:
    """A model with only `predict`."""

    def __init__(self, says):
        self.says = says

    def predict(self, rows):
        return self.says(rows)


def query(decision, model, rows=X):
    return resolve_decision(decision, model).evaluate(rows, "rows")


@pytest.mark.parametrize(
    ("decision", "hits"),
    [
        (OneOf(["paid", "due"]), ["paid", "due"]),
        (OneOf("paid"), ["paid"]),
        (Not("refused"), ["late", "due", "paid"]),
        (Not(("refused", "late")), ["due", "paid"]),
        (OneOf(np.array(["paid", "late"])), ["paid", "late"]),
        (OneOf(pd.Index(["paid"])), ["paid"]),
        (Not({"refused", "late"}), ["due", "paid"]),
    ],
)
@pytest.mark.parametrize("make", [lambda: FOREST, lambda: SVC().fit(X, NAMES[LEVEL]), lambda: FOREST.predict])
def test_some_of_four_classes(decision, hits, make):
    model = make()
    says = model(X) if callable(model) else model.predict(X)
    answer = query(decision, model)
    assert answer.wanted.tolist() == [label in hits for label in says]
    assert answer.scores.tolist() == says.tolist()
    assert 0 < answer.wanted.sum() < len(X)


@pytest.mark.parametrize(
    ("codes", "decision", "hits"),
    [
        (np.array([0, 1, 2, 3]), Not(np.int64(0)), {1, 2, 3}),
        (np.array([0, 1, 2, 3], dtype=np.int8), OneOf(np.array([1, 3])), {1, 3}),
        (np.array([0.0, 1.0, 2.0, 3.0]), OneOf([2, 3]), {2.0, 3.0}),
        (np.array([False, False, True, True]), Not(False), {True}),
        (np.array([False, False, True, True]), OneOf(1), {True}),
        (np.array([0, 0, 1, 1]), Not(True), {0}),
    ],
)
def test_classes_of_other_types(codes, decision, hits):
    model = RandomForestClassifier(5, random_state=1).fit(X, codes[LEVEL])
    assert query(decision, model).wanted.tolist() == [label in hits for label in model.predict(X).tolist()]
    labels_only = OnlyLabels(model.predict)
    np.testing.assert_array_equal(query(decision, labels_only).wanted, query(decision, model).wanted)


def lead_by_hand(model, hits):
    leads = []
    for row in model.predict_proba(X):
        by_class = dict(zip(model.classes_.tolist(), row.tolist()))
        leads.append(
            max(p for c, p in by_class.items() if c in hits) - max(p for c, p in by_class.items() if c not in hits)
        )
    return np.array(leads)


@pytest.mark.parametrize(
    ("make", "hits"),
    [
        (lambda margin: OneOf("paid", margin=margin), {"paid"}),
        (lambda margin: OneOf(["paid", "late"], margin=margin), {"paid", "late"}),
        (lambda margin: Not("refused", margin=margin), {"paid", "late", "due"}),
    ],
)
def test_margin_over_the_other_classes(make, hits):
    lead = lead_by_hand(FOREST, hits)
    says = np.isin(FOREST.predict(X), list(hits))
    for margin in (0.1, 0.2, 0.3):
        answer = query(make(margin), FOREST)
        np.testing.assert_array_equal(answer.wanted, says & (np.round(lead, 9) >= margin))
        assert 0 < answer.wanted.sum() < says.sum()


def test_tie_at_the_margin_is_accepted():
    class Says:
        classes_ = np.array(["no", "yes"])

        def predict(self, rows):
            return np.array(["yes", "yes", "yes"])

        def predict_proba(self, rows):
            return np.array([[0.4, 0.6], [0.45, 0.55], [0.4001, 0.5999]])

    assert 0.6 - 0.4 < 0.2  # in floats
    assert query(OneOf("yes", margin=0.2), Says(), X[:3]).wanted.tolist() == [True, False, False]
    Says.predict_proba = lambda self, rows: np.full((len(rows), 2), 0.6)
    with pytest.raises(ModelError, match=r"sum to 1.2, not 1"):
        query(OneOf("yes", margin=0.2), Says(), X[:3])
    Says.predict_proba = lambda self, rows: np.array([[0.4, 0.6], [np.nan, 0.6], [0.4, 0.6]])
    with pytest.raises(ModelError, match=r"missing values .* for 1 of 3 rows, at positions 1"):
        query(OneOf("yes", margin=0.2), Says(), X[:3])
    Says.predict_proba = lambda self, rows: np.full((3, 3), 1 / 3)
    with pytest.raises(ModelError, match=r"returned 3 columns for 2 classes \('no', 'yes'\)"):
        query(OneOf("yes", margin=0.2), Says(), X[:3])
    Says.predict_proba = lambda self, rows: pd.DataFrame({"yes": [0.9, 0.1, 0.6], "no": [0.1, 0.9, 0.4]})
    assert query(OneOf("yes", margin=0.2), Says(), X[:3]).wanted.tolist() == [True, False, True]


@pytest.mark.parametrize(
    "model", [SVC().fit(X, NAMES[LEVEL]), LinearSVC().fit(X, NAMES[LEVEL]), OnlyLabels(FOREST.predict)]
)
def test_margin_requires_probabilities(model):
    with pytest.raises(
        ModelError, match=r"Not\('refused', margin=0.1\) has a margin, but the model .* no predict_proba"
    ):
        resolve_decision(Not("refused", margin=0.1), model)
    assert query(Not("refused"), model).wanted.tolist() == (model.predict(X) != "refused").tolist()


def test_missing_replies():
    with pytest.raises(ModelError, match=r"missing values .* 1 of 3 rows, at positions 1"):
        query(Not("u"), lambda rows: ["u", None, "v"], X[:3])
    assert query(OneOf([2.5, 3.0]), lambda rows: [0.5, 2.5, 3.0], X[:3]).wanted.tolist() == [False, True, True]
    with pytest.raises(ModelError, match=r"returned 0.25, which is not a class label like 1"):
        query(Not([1, 2]), lambda rows: [0.25, 1, 2], X[:3])


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        (OneOf("paid"), "predicted class 'paid'"),
        (Not("refused", label="not turned away"), "not turned away"),
        *nightly_rows(
            (OneOf(["paid", "due"]), "predicted class 'paid' or 'due'"),
            (Not("refused"), "any class but 'refused'"),
            (Not(["refused", "late"], margin=0.1), "any class but 'refused' or 'late', with a margin of 0.1"),
        ),
    ],
)
@pytest.mark.usefixtures("no_pictures")
def test_words(decision, words):
    explainer = MCCE(FOREST, decision=decision, fixed=["g"], random_state=1).fit(X)
    found = explainer.explain(X[FOREST.predict(X) == "refused"].iloc[:4], n_samples=100)
    assert found.decision == words
    assert f"wanted: {words}\n" in repr(found)
    expected = "the model would have said" if words.startswith("predicted class") else f"as wanted: {words} ("
    assert expected in found.sentence(found.factuals.index[0])
    assert words.replace("'", "&#x27;") in found.to_html()
    assert resolve_decision(decision, FOREST).evaluate(found.frame, "rows").wanted.all()
    assert repr(decision) in repr(explainer)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OneOf([]), r"OneOf names no class; give one or more"),
        (lambda: Not(None), r"Not holds None \(a NoneType\), which no prediction can equal"),
        (lambda: OneOf(["a", float("nan")]), r"OneOf holds nan"),
        (lambda: OneOf([["a"]]), r"OneOf holds \['a'\] \(a list\)"),
        (lambda: OneOf([1, True]), r"OneOf names the class True twice"),
        (lambda: Not("a", margin=-1), r"margin is -1"),
        (lambda: Not("a", label=""), r"label is ''"),
        (lambda: resolve_decision(Not("refusd"), FOREST), r"decision is 'refusd', but .*did you mean 'refused'"),
        (lambda: resolve_decision(OneOf(["paid", "dew"]), FOREST), r"decision is 'dew', but the model's classes are"),
        (lambda: resolve_decision(Not(list(NAMES)), FOREST), r"leaves none of the model's classes .*; name fewer"),
        (lambda: resolve_decision(["paid", "due"], FOREST), r"for several classes, OneOf\(\[...\]\)"),
        (lambda: resolve_decision(Not("a"), None), r"model is None"),
    ],
)
def test_bad_classes(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("decision", [OneOf(["a", 2], margin=0.1), Not(np.int64(3)), Not([("a", 1)], label="x")])
def test_labels_round_trip(decision):
    assert pickle.loads(pickle.dumps(decision)) == decision
    assert from_state(to_state(decision)) == decision
    assert hash(decision) == hash(pickle.loads(pickle.dumps(decision)))


def test_label_that_is_a_tuple():
    says = np.empty(3, dtype=object)
    says[:] = [("a", 1), ("b", 1), ("a", 1)]
    assert query(OneOf([("a", 1)]), lambda rows: says, X[:3]).wanted.tolist() == [True, False, True]


def test_single_label_in_a_list_equals_the_label():
    """The same rows, byte for byte, as for the class alone."""
    denied = X[FOREST.predict(X) == "refused"].iloc[:8]
    one, other = (
        MCCE(FOREST, decision=d, fixed=["g"], random_state=1).fit(X).explain(denied, n_samples=100)
        for d in ("paid", OneOf(["paid"]))
    )
    pd.testing.assert_frame_equal(one.frame, other.frame)
    pd.testing.assert_frame_equal(one.measures, other.measures)
