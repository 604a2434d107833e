"""The declared state of a sampler and how the storage layer uses it."""

import numpy as np
import pytest

import mcce
from mcce import ConditionalSampler, SamplerError
from mcce.storage.learned import disclosed, get_state, learned_attributes, set_state, without_training_values


class Declared(ConditionalSampler):
    """A sampler with training values, a tuple of objects with more of them, and a mean sufficient for draws."""

    dispensable = ("donors_", "parts_")
    discloses = "{donors_} values and {parts_.values} others, {kind}"
    kind = "all rounded"

    class Part:
        def __init__(self, values):
            self.values = values

    def fit(self, given, target):
        self.mean_ = 2.5
        self.donors_ = np.array([1.0, np.nan, 4.0])
        self.parts_ = (self.Part(np.arange(3.0)), self.Part(None), self.Part(np.array([np.nan, 1.0])))
        self._scratch_ = object()
        return self

    def sample(self, given, rng, within=None):
        return np.full(given.n_rows, self.mean_)


class Wrapped(ConditionalSampler):
    """A sampler that contains another sampler."""

    discloses = "{sampler_}"

    def fit(self, given, target):
        self.sampler_ = Declared().fit(given, target)
        return self

    def sample(self, given, rng, within=None):
        return self.sampler_.sample(given, rng, within)


class Undeclared(ConditionalSampler):
    def fit(self, given, target):
        self.mean_ = 1.0
        return self

    def sample(self, given, rng, within=None):
        return np.full(given.n_rows, self.mean_)


class Locked(Undeclared):
    unstorable = "it holds a key. Fit again where it is needed."


def test_known_values_are_counted_in_words():
    assert disclosed(Declared().fit(None, None)) == "2 values and 4 others, all rounded"
    assert disclosed(Wrapped().fit(None, None)) == "2 values and 4 others, all rounded"
    assert disclosed(Undeclared().fit(None, None)) == "a state that may contain training values"


def test_training_values_are_left_out_as_declared():
    fitted = Declared().fit(None, None)
    bare = without_training_values(fitted)
    assert learned_attributes(bare) == {"mean_": 2.5, "donors_": None, "parts_": None}
    assert disclosed(bare) == "0 values and 0 others, all rounded"
    assert fitted.donors_ is not None
    wrapped = Wrapped().fit(None, None)
    assert without_training_values(wrapped).sampler_.donors_ is None
    assert wrapped.sampler_.donors_ is not None
    with pytest.raises(SamplerError, match=r"Undeclared\(\) draws training values, or may draw them"):
        without_training_values(Undeclared().fit(None, None))


def test_fields_declared_unstorable_are_not_written():
    fitted = Locked().fit(None, None)
    with pytest.raises(SamplerError, match=r"Locked\(\) cannot be stored: it holds a key\. Fit again"):
        get_state(fitted)
    state = get_state(Undeclared().fit(None, None))
    assert state == {"mean_": 1.0}
    assert set_state(Undeclared(), state).mean_ == 1.0


def test_contract_without_storage():
    """Storage and disclosure are not methods of samplers: samplers declare, and the storage layer reads."""
    methods = {"get_state", "set_state", "without_donors", "disclosed"}
    own = {name: cls for name, cls in mcce.available_samplers().items() if cls.__module__.startswith("mcce.")}
    assert {"cart", "forest", "vine"} <= {*own}  # not those registered by other tests
    for name, cls in own.items():
        assert not methods & {*dir(cls)}, name
        assert cls.discloses != ConditionalSampler.discloses or cls.unstorable, name
