"""A result as HTML: a table for a notebook, and a page.

The table (`result_table`) has a row for each factual and for each of its counterfactuals; changed cells are marked and
say the old value; features that change come first. On narrow screens each row is a list of changes. It has no script
and sets no text colour.

The page (`result_page`) is one file: answers in words and pictures for the first cases, figures of all cases,
constraints, the table, unexplained rows, diagnostics if given, settings and versions. It follows the reader's light or
dark setting; pictures have alternative text.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from mcce.base.canvas import WIDTH
from mcce.base.progress import progress_bar
from mcce.base.versions import versions_of
from mcce.report.names import PREDICTION, case_name, fold, kept_together, value_text
from mcce.report.plots.changes import MOST_BARS, changes_plot
from mcce.report.rows import Result, compare_rows, incidental_cells, owners
from mcce.report.words import ConstraintWords, constraint_words, reasons_in_lines, result_headline, sentence

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

LETTER, PADDING, WIDEST, WIDEST_HEAD = 8.0, 18.0, 182.0, 117.0  # pixels, for bold type of 13 pixels
STEP = 40  # pixels; tables of similar width share a rule

# Colours follow the notebook: text is inherited, marks are translucent. Only the sticky column needs a background:
# that of the theme (Jupyter, VS Code, Sphinx), or a blur.
TABLE_STYLE = """<style>
.mcce-cf{font-size:13px;line-height:1.35;min-width:20em;max-width:100%;container-type:inline-size}
.mcce-cf .scroll{overflow-x:auto;max-width:100%;scrollbar-color:rgba(128,128,128,.6) transparent}
.mcce-cf.mcce-cf table{border-collapse:separate;border-spacing:0;width:max-content;margin:.4em 0;border:0}
.mcce-cf.mcce-cf table tr{background:none}
.mcce-cf.mcce-cf table :is(th,td){padding:.25em .65em;border:0;text-align:left;vertical-align:top;
 max-width:14em;overflow-wrap:anywhere;white-space:normal}
.mcce-cf.mcce-cf table .n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.mcce-cf.mcce-cf table thead th{vertical-align:bottom;border-bottom:1px solid;font-weight:600;max-width:9em}
.mcce-cf.mcce-cf table thead th.n{white-space:normal}
.mcce-cf.mcce-cf table th:first-child{position:sticky;left:0;z-index:1;white-space:nowrap;
 backdrop-filter:blur(9px);background:var(--jp-layout-color0,var(--vscode-editor-background,
 var(--pst-color-background,var(--color-background-primary,transparent))))}
