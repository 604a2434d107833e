"""Conversion of the encoded selected rows to the tables of a result."""

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import gower_distance
from mcce.exceptions import SamplerError
from mcce.explain.acceptance import Acceptance
from mcce.explain.finish import add_measures
from mcce.explain.followup import questions_of
from mcce.explain.order import Caution, resolve_measures
from mcce.explain.pipeline import Cost, Explanation
from mcce.explain.problem import Factuals, Problem, Settings
from mcce.explain.tabulate import tabulate
from mcce.explain.winners import Winners
from mcce.model.decisions import resolve_decision
from mcce.model.queries import EncodedModel
from tests.explainer.problem import DENIED, FIXED, TABLE, score
from tests.generators.row_bootstrap import RowBootstrap

DECISION = resolve_decision((0.5, 1.0), score)
BEST = TABLE[score(TABLE) > 0.7].iloc[:3]


@pytest.fixture(scope="module")
def generator():
    return RowBootstrap(FIXED, seed=9).fit(TABLE, score(TABLE) >= 0.5)


class Scale:
    """A scale of plausibility on which each score equals its quantile."""

    def quantile(self, scores):
        return scores


def assembled(generator, *, plausibility=np.nan, owner=(0, 0, 2), measures=("L0", "gower"), n_samples=50):
    rows = DENIED.iloc[:4]
    factuals = Factuals(rows.index, generator.schema_.encode(rows).matrix, score(rows), np.array([False] * 3 + [True]))
    found = BEST.iloc[: len(owner)].assign(age=rows["age"].iloc[list(owner)].to_numpy())
    chosen = Winners.chosen(
        np.array(owner, dtype=np.int64),
        generator.schema_.encode(found).matrix,
        score(found),
        np.full(len(owner), plausibility),
    )
    winners = chosen.measured(generator.schema_.features, factuals.matrix)
    sparse = not np.isnan(plausibility)
    problem = Problem(
        generator=generator,
        decision=DECISION,
        question=EncodedModel(DECISION, generator.schema_),
        settings=Settings(n_samples or 0, sparse=sparse),
        order=resolve_measures(measures, generator.schema_.features),
        caution=Caution(Scale()) if sparse else None,
    )
    drawn = None if n_samples is None else np.full(len(rows), n_samples)
    winners = add_measures(Acceptance(problem, factuals.matrix), winners)
    explained = Explanation(problem, factuals, winners, Cost(77, 1.5, 0.5), drawn)
    settings = {"n_samples": n_samples}
    return tabulate(explained, settings, 3.0, questions_of(explained, settings, 3.0, lambda: None)), found, rows


def test_ranks_names_and_dtypes(generator):
    result, found, rows = assembled(generator)
    a, _, c, _ = rows.index
    assert result.frame.index.tolist() == [(a, 1), (a, 2), (c, 1)]
    pd.testing.assert_frame_equal(result.frame.reset_index(drop=True), found.reset_index(drop=True))
    pd.testing.assert_frame_equal(result.factuals, rows)
    assert dict(result.run.timings) == {"fit": 3.0, "generate": 1.5, "select": 0.5}
    assert dict(result.run.settings) == {"n_samples": 50, "rows_queried": 77}
    assert result.fixed == tuple(FIXED)


def test_measures_match_the_rows_and_their_factuals(generator):
    result, found, rows = assembled(generator, measures=("L0", "l2"))
    assert list(result.measures.columns) == ["prediction", "L0", "gower", "gower_sum", "l2"]
    for place, owner in enumerate((0, 0, 2)):
        gower = gower_distance(found.iloc[[place]], rows.iloc[[owner]], training=TABLE)
        np.testing.assert_allclose(result.measures["gower"].iloc[place], gower)
    np.testing.assert_array_equal(result.measures["prediction"], score(found))


def test_reasons_are_given_for_factuals_without_counterfactual(generator):
    result, _, rows = assembled(generator)
    assert result.unexplained.index.tolist() == [rows.index[1], rows.index[3]]
    assert result.unexplained["reason"].iloc[1] == "already has the wanted decision"
    assert result.unexplained["reason"].iloc[0].startswith("none of the 50 candidates has the wanted decision")
    brought, _, _ = assembled(generator, n_samples=None)
    assert brought.unexplained["reason"].iloc[0].startswith("no candidate has the wanted decision")


def test_densities_are_reported_with_plausibility(generator):
    result, found, _ = assembled(generator, plausibility=0.4)
    assert (result.measures["plausibility"] == 0.4).all()
    expected = generator.feature_log_densities(generator.schema_.encode(found).matrix)
    np.testing.assert_array_equal(result.measures["log_density"], sum(expected.values()))
    assert "log_density" not in assembled(generator)[0].measures


def test_generator_without_densities_gives_missing_values(generator):
    class Silent(RowBootstrap):
        def feature_log_densities(self, matrix, decision=True, *, training=False):
            raise SamplerError("no density")

    silent = Silent(FIXED).fit(TABLE, score(TABLE) >= 0.5)
    result, _, _ = assembled(silent, plausibility=0.4)
    assert result.measures["log_density"].isna().all()


def test_no_counterfactual_found(generator):
    result, _, rows = assembled(generator, owner=())
    assert len(result) == 0
    assert result.frame.dtypes.equals(TABLE.dtypes)
    assert result.unexplained.index.tolist() == rows.index.tolist()


def test_ranges_match_the_training_numbers(generator):
    ranges = assembled(generator)[0].ranges
    assert ranges["income"] == (TABLE["income"].min(), TABLE["income"].max())
    assert ranges["since"] == (TABLE["since"].min(), TABLE["since"].max())
    assert "job" not in ranges


def test_rows_behind_a_picture_have_fixed_values_and_mostly_the_decision(generator):
    result, _, rows = assembled(generator)
    for found in (result, result[rows.index[0]]):
        alike = found._questions.alike(rows.iloc[[0]])
        assert len(alike) > 100
        assert alike.dtypes.equals(TABLE.dtypes)
        assert all((alike[name] == rows[name].iloc[0]).all() for name in FIXED)
        assert (score(alike) >= 0.5).mean() > 0.5


@pytest.mark.slow
def test_writing_tables_does_not_query_draw_or_search(monkeypatch):
    queried = []

    def model(rows):
        queried.append(len(rows))
        return score(rows)

    explainer = mcce.MCCE(model, fixed=FIXED, random_state=1).fit(TABLE)
    written = []

    def watched(*arguments):
        before = len(queried)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(explainer.generator_), "draw", None)
            written.append(tabulate(*arguments))
        assert len(queried) == before
        return written[-1]

    monkeypatch.setattr("mcce.explain.tabulate.tabulate", watched)
    how = {"n_samples": 60, "n_counterfactuals": 2, "constraints": [mcce.allow("income", direction="increase")]}
    for also in ({}, {"sparse": True}, {"robust": mcce.Robust(noise=0.02)}):
        explainer.explain(DENIED.head(30), **how, **also)
    explainer.select(explainer.generate(DENIED.head(5), n_samples=20), DENIED.head(5), constraints=how["constraints"])
    assert len(written) == 4
    assert all(len(each) for each in written)
