"""Joint generators as files, alone and in an explainer."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import InputError, SamplerError
from mcce.cli import main
from mcce.generators import AdversarialForest, JointGenerator
from mcce.storage.state import from_state, to_state
from tests.generators.joint.models import HotDeck
from tests.storage.good import accepted, table

X = table(80)
FORESTS = AdversarialForest(fixed=["sex"], n_trees=3, random_state=5)


@pytest.fixture(scope="module")
def forest():
    return AdversarialForest(fixed=["sex"], n_trees=3, random_state=5, n_jobs=1).fit(X, accepted(X) > 0.5)


@pytest.mark.slow
def test_loaded_generator_draws_and_scores_the_same(forest, tmp_path):
    forest.save(tmp_path / "a.mcce")
    for again in (JointGenerator.load(tmp_path / "a.mcce"), AdversarialForest.load(tmp_path / "a.mcce", n_jobs=2)):
        pd.testing.assert_frame_equal(again.sample(40), forest.sample(40))
        pd.testing.assert_series_equal(again.log_density(X), forest.log_density(X))
        assert repr(again).replace(", n_jobs=2", "") == repr(forest).replace(", n_jobs=1", "")


@pytest.mark.slow
def test_explainer_is_saved_with_its_generator(tmp_path):
    explainer = mcce.MCCE(accepted, decision=(0.5, 1.0), fixed=["sex"], generator=FORESTS).fit(X)
    explainer.save(tmp_path / "a.mcce")
    again = mcce.MCCE.load(tmp_path / "a.mcce", model=accepted, n_jobs=1)
    denied = X[accepted(X) < 0.5].head(6)
    for options in ({}, {"sparse": True, "floor": 0.01}):
        one, two = (
            each.explain(denied, n_samples=60, constraints=[mcce.allow("*", missing=True)], **options)
            for each in (explainer, again)
        )
        pd.testing.assert_frame_equal(one.frame, two.frame)
    assert again.generator_.n_jobs == 1
    with pytest.raises(SamplerError, match=r"donors='none' is not possible for AdversarialForest"):
        explainer.save(tmp_path / "b.mcce", donors="none")


def test_unsavable_generator_in_an_explainer_raises(tmp_path):
    explainer = mcce.MCCE(accepted, decision=(0.5, 1.0), fixed=["sex"], generator=HotDeck(fixed=["sex"])).fit(X)
    with pytest.raises(SamplerError, match=r"HotDeck.* cannot be saved: its fitted model cannot be checked"):
        explainer.save(tmp_path / "a.mcce")
    with pytest.raises(mcce.NotFittedError, match=r"is not fitted; call fit.X. before saving it"):
        FORESTS.save(tmp_path / "a.mcce")


def test_other_kinds_of_file_raise(forest, tmp_path):
    forest.save(tmp_path / "a.mcce")
    with pytest.raises(InputError, match=r"contains a AdversarialForest; use AdversarialForest.load"):
        mcce.ChainModel.load(tmp_path / "a.mcce")
    with pytest.raises(InputError, match=r"contains a AdversarialForest; use AdversarialForest.load"):
        HotDeck.load(tmp_path / "a.mcce")


def test_disclosure_of_a_file_is_reported(forest, tmp_path, capsys):
    forest.save(tmp_path / "a.mcce")
    assert main(["inspect", str(tmp_path / "a.mcce")]) == 0
    said = capsys.readouterr().out
    assert "training values of all columns, which a AdversarialForest stores" in said
    assert "the fixed values (sex) of all 80 training rows" in said
    explainer = mcce.MCCE(accepted, decision=(0.5, 1.0), fixed=["sex"], generator=FORESTS).fit(X)
    explainer.save(tmp_path / "b.mcce")
    assert main(["inspect", str(tmp_path / "b.mcce")]) == 0
    assert "whole training rows" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda m: {"codes": m.codes + 100}, "codes holds"),
        (lambda m: {"codes": m.codes.astype(np.int64)}, "codes is an array of int64"),
        (lambda m: {"rows": m.rows + 1}, "rows holds 80"),
        (lambda m: {"start": m.start[::-1].copy()}, "start does not match the rows"),
        (lambda m: {"start": np.where(np.arange(m.start.size) == 1, 0, m.start)}, "start has an empty leaf"),
        (lambda m: {"high": m.high - 50}, "high holds"),
        (lambda m: {"low": m.high, "high": m.low}, "low and high contain no row"),
        (lambda m: {"log_weight": m.log_weight * np.nan}, "log_weight holds nan"),
        (lambda m: {"smoothing": float("nan")}, "smoothing is nan"),
        (lambda m: {"codings": m.codings[:-1]}, "codes has the shape"),
        (lambda m: {"codings": (m.codings[0], *m.codings[:-1])}, "holds|codings do not match the columns"),
        (lambda m: {"codings": (replace(m.codings[1], values=m.codings[1].values[::-1].copy()),)}, "has|ascending"),
    ],
)
def test_inconsistent_leaves_raise(forest, spoil, message):
    state = to_state(forest)
    bad = to_state(replace(forest.model_, **spoil(forest.model_)))
    with pytest.raises(InputError, match=message):
        from_state(state | {"model_": bad})


def test_settings_and_models_of_other_generators_raise(forest):
    state = to_state(forest)
    with pytest.raises(InputError, match="settings has a name that is not a parameter of AdversarialForest"):
        from_state(state | {"settings": {**state["settings"], "shell": "rm"}})
    with pytest.raises(InputError, match="model_ is a int, which is not a model"):
        from_state(state | {"model_": 3})
    with pytest.raises(InputError, match="fixed feature 'x2' is not a column"):
        from_state(state | {"settings": {**state["settings"], "fixed": ["x2"]}})
