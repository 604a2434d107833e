"""Generators: models of the mutable features given the fixed ones and the decision."""

from mcce.generators.adapter import SampleGenerator
from mcce.generators.base import Drawn, DrawRequest, Generator
from mcce.generators.chain import ChainModel

__all__ = ["ChainModel", "DrawRequest", "Drawn", "Generator", "SampleGenerator"]
