"""`mcce fit`, `mcce explain` and `mcce letters`: explainers, and counterfactuals for the rows of a file.

`letters` is a sparse `explain` that writes letters. `fit` saves the explainer, with the name and checksum of the
model's file; a model trained by the command is written beside it. With `--recourse`, `explain` and `letters` find
actions (`MCCE.recourse`); `fit` with `--graph` stores what these need of the training rows.
"""

from __future__ import annotations

import argparse
import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcce.cli.checking import demands, explain_options, given_names, read_constraints
from mcce.cli.console import DONE, notify
from mcce.cli.fitting import WITHOUT_CODE, Job, about_model, fit_files, load_files
from mcce.cli.models import save_model
from mcce.cli.options import check_letters, complete
from mcce.cli.outputs import Outputs, Style, check_outputs, write
from mcce.counterfactuals import Counterfactuals
from mcce.exceptions import InputError
from mcce.explain.followup import MOST_EXPLAINED
from mcce.report.languages import read_texts, text_of
from mcce.report.names import Names


def run_fit(given: argparse.Namespace) -> int:
    arguments = complete(given)
    arguments.explain = arguments.explainer = None
    explain_options(arguments)
    target, model = Path(arguments.save), None if arguments.model is None else Path(arguments.model)
    files = {f"--{role}": getattr(arguments, role) for role in ("train", "model", "constraints", "config")}
    inputs = {role: Path(path) for role, path in files.items() if isinstance(path, str)}
    check_outputs({"--save": target}, inputs, force=arguments.force)
    job = fit_files(arguments, read_constraints(arguments))
    if model is None:
        model = save_model(job.explainer.model, target, force=arguments.force)
        notify(f"wrote the model {model}")
    if arguments.graph is not None:
        job.explainer.learned_.learn_worlds(None)
    job.explainer.save(target, about=about_model(model, job.explainer.model, target))
    notify(f"wrote {target}, which holds values of training rows; mcce inspect {target} lists them")
    also = "" if model.suffix.lower() in WITHOUT_CODE and model.parent == target.parent else f" --model {model}"
    notify(f"mcce letters {target} people.xlsx{also} --letters folder writes letters")
    return DONE


def run_letters(given: argparse.Namespace) -> int:
    """Write letters for the rows of a file; return 3 if nothing was found for some of them."""
    if "show_texts" in given:
        print(text_of(given.show_texts), end="")
        return 0
    if not complete(given).recourse:
        given.sparse = True
    return run_explain(given)


def run_explain(given: argparse.Namespace) -> int:
    """Explain the rows of a file; return 3 if a row that needs a counterfactual has none."""
    arguments = complete(given)
    check_letters(arguments)
    options = explain_options(arguments)
    if arguments.rules is not None and not arguments.sparse:
        raise InputError("--rules needs the plausibility floor; add --sparse.")
    if arguments.letters is not None:
        read_texts(arguments.language, arguments.texts)
    outputs = Outputs.from_arguments(arguments)
    constraints = read_constraints(arguments)
    as_given = copy.copy(arguments)  # without values that are set below
    job = (fit_files if arguments.explainer is None else load_files)(arguments, constraints)
    found = _explain(job, arguments, options)
    return write(found, outputs, Style.from_file(job.source, job.readings, arguments.spreadsheet_safe), as_given)


def _explain(job: Job, arguments: argparse.Namespace, options: dict[str, Any]) -> Counterfactuals:
    demanded = [*job.constraints, *demands(arguments)]
    if arguments.recourse:
        found = job.explainer.recourse(job.factuals, constraints=demanded, **options)
    else:
        found = job.explainer.explain(job.factuals, constraints=demanded, **options)
        if demanded or {"max_changes", "max_gower", "robust"} & {*options}:
            found = found.with_why_unexplained(MOST_EXPLAINED)
    return found if arguments.explainer is None else _reword(found, arguments)


def _reword(found: Counterfactuals, arguments: argparse.Namespace) -> Counterfactuals:
    """Return a result with the names and the decision of this job, in addition to or instead of the explainer's."""
    names = found.names.replaced_by(Names.read(given_names(arguments), found.frame.columns))
    return replace(found, names=names, decision=arguments.in_words or found.decision)
