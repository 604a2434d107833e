"""A private explainer: one account, no training data after fit, and errors."""

import pickle
import warnings
import zipfile
from functools import cache

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import InputError, Privacy
from mcce.cli import main
from mcce.privacy.account import PrivacyAccount
from mcce.privacy.noise import Mechanism
from mcce.samplers.dp import PublicBins
from mcce.storage.learned import disclosed
from tests.marks import nightly, nightly_but

BIG = 10**12
BOUNDS = {"pay": (0, 100), "code": (0, BIG), "day": ("2000-01-01", "2030-01-01")}
LEVELS = {"job": ["clerk", "cook", "pilot"], "sex": ["f", "m"]}


def score(rows):
    return rows["pay"].to_numpy(float) / 100


def forgiving_score(rows):
    return np.nan_to_num(score(rows), nan=0.5, posinf=1.0)


def table(n=300, seed=0):
    """Return rows that cannot be drawn by chance: long decimals, large numbers, odd seconds, a unique level."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "sex": pd.Categorical(rng.choice(["f", "m"], n)),
            "pay": rng.triangular(1, 50, 99, n),
            "code": rng.integers(BIG // 10, BIG, n),
            "day": pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(1, 10**8, n), unit="s"),
            "job": rng.choice(["clerk", "cook", "pilot"], n).astype(object),
            "owns": rng.random(n) < 0.5,
        },
        index=[f"person-{i:05d}" for i in range(n)],
    )
    X.loc["person-00007", "job"] = "astronaut"
    return X


X = table()
FACTUALS = table(40, 1).replace({"job": {"astronaut": "cook"}})


def fitted(**options):
    private = Privacy(**{"epsilon": 3, "bounds": BOUNDS, "levels": LEVELS, "n_synthetic": 400, **options})
    explainer = mcce.MCCE(score, decision=(0.6, 1), fixed=["sex"], sampler=private, random_state=1, n_jobs=1)
    return explainer.fit(X, progress=False)


@pytest.fixture(scope="module")
def explainer():
    return fitted()


def test_all_costs_are_in_one_account(explainer):
    account = explainer.generator_.account_
    assert account.left == 0
    named = ["'sex'", "'<decision>'", "'pay'", "'code'", "'day'", "'job'", "'owns'"]
    assert account.table["what"].tolist() == ["number of rows", *(f"{name}, tree 1" for name in named)]
    stated = fitted(max_depth=2).generator_.account_
    assert stated.table["what"].tolist() == [f"{name}, tree 1" for name in named]
    assert stated.left == 0
    assert account.epsilon_spent == 3
    assert "not covered: the model explained" in repr(account)


def test_account_states_that_an_empty_table_is_distinguishable():
    private = Privacy(epsilon=3, bounds={"pay": (0, 100)})
    explainer = mcce.MCCE(score, decision=(0.6, 1), sampler=private, random_state=1, n_jobs=1)
    with pytest.raises(InputError, match="X has 0 rows"):
        explainer.fit(X[["pay"]].head(0))
    assert "whether the table has any rows" in repr(explainer.fit(X[["pay"]].head(1)).generator_.account_)


def test_exceeding_the_budget_raises(monkeypatch):
    monkeypatch.setattr(PrivacyAccount, "share", lambda self, parts: Mechanism(epsilon=self.budget))
    with pytest.raises(
        InputError, match=r"would cost epsilon = 3, and 0 of the budget of 3 is left; nothing was spent"
    ):
        fitted(max_depth=2)


def test_private_explainer_explains(explainer):
    found = explainer.explain(FACTUALS, progress=False)
    assert len(found) > 20
    assert (score(found.frame) >= 0.6).all()
    assert (found.frame["sex"].to_numpy() == FACTUALS.loc[found.frame.index.get_level_values(0), "sex"]).all()
    assert found.frame["job"].isin(LEVELS["job"]).all()
    assert found.copies is None
    assert found.ranges["pay"] == (0.0, 100.0)
    assert found.run.timings["fit"] == 0.0
    again = explainer.explain(FACTUALS, progress=False)
    assert again.frame.equals(found.frame)


def test_sparse_answers_use_synthetic_rows(explainer):
    found = explainer.explain(FACTUALS.head(10), sparse=True, n_samples=300, progress=False)
    whole = explainer.explain(FACTUALS.head(10), n_samples=300, progress=False)
    assert found.measures["L0"].mean() < whole.measures["L0"].mean()
    assert found.measures["plausibility"].between(0, 1).all()


@pytest.mark.slow
def test_two_fits_have_different_noise_and_the_same_random_splits():
    one, other = (fitted(max_depth=3, choosing=0).generator_.samplers_ for _ in range(2))
    for name, sampler in one.items():
        assert (sampler.trees_.column == other[name].trees_.column).all()
    assert any((sampler.counts_ != other[name].counts_).any() for name, sampler in one.items())


@pytest.mark.slow
def test_tree_depth_grows_with_rows_and_budget():
    def depth(explainer):
        return explainer.generator_.samplers_["owns"].trees_.n_leaves.bit_length() - 1

    depths = [depth(fitted(epsilon=epsilon, testing_seed=1)) for epsilon in (0.1, 10, 10**4)]
    assert depths == sorted(depths)
    assert depths[0] < depths[2]
    numbers = [fitted(epsilon=0.3).generator_.samplers_["owns"].n_rows for _ in range(6)]
    assert len({*numbers, len(X)}) > 2  # it spends budget on new noise: equal by chance less than once in a million


def needles():
    """Return the possible spellings of every training value that cannot be drawn by chance."""
    found = {}
    for value in X["pay"]:
        found[value] = [np.float64(value).tobytes(), repr(float(value)).encode()]
    for value in X["code"].tolist():
        found[value] = [np.float64(value).tobytes(), np.int64(value).tobytes(), str(value).encode()]
    for value in X["day"]:
        ticks = [value.as_unit(unit).asm8.astype(np.int64) for unit in ("s", "ms", "us", "ns")]
        found[value] = [*(each.tobytes() for each in ticks), str(value).encode()]
    return found | {"astronaut": [b"astronaut"]} | {name: [name.encode()] for name in X.index}


def leaks(held):
    return [value for value, written in needles().items() if any(each in held for each in written)]


def stored(explainer, path):
    explainer.save(path)
    with zipfile.ZipFile(path) as archive:
        return b"".join(archive.read(name) for name in archive.namelist())


@pytest.mark.slow
def test_no_training_value_is_stored(explainer, tmp_path):
    explainer.explain(FACTUALS.head(5), sparse=True, n_samples=50, progress=False)  # parts learned later are included
    assert leaks(stored(explainer, tmp_path / "private.mcce")) == []
    assert leaks(pickle.dumps(explainer)) == []


@pytest.mark.slow
def test_search_finds_training_values_of_other_explainers(tmp_path):
    levels = X.replace({"job": {"astronaut": "cook"}})
    plain = mcce.MCCE(score, decision=(0.6, 1), fixed=["sex"], random_state=1, n_jobs=1).fit(levels)
    held = leaks(stored(plain, tmp_path / "plain.mcce"))
    assert len(held) > 500
    assert len(leaks(pickle.dumps(plain))) > 500


def everything_said(rows):
    """Return all output of a private explainer: warnings, repr, fitted attributes, answers in every form."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        private = Privacy(epsilon=3, bounds=BOUNDS, levels=LEVELS, n_synthetic=400)
        explainer = mcce.MCCE(score, decision=(0.6, 1), fixed=["sex"], sampler=private, random_state=1, n_jobs=1)
        explainer.fit(rows, progress=False)
        chain, said = explainer.generator_, []
        factuals = FACTUALS.head(8).set_axis([f"asked-{i}" for i in range(8)])  # training labels are searched for
        for settings in ({}, {"sparse": True}, {"diverse": True, "n_counterfactuals": 2}):
            found = explainer.explain(factuals, n_samples=100, progress=False, **settings)
            said += [repr(found), found._repr_html_(), found.to_frame().to_csv(), found.summary().to_csv()]
            said += [found.changes().to_csv(), *mcce.report.sentences(found), repr(found.run), repr(found.ranges)]
            label = found.frame.index[0][0]
            said += [
                mcce.report.letter(found, label),
                mcce.report.letter(found, label, html=True),
                repr(found.contributions(label)),
            ]
        said += [
            found.with_why_unexplained(2).unexplained.to_csv(),
            explainer.generate(factuals.head(2), n_samples=50).to_csv(),
        ]
        said += [chain.sample(200).to_csv(), repr(chain.account_), repr(chain), repr(explainer), repr(chain.samplers_)]
        said += [repr(explainer.relations_), repr(chain.schema_), repr(chain.schema_.features), repr(vars(explainer))]
        said += [disclosed(sampler) for sampler in chain.samplers_.values()]
    return "\n".join([*said, *(str(each.message) for each in warned)])


