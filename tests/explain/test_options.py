"""Options without effect raise and name what is missing; given options are never overridden."""

from __future__ import annotations

import pandas as pd
import pytest

import mcce
from mcce import InputError
from tests.explainer.problem import DENIED, fitted

FEW = DENIED.iloc[:8]


@pytest.fixture(scope="module")
def explainer():
    return fitted()


WITHOUT_EFFECT = [
    ({"floor": 0.1}, "floor=0.1 has no effect without sparse=True; add it, or leave floor out"),
    ({"floor": 0.05}, "floor=0.05 has no effect without sparse=True"),
    ({"caution": 0.0}, "caution=0.0 has no effect without sparse=True; add it, or leave caution out"),
    ({"diverse": True}, "diverse=True has no effect on a single counterfactual; set n_counterfactuals to 2 or more"),
    (
        {"sparse": True, "caution": 1.0, "measures": ("L0", "gower")},
        "caution=1.0 alters the usual order of candidates, but measures defines another one; leave one of them out",
    ),
    ({"sparse": True, "caution": 0.5, "feature_weights": {"income": 2}}, "but feature_weights defines another one"),
    (
        {"measures": "L0", "feature_weights": {"income": 2}},
        "feature_weights scale distances, and 'L0' is not a distance; add one to measures, for example 'gower'",
    ),
]


@pytest.mark.parametrize(("options", "message"), WITHOUT_EFFECT)
def test_options_without_effect_raise(explainer, options, message, tmp_path):
    candidates = explainer.generate(FEW, n_samples=10)
    for call in (
        lambda: explainer.explain(FEW, n_samples=10, **options),
        lambda: explainer.select(candidates, FEW, **options),
        lambda: explainer.explain_batches(FEW, tmp_path / "out", n_samples=10, **options),
    ):
        with pytest.raises(InputError, match=message):
            call()
    assert not (tmp_path / "out").exists()


def test_crossed_rows_are_not_queried_exhaustively(explainer):
    candidates = explainer.generate(FEW, n_samples=10)
    with pytest.raises(InputError, match=r"exhaustive=True has no effect with sparse=True, .* leave one of them out"):
        explainer.select(candidates, FEW, sparse=True, exhaustive=True)


@pytest.mark.slow
def test_given_measures_define_the_order(explainer):
    """("L0", "gower") given explicitly is used as is: caution does not alter it."""
    options = {"n_samples": 200, "sparse": True}
    given = explainer.explain(DENIED, measures=("L0", "gower"), **options)
    nearest = explainer.explain(DENIED, caution=0.0, **options)
    cautious = explainer.explain(DENIED, **options)
    pd.testing.assert_frame_equal(given.frame, nearest.frame)
    assert not given.frame.equals(cautious.frame)
    assert given.run.settings["caution"] == 0.0


@pytest.mark.parametrize(
    "options",
    [
        {"n_counterfactuals": 2, "measures": ("gower", "L0")},
        {"feature_weights": {"income": 20}},
        {"max_changes": 6, "max_gower": 0.3},
        {"n_counterfactuals": 3, "diverse": True},
        {"robust": mcce.Robust(noise=0.05, share=0.9)},
        {"sparse": True, "floor": 0.2},
        {"sparse": True, "caution": 0.0, "n_counterfactuals": 2},
    ],
    ids=str,
)
def test_select_chooses_the_same_rows_as_explain(explainer, options):
    few = FEW.drop(index="p9") if "floor" in options else FEW  # `explain` draws again for p9, whose step is long
    candidates = explainer.generate(few, n_samples=200)
    selected = explainer.select(candidates, few, **options)
    explained = explainer.explain(few, n_samples=200, **options)
    assert len(selected)
    pd.testing.assert_frame_equal(selected.frame, explained.frame)
    pd.testing.assert_frame_equal(selected.measures, explained.measures)


def test_missing_cell_texts_require_csv(explainer, tmp_path):
    FEW.to_parquet(tmp_path / "rows.parquet")
    for source in (FEW, tmp_path / "rows.parquet"):
        with pytest.raises(InputError, match=r"missing=\['NA'\] has no effect: it applies to CSV files"):
            explainer.explain_batches(source, tmp_path / "out", missing=["NA"])


@pytest.mark.parametrize("flag", ["independent", "sparse", "diverse", "progress"])
def test_flags_that_are_not_boolean_raise(explainer, flag):
    with pytest.raises(InputError, match=f"{flag} is 'yes'; it must be True or False"):
        explainer.explain(FEW, n_samples=10, n_counterfactuals=2, **{flag: "yes"})


def test_flags_of_other_methods_that_are_not_boolean_raise(explainer, tmp_path):
    with pytest.raises(InputError, match="exhaustive is 1; it must be True or False"):
        explainer.select(explainer.generate(FEW, n_samples=10), FEW, exhaustive=1)
    with pytest.raises(InputError, match="independent is 'no'; it must be True or False"):
        explainer.generate(FEW, n_samples=10, independent="no")
    for flag in ("recourse", "skip_bad"):
        with pytest.raises(InputError, match=f"{flag} is 'no'; it must be True or False"):
            explainer.explain_batches(FEW, tmp_path / "out", n_samples=10, **{flag: "no"})
    for flag in ("all", "reasons"):
        letters = mcce.batches.Letters(tmp_path / "letters", **{flag: "no"})
        with pytest.raises(InputError, match=f"{flag} is 'no'; it must be True or False"):
            explainer.explain_batches(FEW, tmp_path / "out", n_samples=10, letters=letters)
