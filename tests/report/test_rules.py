"""Constraints in the text of a letter."""

from __future__ import annotations

from mcce.report.names import Names
from mcce.report.rules import plain_rule


def test_rules_in_plain_words():
    names = Names(labels={"loan_amount": "loan"})
    columns = ["loan_amount", "loan", "salary"]
    assert plain_rule("loan_amount <= was(salary) / 5", names, columns) == "loan ≤ salary now / 5"
    assert plain_rule("only 'salary', 'loan_amount' may change", names, columns) == "only salary, loan may change"
    assert plain_rule("loans of my_salary", names, columns) == "loans of my_salary"
