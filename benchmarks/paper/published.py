"""The paper's own numbers, by the label of the table in its LaTeX source (``published.json``).

`sec:quality` has the discriminator's accuracies, which the text of that section gives; all others are tables.
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

TITLES = {"adult": "Adult", "gmc": "GMC", "fico": "FICO", "german": "German"}


def published(label: str) -> pd.DataFrame:
    """Return a table of the paper; means and standard deviations are columns of their own (L0, L0_sd)."""
    tables = json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))
    return pd.DataFrame(tables[label])
