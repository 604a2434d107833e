"""Four rows and models that answer about them."""

import numpy as np
import pandas as pd

from mcce.model import Query
from mcce.table import Schema

ROWS = pd.DataFrame({"x": [-1.0, 0.0, 0.5, 2.0]})
SCHEMA = Schema.from_data(ROWS)
MATRIX = SCHEMA.encode(ROWS).matrix
SIGMOID = 1 / (1 + np.exp(-ROWS["x"].to_numpy()))


def two_columns(frame):
    """Return the probabilities of two classes."""
    p = 1 / (1 + np.exp(-np.asarray(frame)[:, 0]))
    return np.column_stack([1 - p, p])


class Says:
    """A model with the given methods: a fixed reply for each, or a function."""

    def __init__(self, classes=None, **replies):
        if classes is not None:
            self.classes_ = classes
        for name, reply in replies.items():
            setattr(self, name, reply if callable(reply) else lambda frame, reply=reply: reply)


def ask(decision, model, rows=MATRIX, **options):
    """Query a model about the four rows."""
    return Query(model, decision, SCHEMA, **options)(rows, "the test rows")
