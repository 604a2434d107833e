"""The tables of a result: summary, sentences, ids, the floor, and errors."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.counterfactuals import Counterfactuals, Questions, Run
from mcce.exceptions import InputError
from tests.counterfactuals.problem import COLUMNS, DECISION, Cells, around


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


def test_summary_matches_hand_calculation(found):
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


def test_changed_features_match_hand_calculation(found):
    table = found.changed_features()
    assert list(table.index) == ["salary", "defaulted", "home", "age"]
    assert list(table["share"]) == [0.5, 0.5, 0.5, 0.0]
    assert list(table["times"]) == [1, 1, 1, 0]
    assert list(table["fixed"]) == [False, False, False, True]


def test_sentence(found):
    assert found.sentence("ann") == (
        "With salary 72,000 instead of 68,000 and defaulted False instead of True, the result would have "
        "been as wanted: score of class 1 in [0.5, 1] (0.62 instead of 0.31)."
    )
    assert found.sentence("bob").startswith("With home own instead of missing, the result")
    assert found.sentence("ann", rank=2).startswith("With salary 90,000 instead of 68,000 and home <script>")
    assert found.sentence("cis") == "No counterfactual was found for 'cis': no valid row among 1000 <samples>."


def test_sentence_of_three_changes_and_of_none():
    before = pd.DataFrame({"a": [1, 1], "b": [1, 1], "c": [1, 1]})
    after = pd.DataFrame({"a": [2, 1], "b": [3, 1], "c": [4, 1]})
    found = around(before, after)
    assert found.sentence(0).startswith("With a 2 instead of 1, b 3 instead of 1 and c 4 instead of 1, the")
    assert found.sentence(1).startswith("Nothing has to change")


@pytest.mark.parametrize("id", ["dan", 3, ("ann", 7), ["ann"], None])
def test_unknown_id_raises_and_lists_known_ids(found, id):
    with pytest.raises(InputError, match=r"no factual has the id .*'ann', 'bob', 'cis'"):
        found.sentence(id)


def test_unknown_rank_raises_and_lists_known_ranks(found):
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
    """Return a result of sparse answers, with plausibilities below, at and above a floor of 0.05."""
    measures = found.measures.assign(plausibility=[0.021, 0.6, 0.05])
    return replace(found, measures=measures, run=Run(settings={"sparse": True, "floor": floor}))


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_rows_below_the_floor_are_marked(found):
    sparse = sparse_of(found, 0.05)
    assert sparse.below_floor().tolist() == [True, False, False]
    plain = found.sentence("ann")
    assert sparse.sentence("ann") == plain + (
        " Use with caution: 2.1% of the real rows are at least as unusual as this one; 5% were required."
    )
    assert sparse.sentence("bob") == found.sentence("bob")
    line = "rows below the floor of plausibility (0.05): 1"
    assert line in repr(sparse).splitlines()
    assert line in sparse._repr_html_()
    assert sparse.summary()["value"]["rows below the floor of plausibility"] == 1
    page = sparse.to_html()
    assert "Use with caution" in page
    assert "answers less plausible than required" in page
    head, _, first, *_ = Cells(sparse._repr_html_()).rows
    assert [cell[0] for cell in head[:5]] == ["id, → rank", "prediction", "changes", "distance", "plausibility"]
    assert [cell[0] for cell in first[:5]] == ["→ 1", "0.62", "2", "0.3", "0.021"]


def test_row_at_the_floor_is_not_below_it(found):
    assert sparse_of(found, 0.1 / 2 + 1e-17).below_floor().tolist() == [True, False, False]
    assert sparse_of(found, 0.05 + 1e-12).below_floor().tolist() == [True, False, False], "rounding"
    assert sparse_of(found, 0.051).below_floor().tolist() == [True, False, True]
    none = replace(sparse_of(found, 0.05), measures=found.measures.assign(plausibility=0.0004))
    assert "Use with caution: hardly any of the real rows" in none.sentence("ann")


def test_output_without_a_floor_does_not_mention_it(found):
    plain = replace(sparse_of(found, 0.05), run=Run(settings={"sparse": False, "floor": 0.05}))
    for result in (found, plain):
        assert not result.below_floor().any()
        assert "floor" not in repr(result) + result._repr_html_() + "".join(result.summary().index)
        assert "care" not in result.sentence("ann")


def test_to_frame(found):
    table = found.to_frame()
    assert list(table.columns) == ["id", "rank", *COLUMNS, "prediction", "L0", "gower", "gower_sum"]
    assert list(table["id"]) == ["ann", "ann", "bob"]
    assert list(table["salary"]) == [72_000, 90_000, 20_000]
    assert table["home"].dtype == found.frame["home"].dtype


def test_to_frame_keeps_features_named_like_measures():
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


def test_no_counterfactual_found(found):
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


def test_inconsistent_tables_raise(found):
    parts = {name: getattr(found, name) for name in found.__dataclass_fields__}
    with pytest.raises(InputError, match="measures and frame"):
        Counterfactuals(**{**parts, "measures": found.measures.iloc[::-1]})
    with pytest.raises(InputError, match="factual_predictions and factuals"):
        Counterfactuals(**{**parts, "factual_predictions": found.factual_predictions.iloc[:1]})
    one = {"factuals": found.factuals.iloc[1:], "factual_predictions": found.factual_predictions.iloc[1:]}
    with pytest.raises(InputError, match="exactly once"):
        Counterfactuals(**{**parts, **one})


def test_result_is_frozen_and_can_be_pickled(found):
    with pytest.raises(AttributeError):
        found.decision = "other"
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(found)).changes(), found.changes())


def test_record_of_the_run(found):
    assert found.run.seconds == 3.5
    assert found.run.floor is None
    assert sparse_of(found, 0.1).run.floor == 0.1
    with pytest.raises(AttributeError):
        found.run.timings = {}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mesures", "has no 'mesures'; did you mean 'measures'?"),
        ("_anything", "has no '_anything'"),
    ],
)
def test_unknown_attribute_suggests_a_known_one(found, name, message):
    with pytest.raises(AttributeError, match=re.escape(message)):
        getattr(found, name)


def test_reasons_are_computed_on_demand(found):
    queried = []

    def analyse_draws(places):
        queried.extend(places)
        table = pd.DataFrame({"drawn": 1000, "would_help": "4000 draws"}, index=found.factuals.index[places])
        return table, found.factuals.iloc[places]

    plain = found.why_unexplained("cis")
    assert plain.to_dict() == {"reason": "no valid row among 1000 <samples>", "prediction": 0.1}
    live = replace(found, draws=pd.Series(1000, index=found.factuals.index), _questions=Questions(why=analyse_draws))
    reasons = live.why_unexplained("cis")
    assert reasons.pop("nearest_row").equals(found.factuals.loc["cis"])
    assert reasons.to_dict() == {**plain.to_dict(), "drawn": 1000, "would_help": "4000 draws"}
    assert queried == [2]
    known = replace(live, unexplained=live.unexplained.assign(would_help="patience"))
    assert known.why_unexplained("cis")["would_help"] == "patience"
    assert queried == [2]
    with pytest.raises(InputError, match=r"factual 'ann' has a counterfactual; see sentence\('ann'\)"):
        live.why_unexplained("ann")
    with pytest.raises(InputError, match="no reason was recorded for 'cis'; explain again"):
        replace(found, unexplained=found.unexplained.iloc[:0]).why_unexplained("cis")


def test_standard_errors_are_computed_on_demand(found):
    with pytest.raises(InputError, match="this result was loaded from a file or built by hand"):
        found.standard_errors()
    live = replace(found, _questions=Questions(standard_errors=lambda: {"L0": 0.25}))
    assert live.standard_errors().to_dict() == {"L0": 0.25}
    assert "se L0" not in live.summary().index
    assert live.summary(standard_errors=True)["value"]["se L0"] == 0.25


def test_reasons_are_counted_by_kind_in_short_lines():
    X = mcce.datasets.load_loans(400).X
    rich = mcce.MCCE(lambda rows: rows["salary"] > 120_000, decision=True, fixed=["age", "sex"], random_state=1).fit(X)
    bounds = [mcce.allow("loan_amount", low=10_000, direction="decrease"), mcce.allow("savings", step=100)]
    found = rich.explain(X.head(60), n_samples=20, constraints=bounds, max_changes=2)
    assert found.unexplained["reason"].nunique() > 20
    assert found.unexplained["reason"].str.len().max() > 150
    summary = found.summary()["value"]
    counts = summary[summary.index.str.startswith("unexplained: ")]
    assert len(counts) <= 5
    assert counts.sum() == summary["unexplained"] == len(found.unexplained)
    assert counts["unexplained: nothing can meet its constraints"] > 1
    assert counts.index.str.len().max() <= 100
    lines = [line for line in repr(found).splitlines() if line.startswith("not explained, ")]
    assert len(lines) == len(counts)
    assert max(map(len, lines)) <= 160
