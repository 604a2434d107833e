"""Recall and false alarms of `suspicious()`, the list of answers that must not be sent.

    python -m benchmarks.suspicious [--only PART,...] [--factuals N] [--half 1|2] [--out FILE]

The rows of each part are split into two halves. Half 1 is for choosing thresholds; half 2, the default, is reported. A
half has its own training rows and factuals; the model is that of all rows. Measured are:

1. answers. Sparse answers at the default floor, with the fixed features of the part, and with those that `MCCE.fit`
   warns of fixed as well ("advised"). `listed` is the share of answers in `suspicious()`, where a finding about a
   column is one line; `held back` the share of severity "stop", for which no letter is written; `noted` the share with
   any finding.
2. real rows. For each refused row the nearest accepted training row, presented as its answer. Features that are fixed
   or that `suggest_fixed` lists have the accepted row's values in both: two persons differ in them, answers must not.
   Pairs whose refused row is accepted with them are left out. In "whole" every other difference is a change; in
   "needed" the refused row takes more of the accepted row's values, column by column, as long as it is refused, so that
   every change is needed, as in sparse answers. The share is that of severity "stop", without a floor; and of those
   with another reason than "far from the decision", which states a distance and not an error.
3. recall. Errors of several kinds, each planted into all answers of severity "note" or none: the share that has the
   severity "stop" then, and the share with any finding.

Parts are the loans of the README, and the paper's data with its networks and fixed features, categories not binarised;
their files are needed (`--data`, MCCE_DATA).
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import mcce
from benchmarks import report
from benchmarks.advice import PAPER, Question, loans_question
from benchmarks.page import Page, read_names
from benchmarks.settings import Setting, find_data, make_problem
from benchmarks.speed import describe_machine
from mcce.counterfactuals import Counterfactuals
from mcce.datasets import load_loans
from mcce.plausibility.stop_reasons import FAR_AWAY
from mcce.report.changes import differing_cells
from mcce.report.suspicious import STOP, STOP_REASONS, Answered, find_suspicious

PARTS = ("loans", *PAPER)
MOST_TRAINING = 15_000
NOTES = """\
listed: share of answers in suspicious(), a finding about a column as one line. held back: share of severity "stop", for
which no letter is written. noted: share with any finding. advised: the features that fit() warns of are fixed as well.
real rows: the nearest accepted training row presented as answer to a refused row; whole: with every difference; needed:
with those that the decision needs; for other reasons: than far from the decision. recall: share of planted errors that
are held back; with notes: with any finding."""

OTHER_STOPS = {*STOP_REASONS} - {FAR_AWAY}

Values = Callable[[pd.DataFrame, pd.DataFrame, np.random.Generator], pd.Series]
"""New values of a feature, of the answers, the training rows and a generator; missing where there is no such error."""


# ---------------------------------------------------------------- planted errors


def times(name: str, low: float, high: float) -> tuple[str, Values]:
    """Return an error that multiplies a value, in the training data's rounding."""

    def values(rows: pd.DataFrame, X: pd.DataFrame, rng: np.random.Generator) -> pd.Series:
        old = rows[name].astype(float)
        new = (old * rng.uniform(low, high, len(old))).round(0 if (X[name] % 1 == 0).all() else 3)
        return new.where(new != old)

    return name, values


def plus(name: str, low: int, high: int) -> tuple[str, Values]:
    """Return an error that adds a whole number, within the training range."""

    def values(rows: pd.DataFrame, X: pd.DataFrame, rng: np.random.Generator) -> pd.Series:
        new = rows[name].astype(float) + rng.integers(low, high, len(rows), endpoint=True)
        return new.where(new.between(X[name].min(), X[name].max()))

    return name, values


