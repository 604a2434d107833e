"""Every check of generators passes for correct ones and detects a broken one."""

import random
from dataclasses import replace

import numpy as np
import pytest

import mcce
from mcce.generators import AdversarialForest, MixtureGenerator, SampleGenerator, SynthesizerGenerator
from mcce.generators.base import GENERATORS
from mcce.generators.requests import Drawn
from mcce.testing import GENERATOR_CHECKS, ConformanceError, check_generator
from tests.generators.joint.models import Alike, Completing, Conditional, HotDeck
from tests.generators.row_bootstrap import RowBootstrap
from tests.marks import nightly_but


class Broken(RowBootstrap):
    """Draws like a bootstrap and then corrupts the draws."""

    def draw(self, request, *, progress=None):
        return self.spoil(super().draw(request), request)

    def spoil(self, drawn, request):
        return drawn


class WrongGivens(RowBootstrap):
    def givens_of(self, matrix, decision=True):
        return super().givens_of(matrix, decision)[:, ::-1]


class DrawsUnfitted(RowBootstrap):
    def draw(self, request, *, progress=None):
        if hasattr(self, "matrix_"):
            return super().draw(request)
        return Drawn(np.zeros((len(request), 8)), np.zeros(len(request), dtype=bool))


class Remembers(RowBootstrap):
    def fit(self, X, decision=None, *, progress=None):
        before = getattr(self, "matrix_", None)
        super().fit(X, decision)
        if before is not None:
            self.matrix_ = before
        return self


class ChangesFixed(Broken):
    def spoil(self, drawn, request):
        drawn.rows[:, self.given_[0]] = 1 - drawn.rows[:, self.given_[0]]
        return drawn


class OffGrid(Broken):
    def spoil(self, drawn, request):
        rows = drawn.rows.copy()
        rows[:, 5] += 0.25
        return replace(drawn, rows=rows)


class Invents(Broken):
    def spoil(self, drawn, request):
        drawn.rows[:, 2] = np.where(request.draw_indices == 3, 3.0, drawn.rows[:, 2])
        return drawn


class ByPlace(Broken):
    def spoil(self, drawn, request):
        drawn.rows[:, 0] = np.where(np.arange(len(request)) == 1, drawn.rows[0, 0], drawn.rows[:, 0])
        return drawn


class NoSeed(Broken):
    def draw(self, request, *, progress=None):
        return RowBootstrap.draw(self, replace(request, seed=1))


class NoKey(Broken):
    def draw(self, request, *, progress=None):
        return RowBootstrap.draw(self, replace(request, stream_keys=np.zeros_like(request.stream_keys)))


class Global(Broken):
    def spoil(self, drawn, request):
        random.random()
        return drawn


class SpoilsInput(RowBootstrap):
    def fit(self, X, decision=None, *, progress=None):
        super().fit(X, decision)
        if decision is not None:
            decision[0] = not decision[0]
        return self


class IgnoresDecision(Broken):
    def draw(self, request, *, progress=None):
        givens = request.givens.copy()
        givens[:, -1] = 1.0
        return RowBootstrap.draw(self, replace(request, givens=givens))


class Weighted(RowBootstrap):
    """Counts are copies, as in the repeated table."""

    takes_weights = True

    def counts(self, weights):
        return weights.astype(int)

    def fit(self, X, decision=None, *, sample_weight=None, progress=None):
        counts = 1 if sample_weight is None else self.counts(sample_weight)
        copies = np.repeat(np.arange(len(X)), counts)
        return super().fit(X.iloc[copies], None if decision is None else np.asarray(decision)[copies])


class IgnoresWeights(Weighted):
    def counts(self, weights):
        return (weights > 0).astype(int)


class KeepsWeightless(Weighted):
    def counts(self, weights):
        return np.maximum(weights.astype(int), 1)


class Outside(Broken):
    def spoil(self, drawn, request):
        return replace(drawn, rejected=np.zeros(len(request), dtype=bool))


class Timid(Broken):
    def spoil(self, drawn, request):
        bound = bool(request.restrictions) or bool(request.rules)
        return replace(drawn, rejected=np.full(len(request), True) if bound else drawn.rejected)


class Disagrees(Broken):
    def spoil(self, drawn, request):
        rejected_by = np.full(len(request), -1)
        return replace(
            drawn, rejected_by=rejected_by, constraints=request.constraints, tried=(0,) * len(request.constraints)
        )


class AnotherWhenBound(HotDeck):
    """Reads restrictions that exclude nothing."""

    def draw(self, request, *, progress=None):
        return super().draw(replace(request, seed=request.seed + len(request.restrictions)))


class BreaksRules(Broken):
    def draw(self, request, *, progress=None):
        return RowBootstrap.draw(self, replace(request, rules=()))


