"""Keywords that are gone are refused, with what takes their place; the calls take few."""

from __future__ import annotations

import inspect

import pytest

import mcce
from mcce.explainer import FORMER, FORMER_CONSTRAINTS, FORMER_OF_EXPLAIN
from tests.explainer.problem import DENIED


@pytest.mark.parametrize("name", FORMER_OF_EXPLAIN)
def test_explain_names_what_takes_the_place(explainer, name):
    with pytest.raises(mcce.InputError, match=rf"^explain\(\) has no {name}=; use "):
        explainer.explain(DENIED, **{name: None})


@pytest.mark.parametrize("name", FORMER_CONSTRAINTS)
def test_the_single_steps_too(explainer, name):
    with pytest.raises(mcce.InputError, match=rf"^generate\(\) has no {name}=; use constraints="):
        explainer.generate(DENIED, **{name: True})
    with pytest.raises(mcce.InputError, match=rf"^select\(\) has no {name}=; use constraints="):
        explainer.select(DENIED, DENIED, **{name: True})


@pytest.mark.parametrize("name", FORMER)
def test_an_explainer_too(name):
    with pytest.raises(mcce.InputError, match=rf"^MCCE\(\) has no {name}=; use "):
        mcce.MCCE(None, **{name: None})


def test_few_keywords():
    counts = {}
    for call in (mcce.MCCE, mcce.MCCE.explain):
        kinds = [parameter.kind for parameter in inspect.signature(call).parameters.values()]
        counts[call] = kinds.count(inspect.Parameter.KEYWORD_ONLY)
    assert counts[mcce.MCCE] <= 12
    assert counts[mcce.MCCE.explain] <= 14


def test_constraints_are_obeyed_by_candidates_that_are_brought(explainer):
    candidates = explainer.generate(DENIED, n_samples=100)
    few = mcce.allow("income", high=float(candidates["income"].median()))
    found = explainer.select(candidates, DENIED, constraints=[few, mcce.no_copies()])
    free = explainer.select(candidates, DENIED)
    assert len(found) > 0
    assert (free.frame["income"] > few.high).any()
    assert (found.frame["income"] <= few.high).all()
    assert found.copies == 0
