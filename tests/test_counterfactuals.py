from __future__ import annotations

import pickle
import time
from dataclasses import replace
from html.parser import HTMLParser

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcce.counterfactuals import Counterfactuals
from mcce.exceptions import InputError

DECISION = "score of class 1 in [0.5, 1]"
COLUMNS = ["age", "salary", "defaulted", "home"]


def indexed(rows, index):
    frame = pd.DataFrame(rows, columns=COLUMNS)
    frame["home"] = frame["home"].astype(pd.CategoricalDtype(["<script>", "own", "rent"]))
    return frame.set_index(index)


@pytest.fixture
def found() -> Counterfactuals:
    factuals = indexed(
        [(30, 68_000, True, "rent"), (40, 20_000, False, None), (50, 9_000, True, "own")],
        pd.Index(["ann", "bob", "cis"], name="person"),
    )
    pairs = pd.MultiIndex.from_tuples([("ann", 1), ("ann", 2), ("bob", 1)], names=["id", "rank"])
    frame = indexed([(30, 72_000, False, "rent"), (30, 90_000, True, "<script>"), (40, 20_000, False, "own")], pairs)
    measures = pd.DataFrame(
        {
            "prediction": [0.62, 0.7, 0.55],
            "L0": [2, 2, 1],
            "gower": [0.3, 0.4, 0.25],
            "gower_sum": [1.2, 1.6, 1.0],
        },
        index=pairs,
    )
    predictions = pd.Series([0.31, 0.4, 0.1], index=factuals.index)
    unexplained = pd.DataFrame(
        {"reason": ["no valid row among 1000 <samples>"], "prediction": [0.1]}, index=factuals.index[2:]
    )
    return Counterfactuals(
        frame=frame,
        measures=measures,
        factuals=factuals,
        unexplained=unexplained,
        factual_predictions=predictions,
        decision=DECISION,
        fixed=("age",),
        kinds={"age": "numeric", "salary": "numeric", "defaulted": "categorical", "home": "categorical"},
        ranges={"age": (18, 90), "salary": (0, 100_000)},
        timings={"fit": 1.0, "generate": 2.0, "select": 0.5},
    )


def nothing_found(found: Counterfactuals) -> Counterfactuals:
    reasons = pd.DataFrame({"reason": "no valid row", "prediction": 0.1}, index=found.factuals.index)
    return Counterfactuals(
        frame=found.frame.iloc[:0],
        measures=found.measures.iloc[:0],
        factuals=found.factuals,
        unexplained=reasons,
        factual_predictions=found.factual_predictions,
        decision=DECISION,
    )


def around(before: pd.DataFrame, after: pd.DataFrame, per_factual: int = 1, **more) -> Counterfactuals:
    """A result that has `after` as counterfactuals of `before`, with measures that mean nothing."""
    ids = np.repeat(before.index, per_factual)
    ranks = np.tile(np.arange(1, per_factual + 1), len(before))
    frame = after.set_axis(pd.MultiIndex.from_arrays([ids, ranks], names=["id", "rank"]))
    measures = pd.DataFrame(0.5, index=frame.index, columns=["prediction", "L0", "gower", "gower_sum"])
    return Counterfactuals(
        frame=frame,
        measures=measures,
        factuals=before,
        unexplained=pd.DataFrame({"reason": [], "prediction": []}, index=before.index[:0]),
        factual_predictions=pd.Series(0.1, index=before.index),
        decision=DECISION,
        **more,
    )


