"""The output folder of a batch run: its files, manifest and lock.

    manifest.json                          input, settings, explainer and versions; at the end parts and totals
    counterfactuals/part-000000.parquet    features and measures of the counterfactuals of a part
    unexplained/part-000000.parquet        rows without a counterfactual, with the reason
    decisions/part-000000.jsonl            decisions and answers as JSON lines, if records are written
    parts/part-000000.json                 counts and checksums of these files; written last, it marks a finished part
    bad-rows.csv                           rows that were skipped, if there are any
    unlettered.csv                         refused rows without a letter, if letters are written

A run resumes a folder only if its manifest agrees; damaged parts are redone. An explainer is identified by its columns,
its draws for a few training rows and the model's predictions for them, so a saved or refitted explainer agrees. The
folder of letters is marked with its run; letters of finished parts are not written again. The lock is an operating
system lock on `.lock`, released when its process ends.
"""

from __future__ import annotations

import csv
import hashlib
import inspect
import json
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mcce.base.arrays import Floats
from mcce.base.files import UNFINISHED, atomic_write
from mcce.base.locks import LOCK
from mcce.batches.letters import Letters
from mcce.batches.parts import COUNTS, DECISIONS, TABLES, Explained
from mcce.batches.sources import Part
from mcce.constraints import read
from mcce.exceptions import InputError, MCCEWarning, did_you_mean, listing, spell
from mcce.explain.draw import draw_pools
from mcce.explain.problem import fixed_columns, pool_keys
from mcce.explain.protocol import Explainer
from mcce.model.decisions import resolve_decision
from mcce.model.queries import EncodedModel
from mcce.model.robustness import Robust
from mcce.table.spreadsheet import escape_formula
from mcce.wording import Setting

FORMAT = "mcce batches 1"
MANIFEST, PARTS, BAD, UNLETTERED = "manifest.json", "parts", "bad-rows.csv", "unlettered.csv"
MARK = ".letters-of"  # in the folder of letters: the run that writes them


@dataclass(frozen=True)
class BatchResult:
    """The files that `MCCE.explain_batches` wrote, with their counts.

    Attributes
    ----------
    folder : Path
        With the subfolders `counterfactuals` and `unexplained`, which are Parquet data sets.
    manifest : dict
        Settings, explainer, versions, input, parts and totals, as in `manifest.json`.

    Examples
    --------
    >>> import mcce, tempfile
    >>> X = mcce.datasets.load_loans(200).X.select_dtypes("number")
    >>> explainer = mcce.MCCE(lambda rows: rows["salary"] > 40_000, decision=True, random_state=1).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = explainer.explain_batches(X, f"{folder}/out", batch_size=100, n_samples=50)
    >>> done.totals["rows"], [part["rows"] for part in done.manifest["parts"]]
    (200, [100, 100])
    """

    folder: Path
    manifest: Mapping[str, Any]

    @property
    def totals(self) -> dict[str, int]:
        """Counts of rows by outcome, of counterfactuals and of letters."""
        return dict(self.manifest["totals"])

    def __repr__(self) -> str:
        totals = self.totals
        counts = ", ".join(f"{totals[name]} {name}" for name in COUNTS)
        return f"BatchResult({str(self.folder)!r}: {len(self.manifest['parts'])} parts; {counts})"


