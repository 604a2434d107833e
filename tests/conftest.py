"""Settings for all tests, and the count of live comparisons with R over all test processes."""

import contextlib
import gc
import inspect
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# the small models of the tests gain nothing from OpenMP threads, and wait long for them on a busy machine
os.environ.setdefault("OMP_NUM_THREADS", "1")

# numpy, which reads this setting on import, and the package are not imported here: the process that distributes the
# tests does not need them, and all others wait for it
from tests.browser import Browser, find_browser
from tests.marks import QUICK, THOROUGH, without_nightly

gc.disable()  # until collection ends: it creates thousands of permanent objects

# bytecode is written regardless of the environment: otherwise every process would rewrite all assertions
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# whether a test passes must not depend on how busy the machine is
ANY_MACHINE = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=QUICK, **ANY_MACHINE)
settings.register_profile("thorough", max_examples=THOROUGH, **ANY_MACHINE)

_compared = {}

MANY = 1000  # number of tests in a full run; a smaller selection may not need every kernel

# files with a test that takes many seconds; started last, it would keep one process busy after the others end
LONG = ["trees/test_kernels.py", "test_site.py", "test_docs.py", "fuzz/test_workflows.py", "benchmarks/test_speed.py"]


def pytest_configure(config):
    """Exclude nightly tests except in `-m nightly`, which tries all hypothesis examples; other runs try a few."""
    config.option.markexpr = without_nightly(config.option.markexpr)
    settings.load_profile("thorough" if _is_nightly(config) else "quick")


def pytest_itemcollected(item):
    """Include every hypothesis test in `-m nightly`."""
    if _is_nightly(item.config) and getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        item.add_marker("nightly")


def _is_nightly(config):
    return "nightly" in config.option.markexpr.replace("not nightly", "")


def pytest_collection_modifyitems(items):
    """Sort the long files first."""
    first = {Path(__file__).parent / name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: first.get(item.path, len(LONG)))


def pytest_collection_finish(session):
    """Share the compilation of kernels among the processes on a new machine."""
    gc.freeze()  # exclude the collected objects from garbage collection
    gc.enable()
    run = getattr(session.config, "workerinput", {"workercount": 1})
    if run["workercount"] > 1 and len(session.items) > MANY:
        _compile_beside_others(_beside(run))


def _beside(run):
    return Path(tempfile.gettempdir()) / f"mcce-tests-{run['testrunuid']}"


def _compile_beside_others(folder):
    """Compile the kernels that no other process has started, and wait for the others."""
    from tests.compiling import KERNELS, X

    folder.mkdir(exist_ok=True)
    for compiled in KERNELS:
        with contextlib.suppress(FileExistsError):
            (folder / compiled.__name__).touch(exist_ok=False)
            with contextlib.suppress(Exception):  # the tests report this error
                compiled(X)
            (folder / f"{compiled.__name__}.done").touch()
    until = time.monotonic() + 300
    while len([*folder.glob("*.done")]) < len(KERNELS) and time.monotonic() < until:
        time.sleep(0.1)


@pytest.fixture
def no_pictures(monkeypatch):
    """Omit the slow pictures of a page where a test reads only its text."""
    for place in ("mcce.cli.demo", "mcce.report.html"):  # in this order: importing the first binds a name of the second
        monkeypatch.setattr(f"{place}.as_png", lambda draw, width, height: b"no picture")


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """One Chromium for all tests of a process, each of which opens a separate page."""
    program = find_browser()
    if program is None:
        pytest.skip("no Chromium on this machine; install the system's package chromium")
    one = Browser(program, tmp_path_factory.mktemp("profile"))
    yield one
    one.close()


@pytest.fixture(scope="module")
def few_trees():
    """Let `diagnose` use few trees where their accuracy does not matter."""
    from mcce.diagnostics import discriminator

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(inspect.unwrap(discriminator).__kwdefaults__, "n_trees", 10)
        yield


@pytest.fixture(scope="session")
def compared():
    """Count values that were compared with R; the counts are printed at the end."""
    return _count


def _count(what, n):
    _compared[what] = _compared.get(what, 0) + int(n)


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):  # a worker process
        session.config.workeroutput["compared"] = _compared


@pytest.hookimpl(optionalhook=True)  # set by pytest-xdist
def pytest_testnodedown(node):
    shutil.rmtree(_beside(node.workerinput), ignore_errors=True)
    for what, n in getattr(node, "workeroutput", {}).get("compared", {}).items():
        _count(what, n)


def pytest_terminal_summary(terminalreporter):
    if _compared:
        terminalreporter.write_line("live comparisons with R:")
        for what, n in _compared.items():
            terminalreporter.write_line(f"  {n:>10,}  {what}")
        terminalreporter.write_line(f"  {sum(_compared.values()):>10,}  in all")
