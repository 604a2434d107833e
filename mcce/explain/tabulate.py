"""Convert winners to `Counterfactuals`: frames with the user's names and dtypes, measures, reasons, settings.

Nothing is drawn, searched or queried here.

1. The winners are decoded and indexed by factual and rank, and so are their measures.
2. The effect of constraints is described. A constraint is binding to the extent that unconstrained draws violate it.
   Rows for which no allowed value can be drawn are rejected: for each constraint, the rows checked and the rows
   accepted are counted. Several constraints on one feature are counted together. The allowed range of numbers of each
   factual is shown as a lowest and a highest value, without rules and grids.
3. The factuals without a counterfactual are listed with the reason (`unexplained_table`): contradictory constraints, or
   whether the wanted decision is rare among training rows with the same fixed values. Rows that were left out are
   restored at their positions and listed too.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Floats, Ints
from mcce.constraints import Constraints
from mcce.counterfactuals import Counterfactuals, Questions, Run
from mcce.exceptions import spell_all
from mcce.explain.diverse import diversity_table, with_values
from mcce.explain.pipeline import Explanation
from mcce.explain.problem import Factuals, Problem, fixed_columns, pool_keys
from mcce.generators.base import Generator
from mcce.model.robustness import ConfirmedModel
from mcce.report.reasons import ALREADY, NO_ROOM, NONE_ALIKE, NONE_ALIKE_WANTED, UNREADABLE
from mcce.rng import hash_rows
from mcce.table import Schema
from mcce.table.frames import build_frame
from mcce.table.left_out import LeftOut


def tabulate(
    explained: Explanation, settings: Mapping[str, object], fit_seconds: float, questions: Questions
) -> Counterfactuals:
    """Return the tables of a result.

    Parameters
    ----------
    explained : the explanation.
    settings : the settings by name.
    fit_seconds : the time of fitting the explainer.
    questions : the follow-up questions of the result.
    """
    problem, factuals, winners = explained.problem, explained.factuals, explained.winners
    schema, cost, drawn = problem.generator.schema_, explained.cost, explained.drawn
    owner, rows = winners.owner, winners.rows
    rank = np.arange(owner.size) - np.searchsorted(owner, owner) + 1
    index = pd.MultiIndex.from_arrays([factuals.index[owner], rank], names=["id", "rank"])
    given = None if problem.constraints is None else problem.constraints.explicit
    uncounted = list(problem.uncounted)
    pairwise = diversity_table(owner, with_values(rows, uncounted, 0.0) if uncounted else rows, schema.features)
    pairwise.index = factuals.index[pairwise.index].rename("id")
    demanded = {} if problem.robustness is None else problem.robustness.described()
    frame = schema.decode(rows, index)
    result = Counterfactuals(
        frame=frame,
        measures=_measure_table(explained, index),
        factuals=schema.decode(factuals.matrix, factuals.index),
        unexplained=unexplained_table(problem, factuals, owner, drawn, explained.contradictions),
        constraints=binding_table(explained) if given else None,
        allowed=allowed_table(given, factuals.matrix, factuals.index) if given else None,
        factual_predictions=pd.Series(factuals.scores, index=factuals.index, name="prediction"),
        decision=problem.decision.describe(),
        fixed=(*problem.generator.fixed_, *(schema.names[j] for j in problem.derived_from_fixed)),
        computed=tuple(schema.names[j] for j in sorted(uncounted)),
        derived=tuple(schema.names[j] for j in sorted(problem.derived)),
        kinds=dict(schema.kinds),
        ranges=dict(schema.ranges),
        draws=None if drawn is None else pd.Series(drawn, index=factuals.index, name="draws"),
        run=Run(
            settings={**settings, **demanded, "rows_queried": cost.rows_queried},
            timings={"fit": fit_seconds, "generate": cost.seconds_generate, "select": cost.seconds_select},
        ),
        copies=None if problem.training is None else int(problem.training.contain(rows).sum()),
        names=replace(problem.names, ends=problem.decision.ends()),
        _questions=questions,
        _rules={who: given.texts_of(who) for who in factuals.index} if given else {},
        _frame_kind=factuals.frames,
        _along=pd.DataFrame(winners.incidental, index, frame.columns.view()) if problem.settings.sparse else None,
        _pairwise=pairwise,
    )
    return result if factuals.left_out is None else with_left_out(result, factuals.left_out, schema)


def with_left_out(found: Counterfactuals, left_out: LeftOut, schema: Schema) -> Counterfactuals:
    """Return a result with the rows that were left out, such as rows with an unknown level (`mcce.table.left_out`).

    They are restored at their positions among the factuals, with their levels, and listed in `unexplained`, each with
    its reason. The model was not queried for them, so they have no prediction.
    """
    places = np.array(list(left_out.reasons), dtype=np.intp)
    kept = np.flatnonzero(left_out.kept)
    back = np.argsort(np.concatenate([kept, places]))
    others = left_out.frame.iloc[places][list(found.factuals.columns)]
    index = left_out.frame.index
    reasons = [_reason(schema, why) for why in left_out.reasons.values()]
    scores, unexplained = found.factual_predictions, found.unexplained
    not_queried = pd.Series(
        np.nan, index=others.index, name=scores.name, dtype=float if scores.dtype.kind == "f" else object
    )
    added = pd.DataFrame({"reason": pd.Series(reasons, dtype=object).to_numpy(), "prediction": not_queried.to_numpy()})
    added.index = others.index.rename(unexplained.index.name)
    combined = pd.concat([unexplained, added]) if len(unexplained) else added
    order = np.argsort(index.get_indexer_for(combined.index), kind="stable")
    columns = {name: _joined(found.factuals[name], others[name]).take(back) for name in found.factuals.columns}
    questions = found._questions
    why, prove = questions.why, questions.prove
    place_of_kept = np.full(len(index), -1, dtype=np.intp)
    place_of_kept[kept] = np.arange(kept.size)
    return replace(
        found,
        factuals=pd.DataFrame(columns).set_axis(index, axis=0),
        factual_predictions=pd.concat([scores, not_queried]).iloc[back],
        unexplained=combined.iloc[order],
        draws=None if found.draws is None else found.draws.reindex(index, fill_value=0),
        allowed=None if found.allowed is None else found.allowed.reindex(index),
        _questions=replace(
            questions,
            why=None if why is None else lambda some: why(place_of_kept[some]),
            prove=None if prove is None else lambda place, limit: prove(int(place_of_kept[place]), limit),
        ),
    )


def _reason(schema: Schema, why: str) -> str:
    known = [f.levels for f in schema.features if f.levels is not None and why.startswith(f"column {f.name!r} holds ")]
    if not known:
        return f"{UNREADABLE}: {why}"
    return f"{UNREADABLE}: {why}, which is not a known level (known: {spell_all(known[0])})"


def _joined(known: pd.Series[Any], others: pd.Series[Any]) -> pd.Series[Any]:
    """Return the column of all rows; unknown levels come after the known ones."""
    if isinstance(known.dtype, pd.CategoricalDtype):
        levels = list(known.dtype.categories)
        levels += [each for each in others.dropna().unique() if each not in levels]
        dtype = pd.CategoricalDtype(levels, ordered=known.dtype.ordered)
        return pd.concat([known.astype(object), others.astype(object)], ignore_index=True).astype(dtype)
    try:
        return pd.concat([known, others.astype(known.dtype)], ignore_index=True)
    except (TypeError, ValueError):
        return pd.concat([known.astype(object), others.astype(object)], ignore_index=True)


def _measure_table(explained: Explanation, index: pd.Index[Any]) -> pd.DataFrame:
    """Return the model's score of each winner and its measures."""
    winners = explained.winners
    n_changes, steps = winners.measures.T
    measures: dict[str, Any] = {
        "prediction": winners.scores,
        "L0": n_changes.astype(np.int64),
        "gower": steps / len(explained.problem.features),
        "gower_sum": steps,
    }
    return build_frame({**measures, **winners.reported}, index)


