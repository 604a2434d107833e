"""A small bank: an explainer, its customers, and the messages about them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

import mcce
from mcce.explore import ExplorerSession

NASTY = '<script>document.title="run"</script>'
GRANTED = mcce.Interval(0, 0.3, closed="left", label="the loan is granted")


def risk(rows):
    return 1 / (1 + np.exp(rows["salary"] / 20_000 - 2 + rows["savings"] / 40_000 - rows["loan_amount"] / 20_000))


class Moody:
    """A model that raises on request."""

    raises = False

    def predict(self, rows):
        if self.raises:
            raise RuntimeError("the scoring service is down")
        return risk(rows)


def people(n: int = 300) -> pd.DataFrame:
    """Return rows with executable names, one such column name, and a column of dates."""
    X = mcce.datasets.load_loans(n).X.drop(columns=["defaulted_last_year", "housing"])
    since = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(n) * 37 % 1500, unit="D")
    X = X.assign(**{"customer since": since, NASTY: np.array(["it's", 'a "b"', NASTY])[np.arange(n) % 3]})
    return X.rename(index=lambda i: f"{NASTY} {i}")


def explainer(model=risk, X=None):
    fixed = ["age", "sex"]
    return mcce.MCCE(model, decision=GRANTED, fixed=fixed, random_state=1, n_jobs=1).fit(people() if X is None else X)


def send(session: ExplorerSession, name: str, /, **more):
    """Return the answer to a message, which must be valid JSON and not an error."""
    answer = json.loads(json.dumps(session.answer({"ask": name, **more}), allow_nan=False))
    assert "error" not in answer, answer
    return answer
