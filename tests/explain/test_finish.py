"""The numbers printed for a sparse counterfactual are those with which the model was queried."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import mcce
from mcce.report.names import Names
from tests.marks import examples, nightly

N = 500
FORMATS = {"income": "0,000", "rate": "0.0 %", "narrow": "0.0", "debt": "0.000,0"}


def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "income": rng.lognormal(10.2, 0.5, N),
            "debt": rng.gamma(2, 3000.0, N),
            "rate": rng.beta(2, 20, N),
            "narrow": rng.normal(0, 1, N).astype("float32"),
            "cents": np.round(rng.gamma(2, 500, N), 2),
            "job": pd.Categorical(rng.choice(list("abc"), N)),
            "year": rng.integers(1950, 2010, N),
            "tiny": rng.gamma(1, 1e-6, N),
        }
    )


def score(rows) -> np.ndarray:
    """A score with many small steps: neighbours in the third digit differ in the decision."""
    plain = 3 * (np.log(rows["income"]) - 10.2) - rows["debt"] / 4000 - 20 * rows["rate"] + rows["narrow"]
    plain = plain + rows["cents"] / 1000 + 0.7 * (rows["job"] == "b") + 2e5 * rows["tiny"]
    comb = 0.05 * np.sin(np.asarray(rows["income"], dtype=float) * 3) + 0.05 * np.sin(40_000 * rows["rate"])
    return 1 / (1 + np.exp(-np.asarray(plain + comb, dtype=float)))


def read_back(text: str, name: str, names: Names) -> float:
    """Return the number in a text, parsed with the unit and the separators."""
    pattern = names.patterns.get(name)
    text = text.removesuffix(" EUR")
    if pattern is None:
        return float(text.replace(",", ""))
    percent = text.endswith("%")
    text = text.rstrip("% ").replace(pattern.mark or "\0", "").replace(pattern.point, ".")
    return float(f"{text}e-2" if percent else text)


def printed_rows(found, X) -> pd.DataFrame:
    """Return the rows stated by the sentences: the factuals with the printed new values."""
    rows = X.loc[found.frame.index.get_level_values("id")].reset_index(drop=True)
    places = {key: place for place, key in enumerate(found.frame.index)}
    for change in found.changes(words=True).itertuples(index=False):
        id, rank, name, _, to, _ = change
        value = to if name == "job" else read_back(to, name, found.names)
        rows.loc[places[id, rank], name] = np.dtype(X[name].dtype).type(value) if name != "job" else value
    return rows


@pytest.mark.parametrize(
    "names", [*nightly(None), Names(formats=FORMATS, units={"income": "EUR"})], ids=["plain", "formats"]
)
def test_printed_values_equal_the_row_and_are_accepted(names):
    X = people()
    explainer = mcce.MCCE(score, decision=(0.6, 1), fixed=["year"], random_state=1, names=names).fit(X)
    refused = X[score(X) < 0.6].head(60)
    found = explainer.explain(refused, sparse=True, n_counterfactuals=2)
    printed = printed_rows(found, X)
    pd.testing.assert_frame_equal(printed, found.frame.reset_index(drop=True), check_exact=True)
    assert (score(printed) >= 0.6).all()
    np.testing.assert_array_equal(score(printed), found.measures["prediction"])
    assert not found.frame.reset_index("rank", drop=True).reset_index().duplicated().any()
    numbers = found.changes(words=True).query("feature in ['income', 'debt', 'rate', 'tiny']")["to"]
    assert numbers.str.count("[1-9]").median() <= 5
    below = found.below_floor()
    assert below.mean() < 0.1


@pytest.mark.slow
def test_constraints_and_bounds_hold_for_printed_values():
    X = people()
    explainer = mcce.MCCE(score, decision=(0.6, 1), fixed=["year"], random_state=1).fit(X)
    refused = X[score(X) < 0.6].head(25)
    agreed = [mcce.allow("income", high=40_000.004), mcce.allow("debt", step=0.07), mcce.rule("debt <= income / 7")]
    found = explainer.explain(refused, sparse=True, constraints=agreed, max_gower=0.1)
    changes = found.changes().set_index("feature")["to"]
    assert (found.frame["income"] <= 40_000.004).all()
    steps = changes.get("debt", pd.Series(dtype=float)).astype(float) / 0.07
    np.testing.assert_allclose(steps, steps.round(), atol=1e-6)
    assert (found.frame["debt"] <= found.frame["income"] / 7).all()
    assert (found.measures["gower"] <= 0.1).all()
    pd.testing.assert_frame_equal(printed_rows(found, X), found.frame.reset_index(drop=True), check_exact=True)


def test_plain_method_keeps_observed_values():
    X = people()
    found = mcce.MCCE(score, decision=(0.6, 1), fixed=["year"], random_state=1).fit(X).explain(X.head(40))
    assert found.frame["debt"].isin(X["debt"]).all()
    assert not found.names.exact


def test_integers_stay_observed_values():
    loans = mcce.datasets.load_loans(600).X.select_dtypes("number")
    explainer = mcce.MCCE(lambda rows: rows["salary"] > 60_000, decision=True, fixed=["age"], random_state=1).fit(loans)
    found = explainer.explain(loans.head(60), sparse=True)
    assert found.frame["salary"].isin(loans["salary"]).all()


@pytest.mark.parametrize("dtype", ["float32", "float16", "Float64", "float64[pyarrow]"])
def test_numbers_of_any_float_dtype(dtype):
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"x": rng.normal(10, 3, 300), "z": rng.normal(size=300)}).astype({"x": dtype})
    explainer = mcce.MCCE(lambda rows: rows["x"].astype(float) > 12, decision=True, random_state=1).fit(X)
    found = explainer.explain(X.head(50), sparse=True)
    changes = found.changes(words=True).query("feature == 'x'")
    held = pd.Series([float(text) for text in changes["to"]]).astype(dtype)
    at = list(zip(changes["id"], changes["rank"]))
    assert len(at) > 10
    assert (held.to_numpy() == found.frame.loc[at, "x"].to_numpy()).all()
    assert changes["to"].str.len().max() <= 6


def test_thousands_separator_is_consistent_except_for_years():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"savings": rng.integers(0, 9_900, 400), "built": rng.integers(1900, 2020, 400)})
    model = lambda rows: (rows["savings"] > 8_000) & (rows["built"] > 1980)  # noqa: E731
    found = mcce.MCCE(model, decision=True, random_state=1).fit(X).explain(X.head(80), sparse=True)
    printed = found.changes(words=True).set_index("feature")[["from", "to"]]
    amounts, years = (printed.loc[name].to_numpy().ravel().tolist() for name in ("savings", "built"))
    assert all(("," in text) == (len(text) > 3) for text in amounts)
    assert not any("," in text for text in years)
    assert "," in found.names.text("savings", 4500)


PATTERNS = st.sampled_from([None, "0", "0.00", "0,000", "0.000,00", "0 %", "0.0 %", "0 000,0", "0'000.000"])
AMOUNTS = st.floats(-1e9, 1e9).filter(lambda x: x == 0 or abs(x) > 1e-9)


@given(value=AMOUNTS, before=AMOUNTS, form=PATTERNS)
@example(value=2.0**-24, before=0.0, form="0.00")  # half of the last digit: float rounds to even
@examples(200)
def test_formatted_numbers_round_trip(value, before, form):
    names = Names(formats={} if form is None else {"x": form}, exact={"x": "float64"}, years=())
    text = names.pair("x", before, value)[1]
    said = read_back(text, "x", names)
    assert said == value
    for more in range(6):
        written = names.written("x", value, more)
        assert written == (value,) or min(written) <= value <= max(written)
        for number in written[: len(written) if len(written) > 1 else 0]:
            assert read_back(names.pair("x", before, number)[1], "x", names) == number


@pytest.mark.slow
@given(seed=st.integers(0, 10**6))
@examples(15)
def test_random_tables(seed):
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-6, 7, 3)
    X = pd.DataFrame(rng.normal(size=(200, 3)) * scale, columns=["a", "b", "c"])

    def model(rows):
        return np.asarray((rows / scale).sum(axis=1))

    explainer = mcce.MCCE(model, decision=(1.0, np.inf), random_state=1).fit(X)
    found = explainer.explain(X.head(30), sparse=True, n_counterfactuals=3)
    printed = X.loc[found.frame.index.get_level_values("id")].reset_index(drop=True)
    places = {key: place for place, key in enumerate(found.frame.index)}
    for change in found.changes(words=True).itertuples(index=False):
        printed.loc[places[change[0], change[1]], change[2]] = float(change[4].replace(",", ""))
    assert (model(printed) >= 1.0).all()
    pd.testing.assert_frame_equal(printed, found.frame.reset_index(drop=True), check_exact=True)


@pytest.mark.slow
def test_related_columns_are_rounded_together():
    X = people()
    X["thousands"] = X["income"] / 1000
    X["owed"] = X["debt"] + X["cents"]

    def both(rows):
        return score(rows) + 0.0 * rows["thousands"]

    explainer = mcce.MCCE(both, decision=(0.5, 1.0), fixed=["year"], random_state=1).fit(X)
    assert len(explainer.relations_) >= 2
    found = explainer.explain(X[both(X) < 0.5].head(60), sparse=True, n_samples=300)
    np.testing.assert_allclose(found.frame["thousands"], found.frame["income"] / 1000, rtol=1e-9)
    np.testing.assert_allclose(found.frame["owed"], found.frame["debt"] + found.frame["cents"], rtol=1e-9)
    assert set(found.computed) == {"thousands", "owed"}
    changed = found.changes()["feature"]
    assert {"income", "debt"} <= set(changed)
    assert set(changed).isdisjoint(found.computed)
    printed = printed_rows(found, X)
    for name in ("income", "debt", "cents"):
        assert printed[name].tolist() == found.frame[name].tolist()
