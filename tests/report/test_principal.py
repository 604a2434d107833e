"""Principal reasons in words."""

import numpy as np
import pandas as pd
import pytest

from mcce.report.languages import available_languages, read_texts
from mcce.report.names import Names
from mcce.report.principal import Reasons, reasons_table, repaired_by

OWN = pd.DataFrame({"age": [30], "salary": [40_600], "savings": [0], "home": ["rent"], "shoes": [43]})
NAMES = Names(
    units={"salary": "EUR"}, reasons={"salary": {"code": "R1", "text": "Income is too low"}, "home": "Renting"}
)


def found() -> pd.DataFrame:
    """Return the findings for the features of one rejection."""
    return pd.DataFrame(
        {
            "share": [0.1, 0.0, 0.0, 0.0],
            "effective_draws": 100.0,
            "shapley": [0.3, 0.2, 0.1, -0.1],
            "standard_error": 0.01,
            "repair": ["alone", "none", "no effect", "together"],
        },
        index=pd.Index(["salary", "savings", "shoes", "home"], dtype=object),
    )


def test_reasons_mattered_and_can_be_repaired():
    table = reasons_table(found(), OWN, ["age"], NAMES, 4)
    assert table.index.tolist() == ["salary"]
    assert table.loc["salary", ["value", "code", "text"]].tolist() == [40_600, "R1", "Income is too low"]
    every = reasons_table(found(), OWN, ["age"], NAMES, None)
    assert every["repair"].tolist() == ["alone", "none", "no effect", "together", "fixed"]
    assert every["text"].tolist() == ["Income is too low", "savings 0", "shoes 43", "Renting", "age 30"]
    assert every.loc["age", ["shapley", "share"]].isna().all()


def test_at_most_n_reasons_are_stated():
    table = found().assign(repair="alone", shapley=0.1)
    assert reasons_table(table, OWN, [], Names(), 2).index.tolist() == ["salary", "savings"]


def test_answer_repairs_the_reasons_it_needs():
    repair = pd.Series({"salary": "none", "savings": "none", "home": "together", "shoes": "no effect"})
    changes = pd.DataFrame({"enough": [True, False], "needed": [True, True]}, index=["salary", "savings"])
    assert repaired_by(repair, changes).tolist() == ["alone", "together", "together", "no effect"]


@pytest.mark.parametrize("language", available_languages())
def test_every_language_states_reasons_and_unchangeable_features(language):
    texts = read_texts(language)
    reasons = Reasons.from_table(reasons_table(found(), OWN, ["age"], NAMES, None), NAMES, texts)
    assert len(reasons.stated) == 1
    assert "Income is too low" in reasons.stated[0]
    assert "R1" in reasons.stated[0]
    assert reasons.unchangeable == ("savings",)
    first, others = reasons.sentences(texts)
    assert first.endswith(":")
    assert "avings" in others
    nothing = Reasons((), ())
    assert nothing.sentences(texts) == (texts.fill("reasons.none"), "")


def test_reason_without_a_text_has_feature_and_value():
    table = found().assign(repair="alone", shapley=[np.nan, 0.2, 0.1, 0.0])
    reasons = Reasons.from_table(reasons_table(table, OWN, [], Names(), None), Names(), read_texts())
    assert reasons.stated == ("savings: 0", "shoes: 43")
