"""A user's file (`tests/fixtures/users_own.py`) registers one part of each kind, used by name everywhere."""

import importlib.util
import inspect
import re
import sys
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.cli import main
from mcce.constraints import Constraint, read
from mcce.constraints.base import CONSTRAINTS
from mcce.constraints.reading import read_sections
from mcce.distances.measures import MEASURES
from mcce.generators.base import GENERATORS
from mcce.samplers.base import SAMPLERS
from mcce.storage import state

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "tests" / "fixtures" / "users_own.py"
FIXED = ["age"]
X = mcce.datasets.load_loans(300).X[["age", "salary", "savings"]]
POOR = X[X["salary"] < 40_000].head(5)
TOML = """
[["own.budget"]]
features = ["salary", "savings"]
most = 90000
"""
BUDGET = "salary and savings together at most 90000"


def score(rows):
    return rows["salary"] / 80_000


class Scored:
    """A model that can be pickled."""

    def predict(self, rows):
        return rows["salary"] / 80_000


@pytest.fixture
def forgotten(monkeypatch):
    """Unregister names registered by a test."""
    for registry in (SAMPLERS, GENERATORS, MEASURES, CONSTRAINTS):
        monkeypatch.setattr(registry, "known", dict(registry.known))
    for names in ("_by_class", "_by_name"):
        monkeypatch.setattr(state, names, dict(getattr(state, names)))


@pytest.fixture
def own(forgotten, monkeypatch):
    """The imported module of the user."""
    spec = importlib.util.spec_from_file_location("users_own", SOURCE)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "users_own", module)
    spec.loader.exec_module(module)
    return module


def test_registered_measure_orders_by_name(own):
    explainer = mcce.MCCE(score, fixed=FIXED, random_state=1).fit(X)
    found = explainer.explain(POOR, n_samples=100, measures=("own.spread",))
    sd = X[["salary", "savings"]].std(ddof=0)
    factuals = POOR.loc[found.frame.index.get_level_values("id"), ["salary", "savings"]].to_numpy()
    expected = np.abs(found.frame[["salary", "savings"]].to_numpy() - factuals) / sd.to_numpy()
    np.testing.assert_allclose(found.measures["own.spread"], expected.sum(axis=1))
    candidates = explainer.generate(POOR, n_samples=100)
    valid = candidates[score(candidates) >= 0.5]
    of = POOR.loc[valid.index.get_level_values("id"), ["salary", "savings"]].to_numpy()
    least = (np.abs(valid[["salary", "savings"]] - of) / sd).sum(axis=1).groupby(level="id").min()
    np.testing.assert_allclose(found.measures["own.spread"].droplevel("rank"), least)


def test_registered_measure_may_prefer_the_largest(own):
    explainer = mcce.MCCE(score, fixed=FIXED, random_state=1).fit(X)
    found = explainer.explain(POOR, n_samples=100, measures=["own.savings", "gower"])
    candidates = explainer.generate(POOR, n_samples=100)
    most = candidates["savings"][score(candidates) >= 0.5].groupby(level="id").max()
    assert found.frame["savings"].droplevel("rank").tolist() == most.tolist()
    doubled = explainer.explain(POOR, n_samples=100, measures="own.spread", feature_weights={"salary": 2})
    assert not doubled.measures["own.spread"].equals(found.measures["gower"])


