"""Signatures of the explainer: few keywords, and constraints for given candidates."""

from __future__ import annotations

import inspect

import mcce
from tests.explainer.problem import DENIED


def test_signatures_have_few_keywords():
    counts = {}
    for call in (mcce.MCCE, mcce.MCCE.explain):
        kinds = [parameter.kind for parameter in inspect.signature(call).parameters.values()]
        counts[call] = kinds.count(inspect.Parameter.KEYWORD_ONLY)
    assert counts[mcce.MCCE] <= 14
    assert counts[mcce.MCCE.explain] <= 14


def test_select_applies_constraints_to_given_candidates(explainer):
    candidates = explainer.generate(DENIED, n_samples=100)
    few = mcce.allow("income", high=float(candidates["income"].median()))
    found = explainer.select(candidates, DENIED, constraints=[few, mcce.no_copies()])
    free = explainer.select(candidates, DENIED)
    assert len(found) > 0
    assert (free.frame["income"] > few.high).any()
    assert (found.frame["income"] <= few.high).all()
    assert found.copies == 0
