"""Pickled objects that hold R objects, in processes where R has not been started."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import mcce
from r_bridge import MiceSampler, PartyCtreeSampler, RModel, RpartSampler, RSampler
from tests.marks import nightly_but

AIR = mcce.datasets.load_airquality(dropna=True)
LM = "function(x, y) lm(y ~ ., cbind(x, y = y))"
LM_DRAW = "function(object, newdata, u) predict(object, newdata) + sigma(object) * qnorm(u)"
SAMPLERS = {
    "rpart": RpartSampler(),
    "party": PartyCtreeSampler(),
    "stats": RSampler(LM, draw=LM_DRAW),
    "mice": MiceSampler("pmm"),
}
MODELS = {
    "stats": "lm(Ozone ~ ., data)",
    "rpart": "rpart::rpart(Ozone ~ ., data)",
    "party": "party::ctree(Ozone ~ ., data)",
}


def in_a_fresh_process(pickled, code):
    """Run code with the unpickled object as `held`, and return the array that it prints as bytes."""
    start = "import pickle, sys, warnings; warnings.simplefilter('error'); held = pickle.load(sys.stdin.buffer); "
    done = subprocess.run(
        [sys.executable, "-c", f"{start}sys.stdout.buffer.write(({code}).tobytes())"],
        input=pickled,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, (done.returncode, done.stderr.decode()[-2000:])
    return np.frombuffer(done.stdout)


def fitted_chain(package):
    return mcce.ChainModel(sampler={"Temp": SAMPLERS[package], "*": "cart"}, fixed=["Month"], random_state=1).fit(AIR.X)


def ozone(package="stats"):
    return RModel.from_code(MODELS[package], AIR.X.assign(Ozone=AIR.y))


def add_wind(rows):
    return rows["Temp"].to_numpy(float) + rows["Wind"].to_numpy(float)


@pytest.mark.slow
@pytest.mark.parametrize("package", nightly_but(list(SAMPLERS), "rpart"))
def test_models_and_chains_in_a_process_without_r(r, need, package):
    need(package)
    models = [ozone(package)] if package in MODELS else []
    chain, rows, given = fitted_chain(package), AIR.X.head(20), AIR.X[["Month"]].head(3)
    code = (
        "__import__('numpy').concatenate([model.predict(held[1]) for model in held[0]]"
        " + [held[2].sample(given=held[3], n=5).to_numpy(float).ravel()])"
    )
    found = in_a_fresh_process(pickle.dumps((models, rows, chain, given)), code)
    expected = [model.predict(rows) for model in models] + [chain.sample(given=given, n=5).to_numpy(float).ravel()]
    np.testing.assert_array_equal(found, np.concatenate(expected))


@pytest.mark.nightly
@pytest.mark.parametrize("package", [*SAMPLERS, "RModel"])
def test_batches_by_two_processes_equal_one(r, need, package, tmp_path):
    if package == "RModel":
        model, sampler, decision = ozone(), "cart", (-np.inf, 30.0)
    else:
        need(package)
        model, sampler, decision = add_wind, {"Temp": SAMPLERS[package], "*": "cart"}, (-np.inf, 80.0)
    explainer = mcce.MCCE(model, decision=decision, fixed=["Month"], sampler=sampler, random_state=1).fit(AIR.X)
    rows = AIR.X.tail(8).reset_index(names="id")
    tables = []
    for n_jobs in (1, 2):
        out = tmp_path / str(n_jobs)
        explainer.explain_batches(rows, out, id="id", batch_size=4, n_samples=20, n_jobs=n_jobs)
        tables.append(pd.read_parquet(out / "counterfactuals"))
    assert len(tables[0])
    pd.testing.assert_frame_equal(*tables)


@pytest.mark.slow
def test_unpickling_without_r_reports_what_is_missing(r):
    code = (
        "import pickle, sys; sys.modules['rpy2'] = None; import r_bridge\n"
        "try: pickle.load(sys.stdin.buffer)\n"
        "except r_bridge.RBridgeError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(ozone()), capture_output=True, timeout=120, check=True
    )
    assert b"the bridge to R needs the Python package rpy2" in done.stdout
