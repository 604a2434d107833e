"""What all loaders return: a table, its response, and a decision about it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler


def columns_with_levels(X: pd.DataFrame) -> list[Any]:
    """Return the names of the columns that are not of numbers or booleans."""
    return [name for name in X if not pd.api.types.is_numeric_dtype(X[name].dtype)]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table and what `mcce.MCCE` needs to explain a model of it.

    Attributes
    ----------
    X : DataFrame of the features
    y : Series, the response in its original coding
    fixed : features that no counterfactual may change
    decision : the wanted decision, for `mcce.MCCE`: an interval of predictions, or a label
    description : where the table comes from, and what was done to it

    Examples
    --------
    >>> from mcce.datasets import load_loans
    >>> loans = load_loans(500)
    >>> loans
    Dataset(500 rows, 10 features, response 'default', fixed ['age', 'sex'], decision (0.0, 0.1))
    >>> loans.model.predict_proba(loans.X).shape
    (500, 2)
    """

    X: pd.DataFrame
    y: pd.Series[Any]
    fixed: list[str]
    decision: Any
    description: str

    def __repr__(self) -> str:
        rows, features = self.X.shape
        return (
            f"Dataset({rows} rows, {features} features, response {str(self.y.name)!r}, fixed {self.fixed}, "
            f"decision {self.decision!r})"
        )

    @cached_property
    def model(self) -> Pipeline:
        """A fitted regression, logistic for levels and linear for numbers; missing numbers are imputed."""
        is_number = pd.api.types.is_numeric_dtype(self.y.dtype) and self.y.nunique() > 2
        design = make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), columns_with_levels),
            remainder=make_pipeline(SimpleImputer(), StandardScaler()),
        )
        model = make_pipeline(design, LinearRegression() if is_number else LogisticRegression(max_iter=1000))
        has_response = self.y.notna()
        return model.fit(self.X[has_response], self.y[has_response])