class Folder:
    """The output folder of a run that holds its lock."""

    def __init__(self, path: Path, letters: Path | None = None) -> None:
        self.path = path
        self.letters = letters
        self._finished: dict[int, dict[str, Any]] = {}

    def begin(self, head: Mapping[str, Any]) -> None:
        """Write the manifest, or compare it with the existing one."""
        manifest = self.path / MANIFEST
        known = self._known(manifest)
        if any(self.path.glob(f"{PARTS}/part-*.json")):  # without a finished part the folder can be reused
            self._compare(known, head)
        else:
            _write_json(manifest, {"format": FORMAT, "finished": False, **head})
        for name in (PARTS, *TABLES):
            (self.path / name).mkdir(exist_ok=True)
        for path in sorted((self.path / PARTS).glob("part-*.json")):
            part = self._finished_part(path)
            if part is not None:
                self._finished[part["part"]] = part
                continue
            warnings.warn(
                f"{path}: the files of this part were changed; it is redone.",
                MCCEWarning,
                stacklevel=5,  # the line that called explain_batches
            )
            path.unlink()
        self._remove_unfinished()
        if self.letters is not None:
            self._begin_letters(self.letters, f"{FORMAT} {_checksum(json.dumps(head).encode())}\n")

    def _begin_letters(self, folder: Path, run: str) -> None:
        """Mark the folder of letters with this run; raise if it holds other files."""
        folder.mkdir(parents=True, exist_ok=True)
        mark = folder / MARK
        known = mark.read_text(encoding="utf-8") if mark.is_file() else ""
        others = [path.name for path in folder.iterdir() if path.name != MARK]
        if others and known != run:
            raise InputError(
                f"the folder of letters, {folder}, holds {listing(sorted(others), 3)}, which this run did not "
                "write; give a new or empty folder."
            )
        for left in folder.glob(f"{UNFINISHED}*"):
            left.unlink()
        with atomic_write(mark) as beside:
            beside.write_text(run, encoding="utf-8")

    def _known(self, manifest: Path) -> dict[str, Any]:
        """Return the existing manifest, empty if there is none; raise if the folder holds other files."""
        if manifest.exists():
            known = _read_json(manifest)
            if known.get("format") != FORMAT:
                raise InputError(
                    f"{manifest} has the format {spell(known.get('format'))}, not {FORMAT!r}; give a new folder."
                )
            return known
        ours = (LOCK, PARTS, DECISIONS, *TABLES)
        others = [p.name for p in self.path.iterdir() if p.name not in ours and not p.name.startswith(UNFINISHED)]
        others += [p.name for name in ours for p in self.path.glob(f"{name}/part-*")]
        if others:
            raise InputError(
                f"{self.path} holds {listing(sorted(others), 3)}, and no {MANIFEST}; give a new or empty folder."
            )
        return {}

    def _remove_unfinished(self) -> None:
        """Remove unfinished files and the files of unfinished parts of an interrupted run."""
        for left in self.path.rglob(f"{UNFINISHED}*"):
            left.unlink()
        finished = {name for part in self._finished.values() for name in part["files"]}
        for table in (*TABLES, DECISIONS):
            for path in (self.path / table).glob("part-*"):
                if f"{table}/{path.name}" not in finished:
                    path.unlink()

    def is_done(self, number: int) -> bool:
        return number in self._finished

    def check_same(self, part: Part, skip_bad: bool) -> None:
        """Raise if a finished part is not the one that would be made now."""
        known = self._finished[part.number]
        now = _place_of(part)
        if {name: known.get(name) for name in now} != now:
            raise InputError(
                f"{self.path}: part {part.number} was made from {known['end'] - known['begin']} rows of "
                f"{known['source']}, from row {known['begin']} on, and the source now has other ones there "
                f"({now['end'] - now['begin']} rows of {part.where}, from row {now['begin']} on). Give the same "
                "source, or a new folder."
            )
        if known["bad_rows"] and not skip_bad:
            first = known["bad_rows"][0]
            raise InputError(
                f"{self.path}: part {part.number} leaves out bad rows, the first is {first['place']} of "
                f"{part.where}: {first['problem']} Run it with ",
                Setting("skip_bad", True),
                " as before, or into a new folder.",
            )

    def write(self, explained: Explained) -> None:
        """Write a part, its own manifest last."""
        try:
            self._write(explained)
        except OSError as error:
            part = explained.part
            rows = (
                f"rows {part.rows.begin} to {part.rows.end - 1} of {part.where} (part {part.number}) were not written"
            )
            why = f"{error.strerror}: {rows}; finished parts are kept, run it again when there is room"
            raise OSError(error.errno, why, error.filename) from error

    def _write(self, explained: Explained) -> None:
        part = explained.part
        checks: dict[str, Any] = {}
        letter_counts: dict[str, Any] = {}
        if explained.letters is not None:
            assert self.letters is not None
            for name, page in explained.letters.pages.items():
                with atomic_write(self.letters / name) as beside:
                    beside.write_text(page, encoding="utf-8")
            without = [{"id": str(case_id), "why": why} for case_id, why in explained.letters.unlettered]
            letter_counts = {"letters": len(explained.letters.pages), "unlettered": without}
        for table, data in explained.files.items():
            name = f"{table}/part-{part.number:06d}.{'jsonl' if table == DECISIONS else 'parquet'}"
            (self.path / table).mkdir(exist_ok=True)
            with atomic_write(self.path / name) as beside:
                beside.write_bytes(data)
            checks[name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        bad = [{"begin": b.begin, "end": b.end, "place": b.place, "problem": b.problem} for b in explained.bad]
        counts = {**explained.counts, **letter_counts}
        known = {"part": part.number, **_place_of(part), **counts, "bad_rows": bad, "files": checks}
        _write_json(self.path / PARTS / f"part-{part.number:06d}.json", known)
        self._finished[part.number] = known

    def decisions(self) -> Iterator[dict[str, Any]]:
        """Yield the decisions of all parts, in the order of the source."""
        for number in sorted(self._finished):
            for line in (self.path / DECISIONS / f"part-{number:06d}.jsonl").read_bytes().splitlines():
                yield json.loads(line)

    def finish(self, head: Mapping[str, Any], n_parts: int) -> BatchResult:
        """Write the manifest with all parts and totals, and the list of bad rows."""
        beyond = sorted(number for number in self._finished if number >= n_parts)
        if beyond:
            raise InputError(
                f"{self.path} holds part {beyond[0]}, and the source ends before it, after {n_parts} parts. Give the "
                "same source, or a new folder."
            )
        parts = [self._finished[number] for number in range(n_parts)]
        totals = {name: sum(part[name] for part in parts) for name in COUNTS}
        if self.letters is not None:
            totals["letters"] = sum(part["letters"] for part in parts)
        whole = {"format": FORMAT, "finished": True, **head, "totals": totals, "parts": parts}
        bad = [{"source": part["source"], **each} for part in parts for each in part["bad_rows"]]
        without = [each for part in parts for each in part.get("unlettered", ())]
        _write_list(self.path / BAD, ("source", "begin", "end", "place", "problem"), bad)
        _write_list(self.path / UNLETTERED, ("id", "why"), without)
        _write_json(self.path / MANIFEST, whole)
        return BatchResult(self.path, whole)

    def _compare(self, known: Mapping[str, Any], head: Mapping[str, Any]) -> None:
        wrong = [
            line for name in head for line in _differences(name, known.get(name), json.loads(json.dumps(head[name])))
        ]
        if wrong:
            more = f"; and {len(wrong) - 5} more" if len(wrong) > 5 else ""
            raise InputError(
                f"{self.path} was begun with other settings: {'; '.join(wrong[:5])}{more}. Give a new folder, or what "
                "it was begun with."
            )

    def _finished_part(self, manifest: Path) -> dict[str, Any] | None:
        """Return the manifest of a part; None if its files were changed."""
        try:
            known = _read_json(manifest)
            files = {self.path / name: checks["sha256"] for name, checks in known["files"].items()}
        except (InputError, KeyError, AttributeError, TypeError):
            return None
        whole = all(p.is_file() and hashlib.sha256(p.read_bytes()).hexdigest() == digest for p, digest in files.items())
        return known if whole and manifest.name == f"part-{known.get('part', -1):06d}.json" else None


def _place_of(part: Part) -> dict[str, Any]:
    rows = part.rows
    return {"source": part.where, "begin": rows.begin, "end": rows.end, "first": part.first, "digest": part.digest}


def _differences(name: str, before: Any, now: Any) -> Iterator[str]:
    """Yield the differences of two JSON values."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*before, *now]):
            yield from _differences(f"{name}.{key}", before.get(key), now.get(key))
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for i, (one, other) in enumerate(zip(before, now)):
            yield from _differences(f"{name}[{i}]", one, other)
    elif before != now:
        yield f"{name} was {_short(before)}, is {_short(now)}"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _read_json(path: Path) -> dict[str, Any]:
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON ({error}); it was changed since. Give a new folder.") from error
    if not isinstance(read, dict):
        raise InputError(f"{path} holds no manifest; it was changed since. Give a new folder.")
    return read


def _write_list(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a list as CSV with escaped formulas, unless it is empty."""
    if not rows:
        return
    with atomic_write(path) as beside, beside.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: escape_formula(value) for name, value in row.items()} for row in rows)


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    with atomic_write(path) as beside:
        beside.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


