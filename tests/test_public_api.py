"""The public names of `mcce`, and the methods and keywords of its main classes.

Adding, renaming or dropping a name requires a change of the lists below.
"""

import inspect
import re
import subprocess
import sys
from dataclasses import is_dataclass
from pathlib import Path

import pytest

import mcce
import r_bridge
from tests.marks import nightly

PAGE = Path(__file__).resolve().parents[1] / "vignettes" / "api.md"

EXPLAINING = """
    MCCE Counterfactuals Interval Names Not OneOf Privacy PrivacyAccount Robust Several
    allow card k_anonymous no_copies only per_factual rule bootstrap_refits find_relations gower_distance joint_density
    suggest_fixed tied transitions available_constraints available_measures register_constraint register_measure
"""
CHAIN = "Auto ChainModel Graph Schema available_generators compare_conditionals register_generator"
SAMPLERS = """
    ConditionalSampler RestrictedDraw Within available_samplers register_sampler
    BetaSampler BoostingSampler CartSampler CatallSampler CtreeSampler CubertNormSampler DPSampler EmpiricalSampler
    EstimatorSampler ForestSampler GammaSampler GaussianCopulaSampler GaussianSampler LassoLogregSampler
    LassoNormSampler LdaSampler LogNormSampler LogregSampler MarginalSampler MidastouchSampler MixtureSampler
    NegbinSampler NestedSampler NormBootSampler NormRankSampler NormSampler ParametricSampler PmmSampler
    PoissonSampler PolrSampler PolyregSampler QuantileSampler SqrtNormSampler StackSampler StatsmodelsSampler
    SurvCtreeSampler TwoLevelSampler TwoPartSampler VineSampler ZipSampler
"""
ERRORS = "InputError MCCEError MCCEWarning ModelError NotFittedError SamplerError"
MODULES = """
    batches constraints datasets diagnostics exceptions explore generators plots rcompat records report rng
    samplers table testing
"""

# for each main class its keywords, and its methods with theirs; properties and plain attributes have none
KEYWORDS = {
    "MCCE": """
        model decision fixed sampler visit_sequence predictors graph condition_on_decision kinds random_state n_jobs
        generator constraints derived names
    """,
    "Counterfactuals": """
        frame measures factuals unexplained factual_predictions decision fixed computed derived kinds ranges draws
        copies constraints nearest allowed consequences names run
    """,
    "ChainModel": "sampler fixed visit_sequence predictors graph kinds random_state n_jobs min_donors",
    "ConditionalSampler": "",
}
METHODS = {
    "MCCE": {
        "fit": "X y sample_weight relations progress",
        "explain": """
            X n_samples n_counterfactuals independent constraints sparse floor caution measures
            feature_weights max_changes max_gower diverse robust progress
        """,
        "explain_batches": """
            source out recourse id batch_size n_jobs skip_bad missing letters records progress settings
        """,
        "explore": "X",
        "fingerprint": "",
        "generate": "X n_samples independent constraints progress",
        "check_graph": "X level random_state",
        "group_rules": "X k by max_changes slack confidence random_state settings",
        "recourse": """
            X actions assurance keep takes n_samples n_counterfactuals constraints floor max_actions progress
        """,
        "select": """
            candidates X n_counterfactuals exhaustive constraints sparse floor caution measures feature_weights
            max_changes max_gower diverse robust progress
        """,
        "diagnose": "X training sample_weight n_samples max_factuals max_rows random_state settings",
        "sensitivity": "X samplers visit_sequences generators n_redraws settings",
        "trade_off": """
            X floors n_samples measures feature_weights max_changes max_gower training max_factuals max_rows
        """,
        "save": "path donors about",
        "load": "path model decision derived n_jobs",
        "get_params": "deep",
        "set_params": "params",
    },
    "Counterfactuals": {
        "changes": "words",
        "changed_features": "",
        "below_floor": "",
        "suspicious": "level",
        "summary": "standard_errors",
        "diversity": "",
        "by": "groups bins confidence random_state",
        "rules": "k by max_changes slack confidence random_state",
        "contributions": "id rank words",
        "principal_reasons": "id n every n_draws",
        "why_unexplained": "id prove time_limit",
        "with_proofs": "time_limit",
        "with_why_unexplained": "n",
        "redrawn": "redraw",
        "record": "id previous reviewed_by reviewed_at",
        "write_records": "folder reviewed_by reviewed_at files",
        "standard_errors": "",
        "sentence": "id rank",
        "plot": "id rank ax",
        "plot_plans": "id max_plans figure",
        "table": "name",
        "to_frame": "",
        "to_csv": "path spreadsheet_safe options",
        "to_html": "path title intro examples diagnostics",
        "save": "path",
        "load": "path",
    },
    "ChainModel": {
        "fit": "X decision sample_weight progress schema",
        "sample": "n given decision random_state progress within rules importance resample",
        "log_density": "X decision training per_feature",
        "intervene": "rows values keep n random_state derived progress",
        "world": "keep derived",
        "conditionals_around": "row determined",
        "criticise": "X_new decision sample_weight n_draws level random_state progress",
        "check_graph": "X level random_state",
        "save": "path donors",
        "load": "path n_jobs",
        "conditional": "feature",
        "draw": "request progress",
        "feature_log_densities": "matrix decision training",
        "givens_of": "matrix decision",
        "scores": "matrix decision n_draws seed progress",
        "judge": "scores matrix decision level seed judged_by progress",
        "stored": "donors",
        "check_fitted": "",
        "check_model": "features n_given",
        "check_weights": "",
        "describe": "",
        "has_density": "",
        "kept_values": "donors",
        "require_training_rows": "needed_by remedy",
        "rows_in_place_of_training": "",
        "settings": "",
        "store_as": "name",
        "get_params": "deep",
        "set_params": "params",
    },
    "ConditionalSampler": {
        "fit": "given target",
        "sample": "given rng within",
        "sample_within": "given rng within",
        "sample_carrying": "given rng carried",
        "supports": "given values",
        "log_density": "given values training_rows",
        "distribution": "given",
        "ranks": "given values rng",
        "at_ranks": "given u",
        "base_measure": "",
        "check_state": "given target n_rows",
        "check_fitted": "attribute",
        "check_parameters": "",
        "check_target": "feature",
        "check_training": "target",
        "check_weights": "feature",
        "refuse_training_rows": "training_rows",
        "summary": "",
        "plain_params": "",
        "seed_fit": "key",
        "fit_seed": "random_state",
        "clone": "",
        "get_params": "deep",
        "set_params": "params",
    },
}


