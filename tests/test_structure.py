"""`tests/` mirrors `mcce/`.

The tests of `mcce/a/b.py` are in `tests/a/test_b.py`, in `tests/a/test_b_<topic>.py`, or, if they are many, in the
folder `tests/a/b/`. A file about a package as a whole is `tests/a/test_a.py`. All exceptions are listed here with the
reason.
"""

from pathlib import Path

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "mcce"

# test files of several modules of their folder
TOPICS = {
    "cli/test_walk.py": "whole workflows on the command line",
    "diagnostics/test_weights.py": "weighted rows in several diagnostics",
    "explore/test_browser.py": "server and page in a browser",
    "generators/joint/test_in_explainer.py": "every joint generator inside an explainer",
    "generators/joint/test_storing.py": "every joint generator as a file",
    "generators/joint/test_weights.py": "weighted rows in every joint generator",
    "privacy/test_audit.py": "the privacy guarantee of sampler and chain, by attacks",
    "samplers/test_capabilities.py": "declarations of every sampler, and the table in the documentation",
    "samplers/test_known_processes.py": "every sampler on known processes",
    "samplers/test_state.py": "every sampler as state",
    "samplers/test_weights.py": "weighted rows in several samplers",
    "samplers/test_weights_of_joint_models.py": "weighted rows in several samplers",
}

# modules without a test file of their name, and the files that test them
TESTED_ELSEWHERE = {
    "base/arrays.py": "names of types only",
    "base/fused.py": "trees/rpart/test_tree_fused.py",
    "base/locks.py": "batches/test_folder.py",
    "base/versions.py": "records/test_record.py",
    "batches/parts.py": "batches/test_running.py",
    "cli/console.py": "cli/test_cli.py",
    "cli/fitting.py": "cli/test_explain.py",
    "cli/parsers.py": "cli/test_cli.py",
    "cli/readers.py": "cli/test_options.py",
    "constraints/allow.py": "constraints/test_resolve.py",
    "constraints/base.py": "base/test_registry.py",
    "constraints/bounds.py": "constraints/test_rules.py",
    "constraints/conditions.py": "constraints/test_meaning.py",
    "constraints/limits.py": "constraints/test_resolve.py",
    "datasets/base.py": "datasets/test_paper_reading.py",
    "diagnostics/pairs.py": "diagnostics/test_diagnose.py",
    "exceptions.py": "test_long_texts.py",
    "explain/protocol.py": "a protocol",
    "explain/stored.py": "storage/test_archive.py",
    "explain/winners.py": "explain/test_pipeline.py",
    "explore/words.py": "explore/test_session.py",
    "generators/joint/adversarial/growing.py": "generators/joint/adversarial/test_generator.py",
    "generators/joint/adversarial/leaves.py": "generators/joint/adversarial/test_generator.py",
    "generators/joint/drawing.py": "generators/joint/test_base.py",
    "generators/joint/made/network.py": "generators/joint/made/test_generator.py",
    "generators/joint/made/training.py": "generators/joint/made/test_generator.py",
    "generators/registry.py": "base/test_registry.py",
    "generators/requests.py": "generators/test_base.py",
    "plausibility/orders.py": "plausibility/test_relation_finder.py",
    "plausibility/searched_columns.py": "plausibility/test_relation_finder.py",
    "plausibility/together.py": "plausibility/test_relation_finder.py",
    "rcompat/conditional.py": "rcompat/test_calls.py",
    "rcompat/r_session.py": "rcompat/test_calls.py",
    "report/letter_layout.py": "report/test_languages.py",
    "report/plots/comparison.py": "diagnostics/test_conditionals_comparing.py",
    "report/reasons.py": "explain/test_tabulate_reasons.py",
    "report/rows.py": "counterfactuals/test_tables.py",
    "samplers/parametric/design.py": "samplers/parametric/test_sampler.py",
    "samplers/vine/joint.py": "generators/joint/test_vine_generator.py",
    "testing/requirements.py": "testing/test_samplers.py",
    "testing/tables.py": "testing/test_samplers.py",
    "wording.py": "cli/test_wording.py",
}


def modules():
    """Return the modules of the package, without `__init__` and `__main__`."""
    return [path.relative_to(PACKAGE) for path in sorted(PACKAGE.rglob("*.py")) if not path.name.startswith("__")]


def mirroring_files():
    """Return the test files in folders that the package also has."""
    files = [path.relative_to(TESTS) for path in sorted(TESTS.rglob("test_*.py"))]
    return [file for file in files if file.parent != Path() and _is_mirrored(file.parent)]


def _is_mirrored(folder):
    """Return whether a folder of tests is a package of `mcce`, or holds the tests of one module."""
    return (PACKAGE / folder).is_dir() or _is_of_module(folder)


def _is_of_module(folder):
    return (PACKAGE / folder).with_suffix(".py").is_file()


def mirrored_by(file):
    """Return the module of a test file by its name: the longest `b` of `test_b_<topic>.py`; or None."""
    if _is_of_module(file.parent):
        return file.parent.with_suffix(".py")
    words = file.stem.removeprefix("test_").split("_")
    for n in range(len(words), 0, -1):
        module = file.parent / f"{'_'.join(words[:n])}.py"
        if (PACKAGE / module).is_file():
            return module
    return None


def is_about_package(file):
    return file.stem == f"test_{file.parent.name}"


def is_kernels(module):
    """Return whether a module holds kernels, which are tested through the module that calls them."""
    return module.stem == "kernels"


def test_every_test_file_is_about_a_module_or_a_listed_topic():
    files = mirroring_files()
    assert len(files) > 200
    other = {file.as_posix() for file in files if not mirrored_by(file) and not is_about_package(file)}
    assert other == set(TOPICS), "name the file test_<module>.py or test_<module>_<topic>.py, or list it in TOPICS"


def test_every_module_has_a_test_file_or_is_listed():
    tested = {mirrored_by(file) for file in mirroring_files()}
    without = {module.as_posix() for module in modules() if module not in tested and not is_kernels(module)}
    assert without == set(TESTED_ELSEWHERE), "add tests/<folder>/test_<module>.py, or list the module with its tests"


def test_listed_test_files_exist():
    named = [file for file in TESTED_ELSEWHERE.values() if file.endswith(".py")]
    assert len(named) > len(TESTED_ELSEWHERE) - 5
    assert [file for file in named if not (TESTS / file).is_file()] == []


def test_file_belongs_to_the_longest_module_name():
    assert mirrored_by(Path("report/test_result_letters.py")) == Path("report/result_letters.py")
    assert mirrored_by(Path("generators/test_chain_density.py")) == Path("generators/chain.py")
    assert mirrored_by(Path("explainer/test_seeds.py")) == Path("explainer.py")
    assert mirrored_by(Path("samplers/test_weights.py")) is None
