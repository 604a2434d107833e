"""One process of `benchmarks.samplers`: measure one sampler, or one generator, on one data set.

The steps are those of the docstring of `benchmarks.samplers`; each is printed when it is done, so that results before a
failure or the time limit are not lost.
"""

from __future__ import annotations

import contextlib
import resource
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

import mcce
from benchmarks.scores import AUTO, held_out_scores
from benchmarks.settings import Problem, Setting, make_problem
from mcce.diagnostics import Discriminator, discriminator, pmse

Result = dict[str, Any]

GENERATORS = {  # joint models
    "arf": "AdversarialForest",
    "made": "Made",
    "joint_mix": "MixtureGenerator",
    "joint_vine": "VineGenerator",
}
VISIT = "visit"
N_FACTUALS, N_SAMPLES, N_SEEDS, N_TREES = 200, 1000, 5, 100
N_PARTS = 5  # parts of the factuals, each left out once


def make_setting(name: str, rows: int, quick: bool, factuals: int = N_FACTUALS) -> Setting:
    """Return the data set in its native form, with a model that trains in seconds."""
    if quick:
        return Setting(name, name, name, "boosting", min(factuals, 20), 50, binarised=False, n_train=min(rows, 300))
    return Setting(name, name, name, "boosting", factuals, N_SAMPLES, binarised=False, n_train=rows)


def chain_samplers(sampler: Any, X: pd.DataFrame) -> Any:
    """Return the samplers of a chain over `X`: features that a sampler does not model are "parametric"."""
    cls = mcce.available_samplers().get(sampler) if isinstance(sampler, str) else None
    if cls is None:
        return sampler
    features = mcce.Schema.from_data(X).features
    modelled = [each.name for each in features if each.kind in cls.handles and _suits(cls.numbers, X[each.name], each)]
    return sampler if len(modelled) == len(features) else {**dict.fromkeys(modelled, sampler), "*": "parametric"}


def _suits(numbers: str, values: pd.Series[Any], feature: Any) -> bool:
    """Return whether the numbers of a column suit the declaration of a sampler; False for columns of levels."""
    if numbers == "any" or not feature.is_numeric:
        return True
    known = values.dropna().to_numpy(dtype=float)
    whole = bool((known == np.round(known)).all())
    fits = {"positive": known > 0, "counts": (known >= 0) & whole, "shares": (known > 0) & (known < 1)}
    return bool(fits[numbers].all())


def make_generator(name: str, problem: Problem) -> Any:
    """Return an unfitted joint model with the problem's fixed features."""
    return getattr(mcce.generators, GENERATORS[name])(fixed=problem.fixed, random_state=1)


def make_chain(sampler: Any, problem: Problem, X: pd.DataFrame, **more: Any) -> Any:
    """Fit a chain with the problem's fixed features on the rows `X`; for the name of a joint model, that."""
    if isinstance(sampler, str) and sampler in GENERATORS:
        return make_generator(sampler, problem).fit(X)
    chosen = chain_samplers(sampler, X.drop(columns=problem.fixed))
    return mcce.ChainModel(sampler=chosen, fixed=problem.fixed, random_state=1, **more).fit(X)


