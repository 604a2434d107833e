"""Generators: joint models of the mutable features given the fixed ones and the decision. The chain is one.

The others are loaded when one of them is first used, or looked for by name.
"""

from typing import TYPE_CHECKING

from mcce.base.lazy import loaded_when_used
from mcce.generators.base import GENERATORS
from mcce.generators.chain import ChainModel
from mcce.generators.joint.base import JointGenerator
from mcce.storage.state import look_in

if TYPE_CHECKING:  # what `__getattr__` does, for type checkers and editors
    from mcce.generators.joint.foreign import SampleGenerator, SynthesizerGenerator
    from mcce.generators.joint.forest.generator import AdversarialForest
    from mcce.generators.joint.made.generator import Made
    from mcce.generators.joint.mixture import MixtureGenerator
    from mcce.generators.joint.vine.generator import VineGenerator

__all__ = [
    "AdversarialForest",
    "ChainModel",
    "JointGenerator",
    "Made",
    "MixtureGenerator",
    "SampleGenerator",
    "SynthesizerGenerator",
    "VineGenerator",
]

_HOMES = {
    "mcce.generators.joint.foreign": ("SampleGenerator", "SynthesizerGenerator"),
    "mcce.generators.joint.forest.generator": ("AdversarialForest",),
    "mcce.generators.joint.made.generator": ("Made",),
    "mcce.generators.joint.mixture": ("MixtureGenerator",),
    "mcce.generators.joint.vine.generator": ("VineGenerator",),
}
GENERATORS.homes = tuple(_HOMES)
look_in(*_HOMES)

if not TYPE_CHECKING:  # where it would say that every name exists
    __getattr__ = loaded_when_used(__name__, _HOMES)
