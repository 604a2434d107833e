"""Complete workflows with random tables and settings: ``python -m tests.fuzz.workflows FIRST LAST [CONDITIONAL]``.

1. Draw a table, a model, fixed features, a sampler, constraints and the settings of `explain`.
2. Fit and explain. An `MCCEError` with a message is an answer; any other exception or warning is a failure.
3. Check the result by the oracles, and again for another order, batch and number of threads.
4. Write it in every format.
"""

from __future__ import annotations

import collections
import faulthandler
import os
import random
import sys
import tempfile
import traceback
import warnings
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier
from sklearn.tree import DecisionTreeRegressor

import mcce
from tests.extras import HAS_VINE
from tests.fuzz.oracles import Model, check_best, check_result, dense, differs, is_number, obeys_all, values_of
from tests.fuzz.tables import random_table

SAMPLERS = (
    ["cart", "cart", "forest", "parametric", "rpart", "auto"] + ["by feature"] * 4 + ["everywhere"] * 6 + ["private"]
)
OURS = [name for name, cls in sorted(mcce.available_samplers().items()) if cls.__module__.startswith("mcce.")]
OURS = [name for name in OURS if (HAS_VINE or name != "vine") and name != "dp"]  # the "private" case
SECONDS = 300  # after this time a case counts as hanging, also on a busy machine


@dataclass
class Case:
    """One workflow, and the properties of its result."""

    X: pd.DataFrame
    factuals: pd.DataFrame
    model: Model
    fixed: list
    sampler: object
    settings: dict
    options: dict
    least: float
    plain: bool
    said: list = field(default_factory=list)
    rules: list = field(default_factory=list)
    only: dict = field(default_factory=dict)
    any_missing: bool = False
    no_copies: bool = False
    other_scales: bool = False  # distances use the stated ranges, not those of the table

    def wants(self, answer):
        return bool(answer >= self.least)

    def may_go_missing(self, name):
        said = [each["missing"] for n, each in self.said if n == name and "missing" in each]
        return all(said) if said else self.any_missing and ("*" not in self.X or name == "*")  # a feature of that name

    def obeys(self, name, value, own):
        return obeys_all(self.said, name, value, own, self.may_go_missing(name))

    def keeps_rules(self, row, own, label):
        rising = all(row[n] is not None and own[n] is not None and row[n] >= own[n] for n in self.rules)
        free = self.only.get(label)
        return rising and (free is None or not any(differs(row[n], own[n]) for n in row if n not in free))

    def public(self):
        """Return the stated levels by feature; those of booleans are always public."""
        levels = self.sampler.levels if isinstance(self.sampler, mcce.Privacy) else {}
        return {name: some for name, some in levels.items() if not _is_boolean(self.X[name])}

    def dtypes(self, rows=None):
        """Return the dtypes of the result: those of the table with its public levels, followed by those of `rows`."""
        types = {}
        for name, public in self.public().items():
            if isinstance(self.X[name].dtype, pd.CategoricalDtype):
                others = (
                    [v for v in dict.fromkeys(values_of(rows[name])) if v not in [None, *public]]
                    if rows is not None
                    else []
                )
                types[name] = pd.CategoricalDtype([*public, *others], self.X[name].cat.ordered)
        return self.X.iloc[:0].astype(types).dtypes

    def is_known(self):
        """Return which factuals have only public levels."""
        own = [self.factuals[name].isna() | self.factuals[name].isin(public) for name, public in self.public().items()]
        return np.logical_and.reduce(own) if own else np.ones(len(self.factuals), dtype=bool)

    def known(self):
        return self.factuals[self.is_known()]

    def constraints(self):
        """Return the settings as the user writes them."""
        made = [mcce.allow(name, **each) for name, each in self.said]
        made += [mcce.allow("*", missing=True)] if self.any_missing else []
        made += [mcce.no_copies()] if self.no_copies else []
        made += [mcce.rule(f"`{name}` >= was(`{name}`)") for name in self.rules]
        return made + ([mcce.only(self.only)] if self.only else [])

    def explainer(self, n_jobs=1):
        model = self.model if not self.plain else lambda rows: self.model(rows) >= self.least
        decision = True if self.plain else (self.least, 1.0)
        return mcce.MCCE(
            model, decision=decision, fixed=self.fixed, sampler=self.sampler, n_jobs=n_jobs, **self.settings
        )