def binding_table(explained: Explanation) -> pd.DataFrame:
    """Return `breaks`, `tried` and `passed` by constraint (step 2)."""
    constraints = explained.problem.constraints
    assert constraints is not None
    counts = [explained.cost.acceptance.get(constraints.counted_as(text), (0, 0)) for text in constraints.texts]
    table = pd.DataFrame(np.array(counts, dtype=np.int64).reshape(-1, 2), columns=["tried", "passed"])
    table.insert(0, "breaks", list(explained.breaks.values()))
    return table.set_axis(pd.Index(list(explained.breaks), dtype=object, name="constraint"), axis=0)


def allowed_table(constraints: Constraints, matrix: Floats, ids: pd.Index[Any]) -> pd.DataFrame:
    """Return the lowest and highest value that each factual is allowed, for numbers that a constraint limits (step 2).

    The columns are (feature, "low") and (feature, "high"), inside the training range; missing where no number is
    allowed.
    """
    columns: dict[tuple[Hashable, str], Any] = {}
    for name, within in replace(constraints, rules=()).within(matrix, ids).items():
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
    # the name of a feature may be a tuple, which pandas would split
    levels: list[Any] = [pd.Index(limited, dtype=object, tupleize_cols=False), ["low", "high"]]
    codes = [np.repeat(np.arange(len(limited)), 2).tolist(), [0, 1] * len(limited)]
    names = pd.MultiIndex(levels=levels, codes=codes, names=["feature", "end"])
    table = pd.DataFrame(dict(enumerate(columns.values())), index=ids)
    return table.set_axis(names if columns else pd.Index([]), axis=1)


