"""`survctree`: survival trees of party (tests/fixtures/ctree/make_survival.R) and a known process."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import mcce
from mcce import SamplerError, SurvCtreeSampler, Within
from mcce.rng import RowStreams
from mcce.samplers.donors.survctree import log_rank_scores
from mcce.storage.state import from_state, to_state
from mcce.table import Column, Schema
from mcce.testing import CHECKS, GOODNESS_OF_FIT, check_sampler
from mcce.testing.samplers import check_no_givens
from mcce.trees.ctree import tree as ctree
from tests.samplers.parametric.problem import encode

PARTY = json.loads((Path(__file__).parents[2] / "fixtures" / "ctree" / "survival.json").read_text())["cases"]
CONTROLS = {"default": {}, "loose": {"mincriterion": 0.5, "min_split": 10, "min_leaf": 4}}
LEVEL = 1e-3


def recorded(name):
    """Return the givens, with the event indicator, the times, and what party computed."""
    case = PARTY[name]
    return *encode(pd.DataFrame(case["data"]), "time"), case


def process(n=3000, seed=1):
    """Exponential times of two arms with means 1 and 6, censored at random; noise has no effect."""
    rng = np.random.default_rng(seed)
    arm = rng.integers(0, 2, n)
    time, censored_at = rng.exponential(np.where(arm == 0, 1.0, 6.0)), rng.exponential(5.0, n)
    frame = pd.DataFrame({"arm": np.array(["a", "b"])[arm], "noise": rng.normal(size=n), "status": time <= censored_at})
    return frame.assign(time=np.minimum(time, censored_at))


@pytest.mark.parametrize("sampler", [SurvCtreeSampler(), SurvCtreeSampler(event="sex", mincriterion=0.5)], ids=repr)
def test_conformance(sampler):
    if sampler.event is None:
        check_sampler(sampler, goodness_of_fit=True)
        return
    for check in (*CHECKS, *GOODNESS_OF_FIT):
        if check is not check_no_givens:  # the indicator is a given
            check(sampler, 0)


@pytest.mark.parametrize("name", PARTY)
def test_scores_match_party(name):
    given, target, case = recorded(name)
    happened = given.matrix[:, [feature.name for feature in given.features].index("status")] == 1.0
    np.testing.assert_allclose(log_rank_scores(target.values, happened), case["scores"], rtol=1e-12, atol=1e-12)


def test_weights_of_scores_count_rows():
    rng = np.random.default_rng(2)
    times, happened, counts = rng.integers(0, 9, 40) * 1.0, rng.random(40) < 0.6, rng.integers(1, 4, 40)
    repeated = log_rank_scores(np.repeat(times, counts), np.repeat(happened, counts))
    np.testing.assert_allclose(np.repeat(log_rank_scores(times, happened, counts * 1.0), counts), repeated)


@pytest.mark.parametrize("controls", CONTROLS)
@pytest.mark.parametrize("name", PARTY)
def test_splits_match_party(name, controls):
    given, target, case = recorded(name)
    names = [feature.name for feature in given.features]
    status = names.index("status")
    others = [j for j in range(len(names)) if j != status]
    scores = log_rank_scores(target.values, given.matrix[:, status] == 1.0)
    tree = ctree.grow(given.select(others), Column(target.feature, scores), **CONTROLS[controls])
    inner = np.flatnonzero(tree.feature >= 0)
    inner = inner[np.argsort(tree.number[inner])]
    expected = case[controls]["splits"]
    assert [names[others[j]] for j in tree.feature[inner]] == [split["variable"] for split in expected]
    np.testing.assert_allclose(tree.criterion[inner], [split["criterion"] for split in expected], rtol=1e-9)
    cuts = [split.get("cut", np.nan) for split in expected]
    by_levels = np.isnan(cuts)
    np.testing.assert_array_equal(tree.cut[inner][~by_levels], np.array(cuts)[~by_levels])


@pytest.mark.parametrize("name", PARTY)
def test_donors_of_events_match_the_leaf_of_party(name):
    given, target, case = recorded(name)
    status = [feature.name for feature in given.features].index("status")
    fitted = SurvCtreeSampler(event="status").fit(given, target)
    events = np.flatnonzero(given.matrix[:, status] == 1.0)
    leaf, where = fitted.tree_.route(given.matrix)[events], np.array(case["default"]["where"])[events]
    np.testing.assert_array_equal(leaf[:, None] == leaf, where[:, None] == where)
    for node in np.unique(leaf):
        tree = fitted.tree_
        donors = tree.donors[tree.start[node] : tree.start[node] + tree.size[node]]
        np.testing.assert_array_equal(np.sort(donors), events[leaf == node])


def test_draws_follow_a_known_process():
    given, target = encode(process(), "time")
    new = process(2000, seed=2)
    fitted = SurvCtreeSampler(event="status").fit(given, target)
    assert {given.features[j].name for j in fitted.tree_.feature if j >= 0} == {"arm", "status"}
    rows = Schema.from_data(new[["arm", "noise", "status"]]).encode(new[["arm", "noise", "status"]])
    drawn = fitted.sample(rows, RowStreams.from_seed(1, 2000))
    # the time of an event, and of censoring alike, is the minimum of the two: exponential with the sum of the rates
    rate = np.where(new["arm"] == "a", 1.0, 1.0 / 6.0) + 1.0 / 5.0
    for status in (True, False):
        chosen = (new["status"] == status).to_numpy()
        assert stats.kstest(stats.expon.cdf(drawn[chosen] * rate[chosen]), "uniform").pvalue > LEVEL


def test_densities_integrate_to_one_and_restricted_draws_match_rejection():
    given, target = encode(process(800), "time")
    fitted = SurvCtreeSampler(event="status").fit(given, target)
    grid = np.linspace(-10.0, 60.0, 40_001)
    density = np.exp(fitted.log_density(given.take(np.full(grid.size, 5)), grid))
    assert integrate.trapezoid(density, grid) == pytest.approx(1.0, abs=2e-3)
    n = 10_000
    rows = given.take(np.full(n, 5))
    low, high = np.quantile(target.values, [0.2, 0.7])
    within = Within(low=np.full(n, low), high=np.full(n, high), weighted=True)
    found = fitted.sample_within(rows, RowStreams.from_seed(4, n), within)
    free = fitted.sample(rows, RowStreams.from_seed(5, n))
    kept = free[(free >= low) & (free <= high)]
    assert stats.ks_2samp(found.values, kept).pvalue > LEVEL
    assert np.exp(found.log_mass[0]) == pytest.approx(kept.size / n, abs=0.02)


def test_chain_draws_the_indicator_first_and_round_trips(tmp_path):
    X = process(400)
    sampler = {"status": "ctree", "time": SurvCtreeSampler(event="status"), "*": "marginal"}
    chain = mcce.ChainModel(sampler=sampler, fixed=["arm"], random_state=1).fit(X)
    drawn = chain.sample(n=500)
    pairs = set(zip(X["arm"], X["status"], X["time"]))
    assert all(pair in pairs for pair in zip(drawn["arm"], drawn["status"], drawn["time"]))
    chain.save(tmp_path / "chain.mcce")
    pd.testing.assert_frame_equal(mcce.ChainModel.load(tmp_path / "chain.mcce").sample(n=500), drawn)
    given, target = encode(X, "time")
    fitted = SurvCtreeSampler(event="status").fit(given, target)
    again = from_state(to_state(fitted))
    np.testing.assert_array_equal(again.log_density(given, target.values), fitted.log_density(given, target.values))


def test_constant_indicator_means_no_censoring():
    X = process(400).assign(status=0)
    given, target = encode(X, "time")
    with_event = SurvCtreeSampler(event="status").fit(given, target)
    without = SurvCtreeSampler().fit(given.select([0, 1]), target)
    np.testing.assert_array_equal(
        with_event.log_density(given, target.values), without.log_density(given.select([0, 1]), target.values)
    )


def test_missing_indicators_use_donors_of_the_frequent_indicator():
    X = process(600)
    X["status"] = X["status"].astype(float).mask(np.arange(600) % 10 == 0)
    given, target = encode(X, "time")
    fitted = SurvCtreeSampler(event="status").fit(given, target)
    rows = X.assign(status=np.nan), X.assign(status=1.0)
    unknown, events = (Schema.from_data(X).encode(frame).select([0, 1, 2]) for frame in rows)
    assert X["status"].mean() > 0.5
    np.testing.assert_array_equal(
        fitted.sample(unknown, RowStreams.from_seed(1, 600)), fitted.sample(events, RowStreams.from_seed(1, 600))
    )
    one = X.assign(status=X["status"].mask(X["status"] == 0.0))
    given, target = encode(one, "time")
    assert SurvCtreeSampler(event="status").fit(given, target).tree_.n_leaves > 1


def test_errors_name_the_fix():
    X = process(100)
    given, target = encode(X, "time")
    with pytest.raises(SamplerError, match=r"needs the event indicator 'statuss' .* did you mean 'status'"):
        SurvCtreeSampler(event="statuss").fit(given, target)
    with pytest.raises(SamplerError, match="'noise' has other numbers; it must hold 0 and 1, or two levels"):
        SurvCtreeSampler(event="noise").fit(given, target)
    late = mcce.ChainModel(
        sampler={"time": SurvCtreeSampler(event="status"), "*": "cart"},
        visit_sequence=["arm", "noise", "time", "status"],
    )
    with pytest.raises(SamplerError, match="before 'time' in the visit sequence"):
        late.fit(X)
