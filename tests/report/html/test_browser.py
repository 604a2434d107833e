"""The pages in a browser: changes are visible, nothing overlaps or is executed, dark and print styles work.

The pages take seconds to make, so few tests examine many pages each: workers that share the tests make them twice.
"""

from __future__ import annotations

import itertools
import re

import numpy as np
import pandas as pd
import pytest

import mcce
import mcce.report.html
from tests.marks import nightly

pytestmark = pytest.mark.slow  # the pages take seconds to make

NASTY = '<script>document.title="run"</script>'
IMAGE = '"><img src=x onerror=\'document.title="run"\'>'
WIDTHS = (1280, 420)

# elements that require horizontal scrolling
OUT_OF_SIGHT = """
[...document.querySelectorAll("td.changed, h1, h2, p, li, dd, figure, table.listing td")].filter(e => {
  const box = e.getBoundingClientRect();
  return box.width > 0 && (box.left < -0.5 || box.right > innerWidth + 0.5);
}).map(e => e.className + " " + e.textContent.slice(0, 60))
"""
# pairs of texts whose bounding boxes overlap
OVERLAPPING = """
(() => {
  const boxes = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (!node.textContent.trim() || node.parentElement.closest("style, .scroll")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) if (box.width > 1) boxes.push([box, node.textContent.slice(0, 40)]);
  }
  const wrong = [];
  for (let i = 0; i < boxes.length; i++) for (let j = i + 1; j < boxes.length; j++) {
    const [a, b] = [boxes[i][0], boxes[j][0]];
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 2 && high > 6) wrong.push([boxes[i][1], boxes[j][1]]);
  }
  return wrong;
})()
"""
COVERED_CELLS = """
[...document.querySelectorAll("tr")].flatMap(row => {
  const cells = [...row.querySelectorAll("td.changed, td.f")].map(e => [e.getBoundingClientRect(), e.textContent]);
  return cells.flatMap(([a, one], i) => cells.slice(i + 1).filter(([b]) => a.width > 0 && b.width > 0
    && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2).map(([_, other]) => [one, other]));
})
"""
SHOWN_CHANGES = '[...document.querySelectorAll("td.changed")].filter(e => e.getBoundingClientRect().width > 5).length'


def wide_table(n_features: int = 18) -> pd.DataFrame:
    """Return many features, some with long names and levels, some with executable names."""
    rng = np.random.default_rng(3)
    table = {f"months_since_the_most_recent_inquiry_{j}": rng.integers(0, 90_000, 120) for j in range(n_features)}
    table[NASTY] = rng.choice([NASTY, IMAGE, "a level with many words that has to be folded somewhere"], 120)
    table["truth"] = rng.random(120) < 0.5
    return pd.DataFrame(table)


