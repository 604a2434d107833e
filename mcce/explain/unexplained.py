"""Factuals without a counterfactual: the reason, what became of their candidates, and what would have helped.

1. A factual whose constraints contradict each other is passed over before anything is drawn (`Problem.contradictions`).
2. Of the others, the training rows with the same fixed values tell whether the wanted decision is rare among them
   (`unexplained_table`).
3. On demand it is told of one how many rows were drawn inside all that is asked of it, how many were rejected and by
   what, how many were plausible, how many the model was asked about, and the drawn row that came nearest to the
   decision (`look_into`).
4. Four times as many draws are tried, and each demand is dropped alone: each constraint, the bounds, the exclusion of
   copies, the share of refits. What leads to a counterfactual is named; if nothing does, all constraints are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Floats, Ints
from mcce.explain.acceptance import Acceptance
from mcce.explain.adaptive import MOST_DRAWS
from mcce.explain.factuals import Factuals
from mcce.explain.pools import fixed_columns, pool_keys
from mcce.explain.problem import Problem
from mcce.explain.search import draw_block, draw_own_block, explain_block, search
from mcce.generators.base import Generator
from mcce.model.robustness import ConfirmingAsker
from mcce.report.reasons import ALREADY, NO_ROOM, NOBODY_ALIKE, NONE_ALIKE_WANTED
from mcce.rng import hash_rows

MOST_TOLD = 5  # factuals that a command line looks into
MORE = 4  # times as many draws


def unexplained_table(
    problem: Problem, factuals: Factuals, owner: Ints, drawn: Ints | None, contradictions: Mapping[int, str]
) -> pd.DataFrame:
    """List the factuals that own no counterfactual, each with its reason (step 2).

    `drawn` has how many rows were drawn for each factual; None if the user brought candidates.
    """
    generator = problem.generator
    without = np.setdiff1d(np.arange(len(factuals)), owner)
    denied = without[~factuals.wanted[without]]
    keys = pool_keys(generator, factuals.matrix[denied], fixed_columns(generator))
    pool, first = np.unique(keys, return_index=True)  # reasons depend on the fixed values alone
    n_samples = None if drawn is None else int(drawn.max(initial=0))
    reasons = why_none(generator, factuals.matrix[denied[first]], n_samples, also=_demands(problem))
    words = np.full(without.size, ALREADY, dtype=object)
    words[~factuals.wanted[without]] = reasons[np.searchsorted(pool, keys)]
    for i, reason in contradictions.items():
        words[np.searchsorted(without, i)] = f"{NO_ROOM}: {reason}"
    frame = pd.DataFrame({"reason": pd.Series(words, dtype=object), "prediction": factuals.scores[without]})
    frame.index = factuals.index[without].rename("id")
    return frame


def _demands(problem: Problem) -> list[str]:
    """Return what was asked of rows beside the wanted decision, in words."""
    settings = problem.settings
    demands = ["obeys the constraints"] if problem.constraints is not None and problem.constraints.explicit else []
    demands += ["keeps the relations between columns"] if problem.relations is not None else []
    demands += ["is no copy of a training row"] if settings.exclude_training else []
    if settings.max_changes is not None or settings.max_gower is not None:
        demands.append("lies within the bounds")
    if problem.anonymity is not None:
        demands.append(f"is shared by {problem.anonymity.k} training people on the keys")
    if isinstance(problem.question, ConfirmingAsker):
        demands.append("keeps it under refits and noise")
    return demands


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
        row = generator.schema_.decode(matrix[[i]])  # by column: a row of dates in several units cannot be taken whole
        fixed = ", ".join(f"{name} = {row[name].iloc[0]}" for name in generator.fixed_)
        words[i] = (
            f"{tried}, and {NONE_ALIKE_WANTED} ({fixed}) has it"
            if n_alike[i]
            else f"{tried}, and {NOBODY_ALIKE} ({fixed})"
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


def look_into(problem: Problem, factuals: Factuals, i: int) -> tuple[dict[str, object], Floats | None]:
    """Step 3 for one factual, alone; also its drawn row that came nearest to the decision."""
    n_samples = MOST_DRAWS if problem.settings.n_samples == "auto" else problem.settings.n_samples
    (block,) = problem.blocks(factuals, np.array([i]), range(n_samples))
    alone = explain_block(problem, block)
    pools = draw_block(problem, block) if problem.constraints is None else draw_own_block(problem, block)
    rows = pools.candidates.rows[pools.candidates.begin[0] : pools.candidates.end[0]]
    acceptance, owner = Acceptance(problem, block.matrix, block.ids), np.zeros(len(rows), dtype=np.int64)
    rows = acceptance.complete(rows, owner)
    rows = rows[acceptance.admits(rows, owner)]
    rejected = {str(name): int(tried - passed) for name, (tried, passed) in pools.acceptance.items() if passed < tried}
    plausible: object = None
    if problem.plausibility is not None and rows.shape[0]:
        plausible = int((acceptance.plausibility(rows, owner[: rows.shape[0]]) >= problem.least).sum())
    told: dict[str, object] = {
        "drawn": n_samples,
        "rejected": ", ".join(f"{count} by {name}" for name, count in rejected.items()) or "none",
        "plausible": plausible,
        "asked": alone.cost.asked,
        "nearest": np.nan,
    }
    if not rows.shape[0]:
        return told, None
    scores = acceptance.query(rows)[0]
    short = problem.decision.shortfall(scores)
    if short is None:
        return told, None
    best = int(np.argmin(short))
    return {**told, "nearest": scores[best]}, rows[best]


def what_helps(problem: Problem, factuals: Factuals, which: Ints) -> list[str]:
    """Step 4: return for each factual what leads to a counterfactual."""
    helps: dict[int, list[str]] = {int(i): [] for i in which}

    def attempt(words: str, relaxed: Problem, left: Ints) -> None:
        found, _ = search(relaxed, factuals, left, lambda _: None)
        for i in np.unique(found.owner):
            helps[int(i)].append(words)

    for words, relaxed in _single_relaxations(problem):
        attempt(words, relaxed, which)
    left = np.array([i for i, words in helps.items() if not words], dtype=np.int64)
    if left.size and problem.constraints is not None and len(problem.constraints.texts) > 1:
        attempt("no constraints at all", replace(problem, constraints=problem.constraints.implicit or None), left)
    return ["; or ".join(words) if words else "nothing that was tried" for words in helps.values()]


def _single_relaxations(problem: Problem) -> Iterator[tuple[str, Problem]]:
    """Yield what is asked with one demand less, in words; more draws come first."""
    settings = replace(problem.settings, n_counterfactuals=1, diverse=False)
    problem = replace(problem, settings=settings)
    if settings.n_samples != "auto":
        more = MORE * settings.n_samples
        yield f"{more} draws", replace(problem, settings=replace(settings, n_samples=more))
    if problem.constraints is not None:
        for text in problem.constraints.texts:
            left = problem.constraints.without(text)
            yield f"without the constraint {text!r}", replace(problem, constraints=left if left else None)
    if problem.anonymity is not None:
        yield "without k_anonymous", replace(problem, anonymity=None)
    if problem.relations is not None:
        yield "without the relations between columns", replace(problem, relations=None)
    if settings.max_changes is not None or settings.max_gower is not None:
        free = replace(settings, max_changes=None, max_gower=None)
        yield "without bounds on changes or distance", replace(problem, settings=free)
    if settings.exclude_training:
        yield "with copies of training rows", replace(problem, settings=replace(settings, exclude_training=False))
    if isinstance(problem.question, ConfirmingAsker):
        yield "without the demand to be robust", replace(problem, question=problem.question.model)
