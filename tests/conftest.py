"""Settings for all tests, and the count of live comparisons with R, over all processes that test."""

import contextlib
import gc
import inspect
import os
import shutil
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# the small models of the tests gain nothing from OpenMP threads, and wait long for them on a busy machine
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np  # which reads its setting when it is loaded, as OpenMP does

import mcce
from mcce.diagnostics import discriminator
from mcce.trees.ctree.svd_kernels import decompose
from tests.browser import Browser, find_browser

gc.disable()  # until all is collected: thousands of tests and modules are made that stay

# whether a test passes must not depend on how busy the machine is
settings.register_profile("any machine", max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

_compared = {}

MANY = 1000  # tests, as all of them are; fewer may not need every kernel

# files with a test that takes many seconds alone; begun last, it would keep one process busy while the others are done
LONG = ["trees/test_kernels.py", "test_site.py", "test_docs.py", "fuzz/test_workflows.py", "benchmarks/test_speed.py"]


def pytest_collection_modifyitems(items):
    """Put the long files first."""
    first = {Path(__file__).parent / name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: first.get(item.path, len(LONG)))


def pytest_collection_finish(session):
    """Share out among the processes what would otherwise be compiled by each of them on a new machine."""
    gc.freeze()  # what is collected is not looked at again by every collection of garbage
    gc.enable()
    run = getattr(session.config, "workerinput", {"workercount": 1})
    if run["workercount"] > 1 and len(session.items) > MANY:
        _compile_beside_others(_beside(run))


def _beside(run):
    return Path(tempfile.gettempdir()) / f"mcce-tests-{run['testrunuid']}"


def _compile_beside_others(folder):
    """Compile what no other process has begun to, and wait for what they have."""
    folder.mkdir(exist_ok=True)
    X = mcce.datasets.load_loans(200).X
    for compiled in KERNELS:
        with contextlib.suppress(FileExistsError):
            (folder / compiled.__name__).touch(exist_ok=False)
            with contextlib.suppress(Exception):  # which the tests will tell
                compiled(X)
            (folder / f"{compiled.__name__}.done").touch()
    until = time.monotonic() + 300
    while len([*folder.glob("*.done")]) < len(KERNELS) and time.monotonic() < until:
        time.sleep(0.1)


def _of_explaining(X):
    explainer = mcce.MCCE(lambda rows: rows["salary"] > 40_000, decision=True, fixed=["age"], random_state=1).fit(X)
    explainer.explain(X.head(20), n_samples=20, sparse=True)
    explainer.explain(X.head(20), n_samples=20)


def _of_ctree(X):
    mcce.ChainModel(sampler="ctree", random_state=1).fit(X)
    decompose(np.eye(3))  # which few tables need, and which takes longest


def _of_copula(X):
    mcce.ChainModel(sampler="copula", random_state=1).fit(X).log_density(X.head(20))


def _of_forests(X):
    table = mcce.Schema.from_data(X).encode(X)
    last = len(table.features) - 1
    for sampler in (mcce.ForestSampler(n_trees=2), mcce.CartSampler()):
        fitted = sampler.fit(table.first(last), table.column(last))
        fitted.supports(table.first(last), table.matrix[:, last])
        fitted.log_density(table.first(last), table.matrix[:, last])


def _of_empirical(X):
    mcce.ChainModel(sampler="empirical", random_state=1).fit(X).log_density(X.head(20))


def _of_rpart(X):
    mcce.ChainModel(sampler=mcce.CartSampler(dialect="rpart"), random_state=1).fit(X)


def _of_tables_of_distances(X):
    explainer = mcce.MCCE(lambda rows: rows["salary"] > 40_000, decision=True, random_state=1).fit(X)
    explainer.explain(X.head(5), n_samples=20, sparse=True, measures="hvdm")


def _of_weights(X):
    weights = np.linspace(0.5, 2.0, len(X))
    mcce.ChainModel(random_state=1).fit(X, sample_weight=weights).log_density(X.head(20))


def _of_joint_forests(X):
    forest = mcce.generators.AdversarialForest(fixed=["age"], n_trees=3, random_state=1).fit(X)
    forest.sample(given=X[["age"]].head(5), within={"salary": (40_000, None)})
    forest.sample(given=X[["age"]].head(5))
    forest.log_density(X.head(20))


# those that take longest first, and the first of them side by side with such that need none of its kernels
KERNELS = [_of_explaining, _of_rpart, _of_ctree, _of_weights, _of_copula, _of_joint_forests, _of_empirical, _of_forests]
KERNELS += [_of_tables_of_distances]


@pytest.fixture
def no_pictures(monkeypatch):
    """Leave out what takes longest of a page where a test reads its words alone."""
    for place in ("mcce.report.html", "mcce.cli.demo"):
        monkeypatch.setattr(f"{place}.as_png", lambda draw, width, height: b"no picture")


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """One Chromium for all tests of a process, each of which opens its own page."""
    program = find_browser()
    if program is None:
        pytest.skip("no Chromium on this machine; install the system's package chromium")
    one = Browser(program, tmp_path_factory.mktemp("profile"))
    yield one
    one.close()


@pytest.fixture(scope="module")
def few_trees():
    """Let `diagnose` tell tables apart by few trees where nobody asks how well."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(inspect.unwrap(discriminator).__kwdefaults__, "n_trees", 10)
        yield


@pytest.fixture(scope="session")
def compared():
    """Count values that were compared with R's; the counts are printed at the end."""
    return _count


def _count(what, n):
    _compared[what] = _compared.get(what, 0) + int(n)


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):  # one of several processes
        session.config.workeroutput["compared"] = _compared


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
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
