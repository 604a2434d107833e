"""What must hold of an answer, in plain Python, one decoded value at a time; nothing is shared with `mcce`.

Values are Python's own, None for missing ones. L0 counts changed cells; a step of Gower's distance is the difference
over the training range, of ranks for ordered levels, and 1 for other levels, missing against a value, and columns
without a range. Derived columns are left out of both.
"""

import math
import re
from zlib import crc32

import numpy as np
import pandas as pd


def values_of(column):
    """Return plain values, None for missing ones."""
    cells = [None if gone else value for value, gone in zip(column.astype(object), column.isna())]
    return [value.item() if isinstance(value, np.generic) else value for value in cells]


def rows_of(frame):
    """Return the rows as tuples of plain values."""
    return list(zip(*[values_of(frame.iloc[:, j]) for j in range(frame.shape[1])])) if len(frame) else []


def number(value):
    """Return a number or a date as an exact number; None for anything else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if isinstance(value, (pd.Timestamp, pd.Timedelta)):
        return int(value.asm8.view("i8")) * {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[value.unit]
    if isinstance(value, pd.Period):
        return value.ordinal
    return value.toordinal() if hasattr(value, "toordinal") else None


def differs(value, own):
    return (value is None) != (own is None) or (value is not None and value != own)


class Column:
    """A training column: its kind, its levels or its range."""

    def __init__(self, column):
        self.values = [value for value in values_of(column) if value is not None]
        self.levels = list(column.cat.categories) if isinstance(column.dtype, pd.CategoricalDtype) else None
        self.is_ordered = self.levels is not None and column.cat.ordered
        is_text = isinstance(column.dtype, (pd.CategoricalDtype, pd.StringDtype)) or pd.api.types.is_bool_dtype(column)
        numbers = [number(value) for value in self.values]
        self.is_number = not is_text and None not in numbers and (bool(numbers) or column.dtype != object)
        self.span = max(numbers) - min(numbers) if self.is_number and numbers else 0
        if self.is_ordered:
            self.span = len(self.levels) - 1 if self.values else 0

    def rank(self, value):
        """Return what values are compared by; None if they have no order."""
        return self.levels.index(value) if self.is_ordered else number(value) if self.is_number else None

    def step(self, value, own):
        if not differs(value, own):
            return 0.0
        if value is None or own is None or not self.span or self.rank(value) is None:
            return 1.0
        return abs(self.rank(value) - self.rank(own)) / self.span


class Model:
    """A score that reads each value separately: numbers above the median, levels by their checksum."""

    def __init__(self, X, salt):
        self.names, self.salt = list(X.columns), salt
        self.weights = [1 + crc32(b"%d %d" % (j, salt)) % 7 for j in range(X.shape[1])]
        self.cuts = []
        for j in range(X.shape[1]):
            numbers = sorted(number(value) for value in values_of(X.iloc[:, j]) if number(value) is not None)
            self.cuts.append(numbers[len(numbers) // 2] if numbers else 0)

    def __call__(self, rows):
        assert list(rows.columns) == self.names, "the model is given other columns"
        return np.array([self.of(row) for row in rows_of(rows)])

    def of(self, row):
        """Return the score of one row of plain values."""
        return sum(w * self._is_high(j, value) for j, (w, value) in enumerate(zip(self.weights, row))) / sum(
            self.weights
        )

    def _is_high(self, j, value):
        if number(value) is not None:
            return number(value) > self.cuts[j]
        return crc32(repr((value, self.salt)).encode()) % 2


class Limit:
    """One `mcce.allow`, read by itself."""

    def __init__(self, name, **limits):
        self.name, self.limits = name, limits

    def keeps(self, column, value, own):
        """Return whether a value is allowed for a factual's value."""
        limits = self.limits
        if limits.get("direction") == "none" or limits.get("max_step") == 0:  # it stays, also where it may be missing
            return not differs(value, own)
        restricts_change = {"direction", "max_step"} & set(limits)
        if value is None or own is None:
            return value is None if own is None and restricts_change else True  # `missing` is checked for all columns
        rank = column.rank(value)
        if "levels" in limits and value not in limits["levels"]:
            return False
        if ("low" in limits and rank < column.rank(limits["low"])) or (
            "high" in limits and rank > column.rank(limits["high"])
        ):
            return False
        direction = limits.get("direction")
        moves_wrongly = direction is not None and (rank < column.rank(own)) == (direction == "increase")
        if moves_wrongly and differs(value, own):
            return False
        return "max_step" not in limits or abs(rank - column.rank(own)) <= limits["max_step"] * (1 + 1e-9)


