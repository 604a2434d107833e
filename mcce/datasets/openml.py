"""The paper's data sets as OpenML has them, brought into the layout of our files."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

from mcce.datasets.base import PaperSet
from mcce.exceptions import InputError


def fetch(data_id: int) -> pd.DataFrame:
    """Return a data set of OpenML; OSError or ValueError: no network, or an answer that is not the data."""
    from sklearn.datasets import fetch_openml

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="A network error occurred")  # told by the InputError
        bunch = fetch_openml(data_id=data_id, as_frame=True, parser="auto", n_retries=1, delay=0.1)
    frame: pd.DataFrame = bunch.frame
    return frame


def adapt(frame: pd.DataFrame, paperset: PaperSet) -> pd.DataFrame:
    """Bring OpenML's table into the layout of our file; its levels are not checked."""
    return {"adult": _adapt_adult, "german": _adapt_german}[paperset.name](frame, paperset)


def _adapt_adult(frame: pd.DataFrame, adult: PaperSet) -> pd.DataFrame:
    """Bring OpenML's data set 1590 into the layout of ``adult.csv.gz``.

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
    """Bring OpenML's data set 31 (credit-g) into the layout of ``german.csv.gz``."""
    if len(frame.columns) != len(german.openml_columns):
        raise InputError(f"OpenML data set 31 has {len(frame.columns)} columns, not {len(german.openml_columns)}.")
    columns = dict(zip(german.openml_columns, [*german.features, german.response], strict=True))
    frame = frame.rename(columns=columns)
    for theirs, labels in german.openml_columns.items():
        if labels:
            ours = columns[theirs]
            label_of = dict(zip(labels, german.levels[ours], strict=True))
            text = frame[ours].astype(str).str.strip("' ")
            frame[ours] = text.map(lambda v, label_of=label_of: label_of.get(v, v))
    frame[german.response] = frame[german.response].astype(str).str.strip("' ")
    return _integers(frame, german)


def _integers(frame: pd.DataFrame, paperset: PaperSet) -> pd.DataFrame:
    return frame.astype(dict.fromkeys(paperset.numeric, np.int64))
