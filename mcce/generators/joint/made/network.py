"""A fitted masked network: conditionals of each column given those before it, as arrays.

1. Columns are codes (`mcce.generators.joint.made.bins`); the network sees one-hot codes.
2. Two hidden layers of rectified units. Each unit has a degree d, and sees the columns before column d; in the second
   layer it sees units of the first with a degree up to its own. The output of column j sees units with a degree up to
   j, and the codes of the columns before j directly. So the output of j depends on the columns before j alone:

       p(x) = prod_j softmax(output_j(x_1, ..., x_j-1))_(x_j).

3. The given columns come first and have no output: what is modelled is p(mutable | given).

Germain, Gregor, Murray and Larochelle (2015), "MADE: masked autoencoder for distribution estimation", ICML.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mcce.arrays import Bools, Floats, Ints
from mcce.generators.joint.drawing import JointDraw
from mcce.generators.joint.made.bins import Bins
from mcce.generators.joint.made.kernels import run
from mcce.rng import RowStreams
from mcce.samplers.within import Within
from mcce.soundness import FLOAT, INT, check_array, check_between, check_count_of, check_finite, check_type, require
from mcce.state import stateful
from mcce.table import Feature


@stateful("Made.Network")
@dataclass(frozen=True)
class Network:
    """Weights, each zero where the masks are.

    Attributes
    ----------
    bins : of the columns.
    n_given : how many columns come first and are given.
    degree : of the hidden units of a layer, the same in both.
    input_weights, input_bias : from one-hot codes to the first layer.
    hidden_weights, hidden_bias : from the first to the second layer.
    output_weights, output_bias : from the second layer to the codes of the columns that are not given.
    direct_weights : from one-hot codes to these.
    losses : of the epochs, on the rows that were kept for validation.
    """

    bins: tuple[Bins, ...]
    n_given: int
    degree: Ints
    input_weights: Floats
    input_bias: Floats
    hidden_weights: Floats
    hidden_bias: Floats
    output_weights: Floats
    output_bias: Floats
    direct_weights: Floats
    losses: Floats

    def check_state(self) -> None:
        """Refuse weights that do not fit together."""
        check_type(self.bins, "bins", tuple)
        for each in self.bins:
            check_type(each, "bins", Bins)
        check_count_of(self.n_given, "n_given", 0, len(self.bins) - 1)
        check_array(self.degree, "degree", INT, None)
        check_between(self.degree, "degree", 0, len(self.bins))
        n_in, n_out, width = int(self.first[-1]), int(self.first_out[-1]), self.degree.size
        shapes = {
            "input_weights": (n_in, width),
            "input_bias": (width,),
            "hidden_weights": (width, width),
            "hidden_bias": (width,),
            "output_weights": (width, n_out),
            "output_bias": (n_out,),
            "direct_weights": (n_in, n_out),
        }
        for name, shape in shapes.items():
            check_array(getattr(self, name), name, FLOAT, *shape)
            check_finite(getattr(self, name), name)
        check_array(self.losses, "losses", FLOAT, None)

    def check_columns(self, features: Sequence[Feature], n_given: int) -> None:
        """Refuse a network that is not of these columns."""
        require(len(self.bins) == len(features) and self.n_given == n_given, "bins are not as many as the columns")
        for each, feature in zip(self.bins, features):
            fits = each.n_levels == feature.n_levels and (feature.is_numeric or each.density is None)
            require(fits, "bins are not of the columns")

    @cached_property
    def first(self) -> Ints:
        """Where the codes of each column begin."""
        return np.concatenate([[0], np.cumsum([each.n_codes for each in self.bins])]).astype(np.int64)

    @cached_property
    def first_out(self) -> Ints:
        """Where the codes of each column that is not given begin."""
        return np.asarray(self.first[self.n_given :] - self.first[self.n_given])

    @cached_property
    def observed(self) -> Bools:
        """Which of these codes some training row has."""
        return np.concatenate([each.observed for each in self.bins[self.n_given :]])

    def draw(self, givens: Floats, streams: RowStreams) -> Floats:
        """Draw the other columns given the first ones."""
        return self.draw_within(givens, streams, {}).values

    def draw_within(self, givens: Floats, streams: RowStreams, within: Mapping[int, Within]) -> JointDraw:
        """Draw the other columns given the first ones, each inside its restriction, one after the other.

        Like a chain's, such draws carry the weight of what was allowed at each step.
        """
        n, drawn = givens.shape[0], self.bins[self.n_given :]
        codes = np.full((n, len(self.bins)), -1, dtype=np.int64)
        for j in range(self.n_given):
            codes[:, j] = self.bins[j].encode(givens[:, j])
        allowed, restricted = np.zeros((1, 1)), np.zeros(len(drawn), dtype=bool)
        if within:
            allowed = np.ones((n, int(self.first_out[-1])))
            for k, each in within.items():
                restricted[k] = True
                allowed[:, self.first_out[k] : self.first_out[k + 1]] = drawn[k].allowed(each, n)
        uniform = np.column_stack([streams.uniform() for _ in drawn])
        log_mass = np.zeros(n)
        self._run(codes, allowed, restricted, uniform, log_mass)
        values = np.empty((n, len(drawn)), order="F")
        for k, bins in enumerate(drawn):
            values[:, k] = bins.decode(codes[:, self.n_given + k], streams.uniform(), within.get(k))
        dead = np.isneginf(log_mass)
        values[dead] = np.nan
        return JointDraw(values, dead, log_mass)

    def log_densities(self, matrix: Floats) -> Floats:
        """Return the log density of each column that is not given, given all before it."""
        codes = np.column_stack([bins.encode(matrix[:, j]) for j, bins in enumerate(self.bins)])
        free, n_out = np.zeros(len(self.bins) - self.n_given, dtype=bool), len(self.bins) - self.n_given
        found = self._run(codes, np.zeros((1, 1)), free, np.zeros((matrix.shape[0], n_out)), np.zeros(matrix.shape[0]))
        for k, bins in enumerate(self.bins[self.n_given :]):
            found[:, k] += bins.log_spread(matrix[:, self.n_given + k], codes[:, self.n_given + k])
        return found

    def _run(self, codes: Ints, allowed: Floats, restricted: Bools, uniform: Floats, log_mass: Floats) -> Floats:
        log_probability = np.empty((codes.shape[0], len(self.bins) - self.n_given))
        run(codes, self.n_given, self.first, self.first_out, self.observed, self.degree, self.input_weights,
            self.input_bias, self.hidden_weights, self.hidden_bias, self.output_weights, self.output_bias,
            self.direct_weights, allowed, restricted, uniform, log_probability, log_mass)  # fmt: skip
        return log_probability