def evaluate(text, row, own):
    """Return whether the text of a rule or an equation holds; False if a value is missing."""
    values = []

    def look_up(match):
        source = own if match[1] is not None else row
        values.append(source[match[1] or match[2] or match[3]])
        return f"values[{len(values) - 1}]"

    code = re.sub(r"was\(`([^`]+)`\)|`([^`]+)`|\b([a-zA-Z]\w*)\b", look_up, text)
    return None not in values and bool(eval(code, {"values": values}))


class Oracle:
    """The promises of one call, checked on its result."""

    def __init__(self, case):
        self.case = case
        self.columns = [Column(case.X.iloc[:, j]) for j in range(case.X.shape[1])]
        self.names = list(case.X.columns)
        self.training = set(rows_of(case.X))
        self.own = rows_of(case.factuals)

    def measures(self, row, own):
        """Return L0 and Gower's distance; derived columns do not count."""
        counted = [j for j, name in enumerate(self.names) if name not in self.case.derived]
        steps = sum(self.columns[j].step(row[j], own[j]) for j in counted)
        return sum(differs(row[j], own[j]) for j in counted), steps / len(self.names)

    def breach(self, row, own):
        """Return what forbids a row for a factual, None if it is allowed and valid."""
        case = self.case
        if not case.wants(case.model.of(row)):
            return "it is not valid"
        if case.no_copies and row in self.training:
            return "it copies a training row"
        for name, value, before in zip(self.names, row, own):
            if name in case.fixed and differs(value, before):
                return f"fixed {name!r} changes"
            if value is None and before is not None and not case.may_become_missing(name):
                return f"{name!r} becomes missing"
        for limit in case.limits:
            j = self.names.index(limit.name)
            if not limit.keeps(self.columns[j], row[j], own[j]):
                return f"{limit.name!r} goes from {own[j]!r} to {row[j]!r}, against {limit.limits}"
        named, named_own = dict(zip(self.names, row)), dict(zip(self.names, own))
        for text in case.rules:
            if not evaluate(text, named, named_own):
                return f"it breaks {text}"
        for text in case.kept:
            if evaluate(text, named_own, named_own) and not evaluate(text, named, named_own):
                return f"its factual keeps {text}, and it does not"
        for name, text in case.derived.items():
            if named != named_own and not evaluate(f"`{name}` == {text}", named, named_own):
                inputs = re.findall("`([^`]+)`", text)
                if any(differs(named[each], named_own[each]) for each in inputs):
                    return f"{name!r} is not {text}"
        n_changes, gower = self.measures(row, own)
        if n_changes > (case.options["max_changes"] or math.inf):
            return f"{n_changes} changes"
        if gower > (case.options["max_gower"] or math.inf) * (1 + 1e-9):
            return f"its distance is {gower}"
        return None

    def without(self, row, own, j):
        """Return a row without its change of column j; its derived columns are computed again."""
        named = {**dict(zip(self.names, row)), self.names[j]: own[j]}
        named_own = dict(zip(self.names, own))
        for name, text in self.case.derived.items():
            inputs = re.findall("`([^`]+)`", text)
            is_touched = any(differs(named[each], named_own[each]) for each in inputs)
            named[name] = sum(named[each] for each in inputs) if is_touched else named_own[name]
        return tuple(named.values())

    def check(self, result):
        """Check the tables of a result, and every row."""
        case = self.case
        assert list(result.frame.columns) == self.names
        pd.testing.assert_series_equal(result.frame.dtypes, case.X.dtypes)
        assert rows_of(result.factuals) == self.own
        rows, place = rows_of(result.frame), {key_of(label): i for i, label in enumerate(case.factuals.index)}
        owners = [place[key_of(label)] for label in result.frame.index.get_level_values("id")]
        for i, (row, owner) in enumerate(zip(rows, owners)):
            own, measured = self.own[owner], result.measures.iloc[i]
            assert self.breach(row, own) is None, self.breach(row, own)
            n_changes, gower = self.measures(row, own)
            assert n_changes > 0
            assert measured["L0"] == n_changes
            assert math.isclose(measured["gower"], gower, rel_tol=1e-9, abs_tol=1e-12)
            assert math.isclose(measured["gower_sum"], gower * len(self.names), rel_tol=1e-9, abs_tol=1e-12)
            assert case.is_label or math.isclose(measured["prediction"], case.model.of(row), rel_tol=1e-12)
            if case.options["sparse"] and not measured["below_floor"]:
                assert measured["plausibility"] >= case.options["floor"] - 1e-9
                self.check_needed(row, own)
        for owner in set(owners):
            mine = [i for i, other in enumerate(owners) if other == owner]
            assert len({rows[i] for i in mine}) == len(mine) <= case.options["n_counterfactuals"], "a row comes twice"
            assert [result.frame.index.get_level_values("rank")[i] for i in mine] == list(range(1, len(mine) + 1))
            if case.options["diverse"]:
                crossed = [i for i in mine if not result.measures["below_floor"].iloc[i]]
                sets = {tuple(differs(v, o) for v, o in zip(rows[i], self.own[owner])) for i in crossed}
                assert len(sets) == len(crossed) or case.derived, "two rows change the same columns"
        lacking = {place[key_of(label)]: code for label, code in result.unexplained["code"].items()}
        assert set(lacking) ^ set(owners) == set(range(len(self.own))), "a row is neither explained nor accounted for"
        assert set(lacking).isdisjoint(owners)
        for i, own in enumerate(self.own):
            assert case.wants(case.model.of(own)) == (lacking.get(i) == "already")

    def check_needed(self, row, own):
        """Every change is needed and none makes the decision worse; with a floor, plausibility may need a change."""
        if self.case.options["relations"] != () or self.case.options["floor"]:
            return
        for j, name in enumerate(self.names):
            if differs(row[j], own[j]) and name not in self.case.derived:
                without = self.without(row, own, j)
                if self.measures(without, own)[0] < self.measures(row, own)[0]:
                    assert self.breach(without, own) is not None, f"the change of {name!r} is not needed"
                    gain = self.case.model.of(without) - self.case.model.of(row)
                    assert self.case.is_label or gain <= 1e-9, f"the change of {name!r} makes the decision worse"

    def check_best(self, result, candidates):
        """The rows of a plain search are the best of all candidates."""
        pools, returned = {}, {}
        for label, row in zip(candidates.index.get_level_values(0), rows_of(candidates)):
            pools.setdefault(key_of(label), set()).add(row)
        for label, n_changes, gower in zip(
            result.frame.index.get_level_values("id"), result.measures["L0"], result.measures["gower"]
        ):
            returned.setdefault(key_of(label), []).append((n_changes, gower))
        for label, own in zip(self.case.factuals.index, self.own):
            if self.case.wants(self.case.model.of(own)):
                continue
            allowed = [row for row in pools.get(key_of(label), ()) if self.breach(row, own) is None]
            best = sorted(self.measures(row, own) for row in allowed)[: self.case.options["n_counterfactuals"]]
            if best or not self.case.may_draw_again:
                np.testing.assert_allclose(returned.get(key_of(label), []), best, rtol=1e-9, atol=1e-12)


def key_of(label):
    return repr(label.item() if isinstance(label, np.generic) else label)
