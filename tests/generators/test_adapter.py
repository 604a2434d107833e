"""Models with fit(X) and sample(n, given) as generators."""

import random

import numpy as np
import pandas as pd
import pytest

from mcce.exceptions import InputError
from mcce.generators import SampleGenerator
from mcce.samplers import Within
from tests.generators.problem import Rule, request_for

RNG = np.random.default_rng(2)
N = 400
X = pd.DataFrame(
    {
        "sex": RNG.choice(["f", "m"], N),
        "size": RNG.integers(0, 100, N),
        "home": pd.Categorical(RNG.choice(["rent", "own"], N)),
        "pay": np.round(RNG.gamma(3, 10, N), 1),
    }
)
X["pay"] += 100.0 * (X["sex"] == "m")
WANTED = (X["size"] > 50).to_numpy()


class Alike:
    """Draws training rows with the given values."""

    def fit(self, X):
        self.X = X

    def sample(self, n, given, random_state=None):
        alike = self.X
        for name, value in given.items():
            alike = alike[alike[name] == value]
        return alike.sample(n, replace=True, random_state=random_state)


class Global(Alike):
    """The same by the global random state."""

    def sample(self, n, given):
        return super().sample(n, given)


class OwnState(Alike):
    """The same by a random state of its own, seeded by a method."""

    def set_random_state(self, seed):
        self.rng = np.random.default_rng(seed)

    def sample(self, n, given):
        return super().sample(n, given, self.rng)


@pytest.fixture(params=[Alike, Global, OwnState], ids=lambda model: model.__name__)
def generator(request):
    return SampleGenerator(request.param(), fixed=["sex"], random_state=1)


def test_rows_have_the_fixed_values_and_follow_the_model(generator):
    generator.fit(X)
    assert not hasattr(generator.model, "X")
    drawn = generator.sample(250, given=pd.DataFrame({"sex": ["f", "m"]}))
    for k, sex in enumerate("fm"):
        rows, known = drawn.loc[k], X[X["sex"] == sex]
        assert (rows["sex"] == sex).all()
        assert set(zip(rows["size"], rows["pay"])) <= set(zip(known["size"], known["pay"]))
        assert rows["pay"].nunique() > 60
    assert drawn.dtypes.equals(X.dtypes)


def test_row_does_not_depend_on_other_draws_or_global_state(generator):
    generator.fit(X, WANTED)
    request = request_for(generator, 230, decision=False)
    rows = generator.draw(request).rows
    assert (rows[:, generator.schema_.position("size")] <= 50).all()
    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    for part in (slice(99, 101), slice(200, 230), slice(None, None, -1)):
        np.testing.assert_array_equal(generator.draw(request.take(part)).rows, rows[part])
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002
    assert len(np.unique(rows[:100], axis=0)) > 30
    assert not np.array_equal(rows[:100], rows[100:200])  # another block, another seed


def test_restrictions_and_rules_are_applied_by_rejection(generator):
    generator.fit(X)
    place = {name: j for j, name in enumerate(generator.schema_.names)}
    own = np.tile([True, False], (150, 1))
    within = {place["home"]: Within(levels=own), place["size"]: Within(low=np.full(150, 30.0))}
    rule = Rule((place["size"], place["pay"]), lambda rows: rows[:, place["size"]] < 80)
    request = request_for(generator, 150, within=within, rules=(rule,))
    drawn = generator.draw(request)
    assert drawn.rejected.mean() < 0.05
    kept = drawn.rows[~drawn.rejected]
    assert ((kept[:, place["size"]] >= 30) & (kept[:, place["size"]] < 80)).all()
    assert (kept[:, place["home"]] == 0).all()
    np.testing.assert_array_equal(generator.draw(request.take(slice(50, 60))).rows, drawn.rows[50:60])
    impossible = {place["size"]: Within(low=np.full(150, 1000.0))}
    assert generator.draw(request_for(generator, 150, within=impossible)).rejected.all()


def test_rows_that_the_model_could_not_draw_are_rejected():
    class Few(Alike):
        def sample(self, n, given, random_state=None):
            return super().sample(30, given, random_state)

    generator = SampleGenerator(Few(), fixed=["sex"], random_state=1).fit(X)
    drawn = generator.draw(request_for(generator, 100))
    assert drawn.rejected.tolist() == [False] * 30 + [True] * 70


def test_weights_repeat_the_rows_of_the_model():
    weights = np.where(X["home"] == "own", 3.0, 1.0)
    generator = SampleGenerator(Alike(), random_state=1).fit(X, sample_weight=weights)
    assert len(generator.model_.X) == weights.sum()


class Entropy(Alike):
    def sample(self, n, given):
        return super().sample(n, given, np.random.default_rng())


class Array(Alike):
    def sample(self, n, given, seed=None):
        return super().sample(n, given, seed).to_numpy()


class Partly(Alike):
    def sample(self, n, given, seed=None):
        return super().sample(n, given, seed).drop(columns="pay")


class Unknown(Alike):
    def sample(self, n, given, seed=None):
        return super().sample(n, given, seed).assign(home="boat")


class Missing(Alike):
    def sample(self, n, given, seed=None):
        return super().sample(n, given, seed).assign(size=np.nan)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Alike, "which has no method 'fit'; give an unfitted object with"),
        (Entropy(), "draws different rows with the same seed.*give its .* a parameter random_state"),
        (Array(), "drew a ndarray; .* must return a DataFrame"),
        (Partly(), "drew rows without 'pay'"),
        (Unknown(), "drew invalid values of 'home'.*'boat'"),
        (Missing(), "drew missing values for 'size', which its dtype int64 cannot hold"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_messages(model, message):
    with pytest.raises(InputError, match=message):
        SampleGenerator(model, fixed=["sex"], random_state=1).fit(X)
