"""Twenty recorded answers of the published method, byte for byte."""

import importlib.util
import io
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "fixtures" / "frozen"
spec = importlib.util.spec_from_file_location("make_frozen", FOLDER / "make_frozen.py")
make_frozen = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_frozen)


@pytest.mark.parametrize("name", sorted(make_frozen.CALLS))
def test_answers_equal_the_recorded_ones(name):
    frame, measures = make_frozen.answer(name)
    for table, file in ((frame, f"{name}.csv"), (measures[["L0", "gower", "prediction"]], f"{name}_measures.csv")):
        text = io.StringIO()
        table.to_csv(text, float_format="%.17g")
        assert text.getvalue() == (FOLDER / file).read_text()


def test_every_recorded_file_belongs_to_a_call():
    recorded = {path.name.removesuffix(".csv").removesuffix("_measures") for path in FOLDER.glob("*.csv")}
    assert recorded == set(make_frozen.CALLS)
