"""R in this process, and the messages without R."""

import logging
import os
import platform
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest

import r_bridge
from mcce import MCCEError
from mcce.rng.r import fill_fused_quantiles, fill_quantiles
from r_bridge import RBridgeError, RWarning, versions


def run(code, **environment):
    """Run Python code in a separate process."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=120,
        check=False,
    )


@pytest.mark.slow
def test_import_needs_no_rpy2_and_its_absence_is_reported():
    code = "import sys, mcce; assert 'rpy2' not in sys.modules; import r_bridge; assert 'rpy2' not in sys.modules; "
    blocked = "sys.modules['rpy2'] = None; "
    done = run(code + blocked + "assert not r_bridge.r_is_available(); r_bridge.versions()")
    assert done.returncode == 1
    assert "AssertionError" not in done.stderr
    assert "RBridgeError: the bridge to R needs the Python package rpy2" in done.stderr
    assert "pip install 'mcce[r]'" in done.stderr


@pytest.mark.slow
def test_missing_r_is_reported_with_its_source(tmp_path):
    broken = tmp_path / "rpy2" / "__init__.py"
    broken.parent.mkdir()
    broken.write_text("")
    broken.with_name("rinterface.py").write_text("raise ValueError('openrlib.R_HOME cannot be None.')")
    done = run("import r_bridge; r_bridge.versions()", PYTHONPATH=str(tmp_path) + os.pathsep + os.getcwd())
    assert done.returncode == 1
    assert "rpy2 is installed but finds no R it can use (openrlib.R_HOME cannot be None)" in done.stderr
    assert "r-base-dev" in done.stderr


@pytest.mark.slow
def test_r_outside_the_path_is_reported_as_missing(r, tmp_path):
    code = "import r_bridge; assert not r_bridge.r_is_available(); r_bridge.versions()"
    done = run(code, PATH=str(tmp_path), R_HOME="")
    assert done.returncode == 1
    assert "AssertionError" not in done.stderr
    assert "RBridgeError: rpy2 is installed but finds no R: there is no `R` on the PATH, and R_HOME" in done.stderr
    assert "does not start" not in done.stderr


def test_versions_and_packages(r):
    found = versions()
    assert found["R"].count(".") == 2
    assert "rpy2" in found
    with pytest.raises(RBridgeError, match=r"RModel needs R's package nopackage, .* install.packages\(\"nopackage\"\)"):
        r.need("nopackage", "RModel")


def test_error_of_r_is_converted(r):
    with pytest.raises(RBridgeError, match="R refused, in f: no such thing") as caught:
        r.call("evaluate", "f <- function() stop('no such thing'); f()", None)
    assert isinstance(caught.value, MCCEError)


def test_warnings_of_r_are_python_warnings(r):
    with pytest.warns(RWarning, match="R warns: beware"):
        value = r.call("evaluate", "warning('beware'); 7L", None)
    assert value[0] == 7


def test_output_of_r_is_logged(r, capfd, caplog):
    with caplog.at_level(logging.INFO, "r_bridge"):
        r.call("evaluate", "print(1:3); cat('hello\\n'); message('psst'); 1", None)
    assert caplog.messages == ["[1] 1 2 3", "hello", "psst"]
    shown = capfd.readouterr()
    assert shown.out == shown.err == ""


def test_other_threads_raise(r):
    caught = []

    def work():
        try:
            r_bridge.versions()
        except RBridgeError as error:
            caught.append(str(error))

    thread = threading.Thread(target=work, name="worker")
    thread.start()
    thread.join()
    assert "from the thread 'worker', and R has a single thread" in caught[0]


def test_global_environment_and_random_state_of_r_are_unchanged(r):
    names = r.strings(r.call("evaluate", "ls(globalenv(), all.names = TRUE)", None))
    air = pd.DataFrame({"x": np.arange(30.0), "y": np.arange(30.0) ** 2})
    r_bridge.RModel.from_code("lm(y ~ x, data = data)", air).predict(air)
    assert r.strings(r.call("evaluate", "ls(globalenv(), all.names = TRUE)", None)) == names


def test_callback_passes_r_objects(r):
    call = r.call("evaluate", "function(f) f(c(1, 2.5))", None)
    with r.callback(lambda v: r.vector([2.0 * x for x in v])) as double:
        assert list(call(double)) == [2.0, 5.0]
    kept = r.call("evaluate", "function(f, x) try(f(x), silent = TRUE)", None)
    assert "is valid only during the call" in kept(double, r.vector(1.0))[0]


def test_exception_in_a_callback_is_raised(r):
    def fail(v):
        raise KeyError("inside Python")

    with r.callback(fail) as failing, pytest.raises(KeyError, match="inside Python"):
        r.call("evaluate", "data(1); 'not reached'", failing)


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
    with pytest.raises(RBridgeError, match="cannot be written as a vector of R"):
        r.vector([1, "a", None])


def test_python_started_by_r_is_this_one(r):
    """R lists its library folders in the environment, which may include those of another Python."""
    said = subprocess.run([sys.executable, "-c", "import sys; print(sys.version)"], capture_output=True, text=True)
    assert said.stdout.strip() == sys.version


@pytest.mark.parametrize("rounding", ["separate", "fused", "other"])
def test_compilation_of_r_is_detected_by_its_quantiles(r, monkeypatch, rounding):
    fill = fill_fused_quantiles if rounding == "fused" else fill_quantiles

    def answer(name, p):
        assert name == "normal_quantiles"
        found = np.empty(p.size)
        fill(p, found)
        return r.vector(np.nextafter(found, 0.0) if rounding == "other" else found)

    monkeypatch.setattr(r, "call", answer)
    assert r_bridge.arithmetic() == rounding


def test_this_r_is_a_known_build(r):
    assert r_bridge.arithmetic() == ("fused" if platform.machine() in ("aarch64", "arm64") else "separate")
