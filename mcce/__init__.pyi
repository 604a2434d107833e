from . import (
    batches as batches,
)
from . import (
    constraints as constraints,
)
from . import (
    datasets as datasets,
)
from . import (
    diagnostics as diagnostics,
)
from . import (
    exceptions as exceptions,
)
from . import (
    explore as explore,
)
from . import (
    generators as generators,
)
from . import (
    rcompat as rcompat,
)
from . import (
    records as records,
)
from . import (
    report as report,
)
from . import (
    rng as rng,
)
from . import (
    samplers as samplers,
)
from . import (
    table as table,
)
from . import (
    testing as testing,
)
from .constraints import (
    allow as allow,
)
from .constraints import (
    available_constraints as available_constraints,
)
from .constraints import (
    k_anonymous as k_anonymous,
)
from .constraints import (
    no_copies as no_copies,
)
from .constraints import (
    only as only,
)
from .constraints import (
    per_factual as per_factual,
)
from .constraints import (
    register_constraint as register_constraint,
)
from .constraints import (
    rule as rule,
)
from .constraints import (
    transitions as transitions,
)
from .counterfactuals import Counterfactuals as Counterfactuals
from .diagnostics.card import card as card
from .diagnostics.conditionals import compare_conditionals as compare_conditionals
from .distances.measures import (
    available_measures as available_measures,
)
from .distances.measures import (
    gower_distance as gower_distance,
)
from .distances.measures import (
    register_measure as register_measure,
)
from .exceptions import (
    InputError as InputError,
)
from .exceptions import (
    MCCEError as MCCEError,
)
from .exceptions import (
    MCCEWarning as MCCEWarning,
)
from .exceptions import (
    ModelError as ModelError,
)
from .exceptions import (
    NotFittedError as NotFittedError,
)
from .exceptions import (
    SamplerError as SamplerError,
)
from .explainer import MCCE as MCCE
from .generators.auto import Auto as Auto
from .generators.chain import ChainModel as ChainModel
from .generators.graph import Graph as Graph
from .generators.registry import available_generators as available_generators
from .generators.registry import register_generator as register_generator
from .model.decisions import Interval as Interval
from .model.decisions import Not as Not
from .model.decisions import OneOf as OneOf
from .model.decisions import Several as Several
from .model.robustness import Robust as Robust
from .model.robustness import bootstrap_refits as bootstrap_refits
from .plausibility.joint_density import joint_density as joint_density
from .plausibility.relation_finder import find_relations as find_relations
from .plausibility.relations import tied as tied
from .privacy.account import PrivacyAccount as PrivacyAccount
from .privacy.settings import Privacy as Privacy
from .report import plots as plots
from .report.names import Names as Names
from .samplers import (
    BetaSampler as BetaSampler,
)
from .samplers import (
    BoostingSampler as BoostingSampler,
)
from .samplers import (
    CartSampler as CartSampler,
)
from .samplers import (
    CatallSampler as CatallSampler,
)
from .samplers import (
    ConditionalSampler as ConditionalSampler,
)
from .samplers import (
    CtreeSampler as CtreeSampler,
)
from .samplers import (
    CubertNormSampler as CubertNormSampler,
)
from .samplers import (
    DPSampler as DPSampler,
)
from .samplers import (
    EmpiricalSampler as EmpiricalSampler,
)
from .samplers import (
    EstimatorSampler as EstimatorSampler,
)
from .samplers import (
    ForestSampler as ForestSampler,
)
from .samplers import (
    GammaSampler as GammaSampler,
)
from .samplers import (
    GaussianCopulaSampler as GaussianCopulaSampler,
)
from .samplers import (
    GaussianSampler as GaussianSampler,
)
from .samplers import (
    LassoLogregSampler as LassoLogregSampler,
)
from .samplers import (
    LassoNormSampler as LassoNormSampler,
)
from .samplers import (
    LdaSampler as LdaSampler,
)
from .samplers import (
    LogNormSampler as LogNormSampler,
)
from .samplers import (
    LogregSampler as LogregSampler,
)
from .samplers import (
    MarginalSampler as MarginalSampler,
)
from .samplers import (
    MidastouchSampler as MidastouchSampler,
)
from .samplers import (
    MixtureSampler as MixtureSampler,
)
from .samplers import (
    NegbinSampler as NegbinSampler,
)
from .samplers import (
    NestedSampler as NestedSampler,
)
from .samplers import (
    NormBootSampler as NormBootSampler,
)
from .samplers import (
    NormRankSampler as NormRankSampler,
)
from .samplers import (
    NormSampler as NormSampler,
)
from .samplers import (
    ParametricSampler as ParametricSampler,
)
from .samplers import (
    PmmSampler as PmmSampler,
)
from .samplers import (
    PoissonSampler as PoissonSampler,
)
from .samplers import (
    PolrSampler as PolrSampler,
)
from .samplers import (
    PolyregSampler as PolyregSampler,
)
from .samplers import (
    QuantileSampler as QuantileSampler,
)
from .samplers import (
    RestrictedDraw as RestrictedDraw,
)
from .samplers import (
    SqrtNormSampler as SqrtNormSampler,
)
from .samplers import (
    StackSampler as StackSampler,
)
from .samplers import (
    StatsmodelsSampler as StatsmodelsSampler,
)
from .samplers import (
    SurvCtreeSampler as SurvCtreeSampler,
)
from .samplers import (
    TwoLevelSampler as TwoLevelSampler,
)
from .samplers import (
    TwoPartSampler as TwoPartSampler,
)
from .samplers import (
    VineSampler as VineSampler,
)
from .samplers import (
    Within as Within,
)
from .samplers import (
    ZipSampler as ZipSampler,
)
from .samplers import (
    available_samplers as available_samplers,
)
from .samplers import (
    register_sampler as register_sampler,
)
from .table import Schema as Schema
from .table.suggest import suggest_fixed as suggest_fixed

__version__: str
