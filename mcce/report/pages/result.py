"""The page of a result: what `Counterfactuals.to_html` writes.

Words and pictures are those of the first explained factuals (or of another result, the examples); figures, table and
settings are those of the result itself.
"""

from __future__ import annotations

import platform
from collections.abc import Hashable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from mcce.report.binding import binding_words
from mcce.report.names import PREDICTION
from mcce.report.pages.page import Page, Picture, as_png, html_page
from mcce.report.plots.change import MOST_ROWS
from mcce.report.plots.many import MOST_BARS
from mcce.report.telling import floor_of
from mcce.report.words import case_name, value_text

FACTUALS, SENTENCES, UNEXPLAINED, PICTURES = 25, 5, 2, 3
PACKAGES = ("mcce", "numpy", "pandas", "scikit-learn", "numba", "matplotlib")
WIDE, NARROW = 8.0, 4.2  # inches of a picture


def result_page(found: Any, title: str, intro: Sequence[str], examples: Any, diagnostics: Any) -> str:
    """Return the page of a `Counterfactuals`, words and pictures taken from `examples`, one as well."""
    places = list(examples.frame.index)
    if examples is found:
        places = [(id, rank) for id, rank in places if rank == 1]
    return html_page(
        Page(
            title=title,
            intro=intro,
            figures=_figures(found),
            sentences=[f"{_begin(id)}: {examples.sentence(id, rank)}" for id, rank in places[:SENTENCES]]
            + _without(found),
            pictures=[_picture(examples, id, rank) for id, rank in places[:PICTURES]],
            overall=_overall(found) if len(found) else None,
            constraints=binding_words(found.constraints),
            table=found.html_table(FACTUALS),
            predicted=found.names.label(PREDICTION),
            diagnostics="" if diagnostics is None else str(diagnostics._repr_html_()),
            diagnosed=None if diagnostics is None else _diagnosed(diagnostics),
            settings=_settings(found) + _versions(),
        )
    )


def _without(found: Any) -> list[str]:
    """Return why some have no counterfactual, in words: those that were looked into."""
    if "would_help" not in found.unexplained:
        return []
    told = found.unexplained.index[found.unexplained["would_help"].notna()]
    return [found.sentence(id) for id in told[:UNEXPLAINED]]


def _figures(found: Any) -> list[tuple[str, str]]:
    ids = found.frame.index.get_level_values("id")
    best = found.measures[found.frame.index.get_level_values("rank") == 1]
    figures = [("factuals", f"{len(found.factuals):,}"), ("with a counterfactual", f"{ids.nunique():,}")]
    if len(best):
        figures.append(("features changed, mean", value_text(float(best["L0"].mean()), 3)))
        figures.append(("Gower distance, mean (0 to 1)", value_text(float(best["gower"].mean()), 3)))
    if floor_of(found.settings) is not None:
        figures.append(("rows below the floor of plausibility", f"{int(found.below_floor().sum()):,}"))
    return [*figures, ("wanted", found.decision)]


def _picture(found: Any, id: Hashable, rank: int) -> Picture:
    n_changes = min(max(int(found.measures["L0"].loc[(id, rank)]), 1), MOST_ROWS)
    names = ", ".join(map(found.names.label, found.frame.columns))
    wide, narrow = (
        as_png(
            lambda figure: found.plot(id, rank, ax=figure.subplots()),
            width,
            height + 0.45 * n_changes + 1.3 * len(names) / (width * 70),
        )
        for width, height in ((WIDE, 1.6), (NARROW, 2.1))
    )
    way = f" {rank}" if rank > 1 else ""
    caption = f"{_begin(id)}: from the factual (open circle) to counterfactual{way} (filled circle)."
    return Picture(wide, narrow, found.sentence(id, rank), caption)


def _overall(found: Any) -> Picture:
    table = found.changed_features()
    changing = table[table["times"] > 0]
    height = 1.8 + 0.3 * min(max(len(changing), 1), MOST_BARS)
    wide, narrow = (
        as_png(lambda figure: found.plot_changes(ax=figure.subplots()), width, height + more)
        for width, more in ((WIDE, 0), (NARROW, 0.7))
    )
    shares = ", ".join(f"{found.names.label(name)} {share:.0%}" for name, share in changing["share"].items())
    caption = "How often each feature changes, and in which direction."
    return Picture(wide, narrow, f"Share of the factuals in which a feature changes: {shares}.", caption)


def _diagnosed(diagnostics: Any) -> Picture | None:
    """Return the overview of a `Diagnostics`, if generated and real rows were compared."""
    if diagnostics.marginals is None:
        return None
    wide = as_png(lambda figure: diagnostics.plot_overview(2, figure), 9.2, 7.0)
    narrow = as_png(lambda figure: diagnostics.plot_overview(1, figure), NARROW, 12.8)
    return Picture(wide, narrow, "The figures above as a picture.", "Diagnostics: generated rows, counterfactuals.")


def _settings(found: Any) -> list[tuple[str, str]]:
    """Return settings, the seed among them, and seconds as text."""
    rows = [("wanted decision", found.decision), ("fixed", ", ".join(map(found.names.label, found.fixed)) or "none")]
    for name, value in found.settings.items():
        is_list = isinstance(value, (list, tuple))
        text = ", ".join(map(found.names.label, value)) if is_list else _in_words(value)
        rows.append((name.replace("_", " "), text))
    return rows + [(f"seconds, {step}", f"{seconds:.2f}") for step, seconds in found.timings.items()]


def _begin(id: Hashable) -> str:
    """Return what a case is called, at the beginning of a sentence."""
    return id if isinstance(id, str) else case_name(id).capitalize()


def _in_words(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value_text(value) if isinstance(value, (int, float)) else str(value)


def _versions() -> list[tuple[str, str]]:
    rows = [("Python", platform.python_version())]
    for package in PACKAGES:
        try:
            rows.append((package, version(package)))
        except PackageNotFoundError:
            rows.append((package, "not installed as a package"))
    return rows
