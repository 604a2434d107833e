"""A letter to the person whom a decision is about: one case, only what would have to be different, in sentences.

1. The decision as it is, and the one that is wanted.
2. Examples that would have led to it, one or the other; without any, what is known of why.
3. What was held fixed, and the rules that every example keeps to.
4. What it is not: no promise, not the only way, and what nobody looked at.

It is read by somebody who knows neither the method nor the table, so it has none of their words. Names, units and
formats are the user's; without them underscores become spaces, and truth values yes and no.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, TypeAlias

from mcce.report.names import PREDICTION, Names, kept_together, listed, value_text
from mcce.report.reasons import ALREADY, NO_ROOM, NOBODY_ALIKE, NONE_ALIKE_WANTED
from mcce.report.words import Change, changes_text

TITLE = "What would have led to another decision"
WIDTH = 76
MOST_WAYS = 5  # so that it stays on one sheet
PROMISE = (
    "{} an example, not a promise. It says what would have been decided at the time if the facts had been these. "
    "A new application is decided anew, on all of its facts and by the rules of its day."
)
OTHERS = "There may be other ways: many possible cases were tried, not all, and those near to this one were preferred."

Way: TypeAlias = tuple[tuple[Change, ...], Any, bool]

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
LONG, LONGER = 2000, 3600  # letters, beyond which the type is smaller in print


@dataclass(frozen=True)
class Section:
    """A heading, paragraphs, and points below them."""

    heading: str
    paragraphs: tuple[str, ...] = ()
    points: tuple[str, ...] = ()


@dataclass(frozen=True)
class Letter:
    """A letter: title, case, paragraphs of the caller around the sections."""

    title: str
    about: str
    intro: tuple[str, ...]
    sections: tuple[Section, ...]
    closing: tuple[str, ...]

    def as_text(self) -> str:
        """Return the letter as plain text."""
        parts = [self.title, "=" * min(len(self.title), WIDTH), "", self.about, ""]
        parts += _wrapped(self.intro)
        for section in self.sections:
            parts += [section.heading, "-" * len(section.heading), *_wrapped(section.paragraphs)]
            if section.points:
                parts += [*(_filled(point, "- ", "  ") for point in section.points), ""]
        return "\n".join(parts + _wrapped(self.closing)).rstrip() + "\n"

    def as_html(self) -> str:
        """Return the letter as a page for a browser and a printer."""
        parts = [f"<h1>{escape(self.title)}</h1>", f'<p class="about">{escape(self.about)}</p>', *_tagged(self.intro)]
        for section in self.sections:
            parts += [f"<h2>{escape(section.heading)}</h2>", *_tagged(section.paragraphs)]
            parts += ["<ul>", *_tagged(section.points, "li"), "</ul>"] if section.points else []
        body = "\n".join([*parts, *_tagged(self.closing)])
        size = "longer" if len(body) > LONGER else "long" if len(body) > LONG else "short"
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(self.title)}</title><style>{STYLE}</style></head>\n"
            f'<body class="{size}"><main>\n{body}\n</main></body></html>\n'
        )


@dataclass(frozen=True)
class Case:
    """The facts of one letter: a person's case and its examples.

    Attributes
    ----------
    id : what the case is called
    decision : the wanted one, in words
    names : labels, units and formats
    columns, fixed : the features that the model sees, and those that may not change
    prediction : what the model says
    ways : for each example its changes, its prediction, and whether it is an unusual one, best
        first; of those that change the same features, the letter has the first
    reason : why there is no example; empty if there is one
    n_tried : how many possible cases were tried; None if that is not known
    rules : what examples had to keep to, and which of it stood in the way
    notes : a sentence to add to each way, if there are any
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
    notes: tuple[str, ...] = ()


def write_letter(case: Case, title: str, intro: Sequence[str], closing: Sequence[str]) -> Letter:
    """Return the letter about a case, between paragraphs of the caller."""
    if case.reason == ALREADY:
        text = f"The decision is the wanted one already: {case.decision}. Nothing has to be different."
        sections: tuple[Section, ...] = (Section("The decision", (text,)),)
    else:
        sections = (_decision(case), _ways(case) if case.ways else _none(case), _fixed(case), _care(case))
    return Letter(title, f"Case: {case.id}", tuple(intro), sections, tuple(closing))


def _decision(case: Case) -> Section:
    text = f"The decision was not the wanted one. Wanted is: {case.decision}."
    if PREDICTION in case.names.labels:
        now = case.names.text(PREDICTION, case.prediction, 3)
        text += f" In this case: {case.names.label(PREDICTION)} {now}."
    return Section("The decision", (text,))