def from_nothing(name: str) -> tuple[str, Values]:
    """Return an error that replaces 0 by one of the highest tenth of the positive training values."""

    def values(rows: pd.DataFrame, X: pd.DataFrame, rng: np.random.Generator) -> pd.Series:
        positive = X.loc[X[name] > 0, name]
        highest = positive[positive > positive.quantile(0.9)].to_numpy(float)
        return pd.Series(rng.choice(highest, len(rows)), rows.index).where(rows[name] == 0)

    return name, values


def more_than(name: str, other: str) -> tuple[str, Values]:
    """Return an error that adds more to a feature than another one has."""
    return name, lambda rows, X, rng: rows[name] + (rows[other] * rng.uniform(1.05, 2, len(rows))).round(-2)


def lower_level(name: str) -> tuple[str, Values]:
    """Return an error that takes a lower level of an ordered feature."""

    def values(rows: pd.DataFrame, X: pd.DataFrame, rng: np.random.Generator) -> pd.Series:
        levels, codes = X[name].cat.categories, rows[name].cat.codes
        return pd.Series([levels[rng.integers(0, k)] if k > 0 else None for k in codes], rows.index, X[name].dtype)

    return name, values


def level_beside(name: str, level: Any, number: str) -> tuple[str, Values]:
    """Return an error that sets a level together with a number above the training median."""

    def values(rows: pd.DataFrame, X: pd.DataFrame, rng: np.random.Generator) -> pd.Series:
        is_high = (rows[number] > X[number].median()) & (rows[name].astype(object) != level)
        return pd.Series([level if high else None for high in is_high], rows.index, X[name].dtype)

    return name, values


def another(name: str) -> tuple[str, Values]:
    """Return an error that uses the value of a random training row."""

    def values(rows: pd.DataFrame, X: pd.DataFrame, rng: np.random.Generator) -> pd.Series:
        new = X[name].iloc[rng.integers(0, len(X), len(rows))].set_axis(rows.index)
        return new.where(new.astype(object) != rows[name].astype(object))

    return name, values


def erased(name: str) -> tuple[str, Values]:
    """Return an error that erases events of the past."""
    return name, lambda rows, X, rng: pd.Series(0.0, rows.index).where(rows[name] > 0)


ERRORS: Mapping[str, Mapping[str, tuple[str, Values]]] = {
    "loans": {
        "opposite direction: larger loan": times("loan_amount", 1.05, 3.0),
        "opposite direction: lower salary": times("salary", 0.4, 0.95),
        "education falls": lower_level("education"),
        "duration falls": plus("years_employed", -20, -1),
        "duration grows by years": plus("years_employed", 3, 20),
        "from zero: savings": from_nothing("savings"),
        "unexplained money: savings above the loan": more_than("savings", "loan_amount"),
        "contradiction: salary of an unemployed person": level_beside("employment", "unemployed", "salary"),
        "fact: default erased or invented": another("defaulted_last_year"),
        "far step: salary times five to eight": times("salary", 5.0, 8.0),
    },
    "adult": {
        "opposite direction: fewer hours": plus("hours-per-week", -30, -5),
        "education falls": plus("education-num", -8, -1),
        "from zero: capital loss": from_nothing("capital-loss"),
        "fact: another race": another("race"),
        "fact: another country of birth": another("native-country"),
    },
    "gmc": {
        "opposite direction: lower income": times("MonthlyIncome", 0.4, 0.95),
        "opposite direction: higher utilisation": times("RevolvingUtilizationOfUnsecuredLines", 1.1, 3.0),
        "from zero: real estate loans": from_nothing("NumberRealEstateLoansOrLines"),
        "fact: late payments erased": erased("NumberOfTime30-59DaysPastDueNotWorse"),
        "far step: income times five to eight": times("MonthlyIncome", 5.0, 8.0),
    },
    "fico": {
        "duration falls: average age of accounts": times("AverageMInFile", 0.3, 0.9),
        "duration grows by years: average age of accounts": plus("AverageMInFile", 30, 150),
        "from zero: accounts near their limit": from_nothing("NumBank2NatlTradesWHighUtilization"),
        "fact: enquiries erased": erased("NumInqLast6M"),
        "fact: oldest account": another("MSinceOldestTradeOpen"),
    },
    "german": {
        "opposite direction: larger instalment": plus("installment_as_income_perc", 1, 3),
        "fact: another credit history": another("credit_history"),
        "far step: credit times five to eight": times("credit_amount", 5.0, 8.0),
    },
}


