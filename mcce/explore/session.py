"""A session of the explorer, which answers messages; both are JSON values.

A message has the key `ask`:

start      the features, the wanted decision, the number of people
people     a page of them: `search`, `filter` (all, refused, granted, suspicious, without), `group`, `page`
person     a row, its fixed features, and the model's answer
plans      plans under `settings` (`mcce.explore.settings`), or the reason why there are none
edit       a row with `values` replaced: the model's answer, and its plausibility
why        without a plan: which limit to relax
export     `what`: letter, page, row, python or r
whole      all refused people: what changes
by         the same for groups, by a feature
trade_off  the cost of a higher plausibility floor
criticise  features whose draws differ from these people's values

People and features are identified by position, levels by code. Errors are answers, `{"error": ...}`; warnings are in
`notes`. Messages are answered one at a time, except the search of `people`. The last plans are kept for export.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mcce import report
from mcce.base.arrays import Bools, Floats
from mcce.base.checks import check_count, check_share
from mcce.exceptions import InputError, MCCEError, MCCEWarning, did_you_mean, shorten, spell, warn
from mcce.explain.problem import encode_known
from mcce.explain.protocol import Explainer
from mcce.explore.distribution import level_bars, number_bars
from mcce.explore.search import PeopleSearch
from mcce.explore.settings import PlanSettings, python_call, r_call, read_cell, read_place, read_settings
from mcce.explore.words import (
    CAUTIONS,
    FIGURES,
    MEASURES,
    SHARES_IN_FIGURES,
    interval_text,
    measure_text,
    reason_text,
    relabel,
    share_text,
)
from mcce.model.decisions import Answer
from mcce.model.queries import EncodedModel
from mcce.plausibility.relations import Relations, keep_relations
from mcce.report.names import PREDICTION, Names, case_name, listed, value_text
from mcce.report.reasons import ALREADY
from mcce.report.rows import cases_of_100, held_back, usual_consequences
from mcce.report.suspicious import STOP_REASONS
from mcce.table import Data, Feature, Schema
from mcce.table.dtypes import is_dated
from mcce.table.frames import own_frame
from mcce.table.spreadsheet import escape_formulas

if TYPE_CHECKING:
    from mcce.counterfactuals import Counterfactuals

Reply = dict[str, Any]
PAGE = 50  # people on a page
STOPS = 40  # positions of a slider
MOST_GROUPS = 30  # levels of a feature that defines groups
BINS = 4  # groups of a numeric feature
ALIKE = 1000  # rows drawn for the distribution of similar people
NOT_SHOWN = "Such rows cannot be explained, and are not shown."
ALL_TRAINING = "all of these people are in the training data, so values look more realistic than they are."
FILTERS = ("all", "refused", "granted", "suspicious", "without")
FILES = {
    "letter": ("letter.txt", "text/plain"),
    "page": ("letter.html", "text/html"),
    "row": ("plan.csv", "text/csv"),
    "python": ("plan.py", "text/x-python"),
    "r": ("plan.R", "text/plain"),
}


@dataclass(frozen=True, eq=False)
class Plans:
    """The plans of one person under some settings."""

    person: int
    settings: PlanSettings
    found: Counterfactuals


class ExplorerSession:
    """A session about the people of a table; see the module.

    Parameters
    ----------
    explainer : fitted MCCE
    people : DataFrame or array
        Rows with the training columns; their names are the index of a DataFrame. Rows with unknown levels are not
        shown; a note lists them.
    training : DataFrame, array or None
        The training rows, needed for `trade_off` of a loaded explainer.

    Examples
    --------
    >>> import mcce
    >>> from mcce.explore import ExplorerSession
    >>> X = mcce.datasets.load_loans(300).X[["age", "salary", "savings"]]
    >>> explainer = mcce.MCCE(lambda rows: rows["salary"] > 40_000, decision=True, fixed=["age"], random_state=1).fit(X)
    >>> session = ExplorerSession(explainer, X)
    >>> session.answer({"ask": "people", "filter": "refused"})["total"] > 50
    True
    >>> session.answer({"ask": "persons"})
    {'error': "there is no message 'persons'; did you mean 'person'?"}
    """

    def __init__(self, explainer: Explainer, people: Data, training: Data | None = None) -> None:
        self._explainer, self._training = explainer, training
        self._schema: Schema = explainer.generator_.schema_
        self._fixed = [name for name in self._schema.names if name in explainer.generator_.fixed_]
        self._derived = {each.target for each in explainer.derived_}
        relations = Relations().with_formulas(explainer.derived_)
        self._computed = keep_relations(relations, self._schema, [self._schema.names.index(n) for n in self._fixed])
        index, matrix, self._left_out = encode_known(own_frame(people), self._schema, NOT_SHOWN)
        if not len(index):
            raise InputError("the table of people has no rows; give the rows to show.")
        self._matrix: Floats = matrix
        self._people = self._schema.decode(matrix, index)
        self._names: Names = explainer.names_.for_display(self._schema, exact=True).for_lay_reader(self._people)
        self._relabel = relabel(self._schema, self._names)
        self._search = PeopleSearch(self._schema, matrix, self._people.index, self._names)
        self._lock = Lock()
        self._last: Plans | None = None
        self._alike: tuple[int, Floats] | None = None
        self._results_for_all: dict[float, Counterfactuals] = {}

    def __len__(self) -> int:
        return len(self._people)

    def answer(self, message: Any) -> Reply:
        """Return the answer to a message; errors are in `error`."""
        caught: list[warnings.WarningMessage] = []
        try:
            reply_to = self._handler(message)
            with self._lock, warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("ignore")
                warnings.simplefilter("always", MCCEWarning)
                reply = reply_to()
        except MCCEError as error:
            reply = {"error": self._relabel(str(error))}
        except Exception as error:  # the model and samplers are foreign code and may raise anything
            reply = {"error": shorten(f"{type(error).__name__}: {error}", 1000)}
        notes = list(dict.fromkeys(self._relabel(str(each.message)) for each in caught))
        plain: Reply = _as_json({**reply, "notes": notes} if notes else reply)
        return plain

    def _handler(self, message: Any) -> Callable[[], Reply]:
        """Return the function that answers a message; the search for people runs here, outside the lock."""
        if not isinstance(message, Mapping) or "ask" not in message:
            raise InputError(f'a message is an object with the key "ask"; got {spell(message)}.')
        name = message["ask"]
        if not isinstance(name, str) or name not in ("people", *ANSWERS):
            raise InputError(f"there is no message {spell(name)}; {did_you_mean(name, ('people', *ANSWERS))}")
        if name != "people":
            return partial(ANSWERS[name], self, message)
        search = message.get("search", "")
        if not isinstance(search, str):
            raise InputError(f"search is {spell(search)}; it must be a text.")
        return partial(self._page, message, *self._search.find(search))

    # ------------------------------------------------------------ people

    @cached_property
    def _answer_of_all(self) -> Answer:
        scores, wanted = self._encoded_model.predict_encoded(self._matrix)
        return Answer(scores, wanted)

    @property
    def _encoded_model(self) -> EncodedModel:
        return EncodedModel(self._explainer.decision_, self._schema)

    def _start(self, message: Mapping[str, Any]) -> Reply:
        wanted = self._answer_of_all.wanted
        return {
            "decision": self._explainer.decision_.describe(),
            "people": len(self),
            "refused": int((~wanted).sum()),
            "features": [self._feature(j) for j in range(len(self._schema))],
            "settings": {"floor": PlanSettings.floor, "plans": PlanSettings.n_plans, "diverse": PlanSettings.diverse},
            "is_chain": self._explainer.generator_.visit_sequence_ is not None,
            "has_graph": self._explainer.generator_.graph_ is not None,
        }

    def _feature(self, j: int) -> Reply:
        """Return a feature for the page: its kind, range or levels, and the positions of a slider."""
        feature = self._schema.features[j]
        described: Reply = {
            "label": self._names.label(feature.name),
            "unit": self._names.units.get(feature.name, ""),
            "fixed": feature.name in self._fixed,
            "computed": feature.name in self._derived,
            "kind": "date" if feature.is_numeric and is_dated(feature.dtype) else feature.kind,
        }
        if not feature.is_numeric:
            texts = self._level_texts(feature)
            return {**described, "levels": texts, "groups": len(texts) <= MOST_GROUPS}
        known = self._matrix[:, j][~np.isnan(self._matrix[:, j])]
        both = np.append(known, [end for end in (feature.low, feature.high) if not np.isnan(end)])
        stops = np.unique(np.quantile(both, np.linspace(0, 1, STOPS + 1), method="inverted_cdf")) if both.size else both
        cells = pd.Series(feature.decode(stops))
        texts = [self._names.text(feature.name, cell, unit=False) for cell in cells]
        return {
            **described,
            "stops": [_cell(feature, x) for x in cells],
            "texts": texts,
            "whole": feature.decimals == 0,
        }

    def _level_texts(self, feature: Feature) -> list[str]:
        assert feature.levels is not None
        return [self._names.text(feature.name, level) for level in feature.levels]

    def _page(self, message: Mapping[str, Any], found: Bools, named: Bools) -> Reply:
        """Return a page of the people `found` by a search; matches by name come first."""
        if self._left_out is not None:
            self._left_out.warn("The table", NOT_SHOWN)
        chosen = np.flatnonzero(found & self._chosen(message))
        chosen = chosen[np.argsort(~named[chosen], kind="stable")]
        page = check_count(message.get("page", 0), "page", least=0)
        shown = chosen[page * PAGE : (page + 1) * PAGE]
        return {
            "total": int(chosen.size),
            "page": page,
            "pages": max(-(-int(chosen.size) // PAGE), 1),
            "people": [self._described(k) for k in shown.tolist()],
        }

    def _described(self, k: int) -> Reply:
        """Return a person's position and name, and the model's answer."""
        answer = self._answer_of_all
        prediction = self._names.text(PREDICTION, answer.scores[k], 3)
        name, refused = case_name(self._people.index[k]), not answer.wanted[k]
        return {"person": k, "name": name, "prediction": prediction, "refused": refused}

    def _chosen(self, message: Mapping[str, Any]) -> Bools:
        """Mark the people that pass a filter and belong to a group."""
        which = message.get("filter", "all")
        if which not in FILTERS:
            raise InputError(f"there is no filter {spell(which)}; {did_you_mean(which, FILTERS)}")
        kept: Bools = np.ones(len(self), dtype=bool)
        if which in ("refused", "granted"):
            kept &= self._answer_of_all.wanted == (which == "granted")
        elif which != "all":
            found = self._found_for_all(_floor(message))
            ids = found.unexplained.index if which == "without" else held_back(found).index.get_level_values("id")
            kept &= self._people.index.isin(ids)
        group = message.get("group")
        if group is not None:
            if not isinstance(group, Mapping):
                raise InputError(f"group is {spell(group)}; it must be a feature and a level.")
            j = read_place(group.get("feature"), len(self._schema), "group")
            feature = self._schema.features[j]
            if feature.is_numeric:
                raise InputError(
                    f"people are grouped by levels, but {feature.name!r} holds numbers; group by another feature."
                )
            kept &= self._matrix[:, j] == read_place(group.get("level"), feature.n_levels, "group")
        return kept

    def _place(self, message: Mapping[str, Any]) -> int:
        return read_place(message.get("person"), len(self), "person")

    def _person(self, message: Mapping[str, Any]) -> Reply:
        k = self._place(message)
        return {**self._described(k), "cells": self._cells(self._matrix[k])}

    def _cells(self, row: Floats) -> list[Reply]:
        """Return the cells of an encoded row: as text, and as values in messages."""
        frame = self._schema.decode(row[None])
        return [
            {
                "text": self._names.text(feature.name, frame.iloc[0, j]),
                "value": _encoded_cell(feature, row[j], frame.iloc[0, j]),
            }
            for j, feature in enumerate(self._schema.features)
        ]

    # ------------------------------------------------------------ plans

    def _find(self, message: Mapping[str, Any]) -> Plans:
        """Explain one person under the settings of a message; the last result is reused."""
        k = self._place(message)
        settings = PlanSettings.read(message.get("settings"), self._schema, self._fixed)
        last = self._last
        if settings.recourse and settings.held:
            settings = replace(settings, actions=tuple(name for name in self._actions if name not in settings.held))
        if last is None or (last.person, last.settings) != (k, settings):
            found = self._explain(self._people.iloc[[k]], settings.method, **settings.arguments)
            last = self._last = Plans(k, settings, found)
        return last

    @cached_property
    def _actions(self) -> list[Any]:
        """The features that a plan can act on, by the causal graph."""
        found = self._explain(self._people.iloc[:0], "recourse")
        return list(found.run.settings["actions"])

    def _explain(self, people: pd.DataFrame, method: str = "explain", **arguments: Any) -> Counterfactuals:
        """Explain people; the result has the names of the page."""
        found: Counterfactuals = getattr(self._explainer, method)(people, progress=False, **arguments)
        return replace(found, names=self._names)

    def _plans(self, message: Mapping[str, Any]) -> Reply:
        plans = self._find(message)
        found, case_id = plans.found, self._people.index[plans.person]
        if not len(found):
            reason = str(found.unexplained["reason"].iloc[0])
            return {"plans": [], "reason": self._reason(reason), "already": reason == ALREADY}
        rows = self._schema.encode(found.frame.reset_index(drop=True)).matrix
        changes = found.changes()
        below, suspicious = found.below_floor(), found.suspicious("all")["words"]
        ranks = found.frame.index.get_level_values("rank")
        made = []
        for place, rank in enumerate(ranks.tolist()):
            of_rank = changes[changes["rank"] == rank]
            roles = dict(zip(of_rank["feature"], of_rank["role"]))
            words = suspicious[suspicious.index.get_level_values("rank") == rank]
            score = found.measures["prediction"].iloc[place]
            plan = self._plan(plans.person, rows[place], score, roles, found.computed)
            plan |= {
                "rank": rank,
                "sentence": found.sentence(case_id, rank),
                "plausibility": float(found.measures["plausibility"].iloc[place]),
                "below_floor": bool(below.iloc[place]),
                "read_before_sending": "; ".join(words),
                "granted": True,
            }
            if found.consequences is not None:
                plan["cases"] = cases_of_100(found, place)
                usual = {name: self._names.pair(name, *ends) for name, *ends in usual_consequences(found, place)}
                for change in plan["changes"]:
                    low, high = usual.get(self._schema.names[change["feature"]], ("", ""))
                    change["usual"] = f"{low} to {high}" if low != high else ""
            made.append(plan)
        return {"plans": made}

    def _plan(
        self, k: int, row: Floats, score: Any, roles: Mapping[Any, str], computed: Collection[Any] | None = None
    ) -> Reply:
        """Return the changes of a row for a person, each with the distribution among similar people.

        Computed columns, by default the derived ones, are left out.
        """
        own = self._matrix[k]
        left_out = self._derived if computed is None else computed
        hidden = np.array([name in left_out for name in self._schema.names])
        differs = np.flatnonzero(~((row == own) | (np.isnan(row) & np.isnan(own))) & ~hidden).tolist()
        frame = self._schema.decode(np.stack([own, row]))
        alike = self._people_like(k)
        old, new = self._names.pair(PREDICTION, self._answer_of_all.scores[k], score, 3)
        changes = []
        for j in differs:
            feature = self._schema.features[j]
            before, after = self._names.pair(feature.name, frame.iloc[0, j], frame.iloc[1, j])
            changes.append(
                {
                    "feature": j,
                    "label": self._names.label(feature.name),
                    "from": before,
                    "to": after,
                    "role": roles.get(feature.name, ""),
                    "distribution": self._distribution(feature, alike[:, j], own[j], row[j]),
                }
            )
        return {"changes": changes, "before": old, "prediction": new, "cells": self._cells(row)}

    def _people_like(self, k: int) -> Floats:
        """Return encoded rows, drawn given the fixed values of a person and the wanted decision."""
        if self._alike is None or self._alike[0] != k:
            drawn = self._explainer.generate(self._people.iloc[[k]], n_samples=ALIKE, progress=False)
            self._alike = k, self._schema.encode(drawn.reset_index(drop=True)).matrix
        return self._alike[1]

    def _distribution(self, feature: Feature, values: Floats, before: float, after: float) -> Reply:
        if not feature.is_numeric:
            return level_bars(values, self._level_texts(feature), before, after)

        def write(encoded: float) -> str:
            inside = feature.grid.put(np.array([encoded])) if not is_dated(feature.dtype) else np.array([encoded])
            return self._names.text(feature.name, pd.Series(feature.decode(inside)).iloc[0], unit=False)

        return number_bars(values, before, after, write)

    def _edit(self, message: Mapping[str, Any]) -> Reply:
        k = self._place(message)
        row = self._edited(k, message.get("values"))
        scores, wanted = self._encoded_model.predict_encoded(row[None])
        if not hasattr(self._explainer, "plausibility_"):  # learned at the first explanation
            self._find({"person": k})
        plausibility = float(self._explainer.plausibility_.of_candidates(row[None], self._matrix[k])[0])
        return {
            **self._plan(k, row, scores[0], {}),
            "rank": None,
            "sentence": "",
            "plausibility": plausibility,
            "below_floor": plausibility < _floor(message),
            "read_before_sending": "",
            "granted": bool(wanted[0]),
        }

    def _edited(self, k: int, values: Any) -> Floats:
        """Return the encoded row of a person with the values of a message."""
        if not isinstance(values, Mapping):
            raise InputError(f"values is {spell(values)}; it must be an object of features and values.")
        row = self._matrix[k].copy()
        for key, value in values.items():
            j = read_place(key, len(self._schema), "values")
            feature = self._schema.features[j]
            encoded = read_cell(feature, value)
            if feature.name in self._fixed and encoded != row[j]:
                raise InputError(f"{feature.name!r} is fixed; edit another value.")
            if feature.name in self._derived and encoded != row[j]:
                raise InputError(f"{feature.name!r} is computed from other values; edit these.")
            row[j] = encoded
        if self._computed is None:
            return np.asarray(row)
        return np.asarray(self._computed.complete(row[None], self._matrix[[k]])[0])

    def _why(self, message: Mapping[str, Any]) -> Reply:
        """Return why a person has no plan, and the limits whose relaxation would help."""
        plans = self._find(message)
        case_id = self._people.index[plans.person]
        if len(plans.found):
            raise InputError(f"{case_name(case_id)} has a plan with these limits; request `plans`.")
        why = plans.found.why_unexplained(case_id)
        helps = str(why.get("would_help") or "")
        of_limit = {f"without the constraint {str(limit)!r}": j for j, limit in plans.settings.limits}
        rejected, nearest = why.get("rejected"), why.get("nearest_row")
        return {
            "reason": self._reason(str(why["reason"])),
            "relax": [self._relaxed(each, of_limit.get(each)) for each in helps.split("; or ") if each],
            "drawn": why.get("drawn"),
            "rejected": None if rejected is None else self._relabel(str(rejected)),
            "plausible": why.get("plausible"),
            "nearest": None
            if nearest is None
            else self._plan(
                plans.person, self._schema.encode(nearest.to_frame().T.infer_objects()).matrix[0], why["nearest"], {}
            ),
        }

    def _relaxed(self, words: str, j: int | None) -> Reply:
        """Return what would help in words, and the feature if it is a limit of the page."""
        if j is not None:
            return {"words": f"no limit on {self._names.label(self._schema.names[j])}", "feature": j}
        words = words.replace("draws", "rows tried").replace("the constraint", "the rule")
        return {"words": self._relabel(words), "feature": None}

    def _reason(self, reason: str) -> str:
        """Return why there is no plan, with the names of the page."""
        return self._relabel(reason_text(reason, listed([self._names.label(name) for name in self._fixed])))

    # ------------------------------------------------------------ export

    def _export(self, message: Mapping[str, Any]) -> Reply:
        """Return the shown result as the text of a file, which the browser saves."""
        what = message.get("what")
        if not isinstance(what, str) or what not in FILES:
            raise InputError(f"there is no export {spell(what)}; {did_you_mean(what, FILES)}")
        name, kind = FILES[what]
        plans = self._find(message)
        if message.get("values") is not None:
            if what != "row":
                raise InputError(
                    "a row edited by hand can only be exported as a row; export a plan for letters and code."
                )
            row = self._edited(plans.person, message["values"])
            return {"name": name, "type": kind, "text": self._csv(self._schema.decode(row[None]))}
        found, case_id = plans.found, self._people.index[plans.person]
        if what in ("letter", "page"):
            return {"name": name, "type": kind, "text": report.letter(found, case_id, html=what == "page")}
        rank = check_count(message.get("rank", 1), "rank")
        if rank > len(found):
            raise InputError(f"there is no plan {rank}; there are {len(found)}.")
        if what == "row":
            table = found.to_frame()
            return {"name": name, "type": kind, "text": self._csv(table.iloc[[rank - 1]])}
        call = python_call if what == "python" else r_call
        return {"name": name, "type": kind, "text": call(plans.settings, plans.person, rank)}

    def _csv(self, table: pd.DataFrame) -> str:
        return str(escape_formulas(table).to_csv(index=False))

    # ------------------------------------------------------------ for a statistician

    @property
    def _refused(self) -> pd.DataFrame:
        refused = self._people[~self._answer_of_all.wanted]
        if not len(refused):
            raise InputError("no person is refused: all have the wanted decision already.")
        return refused

    def _found_for_all(self, floor: float) -> Counterfactuals:
        """Explain all refused people; the result for the last floor is kept."""
        if floor not in self._results_for_all:
            self._results_for_all = {floor: self._explain(self._refused, sparse=True, floor=floor)}
        return self._results_for_all[floor]

    def _whole(self, message: Mapping[str, Any]) -> Reply:
        found = self._found_for_all(_floor(message))
        changed = found.changed_features()
        changed = changed[changed["times"] > 0]
        cautions = held_back(found)["reasons"].str.split(", ").explode().value_counts()
        lacking = found.unexplained["reason"].map(self._reason).value_counts()
        summary = found.summary()["value"]
        shown = {name: words for name, words in FIGURES.items() if name in summary}
        figures = [[words, measure_text(name, summary[name], SHARES_IN_FIGURES)] for name, words in shown.items()]
        return {
            "tables": [
                _table("In figures", ["", "value"], figures),
                _table(
                    "What changes",
                    ["feature", "share of people", "up", "down", "other", "typical change"],
                    [
                        [self._names.label(name), *(_percent(row[part]) for part in ("share", "up", "down", "other"))]
                        + [str(row["note"])]
                        for name, row in changed.iterrows()
                    ],
                ),
                _table(
                    "To read before sending",
                    ["why", "plans"],
                    [[CAUTIONS.get(str(n), str(n)), str(c)] for n, c in cautions.items() if n in STOP_REASONS],
                ),
                _table("Without a plan", ["why", "people"], [[str(n), str(c)] for n, c in lacking.items()]),
            ]
        }

    def _by(self, message: Mapping[str, Any]) -> Reply:
        feature = self._schema.features[read_place(message.get("feature"), len(self._schema), "feature")]
        found = self._found_for_all(_floor(message))
        groups = found.by(feature.name, bins=BINS if feature.is_numeric else None)
        measures = list(groups.overall.index)

        def row(text: str, part: pd.DataFrame) -> list[str]:
            cells = zip(measures, part["mean"], part["low"], part["high"])
            return [text, str(int(part["n"].max())), *(interval_text(*cell) for cell in cells)]

        starts = range(0, len(groups.table), len(measures))
        rows = [row(text, groups.table.iloc[k : k + len(measures)]) for text, k in zip(groups.texts, starts)]
        columns = ["group", "people", *(MEASURES.get(each, each) for each in measures)]
        title = f"By {groups.name}, with {groups.confidence:.0%} intervals"
        return {"tables": [_table(title, columns, [*rows, row("all", groups.overall)])]}

    def _trade_off(self, message: Mapping[str, Any]) -> Reply:
        costs = self._explainer.trade_off(self._refused, training=self._training).table
        names = [name for name in MEASURES if name in costs]
        rows = [
            [
                "nearest row that was drawn" if pd.isna(row["floor"]) else f"at least {share_text(row['floor'])}",
                *(measure_text(name, row[name]) for name in names),
            ]
            for _, row in costs.iterrows()
        ]
        columns = ["least plausibility", *(MEASURES[name] for name in names)]
        return {"tables": [_table("What a more plausible plan costs", columns, rows)]}

    def _criticise(self, message: Mapping[str, Any]) -> Reply:
        generator = self._explainer.generator_
        decision = self._answer_of_all.wanted if generator.conditions_on_decision_ else None
        with warnings.catch_warnings(record=True) as caught:
            criticism = generator.criticise(self._people, decision=decision, progress=False)
        for text in (str(each.message) for each in caught):
            warn(ALL_TRAINING if "fitted on" in text else text)
        rows = []
        for name, each in criticism.table.iterrows():
            says = str(each["says"]).removeprefix(f"{name}: ").replace("passes", "nothing found")
            found = ["yes" if each["passes"] else "no", self._relabel(says), value_text(float(each["skill"]), 3)]
            rows.append([self._names.label(name), *found])
        title = f"{len(criticism.rejected)} of {len(criticism)} features have values that differ from these people's"
        columns = ["feature", "realistic", "what differs", "how well the other features predict it (1: exactly)"]
        return {"tables": [_table(title, columns, rows)]}


ANSWERS: dict[str, Callable[[ExplorerSession, Mapping[str, Any]], Reply]] = {
    "start": ExplorerSession._start,
    "person": ExplorerSession._person,
    "plans": ExplorerSession._plans,
    "edit": ExplorerSession._edit,
    "why": ExplorerSession._why,
    "export": ExplorerSession._export,
    "whole": ExplorerSession._whole,
    "by": ExplorerSession._by,
    "trade_off": ExplorerSession._trade_off,
    "criticise": ExplorerSession._criticise,
}


def _floor(message: Mapping[str, Any]) -> float:
    return check_share(read_settings(message.get("settings")).get("floor", PlanSettings.floor), "floor")


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Reply:
    return {"title": title, "columns": list(columns), "rows": [list(row) for row in rows]}


def _percent(share: float) -> str:
    return share_text(share) if share else ""


def _cell(feature: Feature, value: Any) -> Any:
    """Return a number or a date as a value of JSON."""
    return str(value) if is_dated(feature.dtype) else value


def _encoded_cell(feature: Feature, encoded: float, value: Any) -> Any:
    if np.isnan(encoded):
        return None
    return _cell(feature, value) if feature.is_numeric else int(encoded)


def _as_json(value: Any) -> Any:
    """Return values for JSON: scalars of numpy as plain values, numbers that are not finite as null."""
    if isinstance(value, Mapping):
        return {str(key): _as_json(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_json(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return None if pd.isna(value) else str(value)