def test_public_names_match_the_list():
    meant = f"{EXPLAINING} {CHAIN} {SAMPLERS} {ERRORS} {MODULES}".split()
    assert sorted(meant) == sorted(mcce.__all__)
    assert dir(mcce) == sorted(meant)


def keywords(function):
    return [name for name in inspect.signature(function).parameters if name != "self" and not name.startswith("_")]


def methods(cls):
    """Return the public methods of a class, without those of Python."""
    ours = {name for base in cls.__mro__ if base.__module__.startswith("mcce") for name in vars(base)}
    return {name for name in ours if not name.startswith("_") and inspect.isroutine(getattr(cls, name))}


@pytest.mark.parametrize("name", KEYWORDS)
def test_methods_and_keywords_match_the_list(name):
    cls = getattr(mcce, name)
    assert keywords(cls) == KEYWORDS[name].split()
    assert sorted(methods(cls)) == sorted(METHODS[name])
    found = {method: keywords(getattr(cls, method)) for method in METHODS[name]}
    assert found == {method: meant.split() for method, meant in METHODS[name].items()}


def test_every_public_name_has_a_docstring():
    lacking = [name for name in mcce.__all__ if not inspect.getdoc(getattr(mcce, name))]
    for name in KEYWORDS:
        cls = getattr(mcce, name)
        lacking += [f"{name}.{method}" for method in methods(cls) if not inspect.getdoc(getattr(cls, method))]
    assert lacking == []


def test_every_public_name_is_on_the_api_page():
    if not PAGE.exists():
        pytest.skip("the vignettes are not part of an installed package; test in a checkout")
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in f"{EXPLAINING} {CHAIN} {SAMPLERS}".split() if f" mcce.{name}\n" not in text] == []


