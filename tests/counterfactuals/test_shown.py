"""A result in a terminal, as a page and as a plot."""

from __future__ import annotations

from dataclasses import replace

import matplotlib

import mcce

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from mcce.exceptions import InputError
from mcce.report.names import Names
from tests.counterfactuals.problem import DECISION, Cells, around
from tests.marks import nightly_rows


def test_repr_for_a_terminal(found):
    text = repr(found)
    assert "2 of 3 factuals explained, 3 rows" in text
    assert DECISION in text
    assert "mean over the best of each: L0 1.5, gower 0.275" in text
    assert "salary: 68,000 -> 72,000; defaulted: True -> False" in text
    assert "age" not in text
    assert text.endswith("not explained, no valid row among 1000 <samples>: 'cis'")
    assert len(found) == 3


def test_repr_is_short_for_many_rows_and_changes():
    before = pd.DataFrame(0, index=range(50), columns=[f"x{j}" for j in range(40)])
    text = repr(around(before, before + 1))
    assert "and 37 more" in text
    assert "... and 44 more rows" in text
    assert len(text.splitlines()) < 15


def test_html_marks_exactly_the_changed_cells(found):
    head, *rows = Cells(found._repr_html_()).rows
    assert [cell[0] for cell in head] == [
        "id, → rank", "prediction", "changes", "distance", "salary", "defaulted", "home", "agefixed",
    ]  # fmt: skip
    assert [row[0][0] for row in rows] == ["ann", "→ 1", "→ 2", "bob", "→ 1"]
    assert [cell[0] for cell in rows[0][1:]] == ["0.31", "", "", "68,000", "True", "rent", "30"]
    marked = {
        (r, c): (text, title)
        for r, row in enumerate(rows)
        for c, (text, kind, title) in enumerate(row)
        if "changed" in kind.split()
    }
    assert marked == {
        (1, 4): ("72,000", "was 68,000"),
        (1, 5): ("False", "was True"),
        (2, 4): ("90,000", "was 68,000"),
        (2, 6): ("<script>", "was rent"),
        (4, 6): ("own", "was missing"),
    }
    same = sum("same" in kind.split() for row in rows for _, kind, _ in row)
    assert same == 3 * 4 - len(marked)


def test_html_escapes_values_names_reasons_and_ids(found):
    html = found._repr_html_()
    assert "script" not in Cells(html).tags
    assert "&lt;script&gt;" in html
    assert "1000 &lt;samples&gt;" in html
    before = pd.DataFrame({"<script>": ['"><script>']}, index=["<script>"])
    nasty = around(before, pd.DataFrame({"<script>": ["b"]}), fixed=("x",))
    cells = Cells(nasty._repr_html_())
    assert "script" not in cells.tags
    assert cells.rows[2][4][2] == 'was "><script>'


def test_html_of_a_wide_table_has_the_changing_features_first():
    before = pd.DataFrame(0, index=range(30), columns=[f"x{j}" for j in range(40)])
    after = before.copy()
    after[["x17", "x33"]] = 1
    html = around(before, after)._repr_html_()
    head, *rows = Cells(html).rows
    assert [cell[0] for cell in head[4:8]] == ["x17", "x33", "x0", "x1"]
    assert len(rows) == 20
    assert "20 more rows, 20 more explained cases" in html


def test_plot(found):
    first, second = found.plot(), found.plot("bob")
    assert first.get_title(loc="left").endswith("for ann")
    assert {"68,000", "72,000"} <= {t.get_text() for t in first.texts}
    assert [t.get_text() for t in second.get_yticklabels()] == ["home"]
    with pytest.raises(InputError, match="No counterfactual was found for 'cis'"):
        found.plot("cis")
    plt.close(first.figure)
    plt.close(second.figure)
    assert plt.get_fignums() == []


@pytest.mark.slow
def test_plot_of_the_changes_of_many(found):
    ax = mcce.plots.changes_plot(found)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["salary", "defaulted", "home"]
    assert "2 cases" in ax.get_xlabel()
    plt.close(ax.figure)


def shown_in_every_way(found, folder):
    """Return the sentence of the first case after rendering every text and picture of the result."""
    id = next(iter(found))
    for text in (
        repr(found),
        found._repr_html_(),
        mcce.report.letter(found, id),
        found.changes(words=True).to_string(),
    ):
        assert text
    found.to_html(folder / "found.html")
    for ax in (found.plot(id), mcce.plots.changes_plot(found)):
        ax.figure.canvas.draw()
    plt.close("all")
    return found.sentence(id)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("blank", "shown"),
    [("\u200b", '"\\u200b"'), *nightly_rows((" ", '" "'), ("\ufeff", '"\\ufeff"'), ("\u00a0", '"\\xa0"'), ("", '""'))],
)
def test_blank_names_and_levels_are_shown(blank, shown, tmp_path):
    before = pd.DataFrame({blank: [1.0, 2.0], "job": [blank, blank]}, index=[blank, "ann"])
    after = before.assign(**{blank: [3.0, 4.0], "job": ["cook", "cook"]})
    said = shown_in_every_way(around(before, after), tmp_path)
    assert said.startswith(f"With {shown} 3 instead of 1 and job cook instead of {shown}, ")


@pytest.mark.slow
def test_characters_missing_from_a_font_are_drawn(tmp_path):
    before = pd.DataFrame({"job": ["\u2800", "\u2800"]}, index=["\u2800", "ann"])  # the blank Braille pattern
    assert "cook instead of \u2800" in shown_in_every_way(around(before, before.assign(job="cook")), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_dates_of_any_year_are_shown(zone, tmp_path):
    years = pd.Series(np.array(["-0044-03-15", "20000-01-01", "12000-05-31"], dtype="M8[s]")).dt.tz_localize(zone)
    before = pd.DataFrame({"day": years[:2].array}, index=["ann", "bob"])
    after = pd.DataFrame({"day": years[1:].array}, index=["ann", "bob"])
    found = around(before, after)
    ranges = {"day": (years.min(), years.max())}
    said = shown_in_every_way(replace(found, kinds={"day": "numeric"}, ranges=ranges), tmp_path)
    assert said.startswith("With day 20000-01-01 instead of -044-03-15, ")
    names = Names.read({"formats": {"day": "%d.%m.%Y"}}, ["day"])
    assert shown_in_every_way(replace(found, names=names), tmp_path) == said
