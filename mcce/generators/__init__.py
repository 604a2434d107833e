"""Generators: joint models of the mutable features given the fixed ones and the decision.

The chain is loaded with the package; the other generators are loaded on first use or on look-up by name.
"""

from typing import TYPE_CHECKING

import lazy_loader

from mcce.generators.base import GENERATORS, Generator
from mcce.generators.chain import ChainModel
from mcce.generators.joint.base import JointGenerator
from mcce.storage.state import look_in

if TYPE_CHECKING:  # the names that are loaded lazily, for type checkers and editors
    from mcce.generators.joint.adversarial.generator import AdversarialForest
    from mcce.generators.joint.foreign import SampleGenerator, SynthesizerGenerator
    from mcce.generators.joint.made.generator import Made
    from mcce.generators.joint.mixture_generator import MixtureGenerator
    from mcce.generators.joint.vine_generator import VineGenerator

__all__ = [
    "AdversarialForest",
    "ChainModel",
    "Generator",
    "JointGenerator",
    "Made",
    "MixtureGenerator",
    "SampleGenerator",
    "SynthesizerGenerator",
    "VineGenerator",
]

_HOMES = {
    "joint.foreign": ("SampleGenerator", "SynthesizerGenerator"),
    "joint.adversarial.generator": ("AdversarialForest",),
    "joint.made.generator": ("Made",),
    "joint.mixture_generator": ("MixtureGenerator",),
    "joint.vine_generator": ("VineGenerator",),
}
GENERATORS.homes = tuple(f"{__name__}.{module}" for module in _HOMES)
look_in(*GENERATORS.homes)

if not TYPE_CHECKING:  # it would make every name appear to exist
    __getattr__ = lazy_loader.attach(__name__, _HOMES, _HOMES)[0]
