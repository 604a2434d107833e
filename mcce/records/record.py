"""One decision as a JSON document: the person's values, the decision, every answer and their origin.

A record has the keys of `schema.json`. It holds the factual and its counterfactuals, and no training row: model and
explainer are named by fingerprints, the training table by a hash (`mcce.explain.origin`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

import numpy as np

from mcce.constraints import Constraint, OfFactuals
from mcce.exceptions import InputError
from mcce.records.canonical import HASH, cell, figure, hash_of, to_json
from mcce.report.reasons import ALREADY, UNREADABLE
from mcce.report.rows import Result, compare_rows, incidental_cells, owners
from mcce.report.words import roles_of

FORMAT, VERSION = "mcce record", 1


@dataclass(frozen=True)
class Origin:
    """The origin of a result.

    Attributes
    ----------
    method, arguments : the call of the explainer, and all its arguments except rows and constraints.
    constraints : the constraints of the call.
    described : the sections "model", "explainer", "training" and "versions" of a record.
    seed : the seed of the draws.
    rule : the wanted decision with its bounds or classes.
    """

    method: str
    arguments: Mapping[str, Any]
    constraints: Sequence[Constraint]
    described: Mapping[str, Any]
    seed: int
    rule: str

    @classmethod
    def from_call(
        cls,
        fingerprint: Mapping[str, Any],
        method: str,
        arguments: Mapping[str, Any],
        constraints: Sequence[Constraint],
    ) -> Origin:
        """Return the origin of a call, given `MCCE.fingerprint`."""
        described = {name: part for name, part in fingerprint.items() if name not in ("seed", "decision")}
        return cls(method, arguments, constraints, described, fingerprint["seed"], fingerprint["decision"])


def schema() -> dict[str, Any]:
    """Return the JSON schema of a record (JSON Schema, draft 2020-12).

    Examples
    --------
    >>> import mcce
    >>> "answers" in mcce.records.schema()["required"]
    True
    """
    text = files("mcce.records").joinpath("schema.json").read_text(encoding="utf-8")
    read: dict[str, Any] = json.loads(text)
    return read


def make_records(
    bodies: Iterable[dict[str, Any]],
    origin: Origin,
    previous: str | None = None,
    *,
    reviewed_by: str | None = None,
    reviewed_at: str | None = None,
    files: Mapping[str, str | None] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield a record for each factual, each with the hash of the one before it.

    Parameters
    ----------
    bodies : the decisions and answers of the factuals, from `make_bodies`.
    origin : their origin.
    previous : the hash of the record before the first; None if there is none.
    reviewed_by, reviewed_at : who reviewed the answers, and when.
    files : SHA-256 of the files of "model" and "explainer", where known.
    """
    if reviewed_at is not None and reviewed_by is None:
        raise InputError("reviewed_at is given without reviewed_by; name the person, or leave both out.")
    review = (
        None
        if reviewed_by is None
        else {"by": str(reviewed_by), "at": None if reviewed_at is None else str(reviewed_at)}
    )
    arguments = {name: to_json(value, name) for name, value in origin.arguments.items()}
    common = {name: to_json(each, "constraints") for name, each in enumerate(origin.constraints)}
    made_with = json.loads(json.dumps(origin.described))
    for part, digest in (files or {}).items():
        if part not in ("model", "explainer"):
            raise InputError(
                f"files names {part!r}; the files that a record names are those of 'model' and 'explainer'."
            )
        made_with[part]["file"] = digest
    for body in bodies:
        own = [
            _own(each, body["id"]) if isinstance(each, OfFactuals) else common[i]
            for i, each in enumerate(origin.constraints)
        ]
        call = {
            "method": origin.method,
            "arguments": arguments | {"constraints": [each for each in own if each is not None]},
        }
        record = {
            "format": FORMAT,
            "version": VERSION,
            **body,
            "decision": {**body["decision"], "rule": origin.rule},
            **made_with,
            "call": call,
            "seed": origin.seed,
            "review": review,
            "previous": previous,
        }
        record[HASH] = previous = hash_of(record)
        yield record


def _own(constraint: OfFactuals, id: Any) -> Any:
    """Return the part of a constraint on single factuals that concerns one of them; None if there is none."""
    own_entries = tuple(entry for entry in constraint.by_id if cell(entry[0]) == id)
    return to_json(replace(constraint, by_id=own_entries), "constraints") if own_entries else None


def make_bodies(found: Result) -> Iterator[dict[str, Any]]:
    """Yield the id, decision and answers of each factual, as JSON values."""
    names = [str(name) for name in found.frame.columns]
    if len(set(names)) < len(names):
        raise InputError("two columns have the same name as text, which are the same key in a record; rename one.")
    old = found.factuals[found.frame.columns].astype(object).to_numpy()
    new, measures = found.frame.astype(object).to_numpy(), found.measures.astype(object).to_numpy()
    ranks = found.frame.index.get_level_values("rank")
    _, changed = compare_rows(found)
    along = incidental_cells(found)
    roles = ("changed", "") if found.incidental is None else roles_of(found)
    follow: dict[Any, list[dict[str, Any]]] = {}
    if found.consequences is not None:
        for row in found.consequences.astype(object).to_dict("records"):
            entry = {name: figure(row[name]) for name in ("feature", "low", "high", "share")}
            follow.setdefault((row["id"], row["rank"]), []).append(entry)
    reasons = dict(zip(found.unexplained.index, found.unexplained["reason"]))
    rows: dict[int, list[int]] = {}
    for k, factual in enumerate(owners(found).tolist()):
        rows.setdefault(factual, []).append(k)
    for i, who in enumerate(found.factuals.index):
        answers = []
        for k in rows.get(i, []):
            place = who, ranks[k]
            answer = {"rank": int(ranks[k]), "values": dict(zip(names, map(cell, new[k])))}
            answer["changes"] = [
                {"feature": names[j], "from": cell(old[i, j]), "to": cell(new[k, j]), "role": roles[int(along[k, j])]}
                for j in np.flatnonzero(changed[k])
            ]
            answer["measures"] = dict(zip(map(str, found.measures.columns), map(figure, measures[k])))
            answers.append(answer | ({} if found.consequences is None else {"consequences": follow.get(place, [])}))
        reason = reasons.get(who)
        unread = reason is not None and str(reason).startswith(UNREADABLE)
        yield {
            "id": cell(who),
            "factual": dict(zip(names, map(cell, old[i]))),
            "decision": {
                "wanted": found.decision,
                "score": figure(found.factual_predictions.iloc[i]),
                "reached": None if unread else reason == ALREADY,
            },
            "answers": answers,
            "unexplained": None if reason is None else str(reason),
            "fixed": [str(name) for name in found.fixed],
            "constraints": list(found.constraint_texts.get(who, ())),
        }
