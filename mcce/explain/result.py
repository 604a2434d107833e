"""From winners to a `Counterfactuals`: frames with the user's names and dtypes, measures, reasons, settings.

1. The winners are decoded and named by their factual and rank; their measures stand beside them.
2. What constraints do is described. A constraint binds as far as draws without any constraints break it; that share is
   found from some factuals' draws. While rows are drawn inside the constraints, those of which nothing allowed can be
   drawn are rejected: for each constraint it is counted how many rows came to it and how many passed. What several
   constraints say of one feature is drawn together, and counted together. What numbers may be for each factual is told
   as a lowest and a highest value; rules and grids are left aside.
3. The factuals without a counterfactual are listed with the reason (`mcce.explain.unexplained`); rows that were left
   out stand in their places again, listed too.
4. `Search` is what a result keeps of the problem, to draw again or with one demand less when that is wanted: for
   standard errors, for how stable the answers are, and for what would have helped.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.progress import working
from mcce.constraints import Constraints
from mcce.counterfactuals import Agreement, Counterfactuals, Questions, Run
from mcce.distances.measures import changed_columns
from mcce.exceptions import SamplerError, spell_all
from mcce.explain.diversity import diversity_table
from mcce.explain.factuals import Factuals
from mcce.explain.pools import draw_pools, fixed_columns, pool_keys
from mcce.explain.problem import Problem, searched
from mcce.explain.redraw import agreement, draw_again, redraw_errors, spread_over
from mcce.explain.rounding import display_names, round_for_display
from mcce.explain.unexplained import look_into, unexplained_table, what_helps
from mcce.explain.winners import Winners
from mcce.generators.base import Generator
from mcce.model.ask import Asker
from mcce.report.changes import Ask
from mcce.report.names import Names
from mcce.report.reasons import UNREADABLE
from mcce.report.suspicious import Usual
from mcce.table import Schema
from mcce.table.left_out import LeftOut

REPORTED = ("L0", "gower", "gower_sum", "plausibility", "log_density")  # measures of every result
TRIED_FACTUALS, TRIED_DRAWS = 100, 100
SHADED_DRAWS = 1000


@dataclass(frozen=True)
class Wording:
    """How a result is told.

    Attributes
    ----------
    names : labels, units and formats.
    settings : what was asked for, by name.
    fit_seconds : how long the explainer was fitted.
    progress : whether to show a progress bar when something is drawn again.
    usual : returns what is usual among training rows, None if these are gone; None for nothing.
    """

    names: Names = field(default_factory=Names)
    settings: Mapping[str, object] = field(default_factory=dict)
    fit_seconds: float = 0.0
    progress: bool | None = None
    usual: Callable[[], Usual | None] | None = None


@dataclass(frozen=True, eq=False)
class Search:
    """A search that was made, and can be made again: with other draws, or with one demand less."""

    problem: Problem
    factuals: Factuals
    winners: Winners
    contradictions: Mapping[int, str]
    wording: Wording

    @cached_property
    def which(self) -> Ints:
        """Positions of the factuals that were searched for."""
        return searched(self.factuals, self.contradictions)

    @cached_property
    def _again(self) -> Winners:
        return draw_again(self.problem, self.factuals, self.which, self.wording.progress)[0]

    def questions(self, ask: Ask | None) -> Questions:
        """Return what a result can ask later."""
        return Questions(
            ask=ask,
            agreement=lambda: self._agreement,
            standard_errors=self.standard_errors,
            known_errors=lambda: self.standard_errors() if "_again" in vars(self) else {},
            redrawn=self.redrawn,
            why=self.why,
            usual=self.wording.usual,
        )

    @cached_property
    def _agreement(self) -> Agreement:
        """How stable the answers are, by drawing again for at most a hundred factuals; by all, if that was done."""
        some = self.which
        again = vars(self).get("_again")
        if again is None:
            some = spread_over(some)
            again = draw_again(self.problem, self.factuals, some, self.wording.progress)[0]
        return agreement(self.factuals, some, self.winners, again)

    def standard_errors(self) -> dict[str, float]:
        """Return the Monte Carlo standard errors of the means, by drawing again for all factuals."""
        return redraw_errors(self.problem, self.factuals, self.winners, self._again)

    def redrawn(self, redraw: int) -> Counterfactuals:
        """Return the result of another drawing, by its number."""
        problem = replace(self.problem, settings=replace(self.problem.settings, redraw=redraw))
        winners, drawn = draw_again(problem, self.factuals, self.which, self.wording.progress, redraw)
        return write_result(problem, self.factuals, winners, drawn, self.contradictions, self.wording)

    def why(self, places: Ints) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return what became of the candidates of factuals without a counterfactual, and what would have helped.

        `places` are positions of factuals that were searched for. The second table has the drawn row of each that came
        nearest to the decision, if there is one.
        """
        with working("looking for reasons", self.wording.progress):
            told = [look_into(self.problem, self.factuals, int(i)) for i in places]
            table = pd.DataFrame([words for words, _ in told], index=self.factuals.index[places].rename("id"))
            table["would_help"] = what_helps(self.problem, self.factuals, places)
        nearest = [(int(i), row) for i, (_, row) in zip(places, told) if row is not None]
        schema = self.problem.generator.schema_
        rows = np.array([row for _, row in nearest]).reshape(-1, len(schema))
        return table, schema.decode(rows, self.factuals.index[[i for i, _ in nearest]].rename("id"))


