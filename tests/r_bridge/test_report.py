"""Tables as text and HTML."""

import numpy as np
import pandas as pd
import pytest

from r_bridge.report import as_html, as_text, cell

TABLE = pd.DataFrame({"what": ["a <b>", "c"], "n": [1234567, 2], "gap": [0.0, np.nan]})


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (np.nan, ""),
        (pd.NA, ""),
        (1234567, "1,234,567"),
        (np.int64(5), "5"),
        (0.123456, "0.123"),
        ("x", "x"),
        (True, "True"),
    ],
)
def test_cells(value, shown):
    assert cell(value) == shown


def test_text_is_aligned():
    text = as_text(["Headline."], TABLE, ["A note."])
    assert text.splitlines() == [
        "Headline.",
        "",
        "what           n  gap",
        "-----  ---------  ---",
        "a <b>  1,234,567    0",
        "c              2",
        "",
        "A note.",
    ]


def test_html_is_escaped_and_marks_rows():
    page = as_html(["1 < 2"], TABLE, ["done"], [True, False])
    assert "a &lt;b&gt;" in page
    assert "<p>1 &lt; 2</p>" in page
    assert page.count('class="look"') == 1
    assert "<script" not in page
