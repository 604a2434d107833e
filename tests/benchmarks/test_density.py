"""The benchmark of densities runs, and plain numpy gives the same numbers."""

import re

import numpy as np
import pytest

from benchmarks import density, plain_donors
from mcce import CartSampler, ForestSampler
from mcce.table import Schema


@pytest.mark.nightly
def test_runs_and_writes(tmp_path, capsys):
    assert density.main(["--quick", "--out", str(tmp_path / "density.md")]) == 0
    said = capsys.readouterr().out
    assert re.search(r"densities: \d.\de-1[3-6], left out \d.\de-1[2-6]; other supports: 0$", said, re.MULTILINE)
    assert said.count("  plain") == 9
    assert max(len(line) for line in said.splitlines()) <= 120
    assert said.strip() in (tmp_path / "density.md").read_text()


@pytest.mark.parametrize("sampler", [CartSampler(), CartSampler(min_leaf=500), ForestSampler(n_trees=3)], ids=repr)
def test_kernels_match_plain_numpy(sampler):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1000, 2))
    y = np.where(rng.random(1000) < 0.2, 0.0, x.sum(axis=1) + rng.normal(size=1000))
    table = Schema.from_data(np.column_stack([x, y])).encode(np.column_stack([x, y]))
    given, target = table.first(2), table.column(2)
    fitted = sampler.fit(given, target)
    values = np.where(rng.random(1000) < 0.5, y, rng.normal(0.0, 3.0, 1000))
    for rows in (None, np.arange(1000)):
        expected = plain_donors.log_density(fitted.donors_, given, values, rows)
        found = fitted.log_density(given, values, training_rows=rows)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    if isinstance(sampler, CartSampler):
        assert np.array_equal(fitted.supports(given, values), plain_donors.supports(fitted.donors_, given, values))
