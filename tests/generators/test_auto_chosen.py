"""Texts and tables of the chosen samplers."""

import math

from mcce.generators.auto import Choice, FeatureChoice, Verdict

CHEAP = Verdict("cheap", -2.0, 0.1, 0.5, 0.1)
NEAR = Verdict("near", -1.52, 0.1, 0.02, 0.03)
BEST = Verdict("best", -1.5, 0.1, 0.0, 0.0)
SLOW = Verdict("slow", -9.0, 0.5, 7.0, 0.5, "far behind after the first fold")
OUT = Verdict("out", note="it is ordered")


def choice(sampler, *verdicts, feature="salary"):
    return FeatureChoice(feature, sampler, "log score", 500, 5, verdicts)


def test_reason_names_the_compared_candidates():
    cheaper = "it is the cheapest within one standard error of best, whose held-out log score is 0.02 above (se 0.03)"
    assert choice("near", CHEAP, NEAR, BEST, SLOW, OUT).why == cheaper
    found = choice("best", CHEAP, BEST, OUT)
    assert found.sentence == "salary: best, because its held-out log score is 0.5 above that of cheap (se 0.1)"
    assert choice("best", BEST, SLOW).why == "its held-out log score is 7 above that of slow (se 0.5)"
    assert choice("best", OUT, BEST).why == "no other candidate could be scored"
    by_draws = FeatureChoice("salary", "best", "CRPS", 500, 5, (CHEAP, BEST))
    assert by_draws.why == "its held-out CRPS is 0.5 below that of cheap (se 0.1)"


def test_tables_list_every_candidate_with_its_scores():
    found = Choice((choice("near", CHEAP, NEAR, BEST, SLOW, OUT), choice("best", OUT, BEST, feature=3)))
    assert found.table["sampler"].to_dict() == {"salary": "near", 3: "best"}
    assert found.table.loc["salary", ["behind", "se", "best"]].tolist() == [0.02, 0.03, "best"]
    scores = found.scores.loc["salary"]
    assert scores["within"].tolist() == [False, True, True, False, False]
    assert scores["chosen"].tolist() == [False, True, False, False, False]
    assert math.isnan(scores.loc["out", "score"])
    assert found.left_out.index.tolist() == [("salary", "out"), (3, "out")]
    assert found.left_out["note"].unique().tolist() == ["it is ordered"]


def test_repr_shows_choices_and_reasons():
    text = repr(Choice((choice("near", CHEAP, NEAR, BEST),)))
    assert text.startswith(
        "The cheapest sampler within one standard error of the best, by 500 held-out rows in 5 folds"
    )
    assert "\n  salary: near, because it is the cheapest within one standard error of best, whose" in text
    assert "whose held-out log score is 0.02 above" in Choice((choice("near", CHEAP, NEAR, BEST),))._repr_html_()
