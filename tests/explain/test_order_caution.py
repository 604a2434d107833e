"""`caution`: the minimised cost compared with brute force, and the roles of changes."""

from __future__ import annotations

import functools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcce
from mcce.explain.acceptance import Acceptance
from mcce.explain.order import DEFAULT, Caution, Margins, resolve_measures
from mcce.explain.sparse import SparseSearch
from mcce.model.decisions import Answer, resolve_decision
from mcce.plausibility.score import Scale
from tests.explain.small_cases import (
    FEATURES,
    MUTABLE,
    VALUES,
    Case,
    changes,
    crossings,
    gower_sum,
    plausibility,
    plausibility_of,
    problem_of,
)
from tests.marks import examples, nightly

MARGINS = Margins(-np.inf, 0.4, Scale(np.linspace(0.0, 0.4, 50)))
row = st.tuples(*(st.sampled_from(values) for values in VALUES))


def cost(case, candidate, factual, strength):
    """The cost by the formula of the module, one row at a time."""
    scale = plausibility()
    fold = scale.fold_of(np.array([factual]))
    near = scale.distance(np.array([candidate]), fold)[0]
    inside = 0.4 - case.model.score(candidate)
    m = (1 + (MARGINS.accepted.values <= inside).sum()) / 51
    t = scale.typical_distance
    edge = 1.25 * max(near - t, 0.0) + max(0.5 * t, 0.2) * max(0.0, 1.0 - m / 0.25)
    return gower_sum(candidate, factual) + strength * edge


@examples(40)
@given(
    pools=st.lists(st.lists(row, min_size=1, max_size=6), min_size=1, max_size=2),
    factuals=st.lists(st.tuples(st.integers(0, 9), row), min_size=1, max_size=4),
    seed=st.integers(0, 99),
    floor=st.sampled_from([0.0, 0.05, 0.3]),
    strength=st.sampled_from([0.5, 1.0, 4.0]),
    k=st.sampled_from([1, 2]),
)
def test_single_changes_have_minimal_cost_by_brute_force(pools, factuals, seed, floor, strength, k):
    case = Case.of(pools, factuals, seed, 0.4)
    caution, ordering = Caution(plausibility(), MARGINS, strength), resolve_measures(DEFAULT, FEATURES)
    problem = problem_of(FEATURES, MUTABLE, case.model, ordering, caution, floor)
    found = SparseSearch(Acceptance(problem, case.factuals)).search(case.pools, k)
    least = plausibility().least_score(floor)
    for f, factual in enumerate(case.factuals):
        single = [c for c in crossings(case.pool(f), factual) if changes(c, factual) == 1 and case.model.wants(c)]
        single = [c for c, score in zip(single, plausibility_of(single, factual), strict=True) if score >= least]
        if len(single) < k:
            continue
        expected = sorted(cost(case, c, factual, strength) for c in single)[:k]
        mine = [cost(case, tuple(r), factual, strength) for r in found.rows[found.owner == f]]
        assert mine == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("typical", "expected"), [(0.01, 0.2), (2.0, 1.0)])
def test_margin_counts_where_real_rows_are_dense(typical, expected):
    caution = Caution(SimpleNamespace(typical_distance=typical), MARGINS)
    steps, near = np.zeros(2), np.full(2, typical)
    at_the_end, inside = caution.cost(steps, near, np.array([0.4, 0.2]))
    assert at_the_end == pytest.approx(expected * (1.0 - 2 / 51 / 0.25))
    assert inside == 0.0


def test_margins_refer_to_the_interval_ends_that_are_exceeded():
    scores = np.array([0.1, 0.4, 0.6, 0.7, 1.0])
    decision = resolve_decision((0.5, 1.0), lambda rows: rows)
    margins = Margins.of(decision, Answer(scores, scores >= 0.5))
    assert (margins.low, margins.high) == (0.5, np.inf)
    np.testing.assert_allclose(margins.inside(scores), scores - 0.5)
    np.testing.assert_allclose(margins.share(np.array([0.55, 0.65, 1.0])), [1 / 4, 2 / 4, 1.0])
    assert Margins.of(decision, Answer(scores[2:], scores[2:] >= 0.5)) is None
    assert Margins.of(resolve_decision("yes", lambda rows: rows), Answer(scores, scores >= 0.5)) is None


