"""An explainer as a file, and back.

1. What is written: the settings, the wanted decision, the constraints, the fitted generator, the scale of plausibility,
   what tells copies of training rows, and the few rows of the spot check with the model's answers. The model is not.
2. The model is given again. It is asked about the rows of the spot check, and a warning tells if it is another one.
3. A decision that is a function, and the models of `Several`, are given again too: functions are code, and code is
   never read from a file.
4. Without donors (`mcce.generators.storing`) plausibility, copies and spot check are left out: they hold or tell
   training values.
"""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Container, Mapping
from typing import Any, TypeVar

import numpy as np

from mcce.constraints import Allow, Only, PerFactual, Rule, read
from mcce.exceptions import InputError, MCCEWarning, did_you_mean, listing
from mcce.explain.copies import TrainingRows
from mcce.explain.plausibility import Plausibility
from mcce.explain.pools import fixed_columns
from mcce.generators import JointGenerator
from mcce.generators.chain import ChainModel
from mcce.generators.choice import METHODS, check_generator
from mcce.generators.storing import Donors, unfitted
from mcce.model.ask import SpotCheck, TrainingTable
from mcce.model.decisions import Answer, Several, compare_answers, resolve_decision
from mcce.steps import Steps
from mcce.storage import load_fields, save_fields
from mcce.storage.fields import BOOL, FLOAT, check_array, check_number, check_rising, check_type, require
from mcce.storage.state import Fields
from mcce.table import Schema
from mcce.table.checks import check_fixed

Self = TypeVar("Self", bound="Saves")

OURS = (ChainModel, JointGenerator)
GIVEN_AGAIN = ("model", "decision", "generator", "constraints", "n_jobs")


class Saves(Steps):
    """The part of an explainer that writes it to a file and reads it from one."""

    model: Any
    decision: Any
    generator: Any
    fixed: Any

    def save(self, path: str | os.PathLike[str], *, donors: Donors = "all") -> None:
        """Write the fitted explainer to one file, without pickle and without the model; what is there is replaced.

        **The file holds training values**: those that the samplers draw, the fixed values and the decision of every
        training row, a few whole rows, and hashes of all rows. Whoever gets it can read them. ``mcce inspect FILE``
        lists what it discloses. The scale of plausibility, for ``sparse=True``, is learned now if it was not before.

        Parameters
        ----------
        path : str or path
        donors : "all" or "none"
            "none" leaves the training values out; see `ChainModel.save`. Such an explainer is not sparse, and does not
            count copies of training rows.

        Examples
        --------
        >>> import mcce, tempfile
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> loans = mcce.datasets.load_loans(300)
        >>> X = loans.X.select_dtypes("number")
        >>> model = DecisionTreeClassifier(max_depth=3).fit(X, ~loans.y)
        >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     explainer.save(f"{folder}/loans.mcce")
        ...     again = mcce.MCCE.load(f"{folder}/loans.mcce", model=model)
        >>> again.explain(X.head(20)).frame.equals(explainer.explain(X.head(20)).frame)
        True
        """
        self._check_fitted()
        generator = self.generator_
        generator = generator.stored(donors) if isinstance(generator, OURS) else generator
        names = [
            name for name in inspect.signature(type(self).__init__).parameters if name not in ("self", *GIVEN_AGAIN)
        ]
        everything = donors == "all"
        kept = slice(None if everything else 0)
        spots = self._training.spots
        fields = {
            "settings": {name: unfitted(getattr(self, name)) for name in names},
            "decision": _write_decision(self.decision),
            "constraints": read(self.constraints),
            "generator": generator,
            "chosen": self.generator is not None,
            "positions": spots.positions[kept].astype(np.int64),
            "rows": spots.rows[kept],
            "scores": spots.answer.scores[kept],
            "wanted": spots.answer.wanted[kept],
            "plausibility": self._plausibility(None) if everything and self._can_learn() else None,
            "training_rows": self._training_rows() if everything else None,
            "fit_seconds": float(self.fit_seconds_),
        }
        about = {"donors": donors, "decision": self.decision_.describe(), "model": type(self.model).__name__}
        save_fields(path, "MCCE", fields, about)

    @classmethod
    def load(
        cls: type[Self],
        path: str | os.PathLike[str],
        model: Any = None,
        *,
        decision: Any = None,
        n_jobs: int | None = None,
    ) -> Self:
        """Return the explainer in a file that `save` wrote, with its model.

        Nothing in a file is run. One that is damaged, crafted or newer is an `InputError`.

        Parameters
        ----------
        path : str or path
        model : object, callable or dict
            The model that the explainer was fitted with; for `Several` models a dict of them by name. If it answers
            differently about some training rows, a warning says so.
        decision : callable or None
            The wanted decision, if it is a function; else it stands in the file.
        n_jobs : int or None
            Threads to use; None for all cores.

        Examples
        --------
        >>> import mcce, tempfile
        >>> X = mcce.datasets.load_loans(300).X[["age", "salary", "savings"]]
        >>> def score(rows):
        ...     return (rows["savings"] + rows["salary"]) / 200_000
        >>> explainer = mcce.MCCE(score, fixed=["age"], random_state=1).fit(X)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     explainer.save(f"{folder}/loans.mcce")
        ...     again = mcce.MCCE.load(f"{folder}/loans.mcce", model=score)
        >>> again.fixed
        ['age']
        """
        known = {*inspect.signature(cls.__init__).parameters} - {"self", *GIVEN_AGAIN}
        fields = load_fields(path, "MCCE", lambda read: check_fields(read, known))
        wanted = _read_decision(fields["decision"], model, decision)
        chosen = fields["generator"] if fields["chosen"] else None
        parts: Fields = {"generator": chosen, "constraints": fields["constraints"], "n_jobs": n_jobs}
        several = isinstance(wanted, Several)
        make: Any = cls  # whose parameters are those of the explainer
        made: Self = make(None if several else model, decision=wanted, **parts, **fields["settings"])
        made.decision_ = resolve_decision(wanted, made.model)
        made.generator_ = fields["generator"]
        if isinstance(made.generator_, OURS):
            made.generator_.n_jobs = n_jobs
        schema, given = made.generator_.schema_, fixed_columns(made.generator_)
        made._mutable = np.array([j for j in range(len(schema)) if j not in given], dtype=np.int64)
        answer = Answer(fields["scores"], fields["wanted"])
        spots = SpotCheck(fields["positions"].astype(np.intp), fields["rows"], answer)
        made._training = TrainingTable(None, schema, made.decision_, spots)
        if fields["plausibility"] is not None:
            made.plausibility_ = fields["plausibility"]
        if fields["training_rows"] is not None:
            made.training_rows_ = fields["training_rows"]
        made.fit_seconds_ = fields["fit_seconds"]
        made._compare_models(spots)
        return made

    def _can_learn(self) -> bool:
        return "plausibility_" in vars(self) or self._training.table is not None

    def _compare_models(self, spots: SpotCheck) -> None:
        """Warn if the model is not the one that the explainer was fitted with (step 2)."""
        if not len(spots.rows):
            return
        again = self.decision_.ask(self.generator_.schema_.decode_for_model(spots.rows), "some training rows")
        differing = compare_answers(spots.answer, again, range(len(spots.rows)))
        if differing:
            warnings.warn(
                f"the model answers {len(differing)} of {len(spots.rows)} training rows differently than the one that "
                "the explainer was fitted with. What was learned belongs to that model; load it with that one, or fit "
                "again.",
                MCCEWarning,
                stacklevel=3,
            )