def make_case(chance, conditional=None):
    """Step 1; with the conditional of this name, if given."""
    X = random_table(chance)
    names = list(X.columns)
    model = Model(X, chance.randint(0, 9))
    scores = model(X)
    least = float(np.quantile(scores, 0.6, method="higher"))
    denied = np.flatnonzero(scores < least).tolist()
    rows = chance.sample(denied, min(len(denied), chance.randint(1, 6))) or [0]
    if chance.random() < 0.1:
        rows.extend(np.flatnonzero(scores >= least)[:1])
    fixed = [name for name in names[1:] if chance.random() < 0.25]
    mutable = X.drop(columns=fixed)
    sampler = random_sampler(chance, mutable, conditional)
    if sampler == "private":
        sampler = random_privacy(chance, X)
    other_scales = isinstance(sampler, mcce.Privacy) and states_other_scales(sampler, X)
    donors = {"cart": mcce.CartSampler, "forest": mcce.ForestSampler, "marginal": mcce.MarginalSampler}
    if isinstance(sampler, str) and sampler in donors and chance.random() < 0.5:
        sampler = donors[sampler](min_donors=3)
    case = Case(
        X,
        X.iloc[rows],
        model,
        fixed,
        sampler,
        {
            "random_state": chance.randint(0, 5),
            "condition_on_decision": chance.random() < 0.7,
            "visit_sequence": chance.choice(["data", "data", "correlation"]),
        },
        {
            "n_samples": chance.randint(5, 20),
            "n_counterfactuals": chance.choice([1, 1, 2, 5, 10**9]),
            "sparse": chance.random() < 0.4,
            "floor": chance.choice([0.0, 0.05, 0.3]),
            "diverse": chance.random() < 0.2,
            "independent": chance.random() < 0.2,
            "max_changes": chance.choice([None, None, None, 1, 2]),
        },
        least,
        chance.random() < 0.3,
        any_missing=chance.random() < 0.3,
        no_copies=chance.random() < 0.1,
        other_scales=other_scales,
    )
    if chance.random() < 0.5:
        for name in chance.sample(names, chance.randint(1, min(2, len(names)))):
            say_something(case, name, chance)
    return case


def random_sampler(chance, X, conditional=None):
    """Return a sampler for all features, or one for each that it can model; sometimes for one that it cannot."""
    if conditional is not None and conditional != "private":
        return everywhere(conditional, X)
    name = conditional or chance.choice(SAMPLERS)
    if name == "rpart":
        return mcce.CartSampler(dialect="rpart", min_leaf=chance.choice([None, 1, 3]))
    if name == "auto":
        return mcce.Auto(["marginal", chance.choice(["cart", "parametric"])], n_folds=2, n_draws=3)
    if name == "everywhere":
        return everywhere(chance.choice(OURS), X)
    if name == "by feature":
        return {n: random_conditional(chance, X[n]) for n in X.columns if n != "*"} | {"*": "cart"}
    return name


def random_privacy(chance, X):
    """Return differential privacy with the values of the table declared public, or slightly fewer."""
    bounds, levels, missing = {}, {}, []
    for name in X.columns:
        column = dense(X[name])
        seen = [v for v in values_of(column) if v is not None]
        if kind_of(X[name]) == "numeric":
            low, high = (min(seen), max(seen)) if seen else (0, 1)
            bounds[name] = (low, high if high > low else low + (pd.Timedelta(1, "D") if is_time(low) else 1))
        else:
            categories = getattr(column.dtype, "categories", None)
            levels[name] = list(dict.fromkeys(seen)) if categories is None else list(categories)
        if column.isna().any() and chance.random() < 0.8:
            missing.append(name)
    if levels and chance.random() < 0.2:
        name = chance.choice(list(levels))
        levels[name] = levels[name][1:] or levels[name]
    return mcce.Privacy(
        epsilon=chance.choice([0.1, 1, 10, 1000]),
        delta=chance.choice([0, 0, 1e-6]),
        bounds=bounds,
        levels=levels,
        missing=missing,
        n_trees=chance.choice([1, 1, 2]),
        max_depth=chance.choice([None, None, 0, 3]),
        n_bins=chance.choice([1, 4, 16]),
        choosing=chance.choice([0.0, 0.5]),
        n_synthetic=chance.choice([1, 50, 200]),
        testing_seed=chance.choice([None, 1]),
    )