# ---------------------------------------------------------------- needed or accompanying changes


def people(n=2_000):
    """Exactly the rows with a job have a salary; other columns are independent of both."""
    rng = np.random.default_rng(0)
    job = rng.random(n) < 0.7
    return pd.DataFrame(
        {
            "job": pd.Categorical(np.where(job, "nurse", "none")),
            "salary": np.where(job, np.round(rng.normal(40_000, 8_000, n), -2), 0.0),
            "height": np.round(rng.normal(170, 10, n)),
            "loan": np.round(rng.uniform(1_000, 50_000, n), -2),
        }
    )


def score(rows):
    """The salary helps, the loan harms, and other features have no effect."""
    return rows["salary"].to_numpy() / 40_000 - rows["loan"].to_numpy() / 100_000


@functools.cache
def fitted():
    # without relations: only plausibility links salary and job
    return mcce.MCCE(score, decision=(0.6, np.inf), random_state=1).fit(people(), relations=())


@functools.cache
def explained(floor=0.1, **options):
    X = people()
    return fitted().explain(X[X["job"] == "none"].head(40), sparse=True, floor=floor, **options)


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_accompanying_job_change_is_reported():
    found = explained()
    table = found.changes()
    roles = table.groupby("feature")["role"].agg(set).to_dict()
    assert roles["salary"] == {"needed"}
    assert roles["job"] == {"comes along"}
    who = table.loc[table["role"] == "comes along", "id"].iloc[0]
    text = "(together with job nurse instead of none)"
    assert text in found.sentence(who)
    assert text in " ".join(mcce.report.letter(found, who).split())
    assert "<small>comes along</small>" in found.to_html()
    assert found[who].changes()["role"].tolist() == table.loc[table["id"] == who, "role"].tolist()


def test_roles_are_saved_with_the_result(tmp_path):
    found = explained()
    found.save(tmp_path / "found.mcce")
    pd.testing.assert_frame_equal(mcce.Counterfactuals.load(tmp_path / "found.mcce").changes(), found.changes())


@pytest.mark.slow
@pytest.mark.parametrize("floor", [0.0, 0.1, *nightly(0.5)])
@pytest.mark.parametrize("measures", [("L0", "gower"), *nightly(("gower",))])
def test_every_change_has_a_role_and_none_is_harmful(floor, measures):
    found = explained(floor, measures=measures)
    table = found.changes()
    loans = table[table["feature"] == "loan"]
    assert (loans["to"] < loans["from"]).all()
    assert set(table.loc[table["feature"] == "height", "role"]) <= {"comes along"}
    explainer = fitted()
    scale, schema = explainer.plausibility_, explainer.generator_.schema_
    several = table[table.groupby("id")["feature"].transform("size") > 1]
    assert len(several) or floor == 0.0
    for who, name in zip(several["id"], several["feature"], strict=True):
        without = found.frame.loc[[(who, 1)]].assign(**{name: found.factuals[name][who]})
        rows, own = (schema.encode(frame).matrix for frame in (without, found.factuals.loc[[who]]))
        plausible = scale.score(rows, scale.fold_of(own))[0] >= scale.least_score(floor)
        contradicts = (without["job"] == "none") & (without["salary"] > 0)  # a reason to withhold the row
        assert contradicts.all() or not (plausible and score(without)[0] >= 0.6)


def test_plain_method_reports_no_roles():
    X = people(300)
    found = mcce.MCCE(score, decision=(0.6, np.inf), random_state=1).fit(X).explain(X.head(20), n_samples=50)
    assert "role" not in found.changes()


@pytest.mark.slow
def test_caution_trades_distance_for_margin():
    near, far = explained(0.1, caution=0.0).measures, explained(0.1, caution=4.0).measures
    assert near["L0"].mean() == far["L0"].mean()
    assert near["gower"].mean() < far["gower"].mean()
    assert near["prediction"].mean() < far["prediction"].mean()
    with pytest.raises(mcce.exceptions.InputError, match="caution is -1; it must be a number of at least 0"):
        explained(caution=-1)
