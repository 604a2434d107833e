"""Rules for groups: coverage compared with enumeration, and changed rows checked with the model."""

import itertools
import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import MCCE, InputError
from mcce.explain.group_rules import Reach, candidate_groups, choose, holds
from mcce.report.rule_set import Term

VALUES = range(4)


def accepted(rows):
    """Return which rows are accepted: group x by a and b, others by c."""
    return np.where(rows["g"] == "x", rows["a"] + rows["b"] >= 5, rows["c"] >= 3).astype(float)


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({name: rng.integers(0, 4, 200) for name in "abc"})
    X["g"] = pd.Categorical(rng.choice(["x", "y", "z"], 200))
    X["age"] = rng.integers(20, 70, 200)
    explainer = MCCE(accepted, fixed=["g", "age"], random_state=1).fit(X, relations=())
    people = X[accepted(X) == 0].head(30)
    found = explainer.explain(people, sparse=True, floor=0, n_samples=50, constraints=["a <= was(a) + 2"])
    return SimpleNamespace(explainer=explainer, X=X, people=people, found=found, rules=found.rules(k=2, slack=0))


def best_coverage_of_two(people):
    """Return the largest number of rows covered by two rules: all changes of a, b and c to values, by group."""
    covers = set()
    for to in itertools.product([None, *VALUES], repeat=3):
        moved = people.assign(**{name: value for name, value in zip("abc", to) if value is not None})
        reached = (accepted(moved) == 1) & (moved["a"] <= people["a"] + 2)
        for group in [[], ["x"], ["y"], ["z"]]:
            covers.add(tuple(reached & (people["g"].isin(group) if group else True)))
    table = np.array(sorted(covers)).astype(int)
    return (table.sum(axis=1)[:, None] + table.sum(axis=1) - table @ table.T).max()


def test_coverage_matches_enumeration_of_rule_sets(small):
    assert small.rules.table.loc["all", "reached"] == best_coverage_of_two(small.people)


def test_greedy_choice_compared_with_all_candidate_sets():
    """Random candidates: at least 1 - 1/e of the best set, and with slack no less than that share of the greedy one."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        cost = np.where(rng.random((6, 25)) < 0.25, rng.random((6, 25)), np.inf)
        member = np.vstack([np.ones(25, dtype=bool), rng.random((3, 25)) < 0.5])
        reach = Reach([(Term(c, "by", 1.0),) for c in range(6)], cost, np.isfinite(cost))
        rules = list(itertools.product(range(6), range(4)))

        def coverage(chosen, reach=reach, member=member):
            return np.any([reach.reached[c] & member[g] for c, g in chosen], axis=0).sum()

        best = max(coverage(some) for some in itertools.combinations(rules, 2))
        greedy = coverage(choose(reach, member, np.array([0, 1, 1, 1]), 2, 0.0))
        assert greedy >= (1 - 1 / np.e) * best
        loose = coverage(choose(reach, member, np.array([0, 1, 1, 1]), 2, 0.3))
        assert loose >= np.ceil(0.7 * greedy)


def test_rules_are_distinct():
    cost = np.full((2, 10), np.inf)
    cost[0, :9] = 0.1
    cost[1, 9] = 0.1
    reach = Reach([(Term(0, "by", 1.0),), (Term(1, "by", 1.0),)], cost, np.isfinite(cost))
    everyone = np.ones((1, 10), dtype=bool)
    assert choose(reach, everyone, np.array([0]), 4, 0.0) == [(0, 0), (1, 0)]


def test_changed_rows_satisfy_the_rule_and_the_decision(small):
    """Checked with the model and the constraint; fixed columns and columns not named by a rule are unchanged."""
    rules, people = small.rules, small.people
    moved = rules.found.frame.droplevel("rank")
    assert (accepted(moved) == 1).all()
    own = people.loc[moved.index]
    assert (moved["a"] <= own["a"] + 2).all()
    for i, row in moved.iterrows():
        rule = rules.rules[rules.rule_of[i] - 1]
        named = {term.feature: term for term in rule.change}
        assert not {"g", "age"} & set(named)
        for name in moved.columns:
            before, after = own.loc[i, name], row[name]
            if name not in named:
                assert before == after
            elif named[name].how == "by":
                assert after == before + named[name].value
            else:
                bound = max if named[name].how == "at least" else min
                assert after == bound(before, named[name].value)
        for feature, how, value in rule.group:
            mine = own.loc[i, feature]
            assert mine == value if how == "is" else mine < value if how == "below" else mine >= value
    reached = rules.rule_of[rules.rule_of > 0].index
    assert sorted(reached) == sorted(moved.index)
    assert len(rules.rule_of) == len(people)


def test_same_seed_gives_same_rules(small):
    again = small.found.rules(k=2, slack=0)
    assert again.rules == small.rules.rules
    pd.testing.assert_frame_equal(again.table, small.rules.table)


def moved_by(rule, people):
    """Return the people of a rule's group and their changed rows, computed with pandas."""
    inside = pd.Series(True, index=people.index)
    for feature, how, value in rule.group:
        column = people[feature]
        inside &= column == value if how == "is" else column < value if how == "below" else column >= value
    own = people[inside]
    moved = own.copy()
    for feature, how, value in rule.change:
        column = own[feature]
        bounded = column.clip(lower=value) if how == "at least" else column.clip(upper=value)
        moved[feature] = column + value if how == "by" else bounded
    return own, moved


