"""Fit a masked network with PyTorch.

1. A random share of the rows, drawn with the seed, is the validation set.
2. For each width: start from random weights, train on the other rows in batches (Adam), and compute the likelihood of
   the validation rows after each epoch. The weights of the best epoch are kept; training stops after `patience` epochs
   without improvement.
3. The width with the best likelihood is chosen.

Weights of rows enter the loss of a batch and of the validation set; the split does not depend on them.

Random numbers come from numpy and the seed; PyTorch's global state is neither read nor changed. Training uses one
thread, so that sums have a fixed order.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcce.base.arrays import Floats, Ints
from mcce.exceptions import InputError
from mcce.generators.joint.made.network import Bins, Network
from mcce.rng import derive_key

KEPT, PATIENCE, BATCH = 0.15, 10, 128
DECAY = 0.5  # of weights
SMALLEST = 1e-3  # smallest improvement of the log likelihood of a row that counts

_WEIGHTS = ("input_weights", "hidden_weights", "output_weights", "direct_weights")
_BIASES = ("input_bias", "hidden_bias", "output_bias")


@dataclass(frozen=True)
class _CodedRows:
    """Coded rows, with weights of mean 1 or None, split into training and validation rows."""

    codes: Ints
    weights: Floats | None
    training: Ints
    kept: Ints


def import_torch() -> Any:
    """Return PyTorch; raise if it is not installed."""
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise InputError(
            "Made is fitted with PyTorch, which is not installed; run pip install 'mcce[deep]', or use another "
            "generator (AdversarialForest). A fitted Made draws without PyTorch, also after save and load."
        ) from error


def train(
    bins: tuple[Bins, ...],
    codes: Ints,
    n_given: int,
    *,
    widths: Sequence[int],
    max_epochs: int,
    learning_rate: float,
    seed: int,
    weights: Floats | None = None,
) -> Network:
    """Return the network of the best width (step 3)."""
    torch = import_torch()
    n = codes.shape[0]
    order = np.random.default_rng(derive_key(seed, "kept")).permutation(n)
    n_kept = int(KEPT * n)
    parts = (order[n_kept:], order[:n_kept]) if n_kept else (order, order)
    rows = _CodedRows(codes, None if weights is None else weights / weights.mean(), *parts)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found = [
            _train_one(torch, bins, rows, n_given, width, max_epochs, learning_rate, derive_key(seed, width))
            for width in widths
        ]
    finally:
        torch.set_num_threads(threads)
    return min(found, key=lambda network: float(network.losses.min(initial=np.inf)))


def masks_of(bins: tuple[Bins, ...], n_given: int, width: int) -> tuple[Ints, dict[str, Floats]]:
    """Return the degrees of the hidden units, and the masks of their inputs."""
    p = len(bins)
    least = max(1, n_given)
    degree = (least + np.arange(width) % max(p - least, 1)).astype(np.int64)
    column_in = np.repeat(np.arange(p), [each.n_codes for each in bins])
    column_out = column_in[column_in >= n_given]
    masks = {
        "input_weights": column_in[:, None] < degree,
        "hidden_weights": degree[:, None] <= degree,
        "output_weights": degree[:, None] <= column_out,
        "direct_weights": column_in[:, None] < column_out,
    }
    return degree, {name: mask.astype(np.float64) for name, mask in masks.items()}


def seen_as(bins: tuple[Bins, ...]) -> Floats:
    """Return the inputs of the network for each code in training: (codes, inputs).

    A bin is encoded as all bins up to it, so that the small weights describe the differences of neighbouring bins.
    """
    size = sum(each.n_codes for each in bins)
    shown, at = np.eye(size), 0
    for each in bins:
        begin = at + each.n_levels + each.atoms.size
        shown[begin : begin + each.n_bins, begin : begin + each.n_bins] = np.tri(each.n_bins)
        at += each.n_codes
    return shown


def _train_one(
    torch: Any,
    bins: tuple[Bins, ...],
    rows: _CodedRows,
    n_given: int,
    width: int,
    max_epochs: int,
    learning_rate: float,
    seed: int,
) -> Network:
    """Train a network of one width (step 2)."""
    rng = np.random.default_rng(seed)
    degree, masks = masks_of(bins, n_given, width)
    start: dict[str, Floats] = {}
    for name in _WEIGHTS:
        scale = 0.0 if name == "direct_weights" else np.sqrt(2.0 / np.maximum(masks[name].sum(axis=0), 1.0))
        start[name] = rng.normal(size=masks[name].shape) * scale * masks[name]
    first = np.concatenate([[0], np.cumsum([each.n_codes for each in bins])]).astype(np.int64)
    places = rows.codes + first[:-1]
    times = None if rows.weights is None else np.repeat(rows.weights, len(bins))
    counts = np.bincount(places.ravel(), times, minlength=first[-1])[first[n_given] :]
    start |= {"input_bias": np.zeros(width), "hidden_bias": np.zeros(width), "output_bias": np.log(counts + 0.5)}
    parameters = {name: torch.tensor(value, dtype=torch.float32, requires_grad=True) for name, value in start.items()}
    fixed = {name: torch.tensor(mask, dtype=torch.float32) for name, mask in masks.items()}
    observed = np.concatenate([each.observed for each in bins[n_given:]])
    never = torch.tensor(np.where(observed, 0.0, -1e9), dtype=torch.float32)
    seen = torch.tensor(seen_as(bins), dtype=torch.float32)
    all_places = torch.tensor(places)
    weights = None if rows.weights is None else torch.tensor(rows.weights, dtype=torch.float32)

    def loss_of(some: Ints) -> Any:
        at = all_places[some]
        own = {name: value * fixed[name] if name in fixed else value for name, value in parameters.items()}
        inputs = torch.zeros((some.size, int(first[-1]))).scatter_(1, at, 1.0) @ seen
        inner = torch.relu(inputs @ own["input_weights"] + own["input_bias"])
        hidden = torch.relu(inner @ own["hidden_weights"] + own["hidden_bias"])
        logits = hidden @ own["output_weights"] + inputs @ own["direct_weights"] + own["output_bias"] + never
        total = 0.0
        for j in range(n_given, len(bins)):
            begin, end = (int(first[k] - first[n_given]) for k in (j, j + 1))
            log_shares = torch.log_softmax(logits[:, begin:end], dim=1)
            scores = log_shares.gather(1, at[:, [j]] - int(first[j]))
            total = total - (scores if weights is None else scores * weights[some][:, None]).sum()
        return total

    optimizer = torch.optim.AdamW(
        [
            {"params": [parameters[name] for name in _WEIGHTS], "weight_decay": DECAY},
            {"params": [parameters[name] for name in _BIASES], "weight_decay": 0.0},
        ],
        lr=learning_rate,
    )
    best, waited, losses = {name: value.copy() for name, value in start.items()}, 0, []
    training, kept = rows.training, rows.kept
    n_kept = kept.size if rows.weights is None else float(rows.weights[kept].sum())
    least = np.inf
    for _ in range(max_epochs):
        order = training[rng.permutation(training.size)]
        for begin in range(0, order.size, BATCH):
            batch = order[begin : begin + BATCH]
            optimizer.zero_grad()
            (loss_of(batch) / batch.size).backward()
            optimizer.step()
        with torch.no_grad():
            losses.append(sum(float(loss_of(kept[b : b + 4096])) for b in range(0, kept.size, 4096)) / n_kept)
        waited += 1
        if losses[-1] < least - SMALLEST:
            least, waited = losses[-1], 0
            best = {name: value.detach().numpy().astype(np.float64) for name, value in parameters.items()}
        if waited >= PATIENCE:
            break
    weights = {name: value * masks[name] if name in masks else value for name, value in best.items()}
    for name in ("input_weights", "direct_weights"):
        weights[name] = seen_as(bins) @ weights[name]
    return Network(bins=bins, n_given=n_given, degree=degree, losses=np.array(losses), **weights)
