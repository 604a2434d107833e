"""A folder with a model, tables and a job; toml is written by hand, as users do."""

import joblib
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

HEAD = 'model = "model.joblib"\ntrain = "train.csv"\nrows = "rows.csv"\n'
READ = '[read_csv]\nindex_col = "id"\n'
FIT = '[MCCE]\nfixed = ["age"]\nrandom_state = 1\n'
EXPLAIN = "[explain]\nn_samples = 60\n"


def table(n=200):
    """Return people; income is for the most part twice the rent, and the score is of income and savings."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(18, 80, n), "income": rng.lognormal(10, 0.5, n).round(-2)})
    return X.assign(savings=rng.exponential(5000, n).round(), debts=rng.integers(0, 4, n)).rename_axis("id")


def write_folder(path):
    """Write the model, the training rows and five refused rows."""
    X = table()
    y = np.log(X["income"]) + X["savings"] / 5000 - X["debts"] > 9.5
    model = LogisticRegression(max_iter=10_000).fit(X, y)
    joblib.dump(model, path / "model.joblib")
    X.to_csv(path / "train.csv")
    X[model.predict_proba(X)[:, 1] < 0.5].head(5).to_csv(path / "rows.csv")
    return path


def write_job(path, *parts, name="job.toml"):
    """Write a job; without parts, that of `mcce --help`'s shape."""
    job = path / name
    job.write_text("\n".join(parts or (HEAD, READ, FIT, EXPLAIN)), encoding="utf-8")
    return str(job)