class Cells(HTMLParser):
    """Rows of a table as (text, class, title) of each cell."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[list[str]]] = []
        self.tags: set[str] = set()
        self._inside = False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self._inside = True
            self.rows[-1].append(["", dict(attrs).get("class", ""), dict(attrs).get("title", "")])

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self._inside = False

    def handle_data(self, data):
        if self._inside:
            self.rows[-1][-1][0] += data


def test_changes_by_hand(found):
    expected = pd.DataFrame(
        [
            ("ann", 1, "salary", 68_000, 72_000),
            ("ann", 1, "defaulted", True, False),
            ("ann", 2, "salary", 68_000, 90_000),
            ("ann", 2, "home", "rent", "<script>"),
            ("bob", 1, "home", np.nan, "own"),
        ],
        columns=["id", "rank", "feature", "from", "to"],
    )
    changes = found.changes()
    pd.testing.assert_frame_equal(changes, expected, check_dtype=False)
    assert changes[["from", "to"]].dtypes.eq(object).all()


def test_changes_of_strings_stay_objects():
    before, after = (pd.DataFrame({"home": [level]}) for level in ("rent", "own"))
    assert around(before, after).changes()[["from", "to"]].dtypes.eq(object).all()


COLUMN_KINDS = {
    "int": lambda codes: pd.Series(codes, dtype="int64"),
    "float": lambda codes: pd.Series(np.where(codes == 0, np.nan, codes / 3)),
    "bool": lambda codes: pd.Series(codes % 2 == 0),
    "nullable": lambda codes: pd.Series(codes, dtype="Int64").mask(codes == 0),
    "string": lambda codes: pd.Series(np.array(["a", "b", "c", None], dtype=object)[codes]).astype("str"),
    "object": lambda codes: pd.Series(np.array(["a", 1, pd.NA, None], dtype=object)[codes], dtype=object),
    "category": lambda codes: pd.Series(pd.Categorical.from_codes(codes - 1, ["z", "y", "x"])),
    "ordered": lambda codes: pd.Series(pd.Categorical.from_codes(codes - 1, [3, 1, 2], ordered=True)),
    "date": lambda codes: pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(codes, "D")).mask(codes == 0),
    "zoned": lambda codes: pd.Series(pd.Timestamp("2024-01-01", tz="UTC") + pd.to_timedelta(codes, "h")),
}


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(0, 6), per_factual=st.integers(1, 3))
def test_changes_equal_a_loop_over_the_cells(seed, n, per_factual):
    rng = np.random.default_rng(seed)
    columns = [(name, make) for name, make in COLUMN_KINDS.items() if rng.random() < 0.7]
    before = pd.DataFrame({name: make(rng.integers(0, 4, n)) for name, make in columns}, index=range(n))
    before = before.set_axis(pd.Index(rng.permutation(n) + 100))
    after = pd.DataFrame({name: make(rng.integers(0, 4, n * per_factual)) for name, make in columns})
    if not columns:
        after = after.reindex(range(n * per_factual))
    found = around(before, after, per_factual)
    expected = []
    for (id, rank), row in zip(found.frame.index, range(len(found))):
        for name, _ in columns:
            old, new = before.loc[id, name], found.frame[name].iloc[row]
            both_missing = pd.isna(old) and pd.isna(new)
            either_missing = pd.isna(old) or pd.isna(new)
            if not both_missing and (either_missing or old != new):
                expected.append((id, rank, name, old, new))
    changes = found.changes()
    assert list(changes.columns) == ["id", "rank", "feature", "from", "to"]
    got = list(changes.itertuples(index=False, name=None))
    assert [cell[:3] for cell in got] == [cell[:3] for cell in expected]
    for (*_, old, new), (*_, old_expected, new_expected) in zip(got, expected):
        assert (pd.isna(old) and pd.isna(old_expected)) or old == old_expected
        assert (pd.isna(new) and pd.isna(new_expected)) or new == new_expected


def test_categories_listed_in_another_order_are_the_same_values():
    before = pd.DataFrame({"home": pd.Categorical(["a", "b"], categories=["a", "b"])})
    after = pd.DataFrame({"home": pd.Categorical(["a", "b"], categories=["b", "a"])})
    assert around(before, after).changes().empty


def test_changes_of_many_rows_are_quick():
    rng = np.random.default_rng(1)
    n = 100_000

    def table() -> pd.DataFrame:
        numbers = {f"x{j}": rng.integers(0, 3, n) for j in range(8)}
        levels = pd.Categorical.from_codes(rng.integers(0, 3, n), ["a", "b", "c"])
        strings = pd.Series(np.array(["a", "b", "c"])[rng.integers(0, 3, n)], dtype="str")
        dates = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 3, n), "D")
        return pd.DataFrame({**numbers, "l": levels, "s": strings, "d": dates, "b": rng.random(n) < 0.5, "f": 0.5})

    found = around(table(), table())
    start = time.process_time()
    changes = found.changes()
    seconds = time.process_time() - start
    assert len(changes) == int((found.changed_features()["times"]).sum())
    assert seconds < 5, "about a second of computing is expected"


def test_summary_by_hand(found):
    value = found.summary()["value"]
    assert value["factuals"] == 3
    assert value["explained"] == 2
    assert value["unexplained"] == 1
    assert value["unexplained: no valid row among 1000 <samples>"] == 1
    assert value["mean L0"] == 1.5
    assert value["sd L0"] == pytest.approx(np.sqrt(0.5))
    assert value["mean gower"] == pytest.approx(0.275)
    assert value["mean gower_sum"] == pytest.approx(1.1)
    assert value["seconds generate"] == 2.0


def test_changed_features_by_hand(found):
    table = found.changed_features()
    assert list(table.index) == ["salary", "defaulted", "home", "age"]
    assert list(table["share"]) == [0.5, 0.5, 0.5, 0.0]
    assert list(table["times"]) == [1, 1, 1, 0]
    assert list(table["fixed"]) == [False, False, False, True]


def test_sentence(found):
    assert found.sentence("ann") == (
        "With salary 72,000 instead of 68,000 and defaulted False instead of True, the decision would have "
        "been the wanted one (score of class 1 in [0.5, 1]: 0.62 instead of 0.31)."
    )
    assert found.sentence("bob").startswith("With home own instead of missing, the decision")
    assert found.sentence("ann", rank=2).startswith("With salary 90,000 instead of 68,000 and home <script>")
    assert found.sentence("cis") == "No counterfactual was found for 'cis': no valid row among 1000 <samples>."


def test_sentence_of_three_changes_and_of_none():
    before = pd.DataFrame({"a": [1, 1], "b": [1, 1], "c": [1, 1]})
    after = pd.DataFrame({"a": [2, 1], "b": [3, 1], "c": [4, 1]})
    found = around(before, after)
    assert found.sentence(0).startswith("With a 2 instead of 1, b 3 instead of 1 and c 4 instead of 1, the")
    assert found.sentence(1).startswith("Nothing has to change")


@pytest.mark.parametrize("id", ["dan", 3, ("ann", 1), ["ann"], None])
def test_an_unknown_id_is_named_with_the_known_ones(found, id):
    with pytest.raises(InputError, match=r"no factual has the id .*'ann', 'bob', 'cis'"):
        found.sentence(id)


def test_an_unknown_rank_says_which_there_are(found):
    with pytest.raises(InputError, match=r"'ann' has no counterfactual of rank 3, only 1, 2; .*n_counterfactuals"):
        found.sentence("ann", rank=3)


@pytest.mark.parametrize(
    "index",
    [
        pd.date_range("2024-01-01", periods=2),
        pd.Index([0.5, 1.5]),
        pd.Index([("a", 1), ("b", 2)], tupleize_cols=False),
        pd.CategoricalIndex(["p", "q"]),
        pd.Index([True, False]),
    ],
)
def test_ids_of_any_type(index):
    before = pd.DataFrame({"a": [1, 2]}, index=index)
    ids = index.to_numpy() if not isinstance(index, pd.CategoricalIndex) else index.astype(object)
    found = around(before, pd.DataFrame({"a": [3, 2]}))
    assert len(found.changes()) == 1
    assert found.sentence(ids[0]).startswith("With a 3 instead of 1,")
    assert str(index[0]) in repr(found)


def sparse_of(found: Counterfactuals, floor: float) -> Counterfactuals:
    """As if asked for sparsely, with plausibilities on both sides of a floor of 0.05 and one at it."""
    measures = found.measures.assign(plausibility=[0.021, 0.6, 0.05])
    return replace(found, measures=measures, settings={"sparse": True, "floor": floor})


def test_rows_below_the_floor_are_marked(found):
    sparse = sparse_of(found, 0.05)
    assert sparse.below_floor().tolist() == [True, False, False]
    plain = found.sentence("ann")
    assert sparse.sentence("ann") == plain + (
        " Take it with care: it is below the floor of plausibility, since 2.1% of the real rows look as unusual "
        "as this one or more so, and 5% were asked for."
    )
    assert sparse.sentence("bob") == found.sentence("bob")
    line = "rows below the floor of plausibility (0.05): 1"
    assert line in repr(sparse).splitlines()
    assert line in sparse._repr_html_()
    assert sparse.summary()["value"]["rows below the floor of plausibility"] == 1
    page = sparse.to_html()
    assert "Take it with care" in page
    assert "rows below the floor of plausibility" in page
    head, _, first, *_ = Cells(sparse._repr_html_()).rows
    assert [cell[0] for cell in head[:5]] == ["id, → rank", "prediction", "L0", "gower", "plausibility"]
    assert [cell[0] for cell in first[:5]] == ["→ 1", "0.62", "2", "0.3", "0.021"]


def test_a_row_at_the_floor_is_not_below_it(found):
    assert sparse_of(found, 0.1 / 2 + 1e-17).below_floor().tolist() == [True, False, False]
    assert sparse_of(found, 0.05 + 1e-12).below_floor().tolist() == [True, False, False], "rounding"
    assert sparse_of(found, 0.051).below_floor().tolist() == [True, False, True]
    none = replace(sparse_of(found, 0.05), measures=found.measures.assign(plausibility=0.0004))
    assert "since hardly any of the real rows" in none.sentence("ann")


def test_without_a_floor_nothing_is_said_of_it(found):
    plain = replace(sparse_of(found, 0.05), settings={"sparse": False, "floor": 0.05})
    for result in (found, plain):
        assert not result.below_floor().any()
        assert "floor" not in repr(result) + result._repr_html_() + "".join(result.summary().index)
        assert "care" not in result.sentence("ann")


def test_repr_for_a_terminal(found):
    text = repr(found)
    assert "2 of 3 factuals explained, 3 rows" in text
    assert DECISION in text
    assert "mean over the best of each: L0 1.5, gower 0.275" in text
    assert "salary: 68,000 -> 72,000; defaulted: True -> False" in text
    assert "age" not in text
    assert text.endswith("not explained, no valid row among 1000 <samples>: 'cis'")
    assert len(found) == 3


def test_repr_is_short_for_many_rows_and_changes():
    before = pd.DataFrame(0, index=range(50), columns=[f"x{j}" for j in range(40)])
    text = repr(around(before, before + 1))
    assert "and 37 more" in text
    assert "... and 44 more rows" in text
    assert len(text.splitlines()) < 15


def test_html_marks_exactly_the_changed_cells(found):
    head, *rows = Cells(found._repr_html_()).rows
    assert [cell[0] for cell in head] == [
        "id, → rank", "prediction", "L0", "gower", "salary", "defaulted", "home", "agefixed",
    ]  # fmt: skip
    assert [row[0][0] for row in rows] == ["ann", "→ 1", "→ 2", "bob", "→ 1"]
    assert [cell[0] for cell in rows[0][1:]] == ["0.31", "", "", "68,000", "True", "rent", "30"]
    marked = {
        (r, c): (text, title)
        for r, row in enumerate(rows)
        for c, (text, kind, title) in enumerate(row)
        if "changed" in kind.split()
    }
    assert marked == {
        (1, 4): ("72,000", "was 68,000"),
        (1, 5): ("False", "was True"),
        (2, 4): ("90,000", "was 68,000"),
        (2, 6): ("<script>", "was rent"),
        (4, 6): ("own", "was missing"),
    }
    same = sum("same" in kind.split() for row in rows for _, kind, _ in row)
    assert same == 3 * 4 - len(marked)


def test_html_escapes_values_names_reasons_and_ids(found):
    html = found._repr_html_()
    assert "script" not in Cells(html).tags
    assert "&lt;script&gt;" in html
    assert "1000 &lt;samples&gt;" in html
    before = pd.DataFrame({"<script>": ['"><script>']}, index=["<script>"])
    nasty = around(before, pd.DataFrame({"<script>": ["b"]}), fixed=("x",))
    cells = Cells(nasty._repr_html_())
    assert "script" not in cells.tags
    assert cells.rows[2][4][2] == 'was "><script>'


def test_html_of_a_wide_table_has_the_changing_features_first():
    before = pd.DataFrame(0, index=range(30), columns=[f"x{j}" for j in range(40)])
    after = before.copy()
    after[["x17", "x33"]] = 1
    html = around(before, after)._repr_html_()
    head, *rows = Cells(html).rows
    assert [cell[0] for cell in head[4:8]] == ["x17", "x33", "x0", "x1"]
    assert len(rows) == 20
    assert "20 more rows, 20 more explained factuals" in html


def test_to_frame(found):
    table = found.to_frame()
    assert list(table.columns) == ["id", "rank", *COLUMNS, "prediction", "L0", "gower", "gower_sum"]
    assert list(table["id"]) == ["ann", "ann", "bob"]
    assert list(table["salary"]) == [72_000, 90_000, 20_000]
    assert table["home"].dtype == found.frame["home"].dtype


def test_to_frame_keeps_features_that_are_called_like_measures():
    before = pd.DataFrame({"id": [1], "L0": [2]})
    table = around(before, before)
    assert list(table.to_frame().columns) == [
        "id_",
        "rank",
        "id",
        "L0",
        "prediction",
        "L0_",
        "gower",
        "gower_sum",
    ]


def test_plot(found):
    first, second = found.plot(), found.plot("bob")
    assert first.get_title(loc="left").endswith("for ann")
    assert {"68,000", "72,000"} <= {t.get_text() for t in first.texts}
    assert [t.get_text() for t in second.get_yticklabels()] == ["home"]
    with pytest.raises(InputError, match="No counterfactual was found for 'cis'"):
        found.plot("cis")
    plt.close(first.figure)
    plt.close(second.figure)
    assert plt.get_fignums() == []


def test_nothing_found(found):
    empty = nothing_found(found)
    assert len(empty) == 0
    assert list(empty.changes().columns) == ["id", "rank", "feature", "from", "to"]
    assert empty.summary()["value"]["explained"] == 0
    assert (empty.changed_features()["share"] == 0).all()
    assert "not explained, no valid row: 'ann', 'bob', 'cis'" in repr(empty)
    assert "no valid row" in empty._repr_html_()
    assert len(empty.to_frame()) == 0
    with pytest.raises(InputError, match="no counterfactual to plot"):
        empty.plot()


def test_tables_that_do_not_fit_together_are_refused(found):
    parts = {name: getattr(found, name) for name in found.__dataclass_fields__}
    with pytest.raises(InputError, match="measures and frame"):
        Counterfactuals(**{**parts, "measures": found.measures.iloc[::-1]})
    with pytest.raises(InputError, match="factual_predictions and factuals"):
        Counterfactuals(**{**parts, "factual_predictions": found.factual_predictions.iloc[:1]})
    one = {"factuals": found.factuals.iloc[1:], "factual_predictions": found.factual_predictions.iloc[1:]}
    with pytest.raises(InputError, match="exactly once"):
        Counterfactuals(**{**parts, **one})


def test_is_frozen_and_can_be_pickled(found):
    with pytest.raises(AttributeError):
        found.decision = "other"
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(found)).changes(), found.changes())


def test_changed_features_have_directions_and_typical_steps():
    before = pd.DataFrame(
        {
            "salary": [10, 20, 30, 40],
            "size": pd.Categorical(["S", "M", "L", "S"], ["S", "M", "L"], ordered=True),
            "home": ["rent", "rent", "own", "own"],
            "debt": [1.0, np.nan, 3.0, 4.0],
            "since": pd.Timestamp("2024-01-01"),
            "month": pd.PeriodIndex(["2024-01", "2024-02", "2024-03", "2024-04"], freq="M"),
        }
    )
    after = before.assign(
        salary=[15, 40, 30, 30],
        size=pd.Categorical(["M", "S", "L", "L"], ["S", "M", "L"], ordered=True),
        home=["own", "own", "rent", "own"],
        debt=[1.0, 2.0, 1.0, 4.0],
        since=pd.Timestamp("2024-01-11"),
        month=pd.PeriodIndex(["2024-02", "2024-02", "2024-02", "2024-02"], freq="M"),
    )
    table = around(before, after).changed_features()
    expected = {
        "salary": (0.5, 0.25, 0.0, 0.0, "median +5"),
        "size": (0.5, 0.25, 0.0, 0.0, "mostly to M"),
        "home": (0.0, 0.0, 0.75, 0.0, "mostly to own"),
        "debt": (0.0, 0.25, 0.0, 0.25, "median -2"),
        "since": (1.0, 0.0, 0.0, 0.0, "median +10 days"),
        "month": (0.25, 0.5, 0.0, 0.0, "to 2024-02"),
    }
    for name, row in expected.items():
        assert tuple(table.loc[name, ["up", "down", "other", "missing", "note"]]) == row
    assert (table[["up", "down", "other", "missing"]].sum(axis=1) == table["share"]).all()


def test_plot_of_the_changes_of_many(found):
    ax = found.plot_changes()
    assert [t.get_text() for t in ax.get_yticklabels()] == ["salary", "defaulted", "home"]
    assert "2 factuals" in ax.get_xlabel()
    plt.close(ax.figure)
