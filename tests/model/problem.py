"""Four rows with known scores, and models with given answers."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd

from mcce.model.decisions import resolve_decision

ROWS = pd.DataFrame({"x": [-1.0, 0.0, 0.5, 2.0]}, index=["a", "b", "c", "d"])


SIGMOID = 1 / (1 + np.exp(-ROWS["x"].to_numpy()))


class Says:
    """A model whose methods return the given values: Says(predict_proba=..., classes_=...)."""

    def __init__(self, classes_=None, **replies):
        if classes_ is not None:
            self.classes_ = classes_
        self.queried = 0
        for method, reply in replies.items():
            setattr(self, method, functools.partial(self._reply, reply))

    def _reply(self, reply, frame):
        self.queried += 1
        return reply(frame) if callable(reply) else reply


def two_columns(frame):
    """P(class at position 0), P(class at position 1), with the sigmoid of x at position 1."""
    p = 1 / (1 + np.exp(-frame["x"].to_numpy()))
    return np.column_stack([1 - p, p])


def query(decision, model, frame=ROWS):
    return resolve_decision(decision, model).evaluate(frame, "the test rows")
