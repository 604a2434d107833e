"""The disclosure report: attacks detect constructed leaks and keep their level otherwise.

People have four numbers and a level; the model accepts a large second number. Trees with leaves of one row return the
values of one person together. An explainer fitted on other people cannot leak.
"""

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.diagnostics import disclosure
from mcce.exceptions import InputError
from mcce.plausibility import score
from mcce.plausibility.score import Plausibility

LEAKING = mcce.CartSampler(min_leaf=1, min_split=2)
FAST = {"n_attacks": 120, "max_factuals": 60, "n_samples": 100}


def accept(rows):
    return (rows["b"] > 0.3).to_numpy(dtype=float)


def people(n, seed):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = 0.5 * a + rng.normal(size=n)
    c = b + rng.normal(size=n)
    sex = pd.Categorical(rng.choice(["f", "m"], n))
    return pd.DataFrame({"sex": sex, "a": a, "b": b, "c": c, "d": rng.normal(size=n)}).round(3)


def fit(X, sampler="cart", model=accept, fixed=("sex",), **settings):
    return mcce.MCCE(model, fixed=list(fixed), sampler=sampler, random_state=1, **settings).fit(X)


@pytest.fixture(scope="module")
def leaking():
    X = people(300, 1)
    return disclosure(fit(X, LEAKING), X, holdout=people(300, 2), releases=["plain", "generated"], **FAST)


@pytest.fixture(scope="module")
def clean():
    X = people(300, 1)
    return disclosure(fit(people(300, 3), LEAKING), X, holdout=people(300, 2), releases=["plain", "generated"], **FAST)


@pytest.fixture(scope="module")
def tables():
    """Tables of explainers whose answers depend on a number such as an age in days: of members, and of others."""
    X, settings = people(300, 1), {"holdout": people(300, 2), "releases": ["plain"], "keys": ["sex"]}
    fitted = [fit(rows, LEAKING, fixed=("sex", "a")) for rows in (X, people(300, 3))]
    return [disclosure(each, X, **settings, **FAST).table.loc["plain"] for each in fitted]


FOUND = ["copies", "distinguishing cells", "singling out", "linkability", "inference"]
BY_QUERIES = ["membership by repeated queries, AUC", "membership by repeated queries, found at 1.0%"]


@pytest.mark.parametrize("measure", [*FOUND, "singling out, one column"])
def test_rows_drawn_from_leaves_of_one_training_row_leak(leaking, clean, measure):
    assert leaking.table.loc[("generated", measure), "verdict"] == "leaks"
    assert clean.table.loc[("generated", measure), "verdict"] != "leaks"


@pytest.mark.parametrize("measure", ["copies", "singling out, one column"])
def test_counterfactuals_from_leaves_of_one_training_row_leak(leaking, clean, measure):
    assert leaking.table.loc[("plain", measure), "verdict"] == "leaks"
    assert clean.table.loc[("plain", measure), "verdict"] != "leaks"


@pytest.mark.parametrize("measure", BY_QUERIES)
def test_repeated_queries_identify_leaves_of_one_training_row(tables, measure):
    leaks, cannot = tables
    assert leaks.loc[measure, "verdict"] == "leaks"
    assert cannot.loc[measure, "verdict"] != "leaks"


def test_copies_are_counted_correctly(leaking, clean):
    assert leaking.table.loc[("generated", "copies"), "value"] > 0.95
    assert leaking.table.loc[("plain", "copies"), "value"] > 0.95
    assert (clean.table["value"].xs("copies", level="measure") == 0).all()


def test_every_line_has_figures_in_order_and_a_sentence(leaking):
    table = leaking.table
    known = table.dropna(subset=["value"])
    assert ((known["low"] <= known["value"] + 1e-9) & (known["value"] <= known["high"] + 1e-9)).all()
    assert leaking.sentences.index.equals(table.index)
    assert leaking.sentences.str.endswith(".").all()
    assert set(table["verdict"]) <= {"leaks", "no leak seen", "worthless"}
    assert len(leaking.leaks()) == (table["verdict"] == "leaks").sum()
    assert "membership by distance, AUC" in table.loc["plain"].index


def test_printed_report(leaking):
    text = repr(leaking)
    assert text.startswith("Disclosure: 300 training rows, 150 control rows, 150 rows of the attacker; keys 'sex'")
    assert "copies of a training row are" in text
    assert "<table>" in leaking._repr_html_()