DRAWS = 32  # for each training row that identifies an explainer
LONGEST = 500  # characters of a setting that are written out
PACKAGES = ("mcce", "numpy", "pandas", "pyarrow")
NOT_HERE = {"progress": "give it to explain_batches"}


def check_settings(explainer: Explainer, settings: Mapping[str, Any], method: str) -> dict[str, Any]:
    """Return all settings of a method of the explainer; raise on unknown ones."""
    known = inspect.signature(getattr(explainer, method)).parameters
    names = [name for name in known if name != "X" and name not in NOT_HERE]
    for name in settings:
        if name in NOT_HERE:
            raise InputError(f"explain_batches does not take {name}: {NOT_HERE[name]}.")
        if name not in names:
            beside = " with recourse=True" if method == "recourse" else ""
            raise InputError(f"explain_batches does not take {name!r}{beside}; {did_you_mean(name, names)}")
    return {name: settings.get(name, known[name].default) for name in names}


def describe_settings(explainer: Explainer, settings: Mapping[str, Any], rows: Floats) -> dict[str, Any]:
    """Return settings of `explain` or `recourse` as JSON values."""
    described = {name: _plain(value) for name, value in settings.items()}
    described["constraints"] = [_plain(each) for each in read(settings["constraints"])]
    robust = Robust.read(settings.get("robust"))
    if robust is not None:
        refits = [f"{type(model).__name__} {_answers(explainer, model, rows)}" for model in robust.refits]
        described["robust"] = {"refits": refits, "noise": _plain(robust.noise), "share": _plain(robust.share)}
    return described


