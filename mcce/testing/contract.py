"""Checks of what a sampler is: what it declares, its parameters, fit() and clone()."""

from __future__ import annotations

import ast
from typing import Any

from mcce import exceptions
from mcce.exceptions import SamplerError, listing
from mcce.samplers import ConditionalSampler
from mcce.table import KINDS
from mcce.testing.requirements import ConformanceError, check, equal, require
from mcce.testing.tables import draw, fit, kinds_of, make_problem, trained


@check
def check_declarations(sampler: ConditionalSampler, seed: int) -> None:
    """Require that `handles` names known kinds, and that check_target() refuses all others."""
    unknown = set(sampler.handles) - set(KINDS)
    require(not unknown, f"handles names {listing(sorted(unknown))}; the kinds are {listing(KINDS)}.")
    require(sampler.handles, f"handles is empty; name at least one of {listing(KINDS)}.")
    for name in ("handles_missing", "thread_safe", "draws_observed", "ignores_given", "leaves_one_out", "hands_on"):
        value = getattr(sampler, name)
        require(isinstance(value, bool), f"the class attribute {name} is {value!r}; it must be True or False.")
    for kind in KINDS:
        feature = make_problem(kind, seed).target.feature
        try:
            sampler.check_target(feature)
        except SamplerError as refusal:
            require(kind not in sampler.handles, f"check_target refuses {kind}, which handles names: {refusal}")
        else:
            require(kind in sampler.handles, f"check_target accepts {kind}, which handles does not name.")


@check
def check_parameters(sampler: ConditionalSampler, seed: int) -> None:
    """Require that parameters are stored untouched, kept by fit(), and given back by clone() and repr()."""
    params = sampler.get_params(deep=False)
    for name in params:
        probe = object()
        try:
            stored = getattr(type(sampler)(**{**params, name: probe}), name)
        except Exception as error:
            raise ConformanceError(
                f"the constructor works on its parameter {name!r} ({type(error).__name__}: {error}); "
                "store it untouched, and check it in fit()."
            ) from error
        require(stored is probe, f"the constructor changes its parameter {name!r}; store it untouched.")
    cloned = sampler.clone()
    require(type(cloned) is type(sampler), f"clone() returns a {type(cloned).__name__}.")
    _require_params(cloned, params, "clone() changes")
    require(
        repr(sampler).startswith(f"{type(sampler).__name__}("),
        f"repr() is {sampler!r}; it must begin with the class.",
    )
    if all(map(_is_literal, params.values())):
        written = eval(repr(sampler), {type(sampler).__name__: type(sampler)})
        for name, value in params.items():
            require(
                getattr(written, name) == value,
                f"repr() is {sampler!r}, which loses the value {value!r} of {name!r}.",
            )
    for _, _, fitted in trained(sampler, seed):
        _require_params(fitted, params, "fit() changes")


def _require_params(sampler: ConditionalSampler, params: dict[str, Any], what: str) -> None:
    for name, value in params.items():
        now = getattr(sampler, name)
        require(now is value, f"{what} the parameter {name!r} from {value!r} to {now!r}.")


def _is_literal(value: object) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError):
        return False


@check
def check_fit_returns_self(sampler: ConditionalSampler, seed: int) -> None:
    """Require that fit() returns the sampler."""
    for kind in kinds_of(sampler):
        problem = make_problem(kind, seed)
        fitted = sampler.clone()
        returned: object = fitted.fit(problem.given, problem.target)
        require(returned is fitted, f"fit() returns {returned!r}; it must return self.")


@check
def check_not_fitted(sampler: ConditionalSampler, seed: int) -> None:
    """Require that sample() raises NotFittedError before fit(), and on the clone of a fitted sampler."""
    for kind in kinds_of(sampler):
        problem = make_problem(kind, seed)
        for unfitted, which in (
            (sampler.clone(), "before fit()"),
            (fit(sampler, problem).clone(), "on a fresh clone"),
        ):
            try:
                draw(unfitted, problem.given, seed)
            except exceptions.NotFittedError:
                continue
            except Exception as error:
                raise ConformanceError(
                    f"sample() {which} raises {type(error).__name__}: {error}; raise NotFittedError "
                    "(self.check_fitted('attribute_') does)."
                ) from error
            raise ConformanceError(f"sample() works {which}; it must raise NotFittedError.")


@check
def check_refit(sampler: ConditionalSampler, seed: int) -> None:
    """Require that a second fit() leaves nothing of the first one."""
    for kind in kinds_of(sampler):
        before = make_problem(kind, seed, givens=("sex",), missing_target=sampler.handles_missing)
        problem = make_problem(kind, seed + 1, by_sex=True)
        fitted = fit(sampler, before)
        fitted.fit(problem.given, problem.target)
        same = equal(draw(fitted, problem.given, seed), draw(fit(sampler, problem), problem.given, seed))
        require(same, f"a {kind} target, fitted after another one, is drawn differently than by a fresh sampler.")
