"""Rates and attacks: against anonymeter's counts, brute force, and distributions that are known."""

import gzip
import io
import json
from math import comb
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import fisher_exact, norm
from sklearn.metrics import roc_auc_score

from mcce.diagnostics.disclosure_risk import attacks, extraction, rates
from mcce.diagnostics.disclosure_risk.extraction import extract
from mcce.diagnostics.disclosure_risk.membership import by_person, surprise
from mcce.table import Schema

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "disclosure"
STORED = json.loads(gzip.decompress((FIXTURES / "anonymeter.json.gz").read_bytes()))
TABLES = {name: pd.read_csv(io.StringIO(text)) for name, text in STORED["tables"].items()}
SCHEMA = Schema.from_data(TABLES["ori"])
PEOPLE, CONTROL, RELEASED = (SCHEMA.encode(TABLES[name]).matrix for name in ("ori", "control", "syn"))


def seeded():
    return np.random.default_rng(3)


@pytest.mark.parametrize("told", STORED["rates"], ids=lambda told: str(told["asked"]))
def test_rates_and_risks_are_those_of_anonymeter(told):
    n, success, baseline, control = told["asked"]
    found = (np.arange(n) < count for count in (success, control, baseline))
    attack = attacks.Attack.of_people(*found, 0.95)
    assert attack.chance == pytest.approx(fisher_exact([[success, n - success], [control, n - control]], "greater")[1])
    assert (attack.attack.middle, attack.attack.error) == pytest.approx(tuple(told["attack_rate"]))
    assert (attack.control.middle, attack.control.error) == pytest.approx(tuple(told["control_rate"]))
    risk = attack.risk
    assert (risk.value, risk.low, risk.high) == pytest.approx((told["risk"], *told["risk_ci"]))
    assert attack.is_worthless == (success <= baseline)


def agrees(attack, told):
    n = told["n_attacks"]
    assert round(attack.attack.share * n) == told["n_success"]
    assert round(attack.control.share * n) == told["n_control"]
    assert attack.risk.value == pytest.approx(told["risk"])
    assert (attack.risk.low, attack.risk.high) == pytest.approx(tuple(told["risk_ci"]))


@pytest.mark.parametrize("k", [1, 5])
def test_linkability_is_that_of_anonymeter(k):
    attack = attacks.linkability(
        RELEASED, PEOPLE, CONTROL, SCHEMA.features, ([0, 1], [2, 3]), n_neighbours=k, rng=seeded(), confidence=0.95
    )
    agrees(attack, STORED["linkability"][str(k)])


@pytest.mark.parametrize("secret", ["job", "salary", "debt"])
def test_inference_is_that_of_anonymeter(secret):
    place = SCHEMA.names.index(secret)
    known = [j for j in range(4) if j != place]
    attack = attacks.inference(RELEASED, PEOPLE, CONTROL, SCHEMA.features, known, place, rng=seeded(), confidence=0.95)
    agrees(attack, STORED["inference"][secret])


def test_singling_out_by_one_column_is_that_of_anonymeter():
    queries = attacks.queries_of_columns(attacks.distinct_rows(RELEASED), SCHEMA.features, 5000, seeded())
    told = STORED["univariate"]
    assert len(queries) == told["n_queries"]
    assert sum(attacks.count_matches(query, PEOPLE) == 1 for query in queries) == told["n_success"]
    assert sum(attacks.count_matches(query, CONTROL) == 1 for query in queries) == told["n_control"]


def test_singling_out_by_three_columns_is_as_often_right_as_anonymeters():
    attack = attacks.singling_out(
        RELEASED, PEOPLE, CONTROL, SCHEMA.features, n_attacks=200, n_columns=3, rng=seeded(), confidence=0.95
    )
    told = STORED["multivariate"]
    for ours, rate in ((attack.attack, told["attack_rate"]), (attack.control, told["control_rate"])):
        assert abs(ours.middle - rate[0]) < 2 * np.hypot(ours.error, rate[1])


def test_a_negative_guess_is_not_right_for_its_sign():
    told, salary = STORED["guesses"], SCHEMA.features[2]
    guesses, secrets = (np.array(told[name]) for name in ("guesses", "secrets"))
    ours = attacks.guessed_right(guesses, secrets, salary)
    assert told["right"] == [True, True, True, False, True]
    assert ours.tolist() == [False, True, True, False, True]
    missing = np.array([np.nan])
    assert attacks.guessed_right(missing, missing, salary).tolist() == [True]


def test_queries_single_out_a_released_row_and_count_as_pandas_does():
    queries = attacks.queries_of_rows(RELEASED, SCHEMA.features, 50, 3, seeded())
    assert len(set(queries)) == len(queries) > 10
    frame = pd.DataFrame(PEOPLE, columns=list("abcd"))
    for query in queries:
        assert attacks.count_matches(query, RELEASED) == 1
        text = " and ".join(f"{'abcd'[j]} {sign} {value!r}" for j, sign, value in query)
        assert attacks.count_matches(query, PEOPLE) == len(frame.query(text))


