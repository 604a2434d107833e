"""Four rules for many: coverage, cost and plausibility on German credit and HELOC, compared with GLOBE-CE and AReS.

    python -m benchmarks.group_rules [--only DATA,...] [--people N] [--globe-ce FOLDER] [--ares FOLDER] [--out FILE]

1. A logistic regression is trained on German credit, and on HELOC with negative codes replaced by medians, as in
   GLOBE-CE's notebooks. At most N refused rows are people to reach, evenly spread. `MCCE_DATA` is the folder of data.
2. `MCCE.group_rules` finds four rules at the floor 0.05, with nothing fixed as in those notebooks, and with the fixed
   features of the MCCE paper.
3. With a folder that has `globe_ce.py` of https://github.com/danwley/GLOBE-CE (it needs tqdm), GLOBE-CE runs on the
   same model and people, with nothing fixed and the settings of its notebooks: of 2000 random directions, the one with
   the best coverage is scaled by 1000 magnitudes, and each person gets the smallest sufficient one. Four rules are the
   quartiles of these.
4. With a folder that has `ares.py` of the same repository (it needs mlxtend), AReS runs on the same model and
   people, with nothing fixed: ten bins and conditions of at least `SUPPORT` as in its notebooks, `CANDIDATES`
   candidate rules (3000 to 5000 there), and the objective that counts coverage only; at most four rules, and at most
   20. Its candidates are the first of a Python set, so they depend on PYTHONHASHSEED. With pandas 3, the index
   `self.RL.values[j]` in `generate_triples` must become `list(self.RL.values[j])`.
5. Held-out coverage: rules are selected on each half of the people and applied to the other (`RuleSet.apply`).
6. All changed rows are scored on the same scale of plausibility; `at floor` is the share at or above 0.05, `in range`
   the share whose numbers stay in the training range.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import mcce
from benchmarks import report
from benchmarks.page import Page, read_names
from benchmarks.speed import describe_machine
from mcce.constraints import read
from mcce.distances.measures import changes, gower_sum
from mcce.explain.acceptance import Acceptance

K = 4
HEAD = ["", "rules", "coverage", "at floor", "in range", "coverage at floor", "L0", "gower sum", "sec."]
NOTES = """\
coverage: share of people that at least one rule moves to the wanted decision. at floor: share of these moved rows at or
above the floor 0.05; in range: with all numbers in the training range. L0, gower sum: features changed and range-scaled
steps, mean over the people reached, each by the cheapest rule. sec.: mcce with the explanations of all people.

