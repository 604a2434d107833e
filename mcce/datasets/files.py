"""The tables that are read from files: R's airquality, and the four of the paper's first experiment."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mcce._utils import check_flag
from mcce.datasets.base import Dataset, columns_with_levels
from mcce.exceptions import InputError, listing

Folder = str | os.PathLike[str] | None


def load_airquality(*, dropna: bool = False) -> Dataset:
    """Load R's ``airquality``, the table of mcceR's examples: air in New York, May to September 1973.

    Parameters
    ----------
    dropna : bool
        Keep only the 111 of 153 rows without a missing value, as mcceR's examples do. Otherwise Ozone and Solar.R miss
        some values.

    Notes
    -----
    The response is Ozone in parts per billion, the wanted decision at most 15, and Wind is fixed, as in mcceR's
    examples. Source: Chambers et al. (1983), *Graphical Methods for Data Analysis*.

    Examples
    --------
    >>> from mcce.datasets import load_airquality
    >>> load_airquality(dropna=True).X.shape
    (111, 5)
    """
    with (files("mcce.datasets") / "airquality.csv").open() as file:
        frame = pd.read_csv(file)
    if check_flag(dropna, "dropna"):
        frame = frame.dropna(ignore_index=True).astype({"Ozone": np.int64, "Solar.R": np.int64})
    description = "Daily air quality in New York, May to September 1973 (R's airquality); the response is Ozone."
    return Dataset(frame.drop(columns="Ozone"), frame["Ozone"], ["Wind"], (-np.inf, 15.0), description)


def load_adult(folder: Folder = None, *, as_in_paper: bool = False) -> Dataset:
    """Load Adult (Census Income, 1994): who earns more than 50,000 dollars a year.

    48,842 people, UCI's training part (rows 0 to 32,560) before its test part; 6 numbers and 7 features with levels.
    Missing values are the level ``"?"``. ``education`` is left out as in the paper: it relabels ``education-num``.

    Parameters
    ----------
    folder : str or path, optional
        Folder with ``adult.csv.gz`` or ``adult.csv``; by default the one that ``MCCE_DATA`` names.
    as_in_paper : bool
        Code each feature with levels 1 for its most frequent level and 0 for the rest.

    Examples
    --------
    >>> from mcce.datasets import load_adult
    >>> load_adult("/data").X.shape  # doctest: +SKIP
    (48842, 13)
    """
    frame = _read("adult", folder, "income", ["age", "sex"])
    description = "Adult (Census Income): UCI's adult.data and adult.test without the column education."
    return _dataset(frame, "income", ["age", "sex"], ">50K", as_in_paper, description)


def load_gmc(folder: Folder = None, *, as_in_paper: bool = False) -> Dataset:
    """Load Give Me Some Credit (Kaggle, 2011): who gets into serious arrears within two years.

    150,000 borrowers and 10 numbers; MonthlyIncome and NumberOfDependents miss some values. The response is 1 for
    arrears (the paper flips it).

    Parameters
    ----------
    folder : str or path, optional
        Folder with ``gmc.csv.gz`` or ``gmc.csv``; by default the one that ``MCCE_DATA`` names.
    as_in_paper : bool
        Keep the 115,527 complete rows whose features all lie less than three standard deviations from their means.

    Examples
    --------
    >>> from mcce.datasets import load_gmc
    >>> len(load_gmc("/data", as_in_paper=True).X)  # doctest: +SKIP
    115527
    """
    frame = _read("gmc", folder, "SeriousDlqin2yrs", ["age"])
    if check_flag(as_in_paper, "as_in_paper"):
        frame = frame.dropna()
        features = frame.drop(columns="SeriousDlqin2yrs")
        scores = (features - features.mean()) / features.std(ddof=0)
        frame = frame[(scores.abs() < 3).all(axis=1)]
    description = "Give Me Some Credit: cs-training.csv of Kaggle's competition without its row numbers."
    return _dataset(frame, "SeriousDlqin2yrs", ["age"], 0, False, description)


def load_fico(folder: Folder = None, *, as_in_paper: bool = False) -> Dataset:
    """Load FICO / HELOC (Explainable Machine Learning Challenge, 2018): who repays a home equity credit.

    10,459 applicants, 21 numbers and 2 features with levels, all integer codes; -7, -8 and -9 are special values
    (condition not met; no usable trades; no bureau record).

    Parameters
    ----------
    folder : str or path, optional
        Folder with ``fico.csv.gz`` or ``fico.csv``; by default the one that ``MCCE_DATA`` names.
    as_in_paper : bool
        Drop the 588 rows that are -9 in every feature, and code the two features with levels 1 for the most frequent
        level and 0 for the rest.

    Examples
    --------
    >>> from mcce.datasets import load_fico
    >>> len(load_fico("/data", as_in_paper=True).X)  # doctest: +SKIP
    9871
    """
    fixed = ["ExternalRiskEstimate"]
    frame = _read("fico", folder, "RiskPerformance", fixed)
    levels = ["MaxDelq2PublicRecLast12M", "MaxDelqEver"]
    frame = frame.astype(dict.fromkeys(levels, "category"))
    if check_flag(as_in_paper, "as_in_paper"):
        frame = frame[(frame.drop(columns="RiskPerformance") != -9).any(axis=1)]
    description = "FICO / HELOC: heloc_dataset_v1.csv of FICO's Explainable Machine Learning Challenge."
    return _dataset(frame, "RiskPerformance", fixed, "Good", as_in_paper, description)


def load_german(folder: Folder = None, *, as_in_paper: bool = False) -> Dataset:
    """Load German Credit (Statlog): good and bad credit risks.

    1,000 applicants, 7 numbers and 13 features with levels. The data have no column for sex alone.

    Parameters
    ----------
    folder : str or path, optional
        Folder with ``german.csv.gz`` or ``german.csv``; by default the one that ``MCCE_DATA`` names.
    as_in_paper : bool
        Code each feature with levels 1 for its most frequent level and 0 for the rest.

    Examples
    --------
    >>> from mcce.datasets import load_german
    >>> load_german("/data").X.shape  # doctest: +SKIP
    (1000, 20)
    """
    fixed = ["purpose", "age", "personal_status_sex"]
    frame = _read("german", folder, "credit_risk", fixed)
    description = "German Credit (Statlog): UCI's german.data with readable levels."
    return _dataset(frame, "credit_risk", fixed, "good", as_in_paper, description)


def _read(name: str, folder: Folder, response: str, fixed: list[str]) -> pd.DataFrame:
    """Read a table of the paper; raise if there is no file, or another one."""
    place = folder if folder is not None else os.environ.get("MCCE_DATA")
    if not place:
        raise InputError(
            f"load_{name} needs the folder with {name}.csv.gz or {name}.csv; give folder, or set the environment "
            "variable MCCE_DATA to it."
        )
    paths = [Path(place).expanduser() / f"{name}{ending}" for ending in (".csv.gz", ".csv")]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        raise InputError(f"{str(place)!r} has neither {name}.csv.gz nor {name}.csv; give the folder that has it.")
    frame = pd.read_csv(path, keep_default_na=False, na_values=["NA", ""])
    absent = [column for column in [response, *fixed] if column not in frame]
    if absent:
        raise InputError(f"{str(path)!r} lacks the column(s) {listing(absent)}; it has {listing(frame.columns)}.")
    return frame


def _dataset(
    frame: pd.DataFrame, response: str, fixed: list[str], wanted: Any, two_levels: bool, description: str
) -> Dataset:
    """Return a table of the paper with categories; with `two_levels`, 1 for the most frequent level and else 0."""
    frame = frame.reset_index(drop=True)
    X, y = frame.drop(columns=response), frame[response]
    check_flag(two_levels, "as_in_paper")
    for name in columns_with_levels(X):
        X[name] = (X[name] == X[name].mode()[0]).astype(np.int64) if two_levels else X[name].astype("category")
    return Dataset(X, y, fixed, wanted, description)