@pytest.mark.slow
@pytest.mark.parametrize("as_category", [True, *nightly(False)])
def test_messages_contain_no_training_value(as_category):
    """Levels that only a dtype declares are not public either, unless stated."""
    rows = X.assign(job=X["job"].astype("category")) if as_category else X
    assert leaks(everything_said(rows).encode()) == []


@pytest.mark.slow
def test_messages_about_unusual_rows_reveal_nothing():
    """A row far outside the stated bounds is in no answer, and the fit does not raise."""
    odd = X.copy()
    odd.loc["person-00003", ["pay", "code", "day"]] = [123_456.789_012, 987_654_321_012_345, pd.Timestamp("1901-02-03")]
    said = everything_said(odd)
    for written in ("123456.789", "987654321012345", "1901-02-03"):
        assert written not in said


@pytest.mark.slow
def test_private_explainer_round_trips(explainer, tmp_path):
    path = tmp_path / "private.mcce"
    explainer.save(path)
    again = mcce.MCCE.load(path, model=score)
    assert again.generator_.account_ == explainer.generator_.account_
    assert again.sampler == explainer.sampler
    for settings in ({}, {"sparse": True, "n_samples": 100}):
        one, two = (each.explain(FACTUALS, progress=False, **settings) for each in (explainer, again))
        assert one.frame.equals(two.frame)
    bare = tmp_path / "bare.mcce"
    explainer.save(bare, donors="none")
    assert (
        mcce.MCCE.load(bare, model=score)
        .explain(FACTUALS.head(3))
        .frame.equals(explainer.explain(FACTUALS.head(3)).frame)
    )


