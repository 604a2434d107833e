"""Checks of what a generator is: what fit leaves, parameters, storage, and that an explainer can use it."""

from __future__ import annotations

import copy
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from mcce import exceptions
from mcce.constraints import allow
from mcce.exceptions import MCCEError
from mcce.generators.base import Generator
from mcce.method import MCCE
from mcce.testing.generator_tables import equal, fit, fitted_once, mixed_table, request_for
from mcce.testing.requirements import ConformanceError, check_generator_by, require

check = check_generator_by


@check
def check_fit(generator: Generator, seed: int) -> None:
    """Require that fit() leaves the columns, the seed, what is given, and the givens of the training rows."""
    training = mixed_table(seed)
    for with_decision in (True, False):
        fitted = fit(generator, training, with_decision=with_decision)
        names = [name for name in training.X.columns if name in training.fixed]
        require(list(fitted.fixed_) == names, f"fixed_ is {fitted.fixed_!r}; it lists {names!r}, in data order.")
        require(list(fitted.schema_.names) == [*training.X.columns], "schema_ is not of the training columns.")
        require(isinstance(fitted.seed_, int), f"seed_ is {fitted.seed_!r}; it is an integer.")
        said = fitted.conditions_on_decision_
        require(bool(said) == with_decision, f"conditions_on_decision_ is {said!r} after fit(X, decision).")
        matrix = fitted.schema_.encode(training.X).matrix
        wanted = fitted.givens_of(matrix, training.decision)
        columns = [matrix[:, fitted.schema_.names.index(name)] for name in names]
        columns += [training.decision.astype(float)] if with_decision else []
        require(equal(wanted, np.column_stack(columns)), "givens_of() is not the fixed values, then the decision.")
        require(equal(fitted.training_givens_, wanted), "training_givens_ are not the givens of the training rows.")


@check
def check_not_fitted(generator: Generator, seed: int) -> None:
    """Require that draw() raises NotFittedError before fit()."""
    training, fitted = fitted_once(generator, seed)
    request = request_for(fitted, training, 3, seed)
    try:
        copy.deepcopy(generator).draw(request)
    except exceptions.NotFittedError:
        return
    except Exception as error:
        raise ConformanceError(f"draw() before fit() raises {type(error).__name__}; raise NotFittedError.") from error
    raise ConformanceError("draw() works before fit(); it must raise NotFittedError.")


@check
def check_settings(generator: Generator, seed: int) -> None:
    """Require that fit() leaves the parameters as they are, and that a refit leaves nothing of the first one."""
    training, fitted = fitted_once(generator, seed)
    made: Any = copy.deepcopy(generator)
    made.fixed = list(training.fixed)
    before = made.get_params(deep=False) if hasattr(made, "get_params") else {}
    made.fit(training.X, training.decision, progress=False)
    for name, value in before.items():
        now = getattr(made, name)
        require(now is value, f"fit() changes the parameter {name!r} from {value!r} to {now!r}.")
    other = fit(generator, mixed_table(seed + 1))
    other.fit(training.X, training.decision, progress=False)
    request = request_for(fitted, training, 40, seed)
    same = equal(other.draw(request).rows, fitted.draw(request).rows)
    random_state = getattr(generator, "random_state", 0)
    require(same or random_state is None, "a generator that was fitted before draws otherwise than a fresh one.")


@check
def check_storage(generator: Generator, seed: int) -> None:
    """Require that a pickled generator, and a saved one unless saving is refused, draws the same."""
    training, fitted = fitted_once(generator, seed)
    request = request_for(fitted, training, 60, seed)
    rows = fitted.draw(request).rows
    require(equal(pickle.loads(pickle.dumps(fitted)).draw(request).rows, rows), "a pickled copy draws other rows.")
    if not hasattr(fitted, "save"):
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "generator.mcce"
        try:
            fitted.save(path)
        except MCCEError:  # a refusal
            return
        again = type(fitted).load(path)
    require(equal(again.draw(request).rows, rows), "what load() returns draws other rows than what was saved.")
    matrix = fitted.schema_.encode(training.X).matrix[:20]
    try:
        before = fitted.feature_log_densities(matrix)
    except MCCEError:
        return
    after = again.feature_log_densities(matrix)
    same = all(equal(before[name], after[name]) for name in before)
    require(same, "what load() returns has other densities than what was saved.")


@check
def check_explains(generator: Generator, seed: int) -> None:
    """Require that an explainer finds counterfactuals: plain, inside constraints, and sparse with a floor."""
    training = mixed_table(seed)
    made: Any = copy.deepcopy(generator)
    made.fixed = list(training.fixed)
    explainer = MCCE(_income, decision=(50.0, np.inf), fixed=training.fixed, generator=made)
    explainer.fit(training.X, progress=False)
    denied = training.X[_income(training.X) < 50.0].head(12)
    for options in (
        {},
        {"constraints": [allow("income", high=60), allow("rooms", direction="increase")]},
        {"sparse": True, "floor": 0.01},
    ):
        asked: dict[str, Any] = {"n_samples": 150, "allow_missing": True, "progress": False, **options}
        found = explainer.explain(denied, **asked)
        where = f"explain({', '.join(options)})"
        require(len(found) > 0, f"{where} finds no counterfactual at all.")
        ids = found.frame.index.get_level_values("id")
        require((_income(found.frame) >= 50.0).all(), f"{where} returns rows without the wanted decision.")
        for name in training.fixed:
            kept = found.frame[name].to_numpy() == denied.loc[ids, name].to_numpy()
            require(kept.all(), f"{where} changes {name!r}, which is fixed.")
        if "constraints" in options:
            more = found.frame["rooms"].to_numpy() >= denied.loc[ids, "rooms"].to_numpy()
            inside = (_income(found.frame) <= 60.0).all() and more.all()
            require(inside, f"{where} returns rows that break the constraints.")
        alone = explainer.explain(denied.iloc[[3]], **asked).frame
        together = found.frame[ids == denied.index[3]]
        require(alone.equals(together), f"{where} gives a factual alone another answer than among others.")


def _income(rows: Any) -> Any:
    return rows["income"].to_numpy(dtype=float)
