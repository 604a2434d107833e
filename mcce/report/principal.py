"""Principal reasons as a table, a sentence and the parts of a letter; `mcce.explain.principal` finds them.

A reason uses the user's text in ``names["reasons"]`` if there is one, otherwise the feature and the person's value.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from mcce.report.languages import Texts, read_texts
from mcce.report.names import Names
from mcce.report.rows import Result

ALONE, TOGETHER, NONE, NO_EFFECT, FIXED = "alone", "together", "none", "no effect", "fixed"  # values of `repair`
MOST = 4  # reasons, as regulators recommend


def repaired_by(repair: pd.Series[Any], contributions: pd.DataFrame) -> pd.Series[Any]:
    """Return `repair`, updated by the contributions of the changes of a counterfactual."""
    enough, needed = (repair.index.isin(contributions.index[contributions[name]]) for name in ("enough", "needed"))
    repaired = repair.mask(repair.isin([NONE, NO_EFFECT]) & needed, TOGETHER)
    return repaired.mask(enough, ALONE)


def _is_relevant(table: pd.DataFrame) -> pd.Series[bool]:
    """Mark the features that counted against the decision by more than the Monte Carlo error."""
    return table["shapley"] > 2.0 * table["standard_error"]


def reasons_table(
    table: pd.DataFrame, own: pd.DataFrame, fixed: Sequence[Hashable], names: Names, n: int | None
) -> pd.DataFrame:
    """Return the first `n` reasons with value, code and text; without `n` all features, fixed ones last."""
    if n is not None:
        table = table[_is_relevant(table) & table["repair"].isin([ALONE, TOGETHER])].head(n)
    else:
        absent = [name for name in own.columns if name in fixed]
        table = table.reindex([*table.index, *absent]).fillna({"repair": FIXED})
    table = table.rename_axis("feature")
    cells = own.astype(object)
    values = [cells[name].iloc[0] for name in table.index]
    reasons = [names.reason(name) for name in table.index]
    texts = [
        text or f"{names.label(name)} {names.text(name, value)}"
        for (_, text), name, value in zip(reasons, table.index, values)
    ]
    columns = {"value": values, "code": [code for code, _ in reasons], "text": texts}
    table = table.assign(**{name: pd.Series(each, index=table.index, dtype=object) for name, each in columns.items()})
    order = ["value", "shapley", "standard_error", "share", "effective_draws", "repair", "code", "text"]
    return table[order]


@dataclass(frozen=True)
class Reasons:
    """The reasons of one refusal in words: those to state, and those that mattered but cannot be changed."""

    stated: tuple[str, ...]
    unchangeable: tuple[str, ...]

    @classmethod
    def from_table(cls, table: pd.DataFrame, names: Names, texts: Texts, n: int = MOST) -> Reasons:
        """Read the table of all features."""
        relevant = table[_is_relevant(table)]
        points = []
        for name, value, code in (
            relevant.loc[relevant["repair"].isin([ALONE, TOGETHER]), ["value", "code"]].head(n).itertuples()
        ):
            text = names.reason(name)[1] or texts.fill(
                "reasons.own", feature=names.label(name), value=names.text(name, value)
            )
            points.append(texts.fill("reasons.coded", text=text, code=code) if code else text)
        without = [names.label(name) for name in relevant.index[relevant["repair"] == NONE]]
        return cls(tuple(points), tuple(without))

    def sentences(self, texts: Texts) -> tuple[str, str]:
        """Return the sentence before the reasons, and the one on reasons that cannot be changed, empty without any."""
        first = texts.fill("reasons.found", len(self.stated)) if self.stated else texts.fill("reasons.none")
        if not self.unchangeable:
            return first, ""
        others = texts.fill("reasons.unchangeable", len(self.unchangeable), names=texts.listed(self.unchangeable))
        return first, others[:1].upper() + others[1:]


def reasons_sentence(found: Result, id: Hashable, n: int = MOST) -> str:
    """Return the principal reasons of a refusal in plain words.

    Parameters
    ----------
    found : Counterfactuals
    id : hashable
        A label of the index of `found.factuals`.
    n : int
        The largest number of reasons.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(300).X[["age", "salary", "savings"]]
    >>> model = lambda rows: rows["salary"] > 60_000
    >>> explainer = mcce.MCCE(model, decision=True, fixed=["age"], random_state=1).fit(X)
    >>> found = explainer.explain(X[X["salary"] < 50_000].head(1), sparse=True)
    >>> print(mcce.report.reasons_sentence(found, next(iter(found))))
    This counted most against the application, and changing it could lead to another decision: salary: 40,600.
    """
    texts = read_texts()
    reasons = Reasons.from_table(found.principal_reasons(id, every=True), found.names, texts, n)
    first, last = reasons.sentences(texts)
    return " ".join(part for part in (first, "; ".join(reasons.stated) + "." if reasons.stated else "", last) if part)
