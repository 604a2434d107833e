"""True relations that chance does not explain are found, in the most informative direction."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.constraints.rules import resolve_rule
from mcce.plausibility.orders import OrderSearch
from mcce.plausibility.relation_finder import _Finder, read_relations
from mcce.plausibility.relations import resolve_relation
from mcce.plausibility.searched_columns import SearchedColumns
from tests.marks import nightly, nightly_but, slow, slow_but
from tests.plausibility.related_tables import DIRECTIONS, beside, of, orders_of, people, rng, said, some, table

start = pd.Timestamp("2020-01-01") + pd.to_timedelta(of["a"], unit="D")


TABLES = {
    "usd == copy": {"copy": of["usd"]},
    "eur == 0.92 * usd": {"eur": (0.92 * of["usd"]).round()},
    "cents == 100 * usd": {"cents": (100 * of["usd"]).round().astype(int)},
    "born == 2024 - age": {"born": 2024 - of["age"]},
    "f == 1.8 * age + 32": {"f": (1.8 * of["age"] + 32).round(1)},
    "log and usd go together": {"log": np.log(of["usd"])},
    "age determines band": {"band": pd.cut(of["age"], [0, 30, 50, 99]).astype(str)},
    "age determines decade": {"decade": of["age"] // 10},
    "code and job go together": {"code": pd.Series(of["job"]).map({"clerk": 7, "pilot": 3, "nurse": 5})},
    "job determines sector": {"sector": np.where(of["job"] == "nurse", "health", "other")},
    "total == a + b": {"total": of["a"] + of["b"]},
    "b == a + left": {"left": of["b"] - of["a"]},
    "rate == a / b": {"rate": (of["a"] / np.maximum(of["b"], 1)).round(4)},
    "a <= most": {"most": of["a"] + rng(2).poisson(8, 400)},
    "start <= end": {"start": start, "end": start + pd.to_timedelta(rng(3).poisson(40, 400) // 2, unit="D")},
    "if job == 'nurse' then salary == 0 else salary != 0": {
        "salary": np.where(of["job"] == "nurse", 0, rng(4).integers(10, 90, 400))
    },
    "if job in ['clerk', 'nurse'] then missing(left) else not missing(left)": {
        "left": np.where(of["job"] == "pilot", rng(4).normal(size=400), np.nan)
    },
    "if missing(x) then missing(y) else not missing(y)": {
        name: np.where(of["age"] < 30, np.nan, rng(k).normal(size=400)) for k, name in enumerate("xy", 7)
    },
}


@pytest.mark.parametrize("words", TABLES)
def test_true_relations_are_found(words):
    X = beside(**TABLES[words])
    found = set(said(X))
    if words.startswith(("a <= most", "start")):
        found = {each for each in found if "days" not in each}
    assert words in found
    assert len(found) <= (2 if "start" in X else 1)  # `start` is another date, a number of days after `a`


def test_unrelated_columns_have_no_relation():
    assert said(pd.DataFrame(some())) == []


def noise(n, seed):
    """Independent columns of all kinds."""
    r = rng(seed)
    columns = {
        **{f"real{i}": r.normal(size=n) for i in range(4)},
        **{f"tenths{i}": r.normal(size=n).round(1) for i in range(3)},
        **{f"count{i}": r.poisson(2, n) for i in range(3)},
        **{f"sum{i}": np.where(r.random(n) < 0.6, 0, r.integers(1, 50, n)) for i in range(3)},
        **{f"flag{i}": r.random(n) < 0.3 for i in range(3)},
        **{f"level{i}": r.choice(list("abcde"), n) for i in range(2)},
        "name": [f"n{k}" for k in r.integers(0, max(n // 2, 2), n)],
        "rare": (r.random(n) < 0.01).astype(int),
        **{f"small{i}": r.integers(i, 3 + i, n) for i in range(2)},
        **{f"day{i}": pd.Timestamp("2020-01-01") + pd.to_timedelta(r.integers(0, 2000, n), "D") for i in range(2)},
        "rate": r.random(n).round(2),
        "money": r.lognormal(8, 1, n).round(2),
    }
    X = pd.DataFrame(columns)
    for name in ("real0", "count1", "sum0"):
        X[name] = X[name].where(r.random(n) > 0.2)
    return X


def has_any(X):
    """Return whether anything is found, including soft relations and proposals."""
    found = mcce.find_relations(X)
    return len(found) + len(found.soft) + len(found.proposals) > 0


@pytest.mark.nightly
@pytest.mark.parametrize("n", [20, 30, 50, 100, 300])
def test_at_most_one_percent_of_noise_tables_have_a_relation(n):
    assert sum(has_any(noise(n, seed)) for seed in range(400)) <= 4


@pytest.mark.nightly
def test_at_most_one_percent_of_wide_noise_tables_have_a_relation():
    def wide(seed):
        parts = [noise(60, 1000 + 3 * seed + k).add_suffix(f"_{k}") for k in range(3)]
        return pd.concat(parts, axis=1)

    assert sum(has_any(wide(seed)) for seed in range(200)) <= 2


def test_repeated_rows_are_not_evidence():
    few = pd.DataFrame({"a": [1, 2, 3, 4], "b": [10, 20, 30, 40], "c": list("wxyz")})
    assert said(pd.concat([few] * 100, ignore_index=True)) == []


def test_non_overlapping_ranges_are_not_an_order():
    r = rng()
    X = pd.DataFrame({"low": r.integers(0, 50, 500), "high": r.integers(50, 100, 500)})
    assert said(X) == []


def test_order_without_close_values_is_not_reported():
    low = rng().normal(size=2000)
    assert said(pd.DataFrame({"low": low, "high": low + 3 + rng(2).normal(0, 0.1, 2000)})) == []


def test_implied_orders_are_not_reported():
    r = rng()
    a = r.poisson(3, 600)
    b = a + r.poisson(1, 600)
    assert said(pd.DataFrame({"a": a, "b": b, "c": b + r.poisson(1, 600)})) == ["a <= b", "b <= c"]


@pytest.mark.parametrize("seed", [*range(4), *slow(*range(4, 12))])
def test_orders_match_a_search_over_all_pairs(seed):
    r = rng(seed)
    columns = {"c0": r.poisson(3, 500)}
    for k in range(1, 6):
        parent = f"c{r.integers(0, k)}"
        columns[f"c{k}"] = r.poisson(3, 500) if r.random() < 0.4 else columns[parent] + r.poisson(1, 500)
    X = pd.DataFrame(columns)
    kept = {(a, b) for a, b in itertools.permutations(X, 2) if (X[a] <= X[b]).all()}
    direct = {(a, b) for a, b in kept if not any((a, c) in kept and (c, b) in kept for c in X)}
    assert set(said(X)) == {f"{a} <= {b}" for a, b in direct}


def test_missing_values_hide_no_relation():
    X = beside(total=of["a"] + of["b"], copy=of["usd"])
    for k, name in enumerate(X.columns):
        X[name] = X[name].where(rng(k).random(len(X)) > 0.2)
    assert said(X) == ["usd == copy", "total == a + b"]


def test_codes_neither_hide_nor_create_an_order():
    r = rng()
    part = r.poisson(3, 900).astype(float)
    whole = part + r.poisson(1, 900)
    whole[:100] = -9
    other = np.where(np.arange(900) < 450, -8, r.integers(0, 30, 900))
    one = np.where(np.arange(900) < 450, -8, r.integers(0, 30, 900))
    assert said(pd.DataFrame({"part": part, "whole": whole})) == ["if whole >= 0 then part <= whole"]
    assert said(pd.DataFrame({"one": one, "other": other, "noise": r.normal(size=900)})) == [
        "if one == -8 then other == -8 else other != -8"
    ]


def test_relation_with_one_exception_is_not_exact():
    n = 30_000  # more than are used as evidence
    a = rng().poisson(3, n)
    X = pd.DataFrame({"a": a, "b": a + rng(2).poisson(1, n)})
    assert said(X) == ["a <= b"]
    X.loc[17, "a"] = X["b"][17] + 1
    assert said(X) == []


@pytest.mark.parametrize("seed", range(6))
def test_probability_of_an_order_matches_all_permutations(seed):
    r = rng(seed)
    a = np.sort(r.choice(50, 7, replace=False)).astype(float)
    b = a + r.integers(0, 9, 7)
    kept = np.mean([(np.array(each) <= b).all() for each in itertools.permutations(a)])
    X = pd.DataFrame({"a": a, "b": b})
    schema = mcce.Schema.from_data(X)
    search = OrderSearch(SearchedColumns(schema.encode(X).matrix, schema))
    near = ((b - a) <= 0.05 * b.std()).sum()
    log_p = search.chance(0, 1)
    by_chance = np.mean(a[:, None] > b)  # of any two rows
    assert math.isclose(math.exp(log_p), kept) if near < 7 and (near >= 3 or by_chance >= 0.05) else log_p == np.inf


@pytest.mark.parametrize("seed", range(12))
def test_bounds_of_orders_hold_for_all_permutations(seed):
    r = rng(seed)
    a, b = r.integers(0, 4, 6).astype(float), r.integers(0, 4, 6) + r.integers(1, 4)
    a[: seed % 3] = np.nan
    X = pd.DataFrame({"a": [0.0, *a, np.nan], "b": [9.0, *b, 4.0]})
    schema = mcce.Schema.from_data(X)
    search = OrderSearch(SearchedColumns(schema.encode(X).matrix, schema))
    known = X.dropna().drop_duplicates().to_numpy().T
    kept = np.mean([(np.array(each) <= known[1]).all() for each in itertools.permutations(known[0])])
    assert math.exp(search.least_chances()[0, 1]) <= kept + 1e-12
    n, above, below = (each[0, 1] for each in (search.n_known, search.n_above, search.n_below))
    assert above * below * known[0].size ** 2 >= n**2 * (known[0][:, None] > known[1]).sum()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *nightly(1, 2, 3)])
def test_probability_of_a_function_is_an_upper_bound_over_permutations(seed):
    r = rng(seed)
    a = r.integers(0, 3, 8)
    b = r.permutation(3)[a] // 2
    X = pd.DataFrame({"a": list("xyz"[k] for k in a), "b": list("uvw"[k] for k in b)})
    schema = mcce.Schema.from_data(X)
    functions = []
    for each in itertools.permutations(b):
        functions.append(all(len(set(np.array(each)[a == k])) <= 1 for k in range(3)))
    log_p = _Finder(schema.encode(X).matrix, schema)._chance_of_function(0, 1)
    assert math.exp(log_p) >= np.mean(functions) - 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("decimals", [*nightly(0, 1), 2])
@pytest.mark.parametrize("words", nightly_but(DIRECTIONS, *DIRECTIONS[::3]))
def test_finest_column_is_determined_in_every_column_order(words, decimals):
    X = table(words, decimals)
    if words.startswith("left") and decimals == 2:
        words = "income == left + spent"  # as precise as the others: equivalent to a sum
    assert {tuple(said(X[order])) for order in orders_of(X)} == {(words,)}


@pytest.mark.slow
def test_sum_is_found_if_the_total_correlates_with_its_largest_part():
    r = rng(5)
    X = pd.DataFrame({"price": r.integers(0, 10_000, 300) * 100, "fee": r.integers(0, 50, 300)})
    X = X.assign(total=X["price"] + X["fee"], savings=r.gamma(2, 3000, 300).round())
    assert {tuple(said(X[order])) for order in orders_of(X)} == {("total == fee + price",)}
    score = lambda rows: rows["total"] / 1e6 - rows["fee"] / 50  # noqa: E731
    explainer = mcce.MCCE(score, decision=(0.3, np.inf), random_state=1).fit(X)
    rows = explainer.explain(X[score(X) < 0.3].head(20), sparse=True, n_samples=150).frame
    assert len(rows) == 20
    assert (rows["total"] == rows["price"] + rows["fee"]).all()


def test_functions_of_the_parts_of_a_sum_are_found():
    r = rng(6)
    price = r.uniform(100, 9000, 400).round(2)
    fee = np.where(price < 1000, 10, np.where(price < 4000, 25, 60))
    assert said(pd.DataFrame({"price": price, "fee": fee, "total": (price + fee).round(2)})) == [
        "price determines fee",
        "total == fee + price",
    ]
    gross = r.integers(10_000, 9_000_000, 400)
    tax = (0.3 * gross + 0.5).astype(int)
    found = said(pd.DataFrame({"gross": gross, "tax": tax, "net": gross - tax}))
    assert {"gross == net + tax", "tax == 0.3 * gross"} <= set(found)
    usd = r.uniform(100, 90_000, 400).round(2)
    found = said(pd.DataFrame({"chf": (0.97 * usd).round(), "eur": (0.92 * usd).round(), "usd": usd}))
    assert found == ["chf == 0.97 * usd", "eur == 0.92 * usd"]


@pytest.mark.slow
@pytest.mark.parametrize("of", [np.arange(200) % 91, np.array(list("abcde") * 40)])
def test_copies_are_not_compared_with_each_other(of, monkeypatch):
    compared = []
    monkeypatch.setattr(_Finder, "_chance_of_function", lambda self, x, y: compared.append((x, y)) or np.inf)
    X = pd.DataFrame({f"c{i:03}": of for i in range(150)})
    found = said(X)
    assert found == ([f"c{i:03} == c000" for i in range(1, 150)] if of.dtype.kind == "i" else [])
    assert not compared


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-200, 1e12, 1e200, 1e300])
def test_numbers_of_any_size_are_compared_without_a_warning(scale):
    a, b = rng().random((2, 300)) * scale
    count = np.floor(9 * rng(2).random(300))
    unrelated = {"c": rng(4).random(300) * scale, "d": np.zeros(300)}
    assert said(pd.DataFrame({"a": a, "b": b, **unrelated})) == []
    assert said(pd.DataFrame({"a": a, "b": b, "total": a + b, **unrelated})) == ["total == a + b"]
    more = count + rng(3).poisson(0.5, 300)
    assert said(pd.DataFrame({"count": count * scale, "more": more * scale})) == ["count <= more"]
    if scale > 1e-310:  # below it, few values remain
        assert said(pd.DataFrame({"a": a, "twice": 2 * a, **unrelated})) == ["twice == 2 * a"]


def test_range_beyond_the_largest_float_is_not_a_relation():
    a, b = (2 * rng().random((2, 300)) - 1) * 1.7e308
    assert said(pd.DataFrame({"a": a, "b": b, "c": rng(2).normal(size=300)})) == []
    assert said(pd.DataFrame({"a": a, "up": np.sinh(a / 1e308)})) == ["a and up go together"]


@pytest.mark.slow
def test_column_order_does_not_matter():
    X = people().assign(usd=of["usd"][0] + np.arange(1500) % 700, job=np.resize(of["job"], 1500))
    X = X.assign(code=X["job"].map({"clerk": 7, "pilot": 3, "nurse": 5}), copy=X["job"], band=X["age"] // 10)
    expected = mcce.find_relations(X).frame
    for seed in range(4):
        pd.testing.assert_frame_equal(mcce.find_relations(X[rng(seed).permutation(X.columns)]).frame, expected)


def test_tied_columns_follow_from_the_coarsest():
    one = rng(3).integers(10, 900, 300)
    X = pd.DataFrame({"a": 6 * one, "b": 2 * one, "c": 3 * one, "d": one})
    found = mcce.find_relations(X)
    targets = [each.columns[1] for each in found]
    assert sorted(targets) == ["a", "b", "c"]
    assert {"b == 2 * d", "c == 3 * d"} <= {each.says for each in found}


def wrong_in(X, name, rows, value):
    return X.assign(**{name: X[name].where(~np.isin(np.arange(len(X)), rows), value)})


def test_order_with_few_exceptions_is_soft():
    r = rng()
    a = r.poisson(9, 1000)
    X = pd.DataFrame({"a": a, "b": a + r.poisson(2, 1000), "other": r.poisson(9, 1000)})
    X.loc[[3, 50, 700], "a"] += 30
    found = mcce.find_relations(X)
    assert (said(X), [each.says for each in found.soft]) == ([], ["a <= b"])
    assert (found.soft[0].rows, found.soft[0].exceptions, found.soft[0].first) == (997, 3, (3, 50, 700))
    X.loc[X.index[::40], "a"] += 30  # 2.5 per cent
    assert mcce.find_relations(X).soft == ()


def test_order_explained_by_chance_is_not_soft():
    r = rng()
    for above in (3.0, 4.5):  # 1.7 and 0.1 per cent are above by chance
        X = pd.DataFrame({"low": r.normal(size=3000), "high": r.normal(above, 1, 3000)})
        assert mcce.find_relations(X).soft == ()


SOFT = {
    "if job == 'none' then salary == 0 else salary != 0": ("salary", 12),
    "if bonus == 0 then salary == 0 else salary != 0": ("bonus", 5),
    "if missing(left) then missing(right) else not missing(right)": ("right", 8),
}


@pytest.mark.parametrize("words", SOFT)
def test_values_that_nearly_always_coincide_are_soft(words):
    r = rng(2)
    job = r.choice(["none", "clerk", "cook"], 1000)
    gone = r.random(1000) < 0.3
    X = pd.DataFrame({"job": job, "age": r.integers(18, 90, 1000)})
    X["salary"] = np.where(job == "none", 0, r.integers(10, 90, 1000))
    X["bonus"] = np.where(job == "none", 0, r.integers(10, 90, 1000))
    X["left"], X["right"] = (np.where(gone, np.nan, r.normal(size=1000)) for _ in range(2))
    name, n = SOFT[words]
    if words.startswith("if bonus"):
        X = X.drop(columns="job")
    wrong = r.choice(1000, n, replace=False)
    X = wrong_in(X, name, wrong, 1 if name == "right" else 0)
    soft = {each.says: each for each in mcce.find_relations(X).soft}
    assert words in soft
    rows = X.iloc[wrong]
    broken = (
        rows["job"] != "none" if "job" in words else rows["salary"] != 0 if name == "bonus" else rows["left"].isna()
    )
    assert soft[words].exceptions == broken.sum()
    assert words not in said(X)


@pytest.mark.slow
def test_soft_relations_hold_for_answers_of_rows_that_satisfy_them():
    r = rng(3)
    a = r.poisson(9, 1500)
    X = pd.DataFrame({"a": a, "b": a + r.poisson(2, 1500), "age": r.integers(18, 90, 1500)})
    X.loc[:9, "a"] = X.loc[:9, "b"] + 3
    score = lambda rows: (rows["a"] - rows["b"] + rows["age"] / 10).to_numpy(float)  # noqa: E731
    explainer = mcce.MCCE(score, decision=(5.5, np.inf), random_state=1).fit(X)
    assert ([*explainer.relations_], [each.says for each in explainer.relations_.soft]) == ([], ["a <= b"])
    denied = X[score(X) < 5.5]
    keeps = denied[denied["a"] <= denied["b"]].head(40)
    found = explainer.explain(keeps, sparse=True, n_samples=200, floor=0.0).frame
    assert len(found) > 30
    assert (found["a"] <= found["b"]).all()
    again = mcce.MCCE(score, decision=(5.5, np.inf), random_state=1).fit(X, relations=explainer.relations_)
    assert again.relations_.soft == explainer.relations_.soft
    free = mcce.MCCE(score, decision=(5.5, np.inf), random_state=1).fit(X, relations=())
    loose = free.explain(keeps, sparse=True, n_samples=200, floor=0.0).frame
    assert (loose["a"] > loose["b"]).any()
    breaks = X.head(10).assign(age=20)
    assert len(explainer.explain(breaks, sparse=True, n_samples=200, floor=0.0).unexplained) == 0


def employers():
    r = rng(4)
    employer = r.choice(["-", "acme", "it's", "globex"], 600)
    X = pd.DataFrame({"employer": employer, "age": r.integers(18, 90, 600), "debt": r.lognormal(8, 1, 600).round()})
    return X.assign(works=np.where(employer == "-", "no", "yes"))


EVERY_TABLE = {
    **{words: lambda words=words: beside(**TABLES[words]) for words in TABLES},
    **{words: lambda words=words: table(words, 1) for words in DIRECTIONS},
    "people": people,
    "employers": employers,
}


@pytest.mark.parametrize("name", slow_but(list(EVERY_TABLE), *list(EVERY_TABLE)[::3]))
def test_text_of_a_relation_is_a_rule_and_round_trips(name):
    X = EVERY_TABLE[name]()
    schema = mcce.Schema.from_data(X)
    matrix = schema.encode(X).matrix
    found = mcce.find_relations(X)
    for each in (*found, *found.soft, *found.proposals):
        if each.says.endswith("go together") or " determines " in each.says:
            assert each.table is not None
            continue
        broken = ~resolve_rule(mcce.rule(each.says), schema).holds(matrix, matrix)
        if each.kind in ("order", "together"):  # equations hold up to half of the last digit
            broken &= ~X[list(each.columns)].isna().any(axis=1).to_numpy() | ("missing(" in each.says)
            assert broken.sum() == each.exceptions
        before = resolve_relation(each, schema)
        (given,) = read_relations([each.says], matrix, schema)
        after = resolve_relation(given, schema)
        assert (given.says, set(given.columns)) == (each.says, set(each.columns))
        assert (after.holds(matrix) == before.holds(matrix)).all()
        if each.table is None:
            assert after.solvable == before.solvable
        (again,) = read_relations([mcce.rule(each.says)], matrix, schema)
        assert again == given


def test_levels_in_texts_are_quoted():
    assert said(employers()) == ["if works == 'no' then employer == '-' else employer != '-'"]
