"""The card of an explainer: its parts, both formats, and no training rows."""

import html.parser
import re

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import InputError
from tests.plain_words import assert_plain
from tests.records.problem import explainer, make_explainer, table


def test_card_describes_the_fit():
    made = make_explainer(constraints=["debt <= was(debt) + 30"])
    text = mcce.card(made, title="Loans", intro=["Purpose.", "Owner."]).to_markdown()
    made_with = made.fingerprint()
    for part in (
        "# Loans\n\n## Explainer\n\nPurpose.\n\nOwner.\n",
        f"| fingerprint of the model | {made_with['model']['fingerprint']} |",
        f"| hash of the training table | {made_with['training']['hash']} |",
        "Fitted to 120 training rows. 6 features:",
        "| job | categorical | 3 | no |",
        "| debt | numeric |  | yes |",
        "which no answer changes: age.",
        "Constraints of every answer: debt \\<= was(debt) + 30.",
        "| income | CartSampler |",
        "one real row in 20",
        "not differentially private",
    ):
        assert part.casefold() in text.casefold(), part
    assert text.count("Not measured") == 2


def test_card_contains_no_training_value():
    text = mcce.card(explainer()).to_markdown()
    values = {str(v) for name in ("income", "since") for v in table()[name]}
    assert not [value for value in values if value in text]
    assert not [level for level in table()["job"].cat.categories if level in text]


def test_names_of_users_are_escaped_in_both_forms():
    X = pd.DataFrame({"a|b": np.arange(40.0), "<script>x</script>": np.tile([1.0, 2.0], 20)})
    made = mcce.MCCE(lambda rows: rows["a|b"] / 40, random_state=1).fit(X, relations=())
    card = mcce.card(made, title="<b>")
    assert "| a\\|b | numeric |" in card.to_markdown()
    assert "\\<script\\>" in card.to_markdown()
    page = card.to_html()
    assert "<script>" not in page
    assert "<b>" not in page
    opened = []

    class Tags(html.parser.HTMLParser):
        def handle_starttag(self, tag, attrs):
            opened.append(tag)

    Tags().feed(page)
    assert opened.count("h2") == len(card.sections)
    assert opened.count("table") == 3


def test_file_extension_selects_the_format_of_a_card(tmp_path):
    card = mcce.card(explainer())
    assert card.save(tmp_path / "card.md").read_text(encoding="utf-8") == card.to_markdown() == repr(card)
    assert card.save(tmp_path / "card.html").read_text(encoding="utf-8") == card.to_html()
    with pytest.raises(InputError, match=r"ends in \.html or \.md"):
        card.save(tmp_path / "card.pdf")


@pytest.mark.slow
def test_new_rows_are_measured_and_conditionals_criticised():
    X = mcce.datasets.load_loans(1500).X[["age", "education", "salary"]]
    wrong = mcce.MCCE(lambda rows: rows["salary"] / 1e5, fixed=["age", "education"], sampler="norm", random_state=1)
    wrong.fit(X[:750])
    text = mcce.card(wrong, X[750:], n_samples=100, max_factuals=20).to_markdown()
    assert_plain(text)
    assert "On 750 rows given as new, 1 of 1 conditionals are rejected at the level 0.05:" in text
    assert "| explained |" in text
    assert "20 of 750 rows were explained, with sparse=True, n\\_samples=100, max\\_factuals=20:" in text


@pytest.mark.slow
def test_private_fit_states_its_account_and_no_number_of_rows():
    X = table()[["age", "income"]]
    private = mcce.Privacy(2.0, bounds={"age": (18, 80), "income": (0, 120)})
    made = mcce.MCCE(lambda rows: rows["income"] / 100, sampler=private, fixed=["age"], random_state=1).fit(X)
    text = mcce.card(made).to_markdown()
    assert "The number of training rows is not stated." in text
    assert "120" not in re.findall(r"\w+", text)  # as a word: a hash contains any three digits by chance
    assert "epsilon" in text.casefold()
    assert "Not covered: the model explained" in text


def test_label_of_the_decision_is_beside_its_rule():
    X = pd.DataFrame({"a": np.arange(40.0)})
    granted = mcce.Interval(0.5, 1, label="the loan is granted")
    made = mcce.MCCE(lambda rows: rows["a"] / 40, decision=granted, random_state=1).fit(X, relations=())
    assert "| wanted decision | the loan is granted (score from 0.5 to 1) |" in mcce.card(made).to_markdown()
    plain = mcce.MCCE(lambda rows: rows["a"] / 40, decision=(0.5, 1), random_state=1).fit(X, relations=())
    assert "| wanted decision | score from 0.5 to 1 |" in mcce.card(plain).to_markdown()
