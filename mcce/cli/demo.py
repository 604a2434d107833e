"""`mcce demo`: explain refused loans, the example of the paper's introduction.

One customer gets three sparse counterfactuals, many customers get one each; the paper's plain method is shown for
comparison. The record of one decision is shown and verified before and after a change. A picture and a page are
written.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from mcce.base.canvas import WIDTH
from mcce.base.files import atomic_write
from mcce.cli.console import DONE, align_columns, wrap
from mcce.cli.outputs import check_outputs
from mcce.counterfactuals import Counterfactuals
from mcce.datasets import load_loans
from mcce.explainer import MCCE
from mcce.model.decisions import Interval
from mcce.records import verify
from mcce.report.html import HEIGHT, as_png
from mcce.report.names import Names
from mcce.report.rows import held_back

NAMES = Names(
    labels={
        "loan_amount": "loan",
        "years_employed": "years employed",
        "defaulted_last_year": "default last year",
        "prediction": "probability of default",
    },
    units=dict.fromkeys(("salary", "savings", "loan_amount"), "$"),
    formats={"prediction": "0.0%", "defaulted_last_year": {True: "yes", False: "no"}},
)
WAYS, SEARCHED = 3, 100  # ways shown for one customer, and the number of examples they are selected from


def run_demo(arguments: argparse.Namespace) -> int:
    """Explain one refused loan in words, then many in figures; write a picture and a page."""
    clock = _Stopwatch()
    picture, page = _fresh_names(Path(arguments.out), arguments.force)
    loans = load_loans()
    names = [f"customer {i + 1}" for i in range(len(loans.X))]
    customers = loans.X.set_axis(names)
    model = _logistic().fit(customers, loans.y)
    risk = model.predict_proba(customers)[:, 1]
    refused = customers[risk >= 0.1]
    clock.stop("fit the bank's model")
    granted = Interval(0, 0.1, closed="left", of=True, label="the loan is granted")
    facts = [*loans.fixed, "defaulted_last_year"]  # which cannot change
    explainer = MCCE(model, decision=granted, fixed=facts, random_state=arguments.random_state, names=NAMES)
    explainer.fit(customers)
    clock.stop("fit the explainer")
    nearest = explainer.explain(customers.iloc[[0]], n_counterfactuals=SEARCHED, sparse=True)
    one = _select_different(nearest)
    clock.stop("fit the plausibility score, find three plans for one customer")
    many = explainer.explain(refused.head(arguments.factuals), sparse=True)
    clock.stop(f"find one plan for each of {len(many.factuals)} customers")
    plain_one, plain_many = explainer.explain(customers.iloc[[0]]), explainer.explain(many.factuals)
    clock.stop("the same by the published method")

    story = _describe_loan(one, risk[0], len(customers))
    ways = [one.sentence("customer 1", rank) for rank in one.frame.index.get_level_values("rank")]
    drawn = as_png(lambda figure: one.plot_plans(figure=figure), WIDTH, HEIGHT)
    with atomic_write(picture) as beside:
        beside.write_bytes(drawn)
    many.to_html(page, title="Why was the loan refused?", intro=story, examples=one)
    clock.stop("picture and page")
    record = _describe_record(many[many.factuals.index[0]], explainer)
    clock.stop("the record of one decision, verified")
    _print_demo(story, ways, one, many, _describe_plain_method(plain_one, plain_many))
    print(f"\nTHE RECORD\n\n{record}")
    written = [[str(picture), "a picture of the plans"], [str(page), "the report, for a browser"]]
    print(f"\nHOW LONG IT TOOK\n\n{align_columns(clock.steps)}\n\nWRITTEN\n\n{align_columns(written, left=(0, 1))}\n")
    print("Now with your own files: mcce explain --help")
    return DONE


def _fresh_names(folder: Path, force: bool) -> tuple[Path, Path]:
    """Return unused names of picture and page in a writable folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for run in itertools.count(1):
        name = "mcce-demo" if run == 1 else f"mcce-demo-{run}"
        picture, page = folder / f"{name}.png", folder / f"{name}.html"
        if force or not (picture.exists() or page.exists()):
            break
    check_outputs({"the picture": picture, "the page": page}, {}, force=force)
    return picture, page


def _logistic() -> Any:
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = (StandardScaler(), make_column_selector(dtype_include="number"))
    encode = make_column_transformer(numbers, remainder=OneHotEncoder(handle_unknown="ignore"))
    return make_pipeline(encode, LogisticRegression(max_iter=1000))


def _select_different(found: Counterfactuals) -> Counterfactuals:
    """Return the best example of each set of changed features.

    Suspicious examples, including those with notes, are left out unless all are suspicious.
    """
    sets = found.changes().groupby("rank")["feature"].agg(tuple)
    odd = sets.index.isin(found.suspicious("all").index.get_level_values("rank"))
    sets = sets[~odd] if not odd.all() else sets
    kept = found.frame.index.get_level_values("rank").isin(sets.drop_duplicates().index[:WAYS])
    ids = found.frame.index.get_level_values("id")[kept]
    index = pd.MultiIndex.from_arrays([ids, range(1, len(ids) + 1)], names=["id", "rank"])
    parts = {name: getattr(found, name)[kept].set_axis(index) for name in ("frame", "measures", "_along")}
    return replace(found, **parts)


