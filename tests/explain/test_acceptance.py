"""The acceptance rule: the model is never queried twice for the same row."""

from __future__ import annotations

import threading

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.explain.acceptance import Acceptance
from mcce.explain.order import DEFAULT, resolve_measures
from mcce.plausibility.score import Plausibility
from tests.explain.small_cases import FEATURES, MUTABLE, problem_of

FACTUALS = np.zeros((4, 6))
ROWS = np.arange(48.0).reshape(8, 6)


class Model:
    """A model that scores a row by its first value and records its queries."""

    def __init__(self) -> None:
        self.queries: list[list[float]] = []

    def __call__(self, rows):
        self.queries.append(rows[:, 0].tolist())
        return rows[:, 0] / 48, rows[:, 0] > 20


def rule(model):
    return Acceptance(problem_of(FEATURES, MUTABLE, model, resolve_measures(DEFAULT, FEATURES), None), FACTUALS)


def test_no_row_is_queried_twice():
    model = Model()
    acceptance = rule(model)
    for some in ([0, 3, 3, 5], [5, 0], [], [7, 3, 1]):
        scores, wanted = acceptance.query(ROWS[some])
        np.testing.assert_array_equal(scores, ROWS[some, 0] / 48)
        np.testing.assert_array_equal(wanted, ROWS[some, 0] > 20)
    assert [sorted(each) for each in model.queries] == [[0.0, 18.0, 30.0], [6.0, 42.0]]
    assert acceptance.n_queried == 5


def test_factuals_share_model_answers_unless_separated():
    model = Model()
    acceptance = rule(model)
    acceptance.query(ROWS[:2])
    some = acceptance.take(np.array([1, 2]))
    some.query(ROWS[:3])
    assert len(some) == 2
    assert model.queries == [[0.0, 6.0], [12.0]]
    apart = acceptance.take(slice(2), apart=True)
    apart.query(ROWS[:3])
    assert model.queries[2:] == [[0.0, 6.0, 12.0]]  # queries do not depend on other threads
    assert (acceptance.n_queried, some.n_queried, apart.n_queried) == (6, 6, 3)
    acceptance.remember(apart)
    acceptance.query(ROWS[:4])
    assert model.queries[3:] == [[18.0]]


def test_the_model_is_queried_by_one_thread_at_a_time():
    inside, most = 0, 0
    both = threading.Barrier(2, timeout=5)

    def model(rows):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        threading.Event().wait(0.05)
        inside -= 1
        return rows[:, 0], rows[:, 0] > 0

    acceptance = rule(model)

    def work(part):
        both.wait()
        part.query(ROWS)

    threads = [threading.Thread(target=work, args=[acceptance.take(slice(2), apart=True)]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, acceptance.n_queried) == (1, 16)


@pytest.mark.parametrize("n", [1, 80])  # one part, and two parts
def test_the_plausibility_of_a_factual_is_computed_once(n, monkeypatch):
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.normal(size=300).round(2), "b": rng.normal(size=300).round(2)})
    explainer = mcce.MCCE(lambda rows: rows["a"] + rows["b"] > 1.0, decision=True, random_state=1).fit(X)
    factuals = X[X["a"] + X["b"] < 0.0].head(n)
    counted, own = [], Plausibility.own
    monkeypatch.setattr(Plausibility, "own", lambda scale, rows: counted.append(len(rows)) or own(scale, rows))
    explainer.explain(factuals, sparse=True, n_samples=20, progress=False)
    assert sum(counted) == n
