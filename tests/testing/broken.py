"""Samplers and generators that each violate one point of the contract."""

import random
import threading

import numpy as np

from mcce.generators import ChainModel, Drawn
from mcce.rng import RowStreams
from mcce.samplers import CartSampler, ConditionalSampler, Continuous, Donors


class Pool(ConditionalSampler):
    """A sound sampler: the training values, whatever is given."""

    def fit(self, given, target):
        self.pool_ = np.sort(target.values)
        return self

    def distribution(self, given):
        return Donors(self.pool_, np.zeros(given.n_rows, int), np.full(given.n_rows, self.pool_.size))


class Draws(Pool):
    """The same, as draws only."""

    distribution = ConditionalSampler.distribution

    def sample(self, given, rng):
        return self.pool_[rng.integer(self.pool_.size)]


class Normal(ConditionalSampler):
    """A normal distribution that ignores the givens."""

    handles = frozenset({"numeric"})

    def fit(self, given, target):
        self.mean_, self.sd_ = np.mean(target.values), np.std(target.values)
        return self

    def distribution(self, given):
        return Continuous("normal", (np.full(given.n_rows, self.mean_), np.full(given.n_rows, self.sd_)))


class UnknownKind(Pool):
    handles = frozenset({"numeric", "words"})


class FlagIsNoBool(Pool):
    accepts_missing = "yes"


class WorksOnParameter(Pool):
    def __init__(self, weight=1.0):
        self.weight = float(weight)


class ChangesParameter(Pool):
    def __init__(self, weight=1.0):
        self.weight = weight if isinstance(weight, float) else 1.0


class FitChangesParameter(Pool):
    def __init__(self, weight=None):
        self.weight = weight

    def fit(self, given, target):
        self.weight = 1.0
        return super().fit(given, target)


class FitReturnsNothing(Draws):
    def fit(self, given, target):
        super().fit(given, target)


class DrawsUnfitted(Draws):
    def sample(self, given, rng):
        return super().sample(given, rng) if hasattr(self, "pool_") else np.zeros(given.n_rows)


class KeepsFirstFit(Pool):
    def fit(self, given, target):
        return self if hasattr(self, "pool_") else super().fit(given, target)


class Float32(Draws):
    def sample(self, given, rng):
        return super().sample(given, rng).astype(np.float32)


class InventsLevels(Pool):
    handles = frozenset({"categorical", "ordered"})

    def fit(self, given, target):
        self.pool_ = np.sort(np.append(target.values, np.setdiff1d(np.arange(target.feature.n_levels), target.values)))
        return self


class NeedsGivens(Pool):
    def fit(self, given, target):
        given.matrix[:, 0].mean()
        return super().fit(given, target)


class Squeezes(Draws):
    def sample(self, given, rng):
        return super().sample(given, rng).squeeze()


class IgnoresTheSeed(Draws):
    def sample(self, given, rng):
        return super().sample(given, RowStreams(1, rng.rows, rng.draws))


class SeedsItself(Pool):
    handles = frozenset({"numeric"})
    n_fits = 0

    def fit(self, given, target):
        SeedsItself.n_fits += 1
        self.pool_ = np.sort(np.random.default_rng(SeedsItself.n_fits).permutation(target.values)[:400])
        return self


class LooksBeside(Draws):
    def sample(self, given, rng):
        return self.pool_[(rng.integer(self.pool_.size) + np.arange(given.n_rows)) % self.pool_.size]


class MovesGlobalState(Pool):
    def fit(self, given, target):
        np.random.random()  # noqa: NPY002
        return super().fit(given, target)


class MovesPythonState(Draws):
    def sample(self, given, rng):
        random.random()
        return super().sample(given, rng)


class ReadsGlobalState(Draws):
    def sample(self, given, rng):
        return super().sample(given, rng.child(int(np.random.get_state()[1][0])))  # noqa: NPY002


class SortsTarget(Pool):
    def fit(self, given, target):
        target.values.sort()
        return super().fit(given, target)


class OverwritesGiven(Draws):
    def sample(self, given, rng):
        given.matrix[:] = 0.0
        return super().sample(given, rng)


class MissingFromNowhere(Draws):
    def sample(self, given, rng):
        drawn = super().sample(given, rng)
        return np.where(np.isnan(given.matrix).any(axis=1), np.nan, drawn)


class NeverMissing(Pool):
    accepts_missing_target = True

    def fit(self, given, target):
        self.pool_ = np.sort(target.values[~np.isnan(target.values)])
        return self


class LeavesTheGrid(Normal):
    """A distribution that does not round, since it has no margin."""


class Unrestricted(Donors):
    def sample(self, rng, within=None):
        return super().sample(rng)


class Smallest(Donors):
    def sample(self, rng, within=None):
        values, rejected = super().sample(rng, within)
        return (values if within is None else np.where(rejected, values, np.nanmin(values))), rejected


