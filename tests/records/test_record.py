"""The contents of a record, and what it must not contain."""

import json

import jsonschema
import pandas as pd
import pytest

import mcce
from mcce import InputError
from tests.records.problem import explainer, found, table


def test_records_satisfy_the_published_schema():
    schema = mcce.records.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for who in found().factuals.index:
        validator.validate(found().record(who, previous="0" * 64, reviewed_by="Kari", reviewed_at="2026-11-18"))
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({**found().record("a"), "extra": 1})


def test_record_holds_the_factual_its_decision_and_every_answer():
    result = found()
    who = next(iter(result))
    record = result.record(who, reviewed_by="Kari")
    row = result.factuals.loc[who]
    assert record["factual"]["income"] == row["income"]
    assert record["factual"]["since"] == row["since"].isoformat()
    assert record["factual"]["job"] == row["job"]
    assert record["decision"]["score"] == pytest.approx(result.factual_predictions[who], rel=1e-8)
    assert record["decision"]["reached"] is False
    assert [answer["rank"] for answer in record["answers"]] == [1, 2]
    for answer in record["answers"]:
        place = who, answer["rank"]
        assert answer["measures"]["gower"] == pytest.approx(result.measures.loc[place, "gower"], rel=1e-8)
        assert answer["values"]["income"] == result.frame.loc[place, "income"]
        changed = {each["feature"] for each in answer["changes"]}
        assert changed == {name for name in record["factual"] if answer["values"][name] != record["factual"][name]}
    assert record["review"] == {"by": "Kari", "at": None}
    assert (record["seed"], record["fixed"], record["constraints"]) == (1, ["age"], ["debt <= was(debt) + 30"])
    assert record["call"]["arguments"]["n_samples"] == 50
    assert {"Python", "mcce", "numpy", "processor"} <= {*record["versions"]}


def test_accepted_and_unreadable_rows_have_records():
    rows = pd.concat([table().nlargest(1, "income"), table().head(1).assign(job="astronaut")]).set_axis(["rich", "odd"])
    with pytest.warns(mcce.MCCEWarning, match="a level that is not known"):
        result = explainer().explain(rows.astype({"job": object}), n_samples=20)
    rich, odd = (result.record(who) for who in ("rich", "odd"))
    assert rich["decision"]["reached"] is True
    assert rich["answers"] == []
    assert (odd["decision"]["reached"], odd["decision"]["score"], odd["factual"]["job"]) == (None, None, "astronaut")
    assert "astronaut" in odd["unexplained"]


def test_record_contains_no_training_row():
    """The factuals are new rows; the values of no training row occur together in the documents."""
    new = table().head(5).assign(income=lambda rows: rows["income"] + 0.0005)
    result = explainer().explain(new, n_samples=50, constraints=[mcce.no_copies()])
    training = {tuple(map(str, row)) for row in table().itertuples(index=False)}

    def rows_in(value):
        if isinstance(value, dict):
            yield value
            for each in value.values():
                yield from rows_in(each)
        elif isinstance(value, list):
            for each in value:
                yield from rows_in(each)

    held = 0
    for who in new.index:
        for row in rows_in(json.loads(mcce.records.canonical(result.record(who)))):
            if {*table().columns} <= {*row}:
                held += 1
                frame = pd.DataFrame([row])[list(table().columns)].assign(since=pd.Timestamp(row["since"]))
                assert tuple(map(str, next(frame.itertuples(index=False)))) not in training
            else:  # no other part holds the values of a row
                assert sum(name in row for name in table().columns) == 0
    assert held == 5 + len(result)


def test_record_excludes_constraints_of_other_factuals():
    rows = table().head(2).set_axis(["mine", "theirs"])
    secret = mcce.only({"mine": ["income", "owns"], "theirs": ["income"]})
    result = explainer().explain(rows, n_samples=20, constraints=[secret])
    text = mcce.records.canonical(result.record("mine")).decode()
    assert "theirs" not in text
    assert "mine" in text


def test_loaded_result_has_no_origin(tmp_path):
    found().save(tmp_path / "found.mcce")
    with pytest.raises(InputError, match=r"explain again to write records"):
        mcce.Counterfactuals.load(tmp_path / "found.mcce").record("a")


def test_invalid_arguments_are_named(tmp_path):
    with pytest.raises(InputError, match="reviewed_at is given without reviewed_by"):
        found().record("a", reviewed_at="today")
    with pytest.raises(InputError, match="no factual has the id 'z'"):
        found().record("z")
    (tmp_path / "model").write_bytes(b"m")
    with pytest.raises(InputError, match="files names 'tree'"):
        found().write_records(tmp_path / "records", files={"tree": tmp_path / "model"})
