"""The sections of a letter to the person that a decision concerns.

1. The decision, and the wanted one; with reasons, the facts that counted most against the application.
2. Examples that would have led to the wanted decision, as alternatives; without any, the known reason.
3. The fixed facts, and the rules that every example satisfies.
4. Limits: an example is not a promise, there may be others, and what was not considered.
5. With reasons: the right to give one's own view, and to ask for a review by a person.

The reader knows neither the method nor the table, so the letter avoids technical terms. Names, units and formats are
the user's; without labels underscores become spaces. All other texts come from the file of the reader's language
(`mcce.report.languages`).
"""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, TypeAlias

from mcce.report.languages import Texts
from mcce.report.names import PREDICTION, Names, kept_together
from mcce.report.principal import Reasons
from mcce.report.reasons import ALREADY, NO_ROOM, NONE_ALIKE, NONE_ALIKE_WANTED
from mcce.report.words import Change, changes_text

WIDTH = 76
LONGEST_NAME, HASH_LETTERS = 100, 12  # bytes; with number and ending below the 255 bytes of common file systems
MOST_WAYS = 5  # keeps the letter on one sheet

Way: TypeAlias = tuple[tuple[Change, ...], Any, bool, str]

STYLE = """
:root{color-scheme:light dark;--ground:#fff;--text:#1d2330;--soft:#5a6372;--line:#d5d9e0}
@media (prefers-color-scheme:dark){:root{--ground:#14171c;--text:#e4e7ec;--soft:#a2abb8;--line:#39404b}}
*{box-sizing:border-box}
body{margin:0 auto;padding:2rem 1.2rem 3rem;max-width:42rem;background:var(--ground);color:var(--text);
font:17px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.5rem;line-height:1.25;margin:0 0 .3em}
h2{font-size:1.05rem;margin:1.6em 0 .4em;padding-bottom:.15em;border-bottom:1px solid var(--line)}
p{margin:.5em 0}
p.about{color:var(--soft)}
ul{margin:.5em 0;padding-left:1.3em}
li{margin:.35em 0}
@page{margin:16mm}
@media print{:root{--ground:#fff;--text:#000;--soft:#333;--line:#999}
body{max-width:none;padding:0;font-size:10.5pt;line-height:1.4}body.long{font-size:9pt}body.longer{font-size:7.5pt}
h1{font-size:1.3em}h2{margin:1.1em 0 .3em;break-after:avoid}p,li{margin:.25em 0;break-inside:avoid}}
"""
LONG, LONGER = 2000, 3600  # letters; longer texts are printed in smaller type


@dataclass(frozen=True)
class Section:
    """A heading, paragraphs, a list, and closing paragraphs."""

    heading: str
    paragraphs: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    closing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Letter:
    """A letter: title, case, sections, and the caller's paragraphs before and after them."""

    title: str
    about: str
    intro: tuple[str, ...]
    sections: tuple[Section, ...]
    closing: tuple[str, ...]
    language: str = "en"

    def as_text(self) -> str:
        """Return the letter as plain text."""
        parts = [self.title, "=" * min(len(self.title), WIDTH), "", self.about, ""]
        parts += _wrapped(self.intro)
        for section in self.sections:
            parts += [section.heading, "-" * len(section.heading), *_wrapped(section.paragraphs)]
            if section.points:
                parts += [*(_filled(point, "- ", "  ") for point in section.points), ""]
            parts += _wrapped(section.closing)
        return "\n".join(parts + _wrapped(self.closing)).rstrip() + "\n"

    def as_html(self) -> str:
        """Return the letter as a page for a browser and a printer."""
        parts = [f"<h1>{escape(self.title)}</h1>", f'<p class="about">{escape(self.about)}</p>', *_tagged(self.intro)]
        for section in self.sections:
            parts += [f"<h2>{escape(section.heading)}</h2>", *_tagged(section.paragraphs)]
            parts += ["<ul>", *_tagged(section.points, "li"), "</ul>"] if section.points else []
            parts += _tagged(section.closing)
        body = "\n".join([*parts, *_tagged(self.closing)])
        size = "longer" if len(body) > LONGER else "long" if len(body) > LONG else "short"
        return (
            f'<!doctype html>\n<html lang="{escape(self.language)}"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(self.title)}</title><style>{STYLE}</style></head>\n"
            f'<body class="{size}"><main>\n{body}\n</main></body></html>\n'
        )