def halves(X: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return two random halves of the rows."""
    order = np.random.default_rng(1).permutation(len(X))
    return X.iloc[order[: len(X) // 2]], X.iloc[order[len(X) // 2 :]]


def measure(problem: Problem, setting: Setting, sampler: str, seeds: int, trees: int) -> Iterator[Result]:
    """Yield the results of one sampler, step by step, each with the name of the next step."""

    def discriminate(real: pd.DataFrame, generated: pd.DataFrame) -> Result:
        return _figures(discriminator(real, generated, paired=True, n_seeds=seeds, n_trees=trees))

    X, fixed = problem.X, problem.fixed
    yield {"next": "warming up"}
    with contextlib.suppress(mcce.MCCEError):  # too few rows for this sampler; if it always fails, step 1 reports it
        small: Any = mcce.Auto(n_folds=2, max_rows=100) if sampler == AUTO else sampler
        make_chain(small, problem, X.iloc[:200]).sample(given=X[fixed].iloc[:10])
    yield {"next": "fit"}
    begun = time.process_time()
    chain = make_chain(sampler, problem, X)
    yield {"fit": time.process_time() - begun, "next": "draw"}
    begun = time.process_time()
    generated = chain.sample(given=X[fixed])
    yield {"draw": (time.process_time() - begun) / len(X) * 1000, "next": "discriminator, seen rows"}
    yield {"seen": discriminate(X, generated), "next": "discriminator, new rows"}
    first, second = halves(X)
    halved = make_chain(sampler, problem, first)
    drawn = halved.sample(given=second[fixed])
    yield {"new": discriminate(second, drawn), "next": "pMSE"}
    yield {"S_pMSE": pmse(second, drawn, fixed=fixed, max_order=0).S_pMSE, "next": "scores"}
    yield {**held_out_scores(halved, first, second), "next": "counterfactuals"}
    choice = getattr(chain, "choice_", None)
    chosen = None if choice is None else choice.table["sampler"].to_dict()
    yield {"chosen": chosen} if chosen else {}
    if not setting.n_factuals:
        pass
    elif sampler in GENERATORS:
        yield explain(problem, setting, generator=make_generator(sampler, problem))
    else:
        yield explain(problem, setting, sampler=chosen or chain.sampler, random_state=1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield {"peak_mb": peak / (2**20 if sys.platform == "darwin" else 2**10)}


def explain(problem: Problem, setting: Setting, **drawing: Any) -> Result:
    """Explain the factuals with a sampler or generator, as training rows and as new rows; judge the results."""

    def explainer(training: pd.DataFrame) -> mcce.MCCE:
        return mcce.MCCE(problem.score, decision=problem.decision, fixed=problem.fixed, **drawing).fit(training)

    found = explainer(problem.X).explain(problem.factuals, n_samples=setting.n_samples)
    valid = problem.decision.contains(problem.score(found.frame)) if len(found) else np.zeros(0)
    parts = [problem.factuals.iloc[k::N_PARTS] for k in range(min(N_PARTS, len(problem.factuals)))]
    without = [explainer(problem.X.drop(index=part.index)) for part in parts]
    as_new, sparse = (
        pd.concat(
            each.explain(part, n_samples=setting.n_samples, sparse=is_sparse).measures
            for each, part in zip(without, parts)
        )
        for is_sparse in (False, True)
    )
    both = [each.droplevel("rank") for each in (as_new, found.measures)]
    apart = (both[0]["L0"] - both[1]["L0"]).dropna()
    rise = [float(apart.mean()), float(apart.std() / np.sqrt(len(apart)))] if len(apart) > 1 else None
    return {
        "L0_new": float(as_new["L0"].mean()) if len(as_new) else None,
        "gower_sum_new": float(as_new["gower_sum"].mean()) if len(as_new) else None,
        "explained_new": len(as_new),
        "L0_sparse": float(sparse["L0"].mean()) if len(sparse) else None,
        "gower_sum_sparse": float(sparse["gower_sum"].mean()) if len(sparse) else None,
        "explained_sparse": len(sparse),
        "L0_rise": rise,
        "seconds": dict(found.run.timings),
        "L0": float(found.measures["L0"].mean()) if len(found) else None,
        "gower_sum": float(found.measures["gower_sum"].mean()) if len(found) else None,
        "success": float(valid.mean()) if len(found) else None,
        "explained": len(found),
    }


def compare_visits(problem: Problem, seeds: int, trees: int) -> Iterator[Result]:
    """Yield the orders, then the accuracies by seed of both visit sequences."""
    first, second = halves(problem.X)
    for visit in ("data", "correlation"):
        yield {"next": f"visit sequence {visit}"}
        chain = make_chain("cart", problem, first, visit_sequence=visit)
        accuracies = []
        for seed in range(seeds):
            drawn = chain.sample(given=second[problem.fixed], random_state=seed)
            result = discriminator(second, drawn, paired=True, n_seeds=1, n_trees=trees, random_state=seed)
            accuracies.append(result.accuracy)
        yield {visit: {"order": list(chain.visit_sequence_), "accuracies": accuracies}}


def describe(problem: Problem, seeds: int, trees: int) -> Result:
    """Return the sizes, and the discriminator's accuracy for two halves of the real rows."""
    first, second = halves(problem.X)
    return {
        "n_rows": len(problem.X),
        "n_features": problem.X.shape[1],
        "n_factuals": len(problem.factuals),
        "standin": problem.standin,
        "real": _figures(discriminator(first, second, n_seeds=seeds, n_trees=trees)),
    }


def _figures(result: Discriminator) -> Result:
    return {
        "accuracy": result.accuracy,
        "sd": result.sd,
        "accuracies": list(result.accuracies),
        **{name: result.settings[name] for name in ("n_rows", "n_test", "n_trees", "min_leaf", "test_size")},
    }


def work(
    name: str,
    what: str,
    *,
    rows: int,
    quick: bool,
    folder: Path | None,
    cache: Path,
    factuals: int = N_FACTUALS,
) -> Iterator[Result]:
    """Run the task of the worker NAME WHAT: "prepare", "visit" or a sampler."""
    setting = make_setting(name, rows, quick, factuals)
    seeds, trees = (2, 10) if quick else (N_SEEDS, N_TREES)
    stored = cache / f"{name}.joblib"
    if what == "prepare":
        problem = make_problem(setting, folder)
        joblib.dump(problem, stored)
        yield describe(problem, seeds, trees)
        return
    problem = joblib.load(stored)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", mcce.exceptions.MCCEWarning)
        if what == VISIT:
            yield from compare_visits(problem, N_SEEDS if not quick else seeds, trees)
        else:
            yield from measure(problem, setting, what, seeds, trees)
    yield {"warnings": sorted({str(w.message).splitlines()[0] for w in heard})}