def _ways(case: Case) -> Section:
    """Say what each example changes; of several, the second begins with "or"."""
    ways, texts = _different(case), []
    for k, place in enumerate(ways[:MOST_WAYS]):
        changes, prediction, is_unusual = case.ways[place]
        text = f"{'Or: with' if k else 'With'} {changes_text(changes)}, and everything else as it is, "
        text += "the decision would have been the wanted one"
        if PREDICTION in case.names.labels:
            old, new = case.names.pair(PREDICTION, case.prediction, prediction, 3)
            text += f" ({case.names.label(PREDICTION)} {new} instead of {old})"
        text += "." + (" This example is an unusual one: hardly any known case is like it." if is_unusual else "")
        texts.append(f"{text} {case.notes[place]}".rstrip() if case.notes else text)
    more = len(ways) - MOST_WAYS
    texts += ["One more example was found."] if more == 1 else []
    texts += [f"{more} more examples were found."] if more > 1 else []
    if len(ways) == 1:
        return Section("An example that would have led to it", tuple(texts))
    return Section("Examples that would have led to it", (), tuple(texts))


def _different(case: Case) -> list[int]:
    """Return the places of the ways of a case, of those that change the same features the first."""
    sets = [frozenset(change.feature for change in changes) for changes, _, _ in case.ways]
    return [k for k in range(len(sets)) if sets[k] not in sets[:k]]


def _none(case: Case) -> Section:
    alike = listed([case.names.label(name) for name in case.fixed])
    same = f" with the same {alike}" if alike else " like this one"
    sentences = ["We looked for an example that would have led to it and are sorry to say that we found none."]
    if case.reason.startswith(NO_ROOM):
        sentences.append("The rules below leave no room for one in this case.")
    elif case.n_tried:
        kept = " and kept to the rules below" if case.rules else ""
        sentences.append(
            f"{value_text(case.n_tried)} possible cases{same} were tried; none had the wanted decision{kept}."
        )
    if NOBODY_ALIKE in case.reason:
        sentences.append(f"Among the known cases none has the same {alike}, so little can be said.")
    elif NONE_ALIKE_WANTED in case.reason:
        sentences.append(f"Among the known cases with the same {alike} none has the wanted decision.")
    if case.in_the_way:
        sentences.append(
            "There would be an example without " + " or without ".join(f'"{r}"' for r in case.in_the_way) + "."
        )
    sentences.append(
        "That does not mean that there is no way. Please ask whoever decides what else could be looked at."
    )
    return Section("No example was found", (" ".join(sentences),))


def _fixed(case: Case) -> Section:
    names = [case.names.label(name) for name in case.fixed]
    text = f"{listed(names)} stayed as {'it is' if len(names) == 1 else 'they are'}." if names else "Nothing."
    text = text[0].upper() + text[1:]
    if not case.rules:
        return Section("What was held fixed", (text,))
    return Section("What was held fixed", (f"{text} Every example also had to keep to this:",), case.rules)


def _care(case: Case) -> Section:
    seen = listed([case.names.label(name) for name in case.columns])
    left_out = (
        "Not considered: whether a change is possible or wise, how long it would take, what it would cost and what "
        f"else would change with it; nor any fact other than {seen}."
    )
    promise = PROMISE.format("This is" if len(_different(case)) == 1 else "Each of them is")
    return Section("Please note", (), (promise, OTHERS, left_out) if case.ways else (left_out,))


def plain_rule(text: str, names: Names, columns: Sequence[Hashable]) -> str:
    """Return the text of a constraint with the labels of the features for their names, and fewer signs of a formula."""
    known = {str(name): names.label(name) for name in columns}
    any_name = "|".join(sorted(map(re.escape, known), key=len, reverse=True))
    found = re.compile(rf"(?<![\w.'])('?)({any_name})\1(?![\w.'])")
    text = found.sub(lambda name: known[name[2]], text)
    text = re.sub(r"\bwas\(([^()]*)\)", r"\1 now", text)
    return text.replace("<=", "≤").replace(">=", "≥")


def _wrapped(paragraphs: Sequence[str]) -> list[str]:
    return [line for text in paragraphs for line in (_filled(text), "")]


def _filled(text: str, first: str = "", next: str = "") -> str:
    lines = textwrap.fill(kept_together(text), WIDTH, initial_indent=first, subsequent_indent=next)
    return lines.replace("\u00a0", " ")


def _tagged(texts: Sequence[str], tag: str = "p") -> list[str]:
    return [f"<{tag}>{escape(kept_together(text))}</{tag}>" for text in texts]