@dataclass(frozen=True)
class Case:
    """The facts of one letter: a person's case and its examples.

    Attributes
    ----------
    id : the name of the case
    decision : the wanted decision, in words
    names : labels, units and formats
    columns, fixed : the features that the model uses, and those that may not change
    prediction : the prediction of the model
    ways : for each example its changes, its prediction, whether it is unusual, and the sentence on computed features,
        best first; of those that change the same features, the letter has the first
    reason : why there is no example; empty if there is one
    n_tried : the number of possible cases tried; None if unknown
    rules, in_the_way : the rules that examples satisfy, and those that prevented an example
    acts : whether the examples are actions; the sentence of each then describes its consequences
    reasons : the principal reasons of the refusal; None for a letter without them
    """

    id: Hashable
    decision: str
    names: Names
    columns: tuple[Hashable, ...]
    fixed: tuple[Hashable, ...]
    prediction: Any
    ways: tuple[Way, ...]
    reason: str
    n_tried: int | None
    rules: tuple[str, ...] = ()
    in_the_way: tuple[str, ...] = ()
    acts: bool = False
    reasons: Reasons | None = None


def write_letter(case: Case, texts: Texts, title: str | None, intro: Sequence[str], closing: Sequence[str]) -> Letter:
    """Return the letter about a case, between the caller's paragraphs; the default title is that of the language."""
    if case.reason == ALREADY:
        text = texts.fill("letter.already", decision=case.decision)
        sections: tuple[Section, ...] = (Section(texts.fill("letter.decision_heading"), (text,)),)
    else:
        found = _ways(case, texts) if case.ways else _none(case, texts)
        reasons, rights = _reasons_and_rights(case.reasons, texts)
        sections = (_decision(case, texts), *reasons, found, _fixed(case, texts), _care(case, texts), *rights)
    about = texts.fill("letter.case", id=case.id)
    title = texts.fill("letter.title_acts" if case.acts else "letter.title") if title is None else title
    return Letter(title, about, tuple(intro), sections, tuple(closing), texts.language)


def letter_name(who: object) -> str:
    """Return the name of the file of a letter, without its ending: letters, digits, `_` and `-` of an id.

    The name of a long id is cut, and ends in a part of its hash, so different long ids have different names.
    """
    name = re.sub(r"[^\w-]+", "_", str(who))
    if len(name.encode()) <= LONGEST_NAME:
        return name
    mark = hashlib.sha256(str(who).encode(errors="backslashreplace")).hexdigest()[:HASH_LETTERS]
    return f"{name.encode()[: LONGEST_NAME - HASH_LETTERS - 1].decode(errors='ignore')}-{mark}"


def _decision(case: Case, texts: Texts) -> Section:
    was_not = texts.negated_form(case.decision)
    text = texts.fill("letter.refused", decision=case.decision) if was_not is None else f"{_begun(was_not)}."
    if PREDICTION in case.names.labels:
        now = case.names.text(PREDICTION, case.prediction, 3)
        text += " " + texts.fill("letter.now", name=case.names.label(PREDICTION), value=now)
    return Section(texts.fill("letter.decision_heading"), (text,))


def _reasons_and_rights(reasons: Reasons | None, texts: Texts) -> tuple[tuple[Section, ...], tuple[Section, ...]]:
    """Return the sections of reasons and of rights; empty without reasons."""
    if reasons is None:
        return (), ()
    first, others = reasons.sentences(texts)
    heading, closing = texts.fill("reasons.heading", len(reasons.stated)), (others,) if others else ()
    rights = Section(texts.fill("rights.heading"), (texts.fill("rights.view"), texts.fill("rights.review")))
    return (Section(heading, (first,), reasons.stated, closing),), (rights,)


