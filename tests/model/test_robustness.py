"""Robust counterfactuals compared with querying every model for every row."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import mcce
from mcce.exceptions import InputError
from mcce.model.decisions import resolve_decision
from mcce.model.queries import EncodedModel
from mcce.model.robustness import NEIGHBOURS, ConfirmedModel, Robust, Robustness, refits_needed, refusals_allowed
from mcce.table import Schema
from tests.marks import nightly

LOANS = mcce.datasets.load_loans(600).X.select_dtypes("number")
GOOD = LOANS["savings"] + LOANS["salary"] / 4 + 3_000 * np.random.default_rng(1).normal(size=len(LOANS)) > 20_000
MODEL = RandomForestClassifier(15, max_depth=5, random_state=1).fit(LOANS, GOOD)
REFUSED = LOANS[~MODEL.predict(LOANS)].iloc[:25]


@cache
def refits():
    return mcce.bootstrap_refits(MODEL, LOANS, GOOD, n=9)


@pytest.fixture(scope="module")
def explainer():
    return mcce.MCCE(MODEL, fixed=["age"], random_state=1).fit(LOANS)


def share_of_refits(rows):
    return np.mean([refit.predict_proba(rows)[:, 1] >= 0.5 for refit in refits()], axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [True, *nightly(False)])
@pytest.mark.parametrize("robust", [1.0, *nightly(0.5)])
def test_every_counterfactual_reaches_the_share(explainer, sparse, robust):
    requirement = Robust(refits=refits(), share=robust)
    found = explainer.explain(REFUSED, n_samples=300, sparse=sparse, robust=requirement, n_counterfactuals=2)
    assert len(found) > 20
    share = share_of_refits(found.frame)
    assert (share >= robust - 1e-9).all()
    assert (MODEL.predict_proba(found.frame)[:, 1] >= 0.5).all()
    np.testing.assert_allclose(found.measures["refits"], share)


@pytest.mark.slow
def test_nearest_robust_row_is_accepted_by_fresh_refits():
    """Refits shift a threshold by a normal error, so the true share of refits that accept x is known.

    Selecting the nearest row accepted by nine in ten of the given refits is optimistic: with 30 refits, one in three of
    these rows had a true share of 0.9.
    """
    schema = Schema.from_data(pd.DataFrame({"x": [-4.0, 4.0]}))
    rows = np.linspace(0.0, 4.0, 400)[:, None]
    model = EncodedModel(resolve_decision((0.5, 1), Threshold(0.0)), schema)
    rng, good = np.random.default_rng(5), 0
    for _ in range(100):
        refits = tuple(EncodedModel(resolve_decision((0.5, 1), Threshold(t)), schema) for t in rng.normal(size=59))
        robustness = Robustness(model, refits, np.zeros(1), 0, 0.9)
        holds = robustness.hold(rows)
        nearest = rows[holds][0, 0] if holds.any() else np.inf
        good += stats.norm.cdf(nearest) >= 0.9
    assert good >= 90


class Threshold:
    classes_ = np.array([False, True])

    def __init__(self, at):
        self.at = at

    def predict_proba(self, rows):
        accepted = (np.asarray(rows)[:, 0] >= self.at).astype(float)
        return np.column_stack([1.0 - accepted, accepted])


@pytest.mark.parametrize(
    ("n_refits", "share", "refusals"), [(59, 0.9, 0), (58, 0.9, -1), (200, 0.9, 8), (9, 0.5, 0), (9, 1.0, 0)]
)
def test_number_of_refits_that_may_reject(n_refits, share, refusals):
    """The lower Clopper-Pearson bound, at the level for the best of 25 rows, reaches the share; not with one more."""
    assert refusals_allowed(n_refits, share) == refusals
    for refused, reaches in ((refusals, True), (refusals + 1, False)):
        if share < 1.0 and refused >= 0:
            interval = stats.binomtest(n_refits - refused, n_refits, alternative="greater")
            bound = interval.proportion_ci(confidence_level=1 - 0.05 / 25, method="exact").low
            assert (bound >= share) == reaches


@pytest.mark.slow
def test_best_of_many_rows_is_accepted_by_fresh_refits():
    """Each row has its own probability of acceptance by a refit, so some rows are accepted by the given refits only.

    The first row that all of 30 refits accept had a true share of 0.9 in about half of the cases.
    """
    rng, good = np.random.default_rng(5), 0
    for _ in range(200):
        true = np.sort(rng.uniform(0.5, 1.0, 50))  # nearer rows have smaller shares
        accepted = rng.binomial(59, true) >= 59 - refusals_allowed(59, 0.9)
        good += not accepted.any() or true[np.argmax(accepted)] >= 0.9
    assert good >= 190


def test_too_few_refits_raise(explainer):
    requirement = Robust(refits=refits(), share=0.9)
    with pytest.raises(InputError, match=r"9 refits cannot show .* that takes 59"):
        explainer.explain(REFUSED.head(1), n_samples=10, robust=requirement)
    with pytest.raises(InputError, match=r"share is 1\.0; no number of refits shows it"):
        mcce.bootstrap_refits(MODEL, LOANS, GOOD, share=1.0)


def test_number_of_refits_follows_the_share_with_separate_seeds():
    X = pd.DataFrame({"x": np.arange(40.0)})
    forest = RandomForestClassifier(1, random_state=3)
    refits = mcce.bootstrap_refits(forest, X, X["x"] > 20, share=0.4)
    assert len(refits) == 7 == refits_needed(0.4)
    assert len({refit.random_state for refit in refits}) == 7
    again = mcce.bootstrap_refits(forest, X, X["x"] > 20, share=0.4)
    assert [refit.random_state for refit in again] == [refit.random_state for refit in refits]


@pytest.mark.slow
def test_answer_matches_querying_every_model_for_every_draw(explainer):
    found = explainer.explain(REFUSED, n_samples=300, robust=Robust(refits=refits(), share=1.0))
    candidates = explainer.generate(REFUSED, n_samples=300)
    lasting = candidates[(share_of_refits(candidates) == 1.0)]
    by_hand = explainer.select(lasting, REFUSED)
    pd.testing.assert_frame_equal(found.frame, by_hand.frame)
    without = explainer.explain(REFUSED, n_samples=300)
    assert found.measures["L0"].mean() > without.measures["L0"].mean()  # robust rows cost more


def test_shares_are_reported_without_a_requirement(explainer):
    plain = explainer.explain(REFUSED, n_samples=300)
    reported = explainer.explain(REFUSED, n_samples=300, robust=Robust(refits=refits(), noise=0.02))
    pd.testing.assert_frame_equal(plain.frame, reported.frame)
    np.testing.assert_allclose(reported.measures["refits"], share_of_refits(reported.frame))
    assert reported.measures["noise"].between(0, 1).all()
    assert reported.measures["refits"].min() < 0.9


def test_noise_is_the_share_of_accepted_neighbours():
    table = pd.DataFrame({"a": np.linspace(0.0, 200.0, 201), "b": np.arange(201)})
    model = LogisticRegression(max_iter=5000).fit(table, table["a"] > 100)
    schema = Schema.from_data(table)
    decision = resolve_decision((0.5, 1), model)
    edge = -(model.intercept_[0] + 50 * model.coef_[0, 1]) / model.coef_[0, 0]  # where the model returns 0.5, at b = 50
    requirement = Robust(noise={"a": 0.1}, share=0.7)
    robustness = Robustness.resolve(requirement, (0.5, 1), decision, schema, np.array([0, 1]), 3)
    a = edge * np.array([0.85, 1.0, 1.03, 1.2])
    rows = np.column_stack([a, np.full(4, 50.0)])
    share = robustness.shares(rows)["noise"]
    # a uniform factor in 1 +- 0.1 keeps a * factor >= edge
    expected = np.clip((1.1 - edge / a) / 0.2, 0, 1)
    assert np.abs(share - expected).max() < 4 * 0.5 / np.sqrt(NEIGHBOURS)
    assert share[[0, 3]].tolist() == [0.0, 1.0]
    scores, wanted = ConfirmedModel(EncodedModel(decision, schema), robustness).predict_encoded(rows)
    assert wanted.tolist() == [False, False, bool(share[2] >= 0.7), True]
    np.testing.assert_allclose(scores, model.predict_proba(table.assign(a=0.0).iloc[:4].assign(a=a, b=50))[:, 1])
    # the neighbours of a row do not depend on the batch
    assert (robustness.shares(rows[[2]])["noise"] == share[2]).all()


@pytest.mark.slow
def test_answer_is_equal_for_any_number_of_threads_and_order(explainer):
    options = {"n_samples": 200, "sparse": True, "robust": Robust(refits=refits()[:3], noise=0.05, share=1.0)}
    first = explainer.explain(REFUSED, **options)
    other = mcce.MCCE(MODEL, fixed=["age"], random_state=1, n_jobs=1).fit(LOANS)
    again = other.explain(REFUSED.iloc[::-1], **options)
    pd.testing.assert_frame_equal(first.frame, again.frame.loc[first.frame.index])


def test_refits_are_queried_last_and_rarely():
    queried = []

    class Counting:
        classes_ = np.array([False, True])

        def predict_proba(self, rows):
            queried.append(len(rows))
            return MODEL.predict_proba(rows)

    explainer = mcce.MCCE(MODEL, fixed=["age"], random_state=1).fit(LOANS)
    found = explainer.explain(REFUSED, n_samples=1000, robust=Robust(refits=[Counting()], share=1.0))
    assert sum(queried) < found.run.settings["rows_queried"]
    assert sum(queried) < 25 * 100


def test_factual_without_robust_row_states_the_reason(explainer):
    class Never:
        classes_ = np.array([False, True])

        def predict_proba(self, rows):
            return np.tile([1.0, 0.0], (len(rows), 1))

    found = explainer.explain(REFUSED.iloc[:2], n_samples=50, robust=Robust(refits=[Never()], share=1.0))
    assert len(found) == 0
    assert found.unexplained["reason"].str.contains("keeps it under refits and noise").all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share": 0.9}, "nothing to be robust against; give refits"),
        ({"share": 1.5, "noise": 0.1}, "robust is 1.5; it is a share"),
        ({"noise": -0.1}, r"noise is -0.1; it is a share of the value"),
        ({"noise": {"agee": 0.1}}, "noise names 'agee'"),
        ({"noise": {"age": 0.1}}, "noise names 'age', which is not a number that may change"),
        ({"refits": MODEL}, "give a list of models"),
    ],
)
def test_invalid_arguments_raise(explainer, options, message):
    with pytest.raises(InputError, match=message):
        explainer.explain(REFUSED, n_samples=10, robust=Robust(**options))


def test_share_alone_applies_to_noise_of_two_percent(explainer):
    one = explainer.explain(REFUSED, n_samples=100, robust=0.9)
    other = explainer.explain(REFUSED, n_samples=100, robust=Robust(noise=0.02, share=0.9))
    pd.testing.assert_frame_equal(one.frame, other.frame)
    assert one.measures["noise"].min() >= 0.9
    with pytest.raises(InputError, match="robust is 'very'; it is a share"):
        explainer.explain(REFUSED, robust="very")


def test_predicate_has_no_refits():
    explainer = mcce.MCCE(None, decision=lambda rows: rows["savings"] > 20_000, random_state=1).fit(LOANS)
    with pytest.raises(InputError, match="refits do not change"):
        explainer.explain(LOANS.iloc[:3], robust=Robust(refits=[MODEL], share=0.5))


def test_bootstrap_refits_use_samples_with_every_class():
    X = pd.DataFrame({"x": np.arange(40.0)})
    y = np.array(["rare"] + ["common"] * 39)
    refits = mcce.bootstrap_refits(LogisticRegression(), X, y, n=6, random_state=2)
    again = mcce.bootstrap_refits(LogisticRegression(), X, y, n=6, random_state=2)
    assert all(list(refit.classes_) == ["common", "rare"] for refit in refits)
    assert [refit.coef_[0, 0] for refit in refits] == [refit.coef_[0, 0] for refit in again]
    assert len({refit.coef_[0, 0] for refit in refits}) == 6
    with pytest.raises(InputError, match="40 rows and y 39"):
        mcce.bootstrap_refits(LogisticRegression(), X, y[1:])