def states_other_scales(private, X):
    """Return whether a number has other bounds than its values, or an ordered column fewer levels."""
    for name in X.columns:
        column, kind = dense(X[name]), kind_of(X[name])
        seen = {v for v in values_of(column) if v is not None}
        if kind == "numeric" and len(seen) < 2:
            return True
        if kind == "ordered" and len(private.levels[name]) < len(column.cat.categories):
            return True
    return False


def is_time(value):
    return isinstance(value, (pd.Timestamp, pd.Timedelta))


def everywhere(name, X):
    """Return the conditional of a name for every feature that it models; trees for the others."""
    handled = mcce.available_samplers()[name].handles
    sampler = mcce.BoostingSampler(max_trees=5) if name == "boosting" else name  # few, because it is slow
    return {n: sampler if kind_of(X[n]) in handled else "cart" for n in X.columns if n != "*"} | {"*": "cart"}


def _is_boolean(column):
    """Return whether cells are booleans; in a categorical with such levels they are levels."""
    dtype = dense(column).dtype
    return pd.api.types.is_bool_dtype(dtype) and not isinstance(dtype, pd.CategoricalDtype)


def kind_of(column):
    if is_number(column.dtype):
        return "numeric"
    return "ordered" if isinstance(column.dtype, pd.CategoricalDtype) and column.cat.ordered else "categorical"


def random_conditional(chance, column):
    kind = kind_of(column)
    if chance.random() < 0.02:
        return chance.choice(["norm", "logreg", "polyreg", "polr", "copula"])
    if kind == "numeric":
        method = chance.choice(["residuals", "pmm"])
        tree = mcce.EstimatorSampler(DecisionTreeRegressor(max_depth=2), method=method, n_donors=3)
        return chance.choice(["norm", "normrank", "pmm", "parametric", "marginal", tree])
    prior = mcce.EstimatorSampler(DummyClassifier(strategy="prior"))
    return chance.choice(["polr" if kind == "ordered" else "polyreg", "parametric", "ctree", prior])


def say_something(case, name, chance):
    """Add a constraint on a feature, mostly one that is meaningful for its values."""
    column = dense(case.X[name])
    seen = [v for v in values_of(column) if v is not None]
    if not seen:
        case.said.append((name, {"missing": True}))
        return
    pick, kind = chance.choice(seen), chance.randint(0, 6)
    plain = isinstance(pick, (int, float)) and not isinstance(pick, bool) and is_number(column.dtype)
    if plain and isinstance(name, str) and "`" not in name and name and kind == 0:
        case.rules.append(name)
    elif plain and kind <= 3:
        said = chance.choice([{"low": pick}, {"high": pick}, {"direction": "increase"}, {"direction": "decrease"}])
        case.said.append((name, said | chance.choice([{}, {"missing": True}, {"never": [pick + 1]}])))
    elif isinstance(pick, pd.Timestamp) and kind <= 3:
        case.said.append((name, chance.choice([{"low": pick}, {"direction": "increase"}, {"never": [pick]}])))
    elif kind == 4:
        case.said.append((name, {"direction": "none"}))
    elif kind == 5:
        who = list(case.factuals.index)
        case.only = {chance.choice(who): [n for n in case.X.columns if chance.random() < 0.5] + [name]}
    elif not is_number(column.dtype):
        case.said.append((name, {chance.choice(["levels", "never"]): [pick]}))


def run(case, chance):
    """Steps 2 to 4; return "answered" or the kind of error."""
    try:
        explainer = case.explainer().fit(case.X)
        options = {**case.options, "constraints": case.constraints()}
        found = explainer.explain(case.factuals, **options)
    except mcce.MCCEError as error:
        if len(str(error)) < 20:
            raise AssertionError(f"the message says little: {error}") from error
        return f"refused: {str(error)[:60]}"
    check_result(found, case)
    if chance.random() < 0.1:
        found.standard_errors()
    if chance.random() < 0.3:
        found = found.with_why_unexplained(2)
    if not (case.options["sparse"] or case.options["diverse"] or case.no_copies or case.other_scales):
        shared = {name: options[name] for name in ("n_samples", "independent", "constraints")}
        check_best(found, explainer.generate(case.known(), **shared), case)
    check_same(found, explainer, case, options, chance)
    if chance.random() < 0.5:  # it takes as long as all other steps
        write_all(found, explainer, case, chance)
    return "answered" if len(found) else "nothing found"


