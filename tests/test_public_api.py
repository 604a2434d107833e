"""The version before, name by name: what was public still is, and is called as before."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

import mcce
from tests.public_api import MODULES, public_api

BEFORE = json.loads(gzip.decompress((Path(__file__).parent / "fixtures" / "api" / "before.json.gz").read_bytes()))

# what is called otherwise than before, and why
CHANGED = {
    "mcce.ChainModel.draw": "takes a DrawRequest: what a draw depends on travels as one frozen object",
    "mcce.ChainModel.encode_fixed": "is givens_of: it also adds the decision",
}
CHANGED |= {
    f"{module}.{name}Sampler.parts": "said which classes set_state makes; they are registered now, see mcce.storage.state"
    for module in ("mcce", "mcce.samplers")
    for name in ("Logreg", "NormRank", "Norm", "Pmm", "Polr", "Polyreg")
}
CHANGED |= {
    name: "nothing read it; draws are restricted by sample_within, and threads have one BLAS thread anyway"
    for name in BEFORE["names"]
    if name.endswith((".sample_by_rejection", ".uses_blas"))
}


def differences(before, now):
    """Say in which ways a call as before would fail or mean something else."""
    if isinstance(before, str) or isinstance(now, str):
        return [] if before == now else [f"was {before}, is {now}"]
    found = {name: (kind, default) for name, kind, default in now}
    wrong = [f"lost {name}" for name, _, _ in before if name not in found]
    for name, kind, default in before:
        if name in found and found[name] != (kind, default):
            wrong.append(f"{name} was {(kind, default)}, is {found[name]}")
    known = {name for name, _, _ in before}
    for name, kind, default in now:
        if name not in known and default is None and not kind.startswith("VAR_"):
            wrong.append(f"{name} is new and has no default")
    in_order = [[name for name, kind, _ in signature if kind.startswith("POSITIONAL")] for signature in (before, now)]
    if in_order[1][: len(in_order[0])] != in_order[0]:
        wrong.append(f"by position {in_order[0]} became {in_order[1]}")
    return wrong


def test_every_public_name_is_still_there_and_is_called_as_before():
    now = public_api()
    wrong = {}
    for name, before in BEFORE["names"].items():
        if name in CHANGED:
            continue
        if name not in now:
            wrong[name] = ["is gone"]
        elif differences(before, now[name]):
            wrong[name] = differences(before, now[name])
    assert wrong == {}


def test_what_is_listed_as_changed_did_change():
    now = public_api()
    assert set(CHANGED) <= set(BEFORE["names"])
    assert [name for name in CHANGED if name in now and not differences(BEFORE["names"][name], now[name])] == []


def test_the_names_written_down_are_those_of_every_public_module():
    for module in MODULES:
        assert any(name.startswith(f"{module}.") for name in BEFORE["names"]), module
    for name in ("mcce.MCCE.explain", "mcce.samplers.CartSampler.fit", "mcce.rcompat.explain_mcce"):
        assert name in BEFORE["names"]
    assert ["n_samples", "KEYWORD_ONLY", "1000"] in BEFORE["names"]["mcce.MCCE.explain"]


A = ["a", "POSITIONAL_OR_KEYWORD", None]
B = ["b", "POSITIONAL_OR_KEYWORD", "1"]
C = ["c", "KEYWORD_ONLY", "None"]


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ([A, B, C], []),
        ([A, B, ["d", "POSITIONAL_OR_KEYWORD", "2"], C, ["e", "VAR_KEYWORD", None]], []),
        ([A, C], ["lost b", "by position ['a', 'b'] became ['a']"]),
        ([A, ["b", "POSITIONAL_OR_KEYWORD", "2"], C], ["b was ('POSITIONAL_OR_KEYWORD', '1'), is"]),
        ([B, A, C], ["by position ['a', 'b'] became ['b', 'a']"]),
        ([A, B, C, ["d", "KEYWORD_ONLY", None]], ["d is new and has no default"]),
        ("property", ["was [['a',"]),
    ],
)
def test_a_call_that_would_fail_is_found(now, said):
    wrong = differences([A, B, C], now)
    assert len(wrong) == len(said)
    assert all(found.startswith(words) for found, words in zip(wrong, said))


def test_only_public_names_are_listed():
    listed = {name for name in dir(mcce) if not name.startswith("_")}
    assert listed == {*mcce.__all__, "plots", "testing"}
    assert "__version__" in dir(mcce)


@pytest.mark.thorough
def test_importing_loads_nothing_that_takes_long_and_what_is_loaded_late_is_there():
    code = (
        "import sys, mcce; print(sorted({'sklearn', 'scipy.stats', 'matplotlib'} & sys.modules.keys()));"
        "late = {'mcce.testing', 'mcce.plots'}; print(sorted(late & sys.modules.keys()));"
        "mcce.testing.check_sampler; mcce.plots; print(sorted(late & sys.modules.keys()));"
        "print(mcce.NotFittedError is mcce.exceptions.NotFittedError, mcce.NotFittedError.__mro__[2].__module__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    said = ["[]", "[]", "['mcce.plots', 'mcce.testing']", "True sklearn.exceptions"]
    assert done.stdout.splitlines() == said, done.stderr
    with pytest.raises(AttributeError, match="module 'mcce' has no attribute 'explain'"):
        _ = mcce.explain


def test_every_public_name_stands_on_the_api_page():
    page = Path(__file__).parent.parent / "vignettes" / "api.md"
    if not page.exists():
        pytest.skip("the vignettes are not part of an installed package; test in a checkout")
    text = page.read_text(encoding="utf-8")
    errors = {
        name for name in mcce.__all__ if isinstance(getattr(mcce, name), type) and name.endswith(("Error", "Warning"))
    }
    modules = {"datasets", "diagnostics", "rcompat"}
    missing = [name for name in mcce.__all__ if name not in errors | modules and f" mcce.{name}\n" not in text]
    assert missing == []