def test_inspect_states_what_is_covered(explainer, tmp_path, capsys):
    explainer.save(tmp_path / "private.mcce")
    main(["inspect", str(tmp_path / "private.mcce")])
    printed = capsys.readouterr().out
    assert "fitted with differential privacy: noisy counts are in the file, and no training value" in printed
    assert "PrivacyAccount: epsilon = 3, for one row more or less" in printed
    assert "not covered: the model explained" in printed
    assert "400 rows drawn from the noisy counts, in place of the training rows" in printed
    assert "whole training rows" not in printed


def test_testing_seed_is_not_stored(tmp_path):
    explainer = fitted(testing_seed=1)
    assert "testing_seed=1: NOT PRIVATE" in repr(explainer)
    assert explainer.generator_.account_.for_tests
    for each in (explainer, explainer.generator_):
        with pytest.raises(InputError, match="whose noise can be removed: this fit is not private"):
            each.save(tmp_path / "tested.mcce")


def test_two_fits_with_a_testing_seed_agree():
    one, two = (fitted(testing_seed=1).explain(FACTUALS.head(5)).frame for _ in range(2))
    assert one.equals(two)


def with_value(column, value):
    """Return a function that changes one value of one row."""

    def change(rows):
        dtype = rows[column].dtype
        return rows.assign(**{column: pd.Series([value, *rows[column].iloc[1:]], rows.index, dtype=dtype)})

    return change


ODD = {
    "other rows, and fewer": lambda rows: table(77, 5).astype({"job": object}),
    "one row": lambda rows: rows.head(1),
    "three times the same rows": lambda rows: pd.concat([rows] * 3),
    "another order": lambda rows: rows.iloc[::-1],
    "labels": lambda rows: rows.set_axis(["somebody"] * len(rows)),
    "nobody has the decision": lambda rows: rows.assign(pay=1.0),
    "everybody has the decision": lambda rows: rows.assign(pay=99.0),
    "a constant number": lambda rows: rows.assign(code=7),
    "a constant level": lambda rows: rows.assign(job=pd.Series("cook", rows.index, dtype=object)),
    "an identifier": lambda rows: rows.assign(code=np.arange(len(rows))),
    "a relation": lambda rows: rows.assign(code=rows["pay"].astype(int)),
    "unused levels": lambda rows: rows.assign(sex=rows["sex"].cat.set_categories(["m", "x", "f"])),
    "nothing known": lambda rows: rows.assign(pay=np.nan, job=pd.Series(None, rows.index, dtype=object)),
    "missing": with_value("pay", np.nan),
    "infinite": with_value("pay", np.inf),
    "out of the range of squares": with_value("pay", -1e200),
    "not exact": with_value("code", 2**60 + 1),
    "no date": with_value("day", pd.NaT),
    "a date long ago": with_value("day", pd.Timestamp("1000-01-01")),
    "no level": with_value("job", None),
    "a number among levels": with_value("job", 7),
    "a truth among levels": with_value("job", True),
    "a list among levels": with_value("job", ["cook"]),
}