def describe_letters(explainer: Explainer, letters: Letters | None) -> dict[str, Any]:
    """Return the settings of the letters, without their folder; empty without letters."""
    if letters is None:
        return {}
    texts = None if letters.texts is None else _checksum(json.dumps(letters.texts, sort_keys=True).encode())
    names = repr(explainer.names_.replaced_by(letters.names))
    described = {"language": letters.language, "texts": texts, "all": letters.all, "decision": letters.decision}
    described |= {"reasons": True} if letters.reasons else {}
    return {"letters": {**described, "names": _checksum(names.encode())}}


def describe_explainer(explainer: Explainer, rows: Floats) -> dict[str, Any]:
    """Return what identifies an explainer, given some encoded training rows."""
    generator = explainer.generator_
    keys = pool_keys(generator, rows, fixed_columns(generator))
    drawn = draw_pools(generator, rows, keys, DRAWS).rows
    scores, wanted = EncodedModel(explainer.decision_, generator.schema_).predict_encoded(np.concatenate([rows, drawn]))
    return {
        "model": type(explainer.model).__name__,
        "decision": explainer.decision_.describe(),
        "fixed": [str(name) for name in generator.fixed_],
        "generator": type(generator).__name__,
        "sampler": _plain(explainer.sampler),
        "random_state": int(generator.seed_),
        "constraints": [_plain(each) for each in read(explainer.constraints)],
        "columns": {str(f.name): f"{f.kind}, {f.dtype}" for f in generator.schema_.features},
        "draws": _checksum(np.concatenate([rows, drawn]).tobytes()),
        "answers": _checksum(_rounded(scores) + wanted.tobytes()),
    }


def describe_versions() -> dict[str, str]:
    """Return the versions of the packages that results depend on."""
    return {name: str(sys.modules[name].__version__) for name in PACKAGES}


def _answers(explainer: Explainer, model: Any, rows: Floats) -> str:
    encoded_model = EncodedModel(resolve_decision(explainer.decision, model), explainer.generator_.schema_)
    scores, wanted = encoded_model.predict_encoded(rows)
    return _checksum(_rounded(scores) + wanted.tobytes())


def _rounded(scores: Any) -> bytes:
    """Return scores as text, without the last digits, which depend on the number of threads."""
    return "\n".join(f"{s:.6g}" if isinstance(s, (float, np.floating)) else str(s) for s in scores).encode()


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if inspect.isfunction(value) or inspect.isclass(value):
        return f"{value.__module__}.{value.__qualname__}"
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
    return text if len(text) <= LONGEST else f"{text[:60]}... ({_checksum(text.encode())})"
