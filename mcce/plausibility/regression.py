"""Regressions of numbers that are rounded: coefficients with few digits that keep all residuals within the rounding.

`room` is half of the last digit of each value of the target. A regression fits if its largest residual is at most `FIT`
times the room. Columns that it does not need are dropped, coefficients get the fewest digits with which a constant
keeps all residuals within the room, and the result is written as a text that a rule reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from mcce._utils import Floats

MOST_TERMS = 5  # columns of a sum or product
FIT = 2.0  # largest residual of a regression in halves of the last digit; their root mean square is 0.6
LEAST_EXPLAINED = 0.2  # largest size of the residuals as a share of that of the values


def standardised(values: Floats) -> tuple[Floats, Floats]:
    """Return columns with mean 0 and length 1, missing values at the mean, and their lengths."""
    centred = filled(values - np.nansum(values, axis=0) / (~np.isnan(values)).sum(axis=0))
    lengths = norms(centred)
    return centred / np.where(lengths > 0.0, lengths, 1.0), lengths


def most_unexplained(rooms: Floats, lengths: Floats) -> Floats:
    """Return the largest size of residuals, by column, that rounding explains."""
    return np.minimum(norms(rooms) + 1e-6 * lengths, LEAST_EXPLAINED * lengths)


def unexplained_by_others(standard: Floats, lengths: Floats) -> Floats:
    """Return the size of the residuals of each column in its regression on all others."""
    eigenvalues, vectors = np.linalg.eigh(standard.T @ standard)
    return np.asarray(lengths / np.sqrt((vectors**2 / np.maximum(eigenvalues, 1e-14)).sum(axis=1)))


def filled(values: Floats) -> Floats:
    """Return values with 0 for missing and infinite ones."""
    return np.where(np.isfinite(values), values, 0.0)


def norms(values: Floats) -> Floats:
    """Return the length of each column, without missing and infinite values."""
    return np.sqrt(np.nansum(np.where(np.isfinite(values), values, np.nan) ** 2, axis=0))


def _fit(atoms: Floats, y: Floats, room: Floats) -> tuple[Floats, float]:
    """Return the coefficients of a regression, and its largest residual in units of `room`."""
    scale = np.maximum(np.abs(atoms).max(axis=0, initial=0.0), np.finfo(np.float64).tiny)
    design = np.column_stack([atoms / scale, np.ones(len(y))]) / room[:, None]
    try:
        coefficients, *_ = np.linalg.lstsq(design, y / room, rcond=None)
    except np.linalg.LinAlgError:  # values that are too small to be divided by
        return np.zeros(len(scale)), np.inf
    return coefficients[:-1] / scale, float(np.abs(y / room - design @ coefficients).max())


def needed_columns(atoms: Floats, y: Floats, room: Floats) -> tuple[list[int], Floats] | None:
    """Return the columns that a regression within the tolerance needs, and their coefficients; None if it is not."""
    is_known = np.isfinite(y) & np.isfinite(room) & (room > 0.0)
    atoms, y, room = filled(atoms[is_known]), y[is_known], room[is_known]
    used = [k for k in range(atoms.shape[1]) if (atoms[:, k] != atoms[:1, k]).any()]
    if len(y) < 10 or not used:
        return None
    coefficients, residual = _fit(atoms[:, used], y, room)
    if residual > FIT:
        return None
    batch = len(used) // 2
    while batch:
        by_size = np.argsort(np.abs(coefficients) * atoms[:, used].std(axis=0), kind="stable")
        fewer = [used[k] for k in np.sort(by_size[batch:])]
        trial, residual = _fit(atoms[:, fewer], y, room)
        if residual <= FIT and fewer:
            used, coefficients = fewer, trial
            batch = min(batch, len(used) // 2)
        else:
            batch //= 2
    if len(used) > 2 * MOST_TERMS:
        return None
    for k in list(used):
        fewer = [other for other in used if other != k]
        trial, residual = _fit(atoms[:, fewer], y, room)
        if fewer and residual <= FIT:
            used, coefficients = fewer, trial
    if len(used) > MOST_TERMS or len(used) + 5 > len(y):
        return None
    return used, coefficients


def linear_forms(atoms: Floats, y: Floats, room: Floats) -> list[tuple[list[int], Floats, float]]:
    """Return linear functions within the tolerance, with rounded coefficients, those of the shortest texts first."""
    fitted = needed_columns(atoms, y, room)
    if fitted is None:
        return []
    used, coefficients = fitted
    forms: dict[bytes, tuple[int, list[int], Floats, float]] = {}
    for digits in range(1, 13):
        weights = np.array([_short(value, digits) for value in coefficients])
        if weights.tobytes() in forms:
            continue
        plus = common_constant(y - atoms[:, used] @ weights, room)
        if plus is not None:
            length = sum(len(times_text(abs(weight), "")) for weight in (*weights, plus or 1.0))
            forms[weights.tobytes()] = (length, used, weights, plus)
    return [form[1:] for form in sorted(forms.values(), key=lambda form: form[0])]


def _short(value: float, digits: int) -> float:
    """Return the nearest number with some digits, or one divided by such a number if that is nearer."""
    rounded = float(f"{value:.{digits}g}")
    inverse = 1.0 / float(f"{1.0 / value:.{digits}g}") if 0.0 < abs(value) < 1.0 else rounded
    return inverse if abs(inverse - value) < abs(rounded - value) else rounded


def common_constant(values: Floats, rooms: Floats, n_wrong: int = 0) -> float | None:
    """Return the constant with the fewest digits within the room around all values but some; None if there is none."""
    is_known = np.isfinite(values) & np.isfinite(rooms)
    if is_known.sum() <= 2 * n_wrong:
        return None
    values, rooms = values[is_known], rooms[is_known]
    slack = rooms * 1.000001 + 1e-12 * np.abs(values)
    lows, highs = np.sort(values - slack), np.sort(values + slack)
    low, high = float(lows[-1 - n_wrong]), float(highs[n_wrong])
    if low > high:
        return None
    for simple in (0.0, 1.0):
        if low <= simple <= high:
            return simple
    for digits in range(1, 13):
        for near in ((low + high) / 2.0, low, high):
            for rounded in (float(f"{near:.{digits}g}"), _short(near, digits)):
                if low <= rounded <= high:
                    return rounded
    return None


# ---- texts


def solved_forms(
    target: str, t: int, terms: Mapping[str, tuple[int, float]], plus: float, resolution: Callable[[int], float]
) -> Iterator[str]:
    """Yield a linear equation solved for each of its columns, the tightest form first, sums before differences."""
    forms = []
    everything = {target: (t, -1.0), **terms}
    for name, (j, weight) in everything.items():
        if name.startswith("exp("):
            continue
        by_place = sorted(everything.items(), key=lambda item: item[1][0])
        others = {other: -w / weight for other, (_, w) in by_place if other != name}
        text = f"{name} == {sum_text(others, -plus / weight)}"
        tightness = float(f"{resolution(j) * abs(weight):.3e}")
        forms.append((tightness, sum(w < 0.0 for w in others.values()), len(text), -j, text))
    yield from (form[-1] for form in sorted(forms))


def sum_text(terms: Mapping[str, float], plus: float) -> str:
    """Return a sum of terms as a text, the positive ones first."""
    parts = [(times_text(abs(weight), name), weight < 0.0) for name, weight in terms.items()]
    if plus:
        parts.append((f"{abs(plus):.12g}", plus < 0.0))
    parts.sort(key=lambda part: part[1])
    (first, is_negative), *others = parts
    return ("-" if is_negative else "") + first + "".join(f" {'-' if minus else '+'} {text}" for text, minus in others)


def times_text(factor: float, text: str) -> str:
    """Return a text times a factor."""
    if abs(factor - 1.0) < 1e-12:
        return text
    number, is_divisor = _factor_text(factor)
    return f"{text} / {number}" if is_divisor else f"{number} * {text}"


def _factor_text(factor: float) -> tuple[str, bool]:
    """Return a factor or, if that is shorter, the number to divide by; and whether it is the latter."""
    times, divisor = f"{factor:.12g}", f"{1.0 / factor:.12g}"
    return (divisor, True) if len(divisor) < len(times) else (times, False)


def monomial_text(target: str, powers: Mapping[str, float], factor: float) -> str:
    """Return the equation of a column with a product of powers of others."""
    above = [name for name, power in powers.items() for _ in range(int(power))]
    below = [name for name, power in powers.items() for _ in range(int(-power))]
    if factor != 1.0:
        number, is_divisor = _factor_text(factor)
        (below if is_divisor else above).insert(0, number)
    text = " * ".join(above) or "1"
    if below:
        text += f" / {below[0]}" if len(below) == 1 else f" / ({' * '.join(below)})"
    return f"{target} == {text}"
