"""Models of other packages: reproducible ones are accepted, others raise."""

import random

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import InputError, SamplerError
from mcce.generators import SampleGenerator, SynthesizerGenerator
from mcce.generators.requests import DrawRequest
from mcce.rng import hash_rows
from tests.generators.joint.models import Alike, Completing, Conditional, Entropy, OwnState, Synthesizer

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
WANTED = np.asarray(X["pay"] > 80)
MODELS = {
    "completing": lambda: SynthesizerGenerator(Completing(), fixed=["sex"], random_state=1),
    "conditions": lambda: SynthesizerGenerator(Conditional(), fixed=["sex"], random_state=1),
    "rejection": lambda: SynthesizerGenerator(Synthesizer(), fixed=["sex"], random_state=1),
    "own state": lambda: SynthesizerGenerator(
        OwnState(), fixed=["sex"], random_state=1, seed=lambda m, s: setattr(m, "rng", np.random.default_rng(s))
    ),
    "factory": lambda: SynthesizerGenerator(lambda frame: Completing(), fixed=["sex"], random_state=1),
    "sample": lambda: SampleGenerator(Alike(), fixed=["sex"], random_state=1),
}


def request_of(generator, n, sex="m"):
    matrix = generator.schema_.encode(X[X["sex"] == sex].head(1)).matrix
    givens = np.repeat(generator.givens_of(matrix), n, axis=0)
    return DrawRequest(givens, np.full(n, 5, dtype=np.uint64), np.arange(n, dtype=np.uint64), 3)


@pytest.mark.parametrize("name", MODELS)
def test_rows_have_the_fixed_values_and_follow_the_model(name):
    made = MODELS[name]().fit(X)
    assert not hasattr(MODELS[name]().get_params().get("synthesizer", None), "data")
    for sex in ("f", "m"):
        drawn = made.draw(request_of(made, 250, sex))
        assert not drawn.rejected.any()
        rows = made.schema_.decode(drawn.rows)
        assert (rows["sex"] == sex).all()
        known = X[X["sex"] == sex]
        assert set(zip(rows["size"], rows["pay"])) <= set(zip(known["size"], known["pay"]))
        assert rows["pay"].nunique() > 60


@pytest.mark.parametrize("name", MODELS)
def test_row_does_not_depend_on_other_draws_or_global_state(name):
    made = MODELS[name]().fit(X, WANTED)
    request = request_of(made, 230)
    rows = made.draw(request).rows
    random.seed(9)
    np.random.seed(9)  # noqa: NPY002
    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    for part in (slice(99, 101), slice(200, 230), slice(None, None, -1)):
        np.testing.assert_array_equal(made.draw(request.take(part)).rows, rows[part])
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002
    assert len(np.unique(rows[:100], axis=0)) > 30
    assert not np.array_equal(rows[:100], rows[100:200])  # another block, another seed
    fresh = MODELS[name]().fit(X, WANTED)
    np.testing.assert_array_equal(fresh.draw(request).rows, rows)


def test_rows_of_other_givens_are_conditioned_on_them():
    """In an explanation the stream key of a row is the hash of its givens."""
    made = MODELS["completing"]().fit(X, WANTED)
    matrix = made.schema_.encode(X).matrix[:40]
    givens = made.givens_of(matrix, WANTED[:40])
    request = DrawRequest(givens, hash_rows(givens), np.arange(40, dtype=np.uint64), 3)
    drawn = made.draw(request).rows
    for i in (0, 1, 2, 3):
        np.testing.assert_array_equal(made.draw(request.take(slice(i, i + 1))).rows, drawn[i : i + 1])
    men = drawn[:, 0] == 1.0
    assert drawn[men, 3].min() > 100 > drawn[~men, 3].max()


def test_irreproducible_models_raise_at_fit():
    with pytest.raises(SamplerError, match=r"draws different rows with the same seed.*give a function that seeds it"):
        SynthesizerGenerator(Entropy(), random_state=1).fit(X)
    with pytest.raises(SamplerError, match=r"draws the same rows with different seeds|draws different rows"):
        SynthesizerGenerator(OwnState(), random_state=1).fit(X)

    class Same(Synthesizer):
        def sample(self, num_rows):
            return self.data.iloc[np.arange(num_rows) % len(self.data)]

    with pytest.raises(SamplerError, match=r"draws the same rows with different seeds: its random state is not set"):
        SynthesizerGenerator(Same(), random_state=1).fit(X)


