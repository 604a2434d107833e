"""Factuals without a counterfactual: what became of their candidates, and what would have helped, found by trying.

1. A factual whose constraints contradict each other is passed over before anything is drawn (`find_open`).
2. Of one that stays without a counterfactual it is told how many rows were drawn, how many died and of what, how many
   were plausible, how many the model was asked about, and the drawn row that came nearest to the decision.
3. Four times as many draws are tried, and each demand is dropped alone: each constraint, the bounds, the exclusion of
   copies, the share of refits. What leads to a counterfactual is named; if nothing does, all constraints are dropped.

Why a factual has no counterfactual, as far as the training data tell.

What constraints do: how many draws without them would break each, and how many rows they let pass.

1. A constraint binds as far as draws without any constraints break it; that share is found from some factuals' draws.
2. While rows are drawn inside the constraints, those of which nothing allowed can be drawn die. For each constraint it
   is counted how many rows came to it alive and how many passed. What several constraints say of one feature is drawn
   together, and counted together.
3. What numbers may be for each factual is told as a lowest and a highest value; rules and grids are left aside.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Floats, Ints, UInts
from mcce.constraints import Constraints
from mcce.explain.adaptive import MOST_DRAWS, explain_all
from mcce.explain.factuals import Factuals
from mcce.explain.pools import draw_pools, fixed_columns, pool_keys
from mcce.explain.search import Outcome, Task, draw_block, explain_block, keys_of, make_blocks
from mcce.generators.base import Generator
from mcce.model.decisions import Decision
from mcce.model.robustness import ConfirmingAsker
from mcce.rng import hash_rows
from mcce.table.checks import find_labels

ALREADY = "already has the wanted decision"
NOBODY_ALIKE = "no training row has its fixed values"
NONE_ALIKE_WANTED = "no training row with its fixed values"
NO_ROOM = "nothing can meet its constraints"


def unexplained_table(
    generator: Generator, factuals: Factuals, owner: Ints, n_samples: int | None, *, also: Sequence[str] = ()
) -> pd.DataFrame:
    """List the factuals that own no counterfactual, each with its reason; `also` is what else was asked of rows."""
    without = np.setdiff1d(np.arange(len(factuals)), owner)
    denied = without[~factuals.wanted[without]]
    keys = pool_keys(generator, factuals.matrix[denied], fixed_columns(generator))
    pool, first = np.unique(keys, return_index=True)  # reasons depend on the fixed values alone
    reasons = why_none(generator, factuals.matrix[denied[first]], n_samples, also=also)
    words = np.full(without.size, ALREADY, dtype=object)
    words[~factuals.wanted[without]] = reasons[np.searchsorted(pool, keys)]
    frame = pd.DataFrame({"reason": pd.Series(words, dtype=object), "prediction": factuals.scores[without]})
    frame.index = factuals.index[without].rename("id")
    return frame


def why_none(
    generator: Generator, matrix: Floats, n_samples: int | None, *, also: Sequence[str] = ()
) -> npt.NDArray[np.object_]:
    """Say why each of some encoded rows has no counterfactual among `n_samples` draws, or among the candidates."""
    which = f"none of the {n_samples} candidates" if n_samples else "no candidate"
    tried = " and ".join([f"{which} has the wanted decision", *also])
    more = "draw more" if n_samples else "bring more of them"
    words = np.full(matrix.shape[0], f"{tried}; {more}", dtype=object)
    if not (generator.conditions_on_decision_ and generator.fixed_):
        return words
    n_alike, n_wanted = _count_alike(generator, matrix)
    words[:] = f"{tried}, though training rows with its fixed values do; {more}"
    for i in np.flatnonzero(n_wanted == 0).tolist():
        values = generator.schema_.decode(matrix[[i]])[generator.fixed_].iloc[0]
        said = ", ".join(f"{name} = {value}" for name, value in values.items())
        words[i] = (
            f"{tried}, and {NONE_ALIKE_WANTED} ({said}) has it"
            if n_alike[i]
            else f"{tried}, and {NOBODY_ALIKE} ({said})"
        )
    return words


def _count_alike(generator: Generator, matrix: Floats) -> tuple[Ints, Ints]:
    """Return how many training rows have the fixed values of each row, and how many of these the wanted decision."""
    training = generator.training_givens_
    known = hash_rows(training[:, :-1])
    asked = hash_rows(generator.givens_of(matrix)[:, :-1])
    counts = []
    for hashes in (known, known[training[:, -1] != 0]):
        hashes = np.sort(hashes)
        counts.append(np.searchsorted(hashes, asked, side="right") - np.searchsorted(hashes, asked))
    return counts[0], counts[1]


TRIED_FACTUALS, TRIED_DRAWS = 100, 100


def binding_table(
    generator: Generator,
    constraints: Constraints,
    matrix: Floats,
    ids: pd.Index[Any],
    keys: UInts,
    acceptance: Mapping[Hashable, Ints],
) -> pd.DataFrame:
    """Return `breaks`, `tried` and `passed` by constraint, for some factuals (encoded rows, names, keys)."""
    some = np.unique(np.linspace(0, max(len(ids) - 1, 0), TRIED_FACTUALS).astype(np.intp))[: len(ids)]
    breaks = dict.fromkeys(constraints.texts, np.nan)
    if some.size:
        pools = draw_pools(generator, matrix[some], keys[some], TRIED_DRAWS)
        rows = np.concatenate([pools.rows[a:b] for a, b in zip(pools.begin, pools.end)])
        owner = np.repeat(some, pools.end - pools.begin)
        broken = constraints.broken(rows, matrix[owner], ids[owner])
        breaks |= {text: float(which.mean()) for text, which in broken.items()}
    counts = [acceptance.get(constraints.counted_as(text), (0, 0)) for text in constraints.texts]
    table = pd.DataFrame(np.array(counts, dtype=np.int64).reshape(-1, 2), columns=["tried", "passed"])
    table.insert(0, "breaks", list(breaks.values()))
    return table.set_axis(pd.Index(list(breaks), dtype=object, name="constraint"), axis=0)


def allowed_table(constraints: Constraints, matrix: Floats, ids: pd.Index[Any]) -> pd.DataFrame:
    """Return the lowest and highest value that each factual is allowed, for numbers that a constraint limits (step 3).

    The columns are (feature, "low") and (feature, "high"), inside the training range; missing where no number is
    allowed.
    """
    columns: dict[tuple[Hashable, str], Any] = {}
    for name, within in constraints.within(matrix, ids).items():
        feature = constraints.schema.features[constraints.schema.position(name)]
        if not feature.is_numeric or np.isnan(feature.low):
            continue
        low, high = within.bounds(len(ids))
        some = low <= high
        for end, bound in (("low", low), ("high", high)):
            inside = np.clip(np.where(some, bound, feature.low), feature.low, feature.high)
            ends = pd.Series(feature.decode(inside)).set_axis(ids)
            columns[name, end] = ends if some.all() else ends.where(some)
    limited = list(dict.fromkeys(name for name, _ in columns))
    # a feature may be named by a tuple, which pandas would take apart
    levels: list[Any] = [pd.Index(limited, dtype=object, tupleize_cols=False), ["low", "high"]]
    codes = [np.repeat(np.arange(len(limited)), 2).tolist(), [0, 1] * len(limited)]
    names = pd.MultiIndex(levels=levels, codes=codes, names=["feature", "end"])
    table = pd.DataFrame(dict(enumerate(columns.values())), index=ids)
    return table.set_axis(names if columns else pd.Index([]), axis=1)


MOST_TOLD = 5  # factuals that are looked into unless all are asked for
MORE = 4  # times as many draws
TOLD = ("drawn", "dead", "plausible", "asked", "nearest", "would_help")


@dataclass(frozen=True)
class Why:
    """What is known of factuals without a counterfactual, by position.

    Attributes
    ----------
    contradictions : why nothing could meet the constraints.
    told : the columns of `TOLD`, for some; None if nobody was looked into.
    without_candidates : those for whom the user brought none.
    places, nearest : encoded drawn rows that came nearest to the decision, and whose they are.
    """

    contradictions: Mapping[int, str] = field(default_factory=dict)
    told: pd.DataFrame | None = None
    places: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    nearest: Floats = field(default_factory=lambda: np.empty((0, 0)))
    without_candidates: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))


def find_open(task: Task, factuals: Factuals) -> tuple[Ints, dict[int, str]]:
    """Return who is to be explained, and whose constraints contradict each other (step 1)."""
    refused = np.flatnonzero(~factuals.wanted)
    if task.constraints is None or not len(factuals):
        return refused, {}
    table = task.constraints.check_factuals(factuals.matrix, factuals.index)
    reasons = table.groupby(level=0, sort=False)["reason"].first()
    places = find_labels(factuals.index, reasons.index)
    found = {int(i): str(reason) for i, reason in zip(places, reasons) if not factuals.wanted[i]}
    return np.setdiff1d(refused, list(found)), found


def describe_constraints(task: Task, factuals: Factuals, which: Ints, outcome: Outcome) -> pd.DataFrame | None:
    """Return what each constraint does (`mcce.explain.unexplained`); None if there are none."""
    if task.constraints is None or not task.constraints.said:
        return None
    keys = keys_of(task, factuals)[which]
    matrix, ids = factuals.matrix[which], factuals.index[which]
    return binding_table(task.generator, task.constraints, matrix, ids, keys, outcome.acceptance)


def tell_why(
    task: Task,
    decision: Decision,
    factuals: Factuals,
    which: Ints,
    outcome: Outcome,
    contradictions: Mapping[int, str],
    *,
    asked_for: bool | None = None,
) -> Why:
    """Look into factuals of `which` without a counterfactual (steps 2 and 3).

    `asked_for` None looks into the first few if there is a demand that could be dropped, True into all.
    """
    without = np.setdiff1d(which, outcome.owner)[: None if asked_for else MOST_TOLD]
    wanted = bool(list(_single_relaxations(task))[1:]) if asked_for is None else asked_for
    if not wanted or not without.size:
        return Why(contradictions)
    rows, nearest, places = [], [], []
    for i in without:
        told, best = _look_into(task, decision, factuals, int(i))
        rows.append(told)
        if best is not None:
            nearest.append(best)
            places.append(int(i))
    table = pd.DataFrame(rows, index=without)
    table["would_help"] = _what_helps(task, factuals, without)
    found = np.array(nearest).reshape(len(places), factuals.matrix.shape[1])
    return Why(contradictions, table, np.array(places, dtype=np.int64), found)


def look_into(task: Task, decision: Decision, factuals: Factuals, i: int) -> dict[str, object]:
    """Return the columns of `TOLD` for one factual without a counterfactual (steps 2 and 3)."""
    told, _ = _look_into(task, decision, factuals, i)
    return {**told, "would_help": _what_helps(task, factuals, np.array([i]))[0]}


def _look_into(task: Task, decision: Decision, factuals: Factuals, i: int) -> tuple[dict[str, object], Floats | None]:
    """Step 2 for one factual, alone; also its drawn row that came nearest to the decision."""
    n_samples = MOST_DRAWS if task.settings.n_samples == "auto" else task.settings.n_samples
    (block,) = make_blocks(task, factuals, np.array([i]), range(n_samples))
    alone = explain_block(task, block)
    pools = draw_block(task, block)
    rows = pools.candidates.rows[pools.candidates.begin[0] : pools.candidates.end[0]]
    if task.constraints is not None:
        rows = rows[task.constraints.of_factuals(block.matrix, block.ids).hold(rows, np.zeros(len(rows), np.int64))]
    dead = {str(name): int(tried - passed) for name, (tried, passed) in pools.acceptance.items() if passed < tried}
    plausible: object = None
    if task.plausibility is not None and rows.shape[0]:
        fold = np.repeat(task.plausibility.fold_of(block.matrix), rows.shape[0])
        least = task.plausibility.least_score(task.settings.floor)
        plausible = int((task.plausibility.score(rows, fold) >= least).sum())
    told: dict[str, object] = {
        "drawn": n_samples,
        "dead": ", ".join(f"{count} by {name}" for name, count in dead.items()) or "none",
        "plausible": plausible,
        "asked": alone.n_asked,
        "nearest": np.nan,
    }
    if not rows.shape[0]:
        return told, None
    scores = task.asker.ask_encoded(rows)[0]
    short = decision.shortfall(scores)
    if short is None:
        return told, None
    best = int(np.argmin(short))
    return {**told, "nearest": scores[best]}, rows[best]


def _what_helps(task: Task, factuals: Factuals, which: Ints) -> list[str]:
    """Step 3: return for each factual what leads to a counterfactual."""
    helps: dict[int, list[str]] = {int(i): [] for i in which}

    def attempt(words: str, relaxed: Task, left: Ints) -> None:
        found = explain_all(relaxed, factuals, left, lambda _: None).outcome
        for i in np.unique(found.owner):
            helps[int(i)].append(words)

    for words, relaxed in _single_relaxations(task):
        attempt(words, relaxed, which)
    left = np.array([i for i, words in helps.items() if not words], dtype=np.int64)
    if left.size and task.constraints is not None and len(task.constraints.texts) > 1:
        attempt("no constraints at all", replace(task, constraints=task.constraints.understood or None), left)
    return ["; or ".join(words) if words else "nothing that was tried" for words in helps.values()]


def _single_relaxations(task: Task) -> Iterator[tuple[str, Task]]:
    """Yield what is asked with one demand less, in words; more draws come first."""
    settings = replace(task.settings, n_counterfactuals=1, diverse=False)
    task = replace(task, settings=settings)
    if settings.n_samples != "auto":
        more = MORE * settings.n_samples
        yield f"{more} draws", replace(task, settings=replace(settings, n_samples=more))
    if task.constraints is not None:
        for text in task.constraints.texts:
            left = task.constraints.without(text)
            yield f"without the constraint {text!r}", replace(task, constraints=left if left else None)
    if settings.max_changes is not None or settings.max_gower is not None:
        free = replace(settings, max_changes=None, max_gower=None)
        yield "without bounds on changes or distance", replace(task, settings=free)
    if settings.exclude_training:
        free = replace(settings, exclude_training=False)
        yield "with copies of training rows", replace(task, settings=free, excluded=None)
    if isinstance(task.asker, ConfirmingAsker):
        yield "without the demand to be robust", replace(task, asker=task.asker.model)
