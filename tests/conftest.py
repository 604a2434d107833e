"""Settings for all tests, and the count of live comparisons with R, over all processes that test."""

import gc
import inspect
import os
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# the small models of the tests gain nothing from OpenMP threads, and wait long for them on a busy machine
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np  # which reads its setting when it is loaded, as OpenMP does

import mcce
from mcce.diagnostics import discriminator
from mcce.trees.party.svd_kernels import decompose
from tests.examples import examples

gc.disable()  # until all is collected: thousands of tests and modules are made that stay

# whether a test passes must not depend on how busy the machine is
settings.register_profile("any machine", examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

_compared = {}

MANY = 1000  # tests; fewer may not need every kernel

# files with a test that takes many seconds alone; begun last, it would keep one process busy while the others are done
LONG = ["trees/test_bounds.py", "test_docs.py", "benchmarks/test_speed.py"]


@pytest.hookimpl(tryfirst=True)  # before tests are left out by their marks
def pytest_collection_modifyitems(config, items):
    """Let `thorough("a", "b*")` mean these parameters only; put the long files first, all else stays in its order."""
    unmatched = {}
    for item in items:
        for mark in [mark for mark in item.own_markers if mark.name == "thorough" and mark.args]:
            fitting = {pattern for pattern in mark.args if fnmatchcase(item.callspec.id, pattern)}
            unmatched.setdefault((item.path, item.originalname), set(mark.args)).difference_update(fitting)
            if not fitting:
                item.own_markers.remove(mark)
    if any(unmatched.values()) and not any("::" in each for each in config.args):
        raise pytest.UsageError(f"marks of tests that are not there: { {k: v for k, v in unmatched.items() if v} }")
    first = {Path(__file__).parent / name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: first.get(item.path, len(LONG)))


def pytest_collection_finish(session):
    """Share out among the processes what would otherwise be compiled by each of them on a new machine."""
    gc.freeze()  # what is collected is not looked at again by every collection of garbage
    gc.enable()
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    n_workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if n_workers > 1 and len(session.items) > MANY:
        for compiled in KERNELS[int(worker.removeprefix("gw")) % n_workers :: n_workers]:
            compiled(mcce.datasets.load_loans(200).X)


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


# in turns; what the first needs of all takes longest, so that others are begun meanwhile that need none of it
KERNELS = [_of_explaining, _of_ctree, _of_copula, _of_forests, _of_empirical, _of_rpart, _of_tables_of_distances]


@pytest.fixture
def no_pictures(monkeypatch):
    """Leave out what takes longest of a page where a test reads its words alone."""
    for place in ("mcce.report.pages.result", "mcce.cli.demo"):
        monkeypatch.setattr(f"{place}.as_png", lambda draw, width, height: b"no picture")


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
    for what, n in getattr(node, "workeroutput", {}).get("compared", {}).items():
        _count(what, n)


def pytest_terminal_summary(terminalreporter):
    if _compared:
        terminalreporter.write_line("live comparisons with R:")
        for what, n in _compared.items():
            terminalreporter.write_line(f"  {n:>10,}  {what}")
        terminalreporter.write_line(f"  {sum(_compared.values()):>10,}  in all")