def _describe_plain_method(one: Counterfactuals, many: Counterfactuals) -> str:
    changes = one.changes(words=True)
    changed = [f"{row.feature} {row.to}" for row in changes[changes["rank"] == 1].itertuples()]
    return (
        f"The published method returns whole drawn customers: for this one {', '.join(changed)}. On average "
        f"{many.measures['L0'].mean():.1f} features differ."
    )


def _describe_record(found: Counterfactuals, explainer: MCCE) -> str:
    """Return the record of the first decision, and its verification before and after a change."""
    with tempfile.TemporaryDirectory() as folder:
        (path,) = found.write_records(folder)
        record = json.loads(path.read_text(encoding="utf-8"))
        sound = verify(folder, explainer)
        path.write_text(path.read_text(encoding="utf-8").replace('"reached":false', '"reached":true'), encoding="utf-8")
        changed = verify(folder)
    details = [
        ["decision", f"{record['decision']['wanted']}: {record['decision']['reached']}"],
        ["score", f"{record['decision']['score']}"],
        ["answers", f"{len(record['answers'])}, each with its values and measures"],
        ["seed, mcce", f"{record['seed']}, {record['versions']['mcce']}"],
        *([name, record[name]["fingerprint"]] for name in ("model", "explainer")),
        ["training rows", record["training"]["hash"]],
        ["hash", record["hash"]],
    ]
    shown = align_columns([[name, text] for name, text in details], left=(0, 1))
    return (
        f"{wrap('One JSON document for each decision, in a chain of hashes; mcce explain --records writes them:')}\n\n"
        f"{shown}\n\n{wrap(f'mcce verify: {sound}')}\n{wrap(f'After a change: {changed.faults[0]}.')}"
    )


def _describe_loan(one: Counterfactuals, risk: float, n_customers: int) -> str:
    person = one.factuals.iloc[0]
    return (
        f"A woman of {person['age']} asks her bank for a loan of {person['loan_amount']:,} dollars. She earns "
        f"{person['salary']:,} dollars a year, has {person['savings']:,} dollars in savings and defaulted last "
        f"year. The bank's model, fitted to {n_customers:,} customers, predicts a default probability of {risk:.1%}. "
        "The bank grants a loan only below 10%, so she is refused. What would have led to a loan? Her age, her "
        "sex and the past default cannot change."
    )


def _print_demo(story: str, ways: list[str], one: Counterfactuals, many: Counterfactuals, plain: str) -> None:
    print(f"THE REFUSAL\n\n{wrap(story)}\n\nWHAT WOULD HAVE CHANGED THE DECISION\n")
    for rank, way in enumerate(ways, 1):
        print(wrap(way, f"  {rank}. "))
    found, names = one.frame.astype(object), one.names
    table = [["", "now", *(f"plan {rank}" for rank in range(1, len(found) + 1))]]
    for feature, now in one.factuals.astype(object).iloc[0].items():
        cells = ["same" if new == now else names.text(feature, new) for new in found[str(feature)]]
        table.append([names.label(feature) + " (fixed)" * (feature in one.fixed), names.text(feature, now), *cells])
    risks = [*one.factual_predictions, *one.measures["prediction"]]
    table.append([names.label("prediction"), *(names.text("prediction", risk, 3) for risk in risks)])
    features = many.changed_features().query("not fixed")
    note = (
        "Each plan changes as few features as possible, to values drawn for customers of her age and sex who "
        "defaulted too. The resulting customers are plausible: at least one real customer in twenty is as unusual."
    )
    summary = (
        f"mcce found an example that gets the loan for {len(many)} of {len(many.factuals)} refused "
        f"customers. On average it differs in {many.measures['L0'].mean():.1f} of the {len(features)} "
        "features that may change. How often each of them differs:"
    )
    odd = held_back(many)
    read = (
        f"{len(odd)} of them need a review before they are sent: found.suspicious('all') lists them with the "
        "reasons. By default no letter is written for these."
    )
    if len(odd):
        (who, _), first = odd.index[0], odd["words"].iloc[0]
        read += f" The first is that of {who}: {first}."
    bars = [[names.label(f), f"{share:.0%}", "#" * round(30 * share)] for f, share in features["share"].items()]
    print(f"\n{align_columns(table)}\n\n{wrap(note)}\n\nMANY REFUSALS\n\n{wrap(summary)}\n")
    print(f"{align_columns(bars, left=(0, 2))}\n\n{wrap(read)}\n\n{wrap(plain)}")


class _Stopwatch:
    """Seconds of each step, in order."""

    def __init__(self) -> None:
        self.steps: list[list[str]] = []
        self.begun = time.perf_counter()

    def stop(self, step: str) -> None:
        now = time.perf_counter()
        self.steps.append([step, f"{now - self.begun:.2f} s"])
        self.begun = now
