"""Rules for many people, in words, as a table and in a picture (`mcce.explain.group_rules` finds them).

For each rule the table has the size of its group, the number of people that the rule reaches, and over these the means
of the Gower distance, the number of changes and the plausibility. The row "all" covers all people without the wanted
decision, each with the cheapest rule that reaches them. Intervals are bootstrap percentiles over people
(`mcce.report.groups`), conditional on the rules: the selection of rules is not repeated, so coverage may be slightly
lower for new people. `RuleSet.apply` gives the table for people who took no part in the selection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from mcce.base.arrays import Floats
from mcce.base.canvas import DARK, FONT, SMALL, WIDTH, ink, new_axes, write_caption
from mcce.exceptions import InputError
from mcce.report.groups import figures
from mcce.report.names import Names, fold, listed, value_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mcce.table import Data

MEASURES = ("coverage", "gower", "L0", "plausibility")


class Term(NamedTuple):
    """A condition of a group, or a change.

    Attributes
    ----------
    feature : the column.
    how : "is", "below" or "at least" for a condition; "to", "by", "at least" or "at most" for a change.
    value : the value; for "by", the step.
    """

    feature: Any
    how: str
    value: Any


@dataclass(frozen=True)
class GroupRule:
    """If all conditions of `group` hold for a person, make all changes of `change`.

    Examples
    --------
    >>> rule = GroupRule((Term("age", "below", 30),), (Term("loan", "by", -20_000), Term("home", "to", "rented")))
    >>> rule.group_words(Names()), rule.change_words(Names())
    ('If age is below 30', 'reduce loan by 20,000 and change home to rented')
    """

    group: tuple[Term, ...]
    change: tuple[Term, ...]

    def group_words(self, names: Names) -> str:
        """Return the group in words."""
        texts = [f"{names.label(f)} is {how} {names.text(f, v)}".replace(" is is ", " is ") for f, how, v in self.group]
        return f"If {listed(texts)}" if texts else "Everyone"

    def change_words(self, names: Names) -> str:
        """Return the change in words."""
        return listed([_change_words(term, names) for term in self.change])


def _change_words(term: Term, names: Names) -> str:
    feature, how, value = term
    label = names.label(feature)
    if how == "to":
        return f"change {label} to {names.text(feature, value)}"
    if how == "by":
        return f"{'raise' if value > 0 else 'reduce'} {label} by {names.text(feature, abs(value))}"
    return f"{'raise' if how == 'at least' else 'reduce'} {label} to {how} {names.text(feature, value)}"


@dataclass(frozen=True, repr=False, eq=False)
class RuleSet:
    """Few rules for many people, as `MCCE.group_rules` and `Counterfactuals.rules` return them.

    Attributes
    ----------
    rules : tuple of GroupRule
        The rules; each has `group` and `change`, tuples of (feature, how, value).
    table : DataFrame
        A row for each rule, counted from 1, and "all": `group` and `change` in words; `people`, how many the group
        holds; `reached`, how many the rule reaches; `coverage`, their share; over those reached the means of `gower`,
        `L0` and `plausibility`; and the ends of the intervals, as in `coverage_low` and `coverage_high`.
    found : Counterfactuals
        The changed row of each person reached, by the cheapest rule. ``found.by("sex")`` compares groups of people.
    rule_of : Series
        By id, the number of that rule; 0 for people that no rule reaches.
    confidence : float
        The coverage of the intervals.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(600).X[["age", "salary", "savings", "housing"]]
    >>> def score(rows):
    ...     return (rows["salary"] + rows["savings"]) / 200_000
    >>> explainer = mcce.MCCE(score, fixed=["age", "housing"], random_state=1).fit(X)
    >>> rules = explainer.explain(X.head(150), sparse=True, n_samples=200).rules(k=2)
    >>> len(rules), rules.table.index.tolist()
    (2, [1, 2, 'all'])
    >>> len(rules.sentences()), len(rules.plot().patches)
    (2, 3)
    """

    rules: tuple[GroupRule, ...]
    table: pd.DataFrame
    found: Any
    rule_of: pd.Series[Any]
    confidence: float

    def __len__(self) -> int:
        return len(self.rules)

    def apply(self, X: Data) -> RuleSet:
        """Apply the same rules to other rows, such as people who took no part in their selection.

        Constraints, bounds and the floor are those with which the rules were found. Rows that already have the wanted
        decision are not counted.

        Parameters
        ----------
        X : table
            Rows with the training columns.

        Returns
        -------
        RuleSet
            The same rules; `table`, `found` and `rule_of` refer to the rows of `X`.

        Examples
        --------
        >>> import mcce
        >>> X = mcce.datasets.load_loans(400).X[["age", "salary", "savings"]]
        >>> def score(rows):
        ...     return (rows["salary"] + rows["savings"]) / 200_000
        >>> explainer = mcce.MCCE(score, fixed=["age"], random_state=1).fit(X)
        >>> rules = explainer.group_rules(X[:200], k=2, n_samples=200)
        >>> held_out = rules.apply(X[200:])
        >>> held_out.rules == rules.rules, bool(held_out.rule_of.index.isin(X.index[200:]).all())
        (True, True)
        """
        if self.found._questions.apply_rules is None:
            raise InputError("these rules were loaded from a file, without the model; find them again to apply them.")
        applied: RuleSet = self.found._questions.apply_rules(X)
        return applied

    def sentences(self) -> list[str]:
        """Return each rule in words, with its coverage and cost."""
        return [self._sentence(row) for _, row in self.table.iloc[:-1].iterrows()]

    def _sentence(self, row: pd.Series[Any]) -> str:
        reached = f"{row['reached']} of {row['people']}"
        interval = f", {_interval(row, 'coverage')}" if not np.isnan(row["coverage_low"]) else ""
        cost = (
            f"mean Gower distance {value_text(row['gower'], 2)}, mean plausibility {value_text(row['plausibility'], 2)}"
        )
        share = value_text(row["coverage"], 2)
        return f"{row['group']}: {row['change']}. It reaches the decision for {reached} ({share}{interval}); {cost}."

    def _headline(self) -> str:
        whole = self.table.iloc[-1]
        count = f"{len(self)} rules reach" if len(self) != 1 else "1 rule reaches"
        percent = f"{100 * self.confidence:.12g} %"
        interval = f", {percent} interval {_interval(whole, 'coverage')}" if whole["people"] > 1 else ""
        share = value_text(whole["coverage"], 2)
        return f"{count} the decision for {whole['reached']} of {whole['people']} people ({share}{interval})"

    def __repr__(self) -> str:
        return "\n".join([self._headline(), *(f"{i}. {text}" for i, text in enumerate(self.sentences(), 1))])

    def _repr_html_(self) -> str:
        rules = "".join(f"<li>{escape(text)}</li>" for text in self.sentences())
        return f"<p><b>{escape(self._headline())}</b></p><ol>{rules}</ol>"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the share of people that each rule reaches, with its interval, the rule in words above it.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw. By default a new figure.
        """
        n = len(self.table)
        ax = new_axes(WIDTH, 0.9 + 0.75 * n) if ax is None else ax
        for place, (_, row) in enumerate(self.table.iterrows()):
            ax.barh(place, row["coverage"], height=0.3, color=DARK, alpha=1.0 if place == n - 1 else 0.6)
            ax.plot([row["coverage_low"], row["coverage_high"]], [place, place], color=ink(), linewidth=1.2)
            words = "all rules together" if place == n - 1 else f"{row['group']}: {row['change']}"
            text = f"{fold(words, 66)}  ({row['reached']} of {row['people']})"
            ax.text(0.0, place - 0.2, text, fontsize=SMALL, va="bottom", parse_math=False)
        ax.set_xlim(0.0, 1.0)
        ax.set_ylim(n - 0.7, -0.75)
        ax.set_yticks(range(n), [*map(str, range(1, n)), ""], fontsize=FONT)
        ax.tick_params(axis="y", length=0)
        ax.tick_params(axis="x", labelsize=SMALL)
        ax.spines[["top", "right", "left"]].set_visible(False)
        percent = f"{100 * self.confidence:.12g} %"
        write_caption(ax, f"Share of the group that the rule reaches, with {percent} interval over people")
        return ax


def _interval(row: pd.Series[Any], name: str) -> str:
    return f"{value_text(row[f'{name}_low'], 2)} to {value_text(row[f'{name}_high'], 2)}"


def rule_table(
    rules: Sequence[GroupRule], parts: Sequence[Floats], names: Names, confidence: float, seed: int
) -> pd.DataFrame:
    """Return the table of a `RuleSet`.

    `parts` has for each rule, and then for all together, an array with a row for each person in the group: whether
    reached, Gower distance, L0 and plausibility, NaN for those not reached.
    """
    lines = []
    texts = [(rule.group_words(names), rule.change_words(names)) for rule in rules]
    for (group, change), values in zip([*texts, ("all", "")], parts):
        found = figures(values, np.ones(len(values), dtype=bool), confidence, seed)
        line: dict[str, Any] = {"group": group, "change": change, "people": len(values)}
        line["reached"] = int(values[:, 0].sum())
        for name, (mean, low, high) in zip(MEASURES, found[["mean", "low", "high"]].to_numpy()):
            line |= {name: mean, f"{name}_low": low, f"{name}_high": high}
        lines.append(line)
    index = pd.Index([*range(1, len(rules) + 1), "all"], dtype=object, name="rule")
    return pd.DataFrame(lines, index=index)
