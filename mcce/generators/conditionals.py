"""Which sampler models which feature, one for all or one for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcce.checks import check_count
from mcce.exceptions import InputError, SamplerError, did_you_mean, listing
from mcce.generators.layout import ChainLayout
from mcce.samplers import ConditionalSampler, make_sampler

Samplers = str | ConditionalSampler | Mapping[Any, str | ConditionalSampler]

REST = "*"


def make_samplers(
    sampler: Samplers,
    layout: ChainLayout,
    given_columns: Mapping[int, Sequence[int]],
    known: Sequence[Any],
    min_donors: int | None = None,
) -> list[ConditionalSampler]:
    """Return an unfitted sampler for each visited feature; one that cannot model its feature is an error.

    `given_columns` are the chain columns of features with predictors of their own; `known` are all columns of X;
    `min_donors` is handed to every sampler, and one that has no such parameter is refused.
    """
    visited = [feature.name for feature in layout.features[layout.n_given :]]
    chosen: dict[Any, str | ConditionalSampler] = dict(sampler) if isinstance(sampler, Mapping) else {REST: sampler}
    for name in chosen:
        if name != REST and name not in visited:
            what = "is fixed and has no sampler" if name in known else "is not a column of X"
            raise InputError(f"sampler names {name!r}, which {what}; {did_you_mean(name, visited)}")
    without = [name for name in visited if name not in chosen]
    if without and REST not in chosen:
        raise InputError(f'sampler says nothing of {listing(without)}; add "*": ... for the rest.')
    samplers = [make_sampler(chosen.get(name, chosen.get(REST, "cart"))) for name in visited]
    if min_donors is not None:
        check_count(min_donors, "min_donors", or_else=", or None for any number")
        samplers = [_bound_donors(made, min_donors, name) for made, name in zip(samplers, visited)]
    for k, made in enumerate(samplers, layout.n_given):
        feature = layout.features[k]
        made.check_target(feature)
        involved = [*(layout.features[j] for j in given_columns.get(k, range(k))), feature]
        seen_missing = [f.name for f in involved if f.has_missing]
        if seen_missing and not made.handles_missing:
            raise SamplerError(
                f"{made!r} for {feature.name!r} does not handle missing values, and {listing(seen_missing)} has "
                "some; fill them, or use a sampler that does (cart)."
            )
    return samplers


def _bound_donors(made: ConditionalSampler, min_donors: int, name: object) -> ConditionalSampler:
    """Return a sampler that draws from at least so many training rows."""
    parameters = made.get_params(deep=False)
    if "min_donors" not in parameters:
        raise SamplerError(
            f"{made!r} for {name!r} cannot promise min_donors={min_donors}: it does not draw from pools of training "
            "rows that it could bound. Use one that does (cart, ctree, forest, marginal), or leave min_donors out."
        )
    return type(made)(**{**parameters, "min_donors": max(min_donors, parameters["min_donors"])})
