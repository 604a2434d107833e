from mcce import CartSampler


def test_replaced_changes_the_given_parameters_and_leaves_the_original_alone() -> None:
    sampler = CartSampler(min_leaf=7)
    other = sampler.replaced(max_depth=3)
    assert isinstance(other, CartSampler)
    assert other.get_params() == {**sampler.get_params(), "max_depth": 3}
    assert sampler.max_depth != 3