class TooDense(RowBootstrap):
    def feature_log_densities(self, matrix, decision=True, *, training=False):
        found = super().feature_log_densities(matrix, decision)
        return {name: values + 0.05 for name, values in found.items()}


class OtherDensity(RowBootstrap):
    def feature_log_densities(self, matrix, decision=True, *, training=False):
        own, other = (
            super(OtherDensity, self).feature_log_densities(matrix, said) for said in (decision, not decision)
        )
        return {name: np.log(0.2 * np.exp(own[name]) + 0.8 * np.exp(other[name])) for name in own}


class Forgets(RowBootstrap):
    def __getstate__(self):
        state = dict(vars(self))
        if "matrix_" in state:
            state["matrix_"] = state["matrix_"][::-1]
        return state


class Unwanted(Broken):
    """Gives an explainer nothing usable."""

    def spoil(self, drawn, request):
        rows = drawn.rows.copy()
        rows[:, 0] = np.where(len(request) >= 150, 30.0, rows[:, 0])
        return replace(drawn, rows=rows)


SOUND = {
    "chain": mcce.ChainModel(random_state=1, n_jobs=1),
    "protocol": RowBootstrap(),
    "weighted": Weighted(),
    "hot deck": HotDeck(),
    "completing": SynthesizerGenerator(Completing(), random_state=1),
    "conditions": SynthesizerGenerator(Conditional(), random_state=1),
    "sample": SampleGenerator(Alike(), random_state=1),
    "mixture": MixtureGenerator(random_state=1, n_jobs=1),
    "forest": AdversarialForest(n_trees=5, random_state=1, n_jobs=1),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", nightly_but(SOUND, "hot deck"))
def test_correct_generator_passes(name):
    check_generator(SOUND[name])


BROKEN = [
    (WrongGivens, "check_fit", "givens_of.. is not the fixed values, then the decision"),
    (DrawsUnfitted, "check_not_fitted", "works before fit"),
    (Remembers, "check_settings", "a refitted generator draws other rows than a fresh one"),
    (ChangesFixed, "check_rows", "changes fixed values"),
    (OffGrid, "check_rows", "'rooms' is drawn off its grid"),
    (Invents, "check_rows", r"'job' is drawn as unobserved levels \[3.0\]"),
    (ByPlace, "check_streams", "rows depend on other rows of the request"),
    (NoSeed, "check_streams", "another seed returns the same rows"),
    (NoKey, "check_streams", "rows do not depend on the stream key"),
    (Global, "check_global_state", "changes a global random state"),
    (SpoilsInput, "check_global_state", "changes its input"),
    (IgnoresDecision, "check_conditioning", "the decision moves the median of a number by"),
    (
        IgnoresWeights,
        "check_weights",
        "a level of .* of the weight is .* of the draws, and .* of the rows; use",
    ),
    (KeepsWeightless, "check_weights", "a drawn level occurs only in rows of weight 0"),
    (Outside, "check_restrictions", "'income': .* accepted rows lie outside"),
    (Timid, "check_restrictions", "of the rows are rejected, though likely values are allowed"),
    (Disagrees, "check_restrictions", "rejected_by and rejected do not agree"),
    (AnotherWhenBound, "check_restrictions", "excludes nothing changes the draws"),
    (BreaksRules, "check_rules", "accepted rows break the rule"),
    (TooDense, "check_densities", "sum to 1.1"),
    (OtherDensity, "check_densities", "draws have the shares .* the densities give"),
    (Forgets, "check_storage", "a pickled copy draws other rows"),
    (Unwanted, "check_explains", "finds no counterfactual"),
]


@pytest.mark.parametrize(("broken", "check", "message"), BROKEN, ids=lambda part: getattr(part, "__name__", None))
def test_broken_generator_is_found(broken, check, message):
    run = {each.__name__: each for each in GENERATOR_CHECKS}[check]
    with pytest.raises(ConformanceError, match=f"{check}, {broken.__name__}: .*{message}"):
        run(broken())


def test_every_check_has_a_broken_generator():
    assert {check for _, check, _ in BROKEN} == {each.__name__ for each in GENERATOR_CHECKS}


def test_non_generator_raises():
    for wrong in (3, HotDeck, object()):
        with pytest.raises(
            mcce.InputError, match=r"check_generator got .*object of a subclass of mcce\.generators\.Generator"
        ):
            check_generator(wrong)


@pytest.mark.slow
def test_registered_chain_passes_at_another_seed():
    check_generator("chain", random_state=1)


def test_registered_name_is_resolved_to_a_generator(monkeypatch):
    with pytest.raises(mcce.InputError, match="there is no generator 'chian'; did you mean 'chain'"):
        check_generator("chian")
    monkeypatch.setitem(GENERATORS.known, "broken", WrongGivens)
    with pytest.raises(ConformanceError):
        check_generator("broken")
