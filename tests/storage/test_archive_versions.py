"""Files of every format version load and draw as recorded."""

import importlib.util
import json
from pathlib import Path

import pytest

import mcce
from mcce.samplers.registry import name_of_sampler
from mcce.storage.archive import VERSION
from tests.extras import HAS_VINE, NO_VINE
from tests.storage import good

FOLDER = Path(__file__).parent.parent / "fixtures" / "storage"
FILES = sorted(FOLDER.glob("v*/*.mcce"))

_spec = importlib.util.spec_from_file_location("make_kept_files", FOLDER / "make.py")
making = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(making)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_kept_file_draws_as_recorded(path):
    if path.stem == "vine":
        pytest.importorskip("pyvinecopulib", reason=NO_VINE)
    drawn = json.loads((path.parent / "drawn.json").read_text(encoding="utf-8"))[path.stem]
    if path.stem == "explainer":
        explainer = mcce.MCCE.load(path, model=making.score)
        assert making.drawn_by_explainer(explainer) == drawn
    elif path.stem == "counterfactuals":
        assert making.shown_of_result(mcce.Counterfactuals.load(path)) == drawn
    else:
        assert making.drawn_by_chain(mcce.ChainModel.load(path)) == drawn


def test_files_of_this_version_exist():
    kept = {path.stem for path in FILES if path.parent.name == f"v{VERSION}"}
    assert kept == {*making.SAMPLERS, "explainer", "counterfactuals"}


def test_every_built_in_sampler_is_kept_and_corrupted():
    """A new sampler needs a file that later versions load, and files for the fuzz test."""
    ours = {name for name, each in mcce.available_samplers().items() if each.__module__.startswith("mcce.")}
    absent = set() if HAS_VINE else {"vine"}
    spoilt = (sampler for sampler, _ in good.CHAINS.values())
    for chains, wanted in ((making.SAMPLERS.values(), ours), (spoilt, ours - absent)):
        assert wanted == {name for sampler in chains for name in names_of(sampler)} - {"*"}


def names_of(sampler):
    """Return the names of the samplers of a chain."""
    if isinstance(sampler, dict):
        return {name for each in sampler.values() for name in names_of(each)}
    return {sampler if isinstance(sampler, str) else name_of_sampler(sampler)}
