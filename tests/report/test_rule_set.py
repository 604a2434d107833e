"""Group rules as sentences, table and plot."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from mcce.report.names import Names
from mcce.report.rule_set import GroupRule, RuleSet, Term, rule_table

RULES = (
    GroupRule(
        (Term("age", "below", 30), Term("home", "is", "<rented>")),
        (Term("loan", "by", -20_000), Term("job", "to", "a")),
    ),
    GroupRule((), (Term("salary", "at least", 41_000),)),
)


@pytest.fixture
def rules():
    nan = np.nan
    first = np.array([[1, 0.1, 1, 0.5], [0, nan, nan, nan], [1, 0.3, 1, 0.7], [1, 0.2, 2, 0.6]])
    whole = np.vstack([first, [[0, nan, nan, nan]] * 4])
    names = Names.read(
        {"labels": {"loan": "the loan"}, "units": {"loan": "kr"}}, ["age", "home", "loan", "job", "salary"]
    )
    table = rule_table(RULES, [first, whole, whole], names, 0.9, 0)
    return RuleSet(RULES, table, None, pd.Series([1, 0, 1, 1, 0, 0, 0, 0]), 0.9)


def test_sentences(rules):
    first, second = rules.sentences()
    assert first.startswith(
        "If age is below 30 and home is <rented>: reduce the loan by 20,000 kr and change job to a. It reaches the "
        "decision for 3 of 4 (0.75, "
    )
    assert first.endswith("mean Gower distance 0.2, mean plausibility 0.6.")
    assert second.startswith("Everyone: raise salary to at least 41,000. It reaches the decision for 3 of 8 (0.38, ")
    assert repr(rules).splitlines()[0].startswith("2 rules reach the decision for 3 of 8 people (0.38, 90 % interval ")
    assert "&lt;rented&gt;" in rules._repr_html_()


def test_table(rules):
    table = rules.table
    assert table.index.tolist() == [1, 2, "all"]
    assert table["people"].tolist() == [4, 8, 8]
    assert table["reached"].tolist() == [3, 3, 3]
    np.testing.assert_allclose(table["coverage"], [3 / 4, 3 / 8, 3 / 8])
    np.testing.assert_allclose(table["gower"], 0.2)
    np.testing.assert_allclose(table["L0"], 4 / 3)
    assert (table["coverage_low"] < table["coverage"]).all()
    assert (table["coverage_high"] > table["coverage"]).all()


def test_plot(rules):
    ax = rules.plot()
    assert len(ax.patches) == 3
    assert ax.patches[0].get_width() == 0.75
    assert any("age is below 30" in text.get_text() for text in ax.texts)
    plt.close(ax.figure)
