"""The simulated loans against their process, and the tables that are read from files."""

import gzip
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce.datasets import load_adult, load_airquality, load_fico, load_german, load_gmc, load_loans
from mcce.datasets.loans import STATED, true_default_probability
from mcce.exceptions import InputError

ALPHA = 1e-3


def test_loans_follow_their_process():
    loans = load_loans(20_000, random_state=3)
    X, p = loans.X, true_default_probability(loans.X)
    bins = pd.cut(p, [0, 0.02, 0.05, 0.1, 0.2, 0.4, 1])
    frame = pd.DataFrame({"p": p, "y": loans.y, "variance": p * (1 - p)}).groupby(bins, observed=True).sum()
    chi2 = ((frame.y - frame.p) ** 2 / frame.variance).sum()
    assert stats.chi2.sf(chi2, len(frame)) > ALPHA
    assert stats.kstest((X.age + 0.5 - 18) / 62, stats.beta(1.7, 2.4).cdf).statistic < 0.02  # whole years
    assert stats.binomtest(int((X.sex == "male").sum()), len(X)).pvalue > ALPHA
    expected = 1 / (1 + np.exp(2.1 + 0.8 * np.log(X.salary / 50_000) + 0.025 * (X.age - 40)))
    deviation = (X.defaulted_last_year - expected).sum() / np.sqrt((expected * (1 - expected)).sum())
    assert abs(deviation) < stats.norm.isf(ALPHA)
    assert (X.loc[X.employment.isin(["unemployed", "retired"]), "years_employed"] == 0).all()
    assert X.education.cat.ordered


def test_default_probability_by_hand():
    row = load_loans(1).X.assign(age=40, employment="employed", years_employed=20, salary=100_000, housing="own")
    row = row.assign(defaulted_last_year=True, savings=0, loan_amount=15_000)
    logit = -1.7 - 2.6 * np.log(2) + 1.1 - 0.45 - 0.2
    assert true_default_probability(row)[0] == pytest.approx(1 / (1 + np.exp(-logit)))


def test_one_seed_gives_one_table():
    loans = load_loans(50, missing=0.2)
    pd.testing.assert_frame_equal(loans.X, load_loans(50, missing=0.2).X)
    assert not loans.X.equals(load_loans(50, missing=0.2, random_state=1).X)
    assert pickle.loads(pickle.dumps(loans)).X.equals(loans.X)


def test_missing_values_are_those_that_applicants_state():
    share = load_loans(5000, missing=0.1).X.isna().mean()
    assert (share[STATED] - 0.1).abs().max() < 0.02
    assert share.drop(STATED).max() == 0


@pytest.mark.parametrize("loans", [load_loans(1000), load_loans(1000, missing=0.1)])
def test_model_of_the_loans(loans):
    predicted = loans.model.predict_proba(loans.X)[:, 1]
    assert np.corrcoef(predicted, loans.y)[0, 1] > 0.3
    low, high = loans.decision
    assert 0.2 < ((predicted >= low) & (predicted <= high)).mean() < 0.8


def test_airquality_is_that_of_r():
    air = load_airquality()
    assert air.X.shape == (153, 5)
    assert [int(air.y.isna().sum()), int(air.X["Solar.R"].isna().sum())] == [37, 7]
    assert air.y.mean() == pytest.approx(42.12931, abs=1e-5)  # mean(airquality$Ozone, na.rm = TRUE)
    complete = load_airquality(dropna=True)
    assert complete.X.shape == (111, 5)
    assert complete.model.score(complete.X, complete.y) == pytest.approx(0.6249, abs=1e-4)  # R squared of lm(Ozone ~ .)


def write(folder, name, text):
    (folder / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))


def test_papers_tables(tmp_path, monkeypatch):
    write(tmp_path, "adult", "age,job,sex,income\n20,?,Male,<=50K\n30,clerk,Male,>50K\n40,clerk,Female,>50K\n")
    rows = "".join(f"{k},{k % 7},{k % 2}\n" for k in range(30))
    write(tmp_path, "gmc", "age,MonthlyIncome,SeriousDlqin2yrs\n" + rows + "40,NA,0\n1000,3,1\n")
    codes = "ExternalRiskEstimate,MaxDelq2PublicRecLast12M,MaxDelqEver,RiskPerformance\n"
    write(tmp_path, "fico", codes + "-9,-9,-9,Bad\n60,7,8,Good\n70,7,2,Bad\n")
    (tmp_path / "german.csv").write_text("purpose,age,personal_status_sex,credit_risk\ncar,30,male,good\n")
    monkeypatch.setenv("MCCE_DATA", str(tmp_path))

    adult = load_adult()
    assert adult.X.dtypes.astype(str).to_dict() == {"age": "int64", "job": "category", "sex": "category"}
    assert (adult.y.tolist(), adult.decision, adult.fixed) == (["<=50K", ">50K", ">50K"], ">50K", ["age", "sex"])
    assert load_adult(as_in_paper=True).X.to_numpy().tolist() == [[20, 0, 1], [30, 1, 1], [40, 1, 0]]
    assert [len(load_gmc().X), len(load_gmc(as_in_paper=True).X)] == [32, 30]
    assert load_fico().X.dtypes.astype(str).tolist() == ["int64", "category", "category"]
    assert load_fico(as_in_paper=True).X.to_numpy().tolist() == [[60, 1, 0], [70, 1, 1]]
    assert load_german(tmp_path).decision == "good"


def test_messages(tmp_path, monkeypatch):
    monkeypatch.delenv("MCCE_DATA", raising=False)
    with pytest.raises(InputError, match=r"load_fico needs the folder with fico.csv.gz .* MCCE_DATA"):
        load_fico()
    write(tmp_path, "adult", "age,income\n1,2\n")
    with pytest.raises(InputError, match=r"lacks the column\(s\) 'sex'; it has 'age', 'income'"):
        load_adult(tmp_path)
