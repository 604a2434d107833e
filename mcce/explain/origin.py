"""The origin of an explanation, for records: fingerprints of model and explainer, a hash of the training table.

1. The model is queried for `PROBES` rows drawn with a fixed seed from the ranges and levels of the columns. They are
   the same for every explainer with these columns, and are not training rows. The fingerprint is a hash of the
   predictions.
2. The fingerprint of an explainer is a hash of its columns, fixed features, constraints and relations, and of decisions
   and draws given the fixed values of some of these rows. A loaded or refitted explainer that draws the same has the
   same fingerprint.
3. Numbers are hashed with 6 significant digits, as further digits depend on processor and threads.
4. The hash of the training table is a hash of the hashes of its rows, in order. Private fits and explainers that were
   saved without training values have none.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from mcce.base.arrays import Floats
from mcce.base.versions import versions_of
from mcce.constraints import read
from mcce.constraints.excluded import TrainingRows
from mcce.explain.draw import draw_pools
from mcce.explain.problem import fixed_columns, pool_keys
from mcce.explain.protocol import Explainer
from mcce.model.decisions import Interval, Not, OneOf, resolve_decision
from mcce.model.queries import EncodedModel
from mcce.records.canonical import canonical, sha256, to_json
from mcce.rng import RowStreams
from mcce.table import Feature, Schema

PROBES, DRAWN_FOR, DRAWS, SEED = 256, 64, 16, 20_250_227
PACKAGES = ("mcce", "numpy", "scipy", "pandas", "numba", "scikit-learn")  # packages that affect the numbers


def fingerprint_of(explainer: Explainer, training: TrainingRows | None) -> dict[str, Any]:
    """Return the sections of a record on model, explainer and data; see `mcce.MCCE.fingerprint`."""
    generator = explainer.generator_
    schema, decision = generator.schema_, explainer.decision_
    probes = probe_rows(schema)
    scores, wanted = EncodedModel(decision, schema).predict_encoded(probes)
    givers = probes[:DRAWN_FOR]
    drawn = draw_pools(generator, givers, pool_keys(generator, givers, fixed_columns(generator)), DRAWS).rows
    described = {
        "columns": [[str(f.name), f.kind, str(f.dtype), [*map(str, _levels(f))]] for f in schema.features],
        "fixed": [str(name) for name in generator.fixed_],
        "constraints": [to_json(each, "constraints") for each in read(explainer.constraints)],
        "relations": [str(each) for each in explainer.relations_],
        "derived": [[str(each.target), each.text] for each in explainer.derived_],
        "wanted": wanted.tolist(),
        "draws": rounded(drawn.ravel(order="C")),
    }
    model = [explainer.model] if explainer.model is not None else [each for _, each, _ in explainer.decision.models]
    packages = {type(each).__module__.partition(".")[0] for each in model} - {"builtins", "__main__", "mcce", "sklearn"}
    return {
        "seed": int(generator.seed_),
        "decision": _rule(explainer),
        "model": {
            "type": ", ".join(type(each).__name__ for each in model),
            "fingerprint": sha256(canonical(rounded(scores))),
        },
        "explainer": {"fingerprint": sha256(canonical(described))},
        "training": {
            "rows": None if training is None else int(training.hashes.size),
            "hash": None if training is None else sha256(training.hashes.astype("<u8").tobytes()),
        },
        "versions": versions_of([*PACKAGES, *sorted(packages)]) | {"processor": platform.machine()},
    }


def _rule(explainer: Explainer) -> str:
    """Return the wanted decision with its bounds or classes, in place of abbreviations."""
    decision = explainer.decision
    if isinstance(decision, (Interval, OneOf, Not)):
        return resolve_decision(replace(decision, label=None), explainer.model).describe()
    return explainer.decision_.describe()


def probe_rows(schema: Schema) -> Floats:
    """Return rows drawn uniformly from the ranges and levels of the columns, the same in every process."""
    rows = np.full((PROBES, len(schema)), np.nan, order="F")
    streams = RowStreams.from_seed(SEED, PROBES)
    for j, feature in enumerate(schema.features):
        uniform = streams.uniform()
        if not feature.is_numeric:
            rows[:, j] = np.floor(uniform * feature.n_levels)
        elif not np.isnan(feature.low):
            rows[:, j] = feature.grid.put(feature.low + uniform * feature.span)
    return rows


def _levels(feature: Feature) -> Iterable[Any]:
    return () if feature.levels is None else feature.levels


def rounded(values: Iterable[Any]) -> list[str]:
    """Return numbers as text without the last digits, and other values as text."""
    return [f"{v + 0.0:.6g}" if isinstance(v, (float, np.floating)) else str(v) for v in values]
