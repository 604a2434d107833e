"""Limits on the encoded values of one feature: an `Allow` checked against its feature, and several combined.

`limit_of` encodes an `Allow` and raises on values that the feature cannot have. `Limit.within` gives the allowed values
for each factual. Computed bounds (own value plus largest step) are rounded to 15 digits, so that 0.7 and a step of 0.1
reach 0.8. Multiples of a step must be values that the column can hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcce.base.arrays import Bools, Floats, Indices
from mcce.constraints.allow import Allow, as_text
from mcce.constraints.encoding import LevelCodes, encode_step, encode_value
from mcce.exceptions import InputError, spell_all
from mcce.samplers.restricted import Within
from mcce.table import Feature
from mcce.table.dtypes import is_dated
from mcce.table.grid import common_multiples, put_on_multiples
from mcce.wording import Value, parts_of


@dataclass(frozen=True)
class Limit:
    """The values that a column may have.

    Attributes
    ----------
    column : position of the column.
    text : the constraint in words.
    low, high : encoded bounds.
    levels : which levels are allowed; None for numbers.
    never : excluded numbers.
    rises, falls : whether it may increase, decrease; neither: it stays.
    largest : largest change, encoded.
    step : changed values are multiples of it; 0: any value.
    missing : whether it may become missing.
    """

    column: int
    text: str
    low: float = -np.inf
    high: float = np.inf
    levels: tuple[bool, ...] | None = None
    never: tuple[float, ...] = ()
    rises: bool = True
    falls: bool = True
    largest: float = np.inf
    step: float = 0.0
    missing: bool = False

    @property
    def keeps(self) -> bool:
        """Whether the factual's value must stay."""
        return not (self.rises or self.falls) or self.largest == 0.0

    @property
    def limits_change(self) -> bool:
        """Whether there is a direction or a largest step."""
        return not (self.rises and self.falls) or self.largest < np.inf

    @property
    def reads_factual(self) -> bool:
        """Whether the allowed values depend on the factual's value."""
        return self.limits_change or self.step > 0.0

    def within(self, own: Floats) -> Within:
        """Return the allowed values for factuals with the values `own`."""
        n, unknown = own.size, np.isnan(own)
        low, high = np.full(n, self.low), np.full(n, self.high)
        if self.limits_change:
            least, most = (
                (own if not free else np.full(n, bound))
                for free, bound in ((self.falls, -np.inf), (self.rises, np.inf))
            )
            if self.largest < np.inf:
                least, most = (
                    np.maximum(least, _round(own - self.largest, own, self.largest)),
                    np.minimum(most, _round(own + self.largest, own, self.largest)),
                )
            low, high = np.maximum(low, least), np.minimum(high, most)
            low, high = np.where(unknown, np.inf, low), np.where(unknown, -np.inf, high)
        missing = unknown | (self.missing and not self.keeps)
        if self.levels is not None:
            codes = np.arange(len(self.levels))
            allowed = (codes >= low[:, None]) & (codes <= high[:, None]) & np.array(self.levels, dtype=bool)
            return Within(levels=allowed, missing=missing)
        return Within(
            low=low,
            high=high,
            missing=missing,
            step=np.full(n, self.step) if self.step else None,
            kept=own if self.step else None,
            never=np.tile(np.array(self.never), (n, 1)) if self.never else None,
        )

    def allows(self, values: Floats, own: Floats) -> Bools:
        return self.within(own).allows(values)


def everything(n_rows: int, n_levels: int) -> Within:
    return everything_where(np.ones(n_rows, dtype=bool), n_levels)


def everything_where(holds: Bools, n_levels: int) -> Within:
    """Return a restriction that allows everything where a condition holds, nothing elsewhere."""
    if n_levels:
        return Within(levels=np.repeat(holds[:, None], n_levels, axis=1), missing=holds.copy())
    return Within(low=np.where(holds, -np.inf, np.inf), high=np.where(holds, np.inf, -np.inf), missing=holds.copy())


