"""Summaries of fitted conditionals as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mcce.base.arrays import Floats


class Summary(str):
    """A text whose representation is the text itself, so that a console prints its lines."""

    def __repr__(self) -> str:
        return str(self)


def coefficient_table(
    names: Sequence[str], estimate: Floats, covariance: Floats | None, about: Mapping[str, Any]
) -> Summary:
    """Return coefficients with standard errors, z values, p values and 95 % intervals, as statsmodels prints them.

    Without a covariance the standard errors are NaN.
    """
    from scipy import special
    from statsmodels.iolib.summary import summary_params
    from statsmodels.iolib.table import SimpleTable

    errors = np.full(estimate.size, np.nan)
    if covariance is not None and estimate.size:
        errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = estimate / errors
    p = 2.0 * special.ndtr(-np.abs(z))
    ends = np.column_stack([estimate - 1.959963984540054 * errors, estimate + 1.959963984540054 * errors])
    head = SimpleTable([[f"{name}:", str(value)] for name, value in about.items()], data_aligns="lr")
    table = summary_params((None, estimate, errors, z, p, ends), yname="y", xname=list(names), use_t=False)
    return Summary(f"{head.as_text()}\n{table.as_text()}")