def write_result(
    problem: Problem,
    factuals: Factuals,
    winners: Winners,
    drawn: Ints | None,
    contradictions: Mapping[int, str],
    wording: Wording,
) -> Counterfactuals:
    """Write winners as tables.

    Parameters
    ----------
    problem, factuals : what was asked, and for whom.
    winners : what was found, in the order of the factuals, with measures.
    drawn : how many rows were drawn for each factual; None if the user brought the candidates.
    contradictions : why nothing could meet the constraints, by position of the factual.
    wording : how it is told.
    """
    schema, sparse = problem.generator.schema_, problem.settings.sparse
    names = display_names(wording.names, schema, exact=sparse)
    found = winners
    if sparse:
        winners = round_for_display(problem, factuals, winners, names)
    owner, rows = winners.owner, winners.rows
    rank = np.arange(owner.size) - np.searchsorted(owner, owner) + 1
    index = pd.MultiIndex.from_arrays([factuals.index[owner], rank], names=["id", "rank"])
    given = None if problem.constraints is None else problem.constraints.explicit
    pairwise = diversity_table(owner, rows, schema.features)
    robustness = problem.robustness
    demanded = {} if robustness is None else robustness.described()
    cost, along = winners.cost, None
    if sparse:
        cells, asked = _mark_incidental(problem, factuals, winners)
        along = pd.DataFrame(cells, index=index, columns=pd.Index(schema.names, tupleize_cols=False))
        cost = replace(cost, asked=cost.asked + asked)
    questions = Questions(ask=partial(_ask_frame, Asker(problem.decision, schema)), usual=wording.usual)
    if drawn is not None:
        questions = Search(problem, factuals, found, contradictions, wording).questions(questions.ask)
    if problem.generator.conditions_on_decision_:
        questions = replace(questions, alike=partial(_draw_alike, problem.generator))
    result = Counterfactuals(
        frame=schema.decode(rows, index),
        measures=_measure_table(problem, factuals, winners).set_axis(index, axis=0),
        factuals=schema.decode(factuals.matrix, factuals.index),
        unexplained=unexplained_table(problem, factuals, owner, drawn, contradictions),
        constraints=binding_table(problem, factuals, searched(factuals, contradictions), winners) if given else None,
        allowed=allowed_table(given, factuals.matrix, factuals.index) if given else None,
        factual_predictions=pd.Series(factuals.scores, index=factuals.index, name="prediction"),
        decision=problem.decision.describe(),
        fixed=tuple(problem.generator.fixed_),
        kinds=dict(schema.kinds),
        ranges=_ranges(schema),
        draws=None if drawn is None else pd.Series(drawn, index=factuals.index, name="draws"),
        run=Run(
            settings={**wording.settings, **demanded, "rows_asked": cost.asked},
            timings={"fit": wording.fit_seconds, "generate": cost.seconds_generate, "select": cost.seconds_select},
        ),
        copies=None if problem.training is None else problem.training.count_in(rows),
        names=replace(names, ends=problem.decision.ends()),
        _questions=questions,
        _rules={who: given.texts_of(who) for who in factuals.index} if given else {},
        _frame_kind=factuals.frames,
        _along=along,
        _pairwise=pairwise.set_axis(factuals.index[pairwise.index].rename("id"), axis=0),
    )
    return result if factuals.left_out is None else with_left_out(result, factuals.left_out, schema)


