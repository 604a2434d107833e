from __future__ import annotations

import sys

import pytest

from mcce import CartSampler, InputError, MarginalSampler, SamplerError, available_samplers, register_sampler
from mcce.samplers.base import SAMPLERS
from mcce.samplers.registry import make_sampler


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Unregister names registered by a test."""
    monkeypatch.setattr(SAMPLERS, "known", dict(SAMPLERS.known))


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return a function that installs a distribution with one entry point."""

    def install(distribution, entry_point, module, source):
        site = tmp_path / distribution
        info = site / f"{distribution.replace('-', '_')}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[mcce.samplers]\n{entry_point}\n")
        (site / f"{module}.py").write_text(source)
        monkeypatch.syspath_prepend(site)
        monkeypatch.delitem(sys.modules, module, raising=False)

    return install


PLUG_IN = "from mcce import MarginalSampler\n\n\nclass Shuffled(MarginalSampler):\n    pass\n"


def test_built_in_samplers_have_names():
    assert available_samplers()["cart"] is CartSampler
    assert available_samplers()["marginal"] is MarginalSampler


def test_registered_class_is_found_by_name():
    class Mine(MarginalSampler):
        pass

    assert register_sampler("mine", Mine) is Mine
    assert available_samplers()["mine"] is Mine
    assert type(make_sampler("mine")) is Mine


def test_duplicate_name_raises():
    class Mine(MarginalSampler):
        pass

    with pytest.raises(
        SamplerError, match=r"'cart' is taken by mcce.samplers.donors.cart.CartSampler; choose another name for .*Mine"
    ):
        register_sampler("cart", Mine)
    assert available_samplers()["cart"] is CartSampler


def test_same_class_may_register_again():
    assert register_sampler("cart", CartSampler) is CartSampler


@pytest.mark.parametrize("thing", [CartSampler(), dict, "cart", None])
def test_only_sampler_classes_are_registered(thing):
    with pytest.raises(InputError, match=r"register_sampler\('mine', ...\) got .*needs a subclass of"):
        register_sampler("mine", thing)


def test_unknown_name_suggests_the_nearest_or_lists_all():
    with pytest.raises(SamplerError, match="there is no sampler 'crat'; did you mean 'cart'"):
        make_sampler("crat")
    with pytest.raises(SamplerError, match=r"there is no sampler 'xyz'; known: '2l\.norm', 'beta', 'boosting', 'cart'"):
        make_sampler("xyz")


@pytest.mark.parametrize("thing", [None, 3, object])
def test_non_sampler_raises(thing):
    with pytest.raises(InputError, match="give a name, a ConditionalSampler, or a dict of them by feature"):
        make_sampler(thing)


def test_sampler_is_cloned_and_class_is_instantiated():
    sampler = CartSampler(min_leaf=7)
    made = make_sampler(sampler)
    assert made is not sampler
    assert made.min_leaf == 7
    assert type(make_sampler(MarginalSampler)) is MarginalSampler


def test_installed_plug_in_is_found(install):
    install("mcce-shuffled", "shuffled = mcce_shuffled_plugin:Shuffled", "mcce_shuffled_plugin", PLUG_IN)
    assert make_sampler("shuffled").__class__.__module__ == "mcce_shuffled_plugin"
    assert available_samplers()["shuffled"].__name__ == "Shuffled"
    available_samplers()


def test_plug_in_cannot_silently_replace_a_name(install):
    install("mcce-imposter", "cart = mcce_imposter_plugin:Shuffled", "mcce_imposter_plugin", PLUG_IN)
    with pytest.raises(SamplerError, match=r"'cart' is taken by mcce.samplers.donors.cart.CartSampler"):
        available_samplers()


def test_two_plug_ins_cannot_share_a_name(install):
    install("mcce-one", "shuffled = mcce_one_plugin:Shuffled", "mcce_one_plugin", PLUG_IN)
    install("mcce-two", "shuffled = mcce_two_plugin:Shuffled", "mcce_two_plugin", PLUG_IN)
    with pytest.raises(SamplerError, match=r"'shuffled' is taken by mcce_(one|two)_plugin.Shuffled"):
        available_samplers()


def test_plug_in_that_fails_to_load_is_named(install):
    install("mcce-broken", "broken = mcce_broken_plugin:Shuffled", "mcce_broken_plugin", "import nowhere_found\n")
    with pytest.raises(
        SamplerError, match="'broken' of a plug-in, mcce_broken_plugin:Shuffled, cannot be loaded: No module"
    ):
        available_samplers()


def test_plug_in_that_is_not_a_sampler_raises(install):
    install("mcce-wrong", "wrong = mcce_wrong_plugin:Shuffled", "mcce_wrong_plugin", "Shuffled = 3\n")
    with pytest.raises(InputError, match=r"'wrong'.* got 3; it needs a subclass of ConditionalSampler"):
        available_samplers()
