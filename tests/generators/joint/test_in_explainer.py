"""Explainers that draw from joint generators: diagnostics, batches, trade-offs, pickles."""

import pickle

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import mcce
from mcce import SamplerError
from mcce.generators import AdversarialForest, MixtureGenerator, SynthesizerGenerator
from tests.batches.problem import tables
from tests.explainer.problem import DENIED, FIXED, TABLE, score
from tests.generators.joint.models import Completing, HotDeck
from tests.marks import nightly_but

GENERATORS = {
    "forest": AdversarialForest(fixed=FIXED, n_trees=8, random_state=1),
    "mixture": MixtureGenerator(fixed=FIXED, max_components=4, random_state=1),
    "hot deck": HotDeck(fixed=FIXED),
    "synthesizer": SynthesizerGenerator(Completing(), fixed=FIXED, random_state=1),
}

ANY_MISSING = mcce.allow("*", missing=True)


@pytest.fixture(scope="module", params=GENERATORS)
def explainer(request):
    return mcce.MCCE(score, fixed=FIXED, generator=GENERATORS[request.param]).fit(TABLE)


@pytest.mark.slow
def test_diagnose(explainer):
    diagnosed = explainer.diagnose(TABLE.head(60), n_samples=40, max_factuals=5)
    assert diagnosed.marginals["distance"].max() < 0.5
    assert diagnosed.evaluation.summary.loc["success", "mean"] == 1.0


@pytest.mark.slow
def test_batches_equal_one_call(explainer, tmp_path):
    pytest.importorskip("pyarrow")
    factuals = DENIED.head(12).reset_index(names="who")
    explainer.explain_batches(factuals, tmp_path / "found", id="who", batch_size=5, n_samples=60, n_jobs=1)
    found = tables(tmp_path / "found")[0]
    together = explainer.explain(DENIED.head(12), n_samples=60).to_frame()
    assert len(together) > 5
    assert_frame_equal(found, together, check_exact=True, check_dtype=False, check_categorical=False)


@pytest.mark.slow
def test_explainer_can_be_pickled(explainer):
    again = pickle.loads(pickle.dumps(explainer))
    one, two = (each.explain(DENIED.head(5), n_samples=50, constraints=[ANY_MISSING]) for each in (explainer, again))
    assert_frame_equal(one.frame, two.frame)


@pytest.mark.slow
def test_constraint_that_excludes_nothing_has_no_effect(explainer):
    low, high = TABLE["income"].min() - 1e9, TABLE["income"].max() + 1e9
    free = explainer.explain(DENIED.head(8), n_samples=60, constraints=[ANY_MISSING])
    bound = explainer.explain(
        DENIED.head(8), n_samples=60, constraints=[ANY_MISSING, mcce.allow("income", low=low, high=high)]
    )
    if not explainer.generator_.draws_observed:  # any number may be drawn, so a distant bound excludes some draws
        assert len(bound) == len(free)
    else:
        assert_frame_equal(free.frame, bound.frame)


def test_acceptance_is_reported(explainer):
    found = explainer.explain(
        DENIED.head(8), n_samples=60, constraints=[ANY_MISSING, mcce.allow("income", high=60), "income >= 20"]
    )
    assert (found.frame["income"] <= 60).all()
    assert (found.constraints["passed"] <= found.constraints["tried"]).all()
    assert found.constraints["tried"].sum() > 0


@pytest.mark.parametrize("name", nightly_but(GENERATORS, "hot deck", "synthesizer"))
def test_row_weights_are_used_or_raise(name):
    weighted = mcce.MCCE(score, fixed=FIXED, generator=GENERATORS[name])
    weights = np.arange(len(TABLE)) % 3 + 0.5
    if name in ("hot deck", "synthesizer"):
        with pytest.raises(SamplerError, match=r"does not take sample_weight"):
            weighted.fit(TABLE, sample_weight=weights)
    else:
        found = weighted.fit(TABLE, sample_weight=weights).explain(DENIED.head(3), n_samples=40)
        assert isinstance(found.frame, pd.DataFrame)
        assert weighted.generator_.training_weights_.mean() == pytest.approx(1.0)
