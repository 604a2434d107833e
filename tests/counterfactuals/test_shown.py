"""A result as text: repr, HTML, sentences."""

import re
from html.parser import HTMLParser

import pandas as pd
import pytest

from tests.counterfactuals.results import by_hand, explained

HOSTILE = ("<script>alert('x')</script>\n\x1b[31m", "two\nlines {0} $x$")


def test_repr_shows_the_changed_cells_only():
    text = repr(by_hand())
    assert text.splitlines()[0] == "Counterfactuals: 2 of 3 rows explained, 1 already"
    assert text.splitlines()[1] == "wanted: probability of class True below 0.1"
    lines = [line.split() for line in text.splitlines()[3:]]
    assert lines[0] == ["salary", "home", "prediction", "L0", "gower", "plausibility"]
    assert lines[2:5] == [
        ["ann", "factual", "68,000", "rent", "0.198"],
        ["1", "75,800", "0.0583", "1", "0.05", "0.4"],
        ["2", "72,000", "own", "0.0912", "2", "0.3", "0.02"],
    ]
    assert lines[5:] == [["bob", "factual", "41,500", "rent", "0.12"], ["1", "own", "0.04", "1", "0.25", "1"]]


def test_labels_can_be_copied_from_the_repr():
    text = repr(by_hand(names=(10_001, "home"), ids=(13_829, 15_091, 16_429)))
    assert "10001" in text
    assert "13829 factual" in text


def test_repr_of_many_rows_and_columns_is_short():
    _, _, result = explained()
    text = repr(result)
    assert max(map(len, text.splitlines())) <= 100
    assert len(text.splitlines()) <= 22
    assert text.splitlines()[-1] == "... 14 further rows"
    assert "age" not in text  # fixed, so nothing to show


class Reader(HTMLParser):
    """Collects the texts of cells and the tags of a page."""

    def __init__(self):
        super().__init__()
        self.tags, self.texts = set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.texts.append(data.strip())


def read(page):
    reader = Reader()
    reader.feed(page)
    return reader


def test_html_escapes_all_names_and_values():
    page = by_hand(names=HOSTILE, ids=("<img src=x onerror=y>", "&amp;", "c"))._repr_html_()
    reader = read(page)
    assert reader.tags == {"style", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert "<script>alert('x')</script>\\n\\x1b[31m" in reader.texts
    assert "<img src=x onerror=y>" in reader.texts
    assert "&amp;" in reader.texts
    result = explained()[2]
    assert "<b>" not in result._repr_html_()


def test_html_marks_changes():
    page = by_hand()._repr_html_()
    bold = re.findall(r"#(T_mcce_row\d_col\d)", page.partition("</style>")[0])
    cells = dict(re.findall(r'<td id="(T_mcce_row\d_col\d)"[^>]*>([^<]*)</td>', page))
    assert {cells[name] for name in bold} == {"75,800", "72,000", "own", ""}
    assert "2 of 3 rows explained" in page


def test_labels_that_read_alike_are_not_shown_as_html():
    assert by_hand(ids=(1, "1", 2))._repr_html_() is None
    assert "1" in repr(by_hand(ids=(1, "1", 2)))


def test_sentence_of_rows_and_of_rows_without_answer():
    result = by_hand()
    assert result.sentence("ann", 2) == (
        "With salary 72,000 instead of 68,000 and home own instead of rent, the decision would have been the "
        "wanted one: prediction 0.0912 instead of 0.198 (wanted: probability of class True below 0.1)."
    )
    assert result.sentence("cy") == "No counterfactual for 'cy': it has the wanted decision."


def test_labels_and_formats():
    labels = {"salary": "your salary", "prediction": "risk"}
    formats = {"salary": "{:,.0f} EUR", "prediction": "{:.1%}"}
    assert by_hand().sentence("ann", labels=labels, formats=formats) == (
        "With your salary 75,800 EUR instead of 68,000 EUR, the decision would have been the wanted one: risk 5.8% "
        "instead of 19.8% (wanted: probability of class True below 0.1)."
    )


def test_derived_columns_are_told_apart():
    _, _, result = explained()
    changes = result.changes()
    name = changes.loc[(changes["feature"] == "salary") & (changes["rank"] == 1), "id"].iloc[0]
    sentence = result.sentence(name)
    told, _, follows = sentence.partition("This gives ")
    assert "half" not in told
    assert re.fullmatch(r"half [\d,.]+ instead of [\d,.]+\.", follows)


def test_a_feature_with_the_name_of_the_prediction_keeps_its_format():
    sentence = by_hand(names=("prediction", "home")).sentence("ann", formats={"home": "{}"})
    assert "With prediction 75,800 instead of 68,000, the decision" in sentence


@pytest.mark.parametrize("show", [repr, lambda result: result.sentence(result.frame.index[0][0])])
def test_no_control_character_is_printed(show):
    text = show(by_hand(names=HOSTILE, ids=("a\nb\x07", "\u202ec", "d")))
    assert all(line.isprintable() for line in text.splitlines())
    assert "\\x1b[31m" in text


def test_a_frame_with_names_that_are_no_texts():
    result = by_hand(names=((1, "a"), pd.Timestamp("2020-01-01")))
    assert "2020-01-01" in repr(result)
    assert "With (1, 'a') 75,800 instead" in result.sentence("ann")
    assert list(result.to_frame())[3:5] == ["(1, 'a')", "2020-01-01 00:00:00"]
