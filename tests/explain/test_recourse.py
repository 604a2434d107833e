"""Recourse: the cheapest actions whose consequences reach the decision with the given probability."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import MCCE, InputError
from mcce.constraints import read
from mcce.explain.problem import read_factuals
from mcce.explain.recourse import Recourse, explain_by_actions, lower_bound
from mcce.rng import RowStreams

OPTIONS = {
    "sparse": True,
    "floor": None,
    "measures": None,
    "feature_weights": None,
    "max_changes": None,
    "n_samples": 1000,
    "n_counterfactuals": 1,
}


def search(explainer, people, world, actions, assurance=0.9, **options):
    """Search with a known process in place of the fitted chains."""
    problem = explainer._problem(read(()), None, None, **{**OPTIONS, **options})
    schema = explainer.generator_.schema_
    factuals = read_factuals(people, schema, explainer.decision_, explainer.learned_.training.spots)
    columns = np.array([schema.position(name) for name in actions])
    return explain_by_actions(problem, factuals, Recourse((world,), columns, assurance), False)


# ---- a small finite process: all actions are enumerated


NOISE = np.array([0.03, 0.4, 0.57])  # of 0, 1, 2


class Finite:
    """c = a + noise; b has no effect."""

    def follow(self, rows, acted, factuals, keys, draws):
        rows = rows.copy()
        noise = np.searchsorted(np.cumsum(NOISE), RowStreams(7, keys, draws).uniform())
        follows = acted[:, 0] & ~acted[:, 2]
        rows[follows, 2] = (rows[:, 0] + noise)[follows]
        return rows


@pytest.fixture(scope="module")
def finite():
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 4, (2, 400)).astype(float)
    c = a + rng.choice(3, 400, p=NOISE)
    X = pd.DataFrame({"a": a, "b": b, "c": c})
    return MCCE(lambda rows: rows["b"] + rows["c"] >= 5, decision=True, random_state=1).fit(X, relations=()), X


def cheapest(own, assurance):
    """Return the number and the sum of steps of the cheapest actions, by trying all of them."""
    best = np.inf, np.inf
    for a, b in product([None, 0, 1, 2, 3], repeat=2):
        acts = [(value, name) for value, name in ((a, "a"), (b, "b")) if value is not None]
        if not acts or any(value == own[name] for value, name in acts):
            continue
        b_new = own["b"] if b is None else b
        c = np.array([own["c"]]) if a is None else a + np.arange(3)
        chance = ((b_new + c >= 5) * (1.0 if a is None else NOISE)).sum()
        if chance >= assurance:
            best = min(best, (len(acts), sum(abs(value - own[name]) / 3 for value, name in acts)))
    return best


@pytest.mark.parametrize("assurance", [0.9, 0.3])
def test_cheapest_actions_of_a_finite_problem_are_found(finite, assurance):
    explainer, X = finite
    people = X[X["b"] + X["c"] < 5].head(60).reset_index(drop=True)
    found, _, reasons = search(explainer, people, Finite(), ["a", "b"], assurance, floor=0.0)
    truth = [cheapest(people.iloc[i], assurance) for i in range(len(people))]
    assert np.isfinite(truth).all()
    assert not reasons
    winners = found.winners
    assert winners.owner.tolist() == list(range(len(people)))
    own = people.to_numpy()[winners.owner]
    steps = np.abs(winners.rows - own) * ((winners.rows != own) & ~winners.incidental) / 3
    assert np.column_stack([(steps > 0).sum(axis=1), steps.sum(axis=1)]) == pytest.approx(np.array(truth))


def test_factual_without_recourse_reports_the_best_probability(finite):
    X = finite[1]
    people = pd.DataFrame({"a": [0.0], "b": [0.0], "c": [0.0]})
    strict = MCCE(lambda rows: rows["b"] + rows["c"] >= 7, decision=True, random_state=1).fit(X, relations=())
    found, _, reasons = search(strict, people, Finite(), ["a", "b"], 0.99, floor=0.0)
    assert not found.winners.owner.size  # a = b = 3 reaches it if the noise is not 0: in 97 of 100 cases
    assert reasons[0].startswith("no action reaches the decision with probability 0.99; the best that was found does ")
    assert 0.9 <= float(reasons[0].split()[-1]) <= 0.97


def test_lower_bounds_match_clopper_pearson():
    from scipy.stats import binomtest

    truth = [binomtest(k, 400, alternative="greater").proportion_ci(0.95).low for k in (0, 1, 360, 400)]
    assert lower_bound(np.array([0, 1, 360, 400]), 400) == pytest.approx(truth)


# ---- a linear process


class Linear:
    """salary = 20 + 8 education + .3 age + noise (sd 4); savings = salary / 2 + noise (sd 6)."""

    def __init__(self, keep):
        self.keep = keep

    def follow(self, rows, acted, factuals, keys, draws):
        streams, rows = RowStreams(7, keys, draws), rows.copy()
        new = np.sqrt(1.0 - self.keep**2)
        noise = factuals[:, 2] - self.salary(factuals), factuals[:, 3] - factuals[:, 2] / 2
        salary = self.salary(rows) + self.keep * noise[0] + new * 4 * streams.normal()
        rows[:, 2] = np.where(acted[:, 2], rows[:, 2], salary.round(1))
        savings = rows[:, 2] / 2 + self.keep * noise[1] + new * 6 * streams.normal()
        rows[:, 3] = np.where(acted[:, 3], rows[:, 3], savings.round(1))
        return rows

    @staticmethod
    def salary(rows):
        return 20 + 8 * rows[:, 1] + 0.3 * rows[:, 0]


def approved(rows):
    return 1 / (1 + np.exp(-(0.2 * (rows["salary"] - 45) + 0.1 * (rows["savings"] - 22))))


@pytest.fixture(scope="module")
def linear():
    rng = np.random.default_rng(0)
    education, age = rng.integers(0, 4, 800).astype(float), rng.integers(20, 65, 800).astype(float)
    salary = (20 + 8 * education + 0.3 * age + rng.normal(0, 4, 800)).round(1)
    savings = (0.5 * salary + rng.normal(0, 6, 800)).round(1)
    X = pd.DataFrame({"age": age, "education": education, "salary": salary, "savings": savings})
    return MCCE(approved, decision=(0.5, 1), fixed=["age"], random_state=1).fit(X, relations=()), X


def test_known_noise_gives_the_consequences_of_the_equations(linear):
    explainer, X = linear
    people = X[approved(X) < 0.5].head(60).reset_index(drop=True)
    found, table, _ = search(explainer, people, Linear(1.0), ["education", "savings"])
    rows, own = found.winners.rows, people.to_numpy()[found.winners.owner]
    assert len(rows) > 40
    acted = (rows != own) & ~found.winners.incidental
    again = Linear(1.0).follow(
        np.where(acted, rows, own), acted, own, np.zeros(len(rows), "u8"), np.zeros(len(rows), "u8")
    )
    assert rows == pytest.approx(again)
    assert (approved(pd.DataFrame(rows, columns=X.columns)) >= 0.5).all()
    assert (found.winners.reported["p_valid"] == 1.0).all()
    assert (acted.sum(axis=1) >= 1).all()
    assert not acted[:, [0, 2]].any()
    assert set(table["feature"]) == {"salary", "savings"}
    assert (table["low"] == table["high"]).all()


@pytest.mark.slow
def test_probability_is_calibrated_and_at_least_the_assurance(linear):
    explainer, X = linear
    people = X[approved(X) < 0.5].head(60).reset_index(drop=True)
    found = search(explainer, people, Linear(0.0), ["education", "savings"], 0.8)[0]
    winners, own = found.winners, people.to_numpy()[found.winners.owner]
    acted = (winners.rows != own) & ~winners.incidental
    n = 2000
    rows = (np.repeat(part, n, axis=0) for part in (np.where(acted, winners.rows, own), acted, own))
    keys = np.repeat(np.arange(len(own), dtype="u8"), n)
    after = Linear(0.0).follow(*rows, keys, np.tile(np.arange(n, dtype="u8"), len(own)))
    truth = (approved(pd.DataFrame(after, columns=X.columns)) >= 0.5).to_numpy().reshape(-1, n).mean(axis=1)
    promised, error = winners.reported["p_valid"], winners.reported["p_valid_se"]
    assert len(own) > 30
    assert abs((promised - truth).mean()) < 3 * np.sqrt((truth * (1 - truth) / 400).mean() / len(own)) + 0.002
    assert (np.abs(promised - truth) <= 4 * np.sqrt(truth * (1 - truth) / 400) + 0.02).all()
    assert error == pytest.approx(np.sqrt(promised * (1 - promised) / 400))
    assert (truth >= 0.8 - 0.02).all()


# ---- with a fitted explainer


GRAPH = "age -> education; age, education -> salary; age, salary -> savings"
SCHOOL = ["none", "school", "degree"]


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(2)
    age = rng.integers(20, 65, 500)
    education = rng.integers(0, 3, 500)
    salary = np.round(20 + 8 * education + age / 5 + rng.normal(0, 3, 500))
    savings = np.round(salary / 8 + rng.normal(0, 1, 500), 1)
    levels = pd.Categorical(np.array(SCHOOL)[education], SCHOOL, ordered=True)
    return pd.DataFrame({"savings": savings, "salary": salary, "age": age, "education": levels})


def score(rows):
    return (rows["salary"] + 4 * rows["savings"]) / 120


@pytest.fixture(scope="module")
def explainer(people):
    sampler = mcce.MixtureSampler(max_components=2)
    made = MCCE(score, fixed=["age"], graph=GRAPH, sampler=sampler, random_state=1)
    return made.fit(people, relations=())


@pytest.fixture(scope="module")
def refused(people):
    return people[score(people) < 0.45].head(8)


@pytest.fixture(scope="module")
def found(explainer, refused):
    return explainer.recourse(refused, ["education", "savings"], n_samples=300)


def test_changes_consist_of_actions_and_consequences(found, refused):
    changes = found.changes()
    assert len(found) >= 5
    assert set(changes["role"]) == {"action", "consequence"}
    acts = changes[changes["role"] == "action"]
    assert set(acts["feature"]) <= {"education", "savings"}
    assert (acts.groupby("id").size() == found.measures["L0"].droplevel("rank")).all()
    assert set(changes.loc[changes["role"] == "consequence", "feature"]) <= {"salary", "savings"}
    assert (found.frame["age"].droplevel("rank") == refused.loc[found.frame.index.get_level_values("id"), "age"]).all()
    assert (found.measures["p_valid"] >= 0.85).all()
    assert (found.measures["prediction"] >= 0.5).all()
    listed = found.consequences
    assert set(zip(changes["id"], changes["feature"])) - set(zip(acts["id"], acts["feature"])) <= set(
        zip(listed["id"], listed["feature"])
    )


@pytest.mark.slow
def test_same_seed_gives_same_answer_for_any_batch(explainer, refused, found):
    for ids in (refused.index[:1], refused.index[::-1]):
        again = explainer.recourse(refused.loc[ids], ["education", "savings"], n_samples=300)
        both = [id for id in ids if id in found.frame.index.get_level_values("id")]
        pd.testing.assert_frame_equal(again.frame.loc[both], found.frame.loc[both])
        pd.testing.assert_frame_equal(again.measures.loc[both], found.measures.loc[both])


def test_same_seed_gives_same_answer_for_any_block_size(explainer, refused, found, monkeypatch):
    monkeypatch.setattr("mcce.explain.problem.POOL_BYTES", 1)
    options = {"actions": ["education", "savings"], "n_samples": 300}
    again = explainer.recourse(refused, **options)
    pd.testing.assert_frame_equal(again.frame, found.frame)
    pd.testing.assert_frame_equal(again.consequences, found.consequences)
    assert found.consequences["id"].is_monotonic_increasing


@pytest.mark.slow
def test_same_seed_gives_same_answer_for_any_number_of_jobs(people, refused, found):
    sampler = mcce.MixtureSampler(max_components=2)
    other = MCCE(score, fixed=["age"], graph=GRAPH, sampler=sampler, random_state=1, n_jobs=2)
    again = other.fit(people, relations=()).recourse(refused, ["education", "savings"], n_samples=300)
    pd.testing.assert_frame_equal(again.frame, found.frame)
    pd.testing.assert_frame_equal(again.consequences, found.consequences)


@pytest.mark.slow
def test_several_recommendations_act_on_different_features(explainer, refused):
    several = explainer.recourse(refused, n_samples=300, n_counterfactuals=2, assurance=0.8)
    acts = several.changes().query("role == 'action'")
    sets = acts.groupby(["id", "rank"])["feature"].agg(frozenset)
    pairs = [group.tolist() for _, group in sets.groupby("id") if len(group) > 1]
    assert pairs
    assert all(not (one <= other or other <= one) for one, other in pairs)


@pytest.mark.slow
def test_constraints_hold_for_consequences(explainer, refused, found):
    low = mcce.allow("salary", high=40)
    kept = explainer.recourse(refused, ["education", "savings"], n_samples=300, constraints=[low])
    assert (found.frame["salary"] > 40).any()
    assert len(kept)
    assert (kept.frame["salary"] <= 40).all()


@pytest.mark.slow
def test_number_of_actions_is_limited(explainer, people):
    poor = people[score(people) < 0.36].head(4)
    free = explainer.recourse(poor, n_samples=300, assurance=0.8)
    one = explainer.recourse(poor, n_samples=300, assurance=0.8, max_actions=1)
    assert free.measures["L0"].max() > 1
    assert (one.measures["L0"] == 1).all()
    assert one.run.settings["actions"] == ["savings", "salary", "education"]


def test_unexplained_factuals_have_a_reason(explainer, people):
    poor = people[score(people) < 0.36].head(4)
    none = explainer.recourse(poor, ["education"], n_samples=300, assurance=0.99)
    assert none.unexplained["reason"].str.contains("with probability 0.99; the best that was found does with 0").any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"actions": "education"}, "actions is 'education'; give a list of features"),
        ({"actions": []}, r"actions is \[\]; give a list of features"),
        ({"actions": ["age"]}, "actions names 'age', which is fixed; leave it out, or do not fix it"),
        ({"actions": ["salery"]}, "actions names 'salery', which is not a feature; did you mean 'salary'"),
        ({"assurance": 1.5}, "assurance is 1.5; it must be"),
        ({"keep": 2}, "keep is 2; it must be a number from 0 to 1"),
        ({"max_actions": 4}, "max_actions is 4; it must be"),
        ({"takes": {"pets": "2 years"}}, "takes names 'pets', which is not among the actions; these are 'savings'"),
        ({"takes": {"education": "2 moons"}}, "takes.*'2 moons'; give a time as '2 years', '18 months' or '30 days'"),
        ({"takes": {"education": "2 years"}}, "no feature that may change has the name of an age or a duration"),
        ({"takes": {"education": {"pets": 2}}}, "give a text as '2 years', or steps of numeric columns as"),
    ],
)
def test_invalid_options_raise(explainer, refused, options, message):
    with pytest.raises(InputError, match=message):
        explainer.recourse(refused, **options)


def test_recourse_requires_a_graph(people, refused):
    plain = MCCE(score, fixed=["age"], random_state=1).fit(people, relations=())
    with pytest.raises(InputError, match=r"recourse\(\) needs a causal graph.*graph="):
        plain.recourse(refused)


@pytest.mark.slow
def test_actions_that_do_not_cause_the_outcome_warn(people, refused):
    graph = mcce.Graph.from_text(GRAPH + "; salary -> default", outcome="default")
    made = MCCE(score, fixed=["age"], graph=graph, sampler=mcce.MixtureSampler(max_components=1), random_state=1)
    made.fit(people, relations=())
    with pytest.warns(mcce.MCCEWarning, match="actions names 'savings'.*not among the causes of 'default'"):
        made.recourse(refused.head(1), ["education", "savings"], n_samples=100)
    found = made.recourse(refused.head(1), n_samples=100)
    assert found.run.settings["actions"] == ["salary", "education"]


LANGUAGES = {
    "en": ("Possible action: ", "What usually follows: ", "of 100 cases"),
    "de": ("Mögliche Maßnahme – ", "In der Regel folgt daraus: ", "von 100 Fällen"),
    "fr": ("Action possible", "Ce qui s’ensuit en général", "sur 100"),
    "nb": ("Mulig tiltak: ", "Dette følger vanligvis: ", "av 100"),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_letters_name_action_consequence_and_probability(found, language):
    changes = found.changes().query("feature == 'education'")
    id = changes["id"].iloc[0]
    letter = " ".join(mcce.report.letter(found, id, language=language).split())
    assert all(part in letter for part in LANGUAGES[language]), letter
    action, rest = letter.split(LANGUAGES[language][1])
    assert "education" in action
    assert "salary" in rest.split("100")[0]
    cases = int(100 * found.measures["p_valid"].loc[id].iloc[0] + 1e-9)
    assert str(min(cases, 99)) in rest


def test_plot_shows_the_usual_consequences(found):
    import matplotlib.pyplot as plt

    usual = found.consequences.query("feature == 'salary' and low < high").iloc[0]
    ax = found.plot(usual["id"])
    written = {text.get_text() for text in ax.texts}
    assert f"{usual['low']:.0f} to {usual['high']:.0f}" in written
    assert "salary (consequence)" in [label.get_text().replace("\n", " ") for label in ax.get_yticklabels()]
    plt.close(ax.figure)


@pytest.mark.slow
def test_results_and_explainers_round_trip(explainer, refused, found, tmp_path):
    found.save(tmp_path / "found.mcce")
    again = mcce.Counterfactuals.load(tmp_path / "found.mcce")
    pd.testing.assert_frame_equal(again.consequences, found.consequences)
    pd.testing.assert_frame_equal(again.changes(), found.changes())
    assert again.sentence(found.frame.index[0][0]) == found.sentence(found.frame.index[0][0])
    explainer.save(tmp_path / "explainer.mcce")
    loaded = MCCE.load(tmp_path / "explainer.mcce", model=score)
    redone = loaded.recourse(refused, ["education", "savings"], n_samples=300)
    pd.testing.assert_frame_equal(redone.frame, found.frame)
    pd.testing.assert_frame_equal(redone.measures, found.measures)


@pytest.mark.slow
def test_time_increases_ages_and_derived_columns_are_recomputed(people):
    X = people.assign(months=people["salary"] * 12.0)
    made = MCCE(
        lambda rows: rows["months"] / 960,
        graph=GRAPH,
        derived={"months": "12 * salary"},
        sampler=mcce.MixtureSampler(max_components=2),
        constraints=[mcce.allow("age", direction="increase")],
        random_state=1,
    ).fit(X, relations=())
    some = X[(X["education"] == "none") & (X["age"] < 50)].head(8)
    found = made.recourse(some, ["education"], takes={"education": "2 years"}, assurance=0.6, n_samples=300)
    assert len(found) >= 3
    own = some.loc[found.frame.index.get_level_values("id")]
    assert (found.frame["age"].to_numpy() == own["age"] + 2).all()
    assert (found.frame["months"] == 12 * found.frame["salary"]).all()
    assert (found.frame["months"].to_numpy() != own["months"]).all()
