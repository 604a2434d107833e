"""Requirements of the checks, and the error raised if a sampler violates one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from scipy import stats

from mcce.base.arrays import Floats
from mcce.generators.base import Generator
from mcce.samplers import ConditionalSampler
from mcce.table import Column, Kind

Check = Callable[[ConditionalSampler, int], None]
GeneratorCheck = Callable[[Generator, int], None]
Named = TypeVar("Named", bound=Callable[[Any, int], None])

LEVEL = 1e-4


class ConformanceError(AssertionError):
    """A sampler violates the contract of `ConditionalSampler`, or a generator that of `Generator`."""


def member_of(suite: list[Named]) -> Callable[[Named], Named]:
    """Return a decorator that adds a check to a suite, and its name and that of the object to every failure."""

    def decorate(function: Named) -> Named:
        def run(checked: Any, seed: int = 0) -> None:
            place = f"{function.__name__}, {type(checked).__name__}"
            try:
                function(checked, seed)
            except ConformanceError as failure:
                raise ConformanceError(f"{place}: {failure}") from None
            except Exception as error:
                raise ConformanceError(f"{place}: raised {type(error).__name__}: {error}") from error

        named = cast(Named, functools.wraps(function)(run))
        suite.append(named)
        return named

    return decorate


def require(condition: object, message: str) -> None:
    """Raise with the message unless the condition holds."""
    if not condition:
        raise ConformanceError(message)


def require_array(found: object, dtype: type[np.generic], n: int, what: str) -> None:
    """Require a vector of `n` values of the dtype."""
    require(isinstance(found, np.ndarray), f"{what} returns a {type(found).__name__}; return an array.")
    assert isinstance(found, np.ndarray)
    require(found.shape == (n,), f"{what} returns shape {found.shape} for {n} rows; return ({n},).")
    require(found.dtype == dtype, f"{what} returns dtype {found.dtype}; return {np.dtype(dtype)}.")


def require_valid(drawn: Floats, target: Column, where: str) -> None:
    """Require that every draw is missing, a finite number or an observed level."""
    known = drawn[~np.isnan(drawn)]
    require(np.isfinite(known).all(), f"{where}: {np.isinf(known).sum()} draws are infinite.")
    if target.feature.levels is not None:
        invented = np.setdiff1d(known, target.values)
        codes = f"the codes are 0 to {target.feature.n_levels - 1}"
        require(
            invented.size == 0,
            f"{where}: draws {invented.tolist()} are not levels of the training target ({codes}).",
        )


def require_agreement(kind: Kind, a: Floats, b: Floats, message: str, hint: str = "") -> None:
    """Require that a test does not reject equal distributions of two samples; the message states the evidence."""
    p, evidence = difference(kind, a, b)
    require(p > LEVEL, f"{message} ({evidence}).{hint}")


def difference(kind: Kind, a: Floats, b: Floats) -> tuple[float, str]:
    """Return the p-value of a test of equal distributions of two samples, and the evidence in words."""
    if kind == "numeric":
        p = float(stats.ks_2samp(a, b).pvalue)
        return p, f"Kolmogorov-Smirnov p = {p:.2g}, medians {np.median(a):.4g} and {np.median(b):.4g}"
    seen = np.union1d(a, b)
    counts = np.array([[(part == level).sum() for level in seen] for part in (a, b)])
    p = float(stats.chi2_contingency(counts).pvalue) if seen.size > 1 else 1.0
    shares = " and ".join(str(np.round(row / row.sum(), 3).tolist()) for row in counts)
    return p, f"chi-square p = {p:.2g}, shares of the levels {shares}"


def equal(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    """Return whether two arrays have the same values; missing values are equal."""
    return bool(np.array_equal(a, b, equal_nan=True))
