"""What is written about a result: the sentence of one counterfactual, a letter to one person, a page for a browser."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mcce.base.files import written_whole
from mcce.exceptions import InputError, spell_all
from mcce.report.changes import care_sentence, change_sentence, floor_of, is_below, why_unexplained
from mcce.report.html import result_page
from mcce.report.letter import TITLE, Case, Letter, plain_rule, write_letter
from mcce.report.names import PREDICTION
from mcce.results import Results
from mcce.table.checks import find_labels

AUDIENCES = ("analyst", "customer")
PAGE_TITLE = "Counterfactuals"


class Written(Results):
    """The part of a `Counterfactuals` that writes."""

    def below_floor(self) -> pd.Series[Any]:
        """Return which rows are less plausible than was asked for: those of factuals for which nothing else was found.

        None is, unless `explain` was called with `sparse=True` and a `floor`.
        """
        return is_below(self.measures, floor_of(self.settings))

    def sentence(self, id: Hashable, rank: int = 1) -> str:
        """Return one counterfactual in plain words; for an unexplained factual, why there is none.

        A second sentence warns of a counterfactual below the floor of plausibility that was asked for.

        Parameters
        ----------
        id : hashable
            A label of the index of `factuals`.
        rank : int
            Which of its counterfactuals, 1 the best.
        """
        factual, row = self._find(id, rank)
        if row is None:
            return why_unexplained(self.unexplained, id)
        now, then = self.factual_predictions.iloc[factual], self.measures["prediction"].iloc[row]
        old, new = self.names.pair(PREDICTION, now, then, 3)
        said = change_sentence(self._changes_of(row), self.decision, old, new)
        floor = floor_of(self.settings)
        if floor is not None and self.below_floor().iloc[row]:
            said += " " + care_sentence(float(self.measures["plausibility"].iloc[row]), floor)
        return said

    def sentences(self, rank: int = 1) -> pd.Series[Any]:
        """Return `sentence` of every factual, by id; those without a counterfactual say why.

        Examples
        --------
        >>> import mcce
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
        >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
        >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
        >>> print(explainer.explain(X.head(2), sparse=True).sentences().iloc[0])
        With savings 36,500 instead of 12,000, the decision would have been the wanted one (probability of class True at
        least 0.5: 1 instead of 0).
        """
        said = [self.sentence(id, rank) for id in self.factuals.index]
        return pd.Series(said, index=self.factuals.index, name="sentence", dtype=object)

    def letter(
        self,
        id: Hashable,
        *,
        title: str = TITLE,
        intro: str | Sequence[str] = (),
        closing: str | Sequence[str] = (),
        html: bool = False,
    ) -> str:
        """Return a letter to the person whom a factual is about: only what would have to differ, and what that is not.

        The counterfactuals of the factual stand in it, one or the other, the best of those that change the same
        features; without any it says so. It is in the words
        that `MCCE` was given: `labels`, `units`, `formats` and the `label` of the decision. What the model predicts is
        told only if it has a label: ``labels={"prediction": "probability of default"}``.

        Parameters
        ----------
        id : hashable
            A label of the index of `factuals`.
        title : str
        intro, closing : str or sequence of str
            Your own paragraphs, before and after.
        html : bool
            Whether to return a page for a browser, one sheet when printed, instead of plain text.

        Examples
        --------
        >>> import mcce
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
        >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
        >>> granted, units = mcce.Interval(0.5, 1, label="the loan is granted"), {"salary": "EUR", "savings": "EUR"}
        >>> explainer = mcce.MCCE(model, decision=granted, fixed=["age"], units=units, random_state=1).fit(X)
        >>> letter = explainer.explain(X.iloc[[0]], sparse=True).letter(0)
        >>> for line in letter.splitlines()[5:13]:
        ...     print(line)
        The decision
        ------------
        The decision was not the wanted one. Wanted is: the loan is granted.
        <BLANKLINE>
        An example that would have led to it
        ------------------------------------
        With savings 36,500 EUR instead of 12,000 EUR, and everything else as it is,
        the decision would have been the wanted one.
        """
        return (
            self._letter(id, title, intro, closing).as_html()
            if html
            else self._letter(id, title, intro, closing).as_text()
        )

    def to_html(
        self,
        path: str | PathLike[str] | None = None,
        *,
        title: str = PAGE_TITLE,
        intro: str | Sequence[str] = (),
        examples: Any = None,
        diagnostics: Any = None,
        audience: str = "analyst",
        id: Hashable = None,
    ) -> Path | str:
        """Write the result as one page for a browser that needs nothing else.

        For the analyst: words, pictures, table, settings. For the customer: the `letter` about one case.

        Parameters
        ----------
        path : str or path, optional
            Where to write it, over what is there. Without it the page is returned.
        title : str
        intro : str or sequence of str
            Paragraphs that say what it is about.
        examples : Counterfactuals, optional
            Where the words and pictures come from; by default the first explained factuals of this result.
        diagnostics : Diagnostics, optional
            What `MCCE.diagnose` returned.
        audience : "analyst" or "customer"
            Whom the page is for.
        id : hashable, optional
            For a customer: whose case it is. Not needed if there is one only.

        Returns
        -------
        Path or str
            The file written, or the page.

        Examples
        --------
        >>> import mcce
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
        >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
        >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
        >>> found = explainer.explain(X.head(1), sparse=True)
        >>> found.to_html(audience="customer").lower().startswith("<!doctype html>")
        True
        """
        if audience not in AUDIENCES:
            raise InputError(f"audience is {audience!r}; it must be one of {spell_all(AUDIENCES)}.")
        if audience == "customer":
            if examples is not None or diagnostics is not None:
                raise InputError("examples and diagnostics are for the analyst's page; leave them out for a customer.")
            one = self._only_id() if id is None else id
            page = self._letter(one, TITLE if title == PAGE_TITLE else title, intro, ()).as_html()
        else:
            if id is not None:
                raise InputError('id chooses whose letter it is; it goes with audience="customer".')
            page = result_page(self, title, _paragraphs(intro), self if examples is None else examples, diagnostics)
        if path is None:
            return page
        with written_whole(Path(path)) as beside:
            beside.write_text(page, encoding="utf-8")
        return Path(path)

    def _only_id(self) -> Hashable:
        if len(self.factuals) != 1:
            raise InputError(
                f"a page for a customer is about one case, and there are {len(self.factuals)}; say which, as in "
                f"to_html(path, audience='customer', id={spell_all(self.factuals.index[:1])})."
            )
        only: Hashable = self.factuals.index[0]
        return only

    def _letter(self, id: Hashable, title: str, intro: str | Sequence[str], closing: str | Sequence[str]) -> Letter:
        factual = self._find(id, 1)[0]
        rows = np.flatnonzero(self._row_of_factual() == factual).tolist()
        names = self.names.for_strangers(self.frame)
        columns = tuple(self.frame.columns)
        unusual = self.below_floor()
        reason, in_the_way = self._why(id) if not rows else ("", ())
        case = Case(
            id=id,
            decision=self.decision,
            names=names,
            columns=columns,
            fixed=self.fixed,
            prediction=self.factual_predictions.iloc[factual],
            ways=tuple(
                (tuple(self._changes_of(row, names)), self.measures["prediction"].iloc[row], bool(unusual.iloc[row]))
                for row in rows
            ),
            reason=reason,
            n_tried=None if self.draws is None else int(self.draws.iloc[factual]),
            rules=tuple(plain_rule(rule, names, columns) for rule in self.rules.get(id, ())),
            in_the_way=tuple(plain_rule(rule, names, columns) for rule in in_the_way),
        )
        return write_letter(case, title, _paragraphs(intro), _paragraphs(closing))

    def _why(self, id: Hashable) -> tuple[str, tuple[str, ...]]:
        """Return why a factual has no counterfactual, and which of its rules stand in the way."""
        place = find_labels(self.unexplained.index, pd.Index([id], tupleize_cols=False))[0]
        if place < 0:
            return "", ()
        told = str(self.unexplained["would_help"].iloc[place]) if "would_help" in self.unexplained else ""
        rules = tuple(rule for rule in self.rules.get(id, ()) if f"without the constraint {rule!r}" in told)
        return str(self.unexplained["reason"].iloc[place]), rules


def _paragraphs(texts: str | Sequence[str]) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts)
