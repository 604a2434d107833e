from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression
from sklearn.metrics import roc_auc_score

from mcce import MCCE, CartSampler, ChainModel, EstimatorSampler, InputError, NotFittedError, SamplerError
from mcce.datasets import load_loans

LEVEL = 1e-4
P_W = np.array([0.6, 0.4])
P_X = np.array([[0.8, 0.2], [0.3, 0.7]])  # x given w
P_Z = np.array([[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.1, 0.9]]])  # z given w and x


def draw_truth(n, seed):
    """Return three yes/no columns, each depending on all before it."""
    rng = np.random.default_rng(seed)
    w = (rng.random(n) > P_W[0]).astype(int)
    x = (rng.random(n) > P_X[w, 0]).astype(int)
    z = (rng.random(n) > P_Z[w, x, 0]).astype(int)
    return pd.DataFrame({name: np.array(["no", "yes"])[codes] for name, codes in (("w", w), ("x", x), ("z", z))})


def code(column):
    return (column == "yes").to_numpy().astype(int)


def shuffle(frame, seed):
    """Return rows with the same margins and independent columns."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: column.take(rng.permutation(len(frame))).array for name, column in frame.items()})


def auc(realistic, shuffled):
    truth = np.repeat([1, 0], [len(realistic), len(shuffled)])
    return roc_auc_score(truth, np.concatenate([realistic, shuffled]).clip(-1e6))


@pytest.fixture(scope="module")
def truth():
    return draw_truth(20_000, 0)


@pytest.fixture(scope="module")
def loans():
    X = load_loans().X
    return X.iloc[:2000], X.iloc[2000:]


@pytest.fixture(scope="module")
def chain(loans):
    return ChainModel(fixed=["age", "sex"], sampler=CartSampler(min_leaf=50), random_state=1).fit(loans[0])


# ---- log_density


def test_known_probability_is_recovered(truth):
    chain = ChainModel(fixed=["w"], random_state=1).fit(truth)
    rows = truth.drop_duplicates()
    assert len(rows) == 8
    w, x, z = (code(rows[name]) for name in "wxz")
    np.testing.assert_allclose(np.exp(chain.log_density(rows)), P_X[w, x] * P_Z[w, x, z], atol=0.02)
    each = chain.log_density(rows, per_feature=True)
    np.testing.assert_allclose(np.exp(each["x"]), P_X[w, x], atol=0.02)
    np.testing.assert_allclose(np.exp(each["z"]), P_Z[w, x, z], atol=0.02)


@pytest.mark.parametrize("training", [False, True])
def test_features_sum_to_the_density(chain, loans, training):
    train, _ = loans
    total = chain.log_density(train, training=training)
    each = chain.log_density(train, training=training, per_feature=True)
    assert list(each) == chain.visit_sequence_
    assert "age" not in each
    assert total.name == "log_density"
    pd.testing.assert_index_equal(total.index, train.index)
    pd.testing.assert_index_equal(each.index, train.index)
    np.testing.assert_allclose(total, each.to_numpy().sum(axis=1), rtol=1e-12)


def test_densities_of_samplers_are_summed(loans):
    """In an order different from the data, with fixed columns in the middle, by hand calculation."""
    train, test = loans
    order = [name for name in reversed(train.columns) if name not in ("salary", "sex")]
    chain = ChainModel(fixed=["salary", "sex"], visit_sequence=order, random_state=1).fit(train)
    table = chain.schema_.encode(test)
    names = list(train.columns)
    before = [names.index("sex"), names.index("salary")]
    total = np.zeros(len(test))
    for name in order:
        values = table.matrix[:, names.index(name)]
        total += chain.samplers_[name].log_density(table.select(before), values)
        before.append(names.index(name))
    np.testing.assert_allclose(chain.log_density(test), total, rtol=1e-12)


def test_rows_do_not_depend_on_each_other(chain, loans):
    _, test = loans
    some = test.iloc[[50, 3, 3, 700]]
    found = chain.log_density(some)
    np.testing.assert_allclose(found, chain.log_density(test).loc[some.index], rtol=1e-12)
    assert found.index.tolist() == some.index.tolist()


def test_realistic_rows_rank_above_shuffled_ones():
    """Three numbers that nearly determine each other; shuffled rows are inconsistent."""
    rng = np.random.default_rng(1)

    def draw(n):
        a = rng.normal(size=n)
        b = a + 0.2 * rng.normal(size=n)
        return pd.DataFrame({"a": a, "b": b, "c": np.where(a + b > 0, "high", "low"), "d": b - a + rng.normal(size=n)})

    chain = ChainModel(sampler=CartSampler(min_leaf=20), random_state=1).fit(draw(2000))
    fresh = draw(1000)
    assert auc(chain.log_density(fresh), chain.log_density(shuffle(fresh, 2))) > 0.9


def test_realistic_loans_rank_above_shuffled_ones(chain, loans):
    """Densities of columns with point mass differ between rows because of the base measure; the margin removes this.

    A perfect ranking is impossible: a random forest trained to classify such rows had 0.86 on such a split.
    """
    train, test = loans
    margin = ChainModel(fixed=["age", "sex"], sampler="marginal", random_state=1).fit(train)
    shuffled = shuffle(test, 3)
    gains = [chain.log_density(rows).clip(-1e6) - margin.log_density(rows).clip(-1e6) for rows in (test, shuffled)]
    assert auc(chain.log_density(test), chain.log_density(shuffled)) > 0.6
    assert auc(*gains) > 0.7
    assert 0.45 < auc(margin.log_density(test), margin.log_density(shuffled)) < 0.55


def test_rows_drawn_from_the_chain_are_likely(chain, loans):
    _, test = loans
    drawn = chain.sample(1000, random_state=3)
    assert np.isfinite(chain.log_density(drawn)).all()
    assert chain.log_density(drawn).median() > chain.log_density(shuffle(test, 3)).median()


def test_training_rows_do_not_support_themselves(loans):
    train, test = loans
    chain = ChainModel(fixed=["age", "sex"], random_state=1).fit(train)
    left_out = chain.log_density(train, training=True)
    as_new = chain.log_density(train)
    assert left_out.median() < as_new.median() - 3
    assert abs(left_out.median() - chain.log_density(test).median()) < abs(as_new.median() - left_out.median())


@pytest.fixture(scope="module")
def decided(truth):
    """The decision is x = yes, so that z given the decision follows P_Z."""
    return ChainModel(fixed=["w"], random_state=1).fit(truth[["w", "z"]], (truth["x"] == "yes").to_numpy())


def test_decision_is_conditioned_on(decided):
    rows = pd.DataFrame({"w": ["no", "no", "yes", "yes"], "z": ["no", "yes"] * 2})
    w, z = code(rows["w"]), code(rows["z"])
    for wanted in (True, False):
        found = np.exp(decided.log_density(rows, decision=wanted))
        np.testing.assert_allclose(found, P_Z[w, int(wanted), z], atol=0.03)
    np.testing.assert_array_equal(decided.log_density(rows), decided.log_density(rows, decision=True))
    mixed = np.array([True, False, False, True])
    found = np.exp(decided.log_density(rows, decision=mixed))
    np.testing.assert_allclose(found, P_Z[w, mixed.astype(int), z], atol=0.03)


@pytest.mark.slow
def test_training_rows_are_left_out_under_their_own_decision(truth):
    """By hand: the row's cell of w and decision, without the row."""
    small = truth.iloc[:200]
    decision = (small["x"] == "yes").to_numpy()
    chain = ChainModel(fixed=["w"], random_state=1).fit(small[["w", "z"]], decision)
    found = np.exp(chain.log_density(small[["w", "z"]], decision=decision, training=True))
    n_leaves = chain.samplers_["z"].tree_.n_leaves
    if n_leaves != 4:
        pytest.fail(f"the tree has {n_leaves} leaves; the cells are not its leaves.")
    for i, row in enumerate(small.itertuples()):
        cell = (small["w"] == row.w) & (small["x"] == row.x)
        margin = ((small["z"] == row.z).sum() - 1 + 1 / 2) / 200
        expected = ((small.loc[cell, "z"] == row.z).sum() - 1 + 5 * margin) / (cell.sum() - 1 + 5)
        assert found.iloc[i] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("sampler", ["parametric", "copula", "polyreg"])
