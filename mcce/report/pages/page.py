"""A page that can be sent to somebody: words, pictures, a table, settings and versions in one file.

1. The title, what it is about, and the most important figures.
2. Explanations in words, for some of those without one why; the same as pictures; which features change over all.
3. What was asked of the rows, and what of it was binding.
4. The table, changed cells marked; why others stayed unexplained.
5. Diagnostics, if given; settings, seed, seconds and versions.

It follows the reader's choice of light or dark; pictures keep a white ground. On a telephone pictures are narrower ones
and the table can be pushed sideways. Pictures have words for those who do not see them.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from mcce.report.binding import Bound
from mcce.report.words import kept_together

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS = 150  # per inch: sharp on a dense screen
LEGEND = (
    "{} is what the model says, L0 counts the changed features, gower is the distance to the factual from 0 (alike) to "
    "1 (far apart)."
)
ASKED = (
    "No row on this page breaks one of these constraints. The more of the rows drawn without them break one, the more "
    "it asks. Of the rows drawn inside all of them, those for which nothing allowed is left go no farther."
)

STYLE = """
:root{color-scheme:light dark;--ground:#fff;--text:#1d2330;--soft:#5a6372;--line:#d5d9e0;--card:#f5f6f8;
--jp-layout-color0:var(--ground)}
@media (prefers-color-scheme:dark){:root{--ground:#14171c;--text:#e4e7ec;--soft:#a2abb8;--line:#39404b;--card:#1d2128}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.5rem 1rem 3rem;max-width:80rem;background:var(--ground);color:var(--text);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
h1{font-size:1.7rem;line-height:1.2;margin:.2em 0 .5em}
h2{font-size:1.2rem;line-height:1.3;margin:2.2em 0 .6em;padding-bottom:.2em;border-bottom:1px solid var(--line)}
p,li{max-width:46rem;overflow-wrap:anywhere}
li{margin:.45em 0}
ol{padding-left:1.5em}
dl.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.7rem;margin:1.2em 0}
dl.figures div{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.6rem .8rem}
dl.figures dt{font-size:.82rem;color:var(--soft)}
dl.figures dd{margin:0;font-size:1.25rem;font-weight:650;overflow-wrap:anywhere}
dl.figures dd.long{font-size:1rem;line-height:1.35}
figure{margin:1.2em 0;max-width:52rem}
figure img{display:block;width:100%;height:auto;padding:.5rem;background:#fff;border:1px solid var(--line);
border-radius:.5rem}
figcaption{font-size:.88rem;color:var(--soft);margin-top:.4em;max-width:46rem}
table.settings{border-collapse:collapse;font-size:.92rem}
table.settings :is(th,td){text-align:left;vertical-align:top;padding:.3em .9em .3em 0;overflow-wrap:anywhere;
border-bottom:1px solid var(--line)}
table.settings th{font-weight:500;color:var(--soft);white-space:nowrap}
table.asked{border-collapse:collapse;font-size:.92rem;max-width:60rem}
table.asked :is(th,td){text-align:left;vertical-align:top;padding:.35em 1.4em .35em 0;overflow-wrap:anywhere;
border-bottom:1px solid var(--line)}
table.asked thead th{font-weight:500;color:var(--soft)}
table.asked tbody th{font-weight:600}
table.asked td{min-width:8rem}
.diagnostics{overflow-x:auto}
.diagnostics :is(th,td){padding:.2em .8em .2em 0;vertical-align:top}
:focus-visible{outline:2px solid #3b82f6;outline-offset:2px}
@media (max-width:40rem){body{padding:1rem .8rem 2rem}h1{font-size:1.4rem}
table.settings,table.settings tbody,table.settings tr,table.settings th,table.settings td{display:block}
table.settings th{border:0;padding-bottom:0}
table.asked thead{display:none}
table.asked :is(tbody,tr,th,td){display:block;border:0;padding:0}
table.asked tr{padding:.5em 0;border-bottom:1px solid var(--line)}
table.asked td::before{content:attr(data-name) ": ";color:var(--soft)}
.mcce-diagnostics :is(tr,th,td){display:block;border:0;padding:0;text-align:left!important}
.mcce-diagnostics tr{padding:.4em 0;border-bottom:1px solid var(--line)}}
@media print{:root{--ground:#fff;--text:#000;--soft:#333;--line:#999;--card:#fff}
body{max-width:none}figure,tr,dl.figures div{break-inside:avoid}h2{break-after:avoid}}
"""


@dataclass(frozen=True)
class Picture:
    """A PNG, a narrow one for a telephone, what they show for those who do not see it, and a line below it."""

    png: bytes
    narrow: bytes
    alt: str
    caption: str


@dataclass(frozen=True, kw_only=True)
class Page:
    """What stands on a page.

    Parameters
    ----------
    title : str
    intro : sequence of str
        Paragraphs below the title.
    figures : sequence of (name, value)
        The most important figures.
    sentences : sequence of str
        Explanations in words.
    pictures : sequence of Picture
        The same as pictures.
    overall : Picture, optional
        All factuals together.
    constraints : sequence of Bound
        What was asked of the rows, and what of it was binding.
    table : str
        HTML of the table.
    predicted : str
        What the prediction is called in it.
    diagnostics : str
        HTML of the diagnostics; empty for none.
    diagnosed : Picture, optional
        The diagnostics as a picture.
    settings : sequence of (name, value)
        Settings, seed, seconds, versions.
    """

    title: str
    intro: Sequence[str]
    figures: Sequence[tuple[str, str]]
    sentences: Sequence[str]
    pictures: Sequence[Picture]
    overall: Picture | None
    constraints: Sequence[Bound]
    table: str
    predicted: str
    diagnostics: str
    diagnosed: Picture | None
    settings: Sequence[tuple[str, str]]


def html_page(page: Page) -> str:
    """Return the page as one HTML document."""
    parts = [f"<h1>{escape(page.title)}</h1>", *(f"<p>{escape(text)}</p>" for text in page.intro)]
    cards = "".join(map(_card, page.figures))
    parts.append(f'<dl class="figures">{cards}</dl>')
    if page.sentences:
        said = "".join(f"<li>{escape(kept_together(sentence))}</li>" for sentence in page.sentences)
        parts.append(f"<h2>In words</h2><ol>{said}</ol>")
    if page.pictures:
        parts.append("<h2>In pictures</h2>" + "".join(map(_figure, page.pictures)))
    if page.overall is not None:
        parts.append(f"<h2>All factuals</h2>{_figure(page.overall)}")
    if page.constraints:
        parts.append(f"<h2>What may change</h2><p>{ASKED}</p>{_asked(page.constraints)}")
    parts.append(f"<h2>Table</h2><p>{escape(LEGEND.format(page.predicted))}</p>{page.table}")
    if page.diagnostics:
        parts.append(f'<h2>Diagnostics</h2><div class="diagnostics">{page.diagnostics}</div>')
    if page.diagnosed is not None:
        parts.append(_figure(page.diagnosed))
    rows = "".join(f'<tr><th scope="row">{escape(a)}</th><td>{escape(b)}</td></tr>' for a, b in page.settings)
    parts.append(f'<h2>Settings and versions</h2><table class="settings"><tbody>{rows}</tbody></table>')
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(page.title)}</title><style>{STYLE}</style></head>\n<body><main>\n{body}\n</main></body></html>\n"
    )


def _asked(constraints: Sequence[Bound]) -> str:
    """Return the table of constraints; on a telephone each cell says what it is."""
    heads = ("constraint", "free draws that break it", "rows that could go on")
    names = "".join(f'<th scope="col">{name}</th>' for name in heads)
    rows = "".join(
        f'<tr><th scope="row">{escape(each.asked)}</th>{_named_cell(heads[1], each.breaks)}'
        f"{_named_cell(heads[2], each.passed)}</tr>"
        for each in constraints
    )
    return f'<table class="asked"><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table>'


def _named_cell(name: str, text: str) -> str:
    return f'<td data-name="{name}">{escape(text)}</td>'


def _card(figure: tuple[str, str]) -> str:
    name, value = (escape(kept_together(text)) for text in figure)
    size = "long" if len(value) > 12 else "short"
    return f'<div><dt>{name}</dt><dd class="{size}">{value}</dd></div>'


def _figure(picture: Picture) -> str:
    wide, narrow = (f"data:image/png;base64,{base64.b64encode(png).decode()}" for png in (picture.png, picture.narrow))
    return (
        f'<figure><picture><source media="(max-width:40rem)" srcset="{narrow}">'
        f'<img alt="{escape(picture.alt)}" src="{wide}"></picture>'
        f"<figcaption>{escape(picture.caption)}</figcaption></figure>"
    )


def as_png(draw: Callable[[Figure], object], width: float, height: float) -> bytes:
    """Draw on a new figure of this size in inches, in matplotlib's own style, without the global state of pyplot."""
    from matplotlib import rc_context, rcParamsDefault
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as NewFigure

    plain = {name: value for name, value in rcParamsDefault.items() if not name.startswith(("backend", "interactive"))}
    with rc_context(plain):
        figure = NewFigure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure)
        stream = io.BytesIO()
        figure.savefig(stream, format="png", dpi=DOTS, metadata={"Software": None})
    return stream.getvalue()
