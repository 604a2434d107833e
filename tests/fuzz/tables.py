"""Random tables with every dtype, unusual names, unusual levels and extreme numbers.

`chance` is a `random.Random`: of hypothesis, which shrinks a failing case, or seeded, to run by number.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from tests.constraints.reader import EDUCATION

NAMES = ["id", "rank", "decision", "y", "L0", "id_", "a b", "`", "<script>", "", "prediction", "gower", "æ😀", 0, 1.5]
NAMES += ["draw", "was", "missing", ("a", 1), "x\ny", 'quo"te', "$money$", "level_0", "index", "None", "*", "a,b", "if"]
TEXTS = [
    "a",
    "b,c",
    'say "hi"',
    "two\nlines",
    "😀",
    "",
    "<script>alert(1)</script>",
    "=1+1",
    " a",
    "NA",
    "nan",
    "é",
    "$x$",
]
LABELS = {
    "places": lambda n: pd.RangeIndex(n),
    "texts": lambda n: pd.Index([f"{TEXTS[i % len(TEXTS)]}{i // len(TEXTS) or ''}" for i in range(n)]),
    "numbers": lambda n: pd.Index(np.arange(n) / 2 - 3, name="rank"),
    "days": lambda n: pd.date_range("2020-02-28", periods=n, name="id"),
    "mixed": lambda n: pd.Index([(i, "x", 1.5 * i, b"b%d" % i)[i % 4] if i % 4 != 1 else f"x{i}" for i in range(n)]),
    "spans": lambda n: pd.interval_range(0, n, n),
}


def _floats(values):
    return lambda n, rng: rng.choice(np.array(values, dtype=float), n)


def _whole(dtype, low, high):
    return lambda n, rng: pd.Series(rng.integers(low, high, n)).astype(dtype)


def _texts(n, rng):
    return pd.Series(rng.choice(rng.permutation(TEXTS)[: rng.integers(1, 7)], n), dtype=object)


def _days(n, rng):
    return pd.Series(pd.Timestamp("2019-12-30") + pd.to_timedelta(rng.integers(0, 40, n), unit="D"))


def _levels(levels, ordered=False):
    def make(n, rng):
        codes = rng.integers(0, max(1, len(levels) - 1), n) if len(levels) else np.full(n, -1)
        return pd.Series(pd.Categorical.from_codes(codes, categories=levels, ordered=ordered))

    return make


COLUMNS = {
    "normal": lambda n, rng: rng.normal(size=n),
    "skewed": lambda n, rng: np.round(rng.lognormal(3, 2, n), 2),
    "float32": lambda n, rng: rng.normal(size=n).astype(np.float32),
    "float16": lambda n, rng: rng.normal(size=n).astype(np.float16),
    "zeros": _floats([-0.0, 0.0]),
    "zeros and ones": _floats([-0.0, 0.0, 1.0, 1.0]),
    "huge": _floats([-1e149, 3.0, 1e149, 2e148]),
    "too huge": _floats([0.0, 1e300]),
    "tiny": _floats([0.0, 1e-140, 3e-140]),
    "too tiny": _floats([0.0, 5e-324]),
    "constant": _floats([7.25]),
    "tiny constant": _floats([1e-200]),
    "close together": lambda n, rng: 1e15 + rng.integers(0, 60, n) / 8,
    "infinite": _floats([0.0, 1.0, np.inf]),
    "far apart": _floats([0.0, 1e-9, 1.0, 1e9]),
    "int8": _whole("int8", -128, 128),
    "uint8": _whole("uint8", 0, 256),
    "int64": _whole("int64", -3, 4),
    "binary": _whole("int32", 0, 2),
    "big int": _whole("int64", 2**52, 2**52 + 9),
    "too big int": _whole("int64", 2**53, 2**60),
    "uint64": _whole("uint64", 0, 1000),
    "Int64": _whole("Int64", -5, 50),
    "UInt8": _whole("UInt8", 250, 256),
    "Float32": lambda n, rng: pd.array(rng.normal(size=n).astype(np.float32), dtype="Float32"),
    "arrow int": _whole("int64[pyarrow]", 0, 9),
    "arrow day": lambda n, rng: _days(n, rng).astype("date32[day][pyarrow]"),
    "arrow text": lambda n, rng: _texts(n, rng).astype("string[pyarrow]"),
    "sparse": lambda n, rng: pd.Series(pd.arrays.SparseArray(rng.choice([0.0, 0.0, 1.5], n))),
    "bool": lambda n, rng: rng.random(n) < 0.3,
    "boolean": lambda n, rng: pd.array(rng.random(n) < 0.3, dtype="boolean"),
    "texts": _texts,
    "str": lambda n, rng: _texts(n, rng).astype("str"),
    "ids": lambda n, rng: pd.Series([f"id{i}" for i in rng.permutation(n)], dtype=object),
    "one text": lambda n, rng: pd.Series(["only"] * n, dtype=object),
    "mixed": lambda n, rng: pd.Series([("a", 1, 2.5, b"x")[i] for i in rng.integers(0, 4, n)], dtype=object),
    "category": _levels(["z", "b,", "", "<b>", "never"]),
    "whole levels": _levels([3, 1, 2]),
    "truths": _levels([True, False]),
    "spans": _levels(pd.interval_range(0, 4)),
    "day levels": _levels(pd.date_range("2020-01-01", periods=3)),
    "no levels": _levels([]),
    "one level": _levels(["one"]),
    "ordered": _levels(EDUCATION, ordered=True),
    "ordered numbers": _levels([10, 5, 1], ordered=True),
    "days": _days,
    "instants": lambda n, rng: _days(n, rng) + pd.to_timedelta(rng.integers(0, 10**15, n), unit="ns"),
    "zoned": lambda n, rng: _days(n, rng).dt.tz_localize("Europe/Oslo"),
    "far days": lambda n, rng: pd.Series((rng.integers(500000, 900000, n)).astype("M8[D]").astype("M8[s]")),
    "durations": lambda n, rng: pd.Series(pd.to_timedelta(rng.integers(-9, 9, n), unit="h")),
    "months": lambda n, rng: pd.Series(
        pd.PeriodIndex([pd.Period(ordinal=int(i), freq="M") for i in rng.integers(500, 520, n)], freq="M")
    ),
    "nothing": lambda n, rng: np.full(n, np.nan),
    "no objects": lambda n, rng: pd.Series([None] * n, dtype=object),
    "complex": lambda n, rng: rng.normal(size=n) + 1j,
}


REFUSED = ("too huge", "too tiny", "infinite", "too big int", "complex")  # these always raise with a message
USED = tuple(kind for kind in COLUMNS if kind not in REFUSED)


def random_table(chance):
    """Return a table of some columns and 20 to 60 rows, sometimes fewer, some values missing where they can be."""
    rng = np.random.default_rng(chance.getrandbits(32))
    n = chance.choice([chance.randint(1, 8), *[chance.randint(20, 60)] * 9])
    chosen = [chance.choice(USED) for _ in range(chance.randint(2, 6))]
    if chance.random() < 0.02:
        chosen[0] = chance.choice(REFUSED)
    names = chance.sample(NAMES, len(chosen))
    columns = []
    for kind in chosen:
        column = pd.Series(COLUMNS[kind](n, rng))
        share = chance.choice([0.0, 0.0, 0.1, 0.6])
        if share and kind not in ("zeros", "sparse") and not (column.dtype.kind in "iub" and _of_numpy(column)):
            column = column.mask(rng.random(n) < share)
        columns.append(column)
    table = pd.concat(columns, axis=1)
    table.columns = pd.Index(names, tupleize_cols=False)
    table.index = LABELS[chance.choice(list(LABELS))](n)
    return table


def _of_numpy(column):
    return isinstance(column.dtype, np.dtype)
