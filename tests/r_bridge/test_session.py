"""R in this process, the messages without R, and objects that hold R objects in other processes."""

import logging
import pickle
import subprocess
import sys
import threading
import types

import numpy as np
import pytest

import mcce
from r_bridge import RError, RModel, RSampler, RWarning, r_is_available, versions
from r_bridge.session import Session, _start_r


def broken(reason):
    """Return a stand-in for rpy2.rinterface whose R does not start."""

    def initr():
        raise ValueError(f"{reason}\nsecond line")

    return types.SimpleNamespace(initr=initr)


def test_missing_parts_are_named_with_their_source(r, monkeypatch):
    monkeypatch.setattr("rpy2.rinterface", broken("no libR.so"))
    with pytest.raises(RError, match=r"R does not start: no libR.so\. Does `R` start in a shell"):
        _start_r()
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("R_HOME", raising=False)
    with pytest.raises(RError, match=r"finds no R: there is no `R` on the PATH, and R_HOME is not set\. Install R"):
        _start_r()
    monkeypatch.setitem(sys.modules, "rpy2", None)
    with pytest.raises(RError, match=r"needs the Python package rpy2.*pip install 'mcce\[r\]', with R 4.0 or newer"):
        _start_r()
    monkeypatch.setattr("r_bridge.session._session", None)
    assert not r_is_available()


def test_versions_and_packages(r, monkeypatch):
    assert versions()["R"].count(".") == 2
    assert "rpy2" in versions()
    with pytest.raises(RError, match=r"RModel needs R's package nopackage, .* install.packages\(\"nopackage\"\)"):
        r.need("nopackage", "RModel")
    monkeypatch.setattr("r_bridge.session.OLDEST", (99, 0))
    with pytest.raises(RError, match=r"R is version \d.*, and the bridge needs 99.0 or newer. Install R"):
        Session(r.ri)


def test_errors_warnings_and_output_of_r(r, capfd, caplog):
    with pytest.raises(RError, match="R stopped in f: no such thing"):
        r.evaluate("f <- function() stop('no such thing'); f()")
    with pytest.warns(RWarning, match="R warns: beware"):
        assert r.evaluate("warning('beware'); 7L")[0] == 7
    with caplog.at_level(logging.INFO, "r_bridge"):
        r.evaluate("print(1:3); cat('hello\\n'); message('psst'); 1")
    assert caplog.messages == ["[1] 1 2 3", "hello", "psst"]
    assert capfd.readouterr() == ("", "")


def test_other_threads_raise(r):
    caught = []

    def work():
        try:
            versions()
        except RError as error:
            caught.append(str(error))

    thread = threading.Thread(target=work, name="worker")
    thread.start()
    thread.join()
    assert "from the thread 'worker', and R has a single thread" in caught[0]


def test_callbacks(r):
    call = r.evaluate("function(f) f(c(1, 2.5))")
    with r.callback(lambda v: r.vector([2.0 * x for x in v])) as double:
        assert list(call(double)) == [2.0, 5.0]
    later = r.evaluate("function(f, x) try(f(x), silent = TRUE)")
    assert "is valid only during the call" in later(double, r.vector(1.0))[0]

    def fail(v):
        raise KeyError("inside Python")

    with r.callback(fail) as failing, pytest.raises(KeyError, match="inside Python"):
        r.evaluate("data(1); 'not reached'", failing)


@pytest.mark.parametrize("value", [True, 3, -2.5, "text", [1, 2], ["a", "b"], [True, False], np.arange(3), np.ones(2)])
def test_plain_values_are_converted(r, value):
    expected = value.tolist() if isinstance(value, np.ndarray) else value
    assert list(r.vector(value)) == (expected if isinstance(expected, list) else [expected])


def test_none_dicts_and_unsupported_values(r):
    assert r.vector(None) is r.ri.NULL
    assert {name: list(part) for name, part in r.parts(r.vector({"a": 1, "b": ["x"]})).items()} == {
        "a": [1],
        "b": ["x"],
    }
    assert r.numbers(r.vector([2**40])).tolist() == [2.0**40]
    with pytest.raises(RError, match="cannot be written as a vector of R"):
        r.vector([1, "a", None])
    with pytest.raises(mcce.exceptions.InputError, match="which R cannot hold; replace it"):
        r.character(["a\0b"])


def test_python_started_by_r_is_this_one(r):
    """R lists its library folders in the environment, which may include those of another Python."""
    said = subprocess.run([sys.executable, "-c", "import sys; print(sys.version)"], capture_output=True, text=True)
    assert said.stdout.strip() == sys.version


@pytest.mark.slow
def test_models_and_chains_in_a_process_without_r(r):
    """Importing the bridge starts nothing, and reading a pickle starts R."""
    air = mcce.datasets.load_airquality(dropna=True)
    model = RModel.from_code("rpart::rpart(Ozone ~ ., data)", air.X.assign(Ozone=air.y))
    lm = RSampler(
        "function(x, y) lm(y ~ ., cbind(x, y = y))",
        "function(object, newdata, u) predict(object, newdata) + sigma(object) * qnorm(u)",
    )
    chain = mcce.ChainModel(sampler={"Temp": lm}, fixed=["Month"], random_state=1).fit(air.X)
    rows, given = air.X.head(20), air.X[["Month"]].head(3)
    code = """if True:
        import pickle, sys, numpy as np, r_bridge
        assert "rpy2" not in sys.modules
        model, rows, chain, given = pickle.load(sys.stdin.buffer)
        answers = np.concatenate([model.predict(rows), chain.sample(5, given=given).to_numpy(float).ravel()])
        sys.stdout.buffer.write(answers.tobytes())"""
    pickled, command = pickle.dumps((model, rows, chain, given)), [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, input=pickled, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    expected = [model.predict(rows), chain.sample(5, given=given).to_numpy(float).ravel()]
    np.testing.assert_array_equal(np.frombuffer(done.stdout), np.concatenate(expected))
