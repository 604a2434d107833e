"""All kinds of decisions, and models with invalid or random answers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from pandas.testing import assert_frame_equal

from mcce import MCCE, Interval, MCCEWarning, ModelError
from tests.explainer.problem import DENIED, SMALL, TABLE, assert_same, fitted, has_score, label, score
from tests.marks import slow_rows

# ---------------------------------------------------------------- decisions


@pytest.mark.parametrize(
    ("decision", "is_wanted"),
    [
        ((0.5, 1), lambda s: s >= 0.5),
        (Interval(0.2, 0.4, closed="left"), lambda s: (s >= 0.2) & (s < 0.4)),
        *slow_rows(
            (Interval(0.6, np.inf, closed="neither"), lambda s: s > 0.6),
            ((-np.inf, 0.2), lambda s: s <= 0.2),
        ),
    ],
)
def test_intervals(decision, is_wanted):
    unwanted = TABLE[~is_wanted(score(TABLE))].iloc[:30]
    found = fitted(decision=decision).explain(unwanted, n_samples=200)
    assert len(found) >= 25
    assert is_wanted(score(found.frame)).all()


def test_half_open_interval_excludes_its_end():
    def steps(frame):
        return frame["y"].to_numpy()

    closed = MCCE(steps, decision=(3, 5), random_state=1).fit(SMALL)
    half = MCCE(steps, decision=Interval(3, 5, closed="left"), random_state=1).fit(SMALL)
    factual = SMALL.iloc[[6]]  # y is 6: 5 is nearest, then 4
    assert closed.explain(factual, n_counterfactuals=9).frame["y"].isin([3, 4, 5]).all()
    assert closed.explain(factual).frame["y"].iloc[0] == 5
    assert half.explain(factual).frame["y"].iloc[0] == 4


@pytest.mark.slow
def test_labels_and_predicates():
    labels = fitted(label, "granted").explain(DENIED, n_samples=200)
    assert (label(labels.frame) == "granted").all()
    assert set(labels.measures["prediction"]) == {"granted"}
    assert set(labels.factual_predictions) == {"denied"}
    yes = fitted(None, has_score).explain(TABLE[~has_score(TABLE)].iloc[:20], n_samples=200)
    assert has_score(yes.frame).all()
    assert yes.decision == "predicate has_score"
    for found in (labels, yes):
        assert found.sentence(found.frame.index[0][0]).startswith("With ")
        assert "wanted" in found._repr_html_()


# ---------------------------------------------------------------- models that misbehave


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda f: np.full(len(f), np.nan), r"returned missing values \(NaN or None\) for 300 of 300 rows"),
        (lambda f: np.ones(len(f) + 1), "returned 301 values, expected 300, one per row"),
        (lambda f: 1 / 0, "raised ZeroDivisionError: division by zero"),
        (lambda f: ["yes"] * len(f), "returned 'yes', which is not a number"),
    ],
)
def test_invalid_model_answers_raise(model, message):
    with pytest.raises(ModelError, match=message):
        fitted(model)


def test_model_that_fails_only_on_candidates():
    def brittle(frame):
        result = score(frame)
        if len(frame) < 300 and not set(frame["income"]) <= {*DENIED["income"], *spots["income"]}:
            raise RuntimeError("this row is new")
        return result

    spots = TABLE.iloc[np.linspace(0, 299, 16).astype(int)]
    with pytest.raises(ModelError, match=r"queried with \d+ rows \(candidates\), raised RuntimeError: this row is new"):
        fitted(brittle).explain(DENIED, n_samples=20)


AGAIN = r"differently when 16 of 16 training rows were queried again \(those at positions 0, 19, 39, 59, 79 and 11 more"


def test_requeried_rows_are_named_by_position():
    def forgetful(frame):
        return np.where((frame["age"] == TABLE["age"].iloc[19]) & fails, np.nan, score(frame))

    fails = False
    explainer = fitted(forgetful)
    fails = True
    with pytest.raises(ModelError, match=r"index .*'training row 19'.*; the first has age = \d+, sex = "):
        explainer.explain(DENIED[DENIED["age"] != TABLE["age"].iloc[19]].iloc[:2], n_samples=10)


@pytest.mark.slow
def test_random_model_is_reported():
    rng = np.random.default_rng(1)
    explainer = fitted(lambda f: np.clip(score(f) + rng.normal(0, 0.01, len(f)), 0, 1))
    with pytest.warns(MCCEWarning, match=AGAIN) as caught:
        explainer.explain(DENIED.iloc[:2], n_samples=10)
    assert caught[0].filename == __file__  # the warning points at the user's line
    flipping = itertools.cycle([0.0, 1.0])
    explainer = fitted(lambda f: np.where(next(flipping), "granted", label(f)), "granted")
    with pytest.warns(MCCEWarning, match="not deterministic"):
        explainer.explain(DENIED.iloc[:2], n_samples=10)


def test_batch_dependent_model_is_reported():
    explainer = fitted(lambda f: np.clip(score(f) - score(f).mean() + 0.4, 0, 1))
    with pytest.warns(MCCEWarning, match="it depends on the other rows of the table"):
        explainer.explain(DENIED.iloc[:2], n_samples=10)


def test_last_bits_of_a_score_may_depend_on_the_batch():
    calls = itertools.count()
    fitted(lambda f: score(f) * (1 + 1e-13 * (next(calls) % 2))).explain(DENIED.iloc[:2], n_samples=10)


def careless(frame):
    answer = score(frame)
    frame["income"] = 0.0
    frame.loc[:, "owner"] = True
    frame.iloc[0, 0] = -1
    frame["new"] = 1
    del frame["job"]
    frame.index = frame.index[::-1]
    return answer


@pytest.mark.slow
def test_model_may_modify_its_input_frame(found):
    before = TABLE.copy(deep=True)
    other = fitted(careless).explain(DENIED, n_samples=200, n_counterfactuals=3)
    assert_same(found, other)
    assert_frame_equal(TABLE, before)


def test_model_may_modify_its_input_array():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(100, 3))
    before = X.copy()

    def pure(a):
        return a[:, 0] + a[:, 1]

    def in_place(a):
        a[:, 0] += a[:, 1]
        return a[:, 0].copy()

    factuals = X[pure(X) < 0][:10]
    one, two = (
        MCCE(m, decision=(0, np.inf), random_state=1).fit(X).explain(factuals, n_samples=50) for m in (pure, in_place)
    )
    np.testing.assert_array_equal(X, before)
    assert_same(one, two)
