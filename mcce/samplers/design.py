"""The design matrix of the regressions: numbers as they are, dummies for levels, indicators of missing values.

1. The columns, in synthpop's order: the numeric givens in the order of the data, then for each factor (categorical or
   ordered given) one treatment dummy for every observed level but the first.
2. A missing number is 0 and has an indicator among the factors; a missing level is one more level. A value that is
   missing in a column without gaps in the training rows is the mean, or the base level.
3. A formula is read and evaluated by formulaic. It is Python code, so it is given in Python only. Missing numbers
   enter it as the training mean (a logarithm of 0 is infinite), and their indicators are added; so is the decision of a
   chain, whose name is "<decision>".
4. Columns are counted before a matrix is built; more than max(1,000, n / 2) are an error.

Linear predictors are summed column by column, not by a matrix product, so that the predictor of a row does not depend
on other rows, to the last bit.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mcce._utils import Floats, Ints, check_flag
from mcce.exceptions import InputError, did_you_mean, spell
from mcce.rng import derive_key, hash_rows, resolve_seed
from mcce.samplers.base import ConditionalSampler, check_problem
from mcce.samplers.distributions import Donors
from mcce.samplers.margin import Margin
from mcce.table import Column, Feature, Table

FEWEST_ALLOWED = 1_000  # columns that are allowed however few the rows are
MOST_PRODUCTS = 20_000  # of terms that formulaic multiplies out, in about half a second


@dataclass(frozen=True)
class Number:
    """The design column of a number; `fill` replaces missing values, and all values of a constant column."""

    source: int
    names: tuple[str, ...]
    fill: float
    is_constant: bool

    def columns(self, given: Table) -> Floats:
        """Return the design columns of some rows."""
        values = given.matrix[:, self.source]
        return np.where(np.isnan(values) | self.is_constant, self.fill, values)[:, None]

    def effect(self, given: Table, coef: Floats) -> Floats:
        """Return what the columns add to linear predictors with the coefficients (predictors, columns)."""
        return self.columns(given) * coef[:, 0]


@dataclass(frozen=True)
class Dummies:
    """One dummy for each of `codes`. A missing value has the code `missing`; in its indicator, known values have 0."""

    source: int
    names: tuple[str, ...]
    codes: Ints
    missing: int
    is_indicator: bool

    def columns(self, given: Table) -> Floats:
        """Return the design columns of some rows."""
        return (self._coded(given)[:, None] == self.codes).astype(np.float64)

    def effect(self, given: Table, coef: Floats) -> Floats:
        """Return what the columns add to linear predictors with the coefficients (predictors, columns)."""
        effects = np.zeros((self.missing + 1, coef.shape[0]))
        effects[self.codes] = coef.T
        return effects[self._coded(given)]

    def _coded(self, given: Table) -> Ints:
        values = given.matrix[:, self.source]
        return np.where(np.isnan(values), self.missing, 0.0 if self.is_indicator else values).astype(np.int64)


@dataclass(frozen=True)
class Design:
    """The design of all givens (steps 1 and 2), as read from the training rows."""

    blocks: tuple[Number | Dummies, ...]
    has_intercept = True

    @classmethod
    def read(cls, given: Table, target: Feature, *, keep_constants: bool = False) -> Design:
        """Read the columns from training rows; constant numbers are kept on request, as synthpop's `norm` does."""
        numbers: list[Number | Dummies] = []
        factors: list[Number | Dummies] = []
        for j, feature in enumerate(given.features):
            column = given.matrix[:, j]
            known = column[~np.isnan(column)]
            has_gaps = known.size < column.size
            if not feature.is_numeric:
                codes = [*np.unique(known).astype(int), *[feature.n_levels] * has_gaps][1:]
                names = tuple(f"{feature.name}[T.{_label(feature, code)}]" for code in codes)
                if codes:
                    factors.append(Dummies(j, names, np.array(codes, dtype=np.int64), feature.n_levels, False))
            elif known.size:
                low, high = known.min(), known.max()
                is_constant = bool(low == high) and not (has_gaps and low != 0.0)
                if low != high or (has_gaps and low != 0.0) or (keep_constants and low != 0.0):
                    fill = 0.0 if has_gaps else float(low if is_constant else known.mean())
                    numbers.append(Number(j, (str(feature.name),), fill, is_constant))
                if has_gaps:
                    factors.append(Dummies(j, (f"is_missing({feature.name})",), np.array([1]), 1, True))
        blocks = (*numbers, *factors)
        check_width(((given.features[b.source].name, len(b.names)) for b in blocks), given.n_rows, target)
        return cls(blocks)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, as in "sex[T.male]"."""
        return tuple(name for block in self.blocks for name in block.names)

    def matrix(self, given: Table) -> Floats:
        """Return the design matrix of some rows, without intercept."""
        out = np.empty((given.n_rows, len(self.names)), order="F")
        end = 0
        for block in self.blocks:
            begin, end = end, end + len(block.names)
            out[:, begin:end] = block.columns(given)
        return out

    def predict(self, given: Table, intercept: Floats, coef: Floats) -> Floats:
        """Return linear predictors (rows, predictors) for the coefficients (predictors, columns)."""
        out = np.tile(intercept, (given.n_rows, 1))
        end = 0
        for block in self.blocks:
            begin, end = end, end + len(block.names)
            out += block.effect(given, coef[:, begin:end])
        return out


class FormulaDesign:
    """The design of a formula (step 3), as read from the training rows.

    Attributes
    ----------
    formula : str
    names : names of the columns without the intercept.
    has_intercept : bool
    spec : formulaic's `ModelSpec`, with the state of splines and scalings.
    """

    def __init__(self, formula: str, given: Table, target: Feature) -> None:
        self.formula, self._target = formula, target.name
        position = {str(feature.name): j for j, feature in enumerate(given.features)}
        parsed = self._parse(list(position))
        used = {name for term in parsed for factor in term.factors for name in names_in(factor)} & set(position)
        self._columns = [FormulaColumn.read(given, position[name]) for name in position if name in used]
        sizes = {column.name: len(column.categories) or 1 for column in self._columns}
        widths = [(str(term), self._width(term, given, position, sizes)) for term in parsed]
        check_width(widths, given.n_rows, target)
        columns = self._evaluate(parsed.get_model_matrix, given)
        self.spec = columns.model_spec
        matrix = self._finite(np.asarray(columns), self.spec.column_names)
        self.has_intercept = "Intercept" in self.spec.column_names
        varies = np.ptp(matrix, axis=0) > 0.0 if self.has_intercept else matrix.any(axis=0)
        self._kept = np.flatnonzero(varies)
        self.names = (
            *(self.spec.column_names[k] for k in self._kept),
            *(f"is_missing({column.name})" for column in self._columns if column.has_indicator),
        )

    def matrix(self, given: Table) -> Floats:
        """Return the design matrix of some rows, without intercept."""
        columns = self._finite(np.asarray(self._evaluate(self.spec.get_model_matrix, given)), self.spec.column_names)
        indicators = [np.isnan(given.matrix[:, c.source]) for c in self._columns if c.has_indicator]
        return np.asfortranarray(np.column_stack([columns[:, self._kept], *indicators]))

    def predict(self, given: Table, intercept: Floats, coef: Floats) -> Floats:
        """Return linear predictors (rows, predictors) for the coefficients (predictors, columns)."""
        out = np.tile(intercept, (given.n_rows, 1))
        for column, slopes in zip(self.matrix(given).T, coef.T):
            out += column[:, None] * slopes
        return out

    def _parse(self, names: list[str]) -> Any:
        """Return formulaic's formula of the design; raise if it is not one of these givens."""
        from formulaic import Formula
        from formulaic.errors import FormulaicError
        from formulaic.parser import DefaultFormulaParser

        decisions = [f"`{name}`" for name in names if re.fullmatch("<+decision>+", name)]  # a chain's, always added
        text, context = " + ".join([self.formula, *decisions]), {"__formulaic_variables_available__": names}
        parser = DefaultFormulaParser()
        try:
            if count_products(parser.get_ast(text, context=context), len(names)) > MOST_PRODUCTS:
                raise self._error(
                    f"multiplies out to more than {MOST_PRODUCTS:,} terms; use a lower power, or name them"
                )
            parsed = parser.get_terms(text, context=context)
            sides = dict(parsed._structure)
            responses = [factor.expr for term in sides.get("lhs", ()) for factor in term.factors]
            formula = Formula(list(sides["rhs"] if "rhs" in sides else sides["root"]))
            lookups = [f.expr for term in formula for f in term.factors if f.eval_method.value == "lookup"]
            unknown = [name for name in lookups if name not in names]
        except InputError:
            raise
        except (
            FormulaicError,
            SyntaxError,
            TypeError,
            ValueError,
            LookupError,
            AttributeError,
            RecursionError,
        ) as error:
            raise self._error(f"cannot be read: {_plain(error)}") from None
        if responses and responses != [str(self._target)]:
            raise self._error(f"is for {', '.join(responses)}; write {self._target} before the ~, or leave it out")
        if unknown:
            raise self._error(
                f"uses {unknown[0]!r}, which is not among the columns that {self._target!r} is drawn given (those "
                f"before it in visit_sequence, or its predictors); {did_you_mean(unknown[0], names)}"
            )
        return formula

    def _width(self, term: Any, given: Table, position: dict[str, int], sizes: dict[str, int]) -> int:
        """Return an upper bound of the number of columns of a term: the product of the numbers of levels."""
        width = 1
        for factor in term.factors:
            for name in set(names_in(factor)) & set(sizes):
                is_levels = factor.expr.startswith("C(") and sizes[name] == 1
                width *= len(np.unique(given.matrix[:, position[name]])) if is_levels else sizes[name]
        return width

    def _evaluate(self, evaluate: Callable[..., Any], given: Table) -> Any:
        from formulaic.errors import FormulaicError

        frame = pd.DataFrame({column.name: column.values(given) for column in self._columns}, index=range(given.n_rows))
        try:
            with np.errstate(all="ignore"):  # values that are not finite are reported
                return evaluate(frame, output="numpy", na_action="ignore", context={"bs": _clipped_spline(), "np": np})
        except (FormulaicError, ArithmeticError, TypeError, ValueError, MemoryError) as error:
            raise self._error(f"cannot be evaluated: {_plain(error)}") from None

    def _finite(self, matrix: Floats, names: Iterable[str]) -> Floats:
        matrix = np.asarray(matrix, dtype=np.float64)
        wrong = ~np.isfinite(matrix)
        if wrong.any():
            name = list(names)[int(wrong.any(axis=0).argmax())]
            raise self._error(
                f"gives numbers that are not finite: {name!r} in {wrong.any(axis=1).sum()} of {len(matrix)} rows; use "
                "an expression that is always finite, as log(x + 1)"
            )
        return matrix

    def _error(self, problem: str) -> InputError:
        return InputError(
            f"formula {spell(self.formula)} of {self._target!r} {problem}{'' if problem.endswith('?') else '.'}"
        )


