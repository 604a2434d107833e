"""R and mcce agree stage by stage on random data, and the report shows disagreements."""

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import MCCEError, rcompat
from r_bridge import ParityReport, RBridgeError, check_parity
from r_bridge.parity_report import difference, same_partition
from tests.marks import nightly

ENGINES = {"rpart": "rpart", "ctree": "party"}


def make_case(seed):
    """Rows of mixed types with ties, a score, and a call."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(80, 250))
    base = rng.normal(size=n)
    columns = {}
    for j in range(int(rng.integers(2, 6))):
        n_levels = int(rng.integers(2, 6))
        kinds = {
            "double": base * rng.normal() + rng.normal(size=n),
            "integer": np.round(3 * base + rng.normal(size=n)).astype(int),
            "few": rng.integers(0, 4, n),
            "factor": pd.Categorical.from_codes(rng.integers(0, n_levels, n), list("cabed")[:n_levels]),
            "logical": base + rng.normal(size=n) > 0,
        }
        columns[f"x{j}"] = kinds[str(rng.choice(list(kinds)))]
    X = pd.DataFrame(columns)
    numbers = X.apply(lambda c: c.cat.codes if isinstance(c.dtype, pd.CategoricalDtype) else c).to_numpy(float)
    weights = rng.normal(size=X.shape[1])
    levels = {name: c.cat.categories for name, c in X.items() if isinstance(c.dtype, pd.CategoricalDtype)}

    def score(frame):
        coded = [frame[c].cat.codes if c in levels else frame[c] for c in frame]
        return np.column_stack(coded).astype(float) @ weights

    fixed = [name for name in X.columns[:-1] if rng.random() < 0.4]
    has_levels = any(name in levels for name in X.columns if name not in fixed)
    measures = ("validation", "L0", "gower") if has_levels else ("validation", "L0", "L1", "L2", "gower")
    return {
        "model": score,
        "x_explain": X.iloc[:3],
        "x_train": X.iloc[3:],
        "fixed_features": fixed,
        "c_int": (float(np.quantile(numbers @ weights, 0.6)), np.inf),
        "fit_decision": bool(rng.random() < 0.7),
        "fit_seed": int(rng.integers(0, 10_000)),
        "generate_seed": None if rng.random() < 0.3 else int(rng.integers(0, 10_000)),
        "generate_K": 60,
        "process_measures": [str(name) for name in rng.permutation(measures)] if rng.random() < 0.5 else measures,
        "process_return_best_k": int(rng.integers(1, 4)),
        "process_remove_invalid": bool(rng.random() < 0.7),
    }


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", [*range(5), *nightly(*range(5, 15))])
def test_live_parity_with_r(r, need, engine, seed, compared):
    need(ENGINES[engine])
    case = make_case(seed)
    settings = [{}, {"minbucket": 3}, {"minsplit": 10, "maxdepth": 4}][seed % 3]
    report = check_parity(**case, fit_autoregressive_model=engine, use_mccer=False, **settings)
    assert report.agrees, report
    assert set(report.table["stage"]) == {"fit", "generate", "measures", "ranks", "final rows"}
    assert set(report.table["verdict"]) <= {"equal", "last digits", "other numbers"}
    compared(f"values of parity reports, {engine}", report.n_compared)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(8))
def test_live_parity_with_mccer(r, need, engine, seed, compared):
    need("mcceR")
    report = check_parity(**make_case(100 + seed), fit_autoregressive_model=engine)
    assert report.by.startswith("mcceR")
    assert report.agrees, report
    compared(f"values of parity reports by mcceR, {engine}", report.n_compared)


def test_live_parity_with_a_logical_equal_to_the_decision(r, need, has_our_lapack):
    """The root of the tree for x2 has two variables whose statistics differ only in the last bits."""
    need("party")
    if not has_our_lapack:
        pytest.skip("needs R with the reference version of LAPACK 3.11 (Debian 12: liblapack3): it decides the tie")
    report = check_parity(**make_case(1247), fit_autoregressive_model="ctree", use_mccer=False, minbucket=1, minsplit=2)
    assert report.agrees, report


@pytest.fixture(scope="module")
def air():
    air = mcce.datasets.load_airquality(dropna=True)
    return {
        "model": lambda X: X["Temp"] - 3.0 * X["Wind"],
        "x_explain": air.X.tail(2),
        "x_train": air.X.iloc[:-2],
        "fixed_features": "Wind",
        "c_int": (-np.inf, 40.0),
        "generate_K": 100,
        "use_mccer": False,
    }


@pytest.mark.parametrize("engine", ENGINES)
def test_final_rows_match_the_call(r, need, engine, air):
    need(ENGINES[engine])
    call = {name: value for name, value in air.items() if name != "use_mccer"}
    found = rcompat.explain_mcce(**call, fit_autoregressive_model=engine, fit_seed=1, generate_seed=2)
    report = check_parity(**air, fit_autoregressive_model=engine)
    final = report.table[report.table["stage"] == "final rows"].set_index("quantity")
    assert (final["compared"] == len(found.cf)).all()
    assert (final["different"] == 0).all()


def test_wrong_tree_shows_in_the_fit(r, need, air, monkeypatch):
    need("party")

    def other(*values, **named):
        return rcompat.fit_autoregressive(*values, **named, minbucket=20)

    monkeypatch.setattr("r_bridge.parity.fit_autoregressive", other)
    report = check_parity(**air)
    assert not report.agrees
    assert report.first_divergence.startswith("fit: leaf of each training row")
    assert "R and mcce differ at fit: leaf of each training row" in repr(report)


def test_wrong_draw_shows_only_in_generation(r, need, air, monkeypatch):
    need("party")

    def other(x_explain, fitted, K, rng):
        rng.uniform(1)
        return rcompat.generate(x_explain, fitted, K, rng)

    monkeypatch.setattr("r_bridge.parity.generate", other)
    report = check_parity(**air)
    verdicts = report.table.groupby("stage")["verdict"].agg(set)
    assert report.first_divergence == "generate: generated rows, Solar.R"
    assert verdicts["fit"] == verdicts["measures"] == verdicts["ranks"] == {"equal"}
    assert "differs" in verdicts["final rows"]
    stream = report.table.query("stage == 'generate' and quantity == 'random stream afterwards'")
    assert stream["verdict"].item() == "differs"


def test_wrong_measure_shows_in_the_measures(r, need, air, monkeypatch):
    need("party")

    def other(simulated, scores, measures, *options):
        found = rcompat.process(simulated, scores, measures, *options)
        found.measures["measure_L1"] += 0.5
        return found

    monkeypatch.setattr("r_bridge.parity.process", other)
    report = check_parity(**air)
    assert report.first_divergence == "measures: L1"
    row = report.table.query("quantity == 'L1'").iloc[0]
    assert (row["compared"], row["different"], row["largest_difference"]) == (200, 200, 0.5)


def test_other_stages_are_compared_without_the_package(r, air, monkeypatch):
    has = type(r).has
    monkeypatch.setattr(type(r), "has", lambda self, package: package != "party" and has(self, package))
    report = check_parity(**air)
    verdicts = report.table.groupby("stage")["verdict"].agg(set)
    assert verdicts["fit"] == {"not compared"}
    assert verdicts["measures"] == verdicts["ranks"] == verdicts["final rows"] == {"equal"}
    assert "needs R's package party" in " ".join(report.notes)
    assert report.agrees


def test_failures_of_r_are_reported(r, need, air):
    need("party")
    text = {**air, "x_train": air["x_train"].assign(Month=air["x_train"]["Month"].map(str)),
            "x_explain": air["x_explain"].assign(Month=air["x_explain"]["Month"].map(str))}  # fmt: skip
    report = check_parity(**text)
    assert report.table["verdict"].iloc[0] == "not compared"
    assert report.notes[1].startswith("fit: not compared")
    assert "R refused" in report.notes[1]


def test_repr_of_the_report(r, need, air):
    need("party")
    report = check_parity(**air)
    assert isinstance(report, ParityReport)
    assert list(report.table) == ["stage", "quantity", "compared", "different", "largest_difference", "verdict"]
    text = repr(report)
    assert "values compared, all agree." in text
    assert "mcceR was not run" in text
    assert "leaf of each training row, Solar.R" in text
    assert f"party {report.versions['party']}" in text
    assert "look" not in report._repr_html_().split("</style>")[1]
    with pytest.raises(AttributeError):
        report.engine = "rpart"


def test_stream_of_the_session_is_unchanged(r, need, air):
    need("party")
    r.call("evaluate", "set.seed(3)", None)
    expected = list(r.call("evaluate", "runif(2)", None))
    r.call("evaluate", "set.seed(3)", None)
    check_parity(**air)
    assert list(r.call("evaluate", "runif(2)", None)) == expected


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"fit_seed": None}, RBridgeError, "from a common seed"),
        ({"fit_autoregressive_model": "cart"}, MCCEError, "mcceR supports 'ctree', 'rpart'"),
        ({"fixed_features": "Winds"}, MCCEError, "did you mean 'Wind'"),
        ({"process_measures": ["L3"]}, MCCEError, "process_measures names 'L3'"),
        ({"generate_K": 0}, MCCEError, "generate_K is 0"),
    ],
)
def test_bad_input(r, air, options, error, message):
    with pytest.raises(error, match=message):
        check_parity(**{**air, **options})


def test_partitions_do_not_depend_on_numbers():
    assert same_partition(np.array([2, 2, 5, 7]), np.array([7, 7, 3, 2]))
    assert not same_partition(np.array([2, 2, 5]), np.array([7, 3, 3]))
    assert not same_partition(np.array([2, 2, 5]), np.array([7, 3, 2]))


def test_differences():
    same = pd.Series([1.0, np.nan, np.inf])
    assert difference(same, same.copy()) == (3, 0, 0.0, 1.0)
    assert difference(pd.Series(["a", "b"]), pd.Series(["a", "c"])) == (2, 1, 1.0, 0.0)
    assert difference(pd.Series([1.0]), pd.Series([1.0, 2.0])) == (2, 1, np.inf, 0.0)
    assert difference(pd.Series([np.nan]), pd.Series([1.0]))[1:3] == (1, np.inf)