# ---------------------------------------------------------------- questions and figures


def make_question(name: str, half: int, n: int, folder: Path | None) -> Question:
    """Return the problem of refused rows of one half of a part."""
    if name == "loans":
        question = loans_question(n)
        X = question.X if half == 1 else load_loans(3000, random_state=1).X
        refused = X[question.model.predict_proba(X)[:, 1] >= 0.1]
        return replace(question, X=X, factuals=refused.head(n))
    whole = make_problem(Setting(name, name, name, "mlp", 1, 1, binarised=False), folder)
    order = np.random.default_rng(1).permutation(len(whole.X))
    size = min(len(order) // 2, MOST_TRAINING)
    X = whole.X.iloc[np.sort(order[(half - 1) * size : half * size])]
    refused = X[~whole.decision.contains(whole.score(X))]
    return Question(X, refused.head(n), whole.score, whole.decision, whole.fixed, whole.kinds)


def are_accepted(question: Question, rows: pd.DataFrame) -> np.ndarray:
    """Return which rows have the wanted decision."""
    if callable(question.model):
        return np.asarray(question.decision.contains(question.model(rows)))
    return np.asarray(question.decision.contains(question.model.predict_proba(rows)[:, 1]))


def judge(found: Counterfactuals, before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Return all findings about rows presented as answers, by position."""
    usual = found._known_usual()
    assert usual is not None
    before, after = before.reset_index(drop=True), after.reset_index(drop=True)
    index = pd.MultiIndex.from_product([range(len(after)), [1]], names=["id", "rank"])
    changed = differing_cells(before, after)
    answers = Answered(before, after.set_axis(index), changed, None, None, None, found.names)
    return find_suspicious(answers, usual, "all").droplevel("rank")


def real_pairs(question: Question) -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
    """Return refused rows and the nearest accepted training rows, the whole ones and those whose changes are needed."""
    accepted = question.X[are_accepted(question, question.X)]
    points, pool = _points(question, question.factuals), _points(question, accepted)
    after = accepted.iloc[[int(np.abs(pool - point).sum(axis=1).argmin()) for point in points]]
    before, held = question.factuals.copy(), [*question.fixed, *mcce.suggest_fixed(question.X, question.fixed).index]
    after = after.set_axis(before.index)
    before[held] = after[held]
    is_refused = ~are_accepted(question, before)
    before, after = before[is_refused], after[is_refused]
    nearer, last = before.copy(), None
    while last is None or not nearer.equals(last):
        last = nearer.copy()
        for name in question.X.columns:
            is_refused = ~are_accepted(question, nearer.assign(**{name: after[name]}))
            nearer.loc[is_refused, name] = after.loc[is_refused, name]
    return {"whole": (before, after), "needed": (nearer, after)}


def _points(question: Question, rows: pd.DataFrame) -> np.ndarray:
    """Return rows as points: ranks of numbers among the training values, halves for levels."""
    parts = []
    for name, known in question.X.items():
        if pd.api.types.is_numeric_dtype(known) and not pd.api.types.is_bool_dtype(known):
            ordered = np.sort(known.to_numpy(float))
            parts.append((np.searchsorted(ordered, rows[name].to_numpy(float)) / len(ordered))[:, None])
        else:
            levels = np.unique(known.astype(str).to_numpy(object))
            parts.append((rows[name].astype(str).to_numpy(object)[:, None] == levels) / 2)
    return np.hstack(parts)


def recall(
    found: Counterfactuals, good: np.ndarray, X: pd.DataFrame, name: str, values: Values
) -> tuple[int, float, float]:
    """Return how many errors are planted, and the shares of severity "stop" and with any finding."""
    before, after = found.factuals.loc[found.frame.index.get_level_values("id")], found.frame[good]
    before, after = before[good].reset_index(drop=True), after.reset_index(drop=True)
    new = values(before, X, np.random.default_rng(0))  # from the factual's values: an answer may have changed them
    planted = after.copy()
    planted[name] = new.where(new.notna(), after[name]).astype(X[name].dtype)
    judged = judge(found, before, planted).reindex(np.flatnonzero(new.notna()))
    return len(judged), float((judged["severity"] == STOP).mean()), float(judged["severity"].notna().mean())


def count_reasons(listed: pd.DataFrame) -> str:
    """Return the reasons of severity "stop", with the number of rows that have them."""
    counts = Counter(listed["reasons"].str.split(", ").explode())
    return ", ".join(f"{reason} {counts[reason]}" for reason in STOP_REASONS if counts[reason])


def run_part(page: Page, name: str, half: int, n: int, folder: Path | None) -> None:
    """Measure one part and write its tables."""
    question = make_question(name, half, n, folder)
    explainer = question.explainer()
    advised = replace(question, fixed=[*question.fixed, *explainer.learned_.unchangeable])
    found = explainer.explain(question.factuals, sparse=True)
    rows = []
    for way, some in (("as given", found), ("advised", advised.explainer().explain(question.factuals, sparse=True))):
        listed = some.suspicious("all")
        shares = [len(some.suspicious()), int((listed["severity"] == STOP).sum()), len(listed)]
        rows.append([way, str(len(some)), *(f"{k / len(some):.3f}" for k in shares), count_reasons(listed)])
    page.table(["answers", "n", "listed", "held back", "noted", "reasons to hold back"], rows)
    rows = []
    for way, (before, after) in real_pairs(question).items():
        listed = judge(found, before, after)
        stopped = listed[listed["severity"] == STOP]
        nearer = stopped[[bool({*each.split(", ")} & OTHER_STOPS) for each in stopped["reasons"]]]
        rows.append(
            [
                way,
                str(len(after)),
                *(f"{len(some) / len(after):.3f}" for some in (stopped, nearer)),
                count_reasons(listed),
            ]
        )
    page.table(["real rows", "n", "stopped", "for other reasons", "reasons"], rows)
    listed = found.suspicious("all")
    good, rows = ~found.frame.index.isin(listed.index[listed["severity"] == STOP]), []
    for kind, error in ERRORS[name].items():
        n_planted, stopped, noted = recall(found, good, question.X, *error)
        rows.append([kind, str(n_planted), f"{stopped:.2f}", f"{noted:.2f}"])
    page.table(["planted error", "n", "recall", "with notes"], rows)


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.suspicious", description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with adult.csv.gz, ...; else MCCE_DATA, else ../shared/data")
    parser.add_argument("--only", default=",".join(PARTS), help=f"comma-separated, of: {', '.join(PARTS)}")
    parser.add_argument("--factuals", type=int, default=300, help="factuals of each part")
    parser.add_argument("--half", type=int, choices=(1, 2), default=2, help="1 to choose thresholds, 2 to report")
    parser.add_argument("--out", type=Path, help="write FILE.md")
    chosen = parser.parse_args(arguments)
    folder = find_data(chosen.data)
    page = Page("Recall and false alarms of suspicious()")
    page.write_line(report.about(describe_machine()))
    page.write_line(f"{NOTES}\n\nHalf {chosen.half}; thresholds were chosen on half 1.")
    for name in read_names(parser, "--only", chosen.only, PARTS):
        page.title(name)
        if name in PAPER and folder is None:
            page.write_line("Skipped: the data file is absent.")
        else:
            run_part(page, name, chosen.half, chosen.factuals, folder)
    if chosen.out:
        page.write(chosen.out.with_suffix(".md"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