GLOBE-CE changes numbers by any amount and does not keep them whole; it has no groups, and neither have the rules of
mcce here (`by=[]`). Its notebooks report, for other models: German credit 95.0 per cent with three rules, HELOC
99.9 per cent with a magnitude for each person; AReS 81.7 per cent with 18 rules and 96.9 per cent with 20."""
FIXED = {"german": ["purpose", "age", "personal_status_sex"], "heloc": ["ExternalRiskEstimate"]}
FEATURES = {"german": 5, "heloc": 2}  # features changed by a direction of GLOBE-CE, and sparsity, as in its notebooks
POWER = {"german": 5, "heloc": 1}
SUPPORT = {"german": 0.2, "heloc": 0.6}  # least support of the conditions of AReS, as in its notebooks
CANDIDATES = {"german": 1000, "heloc": 3000}  # rules that AReS evaluates, of some hundred thousand


class Case:
    """A data set, its model, the people, and the explainer."""

    def __init__(self, name: str, n_people: int, fixed: list[str]) -> None:
        self.name, self.fixed = name, fixed
        data = mcce.datasets.load_german() if name == "german" else mcce.datasets.load_fico(drop_special=True)
        self.X = data.X
        if name == "heloc":
            numbers = self.X.astype(float).where(lambda values: values >= 0)
            self.X = numbers.fillna(numbers.median())
        wanted = np.isin(np.asarray(data.y).astype(str), ["good", "Good"]).astype(int)
        self.numbers = list(self.X.select_dtypes("number").columns)
        self.levels = [column for column in self.X if column not in self.numbers]
        encode = make_column_transformer((OneHotEncoder(), self.levels), (StandardScaler(), self.numbers))
        self.model: Pipeline = make_pipeline(encode, LogisticRegression(max_iter=3000)).fit(self.X, wanted)
        refused = self.X[self.model.predict(self.X) == 0]
        self.people = refused.iloc[np.unique(np.linspace(0, len(refused) - 1, n_people).astype(int))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mcce.exceptions.AdviceWarning)
            self.explainer = mcce.MCCE(self.model, fixed=fixed, random_state=1).fit(self.X)

    def slope(self, value: str) -> float:
        """Return the coefficient of a level, written as "feature = level", or of a number."""
        encode, regression = self.model[0], self.model[-1]
        coefficients = dict(zip(encode.get_feature_names_out(), regression.coef_[0]))
        if value in self.numbers:
            scale = encode.named_transformers_["standardscaler"].scale_[self.numbers.index(value)]
            return float(coefficients[f"standardscaler__{value}"] / scale)
        feature, level = value.split(" = ", 1)
        return float(coefficients[f"onehotencoder__{feature}_{level}"])

    def judge(self, moved: pd.DataFrame, owner: np.ndarray) -> list[str]:
        """Return the figures of changed rows: share at the floor, share in range, coverage at the floor, L0, cost."""
        options: dict[str, Any] = {"measures": None, "feature_weights": None, "n_samples": 1000, "floor": None}
        problem = self.explainer._problem(read(()), None, None, sparse=True, **options)
        schema = problem.generator.schema_
        own, rows = (schema.encode(each, "rows").matrix for each in (self.people, moved))
        acceptance = Acceptance(problem, own, self.people.index)
        at_floor = acceptance.plausibility(rows, owner) >= acceptance.least
        numbers = moved[self.numbers]
        inside = ((numbers >= self.X[self.numbers].min()) & (numbers <= self.X[self.numbers].max())).all(axis=1)
        costs = [measure(problem.features).sums(rows, own[owner]).mean() for measure in (changes, gower_sum)]
        shares = at_floor.mean(), inside.mean(), at_floor.sum() / len(self.people)
        return [*(f"{share:.3f}" for share in shares), *(f"{cost:.2f}" for cost in costs)]

    def row(self, name: str, n_rules: str, moved: pd.DataFrame, owner: np.ndarray, seconds: float) -> list[str]:
        """Return a row of the table."""
        coverage = f"{len(moved) / len(self.people):.3f}"
        return [name, n_rules, coverage, *self.judge(moved, owner), f"{seconds:.0f}"]


def held_out(case: Case) -> list[list[str]]:
    """Return the coverage of four rules on the half used for selection, and on the other half; mean of both splits."""
    halves = case.people.iloc[::2], case.people.iloc[1::2]
    found = [case.explainer.explain(half, sparse=True) for half in halves]
    rows = []
    for max_changes in (4, 8):
        rules = [each.rules(K, by=[], max_changes=max_changes) for each in found]
        applied = [each.apply(other) for each, other in zip(rules, halves[::-1])]
        shares = [np.mean([each.table.loc["all", "coverage"] for each in which]) for which in (rules, applied)]
        rows.append([f"mcce, at most {max_changes} changes", *(f"{share:.3f}" for share in shares)])
    return rows


def of_mcce(case: Case) -> tuple[list[list[str]], list[str]]:
    """Return the figures of four rules with at most 4 and 8 changes each, and the text of the first four."""
    begun = time.perf_counter()
    found = case.explainer.explain(case.people, sparse=True)
    explained = time.perf_counter() - begun
    rows, sentences = [], []
    for max_changes in (4, 8):
        begun = time.perf_counter()
        rules = found.rules(K, by=[], max_changes=max_changes)
        seconds = explained + time.perf_counter() - begun
        moved = rules.found.frame.droplevel("rank")
        owner = case.people.index.get_indexer(moved.index)
        rows.append(case.row(f"mcce, at most {max_changes} changes", str(len(rules)), moved, owner, seconds))
        sentences = sentences or rules.sentences()
    return rows, sentences


class OneHot:
    """The people, the data and the model of a case in the form that GLOBE-CE and AReS take."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.levels = {name: list(case.X[name].cat.categories) if name in case.levels else [] for name in case.X}
        tree = {name: [f"{name} = {level}" for level in found] for name, found in self.levels.items()}
        self.flat = [value for name, values in tree.items() for value in (values or [name])]
        self.dataset = SimpleNamespace(name=case.name, features_tree=tree, features=[*self.flat, "y"])
        self.dataset.categorical_features = {case.name: case.levels}
        self.dataset.continuous_features = {case.name: case.numbers}
        zero = self.encode(case.people.iloc[[0]]).to_numpy()
        weights = np.array([case.slope(value) for value in self.flat])
        constant = case.model.decision_function(case.people.iloc[[0]])[0] - (zero @ weights)[0]
        self.model = SimpleNamespace(predict=lambda rows: (np.asarray(rows) @ weights + constant > 0).astype(int))
        assert (self.model.predict(self.encode(case.X)) == case.model.predict(case.X)).all()

    def encode(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return rows with a column for each level."""
        parts = [pd.get_dummies(frame[name]) if found else frame[[name]] for name, found in self.levels.items()]
        return pd.DataFrame(np.hstack([part.to_numpy(dtype=float) for part in parts]), columns=self.flat)

    def decode(self, rows: np.ndarray) -> pd.DataFrame:
        """Return rows with the columns of the data."""
        columns, at = {}, 0
        for name, found in self.levels.items():
            width = max(len(found), 1)
            part = rows[:, at : at + width]
            codes = part.argmax(axis=1)
            columns[name] = pd.Categorical.from_codes(codes, dtype=self.case.X[name].dtype) if found else part[:, 0]
            at += width
        return pd.DataFrame(columns)


def of_globe_ce(case: Case) -> list[list[str]]:
    """Return the figures of GLOBE-CE with four magnitudes, and with any number."""
    from globe_ce import GLOBE_CE

    form = OneHot(case)
    begun = time.perf_counter()
    widths = {name: (case.X[name].max() - case.X[name].min()) / 10 for name in case.numbers}
    with contextlib.redirect_stdout(io.StringIO()):
        found = GLOBE_CE(form.model, form.dataset, form.encode(case.people), bin_widths=widths)
        settings = {"n_features": FEATURES[case.name], "sparsity_power": POWER[case.name], "disable_tqdm": True}
        dropped = [name for name in case.numbers if case.name == "german"]  # as in its notebook
        found.sample(2000, magnitude=1, seed=0, dropped_features=dropped, **settings)
        _, costs, scalars = found.scale(found.best_delta, vector=True, disable_tqdm=True)
    reached = np.where(costs > 0, costs, np.inf)
    least = np.isfinite(reached).argmax(axis=0)[np.isfinite(reached).any(axis=0)]  # smallest sufficient one
    four = np.quantile(least, [0.25, 0.5, 0.75, 1.0], method="inverted_cdf").astype(int)
    rows = []
    for name, which in (
        ("GLOBE-CE, one direction", four),
        ("GLOBE-CE, any magnitude", np.arange(len(scalars))),
    ):
        owner = np.flatnonzero(np.isfinite(reached[which]).any(axis=0))
        scalar = scalars[which[reached[which][:, owner].argmin(axis=0)]]
        moved = found.round_categorical(found.x_aff[owner] + scalar[:, None] * found.best_delta)
        seconds = time.perf_counter() - begun
        rows.append(case.row(name, str(len(which)), form.decode(moved), owner, seconds))
    return rows


def of_ares(case: Case) -> list[list[str]]:
    """Return the figures of AReS with at most four rules, and with at most 20 as in its notebooks."""
    from ares import AReS, TwoLevelRecourseSet

    form, begun = OneHot(case), time.perf_counter()
    TwoLevelRecourseSet.plot_accuracy = lambda *_: None
    rows = []
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        found = AReS(form.model, form.dataset, form.encode(case.X))
        found.generate_itemsets(SUPPORT[case.name])
        places = case.X.index.get_indexer(case.people.index)
        found.X_aff_original, found.X_aff = (
            table.iloc[places].reset_index(drop=True) for table in (found.X_original, found.X)
        )
        any_value = {"RL_reduction": False, "then_generation": 1 / len(case.X)}
        found.generate_groundset(**any_value if case.name == "heloc" else {"RL_reduction": True})
        found.evaluate_groundset([1, 0], r=min(CANDIDATES[case.name], found.V.length), save_mode=1)
        common = time.perf_counter() - begun
        for most in (K, 20):
            found.e1, begun = most, time.perf_counter()
            found.optimise_groundset([1, 0])
            chosen = found.R
            owner = np.flatnonzero(chosen.correct_matrix.any(axis=0))
            best = np.nanargmin(chosen.cost_matrix[:, owner], axis=0)
            seconds = common + time.perf_counter() - begun
            moved = form.decode(chosen.cfx_matrix[best, owner])
            rows.append(case.row(f"AReS, at most {most} rules", str(chosen.length), moved, owner, seconds))
    return rows


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(FIXED), help=f"comma-separated, of: {', '.join(FIXED)}")
    parser.add_argument("--people", type=int, default=500)
    parser.add_argument("--globe-ce", metavar="FOLDER")
    parser.add_argument("--ares", metavar="FOLDER")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(arguments)
    sys.path[:0] = [folder for folder in (given.globe_ce, given.ares) if folder]
    page = Page("Four rules for many")
    page.write_line(report.about(describe_machine()))
    page.write_line(NOTES)
    for name in read_names(parser, "--only", given.only, list(FIXED)):
        for kept in ([], FIXED[name]):
            case = Case(name, given.people, kept)
            page.title(f"{name}: {len(case.people)} refused people, fixed: {', '.join(kept) or 'nothing'}")
            rows, sentences = of_mcce(case)
            rows += of_globe_ce(case) if given.globe_ce and not kept else []
            rows += of_ares(case) if given.ares and not kept else []
            page.table(HEAD, rows)
            page.table(["", "coverage of the selecting half", "of the held-out half"], held_out(case))
            page.write_line("\n".join(f"{place}. {words}" for place, words in enumerate(sentences, 1)))
            if given.out:
                page.write(given.out)


if __name__ == "__main__":
    main()