.mcce-cf.mcce-cf table tr.factual :is(th,td){border-top:1px solid rgba(128,128,128,.5)}
.mcce-cf.mcce-cf table tr.found th{font-weight:400;padding-left:1.4em}
.mcce-cf.mcce-cf table td.same{opacity:.7}
.mcce-cf.mcce-cf table td.changed{background:rgba(255,165,0,.3);font-weight:700}
.mcce-cf small{display:block;font-weight:400;opacity:.75}
.mcce-cf p{margin:.2em 0}
</style>"""

# One rule for each width of a table. On narrow screens figures and changed cells have labels; other cells are hidden.
NARROW = """<style>
@container (max-width:{width}px){{
.mcce-cf.{name} table,.mcce-cf.{name} tbody{{display:block;width:auto}}
.mcce-cf.{name} thead,.mcce-cf.{name} td.same,.mcce-cf.{name} td:empty,
.mcce-cf.{name} tr.factual td:not(.f){{display:none}}
.mcce-cf.{name} tr{{display:flex;flex-wrap:wrap;align-items:baseline;padding:.25em 0}}
.mcce-cf.{name} tr.factual{{border-top:1px solid rgba(128,128,128,.5)}}
.mcce-cf.{name}.mcce-cf table tr :is(th,td){{max-width:100%;border:0;padding:.1em .5em;text-align:left;
 white-space:normal}}
.mcce-cf.{name}.mcce-cf table th:first-child{{position:static}}
.mcce-cf.{name} td.changed{{flex:1 1 24em;margin:.1em}}
.mcce-cf.{name} td::before{{content:attr(data-name) " ";font-weight:400;opacity:.8}}
.mcce-cf.{name} td.changed::after{{content:" (" attr(title) ")";font-weight:400;opacity:.8}}
}}
</style>"""


@dataclass(frozen=True)
class _FeatureColumn:
    """A feature as a column of the table: the text of each factual, and of each cell before and after."""

    label: str
    unit: str
    is_number: bool
    is_fixed: bool
    factual: list[str]
    texts: list[tuple[str, str]]
    changed: NDArray[np.bool_]
    along: NDArray[np.bool_]

    def head(self) -> str:
        below = "".join(f"<small>{escape(text)}</small>" for text in (self.unit, "fixed" * self.is_fixed) if text)
        return f'<th scope="col"{_class("n" * self.is_number)}>{escape(self.label).replace("_", "_<wbr>")}{below}</th>'

    def factual_cell(self, k: int) -> str:
        return f"<td{_class('n' * self.is_number)}>{escape(fold(self.factual[k], 120, 1))}</td>"

    def cell(self, k: int, aside: str) -> str:
        """Return a cell of a counterfactual; a changed one is bold and says the old value, `aside` marks some."""
        was, text = (escape(fold(each, 120, 1)) for each in self.texts[k])
        if not self.changed[k]:
            return f"<td{_class('n ' * self.is_number + 'same')}>{text}</td>"
        label = escape(f"{self.label}, {self.unit}" if self.unit else self.label)
        was, small = (f"{was}, {aside}", f" <small>{aside}</small>") if self.along[k] else (was, "")
        return (
            f'<td{_class("n " * self.is_number + "changed")} data-name="{label}" title="was {was}" '
            f'aria-label="{text}, was {was}"><b>{text}</b>{small}</td>'
        )


def result_table(found: Result, n_factuals: int, *, with_headline: bool = True) -> str:
    """Return the table of the first explained factuals with its style, its headline and its notes."""
    factual_of_row = owners(found)
    explained = list(dict.fromkeys(factual_of_row.tolist()))
    chosen = [np.flatnonzero(factual_of_row == f)[:RANKS_SHOWN] for f in explained[:n_factuals]]
    rows = np.concatenate([np.array([], dtype=np.intp), *chosen])
    columns = _columns(found, rows)
    shown = [name for name in (PREDICTION, "L0", "gower", "plausibility") if name in found.measures]
    heads = [HEADS.get(name) or found.names.label(name) for name in shown]
    figures = [[_figure_text(found, name, row) for name in shown] for row in rows.tolist()]
    aside = "comes along" if found.consequences is None else "consequence"
    lines = []
    for k, (id, rank) in enumerate(found.frame.index[rows]):
        factual = factual_of_row[rows[k]]
        if k == 0 or factual != factual_of_row[rows[k - 1]]:
            prediction = found.names.text(PREDICTION, found.factual_predictions.iloc[factual], 3)
            cells = "".join(column.factual_cell(k) for column in columns)
            lines.append(_tr("factual", id, heads, [prediction] + [""] * (len(shown) - 1), cells))
        cells = "".join(column.cell(k, aside) for column in columns)
        lines.append(_tr("found", f"→ {rank}", heads, figures[k], cells))
    head = "".join(f'<th scope="col" class="n">{escape(text)}</th>' for text in heads)
    head += "".join(column.head() for column in columns)
    table = (
        '<div class="scroll" role="region" tabindex="0" aria-label="Table of cases and their counterfactuals"><table>'
        f'<thead><tr><th scope="col">id, → rank</th>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'
    )
    above = _paragraphs(result_headline(found, HEADS) if with_headline else [])
    below = _paragraphs(_notes(found, columns, len(rows), len(explained) - n_factuals))
    width = _width(found, rows, columns, heads, figures)
    style = TABLE_STYLE + NARROW.format(width=width, name=f"w{width}")
    return f'{style}<div class="mcce-cf w{width}">{above}{table}{below}</div>'


def _columns(found: Result, rows: NDArray[np.intp]) -> list[_FeatureColumn]:
    """Return the features as columns of some rows of `frame`, those that change first."""
    before, changed = compare_rows(found, rows)
    after, along, names = found.frame.iloc[rows], incidental_cells(found, rows), found.names
    columns = []
    for j in np.argsort(~changed.any(axis=0), kind="stable").tolist():
        name = after.columns[j]
        old, new = (table.iloc[:, j].astype(object) for table in (before, after))
        columns.append(
            _FeatureColumn(
                label=names.label(name),
                unit=names.units.get(name, ""),
                is_number=found.kinds.get(name) == "numeric",
                is_fixed=name in found.fixed,
                factual=[names.pair(name, cell, cell, unit=False)[1] for cell in old],
                texts=[names.pair(name, *cells, unit=False) for cells in zip(old, new)],
                changed=changed[:, j],
                along=along[:, j],
            )
        )
    return columns


def _figure_text(found: Result, name: str, row: int) -> str:
    value = found.measures[name].iloc[row]
    return found.names.text(PREDICTION, value, 3) if name == PREDICTION else value_text(value, 3)


def _width(
    found: Result, rows: NDArray[np.intp], columns: list[_FeatureColumn], heads: list[str], figures: list[list[str]]
) -> int:
    """Return the width in pixels of the names of rows, the figures and the changing features side by side."""
    ids = found.frame.index.get_level_values("id")[rows]
    wide = max([len("id, → rank"), *(min(len(str(id)), 30) for id in ids)]) * LETTER + 2 * PADDING
    cells = [(head, [texts[k] for texts in figures]) for k, head in enumerate(heads)]
    cells += [(column.label, [after for _, after in column.texts]) for column in columns if column.changed.any()]
    for head, texts in cells:
        widest = max([min(len(text) * LETTER, WIDEST) for text in texts] or [0.0])
        wide += max(widest, min(len(head) * LETTER, WIDEST_HEAD)) + PADDING
    return int(-(-wide // STEP) * STEP)


def _class(names: str) -> str:
    return f' class="{names.strip()}"' if names.strip() else ""


def _tr(kind: str, label: object, names: list[str], figures: list[str], cells: str) -> str:
    numbers = "".join(
        f'<td class="n f" data-name="{escape(name)}">{escape(text)}</td>' for name, text in zip(names, figures)
    )
    return f'<tr class="{kind}"><th scope="row">{escape(fold(str(label), 30, 1))}</th>{numbers}{cells}</tr>'


def _notes(found: Result, columns: list[_FeatureColumn], n_rows: int, n_more_factuals: int) -> list[str]:
    lines = []
    if n_rows:
        lines.append(
            "Bold on a coloured ground: changed; the row of the case above has the old value. Features that change in "
            "these rows come first."
        )
    if found.consequences is not None:
        lines.append("A consequence follows from the actions; the row shows one of those that may follow.")
    elif any(column.along.any() for column in columns):
        lines.append("A change that comes along is not needed for the decision, but makes the others plausible.")
    if len(found) > n_rows:
        lines.append(f"Not shown: {len(found) - n_rows} more rows, {max(n_more_factuals, 0)} more explained cases.")
    return lines + reasons_in_lines(found.unexplained)


def _paragraphs(lines: list[str]) -> str:
    return "".join(f"<p>{escape(line)}</p>" for line in lines)


HEADS = {"L0": "changes", "gower": "distance"}  # of measures; plausibility has its name, the prediction its label
DOTS = 150  # per inch: sharp on a dense screen
LEGEND = (
    "{}: the prediction of the model. Changes: the number of changed features. Distance: the difference from the case, "
    "from 0 (equal) to 1 (far apart)."
)
PLAUSIBILITY = " Plausibility: the share of real rows that are at least as unusual."
CONSTRAINTS = (
    "No row on this page violates one of these constraints. The more rows drawn without constraints violate one, the "
    "more restrictive it is. A row drawn within all of them is dropped where no value is allowed."
)

PAGE_STYLE = """
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
dl.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.7rem;margin:.4em 0}
dl.figures div{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.6rem .8rem}
dl.figures dt{font-size:.82rem;color:var(--soft)}
dl.figures dd{margin:0;font-size:1.25rem;font-weight:650;overflow-wrap:anywhere}
dl.figures dd.long{font-size:1rem;line-height:1.35}
.answer{display:grid;gap:.5rem 2.5rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,27rem),1fr));
align-items:start;padding:.8rem 0;border-bottom:1px solid var(--line)}
.answer:first-of-type p{font-size:1.1rem}
figure{margin:.4em 0}
figure img{display:block;width:100%;height:auto;padding:.5rem;background:#fff;border:1px solid var(--line);
border-radius:.5rem}
figcaption{font-size:.88rem;color:var(--soft);margin-top:.4em;max-width:46rem}
table.settings{border-collapse:collapse;font-size:.92rem}
table.settings :is(th,td){text-align:left;vertical-align:top;padding:.3em .9em .3em 0;overflow-wrap:anywhere;
border-bottom:1px solid var(--line)}
table.settings th{font-weight:500;color:var(--soft);white-space:nowrap}
table.listing{border-collapse:collapse;font-size:.92rem;max-width:60rem}
table.listing :is(th,td){text-align:left;vertical-align:top;padding:.35em 1.4em .35em 0;overflow-wrap:anywhere;
border-bottom:1px solid var(--line)}
table.listing thead th{font-weight:500;color:var(--soft)}
table.listing tbody th{font-weight:600}
table.listing td{min-width:8rem}
.diagnostics{overflow-x:auto}
.diagnostics :is(th,td){padding:.2em .8em .2em 0;vertical-align:top}
:focus-visible{outline:2px solid #3b82f6;outline-offset:2px}
@media (max-width:40rem){body{padding:1rem .8rem 2rem}h1{font-size:1.4rem}
table.settings,table.settings tbody,table.settings tr,table.settings th,table.settings td{display:block}
table.settings th{border:0;padding-bottom:0}
table.listing thead{display:none}
table.listing :is(tbody,tr,th,td){display:block;border:0;padding:0}
table.listing tr{padding:.5em 0;border-bottom:1px solid var(--line)}
table.listing td::before{content:attr(data-name) ": ";color:var(--soft)}
.mcce-diagnostics :is(tr,th,td){display:block;border:0;padding:0;text-align:left!important}
.mcce-diagnostics tr{padding:.4em 0;border-bottom:1px solid var(--line)}}
@media print{:root{--ground:#fff;--text:#000;--soft:#333;--line:#999;--card:#fff}
body{max-width:none}figure,tr,.answer,dl.figures div{break-inside:avoid}h2{break-after:avoid}}
"""


def _constraint_table(constraints: Sequence[ConstraintWords]) -> str:
    """Return the table of constraints; on narrow screens each cell has a label."""
    heads = ("constraint", "unconstrained draws that violate it", "draws with an allowed value")
    names = "".join(f'<th scope="col">{name}</th>' for name in heads)
    rows = "".join(
        f'<tr><th scope="row">{escape(each.text)}</th>{_named_cell(heads[1], each.breaks)}'
        f"{_named_cell(heads[2], each.passed)}</tr>"
        for each in constraints
    )
    return f'<table class="listing"><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table>'


def _named_cell(name: str, text: str) -> str:
    return f'<td data-name="{name}">{escape(text)}</td>'


def _card(figure: tuple[str, str]) -> str:
    name, value = (escape(kept_together(text)) for text in figure)
    size = "long" if len(value) > 12 else "short"
    return f'<div><dt>{name}</dt><dd class="{size}">{value}</dd></div>'


def _figure(png: bytes, alt: str, caption: str) -> str:
    """Return a PNG with its alternative text, and a line below it."""
    source = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    return f'<figure><img alt="{escape(alt)}" src="{source}"><figcaption>{escape(caption)}</figcaption></figure>'


def as_png(draw: Callable[[Figure], object], width: float, height: float) -> bytes:
    """Draw on a new figure of this size in inches, in the default style of matplotlib, without pyplot."""
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


SENTENCES, UNEXPLAINED, PICTURES, PLANS = 5, 2, 3, 3
SETTINGS = {"floor": "least plausibility", "rows_queried": "rows shown to the model"}
PACKAGES = ("mcce", "numpy", "pandas", "scikit-learn", "numba", "matplotlib")
HEIGHT = 3.0  # inches of a new picture, before its height is set to fit
RANKS_SHOWN, FACTUALS_ON_PAGE = 5, 25


def result_page(
    found: Result, title: str, intro: Sequence[str], *, examples: Result | None = None, diagnostics: Any = None
) -> str:
    """Return the page of a result; see `mcce.Counterfactuals.to_html`."""
    parts = [f"<h1>{escape(title)}</h1>", *(f"<p>{escape(text)}</p>" for text in intro)]
    answers = found if examples is None else examples
    ids = list(dict.fromkeys(answers.frame.index.get_level_values("id")))[:SENTENCES]
    with progress_bar(min(len(ids), PICTURES) + bool(len(found)), "drawing pictures", None) as bar:
        for k, id in enumerate(ids):
            parts.append(_answer(answers, id, with_picture=k < PICTURES))
            bar.update(k < PICTURES)
        parts += [f'<section class="answer"><p>{escape(kept_together(each))}</p></section>' for each in _without(found)]
        if len(found):
            figures = f'<dl class="figures">{"".join(map(_card, _figures(found)))}</dl>'
            parts.append(f'<h2>All cases</h2><section class="answer">{figures}{_overall(found)}</section>')
    constraints = constraint_words(found.constraints)
    if constraints:
        parts.append(f"<h2>What may change</h2><p>{CONSTRAINTS}</p>{_constraint_table(constraints)}")
    prediction = found.names.label(PREDICTION)
    legend = LEGEND.format(prediction[:1].upper() + prediction[1:]) + PLAUSIBILITY * ("plausibility" in found.measures)
    parts.append(
        f"<h2>Table</h2><p>{escape(legend)}</p>{result_table(found, FACTUALS_ON_PAGE, with_headline=not len(found))}"
    )
    if diagnostics is not None:
        parts.append(f'<h2>Diagnostics</h2><div class="diagnostics">{diagnostics._repr_html_()}</div>')
        if diagnostics.marginals is not None:
            png = as_png(lambda figure: diagnostics.plot_overview(2, figure), 9.2, 7.0)
            caption = "Diagnostics: generated rows, counterfactuals."
            parts.append(_figure(png, "The figures above as a picture.", caption))
    settings = _settings(found) + list(versions_of(PACKAGES).items())
    rows = "".join(f'<tr><th scope="row">{escape(a)}</th><td>{escape(b)}</td></tr>' for a, b in settings)
    parts.append(f'<h2>Settings and versions</h2><table class="settings"><tbody>{rows}</tbody></table>')
    return whole_page(title, "\n".join(parts))


def whole_page(title: str, body: str) -> str:
    """Return a self-contained page."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{PAGE_STYLE}</style></head>\n<body><main>\n{body}\n</main></body></html>\n"
    )


def _without(found: Result) -> list[str]:
    """Return why some cases have no counterfactual, for those with a known remedy."""
    if "would_help" not in found.unexplained:
        return []
    explained = found.unexplained.index[found.unexplained["would_help"].notna()]
    return [sentence(found, id) for id in explained[:UNEXPLAINED]]


def _figures(found: Result) -> list[tuple[str, str]]:
    ids = found.frame.index.get_level_values("id")
    best = found.measures[found.frame.index.get_level_values("rank") == 1]
    figures = [("cases", f"{len(found.factuals):,}"), ("with an answer", f"{ids.nunique():,}")]
    if len(best):
        figures.append(("features changed, mean", value_text(float(best["L0"].mean()), 3)))
        figures.append(("distance to the case, mean (0 to 1)", value_text(float(best["gower"].mean()), 3)))
    if found.run.floor is not None:
        figures.append(("answers less plausible than required", f"{int(found.below_floor().sum()):,}"))
    return [*figures, ("wanted", found.decision)]


def _answer(found: Result, id: Hashable, *, with_picture: bool) -> str:
    """Return the answers for one case: a sentence for each plan, and all plans in one picture."""
    ranks = found.frame.index.get_level_values("rank")[found.frame.index.get_level_values("id") == id]
    sentences = [kept_together(sentence(found, id, rank)) for rank in ranks[:PLANS]]
    if len(sentences) == 1:
        words = f"<p><b>{escape(_begin(id))}</b>: {escape(sentences[0])}</p>"
    else:
        plans = "".join(f"<li>{escape(each)}</li>" for each in sentences)
        count = f"{len(sentences)} plans, each sufficient alone."
        words = f"<div><p><b>{escape(_begin(id))}</b>: {count}</p><ol>{plans}</ol></div>"
    if not with_picture:
        return f'<section class="answer">{words}</section>'
    png = as_png(lambda figure: found.plot_plans(id, max_plans=PLANS, figure=figure), WIDTH, HEIGHT)
    picture = _figure(png, " ".join(sentences), "Open circle: now. Filled circle: the new value.")
    return f'<section class="answer">{words}{picture}</section>'


def _overall(found: Result) -> str:
    table = found.changed_features()
    changing = table[table["times"] > 0]
    height = 1.8 + 0.3 * min(max(len(changing), 1), MOST_BARS)
    png = as_png(lambda figure: changes_plot(found, figure.subplots()), WIDTH, height)
    shares = ", ".join(f"{found.names.label(name)} {share:.0%}" for name, share in changing["share"].items())
    caption = "How often each feature changes, and in which direction."
    return _figure(png, f"Share of the cases in which a feature changes: {shares}.", caption)


def _settings(found: Result) -> list[tuple[str, str]]:
    """Return settings, including the seed, and seconds as text."""
    rows = [("wanted decision", found.decision), ("fixed", ", ".join(map(found.names.label, found.fixed)) or "none")]
    for name, value in found.run.settings.items():
        is_list = isinstance(value, (list, tuple))
        text = ", ".join(map(found.names.label, value)) if is_list else _in_words(value)
        rows.append((SETTINGS.get(name, name).replace("_", " "), text))
    return rows + [(f"seconds, {step}", f"{seconds:.2f}") for step, seconds in found.run.timings.items()]


def _begin(id: Hashable) -> str:
    """Return the name of a case for the beginning of a sentence."""
    return id if isinstance(id, str) else case_name(id).capitalize()


def _in_words(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    return value_text(value) if isinstance(value, (int, float)) else str(value)
