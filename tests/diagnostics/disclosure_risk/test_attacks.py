"""Attacks compared with anonymeter's counts and brute force."""

import gzip
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import fisher_exact

from mcce.diagnostics.disclosure_risk import attacks
from mcce.table import Schema

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "disclosure"
STORED = json.loads(gzip.decompress((FIXTURES / "anonymeter.json.gz").read_bytes()))
TABLES = {name: pd.read_csv(io.StringIO(text)) for name, text in STORED["tables"].items()}
SCHEMA = Schema.from_data(TABLES["ori"])
PEOPLE, CONTROL, RELEASED = (SCHEMA.encode(TABLES[name]).matrix for name in ("ori", "control", "syn"))


def seeded():
    return np.random.default_rng(3)


@pytest.mark.parametrize("stored", STORED["rates"], ids=lambda stored: str(stored["asked"]))
def test_rates_and_risks_match_anonymeter(stored):
    n, success, baseline, control = stored["asked"]
    found = (np.arange(n) < count for count in (success, control, baseline))
    attack = attacks.Attack.of_people(*found, 0.95)
    assert attack.chance == pytest.approx(fisher_exact([[success, n - success], [control, n - control]], "greater")[1])
    assert (attack.attack.middle, attack.attack.error) == pytest.approx(tuple(stored["attack_rate"]))
    assert (attack.control.middle, attack.control.error) == pytest.approx(tuple(stored["control_rate"]))
    risk = attack.risk
    assert (risk.value, risk.low, risk.high) == pytest.approx((stored["risk"], *stored["risk_ci"]))
    assert attack.is_worthless == (success <= baseline)


def agrees(attack, stored):
    n = stored["n_attacks"]
    assert round(attack.attack.share * n) == stored["n_success"]
    assert round(attack.control.share * n) == stored["n_control"]
    assert attack.risk.value == pytest.approx(stored["risk"])
    assert (attack.risk.low, attack.risk.high) == pytest.approx(tuple(stored["risk_ci"]))


@pytest.mark.parametrize("k", [1, 5])
def test_linkability_matches_anonymeter(k):
    attack = attacks.linkability(
        RELEASED, PEOPLE, CONTROL, SCHEMA.features, ([0, 1], [2, 3]), n_neighbours=k, rng=seeded(), confidence=0.95
    )
    agrees(attack, STORED["linkability"][str(k)])


@pytest.mark.parametrize("secret", ["job", "salary", "debt"])
def test_inference_matches_anonymeter(secret):
    place = SCHEMA.names.index(secret)
    known = [j for j in range(4) if j != place]
    attack = attacks.inference(RELEASED, PEOPLE, CONTROL, SCHEMA.features, known, place, rng=seeded(), confidence=0.95)
    agrees(attack, STORED["inference"][secret])


def test_singling_out_by_one_column_matches_anonymeter():
    queries = attacks.queries_of_columns(attacks.distinct_rows(RELEASED), SCHEMA.features, 5000, seeded())
    stored = STORED["univariate"]
    assert len(queries) == stored["n_queries"]
    assert sum(attacks.count_matches(query, PEOPLE) == 1 for query in queries) == stored["n_success"]
    assert sum(attacks.count_matches(query, CONTROL) == 1 for query in queries) == stored["n_control"]


def test_singling_out_by_three_columns_succeeds_as_often_as_anonymeter():
    attack = attacks.singling_out(
        RELEASED, PEOPLE, CONTROL, SCHEMA.features, n_attacks=200, n_columns=3, rng=seeded(), confidence=0.95
    )
    stored = STORED["multivariate"]
    for ours, rate in ((attack.attack, stored["attack_rate"]), (attack.control, stored["control_rate"])):
        assert abs(ours.middle - rate[0]) < 2 * np.hypot(ours.error, rate[1])


def test_negative_guess_is_not_correct_by_its_sign():
    stored, salary = STORED["guesses"], SCHEMA.features[2]
    guesses, secrets = (np.array(stored[name]) for name in ("guesses", "secrets"))
    ours = attacks.guessed_right(guesses, secrets, salary)
    assert stored["right"] == [True, True, True, False, True]
    assert ours.tolist() == [False, True, True, False, True]
    missing = np.array([np.nan])
    assert attacks.guessed_right(missing, missing, salary).tolist() == [True]


def test_queries_single_out_a_released_row_and_counts_match_pandas():
    queries = attacks.queries_of_rows(RELEASED, SCHEMA.features, 50, 3, seeded())
    assert len(set(queries)) == len(queries) > 10
    frame = pd.DataFrame(PEOPLE, columns=list("abcd"))
    for query in queries:
        assert attacks.count_matches(query, RELEASED) == 1
        text = " and ".join(f"{'abcd'[j]} {sign} {value!r}" for j, sign, value in query)
        assert attacks.count_matches(query, PEOPLE) == len(frame.query(text))
