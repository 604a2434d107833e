"""The four data sets of the paper's Experiment 1.

1. Read the columns, levels, response and origin of the data set from ``papersets.json``.
2. Find its rows: in the folder, else where ``MCCE_DATA`` points, else on OpenML, whose layout is converted.
3. Raise if columns, levels or types differ.
4. Drop the rows that the caller excludes, and code the levels.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from mcce.datasets.base import Dataset, PaperSet, read_paperset
from mcce.exceptions import InputError, listing
from mcce.table.dtypes import is_numeric


def fetch(data_id: int) -> pd.DataFrame:
    """Return a data set of OpenML; raise OSError or ValueError without network or for an invalid response."""
    from sklearn.datasets import fetch_openml

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="A network error occurred")  # reported by the InputError
        bunch = fetch_openml(data_id=data_id, as_frame=True, parser="auto", n_retries=1, delay=0.1)
    frame: pd.DataFrame = bunch.frame
    return frame


def adapt(frame: pd.DataFrame, paperset: PaperSet) -> pd.DataFrame:
    """Convert OpenML's table to the layout of our file; levels are not checked."""
    return {"adult": _adapt_adult, "german": _adapt_german}[paperset.name](frame, paperset)


def _adapt_adult(frame: pd.DataFrame, adult: PaperSet) -> pd.DataFrame:
    """Convert OpenML's data set 1590 to the layout of ``adult.csv.gz``.

    OpenML has the column education, names the response class, marks missing values as missing, and puts
    UCI's test part before its training part.
    """
    frame = frame.drop(columns="education").rename(columns={"class": adult.response})
    for column in [*adult.levels, adult.response]:
        text = frame[column].astype(object)
        frame[column] = text.where(text.notna(), "?").astype(str).str.strip()
    frame = _integers(frame, adult)
    n_test = 16281
    if len(frame) == 48842 and frame["fnlwgt"].iloc[[0, n_test]].tolist() == [226802, 77516]:
        frame = pd.concat([frame.iloc[n_test:], frame.iloc[:n_test]], ignore_index=True)
    return frame


def _adapt_german(frame: pd.DataFrame, german: PaperSet) -> pd.DataFrame:
    """Convert OpenML's data set 31 (credit-g) to the layout of ``german.csv.gz``."""
    if len(frame.columns) != len(german.openml_columns):
        raise InputError(f"OpenML data set 31 has {len(frame.columns)} columns, not {len(german.openml_columns)}.")
    columns = dict(zip(german.openml_columns, [*german.features, german.response], strict=True))
    frame = frame.rename(columns=columns)
    for openml_name, labels in german.openml_columns.items():
        if labels:
            own_column = columns[openml_name]
            label_of = dict(zip(labels, german.levels[own_column], strict=True))
            text = frame[own_column].astype(str).str.strip("' ")
            frame[own_column] = text.map(lambda v, label_of=label_of: label_of.get(v, v))
    frame[german.response] = frame[german.response].astype(str).str.strip("' ")
    return _integers(frame, german)


def _integers(frame: pd.DataFrame, paperset: PaperSet) -> pd.DataFrame:
    return frame.astype(dict.fromkeys(paperset.numeric, np.int64))


def load_adult(folder: str | os.PathLike[str] | None = None, *, binarise: bool = False) -> Dataset:
    """Load Adult (Census Income, 1994): who earns more than 50,000 dollars.

    48842 people, UCI's training part (rows 0 to 32560) before its test part; 6 continuous and 7 categorical
    features. ``education`` is left out as in the paper: it relabels ``education-num``. Missing values are
    the level ``"?"`` of workclass, occupation and native-country.

    Parameters
    ----------
    folder
        Folder with ``adult.csv.gz`` or ``adult.csv``. Without it, the folder that the environment variable
        ``MCCE_DATA`` names is searched, then OpenML (data set 1590).
    binarise
        Code every categorical feature 1 for its most frequent level and 0 for the rest, as the paper does.

    Returns
    -------
    Dataset
        ``y`` is income, ``desired`` is ``">50K"``, ``fixed`` age and sex.

    Examples
    --------
    >>> from mcce.datasets import load_adult
    >>> load_adult("path/to/data")  # doctest: +SKIP
    Dataset 'adult': 48842 rows, 13 features (6 numeric, 7 categorical)
      response 'income', wanted '>50K' (23.9% of the rows)
      fixed 'age', 'sex'
    """
    adult = read_paperset("adult")
    return _dataset(adult, _table(adult, folder), binarise)


