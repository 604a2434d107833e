"""Letters about the factuals of a result: one letter, all that can be sent, and the factuals without a letter.

`mcce.report.letter_layout` builds the sections of a letter, `mcce.report.languages` reads its texts.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools
from mcce.base.checks import check_flag
from mcce.exceptions import InputError, spell
from mcce.report.languages import Texts, read_texts
from mcce.report.letter_layout import Case, Letter, write_letter
from mcce.report.principal import Reasons
from mcce.report.reasons import ALREADY, UNREADABLE
from mcce.report.rows import Result, find_row, held_back, owners
from mcce.report.rules import rules_in_words
from mcce.report.words import changes_in_words, consequences_in_words, follows_in_words
from mcce.table.checks import find_labels

OwnTexts: TypeAlias = str | os.PathLike[str] | Mapping[str, Any] | None
Paragraphs: TypeAlias = str | Sequence[str]

NOT_REFUSED = "the model accepts this case"


def letter(
    found: Result,
    id: Hashable,
    *,
    title: str | None = None,
    intro: Paragraphs = (),
    closing: Paragraphs = (),
    html: bool = False,
    language: str = "en",
    texts: OwnTexts = None,
    reasons: bool = False,
) -> str:
    """Return a letter to the person that a factual describes: what would have led to another decision.

    The letter lists the counterfactuals as alternatives, the best of those that change the same features; without any
    it says so. It uses the `names` given to `MCCE` (labels, units, formats) and the `label` of the decision. The
    prediction is stated only if it has a label: ``labels={"prediction": "probability of default"}``.

    Parameters
    ----------
    found : Counterfactuals
    id : hashable
        A label of the index of `found.factuals`.
    title : str, optional
    intro, closing : str or sequence of str
        Your own paragraphs, before and after.
    html : bool
        Whether to return a page for a browser, one sheet when printed, instead of plain text.
    language : str
        The language of the reader: "en", "de", "fr" or "nb". Labels, units and the decision are not translated. All
        but English need babel, the extra `languages`.
    texts : file or dict, optional
        Your own texts as TOML, in any language, with the keys of the files in `mcce/report/texts`.
    reasons : bool
        Whether to add the principal reasons of the refusal (`Counterfactuals.principal_reasons`), and the right to give
        one's own view and to ask for a review by a person. It takes seconds for each person, and a result that was not
        saved.

    Examples
    --------
    >>> import mcce
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
    >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
    >>> granted, units = mcce.Interval(0.5, 1, label="the loan is granted"), {"salary": "EUR", "savings": "EUR"}
    >>> explainer = mcce.MCCE(model, decision=granted, fixed=["age"], names={"units": units}, random_state=1).fit(X)
    >>> text = mcce.report.letter(explainer.explain(X.iloc[[0]], sparse=True), 0)
    >>> for line in text.splitlines()[5:13]:
    ...     print(line)
    The decision
    ------------
    The loan was not granted.
    <BLANKLINE>
    An example that would have led to another decision
    --------------------------------------------------
    With salary 88,100 EUR instead of 68,000 EUR, and everything else as it is,
    the loan would have been granted.
    """
    check_flag(html, "html")
    (made,) = _write_letters(found, [id], read_texts(language, texts), title, intro, closing, reasons=reasons)
    return made.as_html() if html else made.as_text()


def letters(
    found: Result,
    *,
    all: bool = False,
    title: str | None = None,
    intro: Paragraphs = (),
    closing: Paragraphs = (),
    html: bool = False,
    language: str = "en",
    texts: OwnTexts = None,
    reasons: bool = False,
) -> pd.Series[Any]:
    """Return the letters that can be sent, by id, without counterfactuals of severity "stop" (`suspicious`).

    A factual whose counterfactuals all have that severity gets no letter; read them, then call `letter`. A factual
    without a counterfactual gets a letter that says so. Accepted cases and rows that could not be read get no letter.
    `unlettered` lists the factuals without a letter.

    Parameters
    ----------
    found : Counterfactuals
    all : bool
        Whether letters also contain counterfactuals of severity "stop".
    title, intro, closing, html, language, texts, reasons : as in `letter`

    Examples
    --------
    >>> import mcce
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
    >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
    >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
    >>> found = explainer.explain(X.head(100), sparse=True, constraints=["salary == was(salary)"])
    >>> len(mcce.report.letters(found)), len(mcce.report.letters(found, all=True)), len(found.suspicious())
    (75, 76, 1)
    """
    check_flag(html, "html")
    known = read_texts(language, texts)
    without = unlettered(found, all=all)
    listed = np.zeros(len(found), dtype=bool) if all else found.frame.index.isin(held_back(found).index)
    ids = found.factuals.index[find_labels(without.index, found.factuals.index) < 0]
    made = _write_letters(found, ids, known, title, intro, closing, without=listed, reasons=reasons)
    written = [each.as_html() if html else each.as_text() for each in made]
    return pd.Series(written, index=ids, name="letter", dtype=object)


def unlettered(found: Result, *, all: bool = False) -> pd.Series[Any]:
    """Return why factuals get no letter from `letters`, by id.

    Parameters
    ----------
    found : Counterfactuals
    all : bool
        As in `letters`.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(300).X.select_dtypes("number")
    >>> explainer = mcce.MCCE(lambda rows: rows["salary"] > 40_000, decision=True, random_state=1).fit(X)
    >>> rich = X[X["salary"] > 40_000].head(1)
    >>> mcce.report.unlettered(explainer.explain(rich)).tolist()
    ['the model accepts this case']
    """
    check_flag(all, "all")
    why: dict[int, str] = {}
    for place, reason in zip(find_labels(found.factuals.index, found.unexplained.index), found.unexplained["reason"]):
        if reason == ALREADY:
            why[int(place)] = NOT_REFUSED
        elif str(reason).startswith(UNREADABLE):
            why[int(place)] = str(reason)
    if not all and len(found):
        suspicious = held_back(found)
        owner, listed = owners(found), found.frame.index.isin(suspicious.index)
        words = suspicious["words"].groupby(level="id", sort=False).first()
        for factual in np.unique(owner).tolist():
            if listed[owner == factual].all():
                why[factual] = str(words[found.factuals.index[factual]])
    index = found.factuals.index[sorted(why)]
    return pd.Series([why[place] for place in sorted(why)], index=index, name="why", dtype=object)


def _write_letters(
    found: Result,
    ids: Iterable[Hashable],
    texts: Texts,
    title: str | None,
    intro: Paragraphs,
    closing: Paragraphs,
    without: Bools | None = None,
    *,
    reasons: bool = False,
) -> list[Letter]:
    """Return the letters about factuals, without the rows of `frame` marked in `without`."""
    check_flag(reasons, "reasons")
    whose = [(id, find_row(found, id)[0]) for id in ids]
    owner = owners(found)
    rows_of: dict[int, list[int]] = {factual: [] for _, factual in whose}
    has_letter = np.isin(owner, list(rows_of))
    in_letters = np.flatnonzero(has_letter if without is None else has_letter & ~without)
    for row in in_letters.tolist():
        rows_of[int(owner[row])].append(row)
    words = texts.fill("words.yes"), texts.fill("words.no"), texts.fill("words.missing")
    names = found.names.for_lay_reader(found.frame, words, texts.marks)
    columns, computed = tuple(found.frame.columns), {*found.computed, *found.derived}
    unusual = found.below_floor()
    changes = {row: tuple(changed) for _, row, changed in changes_in_words(found, in_letters, names)}
    made = []
    for id, factual in whose:
        rows = rows_of[factual]
        reason, in_the_way = _reason_and_rules(found, id) if not rows else ("", ())
        if reason.startswith(UNREADABLE):
            raise InputError(f"there is no letter for {spell(id)}: {reason}. Correct the row, and explain it again.")
        rules = rules_in_words(found.constraint_texts.get(id, ()), names, columns, texts)
        case = Case(
            id=id,
            decision=found.decision,
            names=names,
            columns=tuple(name for name in columns if name not in computed),
            fixed=tuple(name for name in found.fixed if name not in found.derived),
            prediction=found.factual_predictions.iloc[factual],
            ways=tuple(
                (
                    changes[row],
                    found.measures["prediction"].iloc[row],
                    bool(unusual.iloc[row]),
                    consequences_in_words(found, row, names, texts)
                    if found.consequences is not None
                    else follows_in_words(found, factual, row, names, texts),
                )
                for row in rows
            ),
            reason=reason,
            n_tried=None if found.draws is None else int(found.draws.iloc[factual]),
            rules=tuple(point for points in rules.values() for point in points),
            in_the_way=tuple(", ".join(rules[rule]) for rule in in_the_way),
            acts=found.consequences is not None,
            reasons=None
            if not reasons or reason == ALREADY
            else Reasons.from_table(found.principal_reasons(id, every=True), names, texts),
        )
        made.append(write_letter(case, texts, title, as_paragraphs(intro), as_paragraphs(closing)))
    return made


def _reason_and_rules(found: Result, id: Hashable) -> tuple[str, tuple[str, ...]]:
    """Return why a factual has no counterfactual, and the rules that prevent one."""
    place = find_labels(found.unexplained.index, pd.Index([id], tupleize_cols=False))[0]
    if place < 0:
        return "", ()
    helps = str(found.unexplained["would_help"].iloc[place]) if "would_help" in found.unexplained else ""
    rules = tuple(rule for rule in found.constraint_texts.get(id, ()) if f"without the constraint {rule!r}" in helps)
    return str(found.unexplained["reason"].iloc[place]), rules


def as_paragraphs(texts: Paragraphs) -> list[str]:
    """Return one or several paragraphs as a list."""
    return [texts] if isinstance(texts, str) else list(texts)
