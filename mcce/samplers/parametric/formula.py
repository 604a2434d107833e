"""Regression formulas: R's operators and a fixed list of functions; no part of a formula is run as Python code.

1. formulaic's parser expands the operators (``+ - * : / ** .``) into terms, which are products of factors. formulaic is
   used because patsy is no longer developed, and because its parser can be used without its evaluation, which runs
   Python code.
2. A factor is parsed by `ast` and evaluated here: columns, numbers, ``+ - * / **``, comparisons, and the functions of
   `FUNCTIONS`. Anything else is an error before the data are read. The same holds for formulas from Python, R, the
   command line and stored files.
3. Levels become dummies: all but the first if the term without this factor is also in the formula, else one for each
   level (R's rule). Only levels of the training rows have a dummy.
4. `bs`, `poly`, `center`, `scale` and the levels of ``C(x)`` are learned in `fit`. A spline is constant beyond the
   training range.
5. A missing number is replaced by the training mean, and has an indicator if training rows have missing values; a
   missing level is one more level.
6. The decision of a chain is always a predictor, as with `predictors`. A formula can name it (``age * decision``);
   otherwise its main effect is added.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from mcce.base.arrays import Floats, Ints
from mcce.exceptions import InputError, SamplerError, did_you_mean, listing
from mcce.storage.fields import FLOAT, INT, check_between, require, stored
from mcce.storage.state import stateful
from mcce.table import Feature, Table

LONGEST = 1000  # characters of a formula
MOST_PRODUCTS = 8  # operators that multiply the number of terms
MOST_LEVELS = 100  # of C(x)
_DECISION = re.compile(r"<+decision>+")  # the name of the decision in a chain
_QUOTED = re.compile(r"`([^`]*)`")
_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv},
    **{ast.Pow: np.power, ast.USub: operator.neg, ast.UAdd: operator.pos},
    **{ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge},
    **{ast.Eq: operator.eq, ast.NotEq: operator.ne},
}
_PLAIN: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in ("log", "log1p", "log2", "log10", "exp", "expm1", "sqrt", "cbrt", "abs")},
    **{"I": np.positive, "minimum": np.minimum, "maximum": np.maximum},
}
_LEARNED: dict[str, tuple[str, ...]] = {"bs": ("df", "degree"), "poly": ("degree",), "center": (), "scale": ()}
FUNCTIONS = (*_PLAIN, *_LEARNED, "C")


@dataclass(frozen=True)
class Expression:
    """A factor of a term: its text, and its syntax tree with placeholders for quoted names."""

    text: str
    tree: ast.expr
    quoted: Mapping[str, str] = field(hash=False, compare=False, default_factory=dict)

    @property
    def column(self) -> str | None:
        """The column, if the expression is a column or ``C(x)`` of one; else None."""
        node = self.tree
        if isinstance(node, ast.Call) and _called(node) == "C":
            node = node.args[0]
        return self.quoted.get(node.id, node.id) if isinstance(node, ast.Name) else None

    @property
    def is_levels(self) -> bool:
        """Whether the expression is ``C(x)``."""
        return isinstance(self.tree, ast.Call) and _called(self.tree) == "C"


@dataclass(frozen=True)
class Terms:
    """A parsed formula: the factors of each term, and whether there is an intercept."""

    target: str | None
    terms: tuple[tuple[Expression, ...], ...]
    intercept: bool

    @property
    def names(self) -> list[str]:
        """The columns that the formula uses, in order of appearance."""
        found: dict[str, None] = {}
        for factor in (factor for term in self.terms for factor in term):
            nodes = [node for node in ast.walk(factor.tree) if isinstance(node, ast.Name)]
            functions = {id(node.func) for node in ast.walk(factor.tree) if isinstance(node, ast.Call)}
            found |= {factor.quoted.get(node.id, node.id): None for node in nodes if id(node) not in functions}
        return list(found)


@lru_cache(maxsize=256)
def parse_formula(formula: str, available: tuple[str, ...] = ()) -> Terms:
    """Return the terms of a formula; `available` are the columns that a dot denotes.

    Raises
    ------
    InputError
        If the formula is not valid, or uses anything but columns, numbers, operators and `FUNCTIONS`.

    Examples
    --------
    >>> from mcce.samplers.parametric.formula import parse_formula
    >>> [[factor.text for factor in term] for term in parse_formula("salary ~ age * sex + log(savings + 1)").terms]
    [['age'], ['sex'], ['log(savings + 1)'], ['age', 'sex']]
    """
    if not isinstance(formula, str):
        raise InputError(f"formula is {formula!r}; give text, as in 'salary ~ age * sex'.")
    if len(formula) > LONGEST:
        raise InputError(f"formula has {len(formula)} characters; the limit is {LONGEST}.")
    from formulaic.errors import FormulaicError
    from formulaic.parser import DefaultFormulaParser

    outside = re.sub(r"\([^()]*\)", "()", _QUOTED.sub("x", formula))
    products = re.findall(r"\*\*|\^|\*|/|%in%", outside)
    if len(products) > MOST_PRODUCTS or sum(each in ("**", "^") for each in products) > 1:
        raise InputError(
            f"formula {formula!r} multiplies too many terms; use at most {MOST_PRODUCTS} of * and /, and ** once."
        )
    if any(int(power) > 3 for power in re.findall(r"(?:\*\*|\^)\s*(\d+)", outside)):
        raise InputError(f"formula {formula!r} has a power above 3 of terms; write the terms out.")
    try:
        parsed = DefaultFormulaParser().get_terms(
            formula, context={"__formulaic_variables_available__": list(available)}
        )
    except (FormulaicError, SyntaxError, ValueError, KeyError, RecursionError) as error:
        reason = re.sub(r"\x1b\[[\d;]*m|[⧛⧚]", "", str(error)).split("\n")[0]
        raise InputError(f"formula {formula!r} cannot be read: {reason}") from None
    structure = dict(parsed._structure) if hasattr(parsed, "_structure") else {"root": parsed}
    right: Any = structure.get("rhs", structure.get("root"))
    left = structure.get("lhs", ())
    if isinstance(right, tuple) or (isinstance(left, tuple) and left):
        raise InputError(f"formula {formula!r} has several parts, separated by |; give one.")
    target = [factor.expr for term in left for factor in term.factors]
    if len(target) > 1 or (target and next(iter(left)).factors[0].eval_method.value != "lookup"):
        raise InputError(
            f"formula {formula!r} transforms the target, or has several; write the name of the target before the ~, or "
            "leave it out."
        )
    texts = [[(factor.expr, factor.eval_method.value) for factor in term.factors] for term in right]
    terms = [tuple(_read_factor(text, method, formula) for text, method in term) for term in texts if not _is_one(term)]
    terms.sort(key=len)  # main effects first, as R does
    return Terms(target[0] if target else None, tuple(terms), any(map(_is_one, texts)))


def _is_one(term: list[tuple[str, str]]) -> bool:
    return len(term) == 1 and term[0] == ("1", "literal")


def _read_factor(text: str, method: str, formula: str) -> Expression:
    """Parse a factor and check every part of it (step 2)."""
    if method == "lookup":
        return Expression(text, ast.Name("_0_"), {"_0_": text})
    quoted: dict[str, str] = {}

    def placeholder(match: re.Match[str]) -> str:
        quoted[f"_{len(quoted)}_"] = match[1]
        return f"_{len(quoted) - 1}_"

    try:
        tree = ast.parse(_QUOTED.sub(placeholder, text), mode="eval").body
        _check_syntax(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = str(error) if isinstance(error, InputError) else "that is not an expression"
        raise InputError(f"formula {formula!r} cannot be used, because of {text!r}: {reason}.") from None
    return Expression(text, tree, quoted)


def _check_syntax(node: ast.AST, inside: bool = False) -> None:
    """Raise if an expression has a part that is not allowed."""
    if isinstance(node, ast.Name):
        return
    if isinstance(node, ast.Constant):
        if type(node.value) not in (int, float) or abs(node.value) > 1e15:  # type: ignore[arg-type]
            raise InputError(f"{node.value!r} is not a number from -1e15 to 1e15")
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        if isinstance(node.op, ast.Pow) and not isinstance(node.right, ast.Constant | ast.UnaryOp):
            raise InputError("a power must be a number")
        _check_syntax(node.left, True)
        _check_syntax(node.right, True)
    elif isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        _check_syntax(node.operand, True)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPERATORS:
        _check_syntax(node.left, True)
        _check_syntax(node.comparators[0], True)
    elif isinstance(node, ast.Call):
        _check_call(node, inside)
    else:
        raise InputError(f"{ast.unparse(node)!r} is neither a column, a number nor an operator or function of them")


def _check_call(node: ast.Call, inside: bool) -> None:
    name = _called(node)
    if name not in FUNCTIONS:
        raise InputError(f"the function {ast.unparse(node.func)!r} is not available; there are {', '.join(FUNCTIONS)}")
    allowed = _LEARNED.get(name, ())
    options = [*node.args[1:], *(keyword.value for keyword in node.keywords)] if name in _LEARNED else []
    if any(keyword.arg not in allowed for keyword in node.keywords) or len(node.args) - 1 > max(len(allowed), 1):
        raise InputError(f"{name} has the options {listing(allowed)}" if allowed else f"{name} has no options")
    if not all(isinstance(each, ast.Constant) and type(each.value) is int and 0 < each.value <= 50 for each in options):
        raise InputError(f"options of {name} are whole numbers from 1 to 50")
    if (name in ("C", "I", "center", "scale") and len(node.args) != 1) or not node.args:
        raise InputError(f"{name} takes one column or expression")
    if name == "C" and (inside or not isinstance(node.args[0], ast.Name)):
        raise InputError("C takes the name of a column, and cannot be part of an expression")
    if name in ("bs", "poly") and inside:
        raise InputError(f"{name} has several columns, and cannot be part of an expression")
    for each in node.args if name in _PLAIN else node.args[:1]:
        _check_syntax(each, True)


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


@stateful("parametric.FormulaDesign")
@dataclass(frozen=True)
class FormulaDesign:
    """The design columns of a formula, as learned from the training rows.

    Attributes
    ----------
    formula : str
    dot : the columns that a dot denotes.
    names, source : the columns used, including the decision, and their positions among the givens.
    fill : training means of numbers, which replace missing values; NaN for levels.
    gaps : positions in `names` of the numbers with missing training values, which have an indicator.
    levels : ascending codes of the observed levels; a missing level has the code `n_levels`; empty for numbers.
    calls, states : learned states of `bs`, `poly`, `center`, `scale` and ``C(x)``, by their text.
    kept : positions of the columns that vary in the training rows.
    columns : names of these columns.
    """

    formula: str = stored(str, longest=LONGEST)
    dot: tuple[str, ...] = stored(tuple, None, of=str)
    names: tuple[str, ...] = stored(tuple, "names", of=str)
    source: Ints = stored(INT, "names")
    fill: Floats = stored(FLOAT, "names", finite="or missing")
    gaps: Ints = stored(INT, None, index_of="names")
    levels: tuple[Ints, ...] = stored(tuple, "names", of=stored(INT, None, least=0, rising=True))
    calls: tuple[str, ...] = stored(tuple, "calls", of=str)
    states: tuple[Floats, ...] = stored(tuple, "calls", of=stored(FLOAT, None, finite=True))
    kept: Ints = stored(INT, "columns", least=0, rising=True)
    columns: tuple[str, ...] = stored(tuple, "columns", of=str)

    @classmethod
    def read(cls, formula: str, given: Table, target: Feature) -> FormulaDesign:
        """Learn the design from training rows; raise if the formula does not match them."""
        known, decision = _known(given.features)
        dot = tuple(name for name in known if name != decision)
        terms = parse_formula(formula, dot)
        if terms.target is not None and terms.target != target.name:
            raise InputError(
                f"formula {formula!r} is for {terms.target!r}, and is used for {target.name!r}; write {target.name!r} "
                "before the ~, or leave it out."
            )
        names = terms.names
        for name in names:
            if name not in known:
                raise InputError(
                    f"formula {formula!r} of {target.name!r} uses {name!r}, which is not among its predictors, the "
                    f"columns before it in visit_sequence; {did_you_mean(name, known)}"
                )
        if decision is not None and decision not in names:
            names = [*names, decision]
        source = np.array([known[name] for name in names], dtype=np.int64)
        fill, gaps, levels = np.full(len(names), np.nan), [], []
        for i, j in enumerate(source):
            column = given.matrix[:, j]
            missing = np.isnan(column)
            if given.features[j].is_numeric:
                weights = None if given.weights is None else given.weights[~missing]
                fill[i] = np.average(column[~missing], weights=weights) if not missing.all() else 0.0
                gaps += [i] if 0 < missing.sum() < missing.size else []
                levels.append(np.empty(0, dtype=np.int64))
            else:
                codes = np.unique(column[~missing]).astype(np.int64)
                levels.append(np.append(codes, given.features[j].n_levels) if missing.any() else codes)
        learned: dict[str, Floats] = {}
        parts = (formula, dot, tuple(names), source, fill, np.array(gaps, dtype=np.int64), tuple(levels))
        whole = cls(*parts, (), (), np.empty(0, dtype=np.int64), ())
        columns = whole._evaluate(given, learned, learning=True)
        for name, column in columns:
            n_bad = int((~np.isfinite(column)).sum())
            if n_bad:
                raise InputError(
                    f"formula {formula!r} of {target.name!r}: {name!r} is not finite in {n_bad} of {column.size} "
                    "training rows; use an expression that is finite, as log(x + 1)."
                )
        varies = [np.ptp(column) > 0.0 if terms.intercept else bool(column.any()) for _, column in columns]
        kept = np.flatnonzero(np.array(varies, dtype=bool)).astype(np.int64)
        return cls(*parts, tuple(learned), tuple(learned.values()), kept, tuple(columns[k][0] for k in kept))

    def check_state(self) -> None:
        """Raise if the formula is invalid."""
        parse_formula(self.formula, self.dot)
        require(all(state.size <= LONGEST for state in self.states), "states has more values than a function learns")

    def check_columns(self, given: Sequence[Feature]) -> None:
        """Raise if the design does not belong to these columns."""
        check_between(self.source, "source", 0, len(given) - 1)
        features = [given[j] for j in self.source]
        known, _ = _known(given)
        require([known.get(name) for name in self.names] == self.source.tolist(), "names are those of other columns")
        for feature, codes in zip(features, self.levels):
            require(bool(codes.size) != feature.is_numeric, "levels has levels of numbers, or none of a level")
            require(
                not codes.size or codes[-1] <= feature.n_levels, "levels holds a level that the column does not have"
            )
        empty = Table(tuple(given), np.empty((0, len(given)), order="F"))
        try:
            n_columns = len(self._evaluate(empty, self._learned()))
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise InputError(f"states are not of the formula: {error}") from None
        check_between(self.kept, "kept", 0, n_columns - 1)

    @property
    def n_columns(self) -> int:
        """Number of design columns without the intercept."""
        return self.kept.size

    @property
    def has_intercept(self) -> bool:
        """Whether the formula has an intercept."""
        return parse_formula(self.formula, self.dot).intercept

    def matrix(self, given: Table) -> Floats:
        """Return the design matrix of some rows, without intercept."""
        out = np.empty((given.n_rows, self.n_columns), order="F")
        columns = self._evaluate(given, self._learned())
        for k, (name, column) in enumerate(columns[i] for i in self.kept):
            if not np.isfinite(column).all():
                raise SamplerError(
                    f"formula {self.formula!r}: {name!r} is not finite in {int((~np.isfinite(column)).sum())} of "
                    f"{column.size} rows to draw, but in all training rows; use an expression that is always finite."
                )
            out[:, k] = column
        return out

    def predict(self, given: Table, intercept: Floats, coef: Floats) -> Floats:
        """Return linear predictors, one column for each of the `intercept.size` rows of `coef`.

        They are summed column by column, so that the predictor of a row does not depend on other rows.
        """
        out = np.tile(intercept, (given.n_rows, 1))
        for k, column in enumerate(self.matrix(given).T):
            out += column[:, None] * coef[:, k]
        return out

    def _learned(self) -> dict[str, Floats]:
        return dict(zip(self.calls, self.states))

    def _evaluate(self, given: Table, states: dict[str, Floats], *, learning: bool = False) -> list[tuple[str, Floats]]:
        """Return all columns by name: terms, the decision if it is not in a term, indicators of missing numbers."""
        terms = parse_formula(self.formula, self.dot)
        rows = _Evaluator(self, given, states, learning)
        named: set[frozenset[str]] = {frozenset(factor.text for factor in term) for term in terms.terms} | {frozenset()}
        out: list[tuple[str, Floats]] = []
        for term in terms.terms:
            columns: list[tuple[str, Floats]] = [("", np.ones(given.n_rows))]
            for factor in term:
                others = frozenset(each.text for each in term) - {factor.text}
                reduced = others in named and (bool(others) or terms.intercept)
                found = rows.columns(factor, reduced)
                columns = [(f"{a}:{b}" if a else b, x * y) for b, y in found for a, x in columns]
            out += columns
        for name in self.names:
            if name not in terms.names:  # the decision
                out += rows.levels(name, name, reduced=terms.intercept)
        for i in self.gaps:
            out.append((f"is_missing({self.names[i]})", np.isnan(given.matrix[:, self.source[i]]).astype(np.float64)))
        return out


class _Evaluator:
    """The values of expressions in some rows."""

    def __init__(self, design: FormulaDesign, given: Table, states: dict[str, Floats], learning: bool) -> None:
        self.design, self.given, self.states, self.learning = design, given, states, learning

    def columns(self, factor: Expression, reduced: bool) -> list[tuple[str, Floats]]:
        """Return the columns of a factor: dummies of levels, or the values of an expression."""
        name = factor.column
        if name is not None and (factor.is_levels or not self._feature(name).is_numeric):
            return self.levels(name, factor.text, reduced=reduced)
        tree = factor.tree
        if isinstance(tree, ast.Call) and _called(tree) in ("bs", "poly"):
            return [(f"{factor.text}[{i}]", x) for i, x in self._basis(tree, factor)]
        return [(factor.text, np.broadcast_to(self._value(tree, factor), self.given.n_rows).astype(np.float64))]

    def levels(self, name: str, text: str, *, reduced: bool) -> list[tuple[str, Floats]]:
        """Return the dummies of a column's levels, or of the values of a number (steps 3 and 4)."""
        feature, column = self._feature(name), self._column(name)
        if feature.is_numeric:
            values = self._filled(name)
            if self.learning:
                self.states[text] = np.unique(values)
                if self.states[text].size > MOST_LEVELS:
                    raise InputError(
                        f"formula {self.design.formula!r}: {text} has {self.states[text].size} distinct values; use "
                        f"it for at most {MOST_LEVELS}."
                    )
            found = [(f"{value:g}", values == value) for value in self.states[text]]
        else:
            labels = [*map(str, feature.levels if feature.levels is not None else ()), "missing"]
            codes = np.where(np.isnan(column), feature.n_levels, column)
            found = [(labels[code], codes == code) for code in self.design.levels[self._place(name)]]
        prefix = "T." if reduced else ""
        return [(f"{text}[{prefix}{label}]", is_level.astype(np.float64)) for label, is_level in found[int(reduced) :]]

    def _value(self, node: ast.AST, factor: Expression) -> Any:
        if isinstance(node, ast.Constant):
            return np.float64(node.value)  # type: ignore[arg-type]
        if isinstance(node, ast.Name):
            return self._filled(factor.quoted.get(node.id, node.id))
        with np.errstate(all="ignore"):  # values that are not finite are reported later
            if isinstance(node, ast.BinOp):
                return _OPERATORS[type(node.op)](self._value(node.left, factor), self._value(node.right, factor))
            if isinstance(node, ast.UnaryOp):
                return _OPERATORS[type(node.op)](self._value(node.operand, factor))
            if isinstance(node, ast.Compare):
                left, right = self._value(node.left, factor), self._value(node.comparators[0], factor)
                return np.asarray(_OPERATORS[type(node.ops[0])](left, right)).astype(np.float64)
            assert isinstance(node, ast.Call)
            name = _called(node)
            values = [self._value(each, factor) for each in node.args]
            if name in _PLAIN:
                return _PLAIN[name](*values)
            key = ast.unparse(node)
            if self.learning:
                spread = float(np.std(values[0], ddof=1)) if name == "scale" and np.size(values[0]) > 1 else 1.0
                self.states[key] = np.array([np.mean(values[0]), spread or 1.0])
            return (values[0] - self.states[key][0]) / self.states[key][1]

    def _basis(self, node: ast.Call, factor: Expression) -> Iterable[tuple[int, Floats]]:
        """Return the columns of `bs` or `poly`, computed by formulaic."""
        from formulaic.transforms import TRANSFORMS

        name = _called(node)
        values = np.broadcast_to(self._value(node.args[0], factor), self.given.n_rows).astype(np.float64)
        options: dict[str, ast.expr] = dict(zip(_LEARNED[name], node.args[1:]))
        options |= {str(each.arg): each.value for each in node.keywords}
        numbers = {key: ast.literal_eval(each) for key, each in options.items()}
        state: dict[str, Any] = {}
        if not self.learning:
            state = _unpack(name, self.states[factor.text])
        try:
            if name == "bs":
                found = TRANSFORMS["bs"](values, extrapolation="clip", _state=state, **numbers)
                columns = [(int(i), np.asarray(column)) for i, column in found.items()]
            else:
                matrix = np.asarray(TRANSFORMS["poly"](values, numbers.get("degree", 1), _state=state))
                columns = [(i + 1, matrix[:, i]) for i in range(matrix.shape[1])]
        except ValueError as error:
            raise InputError(f"formula {self.design.formula!r}: {factor.text} cannot be computed: {error}") from None
        if self.learning:
            self.states[factor.text] = _pack(name, state)
        return columns

    def _place(self, name: str) -> int:
        if name in self.design.names:
            return self.design.names.index(name)
        raise InputError(f"formula {self.design.formula!r} uses {name!r}, which was not learned")

    def _column(self, name: str) -> Floats:
        return self.given.matrix[:, self.design.source[self._place(name)]]

    def _feature(self, name: str) -> Feature:
        return self.given.features[int(self.design.source[self._place(name)])]

    def _filled(self, name: str) -> Floats:
        if not self._feature(name).is_numeric:
            raise InputError(
                f"formula {self.design.formula!r} computes with {name!r}, which has levels; use it as a separate term."
            )
        column = self._column(name)
        return np.where(np.isnan(column), self.design.fill[self._place(name)], column)


