"""Do recommended actions reach the decision in the true world?

    python -m benchmarks.recourse [--only WORLD,...] [--people N] [--dowhy N] [--out FILE]

1. A world is a structural causal model with known equations: `loan` is that of Karimi, von Kügelgen, Schölkopf and
   Valera (2020, "Algorithmic recourse under imperfect causal knowledge"), `career` has levels below the actions, and
   `clinic` is additive and non-linear with a mediator and a confounder. Rows are simulated, and a model is trained on
   noisy responses.
2. Refused people, whose noise is known, get recourse with `assurance=0.9`. A recommendation is carried out in the
   world: its features are set, and their effects follow from the equations. With `keep=1` people keep their noise, with
   `keep=0` the noise of effects is redrawn.
3. Report the share of the recommendations that reach the decision, and the mean of `p_valid`; the share of people with
   recourse; actions, cost (sum of range-scaled steps of the actions) and seconds per person.
4. For comparison, sparse counterfactuals are carried out as actions. They may change the features that recourse may act
   on; or ("unrestricted") all that are not fixed, as if a person could set a salary or a blood pressure.
5. Recourse with a wrong graph: one edge dropped, one reversed.
6. The same search with the mechanisms of dowhy's gcm instead of conditionals of mcce (`--dowhy N`, for the first N
   people; it needs `pip install dowhy`). These are additive noise models with polynomial regressions; levels are passed
   as codes, since its classifiers cannot be inverted, and values are rounded as in the data. `keep=1` are its
   counterfactual samples, `keep=0` its interventional samples of the person's row.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier

import mcce
from benchmarks import report
from benchmarks.page import Page, read_names
from benchmarks.speed import describe_machine
from mcce.counterfactuals import Counterfactuals
from mcce.rng import hash_rows

ASSURANCE = 0.9
N_TRAINING = 5000
NOTES = """\
recourse: share of the refused people who get a recommendation. reach: share of the recommendations that reach the
decision in the true world (se); p_valid: its mean estimate. actions, cost: number of features acted on, and sum of
their range-scaled steps. sec.: per person, including the fit. keep=1: people keep their noise; keep=0: effects
have new noise. counterfactual: sparse counterfactuals, every change carried out as an action; they may change the
features that recourse may act on, unrestricted ones all that are not fixed. dropped, reversed: a graph with one wrong
edge. dowhy: the same search with mechanisms of dowhy's gcm, for the first people."""

Noise = Mapping[str, np.ndarray]
Equation = Callable[[Mapping[str, Any], np.ndarray], Any]


@dataclass(frozen=True)
class World:
    """A structural causal model: noise and equation of each feature, in causal order.

    Attributes
    ----------
    noise : by feature, a function of a generator and a number of rows.
    equations : by feature, a function of the preceding features and of its noise.
    response : the probability of a favourable outcome, for the training labels of the model.
    graph, dropped, reversed : the true graph, and two wrong ones.
    fixed, actions : features that do not change, and those that people can act on.
    """

    noise: Mapping[str, Callable[[np.random.Generator, int], np.ndarray]]
    equations: Mapping[str, Equation]
    response: Callable[[pd.DataFrame], np.ndarray]
    graph: str
    dropped: str
    reversed: str
    fixed: tuple[str, ...]
    actions: tuple[str, ...]

    def draw_noise(self, n: int, rng: np.random.Generator) -> Noise:
        """Draw the noise of some rows."""
        return {name: draw(rng, n) for name, draw in self.noise.items()}

    def rows(self, noise: Noise, given: Mapping[str, Any] | None = None) -> pd.DataFrame:
        """Return the rows of some noise; `given` features have their known values."""
        values: dict[str, Any] = {}
        for name, equation in self.equations.items():
            value = pd.Series(equation(values, noise[name]))
            if given is not None and name in given:
                known = pd.Series(given[name]).reset_index(drop=True)
                value = known.where(known.notna(), value)
            values[name] = value.astype(value.dropna().infer_objects().dtype)
        return pd.DataFrame(values)


