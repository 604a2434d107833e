"""Run MCCE on a case and evaluate its counterfactuals in the columns of the paper's tables."""

from __future__ import annotations

import time
from typing import Any

import pandas as pd

import mcce
from benchmarks.paper.problems import Case
from benchmarks.settings import Problem
from mcce.counterfactuals import Counterfactuals
from mcce.diagnostics import evaluate

STEPS = ("fit", "generate", "select")


def make_explainer(problem: Problem, **settings: Any) -> mcce.MCCE:
    """Return the explainer of a problem, with seed 1."""
    return mcce.MCCE(
        problem.score, decision=problem.decision, fixed=problem.fixed, kinds=problem.kinds, random_state=1, **settings
    )


def explain(
    problem: Problem, n_samples: int, *, repeats: int = 2, independent: bool = False, **settings: Any
) -> tuple[Counterfactuals, dict[str, float]]:
    """Fit and explain `repeats` times; return the counterfactuals and the seconds of the fastest run by step."""
    runs = []
    for _ in range(repeats):
        begun = time.perf_counter()
        explainer = make_explainer(problem, **settings).fit(problem.X, progress=False)
        found = explainer.explain(problem.factuals, n_samples=n_samples, independent=independent, progress=False)
        runs.append({**found.run.timings, "total": time.perf_counter() - begun})
    return found, min(runs, key=lambda run: run["total"])


def judge(problem: Problem, found: Counterfactuals | pd.DataFrame, seconds: Any, *, manifold: bool) -> dict[str, Any]:
    """Return the figures of the paper's tables; with `manifold` the distances to the training rows as well."""
    training: Any = problem.X if manifold else mcce.Schema.from_data(problem.X, problem.kinds)
    evaluated = evaluate(
        found,
        problem.factuals,
        problem.score,
        training=training,
        decision=problem.decision,
        fixed=problem.fixed,
        kinds=problem.kinds,
        timings=seconds,
    )
    return evaluated.to_frame().iloc[0].to_dict()


def warm_up(case: Case) -> None:
    """Compile the kernels, or read them from disk, before timing."""
    explain(Problem(**{**vars(case.problem), "factuals": case.problem.factuals.iloc[:5]}), 10, repeats=1)
