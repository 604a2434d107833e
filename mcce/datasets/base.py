"""The data set that all loaders return, and the data files of the package."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.exceptions import InputError, listing
from mcce.table.dtypes import is_numeric


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A table, its response and the desired value.

    Parameters
    ----------
    name
        Short name, such as ``"loans"``.
    X
        The features, rows numbered from 0.
    y
        The response in its original coding, rows as in `X`.
    fixed
        The features that no counterfactual may change.
    desired
        The desired value of `y`; None if the response is a number.
    description
        A few sentences: where the data come from and what was done to them.

    Examples
    --------
    >>> from mcce.datasets import load_loans
    >>> loans = load_loans()
    >>> loans.fixed
    ['age', 'sex']
    >>> int(loans.wanted.sum()) == int((~loans.y).sum())
    True
    """

    name: str
    X: pd.DataFrame
    y: pd.Series[Any]
    fixed: list[str]
    desired: object
    description: str

    @property
    def wanted(self) -> npt.NDArray[np.bool_]:
        """Mask of the rows with the desired response: ``y == desired``."""
        if self.desired is None:
            raise InputError(
                f"data set {self.name!r} has no desired value: its response {str(self.y.name)!r} is numeric. "
                f"Define the wanted rows yourself, for example `data.y < {self.y.median():g}`."
            )
        return np.asarray(self.y == self.desired, dtype=np.bool_)

    def __repr__(self) -> str:
        numeric = sum(is_numeric(self.X[c].dtype) for c in self.X)
        share = "" if self.desired is None else f", wanted {self.desired!r} ({self.wanted.mean():.1%} of the rows)"
        return (
            f"Dataset {self.name!r}: {len(self.X)} rows, {self.X.shape[1]} features "
            f"({numeric} numeric, {self.X.shape[1] - numeric} categorical)\n"
            f"  response {str(self.y.name)!r}{share}\n"
            f"  fixed {listing(self.fixed)}"
        )


@dataclass(frozen=True, eq=False)
class PaperSet:
    """A data set of the paper: the contents of its file, and its origin.

    `openml_columns` has OpenML's columns in the order of ours, with the labels of each in the order of our levels.
    """

    name: str
    title: str
    origin: str
    features: list[str]
    levels: Mapping[str, list[Any]]
    response: str
    unwanted: Hashable
    desired: Hashable
    fixed: list[str]
    openml_id: int | None = None
    openml_columns: Mapping[str, list[str]] = field(default_factory=dict)

    @property
    def numeric(self) -> list[str]:
        """The features without levels."""
        return [c for c in self.features if c not in self.levels]


def read_paperset(name: str) -> PaperSet:
    """Read the description of a data set of the paper from ``papersets.json``."""
    return PaperSet(name=name, **json.loads(read_carried("papersets.json"))[name])


def read_carried(name: str) -> str:
    """Return the text of a data file of the package."""
    return (files("mcce") / "data" / name).read_text(encoding="utf-8")