@dataclass(frozen=True)
class FormulaColumn:
    """A given as a formula sees it: numbers with missing values filled, or observed levels."""

    name: str
    source: int
    fill: float
    has_indicator: bool
    categories: list[Any]  # observed levels; empty for numbers
    place: Ints  # position among the observed levels by code; 0 for levels without training rows

    @classmethod
    def read(cls, given: Table, source: int) -> FormulaColumn:
        """Read the column from training rows."""
        feature, values = given.features[source], given.matrix[:, source]
        known = values[~np.isnan(values)]
        has_gaps = known.size < values.size
        if feature.is_numeric:
            fill = float(known.mean()) if known.size else 0.0
            return cls(str(feature.name), source, fill, bool(has_gaps and known.size), [], np.zeros(0, dtype=np.int64))
        codes = [*np.unique(known).astype(int), *[feature.n_levels] * has_gaps]
        place = np.zeros(feature.n_levels + 1, dtype=np.int64)
        place[codes] = np.arange(len(codes))
        return cls(str(feature.name), source, np.nan, False, [_label(feature, code) for code in codes], place)

    def values(self, given: Table) -> Any:
        """Return the values of some rows: an array, or a categorical."""
        values = given.matrix[:, self.source]
        if not self.place.size:
            return np.where(np.isnan(values), self.fill, values)
        codes = np.where(np.isnan(values), self.place.size - 1, values).astype(np.int64)
        return pd.Categorical.from_codes(self.place[codes], categories=pd.Index(self.categories))


