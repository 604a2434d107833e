"""Calls of `mcce explain` on the loans, and a table of customers."""

import numpy as np
import pandas as pd

from mcce.cli import main


def explain(folder, *more, train="train.csv", new="new.csv"):
    arguments = ["explain", "--train", str(folder / train), "--explain", str(folder / new)]
    return main([*arguments, "--n-samples", "300", *map(str, more)])


def trained(folder, *more, **files):
    return explain(folder, "--response", "default", "--decision", "False", *more, **files)


def customers(n):
    """Return customers with income, rent and savings; their names look like numbers."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "who": [f"{i:04d}" for i in range(n)],
            "income": rng.integers(10, 100, n),
            "rent": rng.integers(5, 30, n),
            "savings": rng.integers(0, 40, n),
            "job": rng.choice(["clerk", "driver", "teacher"], n),
            "size": rng.choice(["small", "medium", "large"], n),
        }
    )
