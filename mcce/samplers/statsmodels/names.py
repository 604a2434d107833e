"""Named samplers for common models of statsmodels: `mcce.StatsmodelsSampler` with a fixed model and options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcce.samplers.parametric.regression import RegressionSampler
from mcce.samplers.registry import register_sampler
from mcce.samplers.statsmodels.models import Specification
from mcce.samplers.statsmodels.sampler import StatsmodelsSampler

_SECTIONS = """

    Parameters
    ----------
    formula : str or None
        The design in R's notation, see `NormSampler`.
    proper : bool
        Draw the parameters once, at `fit`, from their estimated distribution.
    random_state : int or None
        Seed of that draw, see `NormSampler`.

    See Also
    --------
    StatsmodelsSampler : attributes, errors, and other models.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans().X{made}[["age", "sex", "{feature}"]]
    >>> chain = mcce.ChainModel(sampler="{name}", fixed=["age", "sex"], random_state=1).fit(X)
    >>> chain.conditional("{feature}")
    {cls}()
"""
_SHARE = '.assign(share=lambda rows: (rows["savings"] + 1) / 600_000)'


class _Named(StatsmodelsSampler):
    """A sampler with a fixed model; a base class, not a sampler."""

    model: Any = "GLM"
    fit_options: Mapping[str, Any] | None = None
    init: Any = {}  # noqa: RUF012  # replaced, never changed

    def __init__(self, *, formula: str | None = None, proper: bool = False, random_state: int | None = 0) -> None:
        RegressionSampler.__init__(self, formula=formula, proper=proper, random_state=random_state)

    def __init_subclass__(cls, feature: str, made: str = "") -> None:
        """Declare the targets of the model, and complete the docstring by parameters and an example."""
        specification = Specification.read(cls.model, cls.init)
        cls.handles, cls.numbers = specification.kinds, specification.numbers
        cls.takes_weights = specification.takes_weights
        name = cls.__name__.removesuffix("Sampler")
        shown = _SECTIONS.format(feature=feature, made=made, name=name.lower(), cls=cls.__name__)
        cls.__doc__ = f"{(cls.__doc__ or '').rstrip()}{shown}"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._parameter_names()}

    def plain_params(self) -> dict[str, Any]:
        return self.get_params()


@register_sampler("poisson")
class PoissonSampler(_Named, feature="years_employed"):
    """Poisson regression of counts with a log link (GLM): the variance is the mean."""

    init = {"family": "Poisson(Log)"}  # noqa: RUF012


@register_sampler("negbin")
class NegbinSampler(_Named, feature="years_employed"):
    """Negative binomial regression of counts with a log link (R's `MASS::glm.nb`): variance mu + alpha mu^2."""

    model = "NegativeBinomial"


@register_sampler("zip")
class ZipSampler(_Named, feature="years_employed"):
    """Zero-inflated Poisson regression of counts, with a constant share of excess zeros.

    If the share of zeros depends on the givens, use `TwoPartSampler`, or `StatsmodelsSampler` with
    ``exog_infl="givens"``.
    """

    model = "ZeroInflatedPoisson"


@register_sampler("gamma")
class GammaSampler(_Named, feature="loan_amount"):
    """Gamma regression of positive amounts with a log link (GLM): the standard deviation grows with the mean."""

    init = {"family": "Gamma(Log)"}  # noqa: RUF012


@register_sampler("beta")
class BetaSampler(_Named, feature="share", made=_SHARE):
    """Beta regression of shares between 0 and 1, with a logit link and one precision (R's `betareg`)."""

    model = "BetaModel"


@register_sampler("quantile")
class QuantileSampler(_Named, feature="salary"):
    """Quantile regressions at ten levels: any shape, with a spread that may depend on the givens.

    The quantiles of a row are sorted, so that they do not cross; the distribution is uniform between them, with
    exponential tails (`mcce.samplers.statsmodels.distributions`).
    """

    model = "QuantReg"