class RegressionSampler(ConditionalSampler):
    """A conditional whose givens enter by a design; a base class.

    Parameters
    ----------
    formula : str or None
        The design in R's notation, as in "age * sex + log(savings + 1)", read by formulaic; None: all givens.
    proper : bool
        Draw the parameters once, at `fit`, from their estimated distribution (Rubin's "proper" imputation).
    random_state : int or None
        Seed of that draw; set by the chain if it is None.
    """

    keeps_constants = False
    needs_intercept = True

    def __init__(self, *, formula: str | None = None, proper: bool = False, random_state: int | None = None) -> None:
        self.formula = formula
        self.proper = proper
        self.random_state = random_state

    def fit(self, given: Table, target: Column) -> Any:
        """Read the design from the training rows, and fit the regression."""
        check_flag(self.proper, "proper")
        check_problem(self, given, target)
        if self.formula is None:
            self.design_: Design | FormulaDesign = Design.read(
                given, target.feature, keep_constants=self.keeps_constants
            )
        elif isinstance(self.formula, str):
            self.design_ = FormulaDesign(self.formula, given, target.feature)
        else:
            raise InputError(f"formula is {spell(self.formula)}; it must be a text, as in 'age * sex', or None.")
        if self.needs_intercept and not self.design_.has_intercept:
            raise InputError(
                f"formula {self.formula!r} of {target.feature.name!r} has no intercept, which {type(self).__name__} "
                "needs; drop the 0 or -1, or use StatsmodelsSampler."
            )
        self.fit_design(self.design_.matrix(given), target, given)
        return self

    @abstractmethod
    def fit_design(self, x: Floats, target: Column, given: Table) -> None:
        """Fit to the design matrix `x` without intercept."""

    def generator(self) -> np.random.Generator:
        """Return the random generator of a `proper` fit."""
        return np.random.default_rng(derive_key(resolve_seed(self.random_state), "proper"))


