"""Expected results in plain Python, one value at a time, without code of `mcce`.

1. Values are compared as Python values; missing equals missing.
2. The measures are recomputed from the definition: L0 counts changed cells; Gower's step is the difference over the
   training range, of ranks for ordered levels, 1 for other levels, missing against a value, and constant columns.
3. All candidates are evaluated and sorted, and the best are compared with the returned rows.
"""

from __future__ import annotations

import math
from zlib import crc32

import numpy as np
import pandas as pd

from tests.constraints.reader import known, obeys


def dense(column):
    return column.sparse.to_dense() if isinstance(column.dtype, pd.SparseDtype) else column


def values_of(column):
    """Return plain values, None for missing ones."""
    return [None if gone else known(v) for v, gone in zip(dense(column).astype(object), dense(column).isna())]


class Model:
    """A model that reads each value separately: numbers above the median, levels by their checksum."""

    def __init__(self, X, salt):
        self.salt = salt
        self.columns = list(X.columns)
        self.cuts = [self._median(X[name]) for name in X.columns]

    @staticmethod
    def _median(column):
        values = sorted(_number(v) for v in values_of(column) if _number(v) is not None)
        return values[len(values) // 2] if values else 0.0

    def __call__(self, rows):
        assert list(rows.columns) == self.columns
        total = np.zeros(len(rows))
        for j in range(len(self.columns)):
            weight = 1 + crc32(b"%d %d" % (j, self.salt)) % 7
            for i, value in enumerate(values_of(rows.iloc[:, j])):
                number = _number(value)
                up = number > self.cuts[j] if number is not None else crc32(repr((value, self.salt)).encode()) % 2
                total[i] += weight * bool(up)
        return total / sum(1 + crc32(b"%d %d" % (j, self.salt)) % 7 for j in range(len(self.columns)))


def _number(value):
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if isinstance(value, pd.Period):
        return value.ordinal
    if isinstance(value, pd.Timedelta):
        return value / pd.Timedelta("1s")
    if isinstance(value, pd.Timestamp):
        return int(value.as_unit("s").asm8.view("i8"))
    return value.toordinal() if hasattr(value, "toordinal") else None


def is_number(dtype):
    if isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(dtype):
        return False
    kind = getattr(dtype, "kind", "O")
    return kind in "iufmM" or isinstance(dtype, (pd.PeriodDtype, pd.DatetimeTZDtype))


def _exactly(value):
    """Return a value with sufficiently exact differences: ticks for dates."""
    if isinstance(value, (pd.Timestamp, pd.Timedelta)):
        return int(value.asm8.view("i8")) * {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[value.unit]
    if isinstance(value, pd.Period):
        return value.ordinal
    return value.toordinal() if hasattr(value, "toordinal") else value


def steps(X, name, value, own):
    """Return the Gower step between two values of a feature."""
    column = X[name]
    if value is None or own is None:
        return float((value is None) != (own is None))
    if value == own:
        return 0.0
    if isinstance(column.dtype, pd.CategoricalDtype):
        levels = list(column.cat.categories)
        if not column.cat.ordered:
            return 1.0
        seen = [levels.index(v) for v in values_of(column) if v is not None]
        width, change = len(levels) - 1, abs(levels.index(value) - levels.index(own))
        return change / width if width and seen else 1.0
    if not is_number(column.dtype):
        return 1.0
    seen = [_exactly(v) for v in values_of(column) if v is not None]
    width = max(seen) - min(seen) if seen else 0
    return float(abs(_exactly(value) - _exactly(own)) / width) if width else 1.0


def differs(value, own):
    return (value is None) != (own is None) or (value is not None and value != own)


def measures(X, row, own):
    """Return L0 and Gower's distance of two rows of plain values."""
    changed = sum(differs(v, o) for v, o in zip(row, own))
    return changed, sum(steps(X, name, v, o) for name, v, o in zip(X.columns, row, own)) / X.shape[1]


def rows_of(frame):
    """Return the rows as tuples of plain values."""
    return list(zip(*[values_of(frame.iloc[:, j]) for j in range(frame.shape[1])], strict=True)) if len(frame) else []


def check_result(found, case):
    """Check all properties of a single result; see steps 1 and 2."""
    X, factuals = case.X, case.factuals
    assert list(found.frame.columns) == list(X.columns)
    pd.testing.assert_series_equal(found.frame.dtypes, case.dtypes())
    assert found.factuals.index.equals(factuals.index)
    pd.testing.assert_series_equal(found.factuals.dtypes, case.dtypes(factuals))
    assert rows_of(found.factuals) == rows_of(factuals)
    place = {_key(label): i for i, label in enumerate(factuals.index)}
    owners = [place[_key(label)] for label in found.frame.index.get_level_values("id")]
    owns, rows = rows_of(factuals), rows_of(found.frame)
    predicted = case.model(found.frame.reset_index(drop=True)) if rows else []
    seen = set()
    for i, (row, at) in enumerate(zip(rows, owners)):
        own = owns[at]
        assert case.wants(predicted[i]), f"row {i} is not valid"
        for name, value, before in zip(X.columns, row, own):
            if name in case.fixed:
                assert not differs(value, before), f"fixed {name!r} changes from {before!r} to {value!r}"
            if value is None and before is not None:
                assert case.may_go_missing(name), f"{name!r} is turned missing"
            assert case.obeys(name, value, before), f"{name!r}: {before!r} -> {value!r} breaks {case.said}"
        assert case.keeps_rules(dict(zip(X.columns, row)), dict(zip(X.columns, own)), factuals.index[at])
        changed, gower = measures(X, row, own)
        assert found.measures["L0"].iloc[i] == changed
        same = math.isclose(found.measures["gower"].iloc[i], gower, rel_tol=1e-9, abs_tol=1e-12)
        assert same or case.other_scales, f"row {i} has another distance"
        assert math.isclose(found.measures["prediction"].iloc[i], predicted[i], rel_tol=1e-12) or case.plain
        assert (at, row) not in seen, "a row comes twice"
        seen.add((at, row))
    answers = case.model(factuals)
    explained = set(owners)
    lacking = {_key(label) for label in found.unexplained.index}
    for i, label in enumerate(factuals.index):
        assert (i in explained) != (_key(label) in lacking), f"{label!r} is neither explained nor accounted for"
        if case.wants(answers[i]):
            assert i not in explained
    ranks = pd.Series(found.frame.index.get_level_values("rank"))
    assert (ranks == ranks.groupby(owners).cumcount() + 1).all() if rows else True


def check_best(found, candidates, case):
    """Step 3: the returned rows are the best of all candidates."""
    owns = rows_of(case.factuals)
    answers = case.model(candidates.reset_index(drop=True)) if len(candidates) else []
    pools = {}
    for label, row, answer in zip(candidates.index.get_level_values(0), rows_of(candidates), answers):
        if case.wants(answer):
            pools.setdefault(_key(label), {}).setdefault(row, row)
    lists = {}
    for label, l0, gower in zip(
        found.frame.index.get_level_values("id"), found.measures["L0"], found.measures["gower"]
    ):
        lists.setdefault(_key(label), []).append((l0, gower))
    denied = ~np.array([case.wants(a) for a in case.model(case.factuals)])
    for label, own in [(label, own) for label, own, no in zip(case.factuals.index, owns, denied) if no]:
        best = sorted(measures(case.X, row, own) for row in pools.get(_key(label), {}).values())
        best = [m for m in best if m[0] <= (case.options.get("max_changes") or 99)][: case.options["n_counterfactuals"]]
        # within constraints, a factual without an answer in a shared pool may have individual draws
        if best or (all(map(case.may_go_missing, case.X.columns)) and not (case.said or case.rules or case.only)):
            np.testing.assert_allclose(lists.get(_key(label), []), best, rtol=1e-9, atol=1e-12)


def _key(label):
    return repr(label.item() if isinstance(label, np.generic) else label)


def obeys_all(said, name, value, own, may_be_missing):
    """Evaluate the independent reader of constraints for one value."""
    return all(obeys(each, value, own, None, may_be_missing=may_be_missing) for n, each in said if n == name)