@pytest.fixture
def nothing_is_counted(monkeypatch):
    monkeypatch.setattr(PublicBins, "place", lambda self, values: np.full(values.size, -1))
    buy = Privacy.buy_number
    monkeypatch.setattr(Privacy, "buy_number", lambda self, n_rows: buy(self, 500))


def held_by(rows, condition_on_decision=True):
    """Return the state of a private explainer, its warnings and an answer, with noise of one seed."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        private = Privacy(epsilon=1, bounds=BOUNDS, levels=LEVELS, n_synthetic=100, testing_seed=1)
        explainer = mcce.MCCE(
            forgiving_score,
            decision=(0.6, 1),
            fixed=["sex"],
            sampler=private,
            random_state=1,
            n_jobs=1,
            condition_on_decision=condition_on_decision,
        ).fit(rows, progress=False)
        found = explainer.explain(FACTUALS.head(3), sparse=True, n_samples=50, progress=False)
    return pickle.dumps(explainer), found.frame.to_csv(), [str(each.message) for each in warned]


@cache
def held_by_plain_rows():
    """Return the state of a fit without counts, for comparison with all others."""
    return held_by(X.astype({"job": object}))


QUICK = ["other rows, and fewer", "nobody has the decision", "an identifier", "nothing known", "infinite"]
QUICK += ["a date long ago", "a list among levels"]


@pytest.mark.parametrize("odd", nightly_but(ODD, *QUICK))
def test_only_the_counts_reach_the_fit(nothing_is_counted, odd):
    """Two tables without counts give the same bytes for any rows."""
    assert held_by(ODD[odd](X.astype({"job": object}))) == held_by_plain_rows()


@pytest.mark.slow
def test_only_the_counts_reach_the_fit_without_the_decision(nothing_is_counted):
    assert held_by(table(77, 5), condition_on_decision=False) == held_by(X, condition_on_decision=False)


def test_dtypes_do_not_depend_on_values():
    """In an array of objects one 2.5 would make all numbers fractions."""
    rows = np.array([[1, 2], [2.5, 3]], dtype=object)
    with pytest.raises(InputError, match="an array of objects, whose columns take their dtypes from the values"):
        mcce.ChainModel(sampler=Privacy(bounds={"x0": (0, 9), "x1": (0, 9)})).fit(rows)


def test_values_count_as_the_nearest_public_ones():
    """Values beyond the bounds count as the bounds; dates to the nanosecond as their day."""
    moments = pd.to_datetime([1_420_156_799_123_456_789] * 99 + [-(10**18)], unit="ns")  # the last hour of a day
    rows = pd.DataFrame({"day": moments, "pay": [np.inf] * 30 + [-np.inf] * 70})
    stated = {"day": ("2015-01-01", "2015-01-02", "2015-01-03"), "pay": (0, 50, 100)}
    private = Privacy(epsilon=10**6, bounds=stated, max_depth=0, n_synthetic=10)
    samplers = mcce.ChainModel(sampler=private, random_state=1).fit(rows).samplers_
    assert samplers["day"].counts_.tolist() == [[[100, 0]]]
    assert samplers["pay"].counts_.tolist() == [[[70, 30]]]


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_large_budget_is_like_no_privacy(delta):
    """Without noise the conditionals have the shares of the training rows."""
    explainer = fitted(epsilon=10**6, delta=delta, max_depth=0, n_synthetic=4000)
    drawn = explainer.generator_.sample(4000)
    assert drawn["owns"].mean() == pytest.approx(X["owns"].mean(), abs=0.04)
    assert drawn["pay"].mean() == pytest.approx(X["pay"].mean(), abs=1.5)
    known = X.loc[X["job"] != "astronaut", "job"]
    assert (drawn["job"].value_counts(normalize=True) - known.value_counts(normalize=True)).abs().max() < 0.04
    assert drawn["day"].between("2015-01-01", "2018-12-31").mean() > 0.95


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda e: e.diagnose(X),
            r"diagnose needs the training rows, which are not kept with mcce\.Privacy; give",
        ),
        (lambda e: e.trade_off(FACTUALS), "trade_off needs the training rows"),
        (lambda e: e.explain(FACTUALS, constraints=[mcce.no_copies()]), "no_copies.* needs the training rows"),
        (
            lambda e: e.explain(FACTUALS, constraints=[mcce.k_anonymous(5, keys=["pay"])]),
            "k_anonymous.* needs the training rows",
        ),
        (lambda e: e.fit(X, sample_weight=np.full(len(X), 2)), "sample_weight cannot be private"),
        (lambda e: e.fit(X, relations=["code <= pay"]), "relations= needs the training rows"),
        (lambda e: mcce.MCCE(score, sampler=e.sampler, visit_sequence="correlation").fit(X), "reads the training rows"),
        (lambda e: mcce.ChainModel(sampler=e.sampler).fit(X, schema=mcce.Schema.from_data(X)), "schema was read from"),
        (lambda e: mcce.ChainModel(sampler=e.sampler, min_donors=3).fit(X), "cannot guarantee min_donors=3"),
    ],
)
def test_unsupported_operations_raise(call, said):
    with pytest.raises(mcce.MCCEError, match=said):
        call(fitted(testing_seed=1))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"bounds": {}}, "does not say the bounds of 'pay', 'code', 'day', and does not read them from the data"),
        ({"levels": {}}, "does not say the levels of 'sex', 'job', and does not read"),
        ({"levels": "dtype"}, "does not say the levels of 'job', and"),
        ({"bounds": {**BOUNDS, "pai": (0, 1)}}, "bounds names 'pai', which is not a column of X; did you mean 'pay'"),
        ({"missing": ["owns"]}, "missing names 'owns', whose dtype bool cannot be missing"),
        ({"missing": "job"}, r"missing of Privacy is 'job'; give a list of columns: \['job'\]"),
        ({"bounds": {**BOUNDS, "day": (0, 1)}}, "what is stated of 'day', .*: numbers are not dates"),
        ({"bounds": {**BOUNDS, "day": ("soon", "late")}}, "what is stated of 'day', .* does not convert to its dtype"),
        ({"bounds": {**BOUNDS, "pay": (9, 1)}}, "public bounds of 'pay' are .*; give two or more ascending numbers"),
        ({"decimals": {"pay": 99}}, "decimals of 'pay' is 99"),
        ({"bounds": [1, 2]}, r"bounds of Privacy is \[1, 2\]; give a dict by column"),
        ({"epsilon": -1}, "epsilon is -1; it must be a number above 0"),
        ({"n_synthetic": 0}, "n_synthetic of Privacy is 0"),
        ({"choosing": 1}, "choosing of Privacy is 1; it must be a number from 0 to below 1"),
    ],
)
def test_invalid_public_statements(options, said):
    with pytest.raises(mcce.MCCEError, match=said):
        fitted(**options)


def test_missing_values_are_counted_if_declared_public():
    gaps = X.assign(job=X["job"].mask(np.arange(len(X)) % 3 == 0))
    for missing, share in (((), 0.0), (("job",), 1 / 3)):
        private = Privacy(epsilon=10**6, bounds=BOUNDS, levels=LEVELS, missing=missing, n_synthetic=2000, max_depth=0)
        chain = mcce.ChainModel(sampler=private, random_state=1, n_jobs=1).fit(gaps)
        assert chain.sample(2000)["job"].isna().mean() == pytest.approx(share, abs=0.04)


def test_decimals_follow_the_declaration():
    drawn = fitted(decimals={"pay": 1}).generator_.sample(50)
    assert (drawn["pay"] == drawn["pay"].round(1)).all()
    assert (drawn["day"] == drawn["day"].dt.normalize()).all()


def test_array_input():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.random(200), rng.integers(0, 3, 200)])
    private = Privacy(epsilon=5, bounds={"x0": (0, 1)}, levels={"x1": [0.0, 1.0, 2.0]})
    explainer = mcce.MCCE(lambda A: A[:, 0], sampler=private, kinds={"x1": "categorical"}, random_state=1, n_jobs=1)
    found = explainer.fit(rows).explain(rows[:20])
    assert (found.frame["x0"] >= 0.5).all()
