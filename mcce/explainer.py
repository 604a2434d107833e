"""MCCE: Monte Carlo sampling of valid and realistic counterfactual explanations (Redelmeier, Jullum, Aas, Løland).

1. Model (`fit`). Learn p(mutable | fixed, y') as a chain of conditionals; y' says whether the model gives a training
   row the wanted decision (paper, section 2.1).
2. Generate. For each factual draw K rows from the chain, given its own fixed values and y' = 1 (section 2.2). Factuals
   that agree in their fixed values share one pool of draws.
3. Select. Keep the valid rows; take the fewest changes, then the smallest Gower distance, then the earlier draw
   (section 2.3, `mcce.selection`).

Pools stream through steps 2 and 3 in blocks and only the winners are kept, so memory does not grow with the number of
factuals.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce import precompile
from mcce.asking.decision import Answer, Interval, compare_answers, resolve_decision
from mcce.candidates.pools import Pools, draw_pools, pool_blocks, pool_keys, why_none
from mcce.checks import check_count
from mcce.counterfactuals import Counterfactuals
from mcce.diagnostics.diagnose import diagnose
from mcce.diagnostics.result import Diagnostics
from mcce.exceptions import InputError, MCCEWarning, NotFittedError, listing, spell, spell_all
from mcce.generators.chain import (
    ChainModel,
    Samplers,
    check_fixed,
    check_magnitudes,
    check_missing,
    draw_index,
    spot_positions,
)
from mcce.generators.predictors import Predictors
from mcce.generators.visit import VisitSequence
from mcce.progress import progress_bar
from mcce.selection.measures import measure_table
from mcce.selection.selector import Chosen, Selector
from mcce.table import Data, Floats, Kind, as_frame

ASK_ROWS = 200_000  # rows per question to the model

ALREADY = "already has the wanted decision"


class MCCE:
    """Counterfactual explanations for any model on tabular data.

    Parameters
    ----------
    model : object or callable
        Anything with predict_proba, decision_function or predict, or a function of a table. It is asked with frames (or
        arrays, if trained so) that have exactly the columns, order and dtypes of the training data.
    decision : (low, high), Interval, class label or callable
        The wanted decision: a closed interval for the score, an `Interval` (open ends, and of which class the
        probability is), the label that `predict` should return, or a function of a table that returns booleans.
    fixed : list of column names
        Features that must not change.
    sampler, visit_sequence, predictors, kinds, n_jobs : see `ChainModel`
    condition_on_decision : bool
        Whether the chain conditions on the wanted decision, which makes most draws valid.
    random_state : int or None
        One seed, one answer: for any number of threads, order and batching of the factuals. None takes a fresh seed.

    Attributes
    ----------
    chain_ : fitted ChainModel
    decision_ : the wanted decision, bound to the model
    fit_seconds_ : seconds that `fit` took

    Examples
    --------
    >>> import mcce
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> loans = mcce.datasets.load_loans()
    >>> model = HistGradientBoostingClassifier(random_state=0, categorical_features="from_dtype").fit(loans.X, loans.y)
    >>> granted = mcce.Interval(0, 0.1, closed="left", of=True)     # probability of default below 10 per cent
    >>> explainer = mcce.MCCE(model, decision=granted, fixed=["age", "sex"], random_state=1).fit(loans.X)
    >>> found = explainer.explain(loans.X.iloc[[0]])
    >>> len(found), list(found.measures.columns)
    (1, ['prediction', 'L0', 'gower', 'gower_sum'])
    """

    def __init__(
        self,
        model: Any,
        *,
        decision: Any = (0.5, 1.0),
        fixed: Sequence[Hashable] = (),
        sampler: Samplers = "cart",
        visit_sequence: VisitSequence = "data",
        predictors: Predictors | None = None,
        condition_on_decision: bool = True,
        kinds: Mapping[Any, Kind] | None = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.model = model
        self.decision = decision
        self.fixed = fixed
        self.sampler = sampler
        self.visit_sequence = visit_sequence
        self.predictors = predictors
        self.condition_on_decision = condition_on_decision
        self.kinds = kinds
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Data, *, progress: bool | None = None) -> MCCE:
        """Step 1: ask the model about the training rows, and fit the chain.

        Parameters
        ----------
        X : DataFrame or two-dimensional array
            Training rows: the model's features, without the response.
        progress : bool or None
            Whether to show a progress bar; None shows one in a terminal or notebook after a second.
        """
        begun = time.perf_counter()
        if not isinstance(self.condition_on_decision, (bool, np.bool_)):
            raise InputError(f"condition_on_decision is {self.condition_on_decision!r}; it must be True or False.")
        vars(self).pop("fit_seconds_", None)  # a fit that fails leaves no half-fitted explainer
        self.decision_ = resolve_decision(self.decision, self.model)
        frame, _ = as_frame(X)
        if frame.empty:
            raise InputError(
                f"X has {frame.shape[0]} rows and {frame.shape[1]} columns; it needs at least one of each."
            )
        check_fixed(self.fixed, list(frame.columns))
        spots = spot_positions(len(frame))
        if self.condition_on_decision:
            answer = self._ask_in_parts(X)
            self._check_wanted(answer)
            self._spot_answer = Answer(answer.scores[spots], answer.wanted[spots])
        else:
            answer = None
            self._spot_answer = self.decision_.ask(_rows_of(X, spots), "training rows")
        chain = ChainModel(
            sampler=self.sampler,
            fixed=self.fixed,
            visit_sequence=self.visit_sequence,
            predictors=self.predictors,
            kinds=self.kinds,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )
        with precompile.beside():
            self.chain_ = chain.fit(X, None if answer is None else answer.wanted, progress=progress)
        names = self.chain_.schema_.names
        self._mutable = np.array([j for j, name in enumerate(names) if name not in self.chain_.fixed_], dtype=np.int64)
        self._training: Data | None = X
        self.fit_seconds_ = time.perf_counter() - begun
        return self

    def explain(
        self,
        X: Data,
        *,
        n_samples: int = 1000,
        n_counterfactuals: int = 1,
        independent: bool = False,
        exhaustive: bool = False,
        progress: bool | None = None,
    ) -> Counterfactuals:
        """Find counterfactuals for the rows of `X` (steps 2 and 3).

        Parameters
        ----------
        X : DataFrame or array
            Rows to explain; the index of a DataFrame names them in the result and must be unique.
        n_samples : int
            K, rows drawn for each factual.
        n_counterfactuals : int
            How many distinct counterfactuals to return for each factual, best first.
        independent : bool
            Whether each factual gets draws of its own, even if it shares its fixed values with others.
        exhaustive : bool
            Ask the model about every candidate, as the paper does, instead of best-first. The answer is the same.
        progress : bool or None
            Whether to show a progress bar; None shows one in a terminal or notebook after a second.
        """
        self._check_fitted()
        check_count(n_samples, "n_samples")
        check_count(n_counterfactuals, "n_counterfactuals")
        factuals = self._read_factuals(X)
        order = np.flatnonzero(~factuals.wanted)
        keys = pool_keys(self.chain_, factuals.matrix, independent)
        selector = Selector(self.chain_.schema_.features, self._mutable, self._ask_encoded)
        clock = {"generate": 0.0, "select": 0.0}
        parts: list[tuple[npt.NDArray[np.int64], Chosen, Floats]] = []
        with progress_bar(order.size, "explaining", progress) as bar:
            for members in pool_blocks(order, keys, 8 * n_samples * len(self.chain_.schema_)):
                begun = time.perf_counter()
                pools = draw_pools(self.chain_, factuals.matrix[members], keys[members], n_samples)
                drawn = time.perf_counter()
                chosen = selector.select(pools, factuals.matrix[members], n_counterfactuals, exhaustive=exhaustive)
                parts.append((members[chosen.factual], chosen, pools.rows[chosen.row]))
                clock["generate"] += drawn - begun
                clock["select"] += time.perf_counter() - drawn
                bar.update(members.size)
        settings: dict[str, object] = {
            "n_samples": n_samples,
            "n_counterfactuals": n_counterfactuals,
            "independent": independent,
            "exhaustive": exhaustive,
            "pools": int(np.unique(keys[order]).size),
        }
        return self._assemble(factuals, parts, clock, settings)

    def generate(
        self, X: Data, *, n_samples: int = 1000, independent: bool = False, progress: bool | None = None
    ) -> pd.DataFrame:
        """Step 2 alone: the candidates of every row of `X`, indexed by (id, draw).

        They are the rows that `explain` chooses from with the same `n_samples` and `independent`.
        """
        self._check_fitted()
        check_count(n_samples, "n_samples")
        index, matrix = self._encode_factuals(X)
        keys = pool_keys(self.chain_, matrix, independent)
        pools = draw_pools(self.chain_, matrix, keys, n_samples, progress)
        within = np.arange(n_samples)
        rows = pools.rows[(pools.begin[:, None] + within).ravel()]
        return self.chain_.schema_.decode(rows, draw_index(index, n_samples))

    def select(
        self, candidates: pd.DataFrame, X: Data, *, n_counterfactuals: int = 1, exhaustive: bool = False
    ) -> Counterfactuals:
        """Step 3 alone: choose among candidates, as `generate` returns them, for the rows of `X`.

        Parameters
        ----------
        candidates : DataFrame
            Rows with the training columns; the first level of the index is the id of the factual in `X`. Their order
            within an id breaks ties.
        X, n_counterfactuals, exhaustive : as in `explain`
        """
        self._check_fitted()
        check_count(n_counterfactuals, "n_counterfactuals")
        factuals = self._read_factuals(X)
        begun = time.perf_counter()
        if not isinstance(candidates, pd.DataFrame):
            raise InputError(
                f"candidates is a {type(candidates).__name__}; give a DataFrame, as `generate` returns it."
            )
        ids = candidates.index.get_level_values(0)
        owner = factuals.index.get_indexer(ids)
        if (owner < 0).any():
            raise InputError(f"candidates has rows for {spell(ids[owner < 0][0])}, which is not in the index of X.")
        matrix = self.chain_.schema_.encode(candidates, "candidates").matrix
        fixed = [j for j in range(matrix.shape[1]) if j not in self._mutable]
        before, after = factuals.matrix[owner][:, fixed], matrix[:, fixed]
        meddled = (after != before) & ~(np.isnan(after) & np.isnan(before))
        if meddled.any():
            row, column = np.argwhere(meddled)[0]
            name = self.chain_.schema_.names[fixed[column]]
            raise InputError(
                f"candidates changes the fixed feature {name!r} of {spell(ids[row])}; fixed features must stay as in X."
            )
        by_owner = np.argsort(owner, kind="stable")
        members = np.flatnonzero(~factuals.wanted)
        begin = np.searchsorted(owner[by_owner], members)
        end = np.searchsorted(owner[by_owner], members, side="right")
        pools = Pools(np.asfortranarray(matrix[by_owner]), begin, end)
        selector = Selector(self.chain_.schema_.features, self._mutable, self._ask_encoded)
        chosen = selector.select(pools, factuals.matrix[members], n_counterfactuals, exhaustive=exhaustive)
        parts = [(members[chosen.factual], chosen, pools.rows[chosen.row])]
        clock = {"generate": 0.0, "select": time.perf_counter() - begun}
        settings: dict[str, object] = {
            "n_candidates": len(candidates),
            "n_counterfactuals": n_counterfactuals,
            "exhaustive": exhaustive,
        }
        return self._assemble(factuals, parts, clock, settings)

    def diagnose(
        self,
        X: Data,
        *,
        training: Data | None = None,
        n_samples: int = 1000,
        max_factuals: int = 100,
        max_rows: int = 5000,
        visit_sequences: Sequence[VisitSequence] = ("data", "correlation", "reversed"),
        random_state: int = 0,
    ) -> Diagnostics:
        """Find out how realistic the candidates are and how good the counterfactuals; see `mcce.diagnostics`.

        Parameters
        ----------
        X : DataFrame or array
            Real rows, at best ones that the explainer was not fitted on. Generated rows are compared with them, one for
            each, drawn given its fixed values and its own decision. Those without the wanted decision are the factuals.
        training : DataFrame, array or None
            The training rows, for distances to them, copies of them, and other visit sequences. None takes the table
            that was given to `fit`; an explainer that was saved does not have it.
        n_samples : int
            K, rows drawn for each factual.
        max_factuals, max_rows : int
            Factuals and real rows to use at most, spread over X.
        visit_sequences : sequence
            Orders to compare: "data", "correlation", "reversed", or lists of the mutable features. Each is one more
            fit; () leaves this out.
        random_state : int
            Seed of the discriminator. All draws have the seed of the explainer.

        Returns
        -------
        Diagnostics
            Prints as a table; its attributes are the tables themselves, and `plot` draws them.

        Examples
        --------
        >>> import mcce
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> X = mcce.datasets.load_loans(1000).X.select_dtypes("number")
        >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
        >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X.iloc[:500])
        >>> d = explainer.diagnose(X.iloc[500:], n_samples=100, visit_sequences=())
        >>> d.evaluation.summary.loc[["violation", "success"], "mean"].tolist()
        [0.0, 1.0]
        >>> d.discriminator.accuracy < 0.7
        True
        """
        self._check_fitted()
        return diagnose(
            self,
            X,
            training=self._known_training() if training is None else training,
            n_samples=n_samples,
            max_factuals=max_factuals,
            max_rows=max_rows,
            visit_sequences=visit_sequences,
            random_state=random_state,
            n_jobs=self.n_jobs,
        )

    def _known_training(self) -> Data | None:
        """Return the table given to `fit`, unless it is gone; a table that was changed since is an error."""
        training: Data | None = getattr(self, "_training", None)
        if training is None:
            return None
        spots = self.chain_.schema_.encode(
            _rows_of(training, spot_positions(len(training))), "the training rows"
        ).matrix
        if not np.array_equal(spots, self.chain_.spot_rows_, equal_nan=True):
            raise InputError("the table given to fit has been changed since; give the training rows as `training`.")
        return training

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the training table: what is saved does not hold the rows."""
        return {name: value for name, value in vars(self).items() if name != "_training"}

    def __repr__(self) -> str:
        decision = self.decision if not isinstance(self.decision, Interval) else str(self.decision)
        model = type(self.model).__name__
        return f"MCCE({model}, decision={decision!r}, fixed={list(self.fixed)!r}, sampler={self.sampler!r})"

    # ---------------------------------------------------------------- the model

    def _ask_in_parts(self, X: Data) -> Answer:
        """Ask about the user's own training table, in parts of bounded size."""
        n = len(X)
        if isinstance(X, np.ndarray):
            X = X.copy()  # a model that works in place must not change the user's table
        if n <= ASK_ROWS:
            return self.decision_.ask(X, "the training rows")
        parts = [
            self.decision_.ask(_rows_of(X, slice(i, i + ASK_ROWS)), "the training rows") for i in range(0, n, ASK_ROWS)
        ]
        return Answer(np.concatenate([p.scores for p in parts]), np.concatenate([p.wanted for p in parts]))

    def _ask_encoded(self, rows: Floats) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        scores, wanted = [], []
        for i in range(0, rows.shape[0], ASK_ROWS):
            answer = self.decision_.ask(self.chain_.schema_.decode_for_model(rows[i : i + ASK_ROWS]), "candidates")
            scores.append(answer.scores)
            wanted.append(answer.wanted)
        return np.concatenate(scores), np.concatenate(wanted)

    def _check_wanted(self, answer: Answer) -> None:
        if answer.wanted.any():
            return
        seen = ""
        if answer.scores.size and answer.scores.dtype.kind == "f":
            seen = f" (the scores go from {answer.scores.min():.4g} to {answer.scores.max():.4g})"
        elif answer.scores.size:
            seen = f" (the answers are {listing(sorted({str(s) for s in answer.scores}))})"
        raise InputError(
            f"no training row has the wanted decision, {self.decision_.describe()}{seen}: there is nothing to learn it "
            "from. Check the decision, or set condition_on_decision=False."
        )

    def _spot_labels(self) -> list[int]:
        """Return the positions in the training table of the rows that are asked about again."""
        return [int(i) for i in spot_positions(len(self.chain_.training_givens_))]

    def _check_spots(self, answer: Answer) -> None:
        labels = self._spot_labels()
        differing = compare_answers(self._spot_answer, answer, labels)
        if differing:
            warnings.warn(
                f"the model answered differently when {len(differing)} of {len(labels)} training rows were asked "
                f"again (those at positions {spell_all(differing, 5)}): it is not deterministic, or it depends on the "
                "other rows of the table. The method needs a deterministic model; counterfactuals may not hold "
                "when asked again.",
                MCCEWarning,
                stacklevel=4,
            )

    # ---------------------------------------------------------------- factuals

    def _check_fitted(self) -> None:
        if not hasattr(self, "fit_seconds_"):
            raise NotFittedError("this MCCE is not fitted; call fit(X) with the training rows first.")

    def _encode_factuals(self, X: Data) -> tuple[pd.Index[Any], Floats]:
        frame, _ = as_frame(X, "X")
        if not frame.index.is_unique:
            twice = frame.index[frame.index.duplicated()].unique()
            raise InputError(
                f"the index of X holds {spell_all(twice)} more than once; it names the factuals. "
                "Use X.reset_index(drop=True)."
            )
        if isinstance(frame.index, pd.MultiIndex):
            raise InputError("the index of X has several levels; it names the factuals. Use X.reset_index(drop=True).")
        table = self.chain_.schema_.encode(X, "X")
        check_magnitudes(table, "X")
        check_missing(table, frame.index, "X")
        return frame.index, table.matrix

    def _read_factuals(self, X: Data) -> _Factuals:
        """Encode the factuals and ask the model about them, and about some training rows once more."""
        index, matrix = self._encode_factuals(X)
        n = matrix.shape[0]
        schema = self.chain_.schema_
        if n == 0:
            return _Factuals(index, matrix, np.empty(0), np.empty(0, dtype=bool))
        rows = schema.decode_for_model(np.concatenate([matrix, self.chain_.spot_rows_]))
        if isinstance(rows, pd.DataFrame):  # so that an error names the user's rows
            rows.index = pd.Index([*index, *(f"training row {i}" for i in self._spot_labels())], dtype=object)
        asked = self.decision_.ask(rows, f"the {n} factuals, and {len(self.chain_.spot_rows_)} training rows again")
        self._check_spots(Answer(asked.scores[n:], asked.wanted[n:]))
        return _Factuals(index, matrix, asked.scores[:n], asked.wanted[:n])

    # ---------------------------------------------------------------- the result

    def _assemble(
        self,
        factuals: _Factuals,
        parts: list[tuple[npt.NDArray[np.int64], Chosen, Floats]],
        clock: dict[str, float],
        settings: dict[str, object],
    ) -> Counterfactuals:
        schema = self.chain_.schema_
        owner = np.concatenate([np.empty(0, dtype=np.int64), *(members for members, _, _ in parts)])
        rows = np.concatenate([np.empty((0, len(schema))), *(values for _, _, values in parts)])
        scores = np.concatenate([factuals.scores[:0], *(chosen.scores for _, chosen, _ in parts if chosen.row.size)])
        by_factual = np.argsort(owner, kind="stable")
        owner, rows, scores = owner[by_factual], np.asfortranarray(rows[by_factual]), scores[by_factual]
        rank = np.arange(owner.size) - np.searchsorted(owner, owner) + 1
        index = pd.MultiIndex.from_arrays([factuals.index[owner], rank], names=["id", "rank"])
        measures = measure_table(rows, factuals.matrix[owner], schema.features, ["L0", "gower", "gower_sum"])
        measures.insert(0, "prediction", scores)
        measures.index = index
        settings |= {
            "random_state": self.chain_.seed_,
            "sampler": self.sampler,
            "visit_sequence": list(self.chain_.visit_sequence_),
            "condition_on_decision": self.condition_on_decision,
            "rows_asked": sum(chosen.n_asked for _, chosen, _ in parts),
        }
        numeric = [f for f in schema.features if f.is_numeric and not np.isnan(f.low)]
        ends = {f.name: pd.Series(f.decode(np.array([f.low, f.high]))) for f in numeric}
        ranges: dict[Any, tuple[Any, Any]] = {name: (pair.iloc[0], pair.iloc[1]) for name, pair in ends.items()}
        return Counterfactuals(
            frame=schema.decode(rows, index),
            measures=measures,
            factuals=schema.decode(factuals.matrix, factuals.index),
            unexplained=self._unexplained(factuals, owner, settings.get("n_samples")),
            factual_predictions=pd.Series(factuals.scores, index=factuals.index, name="prediction"),
            decision=self.decision_.describe(),
            fixed=tuple(self.chain_.fixed_),
            kinds=dict(schema.kinds),
            ranges=ranges,
            timings={"fit": self.fit_seconds_, **clock},
            settings=settings,
        )

    def _unexplained(self, factuals: _Factuals, owner: npt.NDArray[np.int64], n_samples: object) -> pd.DataFrame:
        """List the factuals without a counterfactual, each with its reason."""
        without = np.setdiff1d(np.arange(len(factuals.index)), owner)
        keys = pool_keys(self.chain_, factuals.matrix, independent=False)
        reasons: dict[Any, str] = {}  # depends on the fixed values alone
        for i in without[~factuals.wanted[without]]:
            if keys[i] not in reasons:
                reasons[keys[i]] = why_none(self.chain_, factuals.matrix[[i]], n_samples)
        words = [ALREADY if factuals.wanted[i] else reasons[keys[i]] for i in without]
        frame = pd.DataFrame({"reason": pd.Series(words, dtype=object), "prediction": factuals.scores[without]})
        frame.index = factuals.index[without].rename("id")
        return frame


@dataclass(frozen=True)
class _Factuals:
    index: pd.Index[Any]
    matrix: Floats
    scores: npt.NDArray[Any]
    wanted: npt.NDArray[np.bool_]


def _rows_of(X: Data, rows: Any) -> Data:
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else np.asarray(X[rows])
