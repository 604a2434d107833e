"""Generators: joint models of the mutable features given the fixed ones and the decision. The chain is one."""

from mcce.generators.chain import ChainModel
from mcce.generators.joint.base import JointGenerator
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
