"""Which kernels the second process compiles, and what happens where there is none."""

import subprocess
import sys

from mcce import precompile
from mcce.trees import kernels

SIGNATURES = """
from mcce import MCCE, precompile
from mcce.datasets import load_loans
from mcce.selection import selector
from mcce.trees import tree

KERNELS = (tree.route_numbers, tree.route_any, tree.pick_donor, selector._best_candidates)
precompile.compile_drawing_and_selecting()
before = [kernel.signatures for kernel in KERNELS]
assert all(before), before
X = load_loans().X.head(300)
found = MCCE(lambda rows: rows["salary"] > 40000, decision=True, fixed=["age", "sex"]).fit(X).explain(X, n_samples=20)
assert len(found.frame), "nothing was explained"
after = [kernel.signatures for kernel in KERNELS]
assert before == after, (before, after)
"""


def test_the_second_process_compiles_just_what_an_explanation_uses():
    done = subprocess.run([sys.executable, "-c", SIGNATURES], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_second_process_is_started_only_to_compile(monkeypatch):
    started = []

    class Process:
        def __init__(self, arguments, **_):
            started.append(arguments)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            started.append("waited")

    monkeypatch.setattr(subprocess, "Popen", Process)
    monkeypatch.setattr(kernels, "compiled", lambda: True)
    with precompile.beside():
        pass
    assert started == []

    monkeypatch.setattr(kernels, "compiled", lambda: False)
    monkeypatch.setattr(precompile.os, "cpu_count", lambda: 2)
    with precompile.beside():
        assert len(started) == 1
    assert started[0][0] == sys.executable
    assert started[1] == "waited"

    monkeypatch.setattr(sys, "executable", "/usr/lib/R/bin/exec/R")
    with precompile.beside():
        pass
    assert len(started) == 2


def test_without_a_second_process_nothing_is_lost(monkeypatch):
    def refuse(*_, **__):
        raise OSError("no processes")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(kernels, "compiled", lambda: False)
    ran = []
    with precompile.beside():
        ran.append(True)
    assert ran == [True]