@pytest.fixture(scope="module")
def monkeypatch():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def pages(tmp_path_factory, monkeypatch):
    """Write the analyst's page, the customer's page and the notebook's table, of narrow and wide results."""
    folder = tmp_path_factory.mktemp("pages")
    loans = mcce.datasets.load_loans(500).X
    named = {
        "labels": {"salary": "yearly salary", "loan_amount": IMAGE, "prediction": "probability <b>of default</b>"},
        "units": {"salary": "EUR", "savings": "$"},
        "formats": {"prediction": "0.0 %", "defaulted_last_year": {True: "yes", False: "no"}},
    }

    def risk(rows):
        return 1 / (1 + np.exp(rows["salary"] / 20_000 - 2 + rows["savings"] / 40_000 - rows["loan_amount"] / 20_000))

    granted = mcce.Interval(0, 0.3, closed="left", label=f"probability of default below 30 % {NASTY}")
    bank = mcce.MCCE(risk, decision=granted, fixed=["age", "sex"], random_state=1, names=named).fit(loans)
    refused = loans[risk(loans) > 0.4].head(12)
    constraints = [mcce.allow("salary", direction="increase"), mcce.rule("savings >= was(savings)", name=NASTY)]
    sparse = bank.explain(refused, sparse=True, n_counterfactuals=3, n_samples=200, constraints=constraints)

    X = wide_table()
    first = X.columns[0]
    many = mcce.MCCE(lambda rows: (rows[first] > 60_000).to_numpy(float), random_state=1).fit(X)
    whole = many.explain(X[X[first] < 60_000].head(8).rename(index=lambda i: f"{NASTY} {i}"), n_samples=30)
    assert whole.measures["L0"].min() > 15  # nearly every column changes
    for name, found in (("sparse", sparse), ("whole", whole)):
        one = found.frame.index[0][0]
        monkeypatch.setattr(mcce.report.html, "DOTS", 30)  # pictures of the same size, coarse and quick
        monkeypatch.setattr(mcce.report.html, "PICTURES", 1)
        found.to_html(folder / f"{name}-analyst.html", title=NASTY, intro=IMAGE)
        page = mcce.report.letter(found, one, html=True, intro=IMAGE)
        (folder / f"{name}-customer.html").write_text(page, encoding="utf-8")
        notebook = '<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        table = f"{notebook}<body>{found._repr_html_()}"
        (folder / f"{name}-notebook.html").write_text(table, encoding="utf-8")
    return folder


PAGES = [f"{name}-{page}.html" for name in ("sparse", "whole") for page in ("analyst", "customer", "notebook")]


@pytest.mark.slow
def test_changes_are_visible_and_nothing_overlaps(browser, pages):
    for page, width in itertools.product(PAGES, WIDTHS):
        browser.open(pages / page, width)
        where = f"{page} at {width} px"
        assert browser.evaluate(OUT_OF_SIGHT) == [], where
        assert browser.evaluate("document.documentElement.scrollWidth") <= width, where
        assert browser.evaluate(COVERED_CELLS) == [], where
        assert browser.evaluate(OVERLAPPING) == [], where
        text = (pages / page).read_text(encoding="utf-8")
        assert browser.evaluate(SHOWN_CHANGES) == len(re.findall(r'<td class="(?:n )?changed"', text)), where
        assert browser.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 0)"), where


@pytest.mark.slow
def test_data_is_shown_and_never_executed(browser, pages):
    for page in PAGES:
        browser.open(pages / page, 1280)
        assert browser.evaluate("document.title") != "run", page
        assert browser.evaluate("document.scripts.length") == 0, page
        assert browser.evaluate('document.querySelectorAll("img[onerror], b b, main > b").length') == 0, page
        assert NASTY in browser.evaluate("document.body.textContent"), page


@pytest.mark.parametrize("page", ["sparse-customer.html", *nightly("sparse-analyst.html")])
def test_dark_and_print_styles(browser, pages, page):
    ground = "getComputedStyle(document.body).backgroundColor"
    ink = "getComputedStyle(document.body).color"

    def light(color):
        return sum(map(int, re.findall(r"\d+", color)[:3])) / 3

    browser.open(pages / page, 1280)
    assert light(browser.evaluate(ground)) > 240
    assert light(browser.evaluate(ink)) < 60
    browser.open(pages / page, 1280, scheme="dark")
    assert light(browser.evaluate(ground)) < 40
    assert light(browser.evaluate(ink)) > 200
    marked = 'getComputedStyle(document.querySelector("td.changed, p")).color'
    assert light(browser.evaluate(marked)) > 130
    browser.open(pages / page, 794, scheme="dark", media="print")
    assert light(browser.evaluate(ground)) > 240
    assert light(browser.evaluate(ink)) < 60
    assert browser.evaluate(OUT_OF_SIGHT) == []


@pytest.mark.parametrize("page", ["sparse-customer.html", *nightly("whole-customer.html")])
def test_letter_fits_one_sheet(browser, pages, page):
    browser.open(pages / page, 1280)
    assert browser.sheets() == 1
