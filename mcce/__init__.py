"""Counterfactual explanations for any model on tabular data, by Monte Carlo sampling from a chain of conditionals.

Names are loaded when they are first used (SPEC 1); the stub `__init__.pyi` lists them.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
