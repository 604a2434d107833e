"""The paper's numbers, by the label of the table in its LaTeX source (``published.json``).

`sec:quality` has the accuracies of the discriminator, from the text of that section; all others are tables.
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

TITLES = {"adult": "Adult", "gmc": "GMC", "fico": "FICO", "german": "German"}


def published(label: str) -> pd.DataFrame:
    """Return a table of the paper; means and standard deviations are separate columns (L0, L0_sd)."""
    tables = json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))
    return pd.DataFrame(tables[label])
