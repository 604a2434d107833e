"""Scores of the benchmark of samplers: a known process, and paired differences by hand calculation."""

import numpy as np
import pandas as pd
import pytest

import mcce
from benchmarks import report
from benchmarks.scores import compare_rows, held_out_scores


def process(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = 2 * x + rng.normal(size=n)
    return pd.DataFrame({"z": y + rng.normal(size=n), "x": x, "y": y})


def test_scores_match_the_process_for_any_column_order():
    old, new = process(1000, 1), process(1000, 2)
    chain = mcce.ChainModel(sampler="norm", fixed=["x"], visit_sequence=["y", "z"]).fit(old)
    found = held_out_scores(chain, old, new)
    entropy = 0.5 * np.log(2 * np.pi * np.e)  # of y given x; of z given x and y too
    assert found["log_score"] == pytest.approx(-2 * entropy, abs=3 * found["log_se"] + 0.01)
    assert len(found["log_rows"]) == 1000
    # CRPS of a normal is sd / sqrt(pi): 1 / sqrt(5) of that of y alone, 1 / sqrt(6) of that of z
    assert found["skill"] == pytest.approx(1 - (5**-0.5 + 6**-0.5) / 2, abs=0.03)


@pytest.mark.slow
def test_joint_generator_is_scored_by_its_density():
    old, new = process(1000, 1), process(1000, 2)
    generator = mcce.generators.AdversarialForest(fixed=["x"], random_state=1).fit(old)
    found = held_out_scores(generator, old, new)
    entropy = 0.5 * np.log(2 * np.pi * np.e)
    assert -2 * entropy - 0.7 < found["log_score"] < -2 * entropy + 3 * found["log_se"]
    assert "skill" not in found


def one(name, rows, accuracy):
    return {"sampler": name, "log_rows": rows, "skill": 0.1, "new": {"accuracy": accuracy, "sd": 0.01}}


def test_auto_is_compared_row_by_row_with_cart_and_with_the_best():
    samplers = [one("cart", [-3.0, -5.0], 0.6), one("ctree", [-2.0, -3.0], 0.62), one("auto", [-1.0, -3.0], 0.58)]
    samplers.append(one("stack", [-1.0, -2.0], 0.5))  # no single sampler
    samplers.append({"sampler": "arf", "log_rows": [0.0, 0.0], "new": {"accuracy": 0.5, "sd": 0.0}})  # no sampler
    found = compare_rows(samplers)
    assert found["best"] == "ctree"
    assert found["ahead_of_best"] == pytest.approx((0.5, 0.5))
    assert found["ahead_of_cart"] == pytest.approx((2.0, 0.0))
    assert found["nearest"] == "cart"
    assert all("log_rows" not in each for each in samplers)
    said = report.choice(found)
    assert (
        "auto: log score relative to ctree, the best single one, +0.500 (se 0.500); relative to cart +2.000 (se 0.000)"
        in said
    )
    assert (
        "stack: log score relative to ctree +1.000 (se 0.000)\n  stack: log score relative to auto +0.500 (se 0.500)"
        in said
    )
    assert "auto: discriminator 0.580 (0.010); cart 0.600 (0.010)" in said


def test_no_comparison_without_auto():
    samplers = [one("cart", [-3.0, -5.0], 0.6), one("ctree", [-2.0, -3.0], 0.62)]
    assert compare_rows(samplers) is None
    assert all("log_rows" not in each for each in samplers)
    assert report.choice(None) == ""
