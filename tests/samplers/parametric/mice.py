"""Output of mice and MASS recorded by tests/fixtures/mice/make_methods.R."""

import json
from pathlib import Path

import pandas as pd

from mcce.table import Schema

MICE = json.loads((Path(__file__).parents[2] / "fixtures" / "mice" / "methods.json").read_text())


def air():
    """Return the givens, the target, and the rows to draw."""
    frame, new = pd.DataFrame(MICE["air"], dtype=float), pd.DataFrame(MICE["new"], dtype=float)
    schema = Schema.from_data(frame.drop(columns="Ozone"))
    target = Schema.from_data(frame[["Ozone"]]).encode(frame[["Ozone"]]).column(0)
    return schema.encode(frame.drop(columns="Ozone")), target, schema.encode(new)
