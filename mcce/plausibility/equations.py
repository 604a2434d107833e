"""Search for candidate equations that compute a number from other columns; `relation_finder` verifies them.

1. Forms. With numbers t (computed) and x, c, and constants k:
   - linear: ``t == k0 + k1 * x1 + ... `` with up to four columns, each of them also as ``exp(x)``;
   - logarithms of linear functions: ``t == log(k0 + k1 * x1 + ...)``;
   - quotients of linear functions: ``t == (k0 + k1 * x1 + ...) / c`` with up to three columns;
   - monomials: ``t == k * x1 * x2 / (x3 * x3)`` with exponents 1, 2, -1, -2 and up to four columns;
   - logarithms of monomials; and all of these rounded down, ``t == floor(...)``.
2. Each form is a linear regression of a function of t on functions of the x: orthogonal least squares (forward
   selection of the column that reduces the residual most) for all t at once. Columns that are not needed are removed.
3. A regression is a candidate if its residuals are as small as the rounding of t allows. Coefficients are rounded to
   the shortest numbers, with at most two decimals or one divided by a whole number, that keep all rows of the subset
   within half of the last digit of t. Exponents are rounded to whole numbers.
4. The search uses small subsets of the rows: a few per cent of wrong rows affect some subsets, but rarely all. Rows
   without missing values and zeros are preferred.

Forward selection may miss an equation whose columns are strongly correlated with many others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints
from mcce.plausibility.derived import rounded_text

SUBSETS, SUBSET_ROWS = 5, 50
MOST_TERMS = 4  # columns of a linear function or a monomial
MOST_OVER = 3  # columns of the dividend
LEAST_FIT = 0.98  # least share of the variance that a candidate explains
MOST_EXPONENT = 15.0  # largest value of columns whose exponentials are tried
TRIES = 6  # columns selected before unneeded ones are removed
LEFT = (0.85, 0.7, 0.5, 0.3, 0.3, 0.3)  # largest share of the variance left after each selected column
WIDE, WIDE_SUBSETS = 100, 2  # with this many columns, quotients of sums are searched in fewer subsets
TOO_LARGE = 1e100
CONSTANTS = 2e4  # number of possible values of a coefficient, for the number of equations tried


@dataclass(frozen=True)
class EquationCandidate:
    """An equation that holds in some rows.

    Attributes
    ----------
    target, inputs : positions of the columns.
    text : the right side, with ``{0}``, ``{1}``, ... for the inputs.
    form : "linear", "log linear", "ratio", "monomial" or "log monomial".
    weights : coefficients of a linear form, or exponents of a monomial, of target and inputs, as in ``... == 0``.
    n_constants : number of constants other than 0 and 1.
    """

    target: int
    inputs: tuple[int, ...]
    text: str
    form: str
    weights: tuple[float, ...]
    n_constants: int


def find_candidates(
    rows: Floats,
    slack: Floats,
    decimals: Sequence[int | None],
    may_divide: Bools,
    *,
    least_fit: float = LEAST_FIT,
) -> list[EquationCandidate]:
    """Return equations that hold in some of the rows.

    Parameters
    ----------
    rows : columns of numbers; missing values are NaN.
    slack : by column, half of the last digit; infinite for columns that may not be targets.
    decimals : by column, the number of decimals; None if it is not limited.
    may_divide : which columns may be divisors of sums.
    least_fit : least share of the variance that an equation explains.
    """
    found: dict[tuple[str, int, frozenset[int]], EquationCandidate] = {}
    order = np.argsort((np.isnan(rows) | (rows == 0.0)).sum(axis=1), kind="stable")
    n_subsets = max(1, min(SUBSETS, rows.shape[0] // SUBSET_ROWS))
    best = order[: n_subsets * SUBSET_ROWS]
    for k in range(n_subsets):
        at = np.sort(best[k::n_subsets])
        search = _SubsetSearch(rows[at], slack[at], decimals, may_divide, least_fit)
        for each in search.candidates(with_ratios=k < WIDE_SUBSETS or rows.shape[1] <= WIDE):
            found.setdefault((each.form, each.target, frozenset(each.inputs)), each)
    return list(found.values())


class _SubsetSearch:
    """The search in one subset of the rows."""

    def __init__(
        self, rows: Floats, slack: Floats, decimals: Sequence[int | None], may_divide: Bools, least_fit: float
    ) -> None:
        self.rows, self.slack, self.decimals, self.may_divide = rows, slack, decimals, may_divide
        self.least_fit = least_fit
        self.places = np.arange(rows.shape[1])

    def candidates(self, with_ratios: bool) -> Iterator[EquationCandidate]:
        """Yield the equations that hold in all rows of the subset."""
        with np.errstate(all="ignore"):
            small = np.nanmax(np.abs(self.rows), axis=0, initial=0.0) <= MOST_EXPONENT
            small &= (np.rint(self.rows) != self.rows).any(axis=0)
            exps = np.flatnonzero(small)
            logs = np.where(self.rows > 0.0, np.log(np.where(self.rows > 0.0, self.rows, 1.0)), np.nan)
            atoms = np.column_stack([self.rows, np.exp(self.rows[:, exps])])
            of_atom = np.concatenate([self.places, exps])
            n = self.places.size
            linear = _Dictionary(atoms, of_atom, self.least_fit)
            for target, support in linear.select(self.rows, self.slack, self.places, TRIES):
                yield from self._linear(target, atoms, of_atom, support, n, "linear")
            plain = _Dictionary(self.rows, self.places, self.least_fit)
            if exps.size:
                raised = np.exp(self.rows[:, exps])
                for place, support in plain.select(raised, self.slack[:, exps] * raised, exps, TRIES):
                    yield from self._linear(int(exps[place]), self.rows, self.places, support, n, "log linear")
            for divisor in np.flatnonzero(self.may_divide & with_ratios):
                by = self.rows[:, [divisor]]
                chosen = plain.select(self.rows * by, self.slack * np.abs(by), self.places, MOST_OVER + 1, int(divisor))
                for target, support in chosen:
                    yield from self._linear(target, self.rows, self.places, support, n, "ratio", int(divisor))
            powers = _Dictionary(logs, self.places, self.least_fit)
            for target, support in powers.select(logs, np.abs(self.slack / self.rows), self.places, TRIES):
                yield from self._monomial(target, logs, support, "monomial")
            for target, support in powers.select(self.rows, self.slack, self.places, TRIES):
                yield from self._monomial(target, logs, support, "log monomial")

    # ---- coefficients

    def _linear(
        self, target: int, atoms: Floats, of_atom: Ints, support: Sequence[int], n: int, form: str, divisor: int = -1
    ) -> Iterator[EquationCandidate]:
        """Yield the linear form of selected atoms with short coefficients, if it holds in all rows."""
        for down in self._roundings(target):
            middle, room = self.rows[:, target], self.slack[:, target]
            middle = middle + room if down else middle
            if form == "log linear":
                middle, room = np.exp(middle), room * np.exp(middle)
            elif form == "ratio":
                middle, room = middle * self.rows[:, divisor], room * np.abs(self.rows[:, divisor])
            known = ~np.isnan(np.column_stack([middle, room, atoms[:, support]])).any(axis=1)
            if known.sum() < len(support) + 3 or not (room[known] > 0.0).all():
                return
            y, room = middle[known], room[known]
            used, coefficients, error = _needed(atoms[known], list(support), y, room)
            inputs = [int(of_atom[j]) for j in used]
            if len(used) > (MOST_OVER if form == "ratio" else MOST_TERMS) or len({*inputs}) < len(used):
                continue
            if form == "ratio" and len(used) == 1:
                continue  # a quotient of two columns is a monomial
            for decimals in (0, 1, 2):
                weights = np.array([_short(value, decimals) for value in coefficients])
                near = np.abs(weights - coefficients) <= 6.0 * error + 1e-9 * np.abs(weights)
                if (weights == 0.0).any() or not near.all():
                    continue
                rest = y - atoms[known][:, used] @ weights
                plus = _constant_between(float((rest - room).max()), float((rest + room).min()))
                if plus is not None:
                    made = _write_linear(target, inputs, [j >= n for j in used], weights, plus, form, divisor)
                    yield self._rounded(made, down)
                    return

    def _monomial(self, target: int, logs: Floats, support: Sequence[int], form: str) -> Iterator[EquationCandidate]:
        """Yield the monomial of selected columns with whole exponents, if it holds in all rows."""
        for down in self._roundings(target):
            y, room = self.rows[:, target], self.slack[:, target]
            y = y + room if down else y
            as_log = np.log(np.where(y > 0.0, y, np.nan)) if form == "monomial" else y
            scale = room / np.abs(y) if form == "monomial" else room
            known = ~np.isnan(np.column_stack([as_log, scale, logs[:, support]])).any(axis=1)
            if known.sum() < len(support) + 3 or not (scale[known] > 0.0).all():
                return
            used, coefficients, _ = _needed(logs[known], list(support), as_log[known], scale[known])
            powers = np.rint(coefficients)
            right = (np.abs(powers) <= 2) & (powers != 0) & (np.abs(coefficients - powers) <= 0.25)
            if len(used) > MOST_TERMS or not right.all():
                continue
            if len(used) == 1 and powers[0] == 1 and form == "monomial":
                continue  # a linear function
            base = np.exp(logs[known][:, used] @ powers)
            low, high = y[known] - room[known], y[known] + room[known]
            if form == "log monomial":
                low, high = np.exp(low), np.exp(high)
            factor = _constant_between(float((low / base).max()), float((high / base).min()))
            if factor is None or factor <= 0.0:
                continue
            below = _constant_between(1.0 / float((high / base).min()), 1.0 / float((low / base).max()))
            is_divisor = below is not None and below > 0.0 and len(f"{below:.12g}") < len(f"{factor:.12g}")
            constant = below if is_divisor and below is not None else factor
            yield self._rounded(_write_monomial(target, used, powers, constant, is_divisor, form), down)
            return

    def _roundings(self, target: int) -> tuple[bool, ...]:
        """Return whether to try rounding to the nearest number, or down."""
        return (False,) if self.decimals[target] is None else (False, True)

    def _rounded(self, candidate: EquationCandidate, down: bool) -> EquationCandidate:
        decimals = self.decimals[candidate.target]
        if not down or decimals is None:
            return candidate
        return replace(candidate, text=rounded_text(candidate.text, "floor", decimals), weights=())


class _Dictionary:
    """Standardised regressors (atoms); `of` is the column that each is a function of."""

    def __init__(self, atoms: Floats, of: Ints, least_fit: float) -> None:
        self.least_fit = least_fit
        filled = np.where(np.isfinite(atoms) & (np.abs(atoms) < TOO_LARGE), atoms, np.nan)
        self.of = of
        self.missing = np.isnan(filled)
        self.atoms, _ = standardised(filled)
        self.rows = np.ascontiguousarray(self.atoms.T)
        usable = (np.abs(self.atoms).sum(axis=0) > 0.0) & (self.missing.mean(axis=0) < 0.5)
        self.usable = usable

    def select(
        self, targets: Floats, slack: Floats, of_target: Ints, most: int, besides: int = -1
    ) -> Iterator[tuple[int, list[int]]]:
        """Yield targets that a few columns fit up to rounding, with these columns (step 2)."""
        filled = np.where(np.isfinite(targets) & (np.abs(targets) < TOO_LARGE), targets, np.nan)
        y, length = standardised(filled)
        allowed = np.sqrt(np.nansum(slack**2, axis=0)) / length
        allowed = np.where(np.isfinite(allowed), np.maximum(2.0 * allowed, 1e-7), 0.0)
        active = np.flatnonzero((allowed > 0.0) & (np.abs(y).sum(axis=0) > 0.0) & (of_target != besides))
        residual = y.T[active]  # a row for each target, as the atoms below
        barred = (of_target[active][:, None] == self.of) | ~self.usable | (self.of == besides)
        left = np.where(barred, np.inf, 1.0)  # squared norm of each atom orthogonal to the selected ones
        basis: list[Floats] = []  # by step, one direction for each target
        chosen = np.empty((active.size, 0), dtype=np.intp)
        for step in range(most):
            if not active.size:
                return
            gain = residual @ self.atoms
            np.square(gain, out=gain)
            gain /= left
            pick = gain.argmax(axis=1)
            gains = gain[np.arange(active.size), pick]
            # the squared size of the residual will be that of before minus the gain
            may_be = 1.01 * (LEFT[step] if step + 1 < most else 1.0 - self.least_fit)
            some = np.flatnonzero((gains > 0.0) & (_dots(residual, residual) - gains <= may_be))
            active, pick, residual = active[some], pick[some], residual[some]
            basis = [each[some] for each in basis]
            chosen = np.column_stack([chosen[some], pick])
            direction = self.rows[pick]
            for each in basis:
                direction -= each * _dots(each, direction)[:, None]
            norm = np.sqrt(_dots(direction, direction))
            usable = norm > 1e-6
            direction /= np.where(norm > 0.0, norm, 1.0)[:, None]
            residual -= direction * _dots(direction, residual)[:, None]
            size = np.sqrt(_dots(residual, residual))
            fits = usable & (size <= np.maximum(allowed[active], 0.0)) & (size**2 <= 1.0 - self.least_fit)
            for at in np.flatnonzero(fits):
                yield int(active[at]), chosen[at].tolist()
            if step + 1 == most:
                return
            kept = np.flatnonzero(usable & ~fits & (size**2 < LEFT[step]))
            active, residual, chosen, left = active[kept], residual[kept], chosen[kept], left[some[kept]]
            basis = [each[kept] for each in [*basis, direction]]
            left -= (basis[-1] @ self.atoms) ** 2
            left[left < 1e-9] = np.inf
            left[np.arange(active.size), pick[kept]] = np.inf


def _dots(one: Floats, other: Floats) -> Floats:
    """Return the scalar product of each row with the same row of another array."""
    return np.asarray(np.einsum("ij,ij->i", one, other))


def standardised(values: Floats) -> tuple[Floats, Floats]:
    """Return columns with mean 0 and length 1, and their lengths; missing values and constant columns are 0."""
    with np.errstate(all="ignore"):
        known = ~np.isnan(values)
        count = np.maximum(known.sum(axis=0), 1)
        centred = np.where(known, values - np.where(known, values, 0.0).sum(axis=0) / count, 0.0)
        scale = np.abs(centred).max(axis=0, initial=0.0)
        centred = np.where(scale > 1e-12 * np.abs(np.where(known, values, 0.0)).max(axis=0, initial=0.0), centred, 0.0)
        centred = centred / np.where(scale > 0.0, scale, 1.0)
        norm = np.sqrt((centred**2).sum(axis=0))
    return centred / np.where(norm > 0.0, norm, 1.0), norm * scale


def _needed(atoms: Floats, used: list[int], y: Floats, room: Floats) -> tuple[list[int], Floats, Floats]:
    """Return the columns that a regression needs, with coefficients and their standard errors (step 2).

    Rows are weighted by their precision. A column is not needed if the residuals stay within the rounding without it.
    """
    coefficients, error, off = _fit(atoms[:, used], y, room)
    while len(used) > 1:
        fits = [(_fit(atoms[:, [j for j in used if j != out]], y, room), out) for out in used]
        best, out = min(fits, key=lambda each: each[0][2])
        if best[2] > max(1.3, 1.05 * off):
            break
        used = [j for j in used if j != out]
        coefficients, error, off = best
    return used, coefficients, error


def _fit(atoms: Floats, y: Floats, room: Floats) -> tuple[Floats, Floats, float]:
    """Return coefficients except the intercept, their standard errors, and the largest residual in units of `room`."""
    scale = np.maximum(np.abs(atoms).max(axis=0), np.finfo(np.float64).tiny)
    unit = float(np.median(room))
    weight = unit / room
    design = np.column_stack([atoms / scale, np.ones(y.size)]) * weight[:, None]
    wanted = y / unit * weight
    if not (np.isfinite(design).all() and np.isfinite(wanted).all()):
        return np.full(scale.size, np.nan), np.zeros(scale.size), np.inf
    found, *_ = np.linalg.lstsq(design, wanted, rcond=None)
    off = float(np.abs(wanted - design @ found).max())
    spread = np.sqrt(np.abs(np.diag(np.linalg.pinv(design.T @ design))))
    return found[:-1] * unit / scale, spread[:-1] * unit / scale, off


def _short(value: float, decimals: int) -> float:
    """Return a number near another one: with some decimals, or one divided by a whole number if that is nearer."""
    rounded = round(value, decimals)
    if value == 0.0 or not np.isfinite(value):
        return 0.0
    whole = round(1.0 / value)
    inverse = 1.0 / whole if whole else 0.0
    return inverse if abs(value) < 1.0 and abs(inverse - value) < abs(rounded - value) else rounded


def shortest_between(low: float, high: float) -> float | None:
    """Return the number with the fewest digits in an interval, 0 and 1 first; None if it is empty or needs too many."""
    if not (np.isfinite(low) and np.isfinite(high)) or low > high:
        return None
    for simple in (0.0, 1.0):
        if low <= simple <= high:
            return simple
    for digits in range(1, 10):
        for near in ((low + high) / 2.0, high, low):
            tried = float(f"{near:.{digits}g}")
            if low <= tried <= high:
                return tried
    return None


def _constant_between(low: float, high: float) -> float | None:
    """Return the shortest number in an interval whose ends are subject to floating-point error."""
    return shortest_between(low - 1e-9 * abs(low), high + 1e-9 * abs(high))


def _write_linear(
    target: int, inputs: Sequence[int], raised: Sequence[bool], weights: Floats, plus: float, form: str, divisor: int
) -> EquationCandidate:
    order = sorted(range(len(inputs)), key=lambda i: (weights[i] < 0.0, inputs[i]))
    sizes = {abs(float(weight)) for weight in weights}
    common = sizes.pop() if len(sizes) == 1 and len(inputs) > 1 and plus == 0.0 else 1.0
    text = ""
    for i in order:
        name = f"exp({{{i}}})" if raised[i] else f"{{{i}}}"
        term = _times(abs(float(weights[i])) / common, name)
        sign = "-" if weights[i] < 0.0 else "+"
        text += f" {sign} {term}" if text else (f"-{term}" if sign == "-" else term)
    if plus:
        text += f" {'-' if plus < 0.0 else '+'} {abs(plus):.12g}"
    is_sum = len(inputs) > 1 or plus != 0.0
    if common != 1.0:
        text = _times(common, f"({text})")
    elif form == "ratio" and is_sum:
        text = f"({text})"
    n_constants = sum(abs(weight) != 1.0 for weight in weights) if common == 1.0 else int(common != 1.0)
    n_constants += plus != 0.0
    every = (*inputs, divisor) if form == "ratio" else tuple(inputs)
    if form == "ratio":
        text = f"{text} / {{{len(inputs)}}}"
    elif form == "log linear":
        text = f"log({text})"
    signed = (-1.0, *map(float, weights)) if not any(raised) and form == "linear" else ()
    return EquationCandidate(target, every, text, form, signed, n_constants)


def _times(factor: float, text: str) -> str:
    if factor == 1.0:
        return text
    inverse = round(1.0 / factor)
    if factor < 1.0 and inverse and abs(1.0 / inverse - factor) < 1e-12 and len(f"{factor:.12g}") > 4:
        return f"{text} / {inverse}"
    return f"{factor:.12g} * {text}"


def _write_monomial(
    target: int, inputs: Sequence[int], powers: Floats, factor: float, is_divisor: bool, form: str
) -> EquationCandidate:
    order = np.argsort(inputs)
    inputs, powers = [int(inputs[i]) for i in order], powers[order]
    above = [f"{{{i}}}" for i, power in enumerate(powers) for _ in range(int(power))]
    below = [f"{{{i}}}" for i, power in enumerate(powers) for _ in range(int(-power))]
    if factor != 1.0:
        (below if is_divisor else above).insert(0, f"{factor:.12g}")
    text = " * ".join(above) or "1"
    if below:
        text += f" / {below[0]}" if len(below) == 1 else f" / ({' * '.join(below)})"
    text = f"log({text})" if form == "log monomial" else text
    weights = (-1.0, *map(float, powers)) if form == "monomial" else ()
    return EquationCandidate(target, tuple(inputs), text, form, weights, int(factor != 1.0))
