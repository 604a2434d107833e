"""Decompositions of small matrices: equal to R bit for bit, and mathematically valid."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from mcce.trees.ctree import svd_kernels
from mcce.trees.ctree.svd_kernels import MOST_ROWS, decompose

STORED = Path(__file__).parents[2] / "fixtures" / "svd" / "svd.json.gz"


def test_every_bit_matches_the_reference_lapack():
    stored = json.loads(gzip.decompress(STORED.read_bytes()))
    assert len(stored) == 60
    for case in stored:
        u, values, vt = decompose(np.array(case["matrix"]))
        assert np.array_equal(values, case["values"])
        assert np.array_equal(u, case["u"])
        assert np.array_equal(vt, case["vt"])


@pytest.mark.parametrize("n", [1, 2, 3, 7, MOST_ROWS, MOST_ROWS + 1])
@pytest.mark.parametrize("kind", ["full", "singular", "zero", "graded", "diagonal", "repeated"])
def test_decomposition_is_valid(n, kind):
    rng = np.random.default_rng(n)
    full = rng.normal(size=(n, n))
    matrix = {
        "full": full,
        "singular": np.outer(full[0], full[-1]),
        "zero": np.zeros((n, n)),
        "graded": full * np.logspace(0, -40, n) * np.logspace(0, -150, n)[:, None],
        "diagonal": np.diag(rng.normal(size=n)),
        "repeated": np.eye(n) - 1 / n,
    }[kind]
    before = matrix.copy()
    u, values, vt = decompose(matrix)
    assert np.array_equal(matrix, before)
    assert (values[:-1] >= values[1:]).all()
    assert (values >= 0).all()
    np.testing.assert_allclose(values, np.linalg.svd(matrix, compute_uv=False), rtol=0, atol=1e-14 * n * values[0])
    np.testing.assert_allclose(u * values @ vt, matrix, rtol=0, atol=1e-14 * n * values[0])
    for vectors in (u, vt):
        np.testing.assert_allclose(vectors @ vectors.T, np.eye(n), rtol=0, atol=1e-14 * n)


def test_non_convergence_falls_back_to_numpy(monkeypatch):
    matrix = np.random.default_rng(4).normal(size=(6, 6))
    monkeypatch.setattr(svd_kernels, "_decompose", lambda *_: False)
    for ours, numpys in zip(decompose(matrix), np.linalg.svd(matrix)):
        np.testing.assert_array_equal(ours, numpys)
