"""Work of more than a second shows progress, also during its first step."""

import io
import time

import numpy as np
import pandas as pd
import pytest
from tqdm.std import tqdm

import mcce
from mcce.base import progress
from mcce.base.progress import progress_bar, working


@pytest.fixture
def screen(monkeypatch):
    """Text bars on a separate screen, after a twentieth of a second."""
    shown = io.StringIO()
    monkeypatch.setattr(progress, "tqdm", lambda **options: tqdm(file=shown, mininterval=0, **options))
    monkeypatch.setattr(progress, "SECONDS", 0.05)
    return shown


def wait_for(screen, words):
    begun = time.monotonic()
    while words not in screen.getvalue() and time.monotonic() - begun < 20:
        time.sleep(0.01)
    assert words in screen.getvalue()


def test_bar_appears_during_its_first_step(screen):
    with progress_bar(3, "thinking", True):
        wait_for(screen, "thinking:   0%")


def test_uncounted_work_is_named(screen):
    with working("asking the model", True):
        wait_for(screen, "asking the model [00:0")


@pytest.mark.slow
def test_short_or_disabled_progress_shows_nothing(screen, monkeypatch):
    with working("saying nothing", False):
        time.sleep(0.15)
    monkeypatch.setattr(progress, "SECONDS", 60.0)
    with working("being short", True), progress_bar(1, "being short", True) as bar:
        bar.update()
    assert "being" not in screen.getvalue()
    assert "saying" not in screen.getvalue()


@pytest.mark.slow
def test_long_steps_of_fit_and_explain_have_names(monkeypatch):
    begun = []

    def bar(**options):
        begun.append(options["desc"])
        return tqdm(file=io.StringIO(), **options)

    monkeypatch.setattr(progress, "tqdm", bar)
    X = pd.DataFrame(np.random.default_rng(1).normal(size=(400, 4)), columns=list("abcd"))
    explainer = mcce.MCCE(lambda rows: rows["a"] > 0, decision=True, visit_sequence="correlation", random_state=1)
    explainer.fit(X, progress=True)
    assert begun == ["querying the model for 400 training rows", "ordering the features", "fitting"]
    begun.clear()
    constraints = [mcce.allow("a", high=-0.1)]  # no factual can be explained
    explainer.explain(X.head(5), n_samples=20, sparse=True, constraints=constraints, progress=True)
    assert [what for what in begun if what not in ("searching", "drawing")] == [
        "plausibility",
        "explaining",
    ]
    begun.clear()
    explainer.generate(X.head(5), n_samples=20, constraints=constraints, progress=True)
    assert begun[0] == "drawing inside the constraints"


def test_log_lines_have_progress_and_rate(capsys, monkeypatch):
    with progress_bar(None, "being quick", "log") as quick:
        quick.update()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "SECONDS", 0.0)
    monkeypatch.setattr(progress, "LOGGED_EVERY", 0.0)
    with progress_bar(1000, "explaining", "log") as bar:
        for _ in range(2):
            bar.update(500)
    said = capsys.readouterr().err
    assert "\r" not in said
    lines = [line for line in said.splitlines() if line]
    assert any("explaining:  50%" in line for line in lines)
    assert "explaining: 100%" in lines[-1]
    assert "1000/1000" in lines[-1]


def test_work_inside_a_step_moves_the_bar():
    moved = []
    with progress.reported(moved.append, 10):
        progress.report(0.25)
        with progress.within(0.4, 0.8):
            progress.report(0.5)
        progress.report(0.1)  # never backwards
        shares = progress.Shares(4)
        shares.add(3.6)
    progress.report(1.0)  # no waiting
    assert np.cumsum(moved).tolist() == [2, 6, 8, 9, 10]


@pytest.mark.parametrize("sparse", [False, True])
def test_bar_moves_during_explain_of_many_factuals(monkeypatch, sparse):
    moved = []

    class Bar(tqdm):
        def update(self, n=1):
            if not self.disable:
                moved.append(n)

    monkeypatch.setattr(progress, "tqdm", lambda **options: Bar(file=io.StringIO(), **options))
    X = pd.DataFrame(np.random.default_rng(1).normal(size=(400, 3)), columns=list("abc"))
    settings = {"decision": True, "condition_on_decision": False, "random_state": 1, "n_jobs": 1}  # few draws are valid
    explainer = mcce.MCCE(lambda rows: rows["a"] + rows["b"] > 2.5, **settings).fit(X)
    explainer.learned_.learn_caution(False)
    moved.clear()
    found = explainer.explain(X.head(200), n_samples=200, sparse=sparse, progress=True)
    assert sum(moved) >= len(found)
    assert len(moved) > 1