def _write_decision(decision: Any) -> Fields:
    """Return a decision without models and functions (step 3)."""
    if isinstance(decision, Several):
        functions = [name for name, _, each in decision.models if callable(each)]
        if functions:
            raise InputError(
                f"the decision of {listing(functions)} in {decision!r} is a function, which cannot be written down; "
                "give an interval or labels."
            )
        pairs = [[name, each] for name, _, each in decision.models]
        return {"several": pairs, "agree": decision.agree, "label": decision.label}
    return {"function": True} if callable(decision) else {"wanted": decision}


def _read_decision(written: Fields, model: Any, decision: Any) -> Any:
    """Return the decision of a file, with what has to be given again."""
    if "function" in written:
        if not callable(decision):
            raise InputError(
                f"decision is {decision!r}, but the wanted decision of this explainer was a function, which no file "
                "holds; give it again, as in MCCE.load(path, decision=...)."
            )
        return decision
    if decision is not None:
        raise InputError("decision is given, but it stands in the file; leave it out.")
    if "several" not in written:
        return written["wanted"]
    names = [name for name, _ in written["several"]]
    if not isinstance(model, Mapping):
        raise InputError(f"this explainer asks several models; give a dict of them by name: {listing(names)}.")
    for name in names:
        if name not in model:
            raise InputError(f"model has no {name!r}, which this explainer asks; {did_you_mean(name, model)}")
    pairs = {name: (model[name], each) for name, each in written["several"]}
    return Several(pairs, agree=written["agree"], label=written["label"])


def check_fields(fields: Fields, known: Container[str]) -> Fields:
    """Refuse fields that do not fit together; `known` are the settings that there are."""
    generator, settings = fields["generator"], fields["settings"]
    require(all(callable(getattr(generator, name, None)) for name in METHODS), "generator is none")
    check_type(settings, "settings", dict)
    require(all(name in known for name in settings), "settings has one that an explainer does not have")
    check_type(fields["chosen"], "chosen", bool)
    check_type(generator.schema_, "schema_", Schema)
    check_type(settings["condition_on_decision"], "condition_on_decision", bool)
    check_generator(
        generator, check_fixed(settings["fixed"], generator.schema_.names), settings["condition_on_decision"]
    )
    check_type(fields["constraints"], "constraints", list)
    for each in fields["constraints"]:
        check_type(each, "constraints", Allow, Rule, Only, PerFactual)
    _check_decision(fields["decision"])
    _check_spots(fields, generator.schema_)
    check_type(fields["plausibility"], "plausibility", Plausibility, type(None))
    if fields["plausibility"] is not None:
        fields["plausibility"].check_columns(len(generator.schema_))
    check_type(fields["training_rows"], "training_rows", TrainingRows, type(None))
    check_number(fields["fit_seconds"], "fit_seconds", 0.0)
    return fields


def _check_decision(written: Any) -> None:
    check_type(written, "decision", dict)
    require({*written} in ({"function"}, {"wanted"}, {"several", "agree", "label"}), "decision is none")
    for pair in written.get("several", []):
        check_type(pair, "several", list)
        require(len(pair) == 2 and isinstance(pair[0], str), "several holds no pairs")


def _check_spots(fields: Fields, schema: Schema) -> None:
    rows, positions = fields["rows"], fields["positions"]
    check_array(rows, "rows", FLOAT, None, len(schema))
    check_array(positions, "positions", np.dtype(np.int64), len(rows))
    check_rising(positions, "positions")
    check_array(fields["wanted"], "wanted", BOOL, len(rows))
    check_type(fields["scores"], "scores", np.ndarray)
    require(fields["scores"].shape == (len(rows),), "scores are not one a row")
    again = schema.encode(schema.decode(rows), "the file").matrix
    require(np.array_equal(again, rows, equal_nan=True), "rows are not of the columns")