def keep(column: int, feature: Feature, text: str) -> Limit:
    levels = None if feature.is_numeric else (True,) * feature.n_levels
    return Limit(column, text, levels=levels, rises=False, falls=False)


def stay_known(column: int, feature: Feature) -> Limit:
    """Return the implicit limit that a known value does not become missing."""
    return Limit(column, "", levels=None if feature.is_numeric else (True,) * feature.n_levels)


def _round(bounds: Floats, own: Floats, largest: float) -> Floats:
    """Return computed bounds rounded to 15 digits."""
    size = np.maximum(np.abs(np.where(np.isnan(own), 1.0, own)), max(largest, 1e-300))
    digits = np.clip(14.0 - np.floor(np.log10(size)), 0.0, 300.0)
    scale = 10.0**digits
    with np.errstate(over="ignore"):
        rounded = np.rint(bounds * scale) / scale
    return np.where(np.isfinite(rounded), rounded, bounds)


def limit_of(given: Allow, column: int, feature: Feature, *, missing: bool, is_fixed: bool) -> Limit:
    """Return the limit of an `Allow`, checked and encoded."""
    _check_kind(given, feature)
    low = -np.inf if given.low is None else _encoded(feature, given.low, "low")
    high = np.inf if given.high is None else _encoded(feature, given.high, "high")
    if low > high:
        raise InputError(
            f"constraint on {feature.name!r}: low is {as_text(given.low)}, above high, {as_text(given.high)}; "
            "swap them."
        )
    never = _encoded_all(feature, given.never or (), "never")
    levels = None
    if not feature.is_numeric:
        named = None if given.levels is None else _encoded_all(feature, given.levels, "levels")
        levels = tuple(
            (named is None or code in named) and code not in never and low <= code <= high
            for code in range(feature.n_levels)
        )
    made = Limit(
        column,
        str(given),
        low,
        high,
        levels,
        tuple(sorted(never)) if feature.is_numeric else (),
        rises=given.direction not in ("decrease", "none"),
        falls=given.direction not in ("increase", "none"),
        largest=_largest(given, feature),
        step=0.0 if given.step is None else float(given.step),
        missing=missing,
    )
    if not is_fixed:
        _check_values_left(made, feature)
    return made


def _encoded(feature: Feature, value: Any, role: str) -> float:
    try:
        return encode_value(feature, value)
    except InputError as error:
        raise InputError(f"constraint on {feature.name!r}, {role}: ", *parts_of(error)) from error


def _encoded_all(feature: Feature, values: Iterable[Any], role: str) -> set[float]:
    if feature.is_numeric:
        return {_encoded(feature, value, role) for value in values}
    codes = LevelCodes(feature)
    try:
        return {float(codes.find(value)) for value in values}
    except InputError as error:
        raise InputError(f"constraint on {feature.name!r}, {role}: {error}") from error


def _largest(given: Allow, feature: Feature) -> float:
    largest = np.inf
    if given.max_step is not None:
        try:
            largest = encode_step(feature, given.max_step)
        except InputError as error:
            raise InputError(f"constraint on {feature.name!r}, max_step: ", *parts_of(error), ".") from error
    if given.max_share is not None:
        share = float(given.max_share) * feature.span
        largest = min(largest, share if feature.is_numeric else np.floor(share + 1e-9))
    return float(largest)


