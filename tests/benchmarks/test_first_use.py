import pytest

from benchmarks import first_use

# the kernels that README's ten lines call; one more costs about a second at the first use
KERNELS = {
    "_hash_cells", "find_leaves", "grow_cells", "grow_nodes", "linear_parts", "log_densities", "mark_first",
    "mean_of_nearest", "pick_donor", "route_any", "route_numbers", "score_cells", "sum_steps",
}  # fmt: skip


@pytest.mark.slow
def test_the_ten_lines_of_the_readme_compile_few_kernels_each_for_one_signature():
    found = first_use.measure_apart()
    assert found["signatures"] == dict.fromkeys(KERNELS, 1)
    assert found["seconds"]["fit"] > 0
    assert set(found["compiled"]) <= KERNELS