def test_registered_constraint_holds_and_appears_in_the_letter(own, tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(TOML, encoding="utf-8")
    assert read(path) == [own.Budget(("salary", "savings"), 90_000)]
    found = mcce.MCCE(score, fixed=FIXED, random_state=1, constraints=path).fit(X).explain(POOR, n_samples=300)
    assert len(found)
    assert ((found.frame["salary"] + found.frame["savings"]) <= 90_000).all()
    assert list(found.constraints.index) == [BUDGET]
    assert BUDGET in mcce.report.letter(found, found.frame.index[0][0])


def test_registered_constraint_resolves_to_others(own):
    explainer = mcce.MCCE(score, fixed=FIXED, random_state=1).fit(X)
    found = explainer.explain(POOR, n_samples=300, constraints=[own.Careful("salary")])
    assert found.copies == 0
    rises = found.frame["salary"].droplevel("rank") - POOR["salary"].loc[found.frame.index.get_level_values("id")]
    assert rises.between(0, 30_000).all()
    words = "salary with care"
    assert list(found.constraints.index) == [
        words,
        f"{words}: salary + savings <= 200000",
        f"{words}: salary >= was(salary)",
    ]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"own.budget": [{"features": ["salary"]}]}, "own.budget 1: own.budget lacks 'most'; it has 'features'"),
        ({"own.budget": {"features": ["a"], "mots": 1}}, r"own.budget has no 'mots'; did you mean 'most'\?"),
        ({"own.budgt": []}, r"there is no 'own.budgt'; did you mean 'own.budget'\?"),
    ],
)
def test_invalid_table_raises(own, said, message):
    with pytest.raises(mcce.InputError, match=message):
        read_sections(said, "rules.toml")


def test_invalid_resolution_raises(own):
    class Endless(own.Careful):
        def resolve(self, schema):
            return [Endless(self.feature)]

    class Wrong(own.Careful):
        def resolve(self, schema):
            return ["salary > 3"]

    explainer = mcce.MCCE(score, fixed=FIXED, random_state=1).fit(X)
    with pytest.raises(mcce.InputError, match="'salary with care' resolves endlessly"):
        explainer.explain(POOR, constraints=[Endless("salary")])
    with pytest.raises(mcce.InputError, match=r"resolve\(\) of .* returned 'salary > 3'; return constraints"):
        explainer.explain(POOR, constraints=[Wrong("salary")])


@pytest.mark.slow
def test_registered_parts_in_a_saved_explainer(own, tmp_path):
    settings = {"fixed": FIXED, "random_state": 1, "constraints": [own.Budget(("salary", "savings"), 90_000)]}
    for how in ({"generator": "own.rows"}, {"sampler": {"salary": "own.shuffled", "*": "cart"}}):
        explainer = mcce.MCCE(score, **settings, **how).fit(X)
        explainer.save(tmp_path / "own.mcce")
        again = mcce.MCCE.load(tmp_path / "own.mcce", model=score)
        assert again.constraints == settings["constraints"]
        assert again.generator == how.get("generator")
        before, after = (each.explain(POOR, n_samples=200, measures="own.savings") for each in (explainer, again))
        assert len(before)
        pd.testing.assert_frame_equal(before.frame, after.frame)
        assert mcce.report.letter(before, before.frame.index[0][0]) == mcce.report.letter(
            after, before.frame.index[0][0]
        )
    assert isinstance(again.generator_.samplers_["salary"], own.Shuffled)
    assert mcce.MCCE(score, fixed=FIXED, generator="own.rows", random_state=1).fit(X).generator_.seed_ == 1