class NothingIsRejected(Donors):
    def sample(self, rng, within=None):
        values, rejected = super().sample(rng, within)
        return values, np.zeros_like(rejected)


class HalfDensity(Donors):
    def log_density(self, values):
        return super().log_density(values) + np.log(0.5)


class OtherDensity(Donors):
    def log_density(self, values):
        return np.log(np.full(values.size, 1.0 / np.unique(self.pool).size))


class NoDensity(Donors):
    def log_density(self, values):
        return np.full(values.size, -np.inf)


class CdfOfAnother(Donors):
    def cdf(self, values, below=False):
        return super().cdf(values, below) ** 2


class QuantileOfAnother(Donors):
    def ppf(self, u):
        return super().ppf(u / 2)


def drawing(cls, **attributes):
    """Return a `Pool` whose distributions are of a class derived from `Donors`."""

    def distribution(self, given):
        return cls(self.pool_, np.zeros(given.n_rows, int), np.full(given.n_rows, self.pool_.size))

    name = f"Draws{cls.__name__}"
    made = type(name, (Pool,), {"distribution": distribution, "__module__": __name__, **attributes})
    globals()[name] = made  # where pickle looks for it
    return made()


LEVELS = {"handles": frozenset({"categorical"})}


class HoldsALock(Pool):
    def fit(self, given, target):
        self.lock_ = threading.Lock()
        return super().fit(given, target)


class CountsInItself(Draws):
    """Draws depend on what other threads do at the time."""

    barrier = threading.Barrier(3)

    def sample(self, given, rng):
        self.streams = rng
        if threading.current_thread() is not threading.main_thread():
            self.barrier.wait(20)
        return super().sample(given, self.streams)


