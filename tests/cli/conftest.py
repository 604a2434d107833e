"""A folder with the loans and a model, and files with known values."""

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from mcce.datasets import load_airquality, load_loans

LEVELS = ["sex", "education", "employment", "housing"]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Threads are slower on tables this small, in particular on a busy machine."""
    with threadpool_limits(1):
        yield


@pytest.fixture(autouse=True, scope="module")
def quick_models():
    """Train the models of the command in fewer rounds than scikit-learn's 100."""
    with pytest.MonkeyPatch.context() as patch:
        for model in (HistGradientBoostingClassifier, HistGradientBoostingRegressor):
            patch.setattr(model.__init__, "__kwdefaults__", model.__init__.__kwdefaults__ | {"max_iter": 25})
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A training file, rows to explain, and a pipeline trained on the file as pandas reads it."""
    folder = tmp_path_factory.mktemp("files")
    loans = load_loans(600)
    train = loans.X.assign(default=loans.y)
    train.to_csv(folder / "train.csv", index=False)
    train.drop(columns="default").iloc[:25].to_csv(folder / "new.csv", index=False)
    read = pd.read_csv(folder / "train.csv")
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), LEVELS),
        remainder=StandardScaler(),
    )
    model = make_pipeline(encode, LogisticRegression(max_iter=1000))
    joblib.dump(model.fit(read.drop(columns="default"), read["default"]), folder / "model.joblib")
    air = load_airquality(dropna=True)
    air.X.assign(Ozone=air.y).to_csv(folder / "air.csv", index=False)
    return folder


class Rule:
    """Accept rows with 1000 or more."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, X):
        yes = (X["amount"].to_numpy(float) >= 1000).astype(float)
        return np.column_stack([1 - yes, yes])

    def predict(self, X):
        return self.classes_[self.predict_proba(X)[:, 1].astype(int)]


@pytest.fixture
def seen(tmp_path, monkeypatch):
    """Return the training table of the model; empty if it was not trained."""
    trained = {}

    def train(X, y, *_):
        trained.update(X=X, y=y)
        return Rule(), X

    monkeypatch.setattr("mcce.cli.fitting.train_model", train)
    monkeypatch.chdir(tmp_path)
    return trained
