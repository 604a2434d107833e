"""Which sampler models which feature: one for all, one for each, or one to be chosen (`mcce.generators.auto`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcce.checks import check_count
from mcce.exceptions import InputError, SamplerError, did_you_mean, listing
from mcce.generators.auto import AUTO, Auto, choose_samplers, threads_of
from mcce.generators.chosen import Choice
from mcce.generators.layout import ChainLayout
from mcce.samplers import ConditionalSampler, make_sampler
from mcce.table import Table

__all__ = ["Samplers", "make_samplers", "samplers_for", "suited_to", "threads_of"]

Samplers = str | ConditionalSampler | Auto | Mapping[Any, str | ConditionalSampler | Auto]

REST = "*"


def samplers_for(
    sampler: Samplers,
    table: Table,
    layout: ChainLayout,
    given_columns: Mapping[int, Sequence[int]],
    *,
    min_donors: int | None,
    seed: int,
    n_jobs: int | None,
    progress: bool | None,
) -> tuple[list[ConditionalSampler], Choice | None]:
    """Return an unfitted sampler for each visited feature, and, if some were chosen by evidence, why.

    `table` are the training rows, columns in chain order.
    """
    if min_donors is not None:
        check_count(min_donors, "min_donors", or_else=", or None for any number")
    known = [table.features[k].name for k in layout.place_in_chain]  # without the decision
    weighted = table.weights is not None
    made = make_samplers(sampler, layout, given_columns, known, min_donors, weighted=weighted)
    named = {k: each for k, each in enumerate(made, layout.n_given) if isinstance(each, ConditionalSampler)}
    still_open = {k: each for k, each in enumerate(made, layout.n_given) if isinstance(each, Auto)}
    if not still_open:
        return list(named.values()), None
    for auto in still_open.values():
        auto.check(table.n_rows)
    chosen, choice = choose_samplers(
        still_open,
        table,
        lambda k: given_columns.get(k, range(k)),
        lambda candidate, k: suited_to(candidate, layout, given_columns, k, min_donors, weighted=weighted),
        seed=seed,
        n_jobs=n_jobs,
        progress=progress,
    )
    found = named | chosen
    return [found[k] for k in sorted(found)], choice


def make_samplers(
    sampler: Samplers,
    layout: ChainLayout,
    given_columns: Mapping[int, Sequence[int]],
    known: Sequence[Any],
    min_donors: int | None = None,
    *,
    weighted: bool = False,
) -> list[ConditionalSampler | Auto]:
    """Return an unfitted sampler for each visited feature; one that cannot model its feature is an error.

    `given_columns` are the chain columns of features with predictors of their own; `known` are all columns of X;
    `min_donors` is handed to every sampler, and one that has no such parameter is refused; so is one that does not take
    weights, if rows have some. What is to be chosen by evidence stays an `Auto`.
    """
    visited = [feature.name for feature in layout.features[layout.n_given :]]
    chosen: dict[Any, str | ConditionalSampler | Auto]
    chosen = dict(sampler) if isinstance(sampler, Mapping) else {REST: sampler}
    for name in chosen:
        if name != REST and name not in visited:
            what = "is fixed and has no sampler" if name in known else "is not a column of X"
            raise InputError(f"sampler names {name!r}, which {what}; {did_you_mean(name, visited)}")
    without = [name for name in visited if name not in chosen]
    if without and REST not in chosen:
        raise InputError(f'sampler says nothing of {listing(without)}; add "*": ... for the rest.')
    made: list[ConditionalSampler | Auto] = []
    for k, name in enumerate(visited, layout.n_given):
        named = chosen.get(name, chosen.get(REST, "cart"))
        if isinstance(named, Auto) or (isinstance(named, str) and named == AUTO):
            made.append(named if isinstance(named, Auto) else Auto())
        else:
            made.append(suited_to(make_sampler(named), layout, given_columns, k, min_donors, weighted=weighted))
    return made


def suited_to(
    made: ConditionalSampler,
    layout: ChainLayout,
    given_columns: Mapping[int, Sequence[int]],
    k: int,
    min_donors: int | None = None,
    *,
    weighted: bool = False,
) -> ConditionalSampler:
    """Return the sampler, held to `min_donors`, if it can model column `k` of the chain; else say why it cannot."""
    feature = layout.features[k]
    if min_donors is not None:
        made = _bound_donors(made, min_donors, feature.name)
    made.check_target(feature)
    if weighted:
        made.check_weights(feature)
    involved = [*(layout.features[j] for j in given_columns.get(k, range(k))), feature]
    seen_missing = [f.name for f in involved if f.has_missing]
    if seen_missing and not made.handles_missing:
        raise SamplerError(
            f"{made!r} for {feature.name!r} does not handle missing values, and {listing(seen_missing)} has "
            "some; fill them, or use a sampler that does (cart)."
        )
    return made


def _bound_donors(made: ConditionalSampler, min_donors: int, name: object) -> ConditionalSampler:
    """Return a sampler that draws from at least so many training rows."""
    parameters = made.get_params(deep=False)
    if "min_donors" not in parameters:
        raise SamplerError(
            f"{made!r} for {name!r} cannot promise min_donors={min_donors}: it does not draw from pools of training "
            "rows that it could bound. Use one that does (cart, ctree, forest, marginal), or leave min_donors out."
        )
    return type(made)(**{**parameters, "min_donors": max(min_donors, parameters["min_donors"])})