def test_targets_have_counts(leaking):
    X = people(300, 1)
    assert leaking.targets.index.names == ["release", "target"]
    assert leaking.targets.loc["generated"].index.tolist() == ["a", "b", "c", "d"]
    assert leaking.targets.loc[("generated", "a"), "UiO"] == 100 * (X["sex"].value_counts() == 1).sum() / 300


def test_same_seed_gives_same_answer():
    X, settings = people(60, 1), {"holdout": people(60, 2), "releases": ["plain"], "n_samples": 30}
    tables = [disclosure(fit(X), X, n_attacks=20, max_factuals=20, **settings).table for _ in range(2)]
    pd.testing.assert_frame_equal(*tables)


def test_rows_outside_the_training_data_are_reported(clean, leaking):
    assert "100.0% of the rows of X are not training rows of the explainer." in clean.notes
    assert not any("fitted on" in note for note in leaking.notes)


class Memory:
    """A model that rejects memorised rows more strongly: they need larger changes."""

    def __init__(self, X):
        self.known = set(map(tuple, X.loc[X["b"] <= 0.3, ["a", "c", "d"]].to_numpy()))

    def predict(self, rows):
        remembered = [tuple(row) in self.known for row in rows[["a", "c", "d"]].to_numpy()]
        return (rows["b"] > np.where(remembered, 1.2, 0.3)).to_numpy(dtype=float)


@pytest.mark.slow
def test_distance_attack_detects_members_of_a_memorising_model():
    X, holdout = people(300, 1), people(300, 2)
    fixed = ("sex", "a", "c", "d")  # only b can change, by as much as the model requires
    sizes = {**FAST, "max_factuals": 100, "releases": ["plain"], "keys": ["sex"]}
    verdicts = disclosure(fit(X, model=Memory(X), fixed=fixed), X, holdout=holdout, **sizes).table.loc["plain"][
        "verdict"
    ]
    blind = disclosure(fit(X, fixed=fixed), X, holdout=holdout, **sizes).table.loc["plain"]["verdict"]
    assert verdicts["membership by distance, AUC"] == "leaks"
    assert blind["membership by distance, AUC"] != "leaks"


@pytest.fixture(scope="module")
def known_by_a_number():
    """Tables of an attacker who knows a number that is disclosed by leaves of one training row."""
    X, settings = people(300, 1), {"holdout": people(300, 2), "keys": ["a"], "targets": ["c"]}
    fitted = [fit(rows, LEAKING) for rows in (X, people(300, 3))]
    return [disclosure(each, X, releases=["plain", "generated"], **settings, **FAST).table for each in fitted]


# RepU requires keys of exactly one released row; the nearest rows are returned for many factuals
BY_KEYS = [
    ("generated", "RepU"),
    *((release, line) for release in ("plain", "generated") for line in ("DiSCO", "linkage")),
]


@pytest.mark.slow
@pytest.mark.parametrize(("release", "measure"), BY_KEYS)
def test_copied_keys_allow_linkage(known_by_a_number, release, measure):
    leaks, cannot = (table.loc[(release, measure), "verdict"] for table in known_by_a_number)
    assert leaks == "leaks"
    assert cannot != "leaks"


class FarForThoseItKnows:
    """A generator that draws farther away for training rows, identified by `a`, than for others."""

    def fit(self, X):
        self.X, self.known = X, set(X["a"])

    def sample(self, n, given, random_state=None):
        rng = np.random.default_rng(random_state)
        far = 2.0 if given["a"] in self.known else 0.0
        return self.X.sample(n, replace=True, random_state=random_state).assign(b=0.31 + far + 0.2 * rng.random(n))


@pytest.fixture(scope="module")
def by_distance():
    """Tables of a generator that treats its training rows differently: of members, and of others."""
    X, holdout, fixed = people(160, 1), people(160, 2), ("sex", "a")
    sizes = {"n_attacks": 40, "max_factuals": 60, "n_samples": 100, "releases": ["plain"]}
    tables = []
    for rows in (X, people(160, 3)):
        generator = mcce.generators.SampleGenerator(FarForThoseItKnows(), fixed=fixed, random_state=1)
        explainer = mcce.MCCE(accept, fixed=list(fixed), generator=generator).fit(rows)
        tables.append(disclosure(explainer, X, holdout=holdout, keys=["sex"], **sizes).table.loc["plain"])
    return tables


@pytest.mark.nightly
def test_distance_attack_detects_unequal_treatment_of_members(by_distance):
    leaks, cannot = (table.loc["membership by distance, AUC", "verdict"] for table in by_distance)
    assert leaks == "leaks"
    assert cannot != "leaks"


