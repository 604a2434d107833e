"""Values of an expression for encoded rows and their factuals, vectorised over the rows.

1. A value is of numbers, dates, a condition, levels of a column, or a text; a text is a level or a date by what it is
   compared with. Numbers are those of the decoded column, dates count days when subtracted, levels compare by order if
   the column is ordered.
2. A comparison with a missing value is false, also `!=` and `not in`. What is computed from a missing value is missing,
   as are quotients by 0 and functions where they are undefined.
3. Types are checked once, by evaluation on no rows; only the columns that an expression names are read.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NoReturn

import numpy as np

from mcce._utils import Bools, Floats
from mcce.constraints.grammar import Expression, decimals_of, parse
from mcce.constraints.values import clock_of, encode_value, is_truth, level_code, read_date
from mcce.exceptions import InputError, did_you_mean, spell
from mcce.table import Feature, Schema

COMPARE: dict[type[ast.cmpop], Callable[..., Any]] = {
    **{ast.Eq: np.equal, ast.NotEq: np.not_equal, ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater},
    **{ast.GtE: np.greater_equal, ast.In: np.equal, ast.NotIn: np.not_equal},
}
COMPUTE: dict[type[ast.operator], Callable[..., Any]] = {
    **{ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide, ast.Pow: np.float_power}
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{"abs": np.abs, "ceil": np.ceil, "exp": np.exp, "floor": np.floor, "log": np.log, "sqrt": np.sqrt},
    **{"max": np.maximum, "min": np.minimum},
}
_CALLED = {"number": "numbers", "date": "dates", "condition": "a condition", "level": "levels", "text": "text"}


@dataclass(frozen=True)
class Value:
    """The value of a part of an expression, a number or an array of one for each row.

    Attributes
    ----------
    kind : "number", "date", "condition", "level" (codes of the levels of `feature`), "text", or "choice" of two levels
        or texts, whose codes depend on what they are compared with.
    data : the values; NaN is missing.
    feature : the column of levels; of dates, a column whose unit and time zone they have.
    """

    kind: str
    data: Any
    feature: Feature | None = None


@dataclass(frozen=True)
class Formula:
    """An expression for the columns of a table; made by `read_formula`.

    Attributes
    ----------
    columns, factual_columns : positions of the columns of the row, and of the factual, that it reads.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce.constraints.formula import read_formula
    >>> from mcce.table import Schema
    >>> X = pd.DataFrame({"rent": [500.0, 800.0, None], "income": [1000, 2000, 3000]})
    >>> schema = Schema.from_data(X)
    >>> read_formula("rent / income < 0.5", schema).holds(schema.encode(X).matrix).tolist()
    [False, True, False]
    """

    expression: Expression
    schema: Schema = field(repr=False, compare=False)
    columns: tuple[int, ...]
    factual_columns: tuple[int, ...]

    def evaluate(self, rows: Floats, factuals: Floats | None = None) -> Value:
        """Return the value of each row."""
        with np.errstate(all="ignore"):
            return _Evaluation(self.expression, self.schema, rows, factuals).value(self.expression.tree)

    def holds(self, rows: Floats, factuals: Floats | None = None) -> Bools:
        """Return for which rows the condition holds."""
        with np.errstate(all="ignore"):
            holds = _Evaluation(self.expression, self.schema, rows, factuals).condition(self.expression.tree)
        return np.array(np.broadcast_to(holds, rows.shape[:1]))

    def encode(self, rows: Floats, feature: Feature) -> Floats:
        """Return the values in the encoding of a feature, not rounded; missing where they are no level of it."""
        evaluation = _Evaluation(self.expression, self.schema, rows, None)
        tree = self.expression.tree
        with np.errstate(all="ignore"):
            value = evaluation.value(tree)
            if not feature.is_numeric:
                codes = evaluation.codes(tree, value, feature)
                encoded = np.where(codes >= 0.0, codes, np.nan)
            elif feature.is_date and clock_of(feature).family == "duration":
                encoded = clock_of(feature).encode(evaluation.numbers(tree, value))
            elif feature.is_date:
                encoded = clock_of(feature).encode(evaluation.dates(tree, value, feature))
            else:
                encoded = evaluation.numbers(tree, value)
        return np.array(np.broadcast_to(encoded, rows.shape[:1]), dtype=np.float64)


def read_formula(text: str, schema: Schema, what: str = "rule", *, may_read_factual: bool = True) -> Formula:
    """Return the expression of a text for the columns of a table; raise if its names, levels or types do not fit."""
    return bind(parse(text, what), schema, may_read_factual=may_read_factual)


def bind(expression: Expression, schema: Schema, *, may_read_factual: bool = True) -> Formula:
    """Return an expression for the columns of a table."""
    evaluation = _Evaluation(expression, schema, np.empty((0, len(schema.features))), None)
    with np.errstate(all="ignore"):
        evaluation.value(expression.tree)
    if evaluation.read_factual and not may_read_factual:
        expression.refuse(expression.tree, "it reads the factual (was), which only rules can.")
    return Formula(expression, schema, tuple(sorted(evaluation.read)), tuple(sorted(evaluation.read_factual)))


class _Evaluation:
    """One walk through the tree."""

    def __init__(self, expression: Expression, schema: Schema, rows: Floats, factuals: Floats | None) -> None:
        self.expression, self.schema, self.rows = expression, schema, rows
        self.factuals = rows if factuals is None else factuals
        self.read: set[int] = set()
        self.read_factual: set[int] = set()

    # ---- parts

    def value(self, node: ast.expr) -> Value:
        """Return the value of a part."""
        if isinstance(node, ast.Constant):
            return _constant(node.value)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self.column(node)
        if isinstance(node, (ast.BoolOp, ast.Compare)) or (isinstance(node, ast.UnaryOp) and _is_not(node)):
            return Value("condition", self.condition(node))
        if isinstance(node, ast.UnaryOp):
            numbers = self.numbers(node.operand)
            return Value("number", -numbers if isinstance(node.op, ast.USub) else numbers)
        if isinstance(node, ast.BinOp):
            return self.arithmetic(node)
        if isinstance(node, ast.IfExp):
            return self.choice(node)
        assert isinstance(node, ast.Call)
        return self.call(node)

    def condition(self, node: ast.expr) -> Any:
        """Return whether a condition holds, for each row or for all."""
        if isinstance(node, ast.BoolOp):
            combine = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
            holds = self.condition(node.values[0])
            for part in node.values[1:]:
                holds = combine(holds, self.condition(part))
            return holds
        if isinstance(node, ast.UnaryOp) and _is_not(node):
            return np.logical_not(self.condition(node.operand))
        if isinstance(node, ast.Compare):
            if isinstance(node.ops[0], (ast.In, ast.NotIn)):
                return self.member(node)
            sides = [(side, self.value(side)) for side in (node.left, *node.comparators)]
            holds = True
            for left, sign, right in zip(sides[:-1], node.ops, sides[1:]):
                holds = np.logical_and(holds, self.compared(*left, sign, *right))
            return holds
        return self.truth(node, self.value(node))

    def truth(self, node: ast.expr, value: Value) -> Any:
        """Return whether a value is true."""
        if value.kind == "choice":
            holds, *both = value.data
            return np.where(holds, *(self.truth(part, chosen) for part, chosen in both))
        if value.kind == "condition":
            return value.data
        if value.kind == "level" and any(is_truth(level) and level for level in _levels(value.feature)):
            return value.data == level_code(_feature(value), True)
        self.refuse(node, f"{self.called(node, value)} is neither true nor false; compare it with something.")

    def member(self, node: ast.Compare) -> Any:
        """Return whether a value is, or is not, in a list."""
        members = node.comparators[0]
        assert isinstance(members, (ast.List, ast.Tuple))
        negated = isinstance(node.ops[0], ast.NotIn)
        holds: Any = negated
        value = self.value(node.left)
        for member in members.elts:
            compared = self.compared(node.left, value, node.ops[0], member, self.value(member))
            holds = np.logical_and(holds, compared) if negated else np.logical_or(holds, compared)
        return holds

    def compared(self, left: ast.expr, a: Value, sign: ast.cmpop, right: ast.expr, b: Value) -> Any:
        """Return whether a comparison of two parts with these values holds; false where a value is missing."""
        kinds = {a.kind, b.kind}
        by_order = isinstance(sign, (ast.Lt, ast.LtE, ast.Gt, ast.GtE))
        if "level" in kinds:
            feature = _feature(a if a.kind == "level" else b)
            if by_order and (feature.kind != "ordered" or _other_levels(a, b)):
                self.refuse(
                    left,
                    f"the levels of {spell(feature.name)} have no order here; compare them by == or in [...], or "
                    "make it an ordered category.",
                )
            one, other = self.codes(left, a, feature), self.codes(right, b, feature)
        elif "date" in kinds:
            feature = _feature(a if a.kind == "date" else b)
            one, other = self.dates(left, a, feature), self.dates(right, b, feature)
        elif kinds == {"number"} or (kinds == {"condition"} and not by_order):
            one, other = a.data, b.data
        else:
            self.refuse(
                left, f"{self.called(left, a)} cannot be compared with {self.called(right, b)}; compare like with like."
            )
        holds = COMPARE[type(sign)](one, other)
        if COMPARE[type(sign)] is np.not_equal and kinds != {"condition"}:
            holds = holds & ~(np.isnan(one) | np.isnan(other))
        return holds

    def arithmetic(self, node: ast.BinOp) -> Value:
        """Return a sum, difference, product, quotient or power; dates and days can be added and subtracted."""
        a, b = self.value(node.left), self.value(node.right)
        if "date" in (a.kind, b.kind) and isinstance(node.op, (ast.Add, ast.Sub)):
            day = clock_of(_feature(a if a.kind == "date" else b)).day
            if a.kind == b.kind or "text" in (a.kind, b.kind):
                if isinstance(node.op, ast.Sub):
                    feature = _feature(a if a.kind == "date" else b)
                    sides = self.dates(node.left, a, feature), self.dates(node.right, b, feature)
                    return Value("number", (sides[0] - sides[1]) / day)
            elif a.kind == "date":
                return Value("date", COMPUTE[type(node.op)](a.data, self.numbers(node.right, b) * day), a.feature)
            elif isinstance(node.op, ast.Add):
                return Value("date", self.numbers(node.left, a) * day + b.data, b.feature)
        return _finite(COMPUTE[type(node.op)](self.numbers(node.left, a), self.numbers(node.right, b)))

    def choice(self, node: ast.IfExp) -> Value:
        """Return one of two values."""
        holds = self.condition(node.test)
        a, b = self.value(node.body), self.value(node.orelse)
        kinds = {a.kind, b.kind}
        if kinds == {"number"}:
            return Value("number", np.where(holds, a.data, b.data))
        if "date" in kinds:
            feature = _feature(a if a.kind == "date" else b)
            return Value(
                "date",
                np.where(holds, self.dates(node.body, a, feature), self.dates(node.orelse, b, feature)),
                feature,
            )
        if "condition" in kinds:
            return Value("condition", np.where(holds, self.truth(node.body, a), self.truth(node.orelse, b)))
        if "number" in kinds:
            self.refuse(node, f"it is {self.called(node.body, a)} or {self.called(node.orelse, b)}; choose one kind.")
        return Value("choice", (holds, (node.body, a), (node.orelse, b)))

    def call(self, node: ast.Call) -> Value:
        """Return the value of a function."""
        function = self.expression.name(node.func)
        assert function is not None
        if function == "was":
            return self.column(node.args[0], was=True)
        if function == "missing":
            return Value("condition", np.isnan(self.value(node.args[0]).data))
        values = [self.value(argument) for argument in node.args]
        if function == "round":
            decimals = decimals_of(node.args[1]) if len(node.args) > 1 else 0
            return _finite(np.round(self.numbers(node.args[0], values[0]), decimals or 0))
        date = next((value for value in values if value.kind == "date"), None)
        if date is not None and function in ("min", "max"):
            sides = [self.dates(*argument, _feature(date)) for argument in zip(node.args, values)]
        else:
            sides = [self.numbers(*argument) for argument in zip(node.args, values)]
        if len(sides) == 1:
            return _finite(FUNCTIONS[function](*sides))
        extreme = reduce(FUNCTIONS[function], sides)
        return Value("number", extreme) if date is None else Value("date", extreme, date.feature)

    def column(self, node: ast.expr, was: bool = False) -> Value:
        """Return the values of a column, of the row or of its factual."""
        j = self.position(node)
        if j is None:
            return Value("condition", np.bool_(self.expression.name(node) == "true"))
        (self.read_factual if was else self.read).add(j)
        feature, encoded = self.schema.features[j], (self.factuals if was else self.rows)[:, j]
        if not feature.is_numeric:
            return Value("level", encoded, feature)
        if not feature.is_date:
            return Value("number", encoded)
        clock = clock_of(feature)
        return Value("number" if clock.family == "duration" else "date", clock.of(encoded), feature)

    def position(self, node: ast.expr) -> int | None:
        """Return the position of a column; None for true and false in small letters."""
        name = self.expression.name(node)
        names = self.schema.names
        for is_named in ([bool(n == name) for n in names], [str(n) == name for n in names]):  # labels may be numbers
            if sum(is_named) == 1:
                return is_named.index(True)
            if any(is_named):
                self.refuse(node, f"{spell(name)} names more than one column; rename all but one.")
        if name in ("true", "false"):
            return None
        for feature in self.schema.features:
            if name in [str(level) for level in _levels(feature)]:
                fix = f"put levels in quotes: {spell(name)}."
                self.refuse(node, f"{spell(name)} is not a column but a level of {spell(feature.name)}; {fix}")
        self.refuse(node, f"{spell(name)} is not a column; {did_you_mean(name, map(str, names))}")

    # ---- values in one unit

    def numbers(self, node: ast.expr, value: Value | None = None) -> Any:
        """Return a value as numbers."""
        value = self.value(node) if value is None else value
        if value.kind != "number":
            self.refuse(node, f"{self.called(node, value)} cannot be used as a number.")
        return value.data

    def dates(self, node: ast.expr, value: Value, feature: Feature) -> Any:
        """Return a value as dates that can be compared with those of a feature."""
        if value.kind == "text":
            try:
                return np.float64(read_date(feature, value.data))
            except InputError as error:
                self.refuse(node, f"{error}.")
        family = clock_of(feature).family
        if value.kind == "date" and clock_of(_feature(value)).family == family:
            return value.data
        self.refuse(
            node,
            f"{self.called(node, value)} cannot be compared with the dates of {spell(feature.name)}; write a date in "
            "quotes, as in '2024-05-31'.",
        )

    def codes(self, node: ast.expr, value: Value, feature: Feature) -> Any:
        """Return a value as codes of the levels of a feature; -1 for a level of another column that is none of it."""
        if value.kind == "level":
            if not _other_levels(value, Value("level", None, feature)):
                return value.data
            code_of = {level: code for code, level in enumerate(_levels(feature))}
            codes = np.array([*(code_of.get(level, -1) for level in _levels(value.feature)), np.nan])
            at = np.where(np.isnan(value.data), codes.size - 1, value.data)
            return codes[at.astype(np.intp)]
        if value.kind == "choice":
            holds, *both = value.data
            return np.where(holds, *(self.codes(part, chosen, feature) for part, chosen in both))
        if value.kind == "condition" and np.ndim(value.data):
            return np.where(value.data, *(self.code(node, truth, feature) for truth in (True, False)))
        if value.kind == "date" or np.ndim(value.data):
            self.refuse(node, f"{self.called(node, value)} cannot be a level of {spell(feature.name)}.")
        if value.kind == "condition":
            return self.code(node, bool(value.data), feature)
        if value.kind == "text":
            return self.code(node, value.data, feature)
        number = float(value.data)
        return self.code(node, int(number) if number.is_integer() else number, feature)

    def code(self, node: ast.expr, level: Any, feature: Feature) -> float:
        """Return the code of a level."""
        try:
            return encode_value(feature, level)
        except InputError as error:
            self.refuse(node, str(error))

    # ---- messages

    def refuse(self, node: ast.expr, wrong: str) -> NoReturn:
        """Raise an error at the position of a part."""
        self.expression.refuse(node, wrong)

    def called(self, node: ast.expr, value: Value) -> str:
        """Return a part and its kind in words."""
        shown = spell(value.data if value.kind == "text" else self.expression.text_of(node))
        return f"{shown} ({_CALLED.get(value.kind, 'levels')})"


def _constant(value: Any) -> Value:
    if isinstance(value, bool):
        return Value("condition", np.bool_(value))
    return Value("text", value) if isinstance(value, str) else Value("number", np.float64(value))


def _finite(values: Any) -> Value:
    return Value("number", np.where(np.isfinite(values), values, np.nan))


def _is_not(node: ast.UnaryOp) -> bool:
    return isinstance(node.op, ast.Not)


def _feature(value: Value) -> Feature:
    assert value.feature is not None
    return value.feature


def _levels(feature: Feature | None) -> list[Any]:
    return [] if feature is None or feature.levels is None else list(feature.levels)


def _other_levels(a: Value, b: Value) -> bool:
    """Return whether two columns have different levels."""
    if a.kind != b.kind:
        return False
    one, other = _feature(a).levels, _feature(b).levels
    assert one is not None
    assert other is not None
    return one is not other and not one.equals(other)
