"""Cross-validated scores: held-out rows, densities of one measure, early stopping of races."""

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.judging.crossvalidation import Candidate, Contest, Folds, comparable_scores, mean_and_error
from mcce.samplers import MarginalSampler, NormSampler
from mcce.samplers.density import comparable
from mcce.table import Column, Schema


def table_of(frame):
    return Schema.from_data(frame).encode(frame)


def line(n, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return table_of(pd.DataFrame({"x": x, "y": x + 0.5 * rng.normal(size=n)}))


def run(table, samplers, wanted="both", *, race=False, n_folds=5, max_rows=10_000, n_draws=40):
    candidates = tuple(Candidate(name, sampler) for name, sampler in samplers.items())
    folds = Folds.deal(table, n_folds, max_rows, 7)
    return {record.label: record for record in folds.run(Contest(1, (0,), candidates), wanted, n_draws, race=race)}


def test_every_row_is_held_out_once_from_its_fit():
    table = table_of(pd.DataFrame({"row": np.arange(53.0)}))
    folds = Folds.deal(table, 5, 1000, seed=3)
    held_out = np.concatenate([unseen.matrix[:, 0] for _, unseen in folds.parts])
    assert sorted(held_out) == list(range(53))
    for training, unseen in folds.parts:
        assert set(training.matrix[:, 0]) == set(range(53)) - set(unseen.matrix[:, 0])
        assert unseen.n_rows in (10, 11)


def test_large_table_is_sampled_without_replacement_in_random_order():
    table = table_of(pd.DataFrame({"row": np.arange(1000.0)}))
    folds = Folds.deal(table, 4, 200, seed=3)
    assert folds.rows.size == np.unique(folds.rows).size == 200
    assert 400 < folds.rows.mean() < 600  # not the first rows
    assert sum(unseen.n_rows for _, unseen in folds.parts) == 200
    assert not np.array_equal(folds.rows, Folds.deal(table, 4, 200, seed=4).rows)


@pytest.mark.slow
def test_scores_of_a_known_process_match_its_density():
    record = run(line(2000), {"norm": NormSampler()})["norm"]
    mean, error = mean_and_error(record.log_scores)
    assert abs(mean - -0.5 * np.log(2 * np.pi * np.e * 0.25)) < 3 * error + 0.005
    mean, error = mean_and_error(record.losses)  # the mean CRPS of a normal is sd / sqrt(pi)
    assert abs(mean - 0.5 / np.sqrt(np.pi)) < 3 * error + 0.002
    assert len(record.folds) == 5
    assert record.log_scores.size == record.losses.size == 2000


def test_poor_candidate_is_dropped_only_after_the_first_fold():
    samplers = {"marginal": MarginalSampler(), "norm": NormSampler()}
    raced, complete = run(line(400), samplers, "log", race=True), run(line(400), samplers, "log")
    assert raced["marginal"].is_slow
    assert raced["marginal"].log_scores.size == 80
    assert np.array_equal(raced["norm"].log_scores, complete["norm"].log_scores)
    assert complete["marginal"].log_scores.size == 400


class Shy(NormSampler):
    """A sampler with a density of an undeclared measure."""

    def base_measure(self):
        raise mcce.SamplerError("of what?")


class Counting(NormSampler):
    """A sampler that declares its density of continuous numbers as probabilities."""

    def base_measure(self):
        return "counting"


@pytest.mark.parametrize("sampler", [Shy(), Counting()])
def test_density_with_another_measure_has_no_log_score(sampler):
    record = run(line(100), {"odd": sampler})["odd"]
    assert record.log_scores is None
    assert comparable_scores(record, "log") is None
    assert np.array_equal(comparable_scores(record, "draws"), -record.losses)


def test_impossible_value_has_a_large_finite_penalty():
    feature = Schema.from_data(pd.DataFrame({"job": ["a", "b", "c"]})).features[0]
    scored = comparable(
        np.array([np.log(0.5), -np.inf]),
        "counting",
        Column(feature, np.array([0.0, 0.0, 1.0])),
        Column(feature, np.array([0.0, 2.0])),
    )
    assert scored == pytest.approx([np.log(0.999 * 0.5 + 0.001 / 4), np.log(0.001 / 4)])


def test_uniform_part_of_a_number_covers_the_range_of_its_column():
    values = np.random.default_rng(1).normal(size=200)
    feature = Schema.from_data(pd.DataFrame({"x": np.append(values, [-10.0, 10.0])})).features[0]
    found = comparable(np.array([-np.inf]), "lebesgue", Column(feature, values), Column(feature, np.array([-10.0])))
    assert found == pytest.approx(np.log(0.001 / 20.0))


def test_standard_errors_are_computed_over_rows():
    assert mean_and_error(np.array([1.0, 3.0])) == pytest.approx((2.0, 1.0))
    assert mean_and_error(np.array([1.0])) == (1.0, np.inf)


class Odd(NormSampler):
    """A sampler whose density of large values is NaN."""

    def __init__(self, found=np.nan):
        super().__init__()
        self.found = found

    def log_density(self, given, values, training_rows=None):
        return np.where(values > 1.0, self.found, -1.0)[: None if self.found else 5]


@pytest.mark.parametrize(
    ("found", "reason"),
    [(np.nan, "gave nan ("), (np.inf, "gave inf ("), (0.0, "gave an array of shape (5,) as log density")],
)
def test_nan_densities_drop_the_candidate(found, reason):
    table = table_of(pd.DataFrame({"x": np.arange(60.0), "y": np.repeat([0.0, 0.5, 2.0], 20) + np.arange(60) / 100}))
    record = run(table, {"odd": Odd(found)}, "log")["odd"]
    assert "log_density() returns one number per row" in record.left_out
    assert "as log density of 12 values of 'y'" in record.left_out
    assert reason in record.left_out
    assert not record.is_running
