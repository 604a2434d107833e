"""The method as users call it: the explainer together with its diagnostics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy.typing as npt

from mcce.base.progress import working
from mcce.base.threads import one_native_thread
from mcce.batches import BatchResult, explain_batches
from mcce.diagnostics.diagnose import Diagnostics, diagnose
from mcce.diagnostics.trade_off import TradeOff, trade_off
from mcce.exceptions import InputError
from mcce.explain.order import DEFAULT, MeasureLike
from mcce.explainer import Explainer
from mcce.generators.visit import VisitSequence
from mcce.table import Data


class MCCE(Explainer):
    """Counterfactual explanations for any model on tabular data.

    Parameters
    ----------
    model : object or callable
        Anything with predict_proba, decision_function or predict, or a function of a table. It is asked with frames (or
        arrays, if trained so) that have exactly the columns, order and dtypes of the training data.
    decision : (low, high), Interval, pandas Interval, class label, OneOf, Not, Several or callable
        The wanted decision: a closed interval for the score, inf for no bound; an `Interval` (open ends, of which class
        the probability is, a margin); the label that `predict` should return, `OneOf` several or any but some (`Not`);
        `Several` models, each with its own decision; or a function of a table that returns booleans. For a cost or
        utility give its function as the model, and an interval. `label=` puts any of these objects in your own words.
    fixed : list of column names
        Features that must not change.
    sampler, visit_sequence, predictors, kinds, n_jobs : see `ChainModel`
    condition_on_decision : bool
        Whether the chain conditions on the wanted decision, which makes most draws valid.
    random_state : int or None
        One seed, one answer: for any number of threads, order and batching of the factuals. None takes a fresh seed.
    generator : Generator or None
        What draws the candidates, instead of a chain: an unfitted model with the methods of
        `mcce.generators.base.Generator`. It is copied; `fixed` must be the features that it is given. What a chain
        would be made from (sampler, visit_sequence, predictors, kinds, random_state) is then set on the generator.
    min_donors : int or None
        The fewest distinct training rows that a value is drawn from, see `ChainModel`. Together with
        ``explain(..., exclude_training=True)`` this keeps single people out of what is returned as whole rows and as
        pools of one; it is no differential privacy.
    constraints : list, dict or file
        What may change and how, for every call of `explain` and `generate`; see there.
    labels : dict or None
        What features are called in sentences, letters, pages and pictures: ``{"loan_amount": "loan"}``. "prediction" is
        what the model says. Tables to compute with keep the names and values of the data.
    units : dict or None
        Units of numbers: ``{"salary": "EUR"}``. `$`, `£` and `¥` stand before the number.
    formats : dict or None
        How values are written: a number by the zero that it would be, ``{"rate": "0.0 %", "salary": "0,000"}``; a date
        by its codes, ``{"since": "%d.%m.%Y"}``; levels by their words, ``{"defaulted": {True: "yes", False: "no"}}``.
        See `mcce.report.names`.

    Notes
    -----
    While it works, models and samplers have one thread of OpenMP and BLAS each (`mcce.base.threads` says why); what a model
    asks for by its own `n_jobs` is left alone. It is an estimator as scikit-learn knows them: `sklearn.base.clone`
    makes an unfitted copy that explains the same fitted model.

    Attributes
    ----------
    chain_ : fitted ChainModel
    generator_ : the fitted generator, which is the chain unless another one was given
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

    @one_native_thread()
    def diagnose(
        self,
        X: Data,
        *,
        training: Data | None = None,
        sample_weight: npt.ArrayLike | None = None,
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
        sample_weight : array or None
            Weights of the rows of X: whole numbers repeat a row, of others as many rows are taken, by weight, as these
            are worth. The rows are then numbered 0, 1, ...
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
        with working("diagnosing", None):
            return diagnose(
                self,
                X,
                training=self._training.known_table() if training is None else training,
                sample_weight=sample_weight,
                n_samples=n_samples,
                max_factuals=max_factuals,
                max_rows=max_rows,
                visit_sequences=visit_sequences,
                random_state=random_state,
                n_jobs=self.n_jobs,
            )

    @one_native_thread()
    def trade_off(
        self,
        X: Data,
        floors: float | Sequence[float] = (0, 0.01, 0.05, 0.1, 0.25, 0.5),
        n_samples: int = 1000,
        *,
        measures: MeasureLike | Sequence[MeasureLike] = DEFAULT,
        weights: Mapping[Any, float] | None = None,
        max_changes: int | None = None,
        max_gower: float | None = None,
        training: Data | None = None,
        max_factuals: int = 200,
        max_rows: int = 10_000,
    ) -> TradeOff:
        """Measure what a floor of plausibility costs in changes and distance, so that you can choose one.

        Parameters
        ----------
        X : DataFrame or array
            Rows to explain; those that have the wanted decision already are passed over.
        floors : sequence of float
            The floors to compare.
        n_samples, measures, weights, max_changes, max_gower : as in `explain`
            For the sparse counterfactuals; the plain method is shown as published, with as many draws.
        training : DataFrame, array or None
            The training rows, for distances to them. None takes the table that was given to `fit`; an explainer that
            was saved does not have it.
        max_factuals, max_rows : int
            Factuals to explain and training rows to search at most, spread over their tables.

        Returns
        -------
        TradeOff
            Prints as a table; `table` has the figures, `plot()` draws them. See `mcce.diagnostics.trade_off`.

        Examples
        --------
        >>> import mcce
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> X = mcce.datasets.load_loans(1000).X.select_dtypes("number")
        >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
        >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
        >>> costs = explainer.trade_off(X, floors=(0, 0.25), n_samples=100, max_factuals=50)
        >>> costs.table.index.tolist()
        ['plain', 'floor 0', 'floor 0.25']
        >>> bool(costs.table["L0"]["floor 0"] <= costs.table["L0"]["plain"])
        True
        """
        self._check_fitted()
        rows = self._training.known_table() if training is None else training
        if rows is None:
            raise InputError(
                "an explainer that was saved does not have its training rows, which distances are measured to; give "
                "them as `training`."
            )
        return trade_off(
            self,
            X,
            floors,
            training=rows,
            n_samples=n_samples,
            measures=measures,
            weights=weights,
            max_changes=max_changes,
            max_gower=max_gower,
            max_factuals=max_factuals,
            max_rows=max_rows,
        )

    def explain_batches(
        self,
        source: Any,
        out: str | PathLike[str],
        *,
        id: str | None = None,
        batch_size: int = 10_000,
        n_jobs: int | None = None,
        skip_bad: bool = False,
        missing: Sequence[str] = (),
        progress: bool | None = None,
        **settings: Any,
    ) -> BatchResult:
        """Explain a table of any size, batch by batch, into a folder of Parquet files.

        Killed at any moment and called again, it keeps the parts that are finished and does the others; the bytes in
        the end are those of an undisturbed run, for any number and kind of workers. See `mcce.batches`.

        Parameters
        ----------
        source : file, folder, DataFrame or iterable of DataFrames
            Parquet or CSV (.csv, .csv.gz), or a folder of such files; columns that are no features are left aside. To
            go on with frames after a crash, the same ones have to be given again.
        out : str or path
            A new folder, or one that was begun with the same source, settings and explainer: anything else is refused.
            One run at a time can write to it.
        id : str, optional
            Column that names each row of the whole source by a value of its own. Without it rows are named by their
            number, from 0.
        batch_size : int
            Rows that are explained and written together, at most; a part never spans two files.
        n_jobs : int, optional
            Workers, as joblib counts them: processes, unless `joblib.parallel_config` says "threading" or "dask". The
            explainer is sent once to each, so that its model has to be picklable.
        skip_bad : bool
            Whether rows that cannot be read or explained are listed in `bad-rows.csv` and left out; else the first is
            an error that names its file and place.
        missing : list of str
            Cells of a CSV that mean a missing value, besides an empty one.
        progress : bool or None
            Whether to show a progress bar; None shows one in a terminal or notebook after a second.
        **settings
            As in `explain`: `n_samples`, `sparse`, `constraints`, ...; without `standard_errors`, which are about all
            factuals together. Who has no counterfactual is looked into only with ``tell_reasons=True``.

        Returns
        -------
        BatchResult
            The folder, its manifest and how many rows there were; ``pandas.read_parquet(out / "counterfactuals")``
            reads what was found.

        Examples
        --------
        >>> import mcce, tempfile
        >>> X = mcce.datasets.load_loans(300).X.select_dtypes("number")
        >>> explainer = mcce.MCCE(lambda rows: rows["salary"] > 40_000, decision=True, random_state=1).fit(X)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     done = explainer.explain_batches(X, f"{folder}/out", batch_size=100, n_samples=50)
        ...     print(done.totals["rows"], len(done.manifest["parts"]))
        300 3
        """
        self._check_fitted()
        learned: dict[str, Any] = {}
        if "measures" in settings:  # workers do not have the training rows
            learned["measures"] = self._learned_measures(settings["measures"])
        if settings.get("sparse"):
            self._plausibility(progress)
        self._training_rows(needed=bool(settings.get("exclude_training")))
        return explain_batches(
            self,
            source,
            out,
            settings=settings,
            learned=learned,
            spots=self._training.spots,
            id=id,
            batch_size=batch_size,
            n_jobs=n_jobs,
            skip_bad=skip_bad,
            missing=missing,
            progress=progress,
        )