def fresh(code):
    """Return the output of code in a separate process."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


HEAVY = ["matplotlib", "sklearn", "scipy.special", "scipy.stats", "statsmodels", "pyarrow.dataset", "joblib", "tqdm"]
HEAVY += ["mcce.batches", "mcce.diagnostics", "mcce.generators", "mcce.judging", "mcce.rcompat", "mcce.report"]

NOT_FOR_MCCE = [  # loaded when one of them is used
    *(
        f"mcce.samplers.{family}"
        for family in ("boosting", "copula", "estimator", "mixture", "parametric", "statsmodels", "vine")
    ),
    *(
        "mcce.generators.joint.adversarial",
        "mcce.generators.joint.vine_generator",
        "mcce.judging.criticism",
        "mcce.trees.rpart.tree",
    ),
    *("mcce.constraints.grammar", "mcce.explain.pipeline", "mcce.trees.display", "mcce.rng.r", "tomllib"),
]


@pytest.mark.slow
def test_import_loads_no_slow_modules():
    """Neither the package nor `MCCE` after it; of pyarrow a part, since pandas itself loads the rest.

    A submodule is loaded when it is used.
    """
    unused = [*(name for name in HEAVY if not name.startswith("mcce")), *NOT_FOR_MCCE]
    code = f"import sys, mcce, pandas; print(*(name for name in {HEAVY} if name in sys.modules)); "
    code += f"from mcce import MCCE; print(*(name for name in {unused} if name in sys.modules)); "
    assert fresh(code + "print(mcce.plots.changes_plot.__name__)") == ["changes_plot"]


@pytest.mark.slow
def test_lazy_names_are_found():
    """Found by a chain, by a file, and when registering the name."""
    kept = Path(__file__).parent / "fixtures" / "storage" / "v1"
    code = "print(mcce.ChainModel.load({!r}).samplers_['n'].__class__.__name__); "
    files = [code.format(str(kept / name)) for name in ("rpart.mcce", "boosting.mcce")]
    assert fresh("import mcce; " + "".join(files)) == ["CartSampler", "BoostingSampler"]
    by_name = "import mcce; print(mcce.samplers.BoostingSampler.__name__); "
    assert fresh(by_name + "print(mcce.samplers.make_sampler('pmm'))") == ["BoostingSampler", "PmmSampler()"]
    taken = "import mcce\nclass Mine(mcce.ConditionalSampler): pass\nmcce.register_sampler('pmm', Mine)"
    with pytest.raises(AssertionError, match="the sampler name 'pmm' is taken by mcce"):
        fresh(taken)


@pytest.mark.slow
@pytest.mark.parametrize("before", ["", *nightly(f"import mcce; [getattr(mcce, name) for name in {mcce.__all__}]; ")])
def test_every_name_is_loaded_on_first_use(before):
    """All at once by the star import; and one by one with only the preceding ones loaded."""
    by_star = "from mcce import *; print(MCCE.__name__, diagnostics.stability.__name__)"
    assert fresh(before + by_star) == ["MCCE", "stability"]


def test_unknown_name_raises():
    with pytest.raises(AttributeError, match="No mcce attribute explian"):
        _ = mcce.explian


def test_class_names_are_unique():
    """Names with an underscore too, ignoring it."""
    homes = {}
    for path in [path for package in (mcce.__file__, r_bridge.__file__) for path in Path(package).parent.rglob("*.py")]:
        for name in re.findall(r"^ *class (\w+)[:(]", path.read_text(encoding="utf-8"), re.MULTILINE):
            homes.setdefault(name.lstrip("_"), []).append(f"{path.parent.name}/{path.name}")
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


SYNONYMS = {"folds": "n_folds", "trees": "n_trees", "depth": "max_depth", "seed": "random_state", "bins": "n_bins"}
OTHER_MEANING = {
    ("SampleGenerator", "seed"),  # a function that seeds the model
    ("SynthesizerGenerator", "seed"),
}


def test_parameter_has_one_spelling():
    """For all names of the package, the datasets, the diagnostics and the test kit."""
    modules = (mcce, mcce.datasets, mcce.diagnostics, mcce.testing)
    offered = [getattr(module, name) for module in modules for name in module.__all__]
    results = {each for each in offered if is_dataclass(each)} - {mcce.Auto, mcce.Privacy}
    found = {
        (each.__name__, name)
        for each in {*offered} - results
        if inspect.isfunction(each) or (inspect.isclass(each) and not issubclass(each, (Exception, Warning)))
        for name in inspect.signature(each).parameters
    }
    assert {(of, name) for of, name in found if name in SYNONYMS} - OTHER_MEANING == set()
