"""The base class of joint generators, compared with brute force over the donors of a hot deck."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone

import mcce
from mcce import InputError, SamplerError, Within
from mcce.generators.requests import DrawRequest
from tests.generators.joint.models import HotDeck

RNG = np.random.default_rng(4)
N = 300
X = pd.DataFrame(
    {
        "x": RNG.integers(0, 10, N).astype(float),
        "sex": RNG.choice(["f", "m"], N),
        "job": pd.Categorical(RNG.choice(["a", "b", "c"], N), categories=["a", "b", "c", "never"]),
        "n": RNG.integers(0, 40, N),
    }
)
WANTED = np.asarray(X["x"] + RNG.normal(size=N) > 4)


@pytest.fixture(scope="module")
def deck():
    return HotDeck(fixed=["sex"]).fit(X, WANTED)


def request_of(generator, n, *, sex="f", wanted=True, key=3, **more):
    matrix = generator.schema_.encode(X[X["sex"] == sex].head(1)).matrix
    givens = np.repeat(generator.givens_of(matrix, wanted), n, axis=0)
    return DrawRequest(givens, np.full(n, key, dtype=np.uint64), np.arange(n, dtype=np.uint64), 7, **more)


def donors_of(sex="f", wanted=True):
    return X[(X["sex"] == sex) & (wanted == WANTED)]


def test_rejection_conditions_the_joint_distribution(deck):
    """Rows that satisfy two restrictions and a rule are equally likely donors that do."""
    n = 3000

    class Sum:
        columns = (0, 3)

        def holds(self, rows, factuals):
            return rows[:, 0] + rows[:, 3] < 30

        def within_for(self, column, rows, factuals):
            return None

        def __str__(self):
            return "x + n < 30"

    within = {"x": Within(low=np.full(n, 5.0)), "job": Within(levels=np.tile([True, False, True, False], (n, 1)))}
    drawn = deck.draw(request_of(deck, n, restrictions=within, rules=(Sum(),)))
    donors = donors_of()
    donors = donors[(donors["x"] >= 5) & donors["job"].isin(["a", "c"]) & (donors["x"] + donors["n"] < 30)]
    assert not drawn.rejected.any()
    keys = deck.schema_.encode(donors).matrix @ [1e6, 0, 1e3, 1]
    found, counts = np.unique(drawn.rows @ [1e6, 0, 1e3, 1], return_counts=True)
    expected = pd.Series(keys).value_counts().sort_index()
    assert found.tolist() == expected.index.tolist()
    assert stats.chisquare(counts, expected / expected.sum() * n).pvalue > 1e-4


def test_weights_are_unbiased_estimates_of_the_allowed_probability(deck):
    n = 4000
    drawn = deck.draw(request_of(deck, n, restrictions={"x": Within(low=np.full(n, 8.0))}, weighted=True))
    share = (donors_of()["x"] >= 8).mean()
    weight = np.exp(drawn.log_weight)
    assert abs(weight.mean() - share) < 4 * weight.std() / np.sqrt(n)
    free = deck.draw(request_of(deck, 5, weighted=True))
    assert free.log_weight.tolist() == [0.0] * 5


def test_causes_of_rejection_and_their_counts(deck):
    n = 40
    even = np.arange(n) % 2 == 0
    within = {
        "n": Within(low=np.where(even, 1000.0, 0.0)),  # impossible for every other row
        "sex": Within(levels=np.tile([False, True], (n, 1)) | (np.arange(n) >= 4)[:, None]),  # f is not allowed for 4
        "job": Within(levels=np.where((np.arange(n) == 39)[:, None], [False] * 4, [True] * 4)),
    }
    drawn = deck.draw(request_of(deck, n, restrictions=within))
    assert drawn.constraints == ("n", "sex", "job")
    assert drawn.rejected_by[:6].tolist() == [1, 1, 1, 1, 0, -1]
    assert drawn.rejected_by[39] == 2
    assert drawn.rejected.sum() == 4 + 18 + 1
    # of the 36 rows allowed by sex, n restricts 18; of the other 18, one is restricted in job
    assert drawn.acceptance().to_numpy().tolist() == [[18, 0], [40, 36], [1, 0]]
    np.testing.assert_array_equal(drawn.rows[:, 1], 0.0)
    with_values = deck.schema_.decode(drawn.rows)
    assert with_values["job"].isin(["a", "b", "c"]).all()


def test_rules_on_fixed_features_are_checked_before_drawing(deck):
    class Women:
        columns = (1,)

        def holds(self, rows, factuals):
            assert np.isnan(rows[:, [0, 2, 3]]).all()
            return rows[:, 1] == 0.0

        def within_for(self, column, rows, factuals):
            return None

        def __str__(self):
            return "sex == 'f'"

    assert not deck.draw(request_of(deck, 5, rules=(Women(),))).rejected.any()
    men = deck.draw(request_of(deck, 5, sex="m", rules=(Women(),)))
    assert men.rejected.all()
    assert men.acceptance().loc["sex == 'f'"].tolist() == [5, 0]


def test_infeasible_rule_terminates(deck):
    class Never:
        columns = (0,)
        queried = 0

        def holds(self, rows, factuals):
            Never.queried += 1
            return np.zeros(len(rows), dtype=bool)

        def within_for(self, column, rows, factuals):
            return None

        def __str__(self):
            return "never"

    drawn = deck.draw(request_of(deck, 3, rules=(Never(),)))
    assert drawn.rejected.all()
    assert drawn.rejected_by.tolist() == [0, 0, 0]
    assert HotDeck.attempts <= Never.queried <= HotDeck.attempts + 2


def test_single_allowed_value_is_treated_as_fixed(deck):
    n = 50
    within = {"x": Within(low=np.full(n, 3.25), high=np.full(n, 3.25)), "n": Within(high=np.full(n, 20.0))}
    drawn = deck.draw(request_of(deck, n, restrictions=within))
    assert not drawn.rejected.any()
    # 3.25 is not on the column's integer grid, but it is explicitly allowed
    assert drawn.rows[:, 0].tolist() == [3.25] * n
    assert (drawn.rows[:, 3] <= 20).all()


def test_value_is_kept_if_no_other_value_is_feasible(deck):
    n = 60
    own = np.where(np.arange(n) < 30, 77.0, np.nan)
    within = Within(low=np.full(n, 70.0), kept=own)
    drawn = deck.draw(request_of(deck, n, restrictions={"n": within}))
    assert drawn.rows[:30, 3].tolist() == [77.0] * 30
    assert drawn.rejected.tolist() == [False] * 30 + [True] * 30
    some = deck.draw(request_of(deck, n, restrictions={"n": replace(within, low=np.full(n, 38.0))}))
    assert some.rows[:30, 3].max() < 77  # other rows are drawn where possible


def test_multiples_and_excluded_numbers(deck):
    n = 300
    within = Within(
        low=np.full(n, 3.0), high=np.full(n, 22.0), step=np.full(n, 5.0), never=np.tile([10.0, np.nan], (n, 1))
    )
    drawn = deck.draw(request_of(deck, n, restrictions={"n": within}))
    assert not drawn.rejected.any()
    assert set(drawn.rows[:, 3]) == {5.0, 15.0, 20.0}


def test_values_outside_the_training_data_are_rounded_to_the_grid():
    class Blurred(HotDeck):
        draws_observed = False

        def _draw(self, givens, streams):
            rows = super()._draw(givens, streams)
            rows[:, [0, 2]] += 0.4 * streams.child("blur").uniform()[:, None] + 0.3
            return rows

    made = Blurred(fixed=["sex"]).fit(X, WANTED)
    rows = made.sample(200)
    assert rows["n"].dtype == X["n"].dtype
    assert rows["x"].isin(np.arange(11.0)).all()
    n = 200
    low = np.full(n, 4.5)
    drawn = made.draw(request_of(made, n, restrictions={"n": Within(low=low, high=low + 20)}))
    assert ((drawn.rows[:, 3] >= 5) & (drawn.rows[:, 3] <= 24)).all()


def test_draws_are_checked():
    class Wrong(HotDeck):
        def __init__(self, *, fixed=(), kinds=None, random_state=1, n_jobs=None, wrong="shape"):
            super().__init__(fixed=fixed, kinds=kinds, random_state=random_state, n_jobs=n_jobs)
            self.wrong = wrong

        def _draw(self, givens, streams):
            rows = super()._draw(givens, streams)
            if self.wrong == "shape":
                return rows[:, :-1]
            rows[0, 1] = 9.0 if self.wrong == "level" else rows[0, 1]
            rows[0, 0] = np.inf if self.wrong == "infinite" else rows[0, 0]
            return rows

    for wrong, message in (
        ("shape", r"Wrong\(.*\) drew an array of shape \(5, 2\) for 3 features"),
        ("level", r"Wrong\(.*\) drew 9 for 'job'"),
        ("infinite", "drew inf for 'x'"),
    ):
        with pytest.raises(SamplerError, match=message):
            Wrong(fixed=["sex"], wrong=wrong).fit(X).sample(5)


def test_no_decision_no_fixed_features_and_missing_givens():
    free = HotDeck().fit(X[["x", "n"]])
    assert free.sample(20).shape == (20, 2)
    assert free.fixed_ == []
    gaps = X.assign(x=X["x"].mask(X["x"] > 6))
    made = HotDeck(fixed=["x"]).fit(gaps)
    rows = made.sample(3, gaps.loc[gaps["x"].isna(), ["x"]].head(2))
    assert rows["x"].isna().all()


def test_capabilities(deck):
    made = HotDeck(fixed=["sex"], random_state=5)
    assert repr(made) == "HotDeck(fixed=['sex'], random_state=5)"
    assert clone(made).get_params() == made.get_params()
    assert not hasattr(clone(deck), "training_givens_")
    with pytest.raises(mcce.NotFittedError, match=r"this HotDeck is not fitted"):
        made.sample(3)
    with pytest.raises(InputError, match=r"fixed feature 'sexx' is not a column of X; did you mean 'sex'"):
        HotDeck(fixed=["sexx"]).fit(X)
    with pytest.raises(InputError, match=r"a restriction names 'y', which is not a feature"):
        deck.draw(request_of(deck, 3, restrictions={"y": Within(low=np.zeros(3))}))
    assert deck.n_features_in_ == 4
    again = pickle.loads(pickle.dumps(deck))
    pd.testing.assert_frame_equal(again.sample(20), deck.sample(20))


def test_generator_without_density_or_storage_raises(deck, tmp_path):
    with pytest.raises(SamplerError, match=r"HotDeck\(fixed=\['sex'\]\) has no density; use a generator that has"):
        deck.log_density(X)
    with pytest.raises(SamplerError, match=r"cannot leave a training row out of its density"):
        deck.log_density(X, training=True)
    with pytest.raises(
        SamplerError, match=r"cannot be saved: its fitted model cannot be checked on loading.*Pickle it"
    ):
        deck.save(tmp_path / "a.mcce")


def test_failed_fit_leaves_the_generator_unfitted(deck):
    made = pickle.loads(pickle.dumps(deck))
    with pytest.raises(InputError, match=r"all 4 columns of X are fixed"):
        made.set_params(fixed=list(X)).fit(X)
    with pytest.raises(mcce.NotFittedError):
        made.sample(1)


def test_resampling_and_weights_by_sample(deck):
    rows, weights = deck.sample(200, within={"job": ["a", "b"]}, importance=True)
    assert set(rows["job"]) == {"a", "b"}
    assert len(weights) == 200
    assert deck.sample(50, X[["sex"]].head(2), within={"n": (0, 20)}, resample=True).shape == (100, 4)