def _pack(name: str, state: Mapping[str, Any]) -> Floats:
    """Return a state of formulaic as one array: knots of a spline; alpha, then norms of a polynomial."""
    if name == "bs":
        return np.array(state["knots"], dtype=np.float64)
    alpha, norms = state["alpha"], state["norms2"]
    return np.array([*(alpha[i] for i in sorted(alpha)), *(norms[i] for i in sorted(norms))], dtype=np.float64)


def _unpack(name: str, state: Floats) -> dict[str, Any]:
    if name == "bs":
        require(state.size >= 2 and bool((np.diff(state) >= 0.0).all()), "knots are not in ascending order")
        return {"lower_bound": float(state[0]), "upper_bound": float(state[-1]), "knots": state.tolist()}
    n = state.size // 2
    return {"alpha": dict(enumerate(state[:n])), "norms2": dict(enumerate(state[n:]))}


def name_in_formula(name: object) -> str:
    """Return the name of a column of a chain, or of its decision, in a formula; "" if it has none.

    Examples
    --------
    >>> from mcce.samplers.parametric.formula import name_in_formula
    >>> [name_in_formula(name) for name in ("age", "net income", "<decision>", 7)]
    ['age', '`net income`', 'decision', '']
    """
    if not isinstance(name, str) or "`" in name:
        return ""
    if _DECISION.fullmatch(name):
        return "decision"
    return name if name.isidentifier() else f"`{name}`"


def _known(features: Sequence[Feature]) -> tuple[dict[str, int], str | None]:
    """Return the positions of the columns that a formula can name, and the name of the decision.

    The decision is named `decision`, unless a column has this name.
    """
    known = {feature.name: j for j, feature in enumerate(features) if isinstance(feature.name, str)}
    for name in known:
        if _DECISION.fullmatch(name) and "decision" not in known:
            return {"decision" if each == name else each: j for each, j in known.items()}, "decision"
        if _DECISION.fullmatch(name):
            return known, name
    return known, None
