"""No returned row violates a constraint, as checked by an independent reader of constraints."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcce
from mcce.constraints import reading
from mcce.exceptions import InputError
from mcce.rng import RowStreams
from tests.marks import examples, nightly, nightly_rows, slow, slow_but

RNG = np.random.default_rng(7)
N = 400
GRADES = ["low", "middle", "high", "top"]
TABLE = pd.DataFrame(
    {
        "age": RNG.integers(18, 70, N),
        "salary": (RNG.gamma(4, 8_000, N)).round(-2),
        "savings": np.where(RNG.random(N) < 0.3, 0, RNG.integers(0, 40_000, N)),
        "grade": pd.Categorical(RNG.choice(GRADES, N), categories=GRADES, ordered=True),
        "job": RNG.choice(["none", "office", "field"], N),
        "rent": np.where(RNG.random(N) < 0.1, np.nan, RNG.integers(3, 15, N) * 100.0),
    }
)


def says_yes(rows):
    grade = rows["grade"].cat.codes.to_numpy(dtype=int)
    return rows["salary"].to_numpy() + rows["savings"].to_numpy() / 2 + 8_000 * grade > 55_000


REFUSED = TABLE[~says_yes(TABLE)].iloc[:30]
RANGE = TABLE["salary"].max() - TABLE["salary"].min()


@pytest.fixture(scope="module")
def explainer():
    return mcce.MCCE(None, decision=says_yes, fixed=["age"], random_state=3).fit(TABLE)


# each constraint with its check in plain Python, row by row
READINGS = {
    "salary range": (mcce.allow("salary", low=10_000, high=60_000), lambda r, f: 10_000 <= r["salary"] <= 60_000),
    "salary rises": (mcce.allow("salary", direction="increase"), lambda r, f: r["salary"] >= f["salary"]),
    "salary steps": (
        mcce.allow("salary", step=500),
        lambda r, f: r["salary"] == f["salary"] or r["salary"] % 500 == 0,
    ),
    "salary share": (
        mcce.allow("salary", max_share=0.3),
        lambda r, f: abs(r["salary"] - f["salary"]) <= 0.3 * RANGE * (1 + 1e-12),
    ),
    "savings falls": (mcce.allow("savings", direction="decrease"), lambda r, f: r["savings"] <= f["savings"]),
    "savings step": (mcce.allow("savings", max_step=9_000), lambda r, f: abs(r["savings"] - f["savings"]) <= 9_000),
    "never nothing": (mcce.allow("savings", never=[0]), lambda r, f: r["savings"] != 0),
    "grade rises": (
        mcce.allow("grade", direction="increase"),
        lambda r, f: GRADES.index(r["grade"]) >= GRADES.index(f["grade"]),
    ),
    "grade step": (
        mcce.allow("grade", max_step=1),
        lambda r, f: abs(GRADES.index(r["grade"]) - GRADES.index(f["grade"])) <= 1,
    ),
    "some grades": (mcce.allow("grade", levels=["middle", "high"]), lambda r, f: r["grade"] in ("middle", "high")),
    "no field work": (mcce.allow("job", never=["field"]), lambda r, f: r["job"] != "field"),
    "job stays": (mcce.allow("job", direction="none"), lambda r, f: r["job"] == f["job"]),
    "rent known": (
        mcce.allow("rent", high=900),  # a missing rent may stay missing
        lambda r, f: r["rent"] <= 900 or (np.isnan(r["rent"]) and np.isnan(f["rent"])),
    ),
    "a sum": (mcce.rule("savings + salary <= 90000"), lambda r, f: r["savings"] + r["salary"] <= 90_000),
    "a ratio": (mcce.rule("salary >= 20 * rent or missing(rent)"), lambda r, f: not r["salary"] < 20 * r["rent"]),
    "a case": (
        mcce.rule("if job == 'none' then salary <= 30000"),
        lambda r, f: r["job"] != "none" or r["salary"] <= 30_000,
    ),
    "what was": (
        mcce.rule("salary <= 2 * was(salary) + 5000"),
        lambda r, f: r["salary"] <= 2 * f["salary"] + 5_000,
    ),
    "a function": (
        mcce.rule(lambda rows, was: (rows["savings"] - was["savings"]).abs() < 30_000, features=["savings"], name="f"),
        lambda r, f: abs(r["savings"] - f["savings"]) < 30_000,
    ),
}


def broken(found, names):
    """Return (id, name) for every counterfactual that violates a constraint."""
    faults = []
    for (id, _), row in found.frame.iterrows():
        faults += [(id, name) for name in names if not READINGS[name][1](row, REFUSED.loc[id])]
        assert row["age"] == REFUSED.loc[id, "age"]
    return faults


def explain_with(explainer, names, **options):
    return explainer.explain(REFUSED, constraints=[READINGS[name][0] for name in names], n_samples=60, **options)


@pytest.fixture(scope="module")
def free(explainer):
    """Results without constraints, by `sparse`."""
    return {sparse: explain_with(explainer, [], sparse=sparse) for sparse in (False, True)}


@pytest.mark.slow
@examples(6)
@given(
    names=st.lists(st.sampled_from(sorted(READINGS)), min_size=1, max_size=4, unique=True),
    sparse=st.booleans(),
    k=st.integers(1, 3),
)
def test_no_returned_row_violates_a_constraint(explainer, names, sparse, k):
    found = explain_with(explainer, names, sparse=sparse, n_counterfactuals=k)
    assert broken(found, names) == []
    assert says_yes(found.frame).all()
    assert set(found.constraints.index) == {str(READINGS[name][0]) for name in names}


@pytest.mark.parametrize("name", slow_but(sorted(READINGS), *sorted(READINGS)[::3]))
@pytest.mark.parametrize("sparse", [False, *nightly(True)])
def test_each_constraint_alone_holds_and_leaves_candidates(explainer, free, name, sparse):
    found = explain_with(explainer, [name], sparse=sparse)
    assert broken(found, [name]) == []
    assert len(found) >= 10
    shares = found.constraints["breaks"]
    assert shares.between(0, 1).all()
    if broken(free[sparse], [name]):
        assert shares.iloc[0] > 0


SAVED_NOTHING = REFUSED.assign(savings=0)  # factuals whose savings can only increase


@pytest.fixture(scope="module")
def unconstrained(explainer):
    """Results for factuals without savings, by `sparse`."""
    how = {"n_samples": 80}
    return {sparse: explainer.explain(SAVED_NOTHING, sparse=sparse, **how) for sparse in (False, True)}


@pytest.mark.parametrize(
    "excludes_nothing",
    [
        [mcce.allow("salary", low=-1e9, high=1e9)],
        [mcce.rule("salary + 1 > 0 or was(salary) > 0")],
        *slow(
            [mcce.allow("job", levels=["none", "office", "field"])],
            [mcce.allow("grade", never=[])],
            [mcce.rule("salary >= 0")],
            [mcce.allow("savings", direction="increase", low=0), mcce.rule("age >= 18")],
        ),
    ],
)
def test_constraint_that_excludes_nothing_changes_no_byte(explainer, unconstrained, excludes_nothing):
    for sparse, without in unconstrained.items():
        with_it = explainer.explain(SAVED_NOTHING, constraints=excludes_nothing, n_samples=80, sparse=sparse)
        pd.testing.assert_frame_equal(with_it.frame, without.frame)
        pd.testing.assert_frame_equal(with_it.measures, without.measures)


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [False, *nightly(True)])
def test_order_of_constraints_batches_and_threads_do_not_matter(explainer, sparse):
    names = ["salary rises", "savings step", "a case", "grade step"]
    whole = explain_with(explainer, names, sparse=sparse)
    other = mcce.MCCE(None, decision=says_yes, fixed=["age"], random_state=3, n_jobs=1).fit(TABLE)
    said = [READINGS[name][0] for name in reversed(names)]
    parts = [
        other.explain(part, constraints=said, n_samples=60, sparse=sparse)
        for part in (REFUSED.iloc[20:], REFUSED.iloc[:7], REFUSED.iloc[7:20])
    ]
    together = pd.concat([part.frame for part in parts]).loc[whole.frame.index]
    pd.testing.assert_frame_equal(whole.frame, together)


@pytest.mark.slow
def test_both_steps_have_the_same_candidates(explainer):
    said = [*(READINGS[name][0] for name in ("a case", "savings step")), mcce.rule("salary > was(salary) + 30000")]
    found = explainer.explain(REFUSED, constraints=said, n_samples=60)
    candidates = explainer.generate(REFUSED, constraints=said, n_samples=60)
    assert len(candidates) < 60 * len(REFUSED)  # some factuals have no draws
    pd.testing.assert_frame_equal(found.frame, explainer.select(candidates, REFUSED).frame)


@pytest.mark.slow
def test_pools_are_shared_unless_constraints_are_narrow(explainer):
    free = explainer.explain(REFUSED, n_samples=20)
    for_all = explainer.explain(REFUSED, n_samples=20, constraints=[mcce.allow("salary", low=10_000)])
    relative = explainer.explain(REFUSED, n_samples=20, constraints=[mcce.allow("salary", direction="increase")])
    assert for_all.run.settings["pools"] == free.run.settings["pools"]
    near = explainer.explain(REFUSED, n_samples=20, constraints=[mcce.allow("salary", max_step=500)])
    assert relative.run.settings["pools"] == free.run.settings["pools"]  # most draws are above any of these salaries
    assert near.run.settings["pools"] == len(REFUSED[["age", "salary"]].drop_duplicates())


@pytest.mark.slow
def test_constraints_per_factual(explainer):
    one, two = REFUSED.index[3], REFUSED.index[4]
    said = [
        mcce.only({one: ["salary"], two: ["savings", "job"]}),
        mcce.per_factual(pd.DataFrame({"feature": ["salary"], "high": [70_000]}, index=[one])),
    ]
    for sparse in (False, True):
        found = explainer.explain(REFUSED, constraints=said, sparse=sparse, n_samples=200)
        changed = found.changes()
        assert set(changed[changed["id"] == one]["feature"]) <= {"salary"}
        assert set(changed[changed["id"] == two]["feature"]) <= {"savings", "job"}
        assert found.frame.loc[one]["salary"].max() <= 70_000
        free = explainer.explain(REFUSED, sparse=sparse, n_samples=200)
        others = [id for id in REFUSED.index if id not in (one, two) and id in free.frame.index.get_level_values(0)]
        pd.testing.assert_frame_equal(found.frame.loc[others], free.frame.loc[others])


@pytest.mark.slow
def test_constraints_of_explainer_and_call_both_hold():
    explainer = mcce.MCCE(
        None, decision=says_yes, fixed=["age"], random_state=3, constraints=["savings + salary <= 90000"]
    ).fit(TABLE)
    found = explainer.explain(REFUSED, n_samples=60, constraints=mcce.allow("salary", direction="increase"))
    assert broken(found, ["a sum", "salary rises"]) == []
    assert len(found.constraints) == 2
    assert (explainer.generate(REFUSED, n_samples=10).eval("savings + salary") <= 90_000).all()


class Marginals(mcce.generators.Generator):
    """A generator without restrictions: it draws whole training rows and sets the given values."""

    def __init__(self):
        self.seed_ = 1

    fixed_ = ("age",)
    conditions_on_decision_ = True

    def fit(self, X, decision=None, *, progress=None):
        self.schema_ = mcce.Schema.from_data(X)
        self.rows = self.schema_.encode(X).matrix[decision]
        self.training_givens_ = self.givens_of(self.schema_.encode(X).matrix, decision)
        return self

    def draw(self, request, *, progress=None):
        streams = RowStreams(request.seed, request.stream_keys, request.draw_indices)
        rows = self.rows[streams.integer(len(self.rows))]
        rows[:, 0] = request.givens[:, 0]
        return mcce.generators.requests.Drawn(np.asfortranarray(rows), np.zeros(len(rows), dtype=bool))


@pytest.mark.parametrize("sparse", [False, *nightly(True)])
def test_generator_without_restrictions_uses_rejection(sparse):
    explainer = mcce.MCCE(None, decision=says_yes, fixed=["age"], generator=Marginals()).fit(TABLE)
    names = ["salary share", "a case", "grade step"]
    found = explain_with(explainer, names, sparse=sparse)
    assert broken(found, names) == []
    assert len(found) > 10


def test_contradictions_raise_before_drawing(explainer):
    top = REFUSED["salary"].idxmax()
    said = [mcce.allow("salary", low=REFUSED["salary"].nlargest(2).iloc[1], direction="decrease")]
    found = explainer.explain(REFUSED, constraints=said, n_samples=30)
    others = found.unexplained.index.difference([top])
    assert found.unexplained.loc[others, "reason"].str.startswith("nothing can meet its constraints").sum() > 20
    with pytest.raises(InputError, match=r"on 'salary' .* allows nothing of the training data, .*; widen it"):
        explainer.explain(REFUSED, constraints=[mcce.allow("salary", low=1e9)])
    with pytest.raises(InputError, match="leave no value for any of the 30 factuals"):
        explainer.explain(REFUSED, constraints=["age > 100"])


@pytest.mark.slow
@pytest.mark.parametrize(("sparse", "n"), [(False, 2), *nightly_rows((True, 5))])
def test_helpful_relaxation_is_found_by_trying(explainer, sparse, n):
    names = ["salary share", "savings step", "job stays", "grade step"]
    found = explain_with(explainer, names, sparse=sparse).with_why_unexplained(n)
    drawn = found.unexplained[found.unexplained["drawn"].notna()]
    assert len(drawn) > 0
    single = [READINGS[name][0] for name in names]
    for id, row in drawn.iterrows():
        helps = [text.strip() for text in row["would_help"].split("; or ")]
        for name, constraint in zip(names, single):
            left = [each for each in single if each is not constraint]
            how = {"n_samples": 60, "sparse": sparse}
            alone = explainer.explain(REFUSED.loc[[id]], constraints=left, **how)
            assert (len(alone) > 0) == (f"without the constraint {str(constraint)!r}" in helps), name
        assert id in found.nearest.index or np.isnan(row["nearest"])
        assert row["would_help"] in row["reason"]


@pytest.mark.slow
def test_numpy_timedelta_is_a_valid_limit():
    X = pd.DataFrame({"waited": pd.to_timedelta(np.arange(100) % 20, "D"), "x": np.arange(100.0) % 10})
    explainer = mcce.MCCE(lambda rows: rows["x"] >= 5, decision=True, random_state=1).fit(X, relations=[])
    limits = [mcce.allow("waited", high=np.timedelta64(3, "D"), max_step=np.timedelta64(2, "D"))]
    found = explainer.explain(X.head(3), n_samples=200, constraints=limits)
    assert len(found) == 3
    assert (found.frame["waited"] <= np.timedelta64(3, "D")).all()


@pytest.mark.slow
def test_nearest_row_is_reported_with_its_score():
    def score(rows):
        return rows["salary"].to_numpy() / 1_000

    model = mcce.MCCE(score, decision=(60, np.inf), fixed=["age"], random_state=1, condition_on_decision=False).fit(
        TABLE
    )
    poor = TABLE[TABLE["salary"] < 30_000].iloc[:5]
    said = [mcce.allow("salary", high=50_000)]
    found = model.explain(poor, constraints=said, n_samples=100).with_why_unexplained()
    assert len(found) == 0
    why = found.why_unexplained(poor.index[0])
    assert why["nearest"] == found.unexplained["nearest"].iloc[0]
    assert found.unexplained["nearest"].tolist() == (found.nearest["salary"] / 1_000).tolist()
    assert (found.nearest["salary"] <= 50_000).all()
    assert (found.nearest["salary"] >= poor["salary"].loc[found.nearest.index]).all(), "nearer than they are already"
    assert found.unexplained["would_help"].str.contains("without the constraint").any()


@pytest.mark.slow
def test_effective_bounds_are_reported_and_drawn(explainer):
    constraints = [
        mcce.allow("salary", direction="increase", max_step=20_000),
        mcce.allow("savings", high=30_000),
        mcce.allow("rent", direction="decrease"),
        mcce.allow("grade", direction="increase"),
    ]
    found = explainer.explain(REFUSED, n_samples=200, sparse=True, constraints=constraints)
    top, lowest = TABLE["salary"].max(), TABLE["rent"].min()
    assert found.allowed.columns.get_level_values(0).unique().tolist() == ["salary", "savings", "rent"]
    for id, own in REFUSED.iterrows():
        ends = found.allowed.loc[id]
        assert ends["salary"].tolist() == [own["salary"], min(own["salary"] + 20_000, top)]
        assert ends["savings"].tolist() == [0, 30_000]
        if np.isnan(own["rent"]):
            assert ends["rent"].isna().all()
        else:
            assert ends["rent"].tolist() == [lowest, own["rent"]]
    id, _ = next(iter(found.changes().query("feature == 'salary'")[["id", "rank"]].itertuples(index=False)))
    ax = found.plot(id)
    assert "what the constraints on this feature allow" in ax.get_xlabel()
    plt.close("all")
    assert explainer.explain(REFUSED.head(2), n_samples=50).allowed is None


@pytest.mark.parametrize("call", ["explain", *slow("generate", "select")])
def test_constraints_are_parsed_once_per_call(call, tmp_path, monkeypatch):
    files = [tmp_path / "own.json", tmp_path / "also.json"]
    for path, feature in zip(files, ("salary", "savings"), strict=True):
        path.write_text(f'{{"allow": [{{"feature": "{feature}", "direction": "increase"}}]}}')
    X = mcce.datasets.load_loans(300).X[["age", "salary", "savings"]]
    model = lambda rows: rows["salary"] + rows["savings"] > 60_000  # noqa: E731
    explainer = mcce.MCCE(model, decision=True, fixed=["age"], random_state=1, constraints=files[0]).fit(X)
    candidates = explainer.generate(X.head(20), n_samples=20)
    loaded = []
    plain = reading._load
    monkeypatch.setattr(reading, "_load", lambda path: loaded.append(path.name) or plain(path))
    arguments = (candidates, X.head(20)) if call == "select" else (X.head(20),)
    getattr(explainer, call)(*arguments, constraints=files[1])
    assert sorted(loaded) == ["also.json", "own.json"]
