"""A card of an explainer: one page, in the form of a model card, for users and auditors.

The card states the training data (counts, no rows, no ranges), the fixed features, constraints and relations, how each
feature is drawn, the meaning of the least plausibility, privacy, and limits. With new rows, the conditionals are
criticised and the counterfactuals measured.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from mcce.base.files import atomic_write
from mcce.constraints import read
from mcce.exceptions import InputError
from mcce.explain.options import FLOOR
from mcce.privacy.account import NOT_COVERED
from mcce.report.html import whole_page
from mcce.report.result_letters import as_paragraphs
from mcce.table import Data
from mcce.table.checks import rows_of
from mcce.table.left_out import without_unknown_levels

Block = str | list[list[str]]  # a paragraph, or a table whose first row is its head
MOST_JUDGED = 1000  # rows for the criticism of conditionals
LIMITS = (
    "A counterfactual is a row for which the model makes another decision. It is not a promise, and not a causal "
    "statement: the effects of a change outside the model are not known from these data.",
    "Values are drawn from distributions learned from the training rows. Where these are few, or differ from the "
    "people to be explained, answers are unreliable; the model and the explainer then have to be refitted.",
    "If no counterfactual was found, none may exist, or too few rows were drawn.",
    "Answers describe the fitted model. Whether its decisions are fair or lawful is a separate question.",
)
PLAUSIBLE = (
    "Sparse answers have by default a plausibility of at least {floor:g}: the share of real rows that are at least as "
    "unusual, measured on rows that the scale was not learned from. One real row in {one:.0f} would be rejected. A "
    "less plausible row is returned only if nothing else was found, and is marked."
)
NOT_PRIVATE = (
    "The fit is not differentially private. Drawn values can be values of training rows, and a saved explainer holds "
    "training values; mcce inspect FILE lists them. Answers can equal a training row unless mcce.no_copies() is "
    "among the constraints."
)
UNMEASURED = "Not measured: give rows that the explainer was not fitted on, as in mcce.card(explainer, X)."
UNMEASURED_PRIVATE = "Not measured: distances to training rows are not covered by the privacy account."


@dataclass(frozen=True)
class Card:
    """The description of an explainer on one page, as `card` returns it.

    Attributes
    ----------
    title : str
    sections : tuple
        Pairs of a heading and its blocks: paragraphs, or tables as lists of rows with the head first.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(300).X[["age", "salary", "savings"]]
    >>> explainer = mcce.MCCE(lambda rows: rows["salary"] / 1e5, fixed=["age"], random_state=1).fit(X)
    >>> card = mcce.card(explainer)
    >>> [heading for heading, _ in card.sections]
    ['Explainer', 'Data', 'What may change', 'Conditionals', 'Plausibility', 'Measured quality', 'Privacy', 'Limits']
    >>> card.to_html().startswith("<!doctype html>"), card.to_markdown().startswith("# ")
    (True, True)
    """

    title: str
    sections: tuple[tuple[str, tuple[Block, ...]], ...]

    def to_markdown(self) -> str:
        """Return the card as Markdown."""
        parts = [f"# {_as_markdown(self.title)}"]
        for heading, blocks in self.sections:
            parts.append(f"## {heading}")
            parts += [_as_markdown(each) if isinstance(each, str) else _markdown_table(each) for each in blocks]
        return "\n\n".join(parts) + "\n"

    def to_html(self) -> str:
        """Return the card as one page for a browser."""
        parts = [f"<h1>{escape(self.title)}</h1>"]
        for heading, blocks in self.sections:
            parts.append(f"<h2>{escape(heading)}</h2>")
            parts += [f"<p>{escape(each)}</p>" if isinstance(each, str) else _html_table(each) for each in blocks]
        return whole_page(self.title, "\n".join(parts))

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> Path:
        """Write the card to a file: .html as a page, .md as Markdown."""
        path = Path(path)
        if path.suffix.lower() not in (".html", ".md"):
            raise InputError(f"{path} is not the name of a card; give a name that ends in .html or .md.")
        text = self.to_html() if path.suffix.lower() == ".html" else self.to_markdown()
        with atomic_write(path, overwrite=overwrite) as beside:
            beside.write_text(text, encoding="utf-8")
        return path

    def __repr__(self) -> str:
        return self.to_markdown()

    def _repr_markdown_(self) -> str:
        return self.to_markdown()


def card(
    explainer: Any,
    X: Data | None = None,
    *,
    title: str = "Explainer card",
    intro: str | Sequence[str] = (),
    **settings: Any,
) -> Card:
    """Describe an explainer on one page, in the form of a model card.

    Parameters
    ----------
    explainer : MCCE
        Fitted or loaded.
    X : DataFrame or array, optional
        New rows, including rows to explain, for the criticism of the conditionals and the measures of
        counterfactuals. They are not shown.
    title : str
    intro : str or sequence of str
        Further paragraphs: purpose, owner, date.
    **settings
        Arguments of `explain` for the measured counterfactuals; by default ``sparse=True``.

    Returns
    -------
    Card
        With `to_html`, `to_markdown` and `save`; printed as Markdown.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(300).X[["age", "salary", "savings"]]
    >>> explainer = mcce.MCCE(lambda rows: rows["salary"] / 1e5, fixed=["age"], random_state=1).fit(X)
    >>> text = mcce.card(explainer, intro="For loans up to 50,000 dollars.").to_markdown()
    >>> print(text[: text.index("|")])
    # Explainer card
    <BLANKLINE>
    ## Explainer
    <BLANKLINE>
    For loans up to 50,000 dollars.
    <BLANKLINE>
    """
    made_with = explainer.fingerprint()
    sections: dict[str, list[Block]] = {
        "Explainer": [*as_paragraphs(intro), *_details(explainer, made_with)],
        "Data": list(_data(explainer, made_with)),
        "What may change": list(_constraints(explainer)),
        "Conditionals": list(_conditionals(explainer, X)),
        "Plausibility": [PLAUSIBLE.format(floor=FLOOR, one=1 / FLOOR)],
        "Measured quality": list(_quality(explainer, X, settings)),
        "Privacy": list(_privacy(explainer)),
        "Limits": list(LIMITS),
    }
    return Card(title, tuple((heading, tuple(blocks)) for heading, blocks in sections.items()))


def _details(explainer: Any, made_with: Mapping[str, Any]) -> Iterator[Block]:
    wanted, rule = explainer.decision_.describe(), made_with["decision"]
    details = {
        "model": made_with["model"]["type"],
        "wanted decision": wanted if rule == wanted else f"{wanted} ({rule})",
        "generator": type(explainer.generator_).__name__,
        "conditions on the decision": "yes" if explainer.condition_on_decision else "no",
        "seed": made_with["seed"],
        "fingerprint of the model": made_with["model"]["fingerprint"],
        "fingerprint of the explainer": made_with["explainer"]["fingerprint"],
        "hash of the training table": made_with["training"]["hash"] or "unknown",
        "versions": ", ".join(f"{name} {version}" for name, version in made_with["versions"].items()),
    }
    yield [["what", "value"], *([name, str(value)] for name, value in details.items())]


def _data(explainer: Any, made_with: Mapping[str, Any]) -> Iterator[Block]:
    generator, n_rows = explainer.generator_, made_with["training"]["rows"]
    counted = "The number of training rows is not stated." if n_rows is None else f"Fitted to {n_rows:,} training rows."
    yield f"{counted} {len(generator.schema_)} features:"
    yield [
        ["feature", "kind", "levels", "missing values in training"],
        *(
            [str(f.name), f.kind, str(f.n_levels) if f.levels is not None else "", "yes" if f.has_missing else "no"]
            for f in generator.schema_.features
        ),
    ]


def _constraints(explainer: Any) -> Iterator[Block]:
    fixed = ", ".join(map(str, explainer.generator_.fixed_))
    yield f"Fixed features, which no answer changes: {fixed or 'none'}."
    for what, each in (
        ("Constraints of every answer", [str(each) for each in read(explainer.constraints)]),
        ("Relations between columns that sparse answers keep", [str(each) for each in explainer.relations_]),
        ("Columns computed from others", [str(each.says) for each in explainer.derived_]),
    ):
        yield f"{what}: {'; '.join(each) or 'none'}."


def _conditionals(explainer: Any, X: Data | None) -> Iterator[Block]:
    generator = explainer.generator_
    if not generator.samplers_:
        yield f"Whole rows are drawn by {type(generator).__name__}, without conditionals for single features."
        return
    names = {name: type(sampler).__name__ for name, sampler in generator.samplers_.items()}
    if X is None:
        yield "Each feature is drawn given the fixed features and those before it:"
        yield [["feature", "sampler"], *([str(name), sampler] for name, sampler in names.items())]
        yield UNMEASURED
        return
    X, _ = without_unknown_levels(X, generator.schema_)
    step = -(-len(X) // MOST_JUDGED)
    X = rows_of(X, slice(None, None, max(step, 1)))
    decision = explainer.decision_.evaluate(X, "the rows of X").wanted if generator.conditions_on_decision_ else None
    found = generator.criticise(X, decision=decision, progress=False)
    yield (
        "Each feature is drawn given the fixed features and those before it. "
        f"On {len(X)} rows given as new, {len(found.rejected)} of {len(found)} conditionals are "
        f"rejected at the level {found.level:g}:"
    )
    findings = dict(zip((each.name for each in found), found.sentences))
    yield [["feature", "sampler", "finding"], *([str(n), names[n], findings.get(n, "")] for n in names)]


def _quality(explainer: Any, X: Data | None, settings: Mapping[str, Any]) -> Iterator[Block]:
    if X is None or explainer.generator_.privacy is not None:
        yield UNMEASURED if X is None else UNMEASURED_PRIVATE
        return
    options = {"sparse": True, **settings}
    measured = explainer.diagnose(X, **options)
    shown = ", ".join(f"{name}={value!r}" for name, value in options.items())
    yield f"{measured.settings['n_factuals']} of {measured.settings['n_real']} rows were explained, with {shown}:"
    table = measured.summary()
    yield [
        ["figure", "value", "how to read it"],
        *([str(i), *map(str, row)] for i, row in zip(table.index, table.to_numpy())),
    ]
    yield from measured.notes


def _privacy(explainer: Any) -> Iterator[Block]:
    account = explainer.generator_.account_
    if account is None:
        yield NOT_PRIVATE
        return
    yield from (line for line in repr(account).splitlines() if line.strip())
    yield f"Not covered: {'; '.join(NOT_COVERED)}."


def _as_markdown(text: str) -> str:
    """Return a text with the special characters of Markdown escaped; names and levels come from users."""
    return "".join(f"\\{c}" if c in "\\`*_<>[]|#~" else c for c in " ".join(text.split()))


def _markdown_table(rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(map(_as_markdown, row))} |" for row in rows]
    return "\n".join([lines[0], f"|{' --- |' * len(rows[0])}", *lines[1:]])


def _html_table(rows: list[list[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in rows[0])
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in row[1:])}</tr>'
        for row in rows[1:]
    )
    return f'<table class="listing"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
