"""Results made by hand."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pandas as pd

from mcce.counterfactuals import Counterfactuals

DECISION = "score of class 1 in [0.5, 1]"


COLUMNS = ["age", "salary", "defaulted", "home"]


def around(before: pd.DataFrame, after: pd.DataFrame, per_factual: int = 1, **more) -> Counterfactuals:
    """A result with `after` as counterfactuals of `before`, with arbitrary measures."""
    ids = np.repeat(before.index, per_factual)
    ranks = np.tile(np.arange(1, per_factual + 1), len(before))
    frame = after.set_axis(pd.MultiIndex.from_arrays([ids, ranks], names=["id", "rank"]))
    measures = pd.DataFrame(0.5, index=frame.index, columns=["prediction", "L0", "gower", "gower_sum"])
    return Counterfactuals(
        frame=frame,
        measures=measures,
        factuals=before,
        unexplained=pd.DataFrame({"reason": [], "prediction": []}, index=before.index[:0]),
        factual_predictions=pd.Series(0.1, index=before.index),
        decision=DECISION,
        **more,
    )


class Cells(HTMLParser):
    """Rows of a table as (text, class, title) of each cell."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[list[str]]] = []
        self.tags: set[str] = set()
        self._inside = False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self._inside = True
            self.rows[-1].append(["", dict(attrs).get("class", ""), dict(attrs).get("title", "")])

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self._inside = False

    def handle_data(self, data):
        if self._inside:
            self.rows[-1][-1][0] += data