def test_area_is_that_of_scikit_learn_and_of_two_normals():
    rng = seeded()
    members, others = rng.normal(1, 1, 4000).round(2), rng.normal(0, 1, 4000).round(2)
    area = rates.auc(members, others)
    truth = np.repeat([1, 0], 4000)
    assert area.value == pytest.approx(roc_auc_score(truth, np.concatenate([members, others])))
    assert area.low < norm.cdf(1 / np.sqrt(2)) < area.high
    found = rates.found_at(members, others, 0.01)
    assert found.share == pytest.approx(norm.sf(norm.isf(0.01) - 1), abs=0.02)


def test_interval_of_the_area_holds_what_it_promises():
    rng = seeded()
    covered = 0
    for _ in range(400):
        area = rates.auc(rng.normal(0.5, 1, 60), rng.normal(0, 1, 60))
        covered += area.low <= norm.cdf(0.5 / np.sqrt(2)) <= area.high
    assert covered >= 365  # 95 per cent of 400 are 380, less 3.4 standard errors


def test_the_chance_of_successes_is_that_of_counting_all_ways():
    ways = sum(comb(7, k) * comb(10, 6 - k) for k in range(3)) / comb(17, 6)
    assert rates.chance_ahead(4, 10, 2, 7) == pytest.approx(ways)
    assert rates.chance_ahead(0, 0, 0, 0) == rates.chance_ahead(0, 5, 0, 5) == 1.0


def test_chance_at_few_false_positives_is_that_of_shuffling():
    rng = seeded()
    scores = rng.normal(size=90)
    members, others = scores[:40], scores[40:]
    seen = round(rates.found_at(members, others, 0.05).share * 40)
    as_many = 0
    for _ in range(4000):
        order = rng.permutation(90)
        as_many += round(rates.found_at(scores[order[:40]], scores[order[40:]], 0.05).share * 40) >= seen
    assert rates.chance_at(members, others, 0.05) == pytest.approx(as_many / 4000, abs=0.03)
    assert rates.expected_at(50, 0.05) == pytest.approx(3 / 51)


def test_a_threshold_for_each_person_takes_out_how_far_that_person_has_to_go():
    rng = seeded()
    usual = rng.normal(0, 3, 300)  # log distances that differ from person to person
    shadows = np.exp(usual + rng.normal(0, 0.1, (6, 300)))
    member = np.arange(300) < 150
    distance = np.exp(usual + 0.2 * member + rng.normal(0, 0.1, 300))
    plain = rates.auc(distance[member], distance[~member])
    person = by_person(distance, shadows)
    assert plain.low < 0.5 < plain.high
    assert rates.auc(person[member], person[~member]).low > 0.75


def test_surprise_counts_rare_values_that_were_handed_out():
    own = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    person = np.array([1.0, 9.0])
    handed = np.ones((1, 2), dtype=bool)
    assert surprise(person, np.array([[1.0, 9.0]]), handed, own) == pytest.approx(np.log(4))
    assert surprise(person, np.array([[1.0, 8.0]]), handed, own) == 0
    assert surprise(person, np.array([[1.0, 9.0]]), ~handed, own) == 0
    assert surprise(person, np.empty((0, 2)), np.empty((0, 2), dtype=bool), own) == 0


def test_extraction_gains_by_answers_at_the_edge_and_not_by_repeated_queries():
    """The model accepts a band; answers at both its edges tell more of it than the decisions on 30 rows."""
    rng = seeded()
    unseen, queries = rng.uniform(0, 1, (2000, 2)), rng.uniform(0, 1, (30, 2))
    truth, decisions = (np.abs(rows[:, 0] - 0.5) < 0.1 for rows in (unseen, queries))
    edge = np.column_stack([np.resize([0.401, 0.599], 30), rng.uniform(0, 1, 30)])
    found = extract(queries, decisions, edge, unseen, truth, 1, 0.95)
    assert found.gain.low > 0
    assert found.gain.value == pytest.approx(found.with_answers.share - found.labels_alone.share, abs=1e-3)
    again = extract(queries, decisions, queries[decisions], unseen, truth, 1, 0.95)
    assert again.gain.value == 0.0
    assert again.labels_alone.share > 0.7


@pytest.mark.slow
def test_extraction_is_not_taken_for_what_one_forest_gains_over_another_by_chance(monkeypatch):
    """Answers that are the accepted rows in another order tell nothing, and the forests are others.

    Forests of three trees, judged by thousands of rows: what they differ by is the chance of the forests. One in forty
    gains may be seen at 95 per cent; an interval of the rows alone sees nearly half.
    """
    monkeypatch.setattr(extraction, "N_TREES", 3)
    accused = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        unseen, queries = rng.normal(size=(4000, 4)), rng.normal(size=(40, 4))
        truth, decisions = (np.abs(rows[:, 0] - 0.3) < 0.6 for rows in (unseen, queries))
        answers = rng.permutation(np.resize(queries[decisions], (24, 4)))
        accused += extract(queries, decisions, answers, unseen, truth, seed, 0.95).gain.low > 0
    assert accused <= 3  # of 25: more by chance once in 300 times
