"""A masked autoencoder as a generator: fitted by `training`, with draws and densities by `network`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from mcce.base.arrays import Floats
from mcce.base.checks import check_count, is_number
from mcce.exceptions import InputError
from mcce.generators.base import stored_as
from mcce.generators.joint.base import JointGenerator
from mcce.generators.joint.drawing import Withins
from mcce.generators.joint.made.network import Bins, Network
from mcce.generators.joint.made.training import train
from mcce.generators.registry import register_generator
from mcce.generators.requests import RULE_ATTEMPTS
from mcce.rng import RowStreams, derive_key
from mcce.samplers import RestrictedDraw
from mcce.table import Kind, Table
from mcce.table.weights import as_copies
from mcce.wording import Value


@register_generator("made")
@stored_as("Made")
class Made(JointGenerator):
    """A masked autoencoder, MADE (Germain et al. 2015), which the paper names as an alternative to the chain.

    One network with masked weights gives all conditionals at once,

        p(x) = prod_j p(x_j | x_1, ..., x_j-1),

    the fixed features and the decision first, so that draws given them and densities are exact for the network. Numbers
    without point mass are cut into bins of equal counts; within a bin they follow the training values.
    Fitting takes PyTorch (``pip install 'mcce[deep]'``); drawing, scoring, saving and loading do not.

    Parameters
    ----------
    fixed, kinds, random_state, n_jobs : as in `mcce.ChainModel`; the network is fitted in one thread.
    widths : sequence of int
        Numbers of hidden units per layer to try; the one with the largest likelihood of the validation rows is chosen.
    max_epochs : int
        Largest number of passes through the training rows. Training stops if the likelihood of the validation rows has
        not improved for 10 epochs.
    learning_rate : float
        Learning rate of Adam.
    n_bins : int
        Largest number of bins of a number; a bin has at least 40 training rows.

    Attributes
    ----------
    model_ : the network, as arrays; ``model_.losses`` has the mean negative log score of the validation rows by epoch.

    Notes
    -----
    Draws inside restrictions are truncated one column after the other, as in a chain: rows have an importance
    (``sample(..., importance=True)``). 15 per cent of the rows are validation rows, which choose width and epochs.

    References
    ----------
    Germain, Gregor, Murray and Larochelle (2015), "MADE: masked autoencoder for distribution estimation", ICML.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(300).X[["age", "sex", "salary"]]
    >>> made = mcce.generators.Made(fixed=["age", "sex"], widths=(16,), max_epochs=5, random_state=1)
    >>> try:
    ...     rows = made.fit(X).sample(5, X[["age", "sex"]].head(2))
    ... except mcce.InputError as error:
    ...     print(error)  # how to get PyTorch
    ... else:
    ...     assert rows.shape == (10, 3)
    """

    restricts: ClassVar[bool] = True
    attempts: ClassVar[int] = RULE_ATTEMPTS
    takes_weights: ClassVar[bool] = True

    model_: Network

    def __init__(
        self,
        *,
        fixed: Sequence[Hashable] = (),
        kinds: Mapping[Any, Kind] | None = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
        widths: Sequence[int] = (32, 128),
        max_epochs: int = 200,
        learning_rate: float = 0.003,
        n_bins: int = 15,
    ) -> None:
        super().__init__(fixed=fixed, kinds=kinds, random_state=random_state, n_jobs=n_jobs)
        self.widths = widths
        self.max_epochs = max_epochs
        self.learning_rate = learning_rate
        self.n_bins = n_bins

    def _fit(self, table: Table, n_given: int) -> None:
        for name in ("max_epochs", "n_bins"):
            check_count(getattr(self, name), name, self)
        if isinstance(self.widths, str) or not isinstance(self.widths, Sequence) or not len(self.widths):
            raise InputError(
                "widths of ",
                Value(Made),
                " is ",
                Value(self.widths),
                "; give a list of whole numbers, as in ",
                Value([32, 128]),
                ".",
            )
        widths = [check_count(width, "a width", self) for width in self.widths]
        if not is_number(self.learning_rate) or not 0.0 < self.learning_rate < np.inf:
            raise InputError(
                "learning_rate of ", Value(Made), " is ", Value(self.learning_rate), "; it must be a number above 0."
            )
        table = as_copies(table)
        features = enumerate(table.features)
        bins = tuple(Bins.of(table.matrix[:, j], feature, self.n_bins, table.weights) for j, feature in features)
        codes = np.column_stack([each.encode(table.matrix[:, j]) for j, each in enumerate(bins)])
        self.model_ = train(
            bins,
            codes,
            n_given,
            widths=widths,
            max_epochs=self.max_epochs,
            learning_rate=float(self.learning_rate),
            seed=derive_key(self.seed_, "made"),
            weights=table.weights,
        )

    def _draw(self, givens: Floats, streams: RowStreams) -> Floats:
        return self.model_.draw(givens, streams)

    def draw_within(self, givens: Floats, streams: RowStreams, within: Withins, *, weighted: bool) -> RestrictedDraw:
        """Draw whole rows, each column inside its restriction, one after the other."""
        return self.model_.draw_within(givens, streams, within)

    def _log_densities(self, table: Table) -> Floats:
        return self.model_.log_densities(table.matrix)