def _ways(case: Case, texts: Texts) -> Section:
    """Return the section of the examples; the second and later ones begin with "or"."""
    ways, points = _different(case), []
    would = texts.conditional_form(case.decision) or texts.fill("example.would", decision=case.decision)
    for k, place in enumerate(ways[:MOST_WAYS]):
        changes, prediction, is_unusual, follows = case.ways[place]
        if case.acts:
            changes = tuple(change for change in changes if not change.comes_along)
        begin = (
            ("example.acts_next" if k else "example.acts") if case.acts else "example.next" if k else "example.first"
        )
        key, filled = begin, {"changes": changes_text(changes, texts), "would": would}
        if PREDICTION in case.names.labels and not case.acts:
            old, new = case.names.pair(PREDICTION, case.prediction, prediction, 3)
            key += "_figures"
            filled |= {"name": case.names.label(PREDICTION), "before": old, "after": new}
        unusual = texts.fill("example.unusual") if is_unusual else ""
        points.append(" ".join(text for text in (texts.fill(key, **filled), follows, unusual) if text))
    more = len(ways) - MOST_WAYS
    points += [texts.fill("example.more", more, n=case.names.count(more))] if more > 0 else []
    heading = texts.fill("example.acts_heading" if case.acts else "example.heading", len(ways))
    return Section(heading, tuple(points)) if len(ways) == 1 else Section(heading, (), tuple(points))


def _different(case: Case) -> list[int]:
    """Return the positions of the examples of a case, the first of those that change the same features."""
    sets = [
        frozenset(change.feature for change in changes if not (case.acts and change.comes_along))
        for changes, *_ in case.ways
    ]
    return [k for k in range(len(sets)) if sets[k] not in sets[:k]]


def _none(case: Case, texts: Texts) -> Section:
    if case.acts:
        return Section(
            texts.fill("none.heading_acts"), (f"{texts.fill('none.sorry_acts')} {texts.fill('none.not_the_end')}",)
        )
    alike = texts.listed([case.names.label(name) for name in case.fixed])
    sentences = [texts.fill("none.sorry")]
    if case.reason.startswith(NO_ROOM):
        sentences.append(texts.fill("none.no_room"))
    elif case.n_tried:
        key = "none.tried" + ("_alike" if alike else "") + ("_rules" if case.rules else "")
        sentences.append(texts.fill(key, case.n_tried, n=case.names.count(case.n_tried), names=alike))
    if NONE_ALIKE in case.reason:
        sentences.append(texts.fill("none.nobody_alike", names=alike))
    elif NONE_ALIKE_WANTED in case.reason:
        sentences.append(texts.fill("none.none_alike", names=alike))
    sentences.append(texts.fill("none.not_the_end"))
    if case.in_the_way:
        quoted = [texts.fill("words.quoted", text=rule) for rule in case.in_the_way]
        sentences.append(texts.fill("none.without", rules=texts.listed(quoted, "or")))
    return Section(texts.fill("none.heading"), (" ".join(sentences),))


def _fixed(case: Case, texts: Texts) -> Section:
    names = [case.names.label(name) for name in case.fixed]
    text = texts.fill("fixed.names", len(names), names=texts.listed(names)) if names else texts.fill("fixed.nothing")
    heading = texts.fill("fixed.heading")
    if not case.rules:
        return Section(heading, (_begun(text),))
    return Section(heading, (f"{_begun(text)} {texts.fill('fixed.rules')}",), case.rules)


def _care(case: Case, texts: Texts) -> Section:
    seen = texts.listed([case.names.label(name) for name in case.columns])
    left_out = texts.fill("care.left_out_acts" if case.acts else "care.left_out", names=seen)
    if not case.ways:
        return Section(texts.fill("care.heading"), (), (left_out,))
    promise = [texts.fill("care.promise", len(_different(case)))]
    if case.acts:
        promise = [texts.fill("care.promise_acts"), texts.fill("care.causes")]
    return Section(texts.fill("care.heading"), (), (*promise, texts.fill("care.others"), left_out))


def _begun(text: str) -> str:
    return text[:1].upper() + text[1:]


def _wrapped(paragraphs: Sequence[str]) -> list[str]:
    return [line for text in paragraphs for line in (_filled(text), "")]


def _filled(text: str, first: str = "", next: str = "") -> str:
    lines = textwrap.fill(kept_together(text), WIDTH, initial_indent=first, subsequent_indent=next)
    return lines.replace("\u00a0", " ")


def _tagged(texts: Sequence[str], tag: str = "p") -> list[str]:
    return [f"<{tag}>{escape(kept_together(text))}</{tag}>" for text in texts]
