"""Parametric conditionals, as in synthpop: linear regressions for numbers, logistic ones for levels.

They share the design matrix and its augmentation (design.py, formula.py), two maximum likelihood fits (glm.py), the
ridge regression (linear.py) and the treatment of missing targets (regression.py). `parametric` (sampler.py) chooses one
by the kind of the target.
"""
