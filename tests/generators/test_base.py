"""One object for all that a draw depends on."""

import dataclasses
import pickle

import numpy as np
import pytest

from mcce import ChainModel, Within
from mcce.generators.base import DrawRequest
from tests.explainer.problem import FIXED, TABLE, score
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


def test_some_rows_of_a_request_draw_what_they_draw_among_all(generator):
    request = request_of(generator)
    whole = generator.draw(request)
    assert whole.rejected.any()
    assert not whole.rejected.all()
    for part in (slice(0, 7), slice(7, 40), slice(11, 12)):
        some = generator.draw(request.take(part))
        np.testing.assert_array_equal(some.rows, whole.rows[part])
        np.testing.assert_array_equal(some.rejected, whole.rejected[part])


def test_what_is_not_dead_is_inside_its_restrictions_and_has_its_givens(generator):
    request = request_of(generator)
    drawn = generator.draw(request)
    income = drawn.rows[:, TABLE.columns.get_loc("income")]
    inside = request.restrictions["income"].allows(income)
    np.testing.assert_array_equal(inside[~drawn.rejected], True)
    np.testing.assert_array_equal(generator.givens_of(drawn.rows), request.givens)


def test_a_request_can_be_sent_and_not_changed(generator):
    request = request_of(generator)
    there = pickle.loads(pickle.dumps(request))
    np.testing.assert_array_equal(generator.draw(there).rows, generator.draw(request).rows)
    assert len(there) == 40
    with pytest.raises(dataclasses.FrozenInstanceError):
        request.seed = 5


def test_densities_by_feature_are_those_of_the_mutable_ones(generator):
    matrix = generator.schema_.encode(TABLE).matrix[:30]
    by_feature = generator.feature_log_densities(matrix, score(TABLE)[:30] >= 0.5)
    assert set(by_feature) == set(TABLE.columns) - set(FIXED)
    assert all(np.isfinite(values).all() for values in by_feature.values())