def with_left_out(found: Counterfactuals, left_out: LeftOut, schema: Schema) -> Counterfactuals:
    """Return a result with the rows that were left out, as those with an unknown level are (`mcce.table.left_out`).

    They stand in their places among the factuals, with the levels that they have, and in `unexplained`, each with its
    reason. The model was not asked about them, so that they have no prediction.
    """
    places = np.array(list(left_out.reasons), dtype=np.intp)
    kept = np.flatnonzero(left_out.kept)
    back = np.argsort(np.concatenate([kept, places]))
    others = left_out.frame.iloc[places][list(found.factuals.columns)]
    index = left_out.frame.index
    reasons = [_reason(schema, why) for why in left_out.reasons.values()]
    scores, unexplained = found.factual_predictions, found.unexplained
    unasked = pd.Series(
        np.nan, index=others.index, name=scores.name, dtype=float if scores.dtype.kind == "f" else object
    )
    told = pd.DataFrame({"reason": pd.Series(reasons, dtype=object).to_numpy(), "prediction": unasked.to_numpy()})
    told.index = others.index.rename(unexplained.index.name)
    with_told = pd.concat([unexplained, told]) if len(unexplained) else told
    order = np.argsort(index.get_indexer_for(with_told.index), kind="stable")
    columns = {name: _joined(found.factuals[name], others[name]).take(back) for name in found.factuals.columns}
    questions = found._questions
    why = questions.why
    place_of_kept = np.full(len(index), -1, dtype=np.intp)
    place_of_kept[kept] = np.arange(kept.size)
    return replace(
        found,
        factuals=pd.DataFrame(columns).set_axis(index, axis=0),
        factual_predictions=pd.concat([scores, unasked]).iloc[back],
        unexplained=with_told.iloc[order],
        draws=None if found.draws is None else found.draws.reindex(index, fill_value=0),
        allowed=None if found.allowed is None else found.allowed.reindex(index),
        _questions=replace(questions, why=None if why is None else lambda some: why(place_of_kept[some])),
    )


def _reason(schema: Schema, why: str) -> str:
    known = [f.levels for f in schema.features if f.levels is not None and why.startswith(f"column {f.name!r} holds ")]
    if not known:
        return f"{UNREADABLE}: {why}"
    return f"{UNREADABLE}: {why}, which is not a known level (known: {spell_all(known[0])})"


def _joined(known: pd.Series[Any], others: pd.Series[Any]) -> pd.Series[Any]:
    """Return the column of all rows: levels that are unknown come behind the known ones."""
    if isinstance(known.dtype, pd.CategoricalDtype):
        levels = list(known.dtype.categories)
        levels += [each for each in others.dropna().unique() if each not in levels]
        dtype = pd.CategoricalDtype(levels, ordered=known.dtype.ordered)
        return pd.concat([known.astype(object), others.astype(object)], ignore_index=True).astype(dtype)
    try:
        return pd.concat([known, others.astype(known.dtype)], ignore_index=True)
    except (TypeError, ValueError):
        return pd.concat([known.astype(object), others.astype(object)], ignore_index=True)


def _mark_incidental(problem: Problem, factuals: Factuals, winners: Winners) -> tuple[Bools, int]:
    """Return which changes of winners the decision does not need, and how many rows were asked about.

    Of the changes of a row, the one that the decision needs least is set back, as long as the decision stays; what is
    left is needed. Which it needs least is told by the model's score, if it has one, and else by their order.
    """
    rows, own = winners.rows.copy(), factuals.matrix[winners.owner]
    along, asked = np.zeros(rows.shape, dtype=bool), 0
    margins = None if problem.caution is None else problem.caution.margins
    left = np.arange(rows.shape[0])
    while left.size:
        changed = changed_columns(rows[left], own[left])
        at, column = np.nonzero(changed & (changed.sum(axis=1) > 1)[:, None])
        tries = rows[left[at]]
        tries[np.arange(at.size), column] = own[left[at], column]
        if not at.size:
            break
        scores, wanted = problem.question.ask_encoded(tries)
        asked += at.size
        inside = np.zeros(at.size) if margins is None else margins.inside(scores)
        order = np.lexsort((column, -inside, at))
        order = order[wanted[order]]
        first = order[np.unique(at[order], return_index=True)[1]]
        rows[left[at[first]], column[first]] = own[left[at[first]], column[first]]
        along[left[at[first]], column[first]] = True
        left = left[at[first]]
    return along, asked