@pytest.mark.slow
def test_registered_parts_in_a_job(own, tmp_path, capsys):
    X.to_csv(tmp_path / "train.csv", index=False)
    POOR.to_csv(tmp_path / "rows.csv", index=False)
    joblib.dump(Scored(), tmp_path / "model.joblib")
    job = 'train = "train.csv"\nexplain = "rows.csv"\nmodel = "model.joblib"\ndecision = [0.5, 1]\nfixed = ["age"]\n'
    job += 'n_samples = 200\nmeasures = ["own.savings"]\nno_copies = true\nout = "found.csv"\n'
    (tmp_path / "job.toml").write_text(job + 'generator = "own.rows"\n' + TOML, encoding="utf-8")
    options = ["--letters", str(tmp_path / "letters"), "--all"]  # large steps, which are suspicious
    assert main(["explain", "--config", str(tmp_path / "job.toml"), *options]) in (0, 3)
    first = (tmp_path / "found.csv").read_text(encoding="utf-8")
    found = pd.read_csv(tmp_path / "found.csv")
    assert (found["salary"] + found["savings"] <= 90_000).all()
    assert any(BUDGET in " ".join(page.read_text(encoding="utf-8").split()) for page in tmp_path.glob("letters/*.html"))
    again = (tmp_path / "found.job.toml").read_text(encoding="utf-8")
    assert 'generator = "own.rows"' in again
    assert "no_copies = true" in again
    assert main(["explain", "--config", str(tmp_path / "found.job.toml"), "--force"]) in (0, 3)
    assert (tmp_path / "found.csv").read_text(encoding="utf-8") == first
    rules = tmp_path / "rules.toml"
    rules.write_text(TOML, encoding="utf-8")
    common = ["explain", "--train", str(tmp_path / "train.csv"), "--explain", str(tmp_path / "rows.csv")]
    common += ["--model", str(tmp_path / "model.joblib"), "--fixed", "age", "--constraints", str(rules)]
    common += ["--sampler", "salary=own.shuffled,*=cart", "--measures", "own.spread", "--n-samples", "100"]
    assert main([*common, "--out", str(tmp_path / "other.csv")]) in (0, 3)
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["explain", "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    for name in ("own.shuffled", "own.rows", "own.spread", "[[own.budget]]"):
        assert name in printed


def test_registered_parts_in_batches(own, tmp_path):
    pytest.importorskip("pyarrow")
    explainer = mcce.MCCE(score, fixed=FIXED, random_state=1).fit(X)
    settings = {
        "n_samples": 100,
        "measures": ["own.spread", "own.savings"],
        "constraints": own.Careful("salary"),
    }
    explainer.explain_batches(POOR, tmp_path / "out", batch_size=3, **settings)
    written = pd.concat(map(pd.read_parquet, sorted((tmp_path / "out" / "counterfactuals").iterdir())))
    expected = explainer.explain(POOR, **settings).measures
    np.testing.assert_allclose(written["own.spread"], expected["own.spread"])
    np.testing.assert_allclose(written["own.savings"], expected["own.savings"])


def test_installed_package_is_found(forgotten, tmp_path, monkeypatch):
    groups = {"samplers": "Shuffled", "generators": "WholeRows", "measures": "by_spread", "constraints": "Budget"}
    names = {
        "samplers": "own.shuffled",
        "generators": "own.rows",
        "measures": "own.spread",
        "constraints": "own.budget",
    }
    info = tmp_path / "users_own-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: users-own\nVersion: 1.0\n")
    points = (f"[mcce.{group}]\n{names[group]} = users_own:{member}\n" for group, member in groups.items())
    (info / "entry_points.txt").write_text("\n".join(points))
    (tmp_path / "users_own.py").write_text(SOURCE.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "users_own", raising=False)
    assert "own.spread" in mcce.available_measures()
    assert "own.rows" in mcce.available_generators()
    assert "own.budget" in mcce.available_constraints()
    assert read_sections({"own.budget": {"features": ["salary"], "most": 3}}, "rules.toml")[0].most == 3
    assert "own.shuffled" in mcce.available_samplers()
    monkeypatch.delitem(sys.modules, "users_own", raising=False)


def test_duplicate_name_raises_and_names_both(own):
    class Other(own.WholeRows):
        pass

    class Again(own.Shuffled):
        pass

    cases = {
        "measure name 'gower' is taken by mcce.distances.measures.gower; .* users_own.by_spread": (
            lambda: mcce.register_measure("gower")(own.by_spread)
        ),
        "constraint name 'rule' is taken by mcce.constraints.rules.Rule; .* users_own.Budget": (
            lambda: mcce.register_constraint("rule")(own.Budget)
        ),
        "sampler name 'own.shuffled' is taken by users_own.Shuffled; .*Again": (
            lambda: mcce.register_sampler("own.shuffled")(Again)
        ),
        "generator name 'mixture' is taken by mcce.generators.joint.mixture_generator.MixtureGenerator; .*Other": (
            lambda: mcce.register_generator("mixture")(Other)
        ),
    }
    for message, again in cases.items():
        with pytest.raises(mcce.MCCEError, match=message):
            again()


