"""Gaussian copula: empirical margins, one latent correlation matrix for the whole chain.

1. Each column is a function of latent normal variables (`mcce.samplers.latent_margins`): a number, an ordered level
   or one of two levels is a cut standard normal; one of three or more unordered levels is the argmax of utilities.
2. The correlation matrix R of all latents is estimated once on the chain's whole table (`mcce.samplers.latent`).
3. To draw given the values g: the latents z of g are points (continuous values) or are drawn inside their intervals
   and cones by `sweeps` Gibbs sweeps (`mcce.samplers.latent_gibbs`), never set to a midpoint. Then

       z_t | z ~ N(B'z, C),    B = R_gg^-1 R_gt,    C = R_tt - R_tg B,

   and the target is the training value at share Phi(z_t) of its margin, or the argmax of its utilities.
4. Restricted draws put the target's latent among the Gibbs variables, inside what is allowed: then z follows
   the restriction too, as it must.
5. The density is the mean over Gibbs states z, after a burn-in, of the density given z (Rao-Blackwell).

References: Song (2000), "Multivariate dispersion models generated from Gaussian copula"; Hoff (2007), "Extending the rank
likelihood for semiparametric copula estimation"; for the use in explanations Aas, Jullum and Loland (2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import scipy

from mcce.exceptions import SamplerError, listing
from mcce.rng import RowStreams, derive_key, hash_rows
from mcce.samplers.base import Bools, ConditionalSampler, Floats, Within, check_count
from mcce.samplers.latent import fit_latent
from mcce.samplers.latent_gibbs import start_rows, sweep_rows
from mcce.samplers.latent_margins import Margin, Utilities, choice_probabilities, kernel_margin
from mcce.schema import Column, Table

Self = TypeVar("Self", bound="GaussianCopulaSampler")

_NOT_SUPPORTED = 1e-12
_MARGIN_TYPES: dict[str, type[Margin] | type[Utilities]] = {"margin": Margin, "utilities": Utilities}


@dataclass
class _State:
    """Gibbs state of some rows: latents, what they are restricted to, and how they depend on each other."""

    z: Floats
    low: Floats
    high: Floats
    allowed: Bools
    group_start: npt.NDArray[np.int64]
    group_end: npt.NDArray[np.int64]
    offset: Floats
    precision: Floats

    def sweep(self, sweeps: int, rng: RowStreams, cuts: Floats | None = None, cells: Bools | None = None) -> None:
        """Make Gibbs sweeps; `cells` between the `cuts` restrict the last variable."""
        sweep_rows(
            self.z, self.low, self.high, self.allowed, self.precision, self.group_start, self.group_end, self.offset,
            np.empty(0) if cuts is None else cuts,
            np.empty((len(self.z), 0), dtype=bool) if cells is None else cells,
            sweeps, rng.next_key(), rng.draws, rng.rows,
        )  # fmt: skip

    @property
    def is_known(self) -> bool:
        """Whether all latents are points, so that there is nothing to draw."""
        return bool((self.group_end == 0).all() and (self.low == self.high).all())


class GaussianCopulaSampler(ConditionalSampler):
    """Draws from the conditional of a Gaussian copula with the training data's own margins.

    Parameters
    ----------
    sweeps : int
        Gibbs sweeps over the latents of discrete givens before a draw.
    density_sweeps : int
        Gibbs states that `log_density` averages over, after `sweeps` of burn-in.

    Notes
    -----
    Margins and correlations of all columns of a chain are estimated together, once. The values drawn are observed
    values. Given continuous columns only, draws and densities are exact; discrete givens make `log_density` a Monte Carlo
    mean with fixed random numbers, the same at every call. Its relative error falls like ``density_sweeps ** -0.5``.

    The model has no interactions and no tails beyond the normal's: what two columns say together is what their
    latents say. Use trees where that is too little.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> chain = mcce.ChainModel(sampler="copula", fixed=["age", "sex"], random_state=1).fit(loans.X)
    >>> chain.sample(given=loans.X.loc[[0], ["age", "sex"]], n=2).shape
    (2, 10)
    """

    thread_safe = True

    given_margins_: tuple[Margin | Utilities, ...]
    target_margin_: Margin | Utilities
    correlation_: Floats  # latents of the givens column by column, then of the target
    n_levels_: int

    def __init__(self, *, sweeps: int = 15, density_sweeps: int = 100) -> None:
        self.sweeps = sweeps
        self.density_sweeps = density_sweeps

    def fit(self: Self, given: Table, target: Column) -> Self:
        """Estimate, or look up, margins and latent correlations (steps 1 and 2)."""
        check_count(self.sweeps, "sweeps", self, 1)
        check_count(self.density_sweeps, "density_sweeps", self, 1)
        self.check_target(target.feature)
        self._check_complete(given)
        if np.isnan(target.values).any():
            raise SamplerError(f"{self!r} does not handle missing values, and the target {target.feature.name!r} has some.")
        place = _place_in_root(given, target)
        if place is None:
            matrix = np.asfortranarray(np.column_stack([given.matrix, target.values]))
            model = fit_latent(Table((*given.features, target.feature), matrix))
            columns = list(range(matrix.shape[1]))
        else:
            model = given.shared("copula", fit_latent)
            columns = [*given.positions, place]
        margins = [margin for j in columns if (margin := model.margins[j]) is not None]
        latents = [model.first[j] + k for j, margin in zip(columns, margins) for k in range(margin.n_latents)]
        self.given_margins_, self.target_margin_ = tuple(margins[:-1]), margins[-1]
        self.correlation_ = model.correlation[np.ix_(latents, latents)]
        self.n_levels_ = target.feature.n_levels
        self._prepare()
        return self

    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        """Draw the latents of the givens, then the target (step 3, restricted step 4)."""
        self.check_fitted("correlation_")
        self._check_complete(given)
        if given.n_rows == 0:
            return np.empty(0)
        state = self._start(given, rng)
        if not state.is_known:
            state.sweep(self.sweeps, rng)
        margin = self.target_margin_
        if within is not None:
            return self._draw_within(state, rng, within)
        if isinstance(margin, Utilities):
            chosen = (margin.offsets + self._draw_target(state.z, rng)).argmax(axis=1)
        else:
            chosen = margin.positions_of(self._draw_target(state.z, rng)[:, 0])
        return margin.values[chosen]

    def supports(self, given: Table, values: Floats) -> Bools:
        """Return whether the value was observed, or is a number close to observed ones, and is possible here.

        Close means inside their range and no farther from one than the median gap between neighbours. A latent normal
        leaves nothing impossible; less than 1e-12 for a value at least so extreme counts as such.
        """
        self.check_fitted("correlation_")
        margin = self.target_margin_
        if isinstance(margin, Utilities) or not self._is_number:
            return np.exp(self.log_density(given, values)) > _NOT_SUPPORTED
        known = margin.values
        at = np.searchsorted(known, values)
        above, below = known[np.minimum(at, known.size - 1)], known[np.maximum(at - 1, 0)]
        distance = np.minimum(np.abs(above - values), np.abs(values - below))
        gap = np.quantile(np.diff(known), 0.5, method="lower") if known.size > 2 else 0.0
        supported: Bools = (values >= known[0]) & (values <= known[-1]) & (distance <= gap)
        if margin.n_latents == 0 or not supported.any():
            return supported
        low, high = margin.bounds(np.where(supported, values, known[0]))
        tails = [self._average(given, np.full_like(low, -np.inf), high), self._average(given, low, np.full_like(low, np.inf))]
        return supported & (np.minimum(*tails) > _NOT_SUPPORTED)

    def log_density(self, given: Table, values: Floats) -> Floats:
        """Return the log probability of levels and of numbers that are atoms, the log density of other numbers.

        Numbers: the base measure is the counting measure on atoms (values of more than 0.5% of the training rows) plus the
        Lebesgue measure elsewhere. The density is the margin's, a kernel estimate (`kernel_margin`), times that of the
        copula. It integrates to 1; -inf outside the kernel estimate, and for values that cannot be drawn.
        """
        self.check_fitted("correlation_")
        self._check_complete(given)
        margin = self.target_margin_
        at = margin.position(values)
        if margin.n_latents == 0 or given.n_rows == 0:
            return np.where(at >= 0, 0.0, -np.inf)
        with np.errstate(divide="ignore"):
            if isinstance(margin, Utilities):
                chosen = self._average(given, at, at)
                return np.where(at >= 0, np.log(chosen), -np.inf)
            if not self._is_number or margin.atoms.all():
                low, high = margin.cuts[at], margin.cuts[at + 1]
                return np.where(at >= 0, np.log(self._average(given, low, high)), -np.inf)
            return self._log_density_of_numbers(given, values, margin, at)

    def get_state(self) -> dict[str, Any]:
        """Return margins and correlations, as arrays and JSON values."""
        self.check_fitted("correlation_")
        state: dict[str, Any] = {"correlation": self.correlation_, "n_levels": self.n_levels_, "kinds": []}
        for j, margin in enumerate((*self.given_margins_, self.target_margin_)):
            state["kinds"].append("margin" if isinstance(margin, Margin) else "utilities")
            state |= {f"{j}.{name}": value for name, value in margin.get_state().items()}
        return state

    def set_state(self: Self, state: dict[str, Any]) -> Self:
        """Take over a state made by `get_state`."""
        margins = []
        for j, kind in enumerate(state["kinds"]):
            fields = {name.split(".")[1]: value for name, value in state.items() if name.startswith(f"{j}.")}
            margins.append(_MARGIN_TYPES[kind](**fields))
        self.given_margins_, self.target_margin_ = tuple(margins[:-1]), margins[-1]
        self.correlation_, self.n_levels_ = state["correlation"], int(state["n_levels"])
        self._prepare()
        return self

    # ---- the conditional of the latents

    def _prepare(self) -> None:
        """Work out what draws need: the order of the latents, their regressions and precisions."""
        # points first, utilities last: the start conditions on what comes before
        margins = self.given_margins_
        order = sorted(range(len(margins)), key=lambda j: (isinstance(margins[j], Utilities), bool(_atoms(margins[j]))))
        first = np.concatenate([[0], np.cumsum([m.n_latents for m in margins])]).astype(int)
        self._columns = [j for j in order if margins[j].n_latents]
        moved = [first[j] + k for j in self._columns for k in range(margins[j].n_latents)]
        n_given, n_target = first[-1], self.target_margin_.n_latents
        moved += range(n_given, n_given + n_target)
        R = self.correlation_[np.ix_(moved, moved)]
        inside, across = R[:n_given, :n_given], R[:n_given, n_given:]
        self._joint_precision = np.linalg.inv(R)
        self._precision = np.linalg.inv(inside)
        self._slopes = self._precision @ across
        self._rest = R[n_given:, n_given:] - across.T @ self._slopes
        inverse_root = np.linalg.inv(np.linalg.cholesky(inside))
        self._start_sd = 1.0 / np.diag(inverse_root)
        self._start_slopes = -np.tril(inverse_root, -1) * self._start_sd[:, None]
        kept = [margins[j] for j in self._columns] + [self.target_margin_]
        ends = np.cumsum([margin.n_latents for margin in kept])
        self._group_start = np.repeat(ends - [m.n_latents for m in kept], [m.n_latents for m in kept])
        is_utility = [isinstance(m, Utilities) for m in kept]
        self._group_end = np.repeat(np.where(is_utility, ends, 0), [m.n_latents for m in kept])
        self._offset = np.concatenate([m.offsets if isinstance(m, Utilities) else np.zeros(m.n_latents) for m in kept])
        tables = [m.quantiles if isinstance(m, Utilities) else np.zeros((m.n_latents, 2)) for m in kept]
        self._quantiles = np.zeros((len(R), max((t.shape[1] for t in tables), default=2)))
        for end, table in zip(ends, tables):
            self._quantiles[end - len(table) : end, : table.shape[1]] = table

    def _start(self, given: Table, rng: RowStreams) -> _State:
        """Read what the givens say of their latents, and draw a first state."""
        n, d = given.n_rows, len(self._precision)
        z = np.empty((n, d))
        low, high, allowed = np.full((n, d), -np.inf), np.full((n, d), np.inf), np.ones((n, d), dtype=bool)
        j = 0
        for column in self._columns:
            margin, values = self.given_margins_[column], given.matrix[:, column]
            if isinstance(margin, Margin):
                low[:, j], high[:, j] = margin.bounds(values)
            else:
                at = margin.position(values)
                allowed[:, j : j + margin.n_latents] = (at[:, None] == np.arange(margin.n_latents)) | (at < 0)[:, None]
            j += margin.n_latents
        start_rows(
            z, low, high, allowed, self._start_slopes, self._start_sd, self._group_end[:d], self._offset[:d],
            self._quantiles[:d], rng.next_key(), rng.draws, rng.rows,
        )  # fmt: skip
        return _State(
            z, low, high, allowed, self._group_start[:d], self._group_end[:d], self._offset[:d], self._precision
        )

    def _draw_target(self, z: Floats, rng: RowStreams) -> Floats:
        """Draw the target's latents given those of the givens."""
        noise = np.column_stack([rng.normal() for _ in range(len(self._rest))] or [np.empty((len(z), 0))])
        return np.asarray(z @ self._slopes + noise @ np.linalg.cholesky(self._rest).T)