def _draw_alike(generator: Generator, factual: pd.DataFrame) -> pd.DataFrame:
    """Return rows drawn with the fixed values of a factual and the wanted decision, for a picture."""
    matrix = generator.schema_.encode(factual, "the row").matrix
    keys = pool_keys(generator, matrix, fixed_columns(generator))
    return generator.schema_.decode(draw_pools(generator, matrix, keys, SHADED_DRAWS).rows)


def _ask_frame(asker: Asker, frame: pd.DataFrame) -> tuple[npt.NDArray[Any], Bools]:
    return asker.ask_encoded(asker.schema.encode(frame, "the rows").matrix)


def _measure_table(problem: Problem, factuals: Factuals, winners: Winners) -> pd.DataFrame:
    """Return the model's score of each winner and its measures."""
    n_changes, steps = winners.measures.T
    measures: dict[str, Any] = {
        "prediction": winners.scores,
        "L0": n_changes.astype(np.int64),
        "gower": steps / len(problem.features),
        "gower_sum": steps,
    }
    for measure in problem.order.measures:
        if measure.name not in REPORTED:
            measures[measure.name] = measure.of_pairs(winners.rows, factuals.matrix[winners.owner])
    if problem.plausibility is not None and problem.settings.sparse:
        measures["log_density"] = _log_density(problem.generator, winners.rows)
        measures["plausibility"] = problem.plausibility.quantile(winners.plausibility)
    if problem.robustness is not None:
        measures |= problem.robustness.shares(winners.rows)
    if problem.anonymity is not None:
        measures["people"] = problem.anonymity.keys.count(winners.rows)
    return pd.DataFrame(measures)


def _log_density(generator: Generator, rows: Floats) -> Floats:
    """Return log p(mutable | fixed, wanted decision) of encoded rows; NaN if a conditional has no density."""
    try:
        by_feature = generator.feature_log_densities(rows)
    except SamplerError:
        return np.full(rows.shape[0], np.nan)
    return np.asarray(sum(by_feature.values()), dtype=np.float64)


def _ranges(schema: Schema) -> dict[Any, tuple[Any, Any]]:
    """Return the lowest and highest training value of each number, as the user writes them."""
    numeric = [f for f in schema.features if f.is_numeric and not np.isnan(f.low)]
    ends = {f.name: pd.Series(f.decode(np.array([f.low, f.high]))) for f in numeric}
    return {name: (pair.iloc[0], pair.iloc[1]) for name, pair in ends.items()}


def binding_table(problem: Problem, factuals: Factuals, which: Ints, winners: Winners) -> pd.DataFrame:
    """Return `breaks`, `tried` and `passed` by constraint (step 2), from some of the factuals at `which`."""
    constraints = problem.constraints
    assert constraints is not None
    some = which[np.unique(np.linspace(0, max(which.size - 1, 0), TRIED_FACTUALS).astype(np.intp))[: which.size]]
    breaks = dict.fromkeys(constraints.texts, np.nan)
    if some.size:
        pools = draw_pools(problem.generator, factuals.matrix[some], problem.keys(factuals)[some], TRIED_DRAWS)
        rows = np.concatenate([pools.rows[a:b] for a, b in zip(pools.begin, pools.end)])
        owner = np.repeat(some, pools.end - pools.begin)
        broken = constraints.broken(rows, factuals.matrix[owner], factuals.index[owner])
        breaks |= {text: float(each.mean()) for text, each in broken.items()}
    counts = [winners.cost.acceptance.get(constraints.counted_as(text), (0, 0)) for text in constraints.texts]
    table = pd.DataFrame(np.array(counts, dtype=np.int64).reshape(-1, 2), columns=["tried", "passed"])
    table.insert(0, "breaks", list(breaks.values()))
    return table.set_axis(pd.Index(list(breaks), dtype=object, name="constraint"), axis=0)


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
    # a feature may be named by a tuple, which pandas would take apart
    levels: list[Any] = [pd.Index(limited, dtype=object, tupleize_cols=False), ["low", "high"]]
    codes = [np.repeat(np.arange(len(limited)), 2).tolist(), [0, 1] * len(limited)]
    names = pd.MultiIndex(levels=levels, codes=codes, names=["feature", "end"])
    table = pd.DataFrame(dict(enumerate(columns.values())), index=ids)
    return table.set_axis(names if columns else pd.Index([]), axis=1)