def test_rejection_meets_conditions_within_tolerance_or_rejects_the_row():
    made = SynthesizerGenerator(Synthesizer(), fixed=["size"], random_state=1, tolerance=0.02).fit(X)
    near = made.sample(300, X[["size"]].head(1))
    size = X["size"].iloc[0]
    assert (near["size"] == size).all()
    pays = X.loc[(X["size"] - size).abs() <= 0.02 * 99, "pay"]
    assert set(near["pay"]) == set(pays)
    far = pd.DataFrame({"size": [1000]})
    drawn = made.draw(
        DrawRequest(np.full((3, 1), 1000.0), np.zeros(3, dtype=np.uint64), np.arange(3, dtype=np.uint64), 1)
    )
    assert drawn.rejected.all()
    assert drawn.acceptance().loc["the fixed values"].tolist() == [3, 0]
    assert np.isfinite(drawn.rows).all()
    with pytest.raises(InputError, match=r"none of 2 rows could be drawn.*2 rejected by 'the fixed values'"):
        made.sample(2, far)


@pytest.mark.slow
def test_rejected_rows_are_not_candidates():
    def score(rows):
        return rows["pay"].to_numpy() / 160.0

    generator = SynthesizerGenerator(Synthesizer(), fixed=["size"], random_state=1, tolerance=0.0)
    explainer = mcce.MCCE(score, fixed=["size"], generator=generator).fit(X)
    denied = X[(score(X) < 0.5) & (X["size"].map(X["size"].value_counts()) > 3)].head(3)
    candidates = explainer.generate(denied, n_samples=40)
    assert 0 < len(candidates) <= 120
    ids = candidates.index.get_level_values("id")
    np.testing.assert_array_equal(candidates["size"], denied.loc[ids, "size"])
    unseen = denied.head(1).assign(size=12345)
    with pytest.warns(mcce.MCCEWarning):
        found = explainer.explain(unseen, n_samples=20)
    assert len(found) == 0
    assert len(found.unexplained) == 1


class Odd(Synthesizer):
    def __init__(self, how):
        self.how = how

    def sample(self, num_rows):
        rows = super().sample(num_rows)
        if self.how == "array":
            return rows.to_numpy()
        if self.how == "column":
            return rows.drop(columns="pay")
        if self.how == "level":
            return rows.assign(home="boat")
        if self.how == "missing":
            return rows.assign(size=np.nan)
        return rows.assign(size=rows["size"].astype(str) + "x")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("array", "drew a ndarray; its rows must come as a pandas DataFrame"),
        ("column", r"drew rows without the column\(s\) 'pay'"),
        ("level", "drew invalid values of 'home': .*holds the level 'boat'"),
        ("missing", "drew missing values for 'size', which its dtype int64 cannot hold"),
        ("text", "drew invalid values of 'size'"),
    ],
)
def test_returned_tables_are_checked(how, message):
    with pytest.raises(SamplerError, match=message):
        SynthesizerGenerator(Odd(how), random_state=1).fit(X)


def test_numbers_are_rounded_to_the_grid():
    class Rough(Synthesizer):
        def sample(self, num_rows):
            rows = super().sample(num_rows)
            return rows.assign(size=rows["size"] + 0.3, pay=rows["pay"] + 0.01)

    rows = SynthesizerGenerator(Rough(), random_state=1).fit(X).sample(50)
    assert set(zip(rows["size"], rows["pay"])) <= set(zip(X["size"], X["pay"]))
    assert rows["size"].dtype == X["size"].dtype


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: SynthesizerGenerator(Completing), "has no method 'fit'; give an unfitted object"),
        (lambda: SynthesizerGenerator(object()), "which has no method 'fit'"),
        (lambda: SynthesizerGenerator(Completing(), tolerance=2), "tolerance is 2"),
        (lambda: SampleGenerator(Alike), "has no method 'fit'"),
        (lambda: SampleGenerator(3), "model is 3, which has no method 'fit'"),
    ],
)
def test_invalid_use_raises(made, message):
    with pytest.raises(InputError, match=message):
        made().fit(X)


def test_fewer_rows_than_requested_reject_the_others():
    class Few(Alike):
        def sample(self, n, given, random_state=None):
            return super().sample(min(n, 30), given, random_state)

    made = SampleGenerator(Few(), fixed=["sex"], random_state=1).fit(X)
    drawn = made.draw(request_of(made, 100))
    assert drawn.rejected.tolist() == [False] * 30 + [True] * 70

    class Short(Completing):
        def sample_remaining_columns(self, known_columns):
            return super().sample_remaining_columns(known_columns).head(40)

    made = SynthesizerGenerator(Short(), fixed=["sex"], random_state=1).fit(X)
    assert made.draw(request_of(made, 100)).rejected.sum() == 60

    class Nothing(Alike):
        def sample(self, n, given, random_state=None):
            return self.X.head(0)

    with pytest.raises(SamplerError, match=r"drew no rows given {'sex': 'f'}|drew no rows given {'sex': 'm'}"):
        SampleGenerator(Nothing(), fixed=["sex"], random_state=1).fit(X)