def _check_kind(given: Allow, feature: Feature) -> None:
    """Raise on limits that do not apply to the kind of a feature."""
    where = f"constraint on {feature.name!r}"
    if feature.is_numeric:
        if given.levels is not None:
            raise InputError(
                f"{where}: levels is {spell_all(given.levels)}, but it holds numbers; use low, high, step or never."
            )
        if given.step is not None and is_dated(feature.dtype):
            raise InputError(f"{where}: step is ", Value(given.step), ", but dates have no multiples; use a rule.")
        return
    if given.step is not None:
        raise InputError(f"{where}: step is ", Value(given.step), ", but it holds levels; use levels or max_step.")
    if feature.kind == "ordered":
        return
    for name in ("low", "high", "max_step", "max_share"):
        if getattr(given, name) is not None:
            raise InputError(
                f"{where}: {name} is ",
                Value(getattr(given, name)),
                ", but its levels have no order; name levels, or make it an ordered category.",
            )
    if given.direction in ("increase", "decrease"):
        raise InputError(
            f"{where}: direction is {given.direction!r}, but its levels have no order; name the levels that are "
            "allowed, or make it an ordered category."
        )


def _check_values_left(made: Limit, feature: Feature) -> None:
    """Raise on a limit that allows no value of the training data, for any factual."""
    if made.levels is not None:
        assert feature.levels is not None
        if feature.n_levels and not any(made.levels):
            raise InputError(
                f"constraint on {feature.name!r} ({made.text}) allows none of its levels, "
                f"{spell_all(feature.levels)}; allow at least one."
            )
        return
    low, high = np.fmax(made.low, feature.low), np.fmin(made.high, feature.high)
    if np.isnan(feature.low):
        return
    seen = " to ".join(as_text(value) for value in feature.decode(np.array([feature.low, feature.high])))
    if low > high:
        raise InputError(
            f"constraint on {feature.name!r} ({made.text}) allows nothing of the training data, {seen}; widen it."
        )
    if made.step and np.isnan(put_on_multiples(*(np.array([v]) for v in (low, made.step, low, high))))[0]:
        raise InputError(
            f"constraint on {feature.name!r} ({made.text}): no multiple of {as_text(made.step)} is both allowed and "
            f"inside the training data, {seen}; take a smaller step."
        )


Applied = tuple[Limit, Indices | None]  # a limit and its rows; None for all rows


def within_of(column: int, feature: Feature, factuals: Floats, applied: Iterable[Applied]) -> Within:
    """Return the values of one column that the limits allow, for each factual."""
    within = everything(factuals.shape[0], feature.n_levels)
    for limit, rows in applied:
        if limit.column != column:
            continue
        if rows is None:
            within = within & limit.within(factuals[:, column])
        else:
            part = within.take(rows) & limit.within(factuals[rows, column])
            within = _scatter(within, rows, part, factuals.shape[0])
    return within


def on_grid(within: Within, feature: Feature) -> Within:
    """Return a restriction with its steps on the column's grid; steps equal to the grid are removed."""
    if within.step is None or feature.decimals is None:
        return within
    point = 10.0**-feature.decimals
    step = common_multiples(within.step, np.where(np.isnan(within.step), np.nan, point))
    step = np.where(step == point, np.nan, step)
    no_step = bool(np.isnan(step).all())
    return Within(
        within.low,
        within.high,
        within.levels,
        within.missing,
        None if no_step else step,
        None if no_step else within.kept,
        within.never,
    )


def _scatter(whole: Within, rows: Indices, part: Within, n_rows: int) -> Within:

    def put(old: Any, new: Any, empty: Any) -> Any:
        if new is None:
            return old
        width = max(0 if old is None else old.shape[-1], new.shape[-1]) if new.ndim == 2 else 0
        shape = (n_rows, width) if new.ndim == 2 else (n_rows,)
        found = np.full(shape, empty)
        if old is not None:
            found[(slice(None), slice(old.shape[-1])) if new.ndim == 2 else slice(None)] = old
        found[(rows, slice(new.shape[-1])) if new.ndim == 2 else rows] = new
        return found

    return Within(
        low=put(whole.low, part.low, -np.inf),
        high=put(whole.high, part.high, np.inf),
        levels=put(whole.levels, part.levels, True),
        missing=put(whole.missing, part.missing, True),
        step=put(whole.step, part.step, np.nan),
        kept=put(whole.kept, part.kept, np.nan),
        never=put(whole.never, part.never, np.nan),
    )
