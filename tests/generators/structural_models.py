"""Known structural models: tables with their noise, and the same rows under an intervention."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr

import mcce

LEVELS = ("none", "school", "degree")
JOBS = ("cook", "clerk", "pilot")


def linear(u, do):
    x = do.get("x", u[0])
    y = do.get("y", 1.0 + 2.0 * x + u[1])
    z = do.get("z", -1.0 + 0.5 * x + y + 2.0 * u[2])
    return {"x": x, "y": y, "z": z}


def additive(u, do):
    x = do.get("x", u[0])
    y = do.get("y", 3.0 * np.exp(-(x**2)) + x**2 + 0.5 * u[1])
    z = do.get("z", np.exp(0.2 * y) + u[2])
    return {"x": x, "y": y, "z": z}


def mediator(u, do):
    """The effect of x on y is 1 directly, and 3 through m."""
    x = do.get("x", u[0])
    m = do.get("m", 1.5 * x + u[1])
    y = do.get("y", x + 2.0 * m + u[2])
    return {"x": x, "m": m, "y": y}


def collider(u, do):
    x, y = do.get("x", u[0]), do.get("y", u[1])
    return {"x": x, "y": y, "c": do.get("c", x + y + 0.5 * u[2])}


def confounder(u, do):
    """The effect of x on y is 1; the regression of y on x alone has the slope 2.5."""
    w = do.get("w", u[0])
    x = do.get("x", w + u[1])
    return {"w": w, "x": x, "y": do.get("y", x + 3.0 * w + u[2])}


def classes(u, do):
    """Levels below the action; the rank of each level is its noise, in the order of the levels."""
    school = do.get("school", pick(np.tile([0.5, 0.3, 0.2], (u[0].size, 1)), ndtr(u[0])))
    likely = np.array([[0.6, 0.3, 0.1], [0.3, 0.5, 0.2], [0.1, 0.3, 0.6]])[school]
    job = do.get("job", pick(likely, ndtr(u[1])))
    return {"school": school, "job": job, "pay": do.get("pay", np.array([20.0, 35.0, 80.0])[job] + 3.0 * u[2])}


def pick(probabilities, u):
    return np.minimum((np.cumsum(probabilities, axis=1) < u[:, None]).sum(axis=1), probabilities.shape[1] - 1)


def noise(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(3, n))


@dataclass(frozen=True)
class StructuralModel:
    """A structural model, its graph as predictors, and samplers that contain its conditionals."""

    equations: Callable[..., Mapping[str, Any]]
    predictors: Mapping[str, list[str]]
    sampler: Any

    def chain(self, n: int, seed: int = 0, sampler: Any = None) -> mcce.ChainModel:
        """Return a chain that is fitted to rows of the model, with its graph."""
        rows = self.rows(noise(n, seed))
        made = mcce.ChainModel(sampler=sampler or self.sampler, predictors=self.predictors, random_state=1)
        return made.fit(rows)

    def rows(self, noise: np.ndarray, do: Mapping[str, Any] | None = None) -> pd.DataFrame:
        n = noise.shape[1]
        actions = {}
        for name, value in (do or {}).items():
            codes = {"school": LEVELS, "job": JOBS}.get(name)
            actions[name] = np.full(n, value if codes is None else codes.index(value))
        frame = pd.DataFrame(self.equations(noise, actions))
        for name, levels in (("school", LEVELS), ("job", JOBS)):
            if name in frame:
                frame[name] = pd.Categorical(np.array(levels)[frame[name]], categories=levels)
        return frame


_XYZ = {"y": ["x"], "z": ["x", "y"]}
MODELS = {
    "linear": StructuralModel(linear, _XYZ, "norm"),
    "additive": StructuralModel(
        additive,
        {"y": ["x"], "z": ["y"]},
        {
            "x": "norm",
            "y": mcce.NormSampler(formula="y ~ exp(-(x**2)) + I(x**2)"),
            "z": mcce.NormSampler(formula="z ~ exp(0.2 * y)"),
        },
    ),
    "mediator": StructuralModel(mediator, {"m": ["x"], "y": ["x", "m"]}, "norm"),
    "collider": StructuralModel(collider, {"y": [], "c": ["x", "y"]}, "norm"),
    "confounder": StructuralModel(confounder, {"x": ["w"], "y": ["w", "x"]}, "norm"),
    "classes": StructuralModel(classes, {"job": ["school"], "pay": ["job"]}, {"pay": "norm", "*": "catall"}),
}