def test_training_rows_raise_if_they_cannot_be_left_out(loans, sampler):
    """Otherwise a row would support itself in one feature and not in the others."""
    train = loans[0][["age", "education", "salary"]]
    chain = ChainModel(fixed=["age"], sampler={"education": sampler, "*": "cart"}, random_state=1).fit(train)
    with pytest.raises(SamplerError, match=r"Sampler\(\) for 'education' cannot leave a training row out"):
        chain.log_density(train, training=True)
    assert np.isfinite(chain.log_density(train)).all()
    given = chain.schema_.encode(train).first(1)
    with pytest.raises(SamplerError, match=r"Sampler\(\) cannot leave a training row out of its density"):
        chain.samplers_["education"].log_density(given, np.zeros(len(train)), training_rows=np.arange(len(train)))


def test_other_rows_are_not_training_rows(chain, loans):
    with pytest.raises(
        InputError, match="X has 1000 rows, but the generator was trained on 2000; training=True needs the"
    ):
        chain.log_density(loans[1], training=True)


def test_sampler_without_density_is_named(loans):
    train = loans[0][["age", "education", "salary"]]
    samplers = {"salary": EstimatorSampler(LinearRegression()), "*": "cart"}
    chain = ChainModel(sampler=samplers, fixed=["age"], random_state=1).fit(train)
    with pytest.raises(SamplerError, match=r"EstimatorSampler\(estimator=LinearRegression\(\)\) has no density"):
        chain.log_density(train)