def load_gmc(
    folder: str | os.PathLike[str] | None = None,
    *,
    binarise: bool = False,
    dropna: bool = False,
    trim: float | None = None,
) -> Dataset:
    """Load Give Me Some Credit (Kaggle, 2011): who gets into serious arrears within two years.

    150000 borrowers, 10 continuous features. MonthlyIncome (29731) and NumberOfDependents (3924) are missing
    in some rows; 120269 rows are complete.

    Parameters
    ----------
    folder
        Folder with ``gmc.csv.gz`` or ``gmc.csv``; without it, the one that ``MCCE_DATA`` names.
    binarise
        Without effect, as there is no categorical feature; for a common interface.
    dropna
        Keep complete rows only.
    trim
        Keep complete rows whose features all lie less than `trim` standard deviations from their means, both
        taken over the complete rows (divisor n). ``trim=3`` gives the 115527 rows that CARLA and the paper
        use.

    Returns
    -------
    Dataset
        ``y`` is SeriousDlqin2yrs in Kaggle's coding (1 = arrears; the paper flips it), ``desired`` is 0,
        ``fixed`` age.

    Examples
    --------
    >>> from mcce.datasets import load_gmc
    >>> len(load_gmc("path/to/data", trim=3).X)  # doctest: +SKIP
    115527
    """
    if trim is not None and not trim > 0:
        raise InputError(f"load_gmc needs trim, a number of standard deviations, above 0; got {trim!r}.")
    gmc = read_paperset("gmc")
    frame = _table(gmc, folder)
    if dropna or trim is not None:
        frame = frame.dropna()
    if trim is not None:
        features = frame[gmc.features]
        z = (features - features.mean()) / features.std(ddof=0)
        frame = frame[(z.abs() < trim).all(axis=1)]
    return _dataset(gmc, frame, binarise)


def load_fico(
    folder: str | os.PathLike[str] | None = None, *, binarise: bool = False, drop_special: bool = False
) -> Dataset:
    """Load FICO / HELOC (Explainable Machine Learning Challenge, 2018): who repays a home equity credit.

    10459 applicants, 21 continuous and 2 categorical features, all integer codes. -7, -8 and -9 are special
    values (condition not met; no usable trades; no bureau record).

    Parameters
    ----------
    folder
        Folder with ``fico.csv.gz`` or ``fico.csv``; without it, the one that ``MCCE_DATA`` names.
    binarise
        Code the two categorical features 1 for the most frequent level and 0 for the rest, as the paper does.
    drop_special
        Drop the 588 rows that are -9 in every feature, as CARLA and the paper do.

    Returns
    -------
    Dataset
        ``y`` is RiskPerformance, ``desired`` is ``"Good"``, ``fixed`` ExternalRiskEstimate.

    Examples
    --------
    >>> from mcce.datasets import load_fico
    >>> len(load_fico("path/to/data", drop_special=True).X)  # doctest: +SKIP
    9871
    """
    fico = read_paperset("fico")
    frame = _table(fico, folder)
    if drop_special:
        frame = frame[(frame[fico.features] != -9).any(axis=1)]
    return _dataset(fico, frame, binarise)


