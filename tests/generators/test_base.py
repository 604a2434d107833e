"""The base class of generators, and the request that a draw depends on."""

import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import ChainModel, InputError, SamplerError, Within
from mcce.generators import Generator, JointGenerator
from mcce.generators.requests import DrawRequest
from tests.explainer.problem import DENIED, FIXED, TABLE, score
from tests.generators.row_bootstrap import RowBootstrap


@pytest.fixture(scope="module", params=["chain", "bootstrap"])
def generator(request):
    made = ChainModel(fixed=FIXED, random_state=1) if request.param == "chain" else RowBootstrap(FIXED)
    return made.fit(TABLE, score(TABLE) >= 0.5)


def request_of(generator, n=40):
    income = np.linspace(20, 60, n)
    return DrawRequest(
        givens=generator.givens_of(generator.schema_.encode(TABLE).matrix[:n]),
        stream_keys=np.arange(n, dtype=np.uint64) % 5,
        draw_indices=np.arange(n, dtype=np.uint64),
        seed=4,
        restrictions={"income": Within(low=income - 8, high=income + 8)},
    )


def test_subset_of_a_request_draws_the_same_rows(generator):
    request = request_of(generator)
    whole = generator.draw(request)
    assert whole.rejected.any()
    assert not whole.rejected.all()
    for part in (slice(0, 7), slice(7, 40), slice(11, 12)):
        some = generator.draw(request.take(part))
        np.testing.assert_array_equal(some.rows, whole.rows[part])
        np.testing.assert_array_equal(some.rejected, whole.rejected[part])


def test_accepted_rows_satisfy_restrictions_and_givens(generator):
    request = request_of(generator)
    drawn = generator.draw(request)
    income = drawn.rows[:, TABLE.columns.get_loc("income")]
    inside = request.restrictions["income"].allows(income)
    np.testing.assert_array_equal(inside[~drawn.rejected], True)
    np.testing.assert_array_equal(generator.givens_of(drawn.rows), request.givens)


def test_request_can_be_pickled_and_is_immutable(generator):
    request = request_of(generator)
    there = pickle.loads(pickle.dumps(request))
    np.testing.assert_array_equal(generator.draw(there).rows, generator.draw(request).rows)
    assert len(there) == 40
    with pytest.raises(dataclasses.FrozenInstanceError):
        request.seed = 5


def test_densities_by_feature_cover_the_mutable_features(generator):
    matrix = generator.schema_.encode(TABLE).matrix[:30]
    by_feature = generator.feature_log_densities(matrix, score(TABLE)[:30] >= 0.5)
    assert set(by_feature) == set(TABLE.columns) - set(FIXED)
    assert all(np.isfinite(values).all() for values in by_feature.values())


def test_every_generator_is_a_subclass():
    assert issubclass(JointGenerator, Generator)
    assert all(issubclass(cls, Generator) for cls in mcce.available_generators().values())
    assert issubclass(mcce.generators.SampleGenerator, Generator)
    assert Generator.__abstractmethods__ == {"fit", "draw"}
    with pytest.raises(TypeError, match="abstract method"):
        Generator()


def test_fit_and_draw_suffice_to_sample(generator):
    rows = generator.sample(50, TABLE[FIXED].iloc[:3], within={"income": (10, 70)})
    assert rows.index.names == ["id", "draw"]
    assert rows["income"].between(10, 70).all()
    given = TABLE[FIXED].loc[rows.index.get_level_values("id")].reset_index(drop=True)
    pd.testing.assert_frame_equal(rows[FIXED].reset_index(drop=True), given)
    assert generator.sample(7, decision=True).shape == (7, TABLE.shape[1])
    density = generator.log_density(TABLE.head(30), decision=score(TABLE)[:30] >= 0.5)
    each = generator.log_density(TABLE.head(30), decision=score(TABLE)[:30] >= 0.5, per_feature=True)
    np.testing.assert_allclose(density, each.sum(axis=1))


def test_givens_are_the_fixed_values_in_data_order_then_the_decision(generator):
    matrix = generator.schema_.encode(TABLE).matrix
    positions = [TABLE.columns.get_loc(name) for name in TABLE.columns if name in FIXED]
    wanted = score(TABLE) >= 0.5
    np.testing.assert_array_equal(generator.givens_of(matrix, wanted), np.column_stack([matrix[:, positions], wanted]))
    np.testing.assert_array_equal(generator.givens_of(matrix, wanted), generator.training_givens_)


def test_subclass_without_storage_raises(tmp_path):
    explainer = mcce.MCCE(score, fixed=FIXED, generator=RowBootstrap(FIXED)).fit(TABLE)
    for each in (explainer, explainer.generator_):
        with pytest.raises(
            SamplerError, match=r"RowBootstrap.* cannot be saved: .* Pickle it, or use a generator made"
        ):
            each.save(tmp_path / "a.mcce")
    with pytest.raises(
        SamplerError, match=r"RowBootstrap.* does not take sample_weight; use a generator that does .chain,"
    ):
        explainer.fit(TABLE, sample_weight=np.ones(len(TABLE)))


def test_explainer_uses_the_overridden_generator_methods():
    class Described(RowBootstrap):
        """A generator with other answers than its base class, as a private generator has."""

        def describe(self):
            return {"random_state": 7, "sampler": "told"}

        def rows_in_place_of_training(self):
            return TABLE.iloc[::-1].reset_index(drop=True)

    explainer = mcce.MCCE(score, fixed=FIXED, generator=Described(FIXED)).fit(TABLE)
    settings = explainer.explain(DENIED.head(2), n_samples=50).run.settings
    assert (settings["sampler"], settings["random_state"]) == ("told", 7)
    spots = explainer.learned_.training.spots
    instead = TABLE.iloc[::-1].iloc[spots.positions]
    np.testing.assert_array_equal(spots.rows, explainer.generator_.schema_.encode(instead).matrix)
    assert explainer.fit_seconds_ == 0.0


def test_non_generator_raises_and_names_the_base_class():
    class Duck:
        """An object with the methods but not the base class."""

        fit = draw = givens_of = feature_log_densities = sample = lambda self: None

    with pytest.raises(
        InputError, match=r"MCCE\(generator=\.\.\.\) got .*Duck.*subclass of mcce\.generators\.Generator"
    ):
        mcce.MCCE(score, generator=Duck()).fit(TABLE)
