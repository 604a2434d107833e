"""Requirements of the checks, and the error of a violation."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from mcce._utils import Floats
from mcce.exceptions import spell
from mcce.table import Column, Kind

LEVEL = 1e-4  # of the tests of distributions


class ConformanceError(AssertionError):
    """A sampler violates the contract of `ConditionalSampler`, or a generator that of `Generator`."""


def run(check: Callable[[Any], None], bench: Any, name: str) -> None:
    """Run a check; any error becomes a `ConformanceError` with the names of the check and of the object."""
    try:
        check(bench)
    except ConformanceError as failure:
        raise ConformanceError(f"{check.__name__}, {name}: {failure}") from None
    except Exception as error:
        raise ConformanceError(f"{check.__name__}, {name}: raised {type(error).__name__}: {error}") from error


def require(condition: object, message: str) -> None:
    """Raise with the message unless the condition holds."""
    if not condition:
        raise ConformanceError(message)


def require_floats(found: Any, n: int, what: str) -> None:
    """Require a float64 vector of length n."""
    is_vector = isinstance(found, np.ndarray) and found.shape == (n,) and found.dtype == np.float64
    shape = f"{found.dtype} of shape {found.shape}" if isinstance(found, np.ndarray) else f"a {type(found).__name__}"
    require(is_vector, f"{what} returns {shape} for {n} rows; return float64 of shape ({n},).")


def require_valid(drawn: Floats, target: Column, where: str) -> None:
    """Require that draws are finite numbers or observed levels, and missing only if a training value is."""
    known = drawn[~np.isnan(drawn)]
    require(np.isfinite(known).all(), f"{where}: {np.isinf(known).sum()} draws are infinite.")
    has_gaps = bool(np.isnan(target.values).any())
    require(has_gaps or known.size == drawn.size, f"{where}: {np.isnan(drawn).sum()} draws are NaN.")
    if not target.feature.is_numeric:
        invented = np.setdiff1d(known, target.values)
        codes = f"the codes are 0 to {target.feature.n_levels - 1}"
        require(
            not invented.size, f"{where}: draws {invented.tolist()} are not levels of the training target ({codes})."
        )


def require_agreement(kind: Kind, a: Floats, b: Floats, message: str) -> None:
    """Require that a test does not reject equal distributions of two samples; the message states the evidence."""
    p, evidence = difference(kind, a, b)
    require(p > LEVEL, f"{message} ({evidence}).")


def difference(kind: Kind, a: Floats, b: Floats) -> tuple[float, str]:
    """Return the p-value of a test of equal distributions of two samples, and the evidence in words."""
    if kind == "numeric":
        p = float(stats.ks_2samp(a, b).pvalue)
        return p, f"Kolmogorov-Smirnov p = {p:.2g}, medians {np.median(a):.4g} and {np.median(b):.4g}"
    levels = np.union1d(a, b)
    counts = np.array([[(part == level).sum() for level in levels] for part in (a, b)])
    p = float(stats.chi2_contingency(counts).pvalue) if levels.size > 1 else 1.0
    shares = " and ".join(str(np.round(row / row.sum(), 3).tolist()) for row in counts)
    return p, f"chi-square p = {p:.2g}, shares of the levels {shares}"


def require_same_parameters(now: Any, before: dict[str, Any], what: str) -> None:
    """Require that an object has the very parameters that it had before."""
    for name, value in before.items():
        after = getattr(now, name)
        require(after is value, f"{what} the parameter {name!r} from {spell(value)} to {spell(after)}.")


@contextmanager
def unmoved_global_state(seed: int, where: str = "") -> Iterator[None]:
    """Seed the global random generators of numpy and Python; require that the block leaves them, and restore them."""
    before = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        seeded = repr(np.random.get_state()), random.getstate()  # noqa: NPY002
        yield
        unmoved = seeded == (repr(np.random.get_state()), random.getstate())  # noqa: NPY002
        require(unmoved, f"{where}the state of a global random generator changed.")
    finally:
        np.random.set_state(before[0])  # noqa: NPY002
        random.setstate(before[1])


def equal(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    """Return whether two arrays have the same values; missing values are equal."""
    return bool(np.array_equal(a, b, equal_nan=True))