@pytest.mark.slow
def test_sparse_rows_are_measured_with_their_plausibility():
    X = people(300, 1)
    found = disclosure(fit(X), X, holdout=people(300, 2), releases=["sparse"], floor=0.1, **FAST)
    assert "membership by plausibility, AUC" in found.table.loc["sparse"].index
    assert found.settings["floor"] == 0.1


def by_plausibility(rows):
    sizes = {**FAST, "max_factuals": 150, "releases": ["sparse"], "keys": ["sex"]}
    found = disclosure(fit(rows), people(300, 1), holdout=people(600, 2), **sizes).table.loc["sparse"]
    return [found.loc[f"membership by plausibility, {line}", "verdict"] for line in ("AUC", "found at 1.0%")]


@pytest.mark.nightly
def test_plausibility_reveals_no_membership(monkeypatch):
    """The attack identifies members if the plausibility was fitted on the rows that it scores.

    Here the score of a row comes from a fold fitted without it, so the attack fails, even if a leaf of the generator
    has one person.
    """
    right = Plausibility.fold_of
    X, others = people(300, 1), people(300, 3)
    assert "leaks" not in [*by_plausibility(X), *by_plausibility(others)]
    monkeypatch.setattr(score, "NEAREST", 1)
    monkeypatch.setattr(Plausibility, "fold_of", lambda self, rows: (right(self, rows) + 1) % len(self.conditionals))
    monkeypatch.setattr(Plausibility, "join", lambda self, inner, distance, origins: self.nearness.share(-distance))
    assert by_plausibility(X) == ["leaks", "leaks"]
    assert "leaks" not in by_plausibility(others)


def test_answers_are_judged_by_the_same_model_without_the_row():
    """Neighbours and trees of a row's fold, fitted with and without the row; bins are those of the values."""
    X = people(300, 1).round(0).drop_duplicates(ignore_index=True)
    schema = mcce.Schema.from_data(X)
    matrix, mutable = schema.encode(X).matrix, np.arange(1, 5)
    whole = Plausibility.fit(matrix, schema.features, mutable)
    for person in range(0, len(X), 40):
        k = int(whole.fold_of(matrix[person : person + 1])[0])
        without = Plausibility.fit(np.delete(matrix, person, axis=0), schema.features, mutable)
        assert len(without.conditionals) == len(whole.conditionals)
        assert np.array_equal(without.neighbours[k], whole.neighbours[k])
        for part in ("column", "cut", "left"):
            assert np.array_equal(getattr(without.conditionals[k], part), getattr(whole.conditionals[k], part))
        assert any(not np.array_equal(a, b) for a, b in zip(without.neighbours, whole.neighbours, strict=True))


@pytest.mark.nightly
def test_false_positive_rate_matches_the_level():
    rejected = lines = 0
    for seed in range(12):
        X, others, holdout = (people(160, 10 * seed + part) for part in range(3))
        found = disclosure(fit(others), X, holdout=holdout, releases=["plain", "generated"], **FAST)
        rejected += len(found.leaks())
        lines += len(found.table)
    # 2.5 per cent per line; lines of a table are dependent, so twice three standard errors are allowed
    assert rejected / lines < 0.025 + 6 * np.sqrt(0.025 * 0.975 / lines), (rejected, lines)


BAD = {
    "releases": (["all"], r"releases is \['all'\]; choose among 'plain', 'sparse', 'generated'"),
    "keys": (["sax"], r"keys names 'sax', which is not a column; did you mean 'sex'\?"),
    "targets": (["sex"], r"'sex' is among keys and targets"),
    "k": (0, r"k is 0; it must be a whole number of at least 1"),
    "confidence": (1.5, r"confidence is 1.5; it must be a number from 0 to below 1"),
    "sparse": (True, r"disclosure sets sparse; leave it out"),
    "holdout": (people(30, 2), r"holdout has 30 rows; attacks need at least 40"),
    "factuals": (people(9, 4).assign(b=9.0), r"all available rows of factuals have the wanted decision"),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_input_is_reported(name):
    X = people(60, 1)
    value, message = BAD[name]
    with pytest.raises(InputError, match=message):
        disclosure(fit(X), X, **{"holdout": people(60, 2), name: value})


def test_holdout_of_training_rows_and_missing_fixed_features_are_reported():
    X = people(60, 1)
    with pytest.raises(InputError, match=r"60 of 60 rows of holdout are rows of X too"):
        disclosure(fit(X), X, holdout=X)
    with pytest.raises(InputError, match=r"has no fixed features; give the columns known to an attacker as `keys`"):
        disclosure(fit(X, fixed=()), X, holdout=people(60, 2))
