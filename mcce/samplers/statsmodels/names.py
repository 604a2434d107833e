"""Short names of common models of statsmodels, as samplers of their own: a chain takes them by name.

Each is `mcce.StatsmodelsSampler` with a model and a few options that are usual for its targets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcce.samplers.registry import register_sampler
from mcce.samplers.statsmodels.models import Specification
from mcce.samplers.statsmodels.sampler import StatsmodelsSampler

_PARAMETERS = """

    Parameters
    ----------
    formula : str or None
        The design in R's notation; None: all givens as they are. `mcce.samplers.parametric.formula` has the functions.
    proper : bool
        Draw the parameters once, at `fit`, from their estimated distribution.
    random_state : int or None
        Seed of that draw, beside the chain's own; a sampler that is fitted alone has this one only.

    See Also
    --------
    StatsmodelsSampler : attributes, errors, and other models.
"""


class _Named(StatsmodelsSampler):
    """A sampler whose model is part of its name; a base class, not a sampler."""

    model: Any = "GLM"
    fit_options: Mapping[str, Any] | None = None
    init: Any = {}  # noqa: RUF012  # replaced, never changed

    def __init__(self, *, formula: str | None = None, proper: bool = False, random_state: int | None = 0) -> None:
        self.formula = formula
        self.proper = proper
        self.random_state = random_state

    def __init_subclass__(cls) -> None:
        """Take the declarations of the model, and its parameters into the docstring."""
        specification = Specification.read(cls.model, cls.init)
        cls.handles, cls.numbers = specification.kinds, specification.numbers
        cls.takes_weights = specification.takes_weights
        cls.__doc__ = f"{cls.__doc__}{_PARAMETERS}"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def plain_params(self) -> dict[str, Any]:
        """Return the parameters, which are plain already."""
        return self.get_params()


@register_sampler("poisson")
class PoissonSampler(_Named):
    """Poisson regression of counts with a log link (GLM): the variance is the mean."""

    init = {"family": "Poisson(Log)"}  # noqa: RUF012


@register_sampler("negbin")
class NegbinSampler(_Named):
    """Negative binomial regression of counts with a log link (R's `MASS::glm.nb`): variance mu + alpha mu^2."""

    model = "NegativeBinomial"


@register_sampler("zip")
class ZipSampler(_Named):
    """Zero-inflated Poisson regression of counts: some zeros, a constant share, are beside the Poisson distribution.

    Where the share of zeros depends on the givens, use `TwoPartSampler`, or `StatsmodelsSampler` with
    ``exog_infl="givens"``.
    """

    model = "ZeroInflatedPoisson"


@register_sampler("gamma")
class GammaSampler(_Named):
    """Gamma regression of positive amounts with a log link (GLM): the standard deviation grows with the mean."""

    init = {"family": "Gamma(Log)"}  # noqa: RUF012


@register_sampler("beta")
class BetaSampler(_Named):
    """Beta regression of shares between 0 and 1, with a logit link and one precision (R's `betareg`)."""

    model = "BetaModel"


@register_sampler("quantile")
class QuantileSampler(_Named):
    """Quantile regressions at ten levels: any shape, with a spread that may change with the givens.

    The quantiles of a row are put in order, so that none cross; between them the distribution is even, and beyond the
    outer two it is exponential (`mcce.samplers.statsmodels.distributions`).
    """

    model = "QuantReg"
