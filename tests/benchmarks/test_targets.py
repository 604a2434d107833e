"""The benchmark of conditionals on the targets that they support."""

import numpy as np
import pandas as pd

from benchmarks.targets import cells, compare


def test_sampler_is_compared_on_the_targets_it_models():
    """Gamma amounts: the gamma regression models one of two features, and is better there than cart."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    amount = rng.gamma(3, np.exp(2 + 0.5 * x))
    X = pd.DataFrame({"x": x, "amount": amount, "level": rng.choice(["a", "b"], 200)})
    found = compare(X, ["x"], ["marginal", "cart", "parametric", "gamma", "beta"], 2)
    assert found["targets"].to_dict() == {"marginal": 2, "cart": 2, "parametric": 2, "gamma": 1, "beta": 0}
    assert found.loc["gamma", "over_cart"] > 0
    assert found.loc["marginal", "skill"] == 0
    assert cells("beta", found.loc["beta"]) == ["beta", "0", "-", "-", "-", "-", "-"]
    assert cells("gamma", found.loc["gamma"])[:2] == ["gamma", "1"]
