"""Masked networks compared with brute force: masks, densities, draws, restrictions."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import mcce
from mcce import InputError, Within
from mcce.generators import JointGenerator, Made
from mcce.generators.joint.made.network import Bins
from mcce.generators.requests import DrawRequest
from mcce.storage.state import from_state, to_state
from mcce.table import Schema
from mcce.testing import check_generator
from tests.generators.joint.processes import atoms, clusters, clusters_log_density, skewed, skewed_log_density

WHY = "PyTorch is not installed: pip install 'mcce[deep]'"

RNG = np.random.default_rng(8)
N = 350
GROUP = RNG.integers(0, 2, N)
X = pd.DataFrame(
    {
        "y": np.round(RNG.normal(10 + 6 * GROUP, 2 + GROUP), 4),
        "group": np.where(GROUP == 1, "b", "a"),
        "gain": np.where(RNG.random(N) < 0.5, 0.0, np.round(RNG.gamma(2, 30, N), 2)),
        "job": pd.Categorical.from_codes((GROUP + RNG.integers(0, 2, N)) % 3, ["x", "y", "z", "never"]),
        "debt": np.where(RNG.random(N) < 0.25, np.nan, np.round(RNG.normal(50, 9, N), 3)),
    }
)
WANTED = np.asarray(X["y"] + RNG.normal(size=N) > 13)


@pytest.fixture(scope="module")
def made():
    pytest.importorskip("torch", reason=WHY)
    return Made(fixed=["group"], widths=(16, 24), max_epochs=15, random_state=2).fit(X, WANTED)


def probabilities(network, codes):
    """Outputs of the whole network by matrix products; the kernel computes them unit by unit."""
    one_hot = np.zeros((len(codes), network.first[-1]))
    for j in range(codes.shape[1]):
        one_hot[np.arange(len(codes)), network.first[j] + codes[:, j]] = 1.0
    inner = np.maximum(one_hot @ network.input_weights + network.input_bias, 0.0)
    hidden = np.maximum(inner @ network.hidden_weights + network.hidden_bias, 0.0)
    logits = hidden @ network.output_weights + one_hot @ network.direct_weights + network.output_bias
    logits = np.where(network.observed, logits, -np.inf)
    parts = np.split(logits, network.first_out[1:-1], axis=1)
    return [
        np.exp(part - part.max(axis=1)[:, None]) / np.exp(part - part.max(axis=1)[:, None]).sum(axis=1)[:, None]
        for part in parts
    ]


def codes_of(network, matrix):
    return np.column_stack([bins.encode(matrix[:, j]) for j, bins in enumerate(network.bins)])


def test_densities_match_the_whole_network(made):
    network, matrix = made.model_, made._layout.order(made.schema_.encode(X).matrix, WANTED).matrix
    codes = codes_of(network, matrix)
    shares = probabilities(network, codes)
    found = made.log_density(X, decision=WANTED, per_feature=True)
    # job is levels, gain has atoms, y is spread: probability of the bin over its width
    job = codes[:, network.n_given + 2]
    np.testing.assert_allclose(found["job"], np.log(shares[2][np.arange(N), job]), rtol=1e-9)
    zero = (X["gain"] == 0).to_numpy()
    np.testing.assert_allclose(
        found["gain"][zero], np.log(shares[1][zero, codes[zero, network.n_given + 1]]), rtol=1e-9
    )


def test_output_depends_only_on_preceding_columns(made):
    network = made.model_
    codes = codes_of(network, made._layout.order(made.schema_.encode(X).matrix, WANTED).matrix)
    before = probabilities(network, codes)
    for j in range(len(network.bins)):
        other = codes.copy()
        other[:, j] = (other[:, j] + 1) % network.bins[j].n_codes
        after = probabilities(network, other)
        changed = [not np.allclose(a, b) for a, b in zip(before, after)]
        last_blind = max(j + 1 - network.n_given, 0)
        assert not any(changed[:last_blind])
        if last_blind < len(changed):
            assert any(changed[last_blind:])


def request_of(generator, n, row=0, wanted=True, **more):
    matrix = generator.schema_.encode(X.iloc[[row]]).matrix
    givens = np.repeat(generator.givens_of(matrix, wanted), n, axis=0)
    return DrawRequest(givens, np.full(n, 3, dtype=np.uint64), np.arange(n, dtype=np.uint64), 7, **more)


def test_densities_integrate_to_one_and_draws_follow_them(made):
    bins = made.model_.bins[2]
    grid = np.linspace(bins.density.knots[0], bins.density.knots[-1], 4001)
    rows = X.iloc[[0] * grid.size].assign(y=grid).reset_index(drop=True)
    density = np.exp(made.log_density(rows, per_feature=True)["y"].to_numpy())
    cdf = integrate.cumulative_trapezoid(density, grid, initial=0.0)
    assert cdf[-1] == pytest.approx(1.0, abs=5e-3)
    drawn = made.draw(request_of(made, 3000)).rows[:, 0]
    assert stats.kstest(drawn, lambda x: np.interp(x, grid, cdf / cdf[-1])).pvalue > 1e-4


def test_weighted_restricted_draws_follow_the_joint_distribution(made):
    n, k = 30_000, 8000
    free = made.draw(request_of(made, n)).rows
    allowed = (free[:, 2] >= 20.0) & (free[:, 3] >= 1.0)
    within = {
        "gain": Within(low=np.full(k, 20.0)),
        "job": Within(levels=np.tile([False, True, True, False], (k, 1))),
    }
    drawn = made.draw(request_of(made, k, restrictions=within, weighted=True))
    weight = np.exp(drawn.log_weight)
    assert not drawn.rejected.any()
    assert (drawn.rows[:, 2] >= 20.0).all()
    assert set(drawn.rows[:, 3]) == {1.0, 2.0}
    error = 4 * np.sqrt(weight.var() / k + allowed.mean() * (1 - allowed.mean()) / n)
    assert abs(weight.mean() - allowed.mean()) < error
    for j in (0, 2):  # y precedes the restricted feature: only its weighted mean is correct
        mean = np.average(drawn.rows[:, j], weights=weight)
        assert abs(mean - free[allowed, j].mean()) < 5 * free[allowed, j].std() / np.sqrt(allowed.sum()) + 0.1


def test_single_number_is_conditioned_on_and_infeasible_rows_are_rejected(made):
    n = 30
    single = Within(low=np.full(n, 17.25), high=np.full(n, 17.25))
    drawn = made.draw(request_of(made, n, restrictions={"y": single}))
    assert (drawn.rows[:, 0] == 17.25).all()
    never = Within(levels=np.tile([False] * 4, (n, 1)))
    rejected = made.draw(request_of(made, n, restrictions={"y": single, "job": never}))
    assert rejected.rejected.all()
    assert set(rejected.rejected_by) == {1}


def test_codes_map_back_to_values():
    table = Schema.from_data(X).encode(X)
    for j, feature in enumerate(table.features):
        bins = Bins.of(table.matrix[:, j], feature, 8)
        codes = bins.encode(table.matrix[:, j])
        assert codes.min() >= 0
        assert bins.observed[codes].all()
        back = bins.decode(codes, np.full(N, 0.5))
        np.testing.assert_array_equal(bins.encode(back), codes)
        exact = codes < bins.n_levels + bins.atoms.size
        np.testing.assert_array_equal(back[exact], table.matrix[exact, j])
        assert bins.allowed(Within(missing=np.full(N, True)), N).min() == pytest.approx(1.0)


def test_training_neither_reads_nor_changes_global_state(made):
    torch = pytest.importorskip("torch", reason=WHY)
    torch.manual_seed(3)
    before = torch.random.get_rng_state().clone(), torch.get_num_threads()
    again = Made(fixed=["group"], widths=(16, 24), max_epochs=15, random_state=2).fit(X, WANTED)
    assert torch.equal(torch.random.get_rng_state(), before[0])
    assert torch.get_num_threads() == before[1]
    np.testing.assert_array_equal(again.model_.output_weights, made.model_.output_weights)
    other = Made(fixed=["group"], widths=(16, 24), max_epochs=15, random_state=3).fit(X, WANTED)
    assert other.model_.losses.tolist() != made.model_.losses.tolist()


def test_width_is_chosen_and_training_stops(made):
    assert made.model_.degree.size in (16, 24)
    assert made.model_.losses.min() < made.model_.losses[0]


def test_stored_network_draws_without_torch(made, tmp_path):
    made.save(tmp_path / "a.mcce")
    again = JointGenerator.load(tmp_path / "a.mcce")
    pd.testing.assert_frame_equal(again.sample(20), made.sample(20))
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import mcce, pandas as pd\n"
        f"made = mcce.generators.Made.load({str(tmp_path / 'a.mcce')!r})\n"
        "print(len(made.sample(5)))\n"
        "try:\n    mcce.generators.Made().fit(pd.DataFrame({'a': [1.0, 2.0]}))\n"
        "except mcce.InputError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[0] == "5", done.stderr
    assert "which is not installed; run pip install 'mcce[deep]'" in done.stdout


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda m: {"degree": m.degree + 50}, "degree holds"),
        (lambda m: {"n_given": 9}, "n_given is 9"),
        (lambda m: {"hidden_weights": m.hidden_weights[:-1]}, "hidden_weights has the shape"),
        (lambda m: {"output_bias": m.output_bias * np.nan}, "output_bias holds nan"),
        (lambda m: {"bins": m.bins[::-1]}, "has the shape|bins do not match the columns"),
        (lambda m: {"bins": (replace(m.bins[0], n_levels=7), *m.bins[1:])}, "observed has the shape"),
        (lambda m: {"bins": (*m.bins[:2], replace(m.bins[2], n_bins=0), *m.bins[3:])}, "n_bins are not those"),
    ],
)
def test_inconsistent_networks_raise(made, spoil, message):
    state = to_state(made)
    with pytest.raises(InputError, match=message):
        from_state(state | {"model_": to_state(replace(made.model_, **spoil(made.model_)))})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"widths": ()}, r"widths of Made is \(\); give a list of whole numbers"),
        ({"widths": (0,)}, "a width of Made is 0"),
        ({"max_epochs": 0}, "max_epochs of Made is 0"),
        ({"n_bins": -1}, "n_bins of Made is -1"),
        ({"learning_rate": 0}, "learning_rate of Made is 0; it must be a number above 0"),
    ],
)
def test_invalid_settings_raise(settings, message):
    with pytest.raises(InputError, match=message):
        Made(**settings).fit(X)


def test_missing_torch_raises_with_install_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match=r"Made is fitted with PyTorch, which is not installed; run pip install"):
        Made().fit(X)


def test_generator_conforms():
    pytest.importorskip("torch", reason=WHY)
    check_generator(Made(widths=(32,), max_epochs=25, random_state=1, n_jobs=1))


def test_skewed_number_with_growing_spread():
    pytest.importorskip("torch", reason=WHY)
    made, new = Made(fixed=["x"], widths=(32,), random_state=1).fit(skewed(1500, 1)), skewed(1500, 2)
    lost = skewed_log_density(new) - made.log_density(new)
    assert np.isfinite(lost).mean() > 0.99
    assert 0 < lost[np.isfinite(lost)].mean() < 0.2
    assert made.sample(2000)["y"].min() >= 0


def test_atoms_are_learned_in_a_few_epochs():
    pytest.importorskip("torch", reason=WHY)
    rows = Made(widths=(16,), max_epochs=12, learning_rate=0.01, random_state=1).fit(atoms(1000, 1)).sample(3000)
    assert set(rows["k"]) <= set(atoms(1000, 1)["k"])
    for k in (0, 1, 2, 3):
        assert (rows.loc[rows["k"] == k, "amount"] == 0).mean() == pytest.approx(0.8 / (1 + k), abs=0.12)


@pytest.mark.slow
def test_other_known_processes():
    pytest.importorskip("torch", reason=WHY)
    new = clusters(1000, 2)
    lost = clusters_log_density(new) - Made(fixed=["side"], random_state=1).fit(clusters(1500, 1)).log_density(new)
    assert np.isfinite(lost).mean() > 0.99
    assert 0 < lost[np.isfinite(lost)].mean() < 0.3
    real = atoms(2000, 1)
    rows = Made(random_state=1).fit(real).sample(4000)
    assert set(rows["k"]) <= set(real["k"])
    for k in (0, 1, 2, 3):
        assert (rows.loc[rows["k"] == k, "amount"] == 0).mean() == pytest.approx(0.8 / (1 + k), abs=0.09)


def test_correct_model():
    """A table drawn from a network: a network fitted to it is about as good on new rows."""
    pytest.importorskip("torch", reason=WHY)
    truth = Made(widths=(16,), max_epochs=15, random_state=2).fit(X)
    rows, new = truth.sample(1500), truth.sample(800, random_state=9)
    learned = Made(widths=(32,), random_state=1).fit(rows)
    lost = truth.log_density(new) - learned.log_density(new)
    assert lost[np.isfinite(lost)].mean() < 0.45
    assert np.isfinite(lost).mean() > 0.98
    assert isinstance(mcce.generators.Made(), JointGenerator)
