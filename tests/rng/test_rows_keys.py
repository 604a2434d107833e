"""Keys and hashes: stable, different for different rows, equal for equal rows."""

from __future__ import annotations

import numpy as np
import pytest

from mcce.rng import derive_key, hash_rows


def test_keys_are_stable_over_processes_and_versions():
    """blake2b of "int:1" and of "int:1<unit separator>str:age", 8 bytes little-endian (b2sum -l 64)."""
    assert derive_key(1) == int.from_bytes(bytes.fromhex(BLAKE_INT_1), "little")
    assert derive_key(1, "age") == int.from_bytes(bytes.fromhex(BLAKE_INT_1_AGE), "little")


BLAKE_INT_1 = "f99980eaeb4408dc"


BLAKE_INT_1_AGE = "4f0d78df50ad5ac7"


def test_keys_differ():
    labels = [
        (),
        (1,),
        ("1",),
        (1.0,),
        (1, 1),
        (11,),
        ("1", 1),
        (None,),
        ("None",),
        ("a", "b"),
        ("b", "a"),
        ("ab",),
    ]
    keys = [derive_key(*some) for some in labels] + [derive_key("seed", k) for k in range(10_000)]
    assert len(set(keys)) == len(keys)
    assert all(0 <= key < 2**64 for key in keys)


def test_equal_rows_have_equal_hashes():
    matrix = np.array(
        [[0.0, np.nan, 1.0], [-0.0, -np.nan, 1.0], [0.0, 0.0, 1.0], [np.nan, 0.0, 1.0], [0.0, 1.0, np.nan]]
    )
    matrix[1, 1] = np.array([0x7FF8000000000123], dtype=np.uint64).view(np.float64)[0]  # another NaN
    hashed = hash_rows(matrix)
    assert hashed[0] == hashed[1]
    assert np.unique(hashed).size == 4
    assert np.array_equal(hash_rows(np.asfortranarray(matrix)), hashed)


@pytest.mark.slow
def test_million_different_rows_have_different_hashes():
    first, second = np.meshgrid(np.arange(1000.0), np.arange(1000.0))
    matrix = np.column_stack([first.ravel(), second.ravel()])
    assert np.unique(hash_rows(matrix)).size == 1_000_000


def test_rows_without_columns_are_equal():
    assert np.unique(hash_rows(np.empty((5, 0)))).size == 1
