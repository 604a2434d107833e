"""Random tables through the kernels of every conditional and joint model, with numba's bounds checks on.

Run by `test_bounds.py` in a separate process: `NUMBA_BOUNDSCHECK=1 python bounds_fuzz.py N_TABLES NAME ...`. Numba's
index errors have no location, so the table and the sampler that caused one are printed.
"""

import os
import sys
import time
import traceback
from zlib import crc32

import numpy as np
import pandas as pd

import mcce
from mcce.generators import AdversarialForest, MixtureGenerator
from tests.fuzz.workflows import OURS, everywhere

TREES = {
    "cart": lambda rng: mcce.CartSampler(
        min_leaf=int(rng.integers(1, 6)), max_depth=[None, 0, 3][rng.integers(3)], cp=[None, 0.0, 0.05][rng.integers(3)]
    ),
    "rpart": lambda rng: mcce.CartSampler(
        dialect="rpart",
        min_split=[None, 0, 2][rng.integers(3)],
        min_leaf=[None, 1, 3][rng.integers(3)],
        cp=[None, 0.0, -1.0][rng.integers(3)],
        max_depth=[None, 0, 2][rng.integers(3)],
    ),
    "ctree": lambda rng: mcce.CtreeSampler(
        min_split=int(rng.integers(2, 12)),
        min_leaf=int(rng.integers(1, 5)),
        mincriterion=float(rng.choice([0.0, 0.95])),
    ),
    "forest": lambda rng: mcce.ForestSampler(n_trees=2, min_leaf=int(rng.integers(1, 6))),
}
GENERATORS = {
    "joint forest": lambda fixed: AdversarialForest(fixed=fixed, n_trees=2, random_state=1),
    "joint mixture": lambda fixed: MixtureGenerator(fixed=fixed, max_components=2, random_state=1),
}
NAMES = [*TREES, *(name for name in OURS if name not in TREES), *GENERATORS]


def _with_holes(values, rng):
    column = pd.Series(values, dtype=object)
    column[rng.random(len(column)) < rng.choice([0.1, 0.5, 0.95])] = None
    return column


COLUMNS = {
    "floats": lambda n, rng: rng.normal(size=n),
    "floats with holes": lambda n, rng: _with_holes(rng.normal(size=n), rng).astype(float),
    "few floats": lambda n, rng: rng.choice([-0.0, 0.0, 1e100, -1e100, 5e-324], n),
    "only missing floats": lambda n, rng: np.full(n, np.nan),
    "constant": lambda n, rng: np.full(n, 3),
    "integers": lambda n, rng: rng.integers(-3, 4, n),
    "many integers": lambda n, rng: rng.integers(0, 2**40, n),
    "bytes": lambda n, rng: rng.integers(0, 256, n).astype(np.uint8),
    "nullable": lambda n, rng: _with_holes(rng.integers(0, 9, n), rng).astype("Int64"),
    "booleans": lambda n, rng: rng.random(n) < 0.3,
    "booleans with holes": lambda n, rng: _with_holes(rng.random(n) < 0.3, rng).astype("boolean"),
    "dates": lambda n, rng: pd.Timestamp("2020-02-29") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
    "texts": lambda n, rng: rng.choice(["a", "b", "c", "", "æ"], n).astype(object),
    "texts with holes": lambda n, rng: _with_holes(rng.choice(["a", "b", "c"], n), rng),
    "many texts": lambda n, rng: rng.choice([f"t{i}" for i in range(14)], n).astype(object),
    "only missing texts": lambda n, rng: np.full(n, None),
    "one level": lambda n, rng: pd.Categorical(["a"] * n),
    "one level with holes": lambda n, rng: pd.Categorical(_with_holes(["a"] * n, rng)),
    "no levels": lambda n, rng: pd.Categorical([None] * n, categories=[]),
    "no ordered levels": lambda n, rng: pd.Categorical([None] * n, categories=[], ordered=True),
    "unused levels": lambda n, rng: pd.Categorical(rng.choice(["a", "b"], n), categories=["z", "b", "y", "a", "x"]),
    "only unused levels": lambda n, rng: pd.Categorical([None] * n, categories=["a", "b", "c"]),
    "ordered": lambda n, rng: pd.Categorical(rng.choice(["l", "m", "h"], n), categories=["l", "m", "h"], ordered=True),
    "ordered with holes": lambda n, rng: pd.Categorical(
        _with_holes(rng.choice(["l", "h"], n), rng), categories=["l", "m", "h"], ordered=True
    ),
}


def random_table(rng):
    """Two to six columns of random kinds, 1 to 120 rows."""
    n = int(rng.choice([1, 2, 7, 40, 120]))
    kinds = rng.choice(list(COLUMNS), rng.integers(2, 7))
    return pd.DataFrame({f"{kind} {j}": COLUMNS[kind](n, rng) for j, kind in enumerate(kinds)})


def decide(rows):
    """A function of the row alone."""
    return np.array([crc32(repr(row).encode()) % 3 > 0 for row in rows.itertuples(index=False, name=None)])


def run(table, name, rng):
    """Fit, draw, weight and explain, by whole draws and by crossings."""
    if name in OURS and not mcce.available_samplers()[name].handles_missing:
        complete = table.notna().all()
        table = table.loc[:, complete] if complete.any() else table  # which raises
    mutable = rng.random(table.shape[1]) >= 0.3
    mutable[-1] = True
    fixed = list(table.columns[~mutable])
    conditions = bool(rng.random() < 0.7)
    shared = {"decision": True, "fixed": fixed, "condition_on_decision": conditions}
    if name in GENERATORS:
        explainer = mcce.MCCE(decide, generator=GENERATORS[name](fixed), **shared)
    else:
        sampler = TREES[name](rng) if name in TREES else everywhere(name, table.loc[:, mutable])
        explainer = mcce.MCCE(decide, sampler=sampler, random_state=1, **shared)
    explainer.fit(table).explain(table.head(10), n_samples=20, n_counterfactuals=2)
    explainer.explain(table.head(10), n_samples=20, sparse=True)
    explainer.generator_.sample(20)
    explainer.generator_.log_density(table, training=name in TREES)


def main(n_tables, names):
    assert os.environ.get("NUMBA_BOUNDSCHECK") == "1", "set NUMBA_BOUNDSCHECK=1"
    begun, runs, refused, failed = time.perf_counter(), 0, 0, 0
    for seed in range(n_tables):
        for name in names:
            rng = np.random.default_rng([seed, 17])
            table = random_table(rng)
            try:
                run(table, name, rng)
            except mcce.MCCEError:  # an error of the package is a valid outcome
                refused += 1
            except Exception:
                failed += 1
                print(f"seed {seed}, {name}, {dict(table.dtypes)}, {len(table)} rows", traceback.format_exc(), sep="\n")
            runs += 1
    print(f"{runs} runs, {refused} refused, {failed} failed, {time.perf_counter() - begun:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:] or NAMES))
