"""A result in a terminal, as a page and as a picture."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from mcce.exceptions import InputError
from tests.counterfactuals.problem import DECISION, Cells, around


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
        "id, → rank", "prediction", "L0", "gower", "salary", "defaulted", "home", "agefixed",
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
    assert "20 more rows, 20 more explained factuals" in html


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
    ax = found.plot_changes()
    assert [t.get_text() for t in ax.get_yticklabels()] == ["salary", "defaulted", "home"]
    assert "2 factuals" in ax.get_xlabel()
    plt.close(ax.figure)