def test_object_of_the_wrong_type_raises(forgotten):
    class Lacking:
        def fit(self, X):
            return self

    class Undrawn(mcce.generators.Generator):
        def fit(self, X, decision=None, *, progress=None):
            return self

    class Model(mcce.generators.SampleGenerator):
        pass

    class NoData(Constraint):
        def words(self):
            return ""

        def resolve(self, schema):
            return []

    with pytest.raises(mcce.InputError, match=r"got .*Lacking.*; it needs a subclass of mcce\.generators\.Generator"):
        mcce.register_generator("x")(Lacking)
    with pytest.raises(mcce.InputError, match="Undrawn lacks 'draw'; implement it"):
        mcce.register_generator("x")(Undrawn)
    with pytest.raises(mcce.InputError, match="the constructor of Model needs 'model', which cannot be given by name"):
        mcce.register_generator("x")(Model)
    with pytest.raises(mcce.InputError, match=r"needs a dataclass that is a subclass of mcce\.constraints\.Constraint"):
        mcce.register_constraint("x")(NoData)
    with pytest.raises(mcce.InputError, match=r"needs a function of \(candidates, factual\)"):
        mcce.register_measure("x")(lambda rows: rows)
    with pytest.raises(mcce.InputError, match="'prediction' is reserved in results"):
        mcce.register_measure("prediction")(lambda candidates, factual: 0)
    with pytest.raises(mcce.InputError, match="of distances the smallest is the best"):
        mcce.register_measure("x", largest_first=True)(lambda features: None)
    with pytest.raises(mcce.InputError, match=r"there is no generator 'mixtur'; did you mean 'mixture'\?"):
        mcce.MCCE(score, generator="mixtur").fit(X)
    with pytest.raises(mcce.InputError, match="sampler is 'ctree', a setting of the chain, but generator='mixture'"):
        mcce.MCCE(score, sampler="ctree", generator="mixture").fit(X)


def test_chain_has_a_name():
    by_name = mcce.MCCE(score, fixed=FIXED, sampler="ctree", generator="chain", random_state=1).fit(X)
    plain = mcce.MCCE(score, fixed=FIXED, sampler="ctree", random_state=1).fit(X)
    first, second = (each.explain(POOR, n_samples=100).frame for each in (by_name, plain))
    pd.testing.assert_frame_equal(first, second)


def test_messages_name_the_declaring_classes(own):
    class Plain(mcce.MarginalSampler):
        takes_weights = False

    with pytest.raises(mcce.SamplerError) as error:
        mcce.ChainModel(sampler=Plain()).fit(X, sample_weight=np.linspace(0.5, 1.5, 300))
    named = re.search(r"a sampler that does \(([^)]*)\)", str(error.value))[1].split(", ")
    assert named == sorted(name for name, cls in SAMPLERS.known.items() if cls.takes_weights)
    assert "own.shuffled" in named
    whole = own.WholeRows(random_state=1).fit(X, X["salary"] > 60_000)
    with pytest.raises(mcce.SamplerError) as error:
        whole.log_density(X)
    named = re.search(r"a generator that has \(([^)]*)\)", str(error.value))[1].split(", ")
    assert named == sorted({*GENERATORS.known} - {"own.rows"})


def test_pages_name_registered_parts():
    table = (ROOT / "vignettes" / "joint-generators.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `\"(\w+)\"`", table, re.M)
    ours = [name for name, cls in mcce.available_generators().items() if cls.__module__.startswith("mcce.")]
    assert sorted(named) == ours
    for name in mcce.available_measures():
        assert f'"{name}"' in inspect.getdoc(mcce.MCCE.explain)
