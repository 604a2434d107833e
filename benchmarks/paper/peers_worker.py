"""Run one peer, DiCE or NICE, on a stored problem; a standalone script, possibly for another Python.

    PYTHON peers_worker.py FOLDER METHOD SECONDS

1. Read the problem from FOLDER: ``problem.json`` (names, fixed and categorical columns) and ``problem.npz``
   (training rows, response, factuals, and the network as arrays).
2. Build the peer on the training rows; print one line of JSON with the seconds.
3. Explain factual by factual until they are done or SECONDS have passed since step 2 began; print one line of JSON
   for each: its position, the row or null, seconds, and the error.

The peers pin versions of numpy and pandas that mcce does not support, so this file needs neither mcce nor pickles of
scikit-learn: the network is evaluated here, from its weights.
"""

import json
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

RESPONSE = "<wanted>"


class Network:
    """A multi-layer perceptron behind a linear scaling: relu layers and a logistic unit."""

    classes_ = np.array([0, 1])

    def __init__(self, arrays):
        self.shift, self.factor = arrays["shift"], arrays["factor"]
        self.layers = [(arrays[f"weights{k}"], arrays[f"biases{k}"]) for k in range(int(arrays["n_layers"]))]

    def predict_proba(self, rows):
        values = (np.asarray(rows).astype(float) - self.shift) * self.factor
        for weights, biases in self.layers[:-1]:
            values = np.maximum(values @ weights + biases, 0)
        weights, biases = self.layers[-1]
        wanted = 1 / (1 + np.exp(-(values @ weights + biases)[:, 0]))
        return np.column_stack([1 - wanted, wanted])

    def predict(self, rows):
        return (self.predict_proba(rows)[:, 1] >= 0.5).astype(int)


class Problem:
    """The stored problem."""

    def __init__(self, folder):
        stored = json.loads((folder / "problem.json").read_text())
        arrays = np.load(folder / "problem.npz")
        self.columns, self.fixed, self.categorical = stored["columns"], stored["fixed"], stored["categorical"]
        self.whole = stored["whole"]
        self.X, self.y, self.factuals = arrays["X"], arrays["y"], arrays["factuals"]
        self.network = Network(arrays)

    def frame(self, values):
        """Return a frame as DiCE requires it: whole numbers as integers, categories as strings."""
        frame = pd.DataFrame(values, columns=self.columns)
        frame = frame.astype({c: int for c in self.whole})
        return frame.astype({c: str for c in self.categorical})

    def places(self, names):
        return [self.columns.index(name) for name in names]


def make_dice(problem, method):
    """Return a function that explains one factual by DiCE's ``random``, ``genetic`` or ``kdtree``."""
    import dice_ml

    table = problem.frame(problem.X).assign(**{RESPONSE: problem.y.astype(int)})
    numbers = [c for c in problem.columns if c not in problem.categorical]
    data = dice_ml.Data(dataframe=table, continuous_features=numbers, outcome_name=RESPONSE)
    explainer = dice_ml.Dice(data, dice_ml.Model(model=problem.network, backend="sklearn"), method=method)
    mutable = [c for c in problem.columns if c not in problem.fixed]
    seed = {"random_seed": 1} if method == "random" else {}

    def explain(factual):
        query = problem.frame(factual[None, :])
        found = explainer.generate_counterfactuals(
            query, total_CFs=1, desired_class=1, features_to_vary=mutable, verbose=False, **seed
        )
        rows = found.cf_examples_list[0].final_cfs_df
        return None if rows is None or rows.empty else rows[problem.columns].iloc[0].astype(float).tolist()

    return explain


def make_nice(problem, among_same_fixed):
    """Return a function that explains one factual by NICE's search for sparsity.

    NICE has no fixed features. With `among_same_fixed` it gets only the training rows with the factual's fixed values,
    and cannot change them.
    """
    from nice import NICE

    def nice(rows):
        return NICE(
            predict_fn=problem.network.predict_proba,
            X_train=problem.X[rows].copy(),
            y_train=problem.y[rows].astype(int),
            cat_feat=problem.places(problem.categorical),
            optimization="sparsity",
            justified_cf=True,
        )

    everybody = None if among_same_fixed else nice(np.arange(len(problem.X)))
    fixed = problem.places(problem.fixed)

    def explain(factual):
        if everybody is not None:
            return everybody.explain(factual[None, :].copy(), target_class=[1])[0].tolist()
        same = np.flatnonzero((problem.X[:, fixed] == factual[fixed]).all(axis=1))
        usable = problem.y[same].astype(bool) & (problem.network.predict(problem.X[same]) == 1)
        if not usable.any():
            return None
        return nice(same).explain(factual[None, :].copy(), target_class=[1])[0].tolist()

    return explain


MAKERS = {
    "dice-random": lambda problem: make_dice(problem, "random"),
    "dice-genetic": lambda problem: make_dice(problem, "genetic"),
    "dice-kdtree": lambda problem: make_dice(problem, "kdtree"),
    "nice": lambda problem: make_nice(problem, False),
    "nice-fixed": lambda problem: make_nice(problem, True),
}


def report(**what):
    """Print one line of JSON immediately."""
    print(json.dumps(what), flush=True)


def main(folder, method, seconds):
    """Explain until the time limit."""
    warnings.simplefilter("ignore")
    problem = Problem(Path(folder))
    np.random.seed(1)  # noqa: NPY002  DiCE draws from the global generator
    begun = time.perf_counter()
    explain = MAKERS[method](problem)
    distribution = "dice-ml" if method.startswith("dice") else "NICEx"
    report(prepared=time.perf_counter() - begun, version=f"{distribution} {version(distribution)}")
    for place, factual in enumerate(problem.factuals):
        if time.perf_counter() - begun > seconds:
            return
        row = why = None
        started = time.perf_counter()
        try:
            row = explain(factual)
            why = None if row else "none found"
        except Exception as error:  # any failure of a peer is a result
            why = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        report(place=place, row=row, why=why, seconds=time.perf_counter() - started)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