def check_same(found, explainer, case, options, chance):
    """The same rows for another order, for half of the factuals, and for two threads."""
    step = chance.choice([1, 2])
    half = case.factuals.iloc[::-step]
    fresh_noise = isinstance(case.sampler, mcce.Privacy) and case.sampler.testing_seed is None
    other = case.explainer(n_jobs=2).fit(case.X) if chance.random() < 0.3 and not fresh_noise else explainer
    if case.only or not np.asarray(case.is_known())[::-step].any():
        half = case.factuals.iloc[::-1]  # named factuals must exist, and at least one must be readable
    try:
        again = other.explain(half, **options)
    except mcce.InputError as error:  # contradictions for all factuals except those left out
        if "the constraints leave no value for any" not in str(error):
            raise
        again = found[half.index[0]]
    for label in half.index:
        rows = found.frame[np.array([x == label for x in found.frame.index.get_level_values("id")], dtype=bool)]
        same = again.frame[np.array([x == label for x in again.frame.index.get_level_values("id")], dtype=bool)]
        pd.testing.assert_frame_equal(rows.reset_index(drop=True), same.reset_index(drop=True), check_exact=True)


def write_all(found, explainer, case, chance):
    """Step 4."""
    repr(found)
    found._repr_html_()
    found.changes()
    found.changed_features()
    mcce.report.sentences(found)
    found.summary()
    found.diversity()
    table = found.to_frame()
    assert table.columns.is_unique
    assert table.shape == (len(found), case.X.shape[1] + found.measures.shape[1] + 2)
    found[chance.choice(list(case.factuals.index))]
    page = mcce.report.letter(found, chance.choice(list(case.known().index)), html=chance.random() < 0.5)
    assert "<script>alert(1)" not in page or not page.startswith("<")
    if len(found):
        found.contributions(next(iter(found)))
    if chance.random() < 0.3:
        found.by(chance.choice(list(case.X.columns))) if len(found) > 1 else None
    with tempfile.TemporaryDirectory() as folder:
        if chance.random() < 0.2:
            found.save(f"{folder}/found.mcce")
            pd.testing.assert_frame_equal(mcce.Counterfactuals.load(f"{folder}/found.mcce").frame, found.frame)
        tested = getattr(case.sampler, "testing_seed", None) is not None  # not stored
        if chance.random() < 0.2 and not tested and "EstimatorSampler" not in repr(case.sampler):
            explainer.save(f"{folder}/explainer.mcce")
            loaded = mcce.MCCE.load(f"{folder}/explainer.mcce", model=explainer.model)
            again = loaded.explain(case.factuals, **case.options, constraints=case.constraints())
            pd.testing.assert_frame_equal(again.frame, found.frame, check_exact=True)
        if chance.random() < 0.01:  # pictures take as long as about ten workflows
            found.to_html(f"{folder}/page.html")


def try_case(chance, conditional=None):
    """Draw a case and run it with every foreign warning as an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", mcce.MCCEWarning)
        case = make_case(chance, conditional)
        return case, run(case, chance)


def main(first, last, conditional=None):
    """Run cases by number, with one conditional if named; print those that fail."""
    outcomes = collections.Counter()
    for number in range(first, last):
        print(f"\r{number}", end="", file=sys.stderr, flush=True)  # the last number is the case that hung or crashed
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        try:
            outcome = try_case(random.Random(number), conditional)[1]
        except Exception as error:
            outcome = "FAILED"
            ours = [
                f for f in traceback.extract_tb(error.__traceback__) if "mcce" in f.filename or "fuzz" in f.filename
            ]
            places = " < ".join(f"{os.path.basename(f.filename)}:{f.lineno}" for f in ours[:-4:-1])
            print(f"case {number}: {type(error).__name__}: {str(error)[:200]!r} at {places}", flush=True)
        faulthandler.cancel_dump_traceback_later()
        outcomes[outcome] += 1
    return outcomes


if __name__ == "__main__":
    faulthandler.enable()
    for what, count in main(*map(int, sys.argv[1:3]), *sys.argv[3:4]).most_common():
        print(f"{count:6d} {what}")