def check_width(widths: Iterable[tuple[object, int]], n_rows: int, target: Feature) -> None:
    """Raise if a design would have too many columns (step 4); `widths` names its parts."""
    counted = list(widths)
    total, most = sum(width for _, width in counted), max(FEWEST_ALLOWED, n_rows // 2)
    if total > most:
        name, widest = max(counted, key=lambda part: part[1])
        raise InputError(
            f"the design for {target.name!r} would have {total:,} columns for {n_rows:,} training rows, and at most "
            f"{most:,} are allowed; {name!r} alone has {widest:,}. Leave it out by predictors= or a formula, merge "
            "rare levels, or use a sampler without a design (cart, ctree, forest)."
        )


def constant_target(margin: Margin, n_rows: int) -> Donors:
    """Return the distribution of a target with a single training value."""
    zeros = np.zeros(n_rows, dtype=np.int64)
    return Donors(margin.known[:1], zeros, zeros + 1, margin=margin)


def distinct_rows(matrix: Floats) -> tuple[Ints, Ints]:
    """Return the first of each group of equal rows, and the group of each row; NaN equals NaN."""
    groups = pd.factorize(hash_rows(matrix))[0]
    first = np.unique(groups, return_index=True)[1]
    if not np.array_equal(matrix[first][groups], matrix, equal_nan=True):  # two rows with one hash
        return np.arange(len(matrix)), np.arange(len(matrix))
    return first, groups


def count_products(part: Any, n_names: int) -> int:
    """Return an upper bound of the terms that formulaic multiplies out for a part of a formula."""
    if not hasattr(part, "operator"):
        return 1
    symbol = part.operator.symbol
    counts = [min(count_products(argument, n_names), MOST_PRODUCTS + 1) for argument in part.args]
    if symbol in ("**", "^"):  # a long exponent is refused whatever its base is
        exponent = str(part.args[1])
        power = int(exponent) if exponent.isdecimal() and len(exponent) < 3 else 99
        return int(max(counts[0], 2) ** power)
    if symbol in (":", "*", "/", "in"):
        return math.prod(1 + count for count in counts)
    return n_names if symbol == "." else sum(counts)


def names_in(factor: Any) -> list[str]:
    """Return the names in a factor of formulaic: its column, or those in an expression."""
    if factor.eval_method.value == "lookup":
        return [factor.expr]
    return [name.strip("`") for name in re.findall(r"`[^`]*`|[^\W\d]\w*", factor.expr)]


def _label(feature: Feature, code: int) -> Any:
    """Return a level; for the code after the last, a label of missing values that is not a level."""
    assert feature.levels is not None
    if code < feature.n_levels:
        return feature.levels[code]
    label = "missing"
    while label in feature.levels:
        label = f"<{label}>"
    return label


def _clipped_spline() -> Any:
    """Return formulaic's `bs` with a spline that is constant beyond the training range by default, not an error."""
    from formulaic.transforms import TRANSFORMS
    from formulaic.utils.stateful_transforms import stateful_transform

    @stateful_transform  # type: ignore[untyped-decorator]
    def bs(x: Any, *args: Any, extrapolation: str = "clip", _state: Any = None, **options: Any) -> Any:
        return TRANSFORMS["bs"](x, *args, extrapolation=extrapolation, _state=_state, **options)

    return bs


def _plain(error: Exception) -> str:
    """Return the first line of an error of formulaic, without its colours."""
    return str(error).split("\n")[0].rstrip(".")