def test_not_fitted(loans):
    with pytest.raises(NotFittedError, match=r"this ChainModel is not fitted; call fit\(X\) first"):
        ChainModel().log_density(loans[0])


# ---- predictors


def z_by_cell(drawn):
    """Count z = no and yes in each cell of w and x."""
    counts = np.zeros((2, 2, 2), dtype=int)
    np.add.at(counts, (code(drawn["w"]), code(drawn["x"]), code(drawn["z"])), 1)
    return counts


def test_feature_depends_only_on_its_predictors(truth):
    free = z_by_cell(ChainModel(random_state=1).fit(truth).sample(8000))
    chosen = z_by_cell(ChainModel(predictors={"z": ["x"]}, random_state=1).fit(truth).sample(8000))
    p_wx = P_W[:, None] * P_X
    p_z_given_x = (p_wx[:, :, None] * P_Z).sum(axis=0) / p_wx.sum(axis=0)[:, None]
    for x in (0, 1):
        assert stats.chi2_contingency(free[:, x]).pvalue < 1e-20
        assert stats.chi2_contingency(chosen[:, x]).pvalue > LEVEL
        share = chosen[:, x].sum(axis=0) / chosen[:, x].sum()
        np.testing.assert_allclose(share, p_z_given_x[x], atol=0.03)


def test_feature_without_predictors_is_independent(truth):
    drawn = z_by_cell(ChainModel(predictors={"z": []}, random_state=1).fit(truth).sample(8000))
    assert stats.chi2_contingency(drawn.reshape(4, 2)).pvalue > LEVEL
    assert drawn.sum(axis=(0, 1))[1] / 8000 == pytest.approx((truth["z"] == "yes").mean(), abs=0.025)


def test_other_features_keep_all_their_predictors(truth):
    chain = ChainModel(predictors={"x": []}, random_state=1).fit(truth)
    counts = z_by_cell(chain.sample(20_000))
    assert stats.chi2_contingency(counts.sum(axis=2)).pvalue > LEVEL  # x does not depend on w
    shares = counts / counts.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(shares, P_Z, atol=0.03)  # z on both