def _normal(sd: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, n: rng.normal(0.0, sd, n)


def _uniform(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.uniform(size=n)


def _level(names: list[str], score: Any, uniform: np.ndarray) -> np.ndarray:
    """Return levels that increase with a score and the uniform noise."""
    place = np.clip(np.floor(len(names) * expit(score + np.log(uniform / (1 - uniform)))), 0, len(names) - 1)
    return np.array(names, dtype=object)[place.astype(int)]


def _code(values: pd.Series, names: list[str]) -> pd.Series:
    return values.map(names.index).astype(float)


SCHOOL = ["none", "secondary", "bachelor", "master"]
JOB = ["none", "clerk", "specialist", "manager"]
DIET = ["poor", "mixed", "good"]

WORLDS = {
    "loan": World(
        noise={
            "gender": lambda rng, n: rng.integers(0, 2, n).astype(float),
            "age": lambda rng, n: rng.gamma(10, 3.5, n),
            "education": _normal(0.5),
            "amount": _normal(2.0),
            "duration": _normal(3.0),
            "income": _normal(2.0),
            "savings": _normal(5.0),
        },
        equations={
            "gender": lambda v, u: u,
            "age": lambda v, u: u - 35,
            "education": lambda v, u: expit(-1 + 0.5 * v["gender"] + expit(0.1 * v["age"]) + u) - 0.5,
            "amount": lambda v, u: 1 + 0.01 * (v["age"] - 5) * (5 - v["age"]) + v["gender"] + u,
            "duration": lambda v, u: -1 + 0.1 * v["age"] + 2 * v["gender"] + v["amount"] + u,
            "income": lambda v, u: -4 + 0.1 * (v["age"] + 35) + 2 * v["gender"] + v["gender"] * v["education"] + u,
            "savings": lambda v, u: -4 + 1.5 * (v["income"] > 0) * v["income"] + u,
        },
        response=lambda X: expit(
            0.3 * (-X["amount"] - X["duration"] + X["income"] + X["savings"] + X["income"] * X["savings"])
        ),
        graph="gender, age -> education; gender, age -> amount; gender, age, amount -> duration;"
        "gender, age, education -> income; income -> savings",
        dropped="gender, age -> education; gender, age -> amount; gender, age, amount -> duration;"
        "gender, age, education -> income; savings",
        reversed="gender, age -> education; gender, age -> amount; gender, age, amount -> duration;"
        "gender, age, education, savings -> income",
        fixed=("gender", "age"),
        actions=("education", "amount", "duration", "income", "savings"),
    ),
    "career": World(
        noise={
            "age": lambda rng, n: rng.integers(20, 60, n).astype(float),
            "education": _uniform,
            "job": _uniform,
            "salary": _normal(0.25),
            "savings": _normal(0.6),
        },
        equations={
            "age": lambda v, u: u,
            "education": lambda v, u: _level(SCHOOL, -0.4 - 0.02 * (v["age"] - 40), u),
            "job": lambda v, u: _level(JOB, 1.2 * (_code(v["education"], SCHOOL) - 1.5) + 0.02 * (v["age"] - 40), u),
            "salary": lambda v, u: np.round(
                18000 * np.exp(0.35 * _code(v["job"], JOB) + 0.006 * (v["age"] - 40) + u), -2
            ),
            "savings": lambda v, u: np.round(0.4 * v["salary"] * np.exp(0.02 * (v["age"] - 40) + u), -2),
        },
        response=lambda X: expit((X["salary"] - 38000) / 5000 + (X["savings"] - 15000) / 9000),
        graph="age -> education; age, education -> job; age, job -> salary; age, salary -> savings",
        dropped="age -> education; age, education -> job; age, job -> salary; age -> savings",
        reversed="age -> education; age, education, salary -> job; age -> salary; age, salary -> savings",
        fixed=("age",),
        actions=("education", "job", "savings"),
    ),
    "clinic": World(
        noise={
            "age": lambda rng, n: rng.integers(25, 75, n).astype(float),
            "diet": _uniform,
            "activity": lambda rng, n: rng.gamma(2.0, 1.0, n),
            "weight": _normal(6.0),
            "pressure": _normal(7.0),
            "sugar": _normal(0.5),
        },
        equations={
            "age": lambda v, u: u,
            "diet": lambda v, u: _level(DIET, 0.02 * (v["age"] - 50), u),
            "activity": lambda v, u: np.round(u * np.exp(-0.01 * (v["age"] - 50)), 1),
            "weight": lambda v, u: np.round(
                82 + 0.15 * (v["age"] - 50) - 5 * np.log1p(v["activity"]) - 4 * _code(v["diet"], DIET) + u, 1
            ),
            "pressure": lambda v, u: np.round(112 + 0.02 * (v["weight"] - 60) ** 2 + 0.4 * (v["age"] - 50) + u, 0),
            "sugar": lambda v, u: np.round(
                5 + 0.02 * (v["weight"] - 70) - 0.3 * _code(v["diet"], DIET) + 0.01 * (v["age"] - 50) + u, 1
            ),
        },
        response=lambda X: expit(-(X["pressure"] - 124) / 5 - 1.5 * (X["sugar"] - 5.2)),
        graph="age -> diet; age -> activity; age, diet, activity -> weight; age, weight -> pressure;"
        "age, diet, weight -> sugar",
        dropped="age -> diet; age -> activity; age, diet -> weight; age, weight -> pressure;age, diet, weight -> sugar",
        reversed="age -> diet; age, weight -> activity; age, diet -> weight; age, weight -> pressure;"
        "age, diet, weight -> sugar",
        fixed=("age",),
        actions=("diet", "activity", "weight"),
    ),
}


@dataclass(frozen=True)
class Case:
    """A world with training rows, a model, and refused people whose noise is known."""

    world: World
    training: pd.DataFrame
    model: Any
    people: pd.DataFrame
    noise: Noise

    @classmethod
    def make(cls, world: World, n_people: int, seed: int = 0) -> Case:
        """Simulate and train (step 1)."""
        rng = np.random.default_rng(seed)
        training = cls._levels(world.rows(world.draw_noise(N_TRAINING, rng)))
        labels = rng.uniform(size=N_TRAINING) < world.response(training.astype(_plain(training)))
        options = {"max_iter": 60, "max_depth": 4, "random_state": 0, "categorical_features": "from_dtype"}
        model = HistGradientBoostingClassifier(**options).fit(training, labels)
        noise = world.draw_noise(20 * n_people, rng)
        rows = world.rows(noise).astype(training.dtypes)
        refused = np.flatnonzero(model.predict_proba(rows)[:, 1] < 0.5)[:n_people]
        kept = {name: values[refused] for name, values in noise.items()}
        return cls(world, training, model, rows.iloc[refused].reset_index(drop=True), kept)

    @staticmethod
    def _levels(rows: pd.DataFrame) -> pd.DataFrame:
        orders = {"education": SCHOOL, "job": JOB, "diet": DIET}
        texts = [name for name in rows if rows[name].dtype.kind not in "fi"]
        return rows.astype({name: pd.CategoricalDtype(orders[name], ordered=True) for name in texts})

    def take(self, n: int) -> Case:
        """Return the case of the first people."""
        return replace(self, people=self.people[:n], noise={name: values[:n] for name, values in self.noise.items()})

    def explainer(self, graph: str | None = None, fixed: Sequence[str] = ()) -> mcce.MCCE:
        """Return a fitted explainer."""
        fixed = list(fixed or self.world.fixed)
        made = mcce.MCCE(self.model, decision=(0.5, 1.0), fixed=fixed, graph=graph, random_state=1)
        return made.fit(self.training, relations=())

    def carry_out(self, found: Counterfactuals, *, new_noise: bool) -> np.ndarray:
        """Return which recommendations reach the decision in the world (step 2)."""
        ids = found.frame.index.get_level_values("id").to_numpy()
        changes = found.changes()
        acts = changes[changes["role"] != "consequence"] if "role" in changes else changes
        place = {id: i for i, id in enumerate(ids)}
        given: dict[str, Any] = {}
        for name, some in acts.groupby("feature"):
            column = pd.Series([None] * len(ids), dtype=object)
            column[[place[id] for id in some["id"]]] = some["to"].to_numpy()
            given[str(name)] = column
        noise = {name: values[ids] for name, values in self.noise.items()}
        if new_noise:
            drawn = self.world.draw_noise(len(ids), np.random.default_rng(7))
            plain = self.people.iloc[ids].reset_index(drop=True).astype(_plain(self.people))
            moved = self._effects(set(map(str, acts["feature"])))
            keep = {name: plain[name] for name in self.world.equations if name not in moved}
            noise = {name: drawn[name] if name in moved else values for name, values in noise.items()}
            rows = self._with_effects(noise, given, keep, acts, place)
        else:
            rows = self.world.rows(noise, given)
        rows = rows.astype(self.training.dtypes)
        return self.model.predict_proba(rows[list(self.training.columns)])[:, 1] >= 0.5

    def _effects(self, acted: set[str]) -> set[str]:
        graph = mcce.Graph.read(self.world.graph)
        return {name for each in acted for name in graph.descendants(each)}

    def _with_effects(self, noise: Noise, given: Mapping[str, Any], keep: Any, acts: Any, place: Any) -> pd.DataFrame:
        """Return rows in which only the effects of each person's actions have new noise."""
        graph = mcce.Graph.read(self.world.graph)
        plain = self.people.astype(_plain(self.people))
        set_to = {name: values.copy() for name, values in given.items()}
        for id, some in acts.groupby("id"):
            effects = {name for each in some["feature"] for name in graph.descendants(str(each))}
            for name in self.world.equations:
                column = set_to.setdefault(name, pd.Series([None] * len(place), dtype=object))
                if name not in effects and column[place[id]] is None:
                    column[place[id]] = plain[name].iloc[id]
        return self.world.rows(noise, set_to)


def _plain(rows: pd.DataFrame) -> dict[str, Any]:
    return {name: object for name in rows if isinstance(rows[name].dtype, pd.CategoricalDtype)}


class DowhyWorld:
    """Consequences of actions by the mechanisms of dowhy's gcm (step 6), in place of a fitted chain.

    Random numbers are drawn by dowhy, whose seed is set once.
    """

    def __init__(self, explainer: mcce.MCCE, training: pd.DataFrame, keep: float = 1.0) -> None:
        import networkx as nx
        from dowhy import gcm

        gcm.config.disable_progress_bars()
        gcm.util.general.set_random_seed(1)
        self.schema, self.graph, self.keep = explainer.generator_.schema_, explainer.generator_.graph_, keep
        rows = self._frame(self.schema.encode(training).matrix)
        edges = [(parent, name) for name in self.schema.names for parent in self.graph.parents(name)]
        self.causal = gcm.InvertibleStructuralCausalModel(nx.DiGraph(edges))
        for each in self.schema.features:
            is_root = not self.graph.parents(each.name)
            kind = gcm.AdditiveNoiseModel if each.is_numeric else gcm.DiscreteAdditiveNoiseModel
            mechanism = gcm.EmpiricalDistribution() if is_root else kind(gcm.ml.create_polynom_regressor())
            self.causal.set_causal_mechanism(each.name, mechanism)
        gcm.fit(self.causal, rows)

    def _frame(self, matrix: np.ndarray) -> pd.DataFrame:
        rows = pd.DataFrame(matrix, columns=self.schema.names)
        return rows.astype({each.name: int for each in self.schema.features if not each.is_numeric})

    def world(self, keep: float, derived: object = ()) -> DowhyWorld:
        """Return this object with a `keep` of 0 or 1."""
        self.keep = keep
        return self

    def follow(
        self, rows: np.ndarray, acted: np.ndarray, factuals: np.ndarray, keys: np.ndarray, draws: np.ndarray
    ) -> np.ndarray:
        """Return rows with the consequences of the given cells."""
        from dowhy import gcm

        after = np.where(acted, rows, factuals)
        for pattern in np.unique(acted, axis=0):
            some = np.flatnonzero((acted == pattern).all(axis=1))
            if self.keep:  # the same in all draws
                both = hash_rows(np.hstack([after[some], factuals[some]]))
                _, first, place = np.unique(both, return_index=True, return_inverse=True)
            else:
                first = place = np.arange(some.size)
            before = self._frame(factuals[some[first]])
            values = self._frame(after[some[first]])
            names = [name for name, is_set in zip(self.schema.names, pattern) if is_set]
            do = {name: _one_after_the_other(values[name]) for name in names}
            draw = gcm.counterfactual_samples if self.keep else gcm.interventional_samples
            drawn = draw(self.causal, do, observed_data=before)
            for effect in {effect for name in names for effect in self.graph.descendants(name)} - set(names):
                j = self.schema.position(effect)
                after[some, j] = self._on_grid(j, drawn[effect].to_numpy(dtype=float))[place]
        return after

    def _on_grid(self, j: int, values: np.ndarray) -> np.ndarray:
        feature = self.schema.features[j]
        if not feature.is_numeric:
            return np.clip(np.round(values), 0, feature.n_levels - 1)
        return values if feature.grid.decimals is None else np.round(values, feature.grid.decimals)


def _one_after_the_other(values: pd.Series) -> Callable[[Any], Any]:
    """Return an intervention of dowhy, which is called once for each row, in order."""
    each = iter(values.to_list())
    return lambda _: next(each)


def measure(case: Case, way: str) -> list[str]:
    """Return a line of the table."""
    begun, world = time.perf_counter(), case.world
    keep = 0.0 if "keep=0" in way else 1.0
    if "counterfactual" in way:
        others = [name for name in case.training if name not in world.actions]
        fixed = world.fixed if "unrestricted" in way else others
        found = case.explainer(fixed=fixed).explain(case.people, sparse=True)
    else:
        graph = world.dropped if "dropped" in way else world.reversed if "reversed" in way else world.graph
        explainer = case.explainer(graph)
        if "dowhy" in way:
            explainer.learned_.worlds = (DowhyWorld(explainer, case.training),)
        found = explainer.recourse(case.people, list(world.actions), assurance=ASSURANCE, keep=keep)
    seconds = (time.perf_counter() - begun) / len(case.people)
    reached = case.carry_out(found, new_noise=keep == 0.0)
    share = float(reached.mean())
    promised = f"{found.measures['p_valid'].mean():.3f}" if "p_valid" in found.measures else ""
    return [
        way,
        f"{len(found) / len(case.people):.3f}",
        f"{share:.3f} ({np.sqrt(share * (1 - share) / len(reached)):.3f})",
        promised,
        f"{found.measures['L0'].mean():.2f}",
        f"{found.measures['gower_sum'].mean():.3f}",
        f"{seconds:.3f}",
    ]


WAYS = (
    "recourse, keep=1",
    "recourse, keep=0",
    "counterfactual",
    "counterfactual, unrestricted",
    "dropped, keep=1",
    "reversed, keep=1",
)
DOWHY_WAYS = ("dowhy, keep=1", "dowhy, keep=0")


def main(arguments: list[str] | None = None) -> int:
    """Run the worlds and print their tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recourse", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default=",".join(WORLDS), help=f"worlds: {', '.join(WORLDS)}")
    parser.add_argument("--people", type=int, default=1000, help="refused people in each world")
    parser.add_argument(
        "--dowhy", type=int, default=0, help="people for the search with dowhy, which must be installed"
    )
    parser.add_argument("--out", type=Path, help="a Markdown file to write")
    chosen = parser.parse_args(arguments)
    page = Page("Do recommended actions reach the decision in the true world?")
    page.write_line(report.about(describe_machine()))
    page.write_line(NOTES)
    for name in read_names(parser, "--only", chosen.only, list(WORLDS)):
        case = Case.make(WORLDS[name], chosen.people)
        page.title(f"{name}: {len(case.people)} refused people, {len(case.training)} training rows")
        head = ["", "recourse", "reach (se)", "p_valid", "actions", "cost", "sec."]
        ways = [(case, way) for way in WAYS]
        if chosen.dowhy:
            ways += [(case.take(chosen.dowhy), way) for way in DOWHY_WAYS]
        lines = []
        for some, way in ways:
            lines.append([*measure(some, way), str(len(some.people))])
            print(name, lines[-1], file=sys.stderr, flush=True)
        page.table([*head, "people"], lines)
    if chosen.out is not None:
        page.write(chosen.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
