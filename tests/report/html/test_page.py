"""The page of a result: complete, self-contained, accessible."""

from __future__ import annotations

import base64
import io
import re
from html.parser import HTMLParser

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import mcce
from mcce.base.canvas import WIDTH
from mcce.counterfactuals import Counterfactuals
from mcce.report.html import as_png
from tests.plain_words import assert_plain


class Reader(HTMLParser):
    """Tags with their attributes, and the text of headings."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[tuple[str, str]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("img", "meta", "wbr", "source", "br"):
            self._open.append(tag)
        if tag in ("h1", "h2"):
            self.headings.append((tag, ""))

    def handle_endtag(self, tag):
        assert self._open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data):
        if self._open and self._open[-1] in ("h1", "h2"):
            self.headings[-1] = (self._open[-1], data)
        if "style" not in self._open:
            self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def explainer():
    X = mcce.datasets.load_loans(400).X

    def score(frame):
        return frame["salary"].to_numpy(float) / 100_000

    return mcce.MCCE(score, decision=(0.6, 1.0), fixed=["age", "sex"], random_state=7).fit(X), X, score


@pytest.fixture(scope="module")
def found(explainer) -> Counterfactuals:
    fitted, X, score = explainer
    return fitted.explain(X[score(X) < 0.6].head(40), n_samples=50, n_counterfactuals=2)


@pytest.fixture(scope="module")
def page(found) -> str:
    return found.to_html()


def test_every_part_is_present(page, found):
    reader = Reader(page)
    assert reader.headings == [
        ("h1", "Counterfactuals"),
        ("h2", "All cases"),
        ("h2", "Table"),
        ("h2", "Settings and versions"),
    ]
    first = found.frame.index[0][0]
    assert f"{first}: 2 plans, each sufficient alone.{found.sentence(first)}{found.sentence(first, 2)}" in reader.text
    assert reader.text.index(found.sentence(first)) < reader.text.index("with an answer"), "counts lead"
    for word in ("random state", "7", "n samples", "visit sequence", "seconds, fit", "Python", "numpy", "age, sex"):
        assert word in reader.text
    assert "Not shown" in reader.text
    assert sum("changed" in (a.get("class") or "").split() for a in reader.all("td")) > 25


def test_page_has_no_internal_words(page):
    assert_plain(page)


def test_page_is_self_contained(page):
    reader = Reader(page)
    names = {tag for tag, _ in reader.tags}
    assert not names & {"script", "link", "iframe", "object"}
    sources = [a["src"] for a in reader.all("img")]
    assert len(sources) == 4
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert "url(" not in page
    assert "@import" not in page
    assert not re.search(r"https?://", page)


def test_page_is_accessible(page):
    reader = Reader(page)
    assert reader.all("html")[0]["lang"] == "en"
    assert reader.all("title")
    assert reader.all("main")
    assert "width=device-width" in [a.get("content", "") for a in reader.all("meta")][1]
    assert all(len(a["alt"]) > 20 for a in reader.all("img"))
    assert all(a.get("scope") in ("row", "col") for a in reader.all("th"))
    assert all("aria-label" in a for a in reader.all("td") if "changed" in (a.get("class") or "").split())
    assert "prefers-color-scheme:dark" in page


def test_pictures_match_the_plots(page):
    source = Reader(page).all("img")[0]["src"].removeprefix("data:image/png;base64,")
    picture = plt.imread(io.BytesIO(base64.b64decode(source)))
    assert picture.shape[1] == WIDTH * 150
    assert picture.std() > 0.01


@pytest.mark.slow
def test_written_page_is_identical_for_any_matplotlib_style(page, found, tmp_path):
    with plt.style.context("dark_background"):
        target = found.to_html(tmp_path / "report.html")
    assert target == tmp_path / "report.html"
    assert target.read_text(encoding="utf-8") == page
    assert plt.get_fignums() == []


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_texts_and_examples_of_the_caller(explainer, found):
    fitted, X, score = explainer
    one = fitted.explain(X[score(X) < 0.6].iloc[[3]], n_samples=50, n_counterfactuals=2)
    id = one.factuals.index[0]
    page = found.to_html(title="A <title>", intro=["First & foremost.", "Second."], examples=one)
    reader = Reader(page)
    assert reader.headings[0] == ("h1", "A <title>")
    assert "First & foremost." in reader.text
    assert [reader.text.count(one.sentence(id, rank)) for rank in (1, 2)] == [1, 1]
    assert len(reader.all("img")) == 2, "both plans stand in one picture"


@pytest.mark.usefixtures("few_trees")
@pytest.mark.slow
def test_page_with_diagnostics(explainer, found, monkeypatch):
    fitted, X, _ = explainer
    drawn = []

    def without_a_file(draw, width, height):
        drawn.append(draw(Figure((width, height))))
        return b"not written"

    monkeypatch.setattr("mcce.report.html.as_png", without_a_file)
    d = fitted.diagnose(X.head(60), n_samples=20, max_factuals=5)
    reader = Reader(found.to_html(diagnostics=d))
    assert ("h2", "Diagnostics") in reader.headings
    assert "discriminator accuracy" in reader.text
    assert len(reader.all("img")) == 5
    assert len(drawn) == 5
    few = fitted.diagnose(X.head(5), n_samples=20)
    assert len(Reader(found.to_html(diagnostics=few)).all("img")) == 4


def test_page_without_counterfactuals(found):
    empty = Counterfactuals(
        frame=found.frame.iloc[:0],
        measures=found.measures.iloc[:0],
        factuals=found.factuals,
        unexplained=pd.DataFrame({"reason": "no <valid> row", "prediction": 0.1}, index=found.factuals.index),
        factual_predictions=found.factual_predictions,
        decision="score in [0.6, 1]",
    )
    reader = Reader(empty.to_html())
    assert [text for _, text in reader.headings] == ["Counterfactuals", "Table", "Settings and versions"]
    assert "no <valid> row" in reader.text


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_constraints_and_binding_constraints_are_listed(explainer):
    fitted, X, score = explainer
    constraints = [
        mcce.allow("salary", max_step=30_000),
        mcce.rule("savings >= was(savings) and 1 < 2", name="<b>savings</b> & more"),
        mcce.rule("age >= 0"),
    ]
    factuals = X[score(X) < 0.6]
    far = factuals[factuals["salary"] < 29_000].head(1)  # cannot reach 60,000
    near = factuals[factuals["salary"] > 45_000].head(5)
    found = fitted.explain(pd.concat([near, far]), n_samples=50, constraints=constraints).with_why_unexplained()
    page = str(found.to_html())
    assert "<b>savings" not in page
    read = Reader(page)
    assert ("h2", "What may change") in read.headings
    after = read.text[read.text.index("What may change") : read.text.index("What may change") + 900]
    breaks = found.constraints["breaks"]
    assert f"salary: changes by at most 30000{100 * breaks['salary: changes by at most 30000']:.0f}%" in after
    assert "<b>savings</b> & more" in after
    assert "age >= 0none" in after
    (who,) = far.index
    assert f"No counterfactual was found for case {who}: " in read.text
    assert "without the constraint 'salary: changes by at most 30000'" in found.sentence(who)
    assert found.sentence(who) in read.text


def test_page_without_constraints_does_not_mention_them(page):
    assert "What may change" not in page


@pytest.mark.slow
def test_wide_tables_and_odd_names():
    before = pd.DataFrame(0, index=["<0>"], columns=[f"$x_{j}$ & <b>" for j in range(40)])
    index = pd.MultiIndex.from_arrays([before.index, [1]], names=["id", "rank"])
    after = (before + (np.arange(40) % 3 == 0)).set_axis(index)
    wide = Counterfactuals(
        frame=after,
        measures=pd.DataFrame({"prediction": 0.5, "L0": 14, "gower": 0.1, "gower_sum": 1.0}, index=index),
        factuals=before,
        unexplained=pd.DataFrame({"reason": [], "prediction": []}),
        factual_predictions=pd.Series(0.1, index=before.index),
        decision="score in [0.5, 1]",
    )
    reader = Reader(wide.to_html())
    assert "$x_0$ & <b>" in reader.text


def test_picture_leaves_no_open_figure():
    settings, figures = matplotlib.rcParams.copy(), plt.get_fignums()
    png = as_png(lambda figure: figure.subplots().plot([1, 2]), 2, 1)
    assert png.startswith(b"\x89PNG")
    assert plt.get_fignums() == figures
    assert matplotlib.rcParams == settings
