"""The assignment of samplers to features."""

import numpy as np
import pandas as pd
import pytest

from mcce import CartSampler, InputError, MarginalSampler, NormSampler, SamplerError
from mcce.generators.layout import ChainLayout, make_samplers
from mcce.table import Schema

TABLE = pd.DataFrame({"age": [1.0, 2.0] * 10, "x": np.arange(20.0), "job": ["a", "b"] * 10, "y": [1.0, np.nan] * 10})
SCHEMA = Schema.from_data(TABLE)
LAYOUT = ChainLayout.arrange(SCHEMA, ["age"], ["x", "job", "y"], False)


def made(sampler):
    return make_samplers(sampler, LAYOUT, SCHEMA.names)


def test_common_sampler_is_copied_for_each_feature():
    cart = CartSampler(min_leaf=3)
    samplers = made(cart)
    assert [s.min_leaf for s in samplers] == [3, 3, 3]
    assert len({id(s) for s in [*samplers, cart]}) == 4


def test_samplers_by_feature_with_a_default():
    samplers = made({"job": "marginal", "x": NormSampler(), "*": "ctree"})
    assert [type(s).__name__ for s in samplers] == ["NormSampler", "MarginalSampler", "CtreeSampler"]


@pytest.mark.parametrize(
    ("sampler", "error", "message"),
    [
        ({"age": "cart", "*": "cart"}, InputError, "sampler names 'age', which is fixed and has no sampler"),
        ({"jbo": "cart", "*": "cart"}, InputError, "'jbo', which is not a column of X; did you mean 'job'"),
        (
            {"x": "cart", "y": "cart"},
            InputError,
            r"sampler has no entry for 'job'; name one for the rest under '\*', as in sampler={'\*'",
        ),
        ("crat", SamplerError, "did you mean 'cart'"),
        ({"job": "norm", "*": "cart"}, SamplerError, "'job'"),
    ],
)
def test_invalid_samplers_raise(sampler, error, message):
    with pytest.raises(error, match=message):
        made(sampler)


class Strict(MarginalSampler):
    handles_missing = False


def test_missing_values_matter_only_if_the_sampler_sees_them():
    with pytest.raises(SamplerError, match=r"for 'y' does not handle missing values, and 'y' has some; fill them"):
        made({"y": Strict(), "*": "cart"})
    made({"x": Strict(), "*": "cart"})  # visited before y
    layout = ChainLayout.arrange(SCHEMA, ["y"], ["x", "job", "age"], False)
    sampler = {"job": Strict(), "*": "cart"}
    with pytest.raises(SamplerError, match="for 'job' does not handle missing values, and 'y' has some"):
        make_samplers(sampler, layout, SCHEMA.names)
    layout = ChainLayout.arrange(SCHEMA, ["y"], ["x", "job", "age"], False, {"job": ["x"]})
    make_samplers(sampler, layout, SCHEMA.names)  # predictors leave y out
