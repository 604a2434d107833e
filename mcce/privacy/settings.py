"""Differential privacy of a whole explainer: `sampler=mcce.Privacy(epsilon=...)`.

1. The properties of the columns are public, and stated: bounds of numbers, levels, which may be missing. The schema is
   built from these statements and from names and dtypes (`Privacy.prepare`); no part of it is read from the rows. Each
   value of a row is converted to a public one first, so that no unusual value stops a fit: a number outside the bounds
   becomes the nearest bound, infinite or not, a date the beginning of its day (or unit), and an unknown level missing.
2. Each column is a conditional given those before it: the fixed features, the decision, then the mutable features in
   visiting order, each by a `DPSampler` with an equal share of one account. Before them the number of rows is counted,
   with noise and `FOR_THE_NUMBER` of the budget: trees are deeper with more rows and budget. A column spends `choosing`
   of its share on selecting splits, and the rest on counts.
3. The decision is a column like any other. It is the model's answer for a row, a function of that row, so one person
   changes one value of it. The model itself counts as public, and is assumed to answer row by row.
4. Rows drawn from these conditionals are computed from noisy counts, and have no further cost. Wherever a chain or an
   explainer reads training rows after `fit`, it uses such synthetic rows instead: fixed values to bootstrap, the spot
   check of the model, plausibility and its calibration, relations, scales of distances, usual values. The training rows
   are not kept, nor hashes of them; their number is kept with noise only.

So the state, the output and the files of a private explainer depend only on the noisy counts and public statements. The
exceptions are listed in `mcce.privacy.account.NOT_COVERED`, and printed with the account.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from mcce.base.arrays import Ints
from mcce.base.checks import check_count, check_share, is_number
from mcce.exceptions import InputError, did_you_mean, listing
from mcce.privacy.account import NOT_COVERED, PrivacyAccount
from mcce.privacy.noise import Mechanism, source_of
from mcce.storage.fields import stored
from mcce.storage.state import stateful
from mcce.table import Data, Feature, Kind, Schema, as_frame
from mcce.table.dtypes import from_ticks, holds_missing, is_dated, to_ticks
from mcce.table.feature import default_kind, read_feature
from mcce.table.frames import is_other_frame
from mcce.table.grid import MOST_DECIMALS

DTYPE = "dtype"  # in place of levels: those that a pandas category declares are public
MOST_ROWS = 10_000_000
FOR_THE_NUMBER = Fraction(1, 20)


@dataclass(frozen=True)
class BoughtNumber:
    """A noisy number of rows, and its cost."""

    n_rows: int
    cost: Mechanism


@stateful("Privacy")
@dataclass(frozen=True, repr=False)
class Privacy:
    """Differential privacy for a chain or an explainer, given as its `sampler`.

    Everything that is learned from the training rows is learned with noise, at a total cost of at most `epsilon` (and
    `delta`): one person's row changes the probability of any outcome by at most the factor exp(epsilon). Replacing a
    row by another counts twice. The account is printed, stored, and available as ``explainer.generator_.account_``.

    **Not covered** are the explained model, the explained rows, everything stated as public (including dtypes, so pass
    a frame with declared dtypes, not one that infers them from the values), settings chosen by inspecting the rows,
    further rows of the same person, whether the table has any rows (an explainer rejects an empty one), the duration
    and the progress messages of the fit, other fits to the same rows, and figures computed from training rows that are
    passed again.

    Parameters
    ----------
    epsilon, delta : float
        The budget of one fit. With delta = 0 the noise is discrete Laplace; with a delta, at most 1 / (number of rows),
        it is discrete Gaussian, and smaller for many columns. See `mcce.PrivacyAccount`.
    bounds : dict
        ``{column: (low, high)}`` for every number and date, from public knowledge: bounds read from the data would
        reveal the most extreme person. Values outside are clipped. More than two numbers are the edges of bins, which
        is better for long tails: ``(0, 20_000, 40_000, 80_000, 1_000_000)``.
    levels : dict or "dtype"
        ``{column: [levels]}``; other values count as missing. "dtype", for one column or for all, states that the
        categories of the pandas dtype are public. Booleans need none.
    missing : list of columns
        Columns whose values are publicly known to be possibly missing. In other columns missing values are not counted.
    decimals : dict
        Number of decimals, ``{column: decimals}``; by default floats are not rounded.
    n_trees, n_bins : int
        Parameters of each `DPSampler`.
    max_depth : int or None
        Depth of the trees. None estimates the number of rows, at a twentieth of the budget, and splits while leaves
        hold more rows than noise.
    choosing : float
        Share of a column's budget for choosing splits by the exponential mechanism; 0 for random splits.
    n_synthetic : int
        Number of synthetic rows that replace the training rows after the fit.
    testing_seed : int or None
        Seed of the noise, for tests only. The fit is then **not private** and cannot be saved.

    Notes
    -----
    `random_state` determines the random splits and all draws from the fitted chain, not the noise: two fits differ, but
    the results of a fitted explainer are reproducible. Copies of training rows cannot be counted or excluded, because
    the rows are not kept.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans().X[["age", "sex", "salary", "savings"]]
    >>> bounds = {"age": (18, 80), "salary": (0, 200_000), "savings": (0, 300_000)}
    >>> private = mcce.Privacy(epsilon=3, bounds=bounds, levels={"sex": ["female", "male"]})
    >>> explainer = mcce.MCCE(lambda rows: rows["savings"] > 40_000, decision=True, fixed=["age", "sex"],
    ...                       sampler=private, random_state=1).fit(X)
    >>> float(explainer.generator_.account_.epsilon_spent)
    3.0
    >>> found = explainer.explain(X.head(50))
    >>> bool((found.frame["savings"] > 40_000).all())
    True
    """

    epsilon: Any = stored(object, default=1.0)
    delta: Any = stored(object, default=0.0)
    bounds: Mapping[Any, Sequence[Any]] = stored(dict, default_factory=dict)
    levels: Mapping[Any, Sequence[Any] | str] | str = stored((dict, str), default_factory=dict)
    missing: Sequence[Any] = stored(tuple, default=())
    decimals: Mapping[Any, int] = stored(dict, default_factory=dict)
    n_trees: int = stored(int, least=1, default=1)
    max_depth: int | None = stored(int, least=0, optional=True, default=None)
    n_bins: int = stored(int, least=1, default=16)
    choosing: float = stored(float, least=0.0, most=1.0, default=0.5)
    n_synthetic: int = stored(int, least=1, most=MOST_ROWS, default=2000)
    testing_seed: int | None = stored(int, optional=True, default=None)
    not_covered: tuple[str, ...] = field(default=NOT_COVERED, init=False)

    def __post_init__(self) -> None:
        PrivacyAccount(self.epsilon, self.delta)
        check_count(self.n_synthetic, "n_synthetic", self, most=MOST_ROWS)
        object.__setattr__(self, "choosing", check_share(self.choosing, "choosing of Privacy"))
        for name in ("bounds", "levels", "decimals"):
            given = getattr(self, name)
            if name == "levels" and isinstance(given, str) and given == DTYPE:
                continue
            if not isinstance(given, Mapping):
                raise InputError(f"{name} of Privacy is {given!r}; give a dict by column.")
            object.__setattr__(self, name, {k: _plain(v) for k, v in given.items()})
        if isinstance(self.missing, str):
            raise InputError(f"missing of Privacy is {self.missing!r}; give a list of columns: [{self.missing!r}].")
        object.__setattr__(self, "missing", tuple(self.missing))

    def __repr__(self) -> str:
        delta = f", delta={float(self.delta):g}" if self.delta else ""
        tested = "" if self.testing_seed is None else f", testing_seed={self.testing_seed}: NOT PRIVATE"
        levels = "levels of the dtypes" if isinstance(self.levels, str) else f"levels of {len(self.levels)} columns"
        stated = f"bounds of {len(self.bounds)} columns, {levels}"
        return f"Privacy(epsilon={float(self.epsilon):g}{delta}, {stated}{tested}; does not cover the model explained)"

    def refuse(self, *, weights: object, visit_sequence: object, schema: object) -> None:
        """Raise if settings of a fit would read the training rows without noise."""
        if weights is not None:
            raise InputError("sample_weight cannot be private: a weight changes what one row counts; leave it out.")
        if isinstance(visit_sequence, str) and visit_sequence == "correlation":
            raise InputError(
                "visit_sequence='correlation' reads the training rows without noise; with mcce.Privacy give 'data', "
                "'reversed' or a list."
            )
        if schema is not None:
            raise InputError("schema was read from data; with mcce.Privacy bounds and levels are stated, leave it out.")

    def prepare(self, X: Data, kinds: Mapping[Any, Kind] | None) -> tuple[pd.DataFrame, Schema]:
        """Return the training rows in public values, or missing, and the public schema (step 1)."""
        if is_other_frame(X):
            raise InputError(f"X is a {type(X).__name__}; with mcce.Privacy give a pandas DataFrame or an array.")
        if isinstance(X, np.ndarray) and X.dtype == object:
            raise InputError(
                "X is an array of objects, whose columns take their dtypes from the values: one person's could change "
                "them. With mcce.Privacy give a pandas DataFrame with dtypes, or an array of numbers."
            )
        frame, array_dtype = as_frame(X)
        known, named = list(frame.columns), dict(kinds or {})
        levels = {} if isinstance(self.levels, str) else self.levels
        stated = {"bounds": self.bounds, "levels": levels, "missing": self.missing, "decimals": self.decimals}
        for role, names in {**stated, "kinds": named}.items():
            for name in names:
                if name not in known:
                    raise InputError(f"{role} names {name!r}, which is not a column of X; {did_you_mean(name, known)}")
        kind_of = {name: named.get(name) or default_kind(frame[name], "X") for name in known}
        lacking = [name for name in known if not self._says_enough(name, kind_of[name], frame[name].dtype)]
        if lacking:
            numbers = [name for name in lacking if kind_of[name] == "numeric"]
            others = [name for name in lacking if kind_of[name] != "numeric"]
            parts = [f"{what} of {listing(some)}" for what, some in (("bounds", numbers), ("levels", others)) if some]
            raise InputError(
                f"mcce.Privacy does not say the {' and the '.join(parts)}, and does not read them from the data; state "
                "them from public knowledge, in bounds={...} and levels={...}."
            )
        schema = Schema([self._feature(name, kind_of[name], frame[name].dtype) for name in known], array_dtype)
        recoded = {f.name: self._public_values(frame[f.name], f) for f in schema.features}
        return pd.DataFrame(recoded, columns=frame.columns, index=frame.index), schema

    def buy_number(self, n_rows: int) -> BoughtNumber | None:
        """Return the noisy number of rows, if the depth depends on it (step 2)."""
        if self.max_depth is not None:
            return None
        mechanism = PrivacyAccount(self.epsilon, self.delta).share(1).part(FOR_THE_NUMBER)
        source = source_of(self.testing_seed, "number of rows")
        return BoughtNumber(max(n_rows + mechanism.noise(source)(), 0), mechanism)

    def budget_of_a_column(self, n_columns: int, number: BoughtNumber | None) -> dict[str, Any]:
        """Return the share of the budget for each of `n_columns` columns, as parameters of a `DPSampler` (step 2)."""
        account = PrivacyAccount(self.epsilon, self.delta)
        share = account.share(n_columns).part(1 - (FOR_THE_NUMBER if number else Fraction(0)))
        if share.rho is None:
            return {"epsilon": share.epsilon}
        return {"epsilon": account.epsilon, "delta": account.delta, "rho": share.rho}

    def account_of(self, accounts: Iterable[PrivacyAccount], number: BoughtNumber | None) -> PrivacyAccount:
        """Return the account of a whole fit from those of its columns; more than the budget is an error."""
        account = PrivacyAccount(self.epsilon, self.delta)
        if number is not None:
            account = account.spend("number of rows", epsilon=number.cost.epsilon, rho=number.cost.rho)
        for each in accounts:
            account = account.include(each)
        return account

    def refuse_storage(self) -> None:
        """Raise if the noise has a testing seed."""
        if self.testing_seed is not None:
            raise InputError(
                f"testing_seed is {self.testing_seed}, whose noise can be removed: this fit is not private, and "
                "is not stored. Fit again without testing_seed."
            )

    def _says_enough(self, name: Any, kind: Kind, dtype: Any) -> bool:
        if kind == "numeric":
            return name in self.bounds
        return pd.api.types.is_bool_dtype(dtype) or self._levels_of(name, dtype) is not None

    def _levels_of(self, name: Any, dtype: Any) -> Any:
        stated = self.levels if isinstance(self.levels, str) else self.levels.get(name)
        if isinstance(stated, str) and stated == DTYPE:
            return list(dtype.categories) if isinstance(dtype, pd.CategoricalDtype) else None
        return stated

    def _feature(self, name: Any, kind: Kind, dtype: Any) -> Feature:
        """Return a column as it is stated."""
        may_be_missing = name in self.missing
        if may_be_missing and not holds_missing(dtype):
            raise InputError(f"missing names {name!r}, whose dtype {dtype} cannot be missing; leave it out.")
        stated: Any = self.bounds[name] if kind == "numeric" else self._levels_of(name, dtype)
        if kind != "numeric" and isinstance(dtype, pd.CategoricalDtype):
            dtype = pd.CategoricalDtype(stated, dtype.ordered)
        stated = [False, True] if stated is None else stated
        column = _as_column(stated, name, dtype)
        feature = read_feature(column, kind, "what is stated as public")
        if feature.is_numeric and is_dated(dtype):
            unit = _unit_of_dates(to_ticks(column), dtype)
            high = (feature.high - feature.low) * feature.unit / unit
            feature = replace(feature, unit=unit, low=0.0, high=high)
        decimals = self.decimals.get(name)
        if decimals is not None:
            check_count(decimals, f"decimals of {name!r}", least=0, most=MOST_DECIMALS)
        if feature.is_numeric and feature.decimals is not None and not pd.api.types.is_integer_dtype(dtype):
            feature = replace(feature, decimals=decimals)  # two bounds do not determine the decimals of other numbers
        return replace(feature, has_missing=may_be_missing)

    def _public_values(self, column: pd.Series[Any], feature: Feature) -> Any:
        """Return a training column whose values all are public, or missing (step 1)."""
        if not feature.is_numeric:
            return _levels_or_missing(column, feature)
        stated = _as_column(self.bounds[feature.name], feature.name, feature.dtype)
        for bound, outside in ((stated.min(), column.lt), (stated.max(), column.gt)):
            column = column.mask(outside(bound).to_numpy(dtype=bool, na_value=False), bound)
        if not is_dated(feature.dtype):
            return column
        ticks, missing = to_ticks(column), column.isna().to_numpy(dtype=bool)
        begun = np.where(missing, 0, ticks - (ticks - feature.origin) % feature.unit)
        return pd.Series(from_ticks(begun, missing, feature.dtype), index=column.index)

    def encoded_edges(self, feature: Feature) -> tuple[float, ...]:
        column = _as_column(self.bounds[feature.name], feature.name, feature.dtype)
        return tuple(feature.encode(column, "what is stated as public").tolist())


def _plain(stated: Any) -> Any:
    """Return levels, bounds or decimals as a file can hold them."""
    return (
        list(stated) if isinstance(stated, (Sequence, np.ndarray, pd.Index)) and not isinstance(stated, str) else stated
    )


def _as_column(stated: Any, name: Any, dtype: Any) -> pd.Series[Any]:
    """Return public values as a column of the data's dtype."""
    try:
        if is_dated(dtype) and any(is_number(each) for each in stated):
            raise TypeError("numbers are not dates")
        column = pd.Series(list(stated), name=name).astype(dtype)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"what is stated of {name!r}, {stated!r}, does not convert to its dtype {dtype}: {error}"
        ) from error
    if not len(column) or column.isna().any():
        raise InputError(f"what is stated of {name!r} is {stated!r}; give values of its dtype {dtype}, none missing.")
    return column


def _unit_of_dates(ticks: Ints, dtype: Any) -> int:
    """Return the ticks of a day if all bounds are whole days, of a second if they are whole seconds, or one tick."""
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}.get(getattr(dtype, "unit", None) or _unit_of(dtype), 0)
    units = (86_400 * per_second, per_second)
    return next((unit for unit in units if unit and not (ticks % unit).any()), 1)


def _unit_of(dtype: Any) -> str:
    """Return the unit of dates of a dtype of numpy; empty for other dtypes."""
    return str(np.datetime_data(dtype)[0]) if isinstance(dtype, np.dtype) else ""


def _levels_or_missing(column: pd.Series[Any], feature: Feature) -> Any:
    assert feature.levels is not None
    levels, values = feature.levels.astype(object), column.astype(object)
    try:
        codes = levels.get_indexer(pd.Index(values, dtype=object, tupleize_cols=False))
    except TypeError:  # an unhashable value, such as a list, is not a level
        known = dict(zip(levels, range(len(levels))))
        codes = np.array([known.get(value, -1) if _has_hash(value) else -1 for value in values])
    return pd.Series(pd.Categorical.from_codes(codes, categories=feature.levels), index=column.index)  # -1 is missing


def _has_hash(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
