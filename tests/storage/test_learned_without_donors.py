"""Files without training rows, where the samplers allow it; and R's trees as arrays."""

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import InputError, SamplerError
from tests.marks import nightly
from tests.storage import good
from tests.storage.spoiling import read_entries

COEFFICIENTS = {"paid": "logreg", 7: "polr", "job": "polyreg", "*": "norm"}


@pytest.mark.parametrize("missing", [False, True])
def test_coefficients_are_stored_without_donors(missing, tmp_path):
    X = good.table(missing=missing)
    chain = mcce.ChainModel(sampler=COEFFICIENTS, fixed=["sex"], random_state=1).fit(X)
    chain.save(tmp_path / "chain.mcce", donors="none")
    again = mcce.ChainModel.load(tmp_path / "chain.mcce")
    given = X[["sex"]].head(6)
    pd.testing.assert_frame_equal(again.sample(9, given=given), chain.sample(9, given=given))
    with pytest.raises(InputError, match=r"saved with donors='none', without the training rows .* by `given`"):
        again.sample(5)
    with pytest.raises(SamplerError, match='saved with donors="none", and its density is read from training values'):
        again.log_density(X)
    assert chain.log_density(X).notna().all()


def test_explainer_without_donors_holds_no_training_row(tmp_path):
    X = good.table(missing=False)
    X["n"] = X["n"].astype(float) + np.linspace(0.001, 0.002, len(X))  # numbers that would be found in the file
    made = mcce.MCCE(good.accepted, sampler=COEFFICIENTS, fixed=["sex"], random_state=1).fit(X)
    made.save(tmp_path / "bare.mcce", donors="none")
    made.save(tmp_path / "full.mcce")
    inner = X["n"].sort_values().to_numpy()[1:-1]
    held = {}
    for name in ("bare", "full"):
        parts = read_entries((tmp_path / f"{name}.mcce").read_bytes()).values()
        forms = [(value.tobytes(), repr(float(value)).encode()) for value in inner]
        held[name] = sum(any(form in part for form in each for part in parts) for each in forms)
    assert (held["bare"], held["full"] > 16) == (0, True)
    again = mcce.MCCE.load(tmp_path / "bare.mcce", model=good.accepted)
    factuals = good.table(12, missing=False, seed=4)
    factuals["n"] = factuals["n"].astype(float)
    pd.testing.assert_frame_equal(again.explain(factuals).frame, made.explain(factuals).frame)
    with pytest.raises(InputError, match="training rows are not stored with an explainer"):
        again.explain(factuals, sparse=True)


@pytest.mark.parametrize(
    "name", ["cart", "ctree", "forest", "marginal", "pmm", "parametric", "copula", "empirical", *nightly("boosting")]
)
def test_samplers_that_draw_training_values_are_not_stored_without_them(name, tmp_path):
    with pytest.raises(SamplerError, match=r"donors='none' is not possible for .*draws training values.*or save with"):
        good.chain(name).save(tmp_path / "chain.mcce", donors="none")
    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
def test_trees_of_r_are_arrays(tmp_path):
    pytest.importorskip("rpy2")
    r_bridge = pytest.importorskip("r_bridge")
    X = good.table(80)
    for sampler in (r_bridge.RpartSampler(min_split=6, min_leaf=2, cp=0), r_bridge.PartyCtreeSampler(mincriterion=0.5)):
        try:
            chain = mcce.ChainModel(sampler=sampler, fixed=["sex"], random_state=1).fit(X)
        except mcce.MCCEError as error:
            pytest.skip(f"R or its package is not at hand: {error}")
        chain.save(tmp_path / "chain.mcce")
        again = mcce.ChainModel.load(tmp_path / "chain.mcce")
        pd.testing.assert_frame_equal(again.sample(80), chain.sample(80))