class LowerHalf(Pool):
    handles = frozenset({"numeric"})

    def fit(self, given, target):
        self.pool_ = np.sort(target.values)[: target.values.size // 2]
        return self


class OtherSex(CartSampler):
    """Draws given the other level of the last given."""

    def distribution(self, given):
        if [feature.name for feature in given.features] != ["sex"]:
            return super().distribution(given)
        other = given.take(np.arange(given.n_rows))
        other.matrix[:] = 1.0 - other.matrix
        return super().distribution(other)


SAMPLERS = [  # the sampler, its check, and the message
    (UnknownKind(), "declarations", r"handles is \['numeric', 'words'\]; it must name one or more of 'numeric'"),
    (FlagIsNoBool(), "declarations", "accepts_missing is 'yes'; it must be True or False"),
    (WorksOnParameter(), "parameters", r"works on its parameter 'weight' \(TypeError: .*check it in fit"),
    (ChangesParameter(), "parameters", "the constructor changes its parameter 'weight'; store it untouched"),
    (FitChangesParameter(), "parameters", r"fit\(\) changes the parameter 'weight' from None to 1.0"),
    (FitReturnsNothing(), "parameters", r"fit\(\) does not return self"),
    (DrawsUnfitted(), "not_fitted", r"draws work before fit\(\); learned state must be in attributes"),
    (KeepsFirstFit(), "refit", "fitted after another one, is not drawn as by a fresh sampler"),
    (Float32(), "values", r"sample\(\) returns float32 of shape \(2400,\) for 2400 rows; return float64"),
    (InventsLevels(), "values", r"draws \[2.0\] are not levels of the training target \(the codes are 0 to 4\)"),
    (Squeezes(), "values", r"1 row\(s\) to draw: sample\(\) returns float64 of shape \(\) for 1 rows"),
    (NeedsGivens(), "no_givens", "raised IndexError: index 0 is out of bounds"),
    (IgnoresTheSeed(), "seeds", "another seed gave the same draws; draw from `rng` only"),
    (SeedsItself(), "seeds", "fitted again: the same streams gave other draws; .* let random_state seed fit"),
    (LooksBeside(), "rows_independent", "rows drawn in another order get other values"),
    (MovesGlobalState(), "global_state", "the state of a global random generator changed"),
    (MovesPythonState(), "global_state", "the state of a global random generator changed"),
    (ReadsGlobalState(), "global_state", "draws depend on global random state"),
    (SortsTarget(), "inputs_unchanged", r"fit\(\) writes into target.values; copy it first"),
    (OverwritesGiven(), "inputs_unchanged", r"a draw writes into given.matrix; copy it first"),
    (MissingFromNowhere(), "missing", r"missing values in the givens: \d+ draws are NaN"),
    (NeverMissing(), "missing", "missing values in the target: 0% of the draws are missing, of the training rows 30%"),
    (Pool(), "given", "draws do not depend on a column that moves the target far"),
    (LeavesTheGrid(), "grid", "raised InputError: .*cannot hold|draws change when written"),
    (drawing(Unrestricted), "within", r"within an interval: \d+ of 2400 draws lie outside"),
    (drawing(Smallest), "within", "draws do not follow the conditional restricted to it"),
    (drawing(NothingIsRejected), "within", "600 of 2400 rows are wrongly rejected or wrongly accepted"),
    (drawing(HalfDensity, **LEVELS), "density", "the levels' probabilities do not sum to 1"),
    (drawing(OtherDensity, **LEVELS), "density", "draws have a level more or less often than its probability"),
    (drawing(NoDensity), "density", r"log_density\(\) is not finite for 2400 draws"),
    (drawing(CdfOfAnother), "distribution_function", r"cdf\(\) is not that of the draws"),
    (drawing(QuantileOfAnother), "distribution_function", r"ppf\(cdf\(y\)\) is another value than y"),
    (HoldsALock(), "pickle", "raised TypeError: cannot pickle '_thread.lock' object"),
    (CountsInItself(), "threads", "draws differ in several threads; a draw must not change the sampler"),
    (LowerHalf(), "marginal", "draws are not distributed as the training values"),
    (OtherSex(), "conditional", "given a level of a column, draws are not distributed as the training values"),
]


# -------------------------------------------------------------------------------------------------------- generators


class KeepsNoTraining(ChainModel):
    def fit(self, X, decision=None, *, sample_weight=None):
        super().fit(X, decision, sample_weight=sample_weight)
        self.training_ = self.training_[:10]
        return self


class DrawsWithoutFit(ChainModel):
    def draw(self, request):
        if hasattr(self, "training_"):
            return super().draw(request)
        return Drawn(request.given, np.zeros(len(request), bool))


class KeepsFirstChain(ChainModel):
    def fit(self, X, decision=None, *, sample_weight=None):
        return self if hasattr(self, "training_") else super().fit(X, decision, sample_weight=sample_weight)


def changing(name, change):
    """Return a chain whose draws are changed by ``change(generator, request, drawn)``."""

    def draw(self, request):
        return change(self, request, ChainModel.draw(self, request))

    return type(name, (ChainModel,), {"draw": draw, "__init__": ChainModel.__init__})(random_state=1)


def moves_fixed(chain, request, drawn):
    rows = drawn.rows.copy()
    rows[:, 1] += 1.0
    return Drawn(rows, drawn.rejected)


def leaves_grid(chain, request, drawn):
    rows = drawn.rows.copy()
    rows[:, list(chain.schema_.names).index("income")] += 0.001
    return Drawn(rows, drawn.rejected)


def rolls(chain, request, drawn):
    rows = drawn.rows.copy()
    income = list(chain.schema_.names).index("income") if "income" in chain.schema_.names else -1
    rows[:, income] = np.roll(rows[:, income], 1)
    return Drawn(rows, drawn.rejected | chain.breaks(request, rows))


def accepts_all(chain, request, drawn):
    return Drawn(drawn.rows, np.zeros(len(request), bool))


def rejects_most(chain, request, drawn):
    mostly = (request.draws % np.uint64(5) > 0) & bool(request.rules)
    return Drawn(drawn.rows, drawn.rejected | mostly)


def moves_state(chain, request, drawn):
    np.random.random()  # noqa: NPY002
    return drawn


class IgnoresDecision(ChainModel):
    def draw(self, request):
        if self.conditions_on_decision_:
            request.given[:, -1] = 1.0
        return super().draw(request)

    _log_density = None


class IgnoresWeights(ChainModel):
    def fit(self, X, decision=None, *, sample_weight=None):
        return super().fit(X, decision)


class TooDense(ChainModel):
    def _log_density(self, table, decision):
        return super()._log_density(table, decision) + 0.1


class CannotBePickled(ChainModel):
    def _fit(self, table, decision):
        super()._fit(table, decision)
        self.lock_ = threading.Lock()


GENERATORS = [
    (KeepsNoTraining(random_state=1), "fitted_attributes", "training_ are not the encoded training rows"),
    (DrawsWithoutFit(random_state=1), "not_fitted", r"draw\(\) works before fit\(\)"),
    (KeepsFirstChain(random_state=1), "refit", "a refitted generator draws other rows"),
    (changing("MovesFixed", moves_fixed), "rows", r"draw\(\) changes fixed values"),
    (changing("LeavesGrid", leaves_grid), "rows", "'income' is drawn off its grid"),
    (changing("Rolls", rolls), "streams", "rows drawn in another order get other values"),
    (changing("MovesState", moves_state), "global_state", "the state of a global random generator changed"),
    (IgnoresDecision(random_state=1), "conditioning", "median income differs by .* between the decisions"),
    (IgnoresWeights(random_state=1), "weights", "rows of triple weight are .* without weights"),
    (changing("AcceptsAll", accepts_all), "restrictions", "rows whose restriction nothing fulfils are accepted"),
    (changing("RejectsMost", rejects_most), "rules", "rooms >= 2: 8.% of the rows are rejected"),
    (TooDense(random_state=1), "densities", "the probabilities of all rows given one group sum to 1.22"),
    (CannotBePickled(random_state=1), "pickle", "cannot pickle"),
]