def test_rules_applied_to_other_people(small):
    """Coverage of people who took no part in the selection, against brute force."""
    others = small.X.drop(small.people.index)
    refused = others[accepted(others) == 0]
    applied = small.rules.apply(others)
    covered = set()
    for number, rule in enumerate(small.rules.rules, 1):
        own, moved = moved_by(rule, refused)
        valid = (moved[list("abc")].isin(VALUES)).all(axis=1) & (moved["a"] <= own["a"] + 2) & (accepted(moved) == 1)
        assert applied.table.loc[number, ["people", "reached"]].tolist() == [len(own), valid.sum()]
        covered |= set(own.index[valid])
    assert applied.rules == small.rules.rules
    assert applied.rule_of.index.tolist() == refused.index.tolist()
    assert set(applied.rule_of.index[applied.rule_of > 0]) == covered
    assert 0 < len(covered) == applied.table.loc["all", "reached"] == len(applied.found)


def test_rules_applied_to_the_same_people(small):
    again = small.rules.apply(small.people)
    pd.testing.assert_frame_equal(again.table, small.rules.table)
    pd.testing.assert_frame_equal(again.apply(small.people).found.frame, small.rules.found.frame)


def test_rules_without_groups(small):
    assert small.found.rules(k=1, by=[], max_changes=1).rules[0].group == ()


@pytest.mark.slow
def test_changed_rows_reach_the_floor_and_derived_columns_are_recomputed():
    X = mcce.datasets.load_loans(800).X[["age", "salary", "savings", "housing", "loan_amount"]]
    X["ratio"] = X["loan_amount"] / X["salary"]
    fixed = ["age", "housing"]

    def score(rows):
        return (rows["salary"] + rows["savings"]) / 200_000 - rows["ratio"] / 20

    explainer = MCCE(score, fixed=fixed, derived={"ratio": "loan_amount / salary"}, random_state=1).fit(X)
    people = X[score(X) < 0.5].head(120)
    rules = explainer.group_rules(people, k=3, n_samples=300)
    moved = rules.found.frame.droplevel("rank")
    assert len(moved) >= 0.8 * len(people)
    np.testing.assert_allclose(moved["ratio"], moved["loan_amount"] / moved["salary"])
    assert (score(moved) >= 0.5).all()
    assert (rules.found.measures["plausibility"] >= 0.05).all()
    pd.testing.assert_frame_equal(moved[fixed], people.loc[moved.index, fixed], check_names=False)
    assert all(term.feature != "ratio" for rule in rules.rules for term in rule.change)
    assert (rules.found.unexplained["reason"] == "no rule reaches the decision").all()
    assert len(rules.found.by("housing").table)


def test_groups(small):
    schema = small.explainer.generator_.schema_
    matrix = schema.encode(small.people, "X").matrix
    groups = candidate_groups(matrix, [3, 4], schema.features)
    assert groups[0] == ()
    assert all(len(group) <= 2 for group in groups)
    members = [holds(group, matrix) for group in groups]
    assert all(member.sum() >= 5 for member in members)
    assert len({member.tobytes() for member in members}) == len(groups)
    assert any(
        len(group) == 2 and {term.feature for term in group} == {4} and {"below", "at least"} == {t.how for t in group}
        for group in groups
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.found.rules(by=["agee"]), r"by names 'agee', which is not a feature; did you mean 'age'"),
        (lambda s: s.found.rules(by="age"), r"by is 'age'; give a list of column names"),
        (lambda s: s.found.rules(k=0), r"k is 0"),
        (lambda s: s.found.rules(slack=1), r"slack is 1"),
        (lambda s: s.found.rules(confidence=2), r"confidence is 2"),
        (lambda s: s.found[s.people.index[0]].rules(), r"this result was loaded from a file or has one factual"),
        (lambda s: s.explainer.explain(s.people, n_samples=10).rules(), r"explain with sparse=True"),
        (lambda s: s.rules.apply(s.X[accepted(s.X) == 1]), r"every row already has the wanted decision"),
        (lambda s: pickle.loads(pickle.dumps(s.rules)).apply(s.people), r"these rules were loaded from a file"),
    ],
)
def test_invalid_arguments_raise(small, call, message):
    with pytest.raises(InputError, match=message):
        call(small)


def test_all_rows_accepted_raises(small):
    accepted_people = pd.DataFrame(
        {"a": [3], "b": [3], "c": [3], "g": pd.Categorical(["x"], ["x", "y", "z"]), "age": [30]}
    )
    found = small.explainer.explain(accepted_people, sparse=True, n_samples=10)
    with pytest.raises(InputError, match="no factual lacked the wanted decision"):
        found.rules()


@pytest.mark.slow
def test_decision_given_as_label(small):
    """The label of the changed rows is longer than that of the factuals."""
    X = small.people

    def answer(rows):
        return np.array(["granted" if c >= 3 else "no" for c in rows["c"]])

    labelled = MCCE(answer, decision="granted", fixed=["g"]).fit(X)
    found = labelled.group_rules(X[X["c"] < 3], k=1, n_samples=50).found
    assert len(found)
    assert set(found.measures["prediction"]) == {"granted"}


def test_mostly_suspicious_changes_are_dropped():
    changes = [(Term(0, "by", 1.0),), (Term(1, "by", 1.0),), (Term(2, "by", 1.0),)]
    cost = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, np.inf], [1.0, np.inf, np.inf]])
    fit = np.array([[True, False, False], [True, False, False], [True, False, False]])
    assert Reach(changes, cost, fit).drop_unfit().changes == [changes[2]]
    assert Reach(changes[:2], cost[:2], fit[:2]).drop_unfit().changes == changes[:2]
