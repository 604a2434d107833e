"""Disclosure risk of an explainer for its training rows: a table with intervals and a sentence for each line.

1. X are the training rows. A random half of the holdout is the control; the other half are the rows of the attacker,
   including those to explain.
2. Releases: counterfactuals of the paper's method ("plain") and sparse ones ("sparse"), and as many rows as X has,
   drawn for the attacker's rows given fixed values and decision ("generated").
3. Counts (`counts`): `value` uses all of X; `matched` and `control` equally many rows of X and of the control. The
   difference is tested by 199 permutations of both groups (p-value `chance`).
4. Attacks (`attacks`): singling out, linkability, and inference, the last for the secret with the largest excess, with
   Bonferroni's correction; `targets` has all secrets. Membership (`membership`).

The distance to the closest training row is not evidence (Yao et al. 2025, "The DCR delusion"). A line has the verdict
"leaks" if its `chance` is at most 1/40 (at 95 per cent) and the interval of its risk, if any, is above 0; an AUC, if
its interval is above 0.5. An attack that is not better than guessing has the verdict "worthless".
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import partial
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.checks import check_count, check_share
from mcce.base.progress import working
from mcce.base.threads import one_native_thread
from mcce.diagnostics.disclosure_risk import counts
from mcce.diagnostics.disclosure_risk.attacks import Attack, inference, linkability, singling_out
from mcce.diagnostics.disclosure_risk.membership import (
    Membership,
    explain_rows,
    measured,
    queries_about,
    surprise,
)
from mcce.diagnostics.disclosure_risk.rates import FALSE_POSITIVES, Estimate, chance_at, expected_at, wilson
from mcce.diagnostics.disclosure_risk.rates import risk as risk_of
from mcce.diagnostics.pairs import draw_like, spread
from mcce.distances.measures import changed_columns
from mcce.exceptions import InputError, listing, spell
from mcce.explain.protocol import Explainer
from mcce.rng import derive_key, hash_rows
from mcce.table import Data, Feature

RELEASES = ("plain", "sparse", "generated")
COLUMNS = ["value", "low", "high", "matched", "control", "baseline", "risk", "risk_low", "risk_high"]
COLUMNS += ["chance", "n", "verdict"]
LEAKS, NOTHING, WORTHLESS = "leaks", "no leak seen", "worthless"
FEWEST_ROWS = 20  # in X, and in each half of the holdout
N_QUERIES = 4  # per person, in the attack by repeated queries
N_COLUMNS = 3  # in a query of singling out
N_SHUFFLES = 199
OF_SPARSE = ("floor", "caution", "max_changes")  # arguments of the sparse search only
OF_INFERENCE = ["inference", "inference_control", "inference_baseline", "inference_risk"]  # columns of `targets`
UNKNOWN = Estimate(np.nan, np.nan, np.nan)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Disclosure:
    """The results of `disclosure`.

    Attributes
    ----------
    table : DataFrame
        Indexed by release and measure. `value` with the interval from `low` to `high`; `matched`, the same for as many
        training rows as control rows; `control`, for the control rows; `baseline`, for guesses; `risk`, the excess of
        training over control, with its interval; `chance`, the p-value of this excess, for counts and rates at low
        false positive rates; `n`, the number of attacks or rows; `verdict`: "leaks", "no leak seen" or "worthless" (not
        better than guessing).
    targets : DataFrame
        Indexed by release and target: the measures of `mcce.diagnostics.disclosure_risk.counts`, in per cent, DiSCO of
        the control, and attack, control, baseline and risk of inference.
    sentences : Series
        A sentence for each line of `table`.
    notes : tuple of str
        Limitations of the findings.
    settings : mapping
        Numbers of rows, keys, k, and the other arguments.

    Examples
    --------
    >>> import mcce
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = mcce.datasets.load_loans(1000).X[["age", "sex", "salary", "savings"]]
    >>> model = DecisionTreeClassifier(max_depth=3).fit(X[["salary", "savings"]], X["savings"] + X["salary"] > 90_000)
    >>> class Told:
    ...     def predict(self, rows):
    ...         return model.predict(rows[["salary", "savings"]])
    >>> explainer = mcce.MCCE(Told(), decision=True, fixed=["age", "sex"], random_state=1).fit(X[:500])
    >>> given_away = mcce.diagnostics.disclosure(explainer, X[:500], holdout=X[500:], releases=["plain"])
    >>> given_away.table.loc["plain"].loc["distinguishing cells", "verdict"]
    'leaks'
    """

    table: pd.DataFrame
    targets: pd.DataFrame
    sentences: pd.Series[str]
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def leaks(self) -> pd.DataFrame:
        """Return the lines of the table that leak."""
        return self.table[self.table["verdict"] == LEAKS]

    def _headline(self) -> str:
        s = self.settings
        return (
            f"Disclosure: {s['n_training']:,} training rows, {s['n_control']:,} control rows, {s['n_own']:,} rows of "
            f"the attacker; keys {listing(s['keys'])}"
        )

    def __repr__(self) -> str:
        lines = [self._headline()]
        for release in self.table.index.get_level_values("release").unique():
            part, texts = self.table.loc[release], self.sentences.loc[release]
            wide = max(map(len, part.index))
            marks = [f"{verdict:<12}" for verdict in part["verdict"]]
            lines += ["", str(release)]
            lines += [f"  {mark}  {name.ljust(wide)}  {words}" for mark, name, words in zip(marks, part.index, texts)]
        return "\n".join(lines + ([""] if self.notes else []) + [f"note: {note}" for note in self.notes])

    def _repr_html_(self) -> str:
        releases, measures = (self.table.index.get_level_values(level) for level in ("release", "measure"))
        rows = "".join(
            f'<tr><th scope="row" style="text-align:left">{escape(str(release))}</th><td>{escape(str(measure))}</td>'
            f'<td>{escape(str(verdict))}</td><td style="text-align:left">{escape(str(words))}</td></tr>'
            for release, measure, verdict, words in zip(releases, measures, self.table["verdict"], self.sentences)
        )
        notes = "".join(f"<p>Note: {escape(note)}</p>" for note in self.notes)
        return f"<p><b>{escape(self._headline())}</b></p><table><tbody>{rows}</tbody></table>{notes}"


@dataclass(frozen=True)
class Finding:
    """One line of the table, and its sentence."""

    measure: str
    found: Estimate
    sentence: str
    n: int
    matched: float = np.nan
    control: float = np.nan
    baseline: float = np.nan
    risk: Estimate = UNKNOWN
    chance: float = np.nan
    verdict: str = ""

    def cells(self) -> list[Any]:
        """Return the cells of `COLUMNS`."""
        others = [self.matched, self.control, self.baseline]
        return [*astuple(self.found), *others, *astuple(self.risk), self.chance, self.n, self.verdict]


@dataclass(frozen=True)
class People:
    """Encoded rows and the settings of the attacks.

    `matched` and `control` have equally many rows; `factuals` are the refused rows explained in the releases.
    """

    explainer: Explainer
    training: Floats
    trained_wanted: Bools
    matched: Floats
    control: Floats
    control_wanted: Bools
    own: Floats
    own_wanted: Bools
    factuals: Floats
    keys: list[int]
    targets: list[int]
    k: int
    n_attacks: int
    most: int
    confidence: float
    seed: int

    @property
    def features(self) -> tuple[Feature, ...]:
        return tuple(self.explainer.generator_.schema_.features)

    @property
    def fixed(self) -> Ints:
        generator = self.explainer.generator_
        return np.array([generator.schema_.names.index(name) for name in generator.fixed_], dtype=np.int64)

    def rng(self, *labels: object) -> np.random.Generator:
        return np.random.default_rng(derive_key(self.seed, "disclosure", *labels))

    def sample(self, rows: Floats, n: int, *labels: object) -> Floats:
        """Return up to `n` random rows."""
        return np.asarray(rows[np.sort(self.rng(*labels).permutation(len(rows))[:n])])


@dataclass(frozen=True)
class Release:
    """Released rows, with marks of the disclosed cells; `settings` of `explain`, None for generated rows."""

    name: str
    rows: Floats
    disclosed_at: Bools
    owner: Ints
    settings: Mapping[str, Any] | None


@one_native_thread()
@working("measuring disclosure", None)
def disclosure(
    explainer: Explainer,
    X: Data,
    *,
    holdout: Data,
    factuals: Data | None = None,
    keys: Sequence[Hashable] | None = None,
    targets: Sequence[Hashable] | None = None,
    k: int = 5,
    releases: Sequence[str] = RELEASES,
    n_attacks: int = 500,
    max_factuals: int = 100,
    confidence: float = 0.95,
    **settings: Any,
) -> Disclosure:
    """Measure by attacks what the answers of an explainer disclose about its training rows.

    Parameters
    ----------
    explainer : fitted MCCE
    X : DataFrame or array
        The training rows of the explainer.
    holdout : DataFrame or array
        Rows of the same population that neither the explainer nor, preferably, the model was fitted on. Half of them
        are the control, half belong to the attacker.
    factuals : DataFrame, array or None
        Rows to explain, of which only those without the wanted decision are used; by default those of the attacker.
    keys : list of column names or None
        The columns known to an attacker; by default the fixed features.
    targets : list of column names or None
        The columns that an attacker wants to learn; by default all but the keys.
    k : int
        A row counts as linked if its keys occur in at most k training rows.
    releases : sequence of "plain", "sparse", "generated"
    n_attacks : int
        The largest number of attacks of each kind.
    max_factuals : int
        The largest number of rows to explain, and of people in membership attacks.
    confidence : float
        The coverage of all intervals.
    **settings
        Further arguments of `explain`, as used for the answers to be released: n_samples, constraints, floor, ...

    Returns
    -------
    Disclosure
        Prints a sentence for each line; `table` has the figures.

    Notes
    -----
    The random numbers depend on the seed of the explainer. Stronger attacks may find leaks that are not found here;
    only differential privacy gives a bound.

    Examples
    --------
    >>> import mcce
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = mcce.datasets.load_loans(800).X.select_dtypes("number")
    >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
    >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X[:400])
    >>> found = mcce.diagnostics.disclosure(explainer, X[:400], holdout=X[400:], releases=["generated"])
    >>> found.table.loc["generated"].index[:3].tolist()
    ['copies', 'distinguishing cells', 'RepU']
    """
    chosen = _check_releases(releases)
    check_share(confidence, "confidence")
    for name, value in (("k", k), ("n_attacks", n_attacks), ("max_factuals", max_factuals)):
        check_count(value, name)
    for name in ("sparse", "n_counterfactuals", "progress"):
        if name in settings:
            raise InputError(f"disclosure sets {name}; leave it out, and select by `releases` what is measured.")
    schema = explainer.generator_.schema_
    named = list(explainer.generator_.fixed_) if keys is None else keys
    if keys is None and not named:
        raise InputError("the explainer has no fixed features; give the columns known to an attacker as `keys`.")
    places = counts.find_columns(named, schema.names, "keys")
    rest = [name for name in schema.names if name not in set(named)] if targets is None else targets
    aims = counts.find_columns(rest, schema.names, "targets")
    if set(places) & set(aims):
        both = [schema.names[j] for j in sorted(set(places) & set(aims))]
        raise InputError(f"{listing(both)} is among keys and targets; give it in one of them.")
    people, notes = _gather(explainer, X, holdout, factuals, places, aims, k, n_attacks, max_factuals, confidence)
    lines: dict[tuple[str, str], Finding] = {}
    by_target = []
    for name in chosen:
        release = _release(people, name, settings)
        if not len(release.rows):
            notes.append(f"{name}: no row was returned, so nothing was attacked.")
            continue
        found, table = _attack_targets(people, release)
        by_target.append(pd.concat({name: table}, names=["release", "target"]))
        parts = [*_count(people, release), *found, *_attack_rows(people, release), *_membership(people, release)]
        lines |= {(name, line.measure): line for line in parts}
    if not lines:
        raise InputError(f"no row was returned for {len(people.factuals)} factuals, so no attack is possible.")
    index = pd.MultiIndex.from_tuples(list(lines), names=["release", "measure"])
    return Disclosure(
        table=pd.DataFrame([line.cells() for line in lines.values()], index=index, columns=COLUMNS),
        targets=pd.concat(by_target),
        sentences=pd.Series([line.sentence for line in lines.values()], index=index, name="sentence", dtype=object),
        notes=tuple(notes),
        settings={
            "n_training": len(people.training),
            "n_control": len(people.control),
            "n_own": len(people.own),
            "n_factuals": len(people.factuals),
            "keys": list(named),
            "k": k,
            "n_attacks": n_attacks,
            "confidence": confidence,
            "random_state": people.seed,
            **settings,
        },
    )


def _check_releases(releases: Sequence[str]) -> list[str]:
    chosen = [releases] if isinstance(releases, str) else list(releases)
    unknown = [each for each in chosen if each not in RELEASES]
    if unknown or not chosen:
        raise InputError(f"releases is {spell(releases)}; choose among {listing(RELEASES)}.")
    return list(dict.fromkeys(chosen))


def _gather(
    explainer: Explainer,
    X: Data,
    holdout: Data,
    factuals: Data | None,
    keys: list[int],
    targets: list[int],
    k: int,
    n_attacks: int,
    max_factuals: int,
    confidence: float,
) -> tuple[People, list[str]]:
    """Read the tables, and split the holdout."""
    generator = explainer.generator_
    schema, seed = generator.schema_, generator.seed_
    training, others = schema.encode(X, "X").matrix, schema.encode(holdout, "holdout").matrix
    for name, rows, fewest in (("X", training, FEWEST_ROWS), ("holdout", others, 2 * FEWEST_ROWS)):
        if len(rows) < fewest:
            raise InputError(f"{name} has {len(rows)} rows; attacks need at least {fewest}.")
    notes = []
    seen = counts.copies_of(others, training)
    if seen.mean() > 0.5:
        raise InputError(
            f"{int(seen.sum())} of {len(others)} rows of holdout are rows of X too; give rows that the explainer was "
            "not fitted on."
        )
    if seen.any():
        notes.append(f"{int(seen.sum())} of {len(others)} rows of holdout equal a row of X, which hides some leaks.")
    hashes = getattr(generator, "training_hashes_", None)
    if hashes is not None:
        absent = float((~np.isin(hash_rows(training), hashes)).mean())
        if absent > 0:
            notes.append(f"{absent:.1%} of the rows of X are not training rows of the explainer.")
    order = np.random.default_rng(derive_key(seed, "disclosure", "holdout")).permutation(len(others))
    half = len(others) // 2
    control, own = others[np.sort(order[:half])], others[np.sort(order[half:])]
    evaluate = explainer.decision_.evaluate
    wanted = [
        evaluate(schema.decode_for_model(rows), what).wanted
        for rows, what in ((training, "the rows of X"), (control, "the holdout"), (own, "the holdout"))
    ]
    available = own if factuals is None else schema.encode(factuals, "factuals").matrix
    accepted = wanted[2] if factuals is None else evaluate(schema.decode_for_model(available), "factuals").wanted
    refused = np.flatnonzero(~accepted)
    if not refused.size:
        where = "holdout" if factuals is None else "factuals"
        raise InputError(f"all available rows of {where} have the wanted decision; give rows to explain.")
    pick = np.random.default_rng(derive_key(seed, "disclosure", "matched")).permutation(len(training))
    matched = training[np.sort(pick[: min(half, len(training))])]
    people = People(
        explainer=explainer,
        training=training,
        trained_wanted=wanted[0],
        matched=matched,
        control=control[spread(half, len(matched))],
        control_wanted=wanted[1][spread(half, len(matched))],
        own=own,
        own_wanted=wanted[2],
        factuals=available[refused[spread(refused.size, max_factuals)]],
        keys=keys,
        targets=targets,
        k=k,
        n_attacks=n_attacks,
        most=max_factuals,
        confidence=confidence,
        seed=seed,
    )
    if len(people.control) < 1 / FALSE_POSITIVES[0]:
        notes.append(
            f"with {len(people.control)} control rows, false positive rates below "
            f"{1 / (len(people.control) + 1):.2g} cannot be measured; the threshold is then above all of them."
        )
    return people, notes


def _release(people: People, name: str, settings: Mapping[str, Any]) -> Release:
    if name != "generated":
        plain = {key: value for key, value in settings.items() if key not in OF_SPARSE}
        options = {**settings, "sparse": True} if name == "sparse" else plain
        rows, owner, _ = explain_rows(people.explainer, people.factuals, options)
        own = people.factuals[owner]
        return Release(name, rows, changed_columns(rows, own), owner, options)
    times = -(-len(people.training) // len(people.own))
    given, wanted = (np.concatenate([part] * times)[: len(people.training)] for part in (people.own, people.own_wanted))
    rows = draw_like(people.explainer.generator_, given, wanted, people.seed)
    disclosed_at = np.ones(rows.shape, dtype=bool)
    disclosed_at[:, people.fixed] = False
    return Release(name, rows, disclosed_at, np.arange(len(rows)), None)


def _in_words(found: Estimate) -> str:
    return f"{found.value:.1%} ({found.low:.1%} to {found.high:.1%})"


def _share_line(
    people: People, measure: str, count: Callable[[Floats], int], n: int, all_rows: int | None, sentence: str
) -> Finding:
    """Return a line of a count among `n`, for all of X, for the matched rows and for the control.

    `count` counts with a table of people. If people are counted, `all_rows` is the number of rows of X, and `n` is not
    used.
    """
    c = people.confidence
    whole = wilson(count(people.training), n if all_rows is None else all_rows, c)
    size = len(people.matched)
    among = n if all_rows is None else size
    matched, control = count(people.matched), count(people.control)
    both, rng = np.concatenate([people.matched, people.control]), people.rng("shuffles", measure)
    as_far = 1
    for _ in range(N_SHUFFLES):
        order = rng.permutation(2 * size)
        # permutations are needed only for an excess
        as_far += matched <= control or count(both[order[:size]]) - count(both[order[size:]]) >= matched - control
    chance = as_far / (N_SHUFFLES + 1)
    ahead = risk_of(wilson(matched, among, c), wilson(control, among, c)).value
    shown = sentence.format(_in_words(whole.estimate))
    words = (
        f"{shown}; {matched / among:.1%} by as many people as the others are, whose {control / among:.1%} is chance."
    )
    return Finding(
        measure,
        whole.estimate,
        words,
        whole.n,
        matched / among,
        control / among,
        risk=Estimate(ahead, np.nan, np.nan),
        chance=chance,
        verdict=LEAKS if chance <= _one_sided(people.confidence) else NOTHING,
    )


def _one_sided(confidence: float) -> float:
    return (1 - confidence) / 2 + 1e-12


def _count(people: People, release: Release) -> list[Finding]:
    """Return the lines of copies, cells, keys and linkage."""
    rows, names = release.rows, [str(people.features[j].name) for j in people.keys]
    n = len(rows)

    def repeated(original: Floats) -> int:
        _, d, s = counts.count_by(original, rows, people.keys)
        return int(((d == 1) & (s == 1)).sum())

    shown = listing(names)
    return [
        _share_line(
            people, "copies", lambda real: int(counts.copies_of(rows, real).sum()), n, None,
            "copies of a training row are {} of the rows",
        ),
        _share_line(
            people, "distinguishing cells",
            lambda real: int(counts.distinguishing_cells(rows, real, release.disclosed_at).any(axis=1).sum()), n, None,
            "a value that one training person alone has is handed out by {} of the rows",
        ),
        _share_line(
            people, "RepU", repeated, n, len(people.training),
            f"unique by {shown} among training people and again among the rows are {{}} of the people",
        ),
        _share_line(
            people, "linkage", lambda real: int(counts.linked(rows, real, people.keys, people.k).sum()), n, None,
            f"{people.k} or fewer training people share {shown} with {{}} of the rows",
        ),
    ]  # fmt: skip


def _attack_targets(people: People, release: Release) -> tuple[list[Finding], pd.DataFrame]:
    """Return the lines of DiSCO and of inference for their worst targets, and the table of all targets."""
    targeted = people.sample(people.matched, people.n_attacks, "targets")
    controls = people.sample(people.control, people.n_attacks, "controls")
    names = [people.features[j].name for j in people.targets]
    rows, attacks = [], []
    for j, name in zip(people.targets, names):
        measured_all = counts.measure_target(people.training, release.rows, people.keys, j)
        alike, chance = (
            counts.measure_target(real, release.rows, people.keys, j)["DiSCO"]
            for real in (people.matched, people.control)
        )
        known = [i for i in range(len(people.features)) if i != j]
        shares = [np.nan] * len(OF_INFERENCE)
        if known:
            attack = inference(
                release.rows, targeted, controls, people.features, known, j,
                rng=people.rng("inference", release.name, name),
                confidence=1 - (1 - people.confidence) / len(names),
            )  # fmt: skip
            attacks.append((name, attack))
            shares = [attack.attack.share, attack.control.share, attack.baseline.share, attack.risk.value]
        rows.append(
            {**measured_all, "DiSCO_matched": alike, "DiSCO_control": chance, **dict(zip(OF_INFERENCE, shares))}
        )
    table = pd.DataFrame(rows, index=pd.Index(names, name="target", tupleize_cols=False))
    worst = int(np.argmax(table["DiSCO"].to_numpy()))
    target, shown = names[worst], listing([people.features[j].name for j in people.keys])

    def disclosed(original: Floats) -> int:
        measured_one = counts.measure_target(original, release.rows, people.keys, people.targets[worst])
        return round(float(measured_one["DiSCO"]) * len(original) / 100)

    template = f"{shown} determine {target}, correctly, for {{}} of the training people"
    lines = [_share_line(people, "DiSCO", disclosed, 0, len(people.training), template)]
    if attacks:
        name, attack = max(attacks, key=lambda each: (not each[1].is_worthless, each[1].risk.low, each[1].risk.value))
        words = f"{name} is guessed correctly for {{}} of training people"
        lines.append(_attack_line("inference", attack, words, people.confidence, len(attacks)))
    return lines, table


def _attack_line(measure: str, attack: Attack, sentence: str, confidence: float, times: int = 1) -> Finding:
    """Return the line of an attack with control and baseline, corrected for the choice among `times` attacks."""
    rate, control, baseline = attack.attack, attack.control, attack.baseline
    compared = f", of others for {control.share:.1%}, by guessing for {baseline.share:.1%}"
    leaks = attack.risk.low > 0 and times * attack.chance <= _one_sided(confidence)
    words = sentence.format(_in_words(rate.estimate)) + compared + f"; risk {_in_words(attack.risk)}."
    if rate.n == 0:
        words = "no attack could be constructed from the rows."
    verdict = WORTHLESS if attack.is_worthless else LEAKS if leaks else NOTHING
    return Finding(
        measure,
        rate.estimate,
        words,
        rate.n,
        rate.share,
        control.share,
        baseline.share,
        attack.risk,
        min(times * attack.chance, 1.0),
        verdict if rate.n else NOTHING,
    )


def _attack_rows(people: People, release: Release) -> list[Finding]:
    """Return the lines of singling out and linkability."""
    features, confidence = people.features, people.confidence
    lines = []
    for n_columns, name in ((1, "singling out, one column"), (N_COLUMNS, "singling out")):
        attack = singling_out(
            release.rows, people.matched, people.control, features, n_attacks=people.n_attacks,
            n_columns=n_columns, rng=people.rng(name, release.name), confidence=confidence,
        )  # fmt: skip
        lines.append(_attack_line(name, attack, "a guess that one training person is so is right for {}", confidence))
    if len(features) > 1:
        linking = linkability(
            release.rows,
            people.sample(people.matched, people.n_attacks, "linked"),
            people.sample(people.control, people.n_attacks, "linked controls"),
            features,
            (range(0, len(features), 2), range(1, len(features), 2)),
            rng=people.rng("linkability", release.name),
            confidence=confidence,
        )
        lines.append(
            _attack_line("linkability", linking, "two halves of a training person are joined for {}", confidence)
        )
    return lines


def _membership(people: People, release: Release) -> list[Finding]:
    lines = []
    if release.settings is not None:
        refused = [
            people.sample(rows[~wanted], people.most, "refused", i)
            for i, (rows, wanted) in enumerate(
                ((people.training, people.trained_wanted), (people.control, people.control_wanted))
            )
        ]
        both, n = np.concatenate(refused), len(refused[0])
        _, owner, measures = explain_rows(people.explainer, both, release.settings)
        scores = {"distance": measured(owner, measures["gower"], len(both))}
        if "plausibility" in measures:
            scores["plausibility"] = measured(owner, measures["plausibility"], len(both))
        for name, score in scores.items():
            lines += _membership_lines(name, Membership.of(score[:n], score[n:], people.confidence), people.confidence)
    queried = [
        _query_repeatedly(people, release, rows[wanted], group)
        for rows, wanted, group in (
            (people.training, people.trained_wanted, "members"),
            (people.control, people.control_wanted, "others"),
        )
    ]
    found = Membership.of(queried[0], queried[1], people.confidence)
    return lines + _membership_lines("repeated queries", found, people.confidence)


def _query_repeatedly(people: People, release: Release, rows: Floats, group: str) -> Floats:
    """Return the scores of people with the wanted decision by the rows returned for queries about them."""
    queried = people.sample(rows, people.most, "asked", group)
    if not len(queried):
        return np.empty(0)
    mutable = np.setdiff1d(np.arange(rows.shape[1]), people.fixed)
    refused = people.own[~people.own_wanted]
    if release.settings is None:
        given = np.repeat(queried, N_QUERIES, axis=0)
        returned = draw_like(people.explainer.generator_, given, np.ones(len(given), dtype=bool), people.seed)
        owner, disclosed_at = np.arange(len(given)), np.ones(returned.shape, dtype=bool)
    elif not len(refused):
        return np.full(len(queried), np.nan)
    else:
        queries = queries_about(queried, refused, people.fixed, N_QUERIES, people.rng("queries", group))
        returned, owner, _ = explain_rows(people.explainer, queries, release.settings)
        disclosed_at = returned != queries[owner]
    score = partial(surprise, own=people.own[:, mutable])
    person = owner // N_QUERIES
    return np.array(
        [
            score(row[mutable], returned[person == i][:, mutable], disclosed_at[person == i][:, mutable])
            for i, row in enumerate(queried)
        ]
    )


def _membership_lines(attack: str, found: Membership, confidence: float) -> list[Finding]:
    """Return the lines of one membership attack: AUC, and rates at low false positive rates."""
    n = found.members.size
    if not n or not found.others.size:
        return []
    area = found.area
    words = f"by {attack} a training person is above another in {_in_words(area)} of pairs; 50 % is guessing."
    verdict = LEAKS if area.low > 0.5 else (WORTHLESS if area.value <= 0.5 else NOTHING)
    gain = Estimate(2 * area.value - 1, 2 * area.low - 1, 2 * area.high - 1)
    name = f"membership by {attack}"
    lines = [Finding(f"{name}, AUC", area, words, n, baseline=0.5, risk=gain, verdict=verdict)]
    for share, rate in zip(FALSE_POSITIVES, found.found):
        expected = expected_at(found.others.size, share)
        chance = chance_at(found.members, found.others, share)
        words = (
            f"{_in_words(rate.estimate)} of training people are found while {share:.1%} of others are taken for them."
        )
        shown = LEAKS if chance <= _one_sided(confidence) else NOTHING
        line = Finding(
            f"{name}, found at {share:.1%}", rate.estimate, words, n, baseline=expected, chance=chance, verdict=shown
        )
        lines.append(line)
    return lines