def test_predictors_may_be_fixed_and_in_any_order(truth):
    chains = [
        ChainModel(fixed=["w"], predictors={"z": names}, random_state=1).fit(truth)
        for names in (["w", "x"], ["x", "w"], ("x", "w", "x"))
    ]
    default = ChainModel(fixed=["w"], random_state=1).fit(truth).sample(500)
    for chain in chains:
        pd.testing.assert_frame_equal(chain.sample(500), default)


def test_decision_is_always_among_the_givens(truth):
    """The decision is w = yes; z without predictors still depends on it."""
    chain = ChainModel(predictors={"z": [], "x": []}, random_state=1).fit(truth[["x", "z"]], code(truth["w"]) == 1)
    for wanted in (0, 1):
        drawn = chain.sample(4000, decision=bool(wanted))
        p = (P_X[wanted, :, None] * P_Z[wanted]).sum(axis=0)[1]
        assert (drawn["z"] == "yes").mean() == pytest.approx(p, abs=0.03)
        assert (drawn["x"] == "yes").mean() == pytest.approx(P_X[wanted, 1], abs=0.03)
        # given the decision, x and z are drawn independently
        assert stats.chi2_contingency(pd.crosstab(drawn["x"], drawn["z"])).pvalue > LEVEL


def test_density_uses_the_predictors(truth):
    chain = ChainModel(fixed=["w"], predictors={"z": ["x"]}, random_state=1).fit(truth)
    rows = truth.drop_duplicates()
    each = chain.log_density(rows, per_feature=True)["z"]
    for _, same in each.groupby([rows["x"], rows["z"]]):
        assert same.nunique() == 1
    p_wx = P_W[:, None] * P_X
    p_z_given_x = (p_wx[:, :, None] * P_Z).sum(axis=0) / p_wx.sum(axis=0)[:, None]
    np.testing.assert_allclose(np.exp(each), p_z_given_x[code(rows["x"]), code(rows["z"])], atol=0.02)


@pytest.mark.parametrize(
    ("predictors", "message"),
    [
        ({"y": ["x"]}, r"predictors names 'y', which is not a column of X"),
        ({"w": []}, r"predictors names 'w', which is fixed"),
        ({"z": ["q"]}, r"predictors\['z'\] names 'q', which is not a column of X"),
        ({"x": ["z"]}, r"predictors\['x'\] names 'z', which is not drawn before it; change visit_sequence, or leave"),
        ({"x": ["x"]}, r"predictors\['x'\] names 'x', which is not drawn before it"),
    ],
)
def test_invalid_predictors_raise(truth, predictors, message):
    with pytest.raises(InputError, match=message):
        ChainModel(fixed=["w"], predictors=predictors).fit(truth)


def test_visit_sequence_determines_the_preceding_features(truth):
    chain = ChainModel(predictors={"w": ["z"]}, visit_sequence=["z", "w", "x"], random_state=1).fit(truth)
    assert chain.sample(10).shape == (10, 3)
    with pytest.raises(InputError, match=r"predictors\['w'\] names 'z', which is not drawn before it"):
        ChainModel(predictors={"w": ["z"]}).fit(truth)


@pytest.mark.slow
def test_explainer_accepts_predictors():
    """Without its predictors, the salary of the candidates does not follow the education."""
    loans = load_loans(1000)
    X = loans.X[["age", "education", "salary", "loan_amount"]]

    def approve(rows):
        return 1 / (1 + np.exp((rows["loan_amount"] - rows["salary"] / 4) / 5000.0))

    explainers = [
        MCCE(model=approve, decision=(0.5, 1.0), fixed=["age"], predictors=predictors, random_state=1).fit(X)
        for predictors in (None, {"salary": []})
    ]
    chains = [explainer.generator_ for explainer in explainers]
    assert [len(chain.samplers_["salary"].tree_.feature) > 3 for chain in chains] == [True, False]
    rejected = X[approve(X) < 0.5].iloc[:5]
    found = explainers[1].explain(rejected).to_frame()
    assert len(found) == 5
    assert (approve(found) >= 0.5).all()