def unexplained_table(
    problem: Problem, factuals: Factuals, owner: Ints, drawn: Ints | None, contradictions: Mapping[int, str]
) -> pd.DataFrame:
    """Return the factuals without a counterfactual, each with its reason (step 3).

    `drawn` is the number of rows drawn for each factual; None if the user gave candidates.
    """
    generator = problem.generator
    is_without = np.ones(len(factuals), dtype=bool)
    is_without[owner] = False
    without = np.flatnonzero(is_without)
    denied = without[~factuals.wanted[without]]
    words = np.full(without.size, ALREADY, dtype=object)
    if denied.size:
        keys = pool_keys(generator, factuals.matrix[denied], fixed_columns(generator))
        pool, first = np.unique(keys, return_index=True)  # reasons depend on the fixed values alone
        n_samples = None if drawn is None else int(drawn.max(initial=0))
        reasons = describe_failures(generator, factuals.matrix[denied[first]], n_samples, also=_demands(problem))
        words[~factuals.wanted[without]] = reasons[np.searchsorted(pool, keys)]
    for i, reason in contradictions.items():
        words[np.searchsorted(without, i)] = f"{NO_ROOM}: {reason}"
    frame = build_frame({"reason": pd.Series(words, dtype=object), "prediction": factuals.scores[without]})
    frame.index = factuals.index[without].rename("id")
    return frame


def _demands(problem: Problem) -> list[str]:
    """Return the requirements of rows besides the wanted decision, in words."""
    settings = problem.settings
    demands = ["obeys the constraints"] if problem.constraints is not None and problem.constraints.explicit else []
    relations = problem.relations
    keeps = relations is not None and any(each.relation.kind != "derived" for each in relations.demanded)
    demands += ["keeps the relations between columns"] if keeps else []
    demands += ["differs from all training rows"] if settings.exclude_training else []
    if settings.max_changes is not None or settings.max_gower is not None:
        demands.append("lies within the bounds")
    if problem.anonymity is not None:
        demands.append(f"is shared by {problem.anonymity.k} training people on the keys")
    if isinstance(problem.question, ConfirmedModel):
        demands.append("keeps it under refits and noise")
    return demands


def describe_failures(
    generator: Generator, matrix: Floats, n_samples: int | None, *, also: Sequence[str] = ()
) -> npt.NDArray[np.object_]:
    """Return why each of some encoded rows has no counterfactual among `n_samples` draws, or among the candidates."""
    which = f"none of the {n_samples} candidates" if n_samples else "no candidate"
    tried = " and ".join([f"{which} has the wanted decision", *also])
    more = "draw more" if n_samples else "give more candidates"
    words = np.full(matrix.shape[0], f"{tried}; {more}", dtype=object)
    if not (generator.conditions_on_decision_ and generator.fixed_):
        return words
    n_alike, n_wanted = _count_alike(generator, matrix)
    words[:] = f"{tried}, though training rows with its fixed values do; {more}"
    for i in np.flatnonzero(n_wanted == 0).tolist():
        row = generator.schema_.decode(matrix[[i]])  # by column: a row may have dates in several units
        fixed = ", ".join(f"{name} = {row[name].iloc[0]}" for name in generator.fixed_)
        words[i] = (
            f"{tried}, and {NONE_ALIKE_WANTED} ({fixed}) has it"
            if n_alike[i]
            else f"{tried}, and {NONE_ALIKE} ({fixed})"
        )
    return words


def _count_alike(generator: Generator, matrix: Floats) -> tuple[Ints, Ints]:
    """Return how many training rows have the fixed values of each row, and how many of these the wanted decision."""
    training = generator.training_givens_
    known = hash_rows(training[:, :-1])
    queried = hash_rows(generator.givens_of(matrix)[:, :-1])
    counts = []
    for hashes in (known, known[training[:, -1] != 0]):
        hashes = np.sort(hashes)
        counts.append(np.searchsorted(hashes, queried, side="right") - np.searchsorted(hashes, queried))
    return counts[0], counts[1]
