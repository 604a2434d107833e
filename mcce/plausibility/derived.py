"""Derived columns: formulas that compute a column from others, in the rounding of the training data.

1. A formula is a text in the grammar of `mcce.rule`, such as ``(rent + instalment) / income``, or a function of a
   frame.
2. Numbers are rounded like most training rows. The numbers of decimals up to that of the column are tried with rounding
   half to even (as in numpy), half up, down (floor), towards 0 (trunc) and up (ceil); the rounding that reproduces most
   rows is chosen and becomes part of the text of the formula: ``floor((rent + instalment) / income, 2)``.
3. Training rows that disagree are counted. A row with a missing value in the column is not compared; a row in which the
   column is known but its formula gives no value disagrees.
4. Formulas are sorted so that inputs come first. A cycle is an error, and the message names its columns.

Functions are code and are not stored: the function of a loaded formula must be given again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats
from mcce.constraints.conditions import ColumnValue, Compared, Condition, Value, columns_read, round_by
from mcce.constraints.rules import resolve_rule, rule
from mcce.exceptions import InputError, MCCEWarning, listing, spell, warn
from mcce.storage.fields import require, stored
from mcce.storage.state import NOT_STATE, stateful
from mcce.table import Data, Feature, Schema, as_frame
from mcce.table.dtypes import is_dated
from mcce.wording import Parameter, PythonOnly
from mcce.wording import Value as SaidValue

MOST_LABELS = 5  # exceptions listed in messages
OF_EXCEPTIONS = 0.1  # share of a formula's exceptions below which another one is suggested
TRIED_ROWS = 5000  # rows used to choose the rounding
MOST_TRIED = 6  # decimals tried for a column without a fixed number of decimals
ROUNDINGS = ("half even", "half up", "floor", "trunc", "ceil")  # in order of preference
_TEXTS = {
    "half even": "round({text}, {decimals})",
    "half up": "floor({text} + {half}, {decimals})",
    "floor": "floor({text}, {decimals})",
    "trunc": "trunc({text}, {decimals})",
    "ceil": "ceil({text}, {decimals})",
}
_BARE = re.compile(r"[^\W\d][\w.]*\Z")
FrameFunction = Callable[[pd.DataFrame], Any]


@stateful("Formula")
@dataclass(frozen=True)
class Formula:
    """A formula that computes a column, fitted to training rows by `fit_formula`.

    Attributes
    ----------
    target : the computed column.
    says : ``target == text`` in the grammar of `mcce.rule`, rounding included; for a function, a text with its name.
    inputs : the columns that the formula reads, in the order of the table.
    is_function : whether it is a Python function.
    rounding : how the function's numbers are rounded, one of `ROUNDINGS`; None for no rounding.
    decimals : the number of decimals after rounding.
    rows : the number of training rows compared.
    exceptions : the number of training rows that disagree.
    first : the labels of the first exceptions.
    function : the function; None for a text, and for a loaded formula.

    Examples
    --------
    >>> import mcce, pandas as pd
    >>> X = pd.DataFrame({"used": range(100), "limit": 300, "percent": [33 * i // 99 for i in range(100)]})
    >>> explainer = mcce.MCCE(lambda rows: rows["used"] / 100, derived={"percent": "100 * used / limit"})
    >>> (formula,) = explainer.fit(X).derived_
    >>> formula.target, formula.inputs, formula.text, formula.share
    ('percent', ('used', 'limit'), 'floor(100 * used / limit)', 0.0)
    """

    target: Hashable
    says: str = stored(str)
    inputs: tuple[Hashable, ...] = stored(tuple)
    is_function: bool = stored(bool, default=False)
    rounding: str | None = stored(str, optional=True, default=None)
    decimals: int = stored(int, least=-12, most=12, default=0)
    rows: int = stored(int, least=0, default=0)
    exceptions: int = stored(int, least=0, default=0)
    first: tuple[Hashable, ...] = stored(tuple, default=())
    function: FrameFunction | None = field(default=None, compare=False, repr=False, metadata=NOT_STATE)

    def check_state(self) -> None:
        """Raise if the parts of a stored formula do not fit together."""
        require(self.rounding is None or self.rounding in ROUNDINGS, "rounding is unknown")
        require(self.exceptions <= self.rows, "exceptions is larger than rows")
        if not self.is_function:
            rule(self.says)

    @property
    def share(self) -> float:
        """The share of training rows that disagree."""
        return self.exceptions / self.rows if self.rows else 0.0

    def __str__(self) -> str:
        if not self.exceptions:
            return f"{self.says} (all {self.rows:,} training rows agree)"
        return (
            f"{self.says} ({self.exceptions:,} of {self.rows:,} training rows, {self.share:.2%}, disagree; the first: "
            f"{', '.join(map(str, self.first))})"
        )

    def without_rows(self) -> Formula:
        """Return the formula without information about training rows."""
        return replace(self, rows=0, exceptions=0, first=())

    @property
    def text(self) -> str:
        """The formula as accepted by `derived` of `mcce.MCCE`, rounding included."""
        name = column_text(self.target)
        return self.says if self.is_function or name is None else self.says[len(name) + 4 :]

    def with_function(self, function: FrameFunction) -> Formula:
        """Return a loaded formula with its function."""
        if not self.is_function:
            raise InputError(f"the formula {self.says!r} is a text; it needs no function.")
        return replace(self, function=function)

    def compute(self, X: Data, schema: Schema) -> pd.Series[Any]:
        """Return the computed column for the rows of a table; `schema` describes the training columns."""
        X = as_frame(X)[0]
        encoded = np.full((len(X), len(schema.features)), np.nan)
        for name in self.inputs:
            j = schema.position(name, f"an input of the derived column {spell(self.target)},", "the training data")
            if name not in X.columns:
                raise InputError(
                    f"X has no column {spell(name)}, which the derived column {spell(self.target)} is computed from; "
                    "add it."
                )
            encoded[:, j] = schema.features[j].encode(X[name], "X")
        feature = schema.features[schema.names.index(self.target)]
        found = self.compute_encoded(encoded, schema)
        is_number = feature.is_numeric and not is_dated(feature.dtype)
        values = found if is_number and np.isnan(found).any() else feature.decode(found)
        return pd.Series(values, index=X.index, name=self.target)

    def compute_encoded(self, rows: Floats, schema: Schema) -> Floats:
        """Return the computed column of encoded rows, encoded; missing where the formula gives no value."""
        place = schema.position(self.target, "a derived column,", "the training data")
        feature = schema.features[place]
        if self.is_function:
            found = _call(self, rows, schema)
            if self.rounding is not None:
                found = _round(found, self.rounding, self.decimals)
        else:
            target, value = _equation_of(self.says, schema)
            found = encoded_value(target, value, rows)
        return feature.grid.put(found) if feature.is_numeric else found


def fit_formula(
    target: Hashable,
    expression: str | FrameFunction,
    X: Data,
    schema: Schema | None = None,
    *,
    inputs: Sequence[Hashable] | None = None,
) -> Formula:
    """Return the formula of a column, with the rounding of the training rows.

    Parameters
    ----------
    target : a column of X.
    expression : str or function
        A text in the grammar of `mcce.rule`, without the target; or a function that takes a frame and returns one value
        for each row.
    X : training rows.
    schema : the columns of X; read from X by default.
    inputs : the columns that a function reads. By default, those without which it fails or returns other values.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce.plausibility.derived import fit_formula
    >>> X = pd.DataFrame({"used": [10, 25, 99], "limit": [30, 40, 100], "percent": [33, 62, 99]})
    >>> print(fit_formula("percent", "100 * used / limit", X))
    percent == 100 * used / limit (all 3 training rows agree)
    """
    X = as_frame(X)[0]
    schema = Schema.from_data(X) if schema is None else schema
    place = schema.position(target, "a derived column,", "the training data")
    matrix = schema.encode(X).matrix
    if isinstance(expression, str):
        if inputs is not None:
            raise InputError(f"the formula {spell(expression)} names its columns itself; leave inputs out.")
        fitted = _fit_text(target, expression, matrix, schema)
    elif callable(expression):
        fitted = _fit_function(target, expression, X, matrix, schema, inputs)
    else:
        raise InputError(
            f"the formula of the derived column {spell(target)} is {spell(expression)}; give a text such as "
            "'(rent + instalment) / income', or a function of a frame."
        )
    computed = fitted.compute_encoded(matrix, schema)
    known = ~np.isnan(matrix[:, place])
    wrong = np.flatnonzero(known & ~agree(schema.features[place], computed, matrix[:, place]))
    first = tuple(plain_label(X.index[row]) for row in wrong[:MOST_LABELS])
    return replace(fitted, rows=int(known.sum()), exceptions=wrong.size, first=first)


def fit_formulas(
    derived: Mapping[Hashable, str | FrameFunction], X: Data, schema: Schema | None = None
) -> tuple[Formula, ...]:
    """Return the formulas of several columns, inputs first; raise if they depend on each other in a cycle."""
    X = as_frame(X)[0]
    schema = Schema.from_data(X) if schema is None else schema
    return order_formulas([fit_formula(target, each, X, schema) for target, each in derived.items()])


def fit_derived(
    derived: Mapping[Hashable, str | FrameFunction] | None, X: pd.DataFrame, schema: Schema, fixed: Sequence[Hashable]
) -> tuple[Formula, ...]:
    """Return the formulas of derived columns; warn of training rows that disagree, raise if one is fixed."""
    if not derived:
        return ()
    if not isinstance(derived, Mapping):
        raise InputError(
            Parameter("derived"),
            " is ",
            SaidValue(derived),
            "; give formulas by column, for example ",
            SaidValue({"dti": "(rent + instalment) / income"}),
            ".",
        )
    for target in derived:
        if target in fixed:
            raise InputError(
                f"{spell(target)} is fixed and derived; leave it out of ",
                Parameter("fixed"),
                " and fix the columns that it is computed from.",
            )
    formulas = fit_formulas(derived, X, schema)
    disagreeing = [each for each in formulas if each.exceptions]
    if disagreeing:
        advice = [text for each in disagreeing if (text := _by_days(each, derived[each.target], X, schema)) is not None]
        warn(
            f"training rows disagree with the formula of {len(disagreeing)} derived "
            f"column{'s' if len(disagreeing) > 1 else ''}: {'; '.join(map(str, disagreeing))}. Check the formula, or "
            f"correct these rows.{''.join(f' {text}' for text in advice)}",
            category=MCCEWarning,
        )
    return formulas


def _by_days(formula: Formula, given: str | FrameFunction, X: pd.DataFrame, schema: Schema) -> str | None:
    """Return advice to count fractions of years or months, where rows disagree with completed ones; else None."""
    if not isinstance(given, str):
        return None
    for unit, year in (("years", "365.25"), ("months", "30.4375")):
        counted = re.compile(rf"\b{unit}\(([^()]*)\)")
        is_whole = counted.fullmatch(given.strip()) is not None
        by_days = counted.sub(rf"days(\1) / {year}" if is_whole else rf"(days(\1) / {year})", given)
        if by_days == given:
            continue
        found = fit_formula(formula.target, by_days, X, schema)
        if found.exceptions < OF_EXCEPTIONS * formula.exceptions:
            some = "all" if not found.exceptions else f"all but {found.share:.2%} of the"
            return f"{unit}() counts completed {unit}; {some} training rows agree with {by_days!r}."
    return None


def with_functions(formulas: Sequence[Formula], functions: Mapping[Hashable, FrameFunction]) -> tuple[Formula, ...]:
    """Return loaded formulas with their Python functions; raise if a function is missing."""
    lacking = [each.target for each in formulas if each.is_function and each.target not in functions]
    if lacking:
        raise InputError(
            f"the derived column{'s' if len(lacking) > 1 else ''} {listing(map(str, lacking))} of this explainer "
            f"{'are' if len(lacking) > 1 else 'is'} computed by a Python function, which a file does not hold; give it "
            "again",
            PythonOnly(f", as in MCCE.load(path, derived={{{lacking[0]!r}: ...}})"),
            ".",
        )
    known = {each.target: each for each in formulas}
    for target in functions:
        if target not in known:
            raise InputError(f"derived has {spell(target)}, which is not a derived column of this explainer.")
        known[target] = known[target].with_function(functions[target])
    return tuple(known.values())


def order_formulas(formulas: Sequence[Formula]) -> tuple[Formula, ...]:
    """Return formulas sorted so that inputs come first; raise if there is a cycle."""
    by_target = {each.target: each for each in formulas}
    ordered: list[Formula] = []
    done: set[Hashable] = set()

    def visit(target: Hashable, path: tuple[Hashable, ...]) -> None:
        if target in path:
            cycle = (*path[path.index(target) :], target)
            raise InputError(
                f"derived columns depend on each other in a cycle: {' -> '.join(map(spell, cycle))}. Compute one of "
                "them from other columns, or leave its formula out."
            )
        if target in done:
            return
        for name in by_target[target].inputs:
            if name in by_target:
                visit(name, (*path, target))
        done.add(target)
        ordered.append(by_target[target])

    for each in formulas:
        visit(each.target, ())
    return tuple(ordered)


@dataclass(frozen=True)
class DerivedColumns:
    """Formulas for the columns of a table, inputs first, used to check rules on derived columns."""

    formulas: tuple[Formula, ...]
    schema: Schema = field(compare=False, repr=False)

    @cached_property
    def _by_column(self) -> dict[int, tuple[Formula, tuple[int, ...]]]:
        place = self.schema.names.index
        return {place(each.target): (each, tuple(map(place, each.inputs))) for each in self.formulas}

    def sources(self, columns: Iterable[int]) -> set[int]:
        """Return the columns that some columns are computed from; columns that are not derived are kept."""
        found: set[int] = set()
        for column in columns:
            known = self._by_column.get(column)
            found |= {column} if known is None else self.sources(known[1])
        return found

    def compute(self, rows: Floats, columns: Iterable[int]) -> Floats:
        """Return rows with the derived columns among some columns computed."""
        needed = set(columns)
        for column in reversed(self._by_column):
            needed |= {*self._by_column[column][1]} if column in needed else set()
        rows = rows.copy(order="K")
        for column, (formula, _) in self._by_column.items():
            if column in needed:
                rows[:, column] = formula.compute_encoded(rows, self.schema)
        return rows


def equation(condition: Condition) -> tuple[ColumnValue, Value] | None:
    """Return the column that stands alone on one side of an equation, and the other side, which reads other columns."""
    if not isinstance(condition, Compared) or condition.sign != "==":
        return None
    for one, other in ((condition.left, condition.right), (condition.right, condition.left)):
        others = {each.column for each in columns_read(other)}
        if isinstance(one, ColumnValue) and not one.was and one.codes is None and one.column not in others:
            return (one, other) if others else None
    return None


def encoded_value(target: ColumnValue, value: Value, rows: Floats) -> Floats:
    """Return a value of each row in the encoding of a column."""
    with np.errstate(all="ignore"):
        found = value.of(rows, rows)
        if target.n_levels:  # a code without a level is missing
            return np.where((found >= 0.0) & (found < target.n_levels), found, np.nan)
        return (found - target.plus) / target.times


def agree(feature: Feature, computed: Floats, values: Floats) -> Bools:
    """Return which computed values equal those of a column, up to floating-point error."""
    if not feature.is_numeric:
        return np.asarray(computed == values)
    return np.asarray(np.abs(computed - values) <= tolerance_of(feature, values))


def column_text(name: Hashable) -> str | None:
    """Return the name of a column in the grammar of rules; None if it cannot be written."""
    from mcce.constraints.grammar import WORDS  # imported with the first rule

    text = str(name)
    if _BARE.match(text) and text.lower() not in (*WORDS, "true", "false"):
        return text
    return f"`{text}`" if text and "`" not in text else None


def plain_label(label: Any) -> Hashable:
    """Return the label of a row as text or as a number."""
    label = label.item() if isinstance(label, np.generic) else label
    return label if isinstance(label, (str, int, float)) else str(label)


# ---- texts


def _fit_text(target: Hashable, text: str, matrix: Floats, schema: Schema) -> Formula:
    from mcce.constraints import grammar as nodes

    name = column_text(target)
    if name is None:
        raise InputError(f"rules cannot name the derived column {spell(target)}; rename it, or give a function.")
    tree = nodes.parse(text)
    if isinstance(tree, nodes.If):
        raise InputError(f"the formula {spell(text)} is a rule; write if(condition, a, b) for one of two values.")
    is_condition = isinstance(tree, (nodes.ComparisonOf, nodes.Member, nodes.AllOf, nodes.AnyOf, nodes.Negation))
    body = f"({text.strip()})" if is_condition else text.strip()
    of, value = _equation_of(f"{name} == {body}", schema)
    read = sorted({each.column for each in columns_read(value)})
    inputs = tuple(schema.names[j] for j in read)
    feature = schema.features[of.column]
    if feature.is_numeric and not is_dated(feature.dtype):
        found = _find_rounding(feature, encoded_value(of, value, matrix), matrix[:, of.column])
        if found is not None and found != ("half even", feature.decimals):
            body = rounded_text(body, *found)
    return Formula(target, f"{name} == {body}", inputs)


def rounded_text(text: str, rounding: str, decimals: int) -> str:
    """Return a formula with its rounding."""
    rounded = _TEXTS[rounding].format(text=text, half=f"{0.5 * 10.0**-decimals:.12g}", decimals=decimals)
    return rounded.replace(", 0)", ")") if decimals == 0 and rounded.endswith(", 0)") else rounded


def _equation_of(says: str, schema: Schema) -> tuple[ColumnValue, Value]:
    """Return the target and the value of a formula."""
    resolved = resolve_rule(rule(says), schema)
    assert resolved.condition is not None
    if resolved.reads_factual:
        raise InputError(f"the formula {says!r} reads the factual (was); a derived column is computed from its row.")
    found = equation(resolved.condition)
    if found is None:
        raise InputError(
            f"the formula {says!r} reads no column other than the one that it computes; a derived column is computed "
            "from others."
        )
    return found


# ---- functions


def _fit_function(
    target: Hashable,
    function: FrameFunction,
    X: pd.DataFrame,
    matrix: Floats,
    schema: Schema,
    inputs: Sequence[Hashable] | None,
) -> Formula:
    feature = schema.features[schema.names.index(target)]
    called = getattr(function, "__name__", type(function).__name__)
    if inputs is None:
        inputs = _inputs_of(target, function, X)
    places = {name: schema.position(name, f"an input of the derived column {spell(target)},", "X") for name in inputs}
    if not places or target in places:
        raise InputError(
            f"the function {called} of the derived column {spell(target)} reads "
            f"{'that column itself' if places else 'none of the other columns'}. Name those that it reads as "
            "inputs=[...]."
        )
    names = tuple(sorted(places, key=lambda name: places[name]))
    made = Formula(target, f"{target} is computed by {called}()", names, True, function=function)
    if not feature.is_numeric or is_dated(feature.dtype):
        return made
    found = _find_rounding(feature, _call(made, matrix, schema), matrix[:, schema.names.index(target)])
    return made if found is None else replace(made, rounding=found[0], decimals=found[1])


def _inputs_of(target: Hashable, function: FrameFunction, X: pd.DataFrame) -> list[Hashable]:
    """Return the columns without which a function of a frame fails or returns other values."""
    some = X.iloc[np.unique(np.linspace(0, len(X) - 1, 50).astype(np.intp))].drop(columns=target)
    full = _answer(target, function, some)
    found: list[Hashable] = []
    for name in some.columns:
        try:
            same = full.equals(pd.Series(np.asarray(function(some.drop(columns=name))), index=some.index))
        except Exception:
            same = False
        found += [] if same else [name]
    return found


def _answer(target: Hashable, function: FrameFunction, frame: pd.DataFrame) -> pd.Series[Any]:
    called = getattr(function, "__name__", type(function).__name__)
    try:
        answer = np.asarray(function(frame))
    except Exception as error:
        raise InputError(
            f"the function {called} of the derived column {spell(target)} raised {type(error).__name__}: {error}. It "
            f"is called with a frame of the columns {listing(map(str, frame.columns))}; inputs= says which they are."
        ) from error
    if answer.shape != (len(frame),):
        raise InputError(
            f"the function {called} of the derived column {spell(target)} returned an array of shape {answer.shape} "
            f"for {len(frame)} rows; return one value for each."
        )
    return pd.Series(answer, index=frame.index, name=target)


def _call(formula: Formula, rows: Floats, schema: Schema) -> Floats:
    """Return the encoded values of a function, before rounding."""
    if formula.function is None:
        raise InputError(
            f"the derived column {spell(formula.target)} is computed by a Python function, which is not stored; give "
            "it again."
        )
    subset = schema.subset(list(formula.inputs))
    frame = subset.decode(rows[:, [schema.names.index(name) for name in formula.inputs]])
    feature = schema.features[schema.names.index(formula.target)]
    answer = _answer(formula.target, formula.function, frame)
    where = f"the values of the derived column {spell(formula.target)}"
    if not feature.is_numeric or is_dated(feature.dtype):
        return feature.encode(answer, where)
    try:
        numbers = answer.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise InputError(f"{where} are not numbers ({error}); return numbers.") from error
    return np.where(np.isfinite(numbers), numbers, np.nan)


# ---- rounding


def _find_rounding(feature: Feature, computed: Floats, values: Floats) -> tuple[str, int] | None:
    """Return the rounding that reproduces most rows, and its decimals; None if unrounded numbers agree as well."""
    some = np.unique(np.linspace(0, values.size - 1, TRIED_ROWS).astype(np.intp))
    computed, values = computed[some], values[some]
    tolerance = tolerance_of(feature, values)
    best: tuple[str, int] | None = None
    most = 0
    if feature.decimals is None:
        most = int((np.abs(computed - values) <= tolerance).sum())
    for rounding, decimals in _roundings(feature):
        if most == values.size:
            break
        agreed = int((np.abs(_round(computed, rounding, decimals) - values) <= tolerance).sum())
        if agreed > most:
            best, most = (rounding, decimals), agreed
    return best


def _roundings(feature: Feature) -> Iterator[tuple[str, int]]:
    """Yield roundings in order of preference: the decimals of the column first, then fewer."""
    finest = MOST_TRIED if feature.decimals is None else feature.decimals
    for decimals in range(finest, -4, -1):
        for rounding in ROUNDINGS:
            yield rounding, decimals


def _round(values: Floats, rounding: str, decimals: int) -> Floats:
    if rounding == "half up":
        return round_by("floor", values + 0.5 * 10.0**-decimals, decimals)
    return round_by("round" if rounding == "half even" else rounding, values, decimals)


def tolerance_of(feature: Feature, values: Floats, part: float = 1e-6) -> Floats:
    """Return the tolerance for equal numbers: a part of the last digit of a column, or of the size of floats."""
    if feature.decimals is not None:
        return np.maximum(part * 10.0**-feature.decimals, 4.0 * np.finfo(np.float64).eps * np.abs(values))
    return precision_of(feature) * np.maximum(np.abs(values), 1e-3 * feature.high - 1e-3 * feature.low)


def precision_of(feature: Feature) -> float:
    """Return the relative precision of computed floats."""
    return 1e-5 if feature.is_numeric and feature.grid.narrow is not None else 1e-9
