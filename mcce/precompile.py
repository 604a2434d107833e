"""The first call on a machine compiles kernels: two processes share that work.

1. If numba's cache on disk lacks the kernels of this version, `beside` starts a second Python, which compiles those
   that draw and select and leaves them in the cache.
2. Meanwhile this process compiles the kernel that grows trees, the largest one, by using it.

Where there is one core only, or a second Python cannot be started, all are compiled here when they are first used.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from mcce.candidates.pools import Pools
from mcce.rng import RowStreams
from mcce.samplers.donors.engine import DonorForest
from mcce.selection.selector import Selector
from mcce.table import Schema
from mcce.trees import kernels
from mcce.trees.tree import Tree


@contextmanager
def beside() -> Iterator[None]:
    """Compile the kernels that draw and select in a second process, if they have to be, during the block."""
    is_python = Path(sys.executable or "").stem.lower().startswith("python")  # inside R, say, it may be another program
    if kernels.compiled() or not is_python or os.cpu_count() == 1:
        yield
        return
    program = f"from {__name__} import compile_drawing_and_selecting as run; run()"
    quiet = subprocess.DEVNULL
    try:
        process = subprocess.Popen([sys.executable, "-c", program], stdin=quiet, stdout=quiet, stderr=quiet)
    except OSError:
        yield
        return
    with process:
        yield


def compile_drawing_and_selecting() -> None:
    """Use each kernel once, on two rows, as `explain` does."""
    matrix = np.asfortranarray(np.eye(2))  # a single column would have another layout, and kernels of its own
    tree = _stump()
    tree.route(np.where(matrix, matrix, np.nan))
    donors = DonorForest.of([tree], [np.zeros(2)])
    donors.draw(tree.route(matrix)[None], RowStreams.from_seed(0, 2))
    features = Schema.from_data(matrix).features
    selector = Selector(features, np.zeros(1, dtype=np.int64), lambda rows: (rows[:, 0], rows[:, 0] > 0))
    selector.select(Pools(matrix, np.zeros(1, dtype=np.int64), np.full(1, 2)), matrix[:1], 1)


def _stump() -> Tree:
    """Return a tree with one split."""
    return Tree(
        feature=np.array([0, -1, -1], dtype=np.int32),
        threshold=np.array([0.5, 0.0, 0.0]),
        left=np.array([1, 0, 0], dtype=np.int32),
        missing_left=np.zeros(3, dtype=np.bool_),
        mask_at=np.full(3, -1, dtype=np.int32),
        masks=np.zeros(0, dtype=np.bool_),
        start=np.array([0, 0, 1], dtype=np.int32),
        size=np.array([2, 1, 1], dtype=np.int32),
        impurity=np.zeros(3),
        donors=np.arange(2, dtype=np.int32),
    )