def load_german(folder: str | os.PathLike[str] | None = None, *, binarise: bool = False) -> Dataset:
    """Load German Credit (Statlog): good and bad credit risks.

    1000 applicants, 7 continuous and 13 categorical features, the latter with readable levels in UCI's order
    but unordered, since some of them mix a scale with a level outside it.

    Parameters
    ----------
    folder
        Folder with ``german.csv.gz`` or ``german.csv``. Without it, the folder that the environment variable
        ``MCCE_DATA`` names is searched, then OpenML (data set 31).
    binarise
        Code every categorical feature 1 for its most frequent level and 0 for the rest, as the paper does.

    Returns
    -------
    Dataset
        ``y`` is credit_risk, ``desired`` is ``"good"``, ``fixed`` purpose, age and personal_status_sex (the
        data have no column for sex alone).

    Examples
    --------
    >>> from mcce.datasets import load_german
    >>> load_german("path/to/data").X["housing"].cat.categories.tolist()  # doctest: +SKIP
    ['rent', 'own', 'for free']
    """
    german = read_paperset("german")
    return _dataset(german, _table(german, folder), binarise)


def _dataset(paperset: PaperSet, frame: pd.DataFrame, binarise: bool) -> Dataset:
    frame = frame.reset_index(drop=True)
    X = frame[paperset.features].copy()
    for column, levels in paperset.levels.items():
        if binarise:
            X[column] = (X[column] == X[column].mode()[0]).astype(np.int64)
        else:
            X[column] = pd.Categorical(X[column], categories=levels)
    coding = ", categorical features coded 1 for the most frequent level" if binarise else ""
    description = f"{paperset.title}, {len(X)} rows{coding}. From {paperset.origin}."
    return Dataset(paperset.name, X, frame[paperset.response], list(paperset.fixed), paperset.desired, description)


def _table(paperset: PaperSet, folder: str | os.PathLike[str] | None) -> pd.DataFrame:
    """Find the rows of `paperset`: in the folder, else where MCCE_DATA points, else on OpenML; checked."""
    tried = []
    for label, place in (("folder", folder), ("MCCE_DATA", os.environ.get("MCCE_DATA") or None)):
        if place is None:
            tried.append(f"{label} is not set")
            continue
        for ending in (".csv.gz", ".csv"):
            path = Path(place).expanduser() / f"{paperset.name}{ending}"
            if path.is_file():
                frame = pd.read_csv(path, keep_default_na=False, na_values=["NA", ""])
                return _checked(paperset, frame, str(path))
        tried.append(f"{label} is {str(place)!r}, without such a file")
        if label == "folder":
            raise InputError(_not_found(paperset, tried))
    if paperset.openml_id is None:
        raise InputError(_not_found(paperset, tried))
    where = f"OpenML data set {paperset.openml_id}"
    try:
        frame = fetch(paperset.openml_id)
    except (OSError, ValueError) as error:
        tried.append(f"{where} could not be fetched: {error}")
        raise InputError(_not_found(paperset, tried)) from error
    return _checked(paperset, adapt(frame, paperset), where)


def _not_found(paperset: PaperSet, tried: list[str]) -> str:
    return (
        f"{paperset.title}: no {paperset.name}.csv.gz or {paperset.name}.csv ({'; '.join(tried)}). "
        f"Give load_{paperset.name} the folder that holds it, or set MCCE_DATA to that folder. "
        f"The data are {paperset.origin}; save them as CSV with the columns "
        f"{listing([*paperset.features, paperset.response], most=99)}."
    )


def _checked(paperset: PaperSet, frame: pd.DataFrame, where: str) -> pd.DataFrame:
    """Raise if the columns, levels or types of a table are not those of `paperset`."""
    expected = [*paperset.features, paperset.response]
    missing = [c for c in expected if c not in frame]
    surplus = [c for c in frame if c not in expected]
    if missing or surplus:
        raise InputError(
            f"{where} does not have the columns of {paperset.title}: missing {listing(missing)}, "
            f"not expected {listing(surplus)}. The data are {paperset.origin}."
        )
    for column, levels in {**paperset.levels, paperset.response: [paperset.unwanted, paperset.desired]}.items():
        unknown = [v for v in frame[column].unique() if v not in levels]
        if unknown:
            raise InputError(
                f"column {column!r} of {where} holds {listing(unknown)}; known: {listing(levels)}. "
                "Recode it, or leave the rows out."
            )
    for column in paperset.numeric:
        if not is_numeric(frame[column].dtype):
            raise InputError(f"column {column!r} of {where} must be numeric; it has dtype {frame[column].dtype}.")
    return frame[expected]
