"""The criticism of several features: table, text, page, plots."""

import dataclasses

import matplotlib
import numpy as np
import pandas as pd
import pytest
import scipy

import mcce
from mcce.exceptions import InputError
from mcce.judging.criticism import Criticism
from tests.judging.processes import RIGHT, RIGHT_LEVELS, WRONG, Levels, criticise
from tests.report.plots.texts import assert_legible, assert_texts_fit
from tests.samplers.statsmodels.problem import make_frame

matplotlib.use("Agg")


def renamed(found, name):
    return dataclasses.replace(found, feature=dataclasses.replace(found.feature, name=name))


@pytest.fixture(scope="module")
def criticism():
    found = [
        renamed(criticise(RIGHT, RIGHT, 1), "right"),
        renamed(criticise(*WRONG["heteroscedastic"], 1), "<b>salary</b>"),
        renamed(criticise(RIGHT_LEVELS, Levels(slope=2.0), 1), "housing"),
    ]
    return Criticism.of(found, 0.05, "new rows")


def test_table_has_a_row_for_each_feature(criticism):
    table = criticism.table
    assert table.index.tolist() == ["right", "<b>salary</b>", "housing"]
    assert table["passes"].tolist() == [True, False, False]
    assert table["kind"].tolist() == ["numeric", "numeric", "categorical"]
    wanted = "kind sampler log_score impossible score skill sharpness p_shape p_levels p_where p p_adjusted passes"
    assert table.columns.tolist() == [*wanted.split(), "where", "says", "seconds"]
    assert table["says"].tolist() == criticism.sentences
    assert np.isnan(table.loc["right", "log_score"])  # it has no density
    assert np.isnan(table.loc["housing", "p_shape"])
    assert (table["p_adjusted"] >= table["p"]).all()


def test_rejected_features_are_named_worst_first(criticism):
    assert set(criticism.rejected) == {"<b>salary</b>", "housing"}
    assert [criticism[name].p for name in criticism.rejected] == sorted(each.p for each in criticism)[:2]
    assert criticism["housing"].feature.name == "housing"
    assert len(criticism) == len(list(criticism)) == 3
    with pytest.raises(InputError, match=r"'housign' is not among the features criticised; .*'housing'"):
        criticism["housign"]


def test_text_has_one_sentence_per_feature(criticism):
    lines = repr(criticism).split("\n")
    assert lines[0] == "3 conditionals judged by 300 new rows: 2 rejected at level 0.05"
    assert len(lines) == 5 + 2  # and two suggested samplers
    for line, says in zip(lines[2:], criticism.sentences):
        assert line.endswith(says)
    assert "right: passes (p = " in lines[2]


def test_names_are_escaped_on_a_page(criticism):
    page = criticism._repr_html_()
    assert "<b>salary" not in page
    assert "&lt;b&gt;salary" in page


@pytest.mark.slow
def test_one_plot_per_feature(criticism):
    import matplotlib.pyplot as plt

    for each, n_panels in [("right", 2), ("<b>salary</b>", 2), ("housing", 3)]:
        axes = criticism.plot(each)
        figure = axes[0].figure
        assert len(axes) == n_panels
        assert "".join(figure._suptitle.get_text().split()) == "".join(
            criticism.sentences[["right", "<b>salary</b>", "housing"].index(each)].split()
        )
        assert axes[0].get_title(loc="left") == "all 300 rows"
        figure.canvas.draw()
        plt.close(figure)
    axes = criticism.plot()
    assert len(axes) == 3
    assert_texts_fit(*axes)
    assert_legible(*axes)
    heights = [patch.get_height() for patch in axes[0].patches if patch.get_height() == int(patch.get_height())]
    assert sum(heights) >= 300
    plt.close(axes[0].figure)


def remedy_of(rejected, train, new, target="y"):
    """Return the criticism of a sampler, and that of its suggested sampler."""
    fixed = [name for name in train if name != target]

    def criticise(sampler):
        chain = mcce.ChainModel(sampler={target: sampler}, fixed=fixed, random_state=1).fit(train)
        return chain.criticise(new)

    found = criticise(rejected)
    advice = found.remedies[target]
    assert f"to try: {advice}" in repr(found)
    assert "to try: <code>" in found._repr_html_()
    setting = eval(advice.removeprefix("sampler="), {"mcce": mcce})
    return found, criticise(setting[target])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "rejected", "advice"),
    [
        ("amount", "norm", "'gamma'"),
        ("overdispersed", "poisson", "mcce.Auto(['negbin', 'quantile', 'twopart'])"),
        ("saved", "norm", "'twopart'"),
        ("grade", "marginal", "'polr"),
    ],
)
def test_suggested_sampler_passes(target, rejected, advice):
    """Zeros with their own probabilities, skewed amounts, counts and levels: residuals z have an sd near 1."""
    columns = ["age", "sex", target]
    found, followed = remedy_of(rejected, make_frame(1500, seed=1)[columns], make_frame(600, seed=2)[columns], target)
    assert found.remedies[target].startswith(f"sampler={{'{target}': {advice}")
    assert not followed.rejected
    assert not followed.remedies
    if followed[target].pit is not None:
        assert scipy.special.ndtri(followed[target].pit).std() == pytest.approx(1.0, abs=0.06)


def interacting(n, seed):
    """A level with the probability .85 where `a` and `b` agree, and .2 where they do not."""
    rng = np.random.default_rng(seed)
    a, b = rng.choice(["l", "m", "h"], n), rng.choice(["x", "y"], n)
    p = np.where(a == "m", 0.5, np.where((a == "l") == (b == "x"), 0.85, 0.2))
    noise = rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": b, "noise": noise, "y": np.where(rng.uniform(size=n) < p, "yes", "no")})


@pytest.mark.slow
def test_interacting_levels_suggest_an_interaction_term():
    train, new = interacting(1500, 1), interacting(500, 2)
    found, followed = remedy_of("parametric", train, new)
    assert found.remedies["y"] in ("sampler={'y': 'logreg(~ . + a:b)'}", "sampler={'y': 'logreg(~ . + b:a)'}")
    assert not followed.rejected


@pytest.mark.slow
def test_nonlinearity_suggests_a_spline():
    rng = np.random.default_rng(1)
    age = rng.uniform(18, 80, 2400).round()
    p = 0.1 + 0.7 * np.exp(-(((age - 50) / 10) ** 2))
    X = pd.DataFrame({"my age": age, "y": np.where(rng.uniform(size=2400) < p, "yes", "no")})
    found, followed = remedy_of("logreg", X[:1200], X[1200:])
    assert found.remedies["y"] == "sampler={'y': 'logreg(~ . + bs(`my age`, 4))'}"
    assert not followed.rejected


@pytest.mark.slow
def test_rejected_suggestion_names_alternatives():
    """Log-normal amounts: gamma is tried first, is too wide, and is not suggested again."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=2400)
    X = pd.DataFrame({"x": x, "y": np.exp(3 + 0.5 * x + 0.9 * rng.normal(size=2400))})
    found, followed = remedy_of("gamma", X[:1200], X[1200:])
    assert found.remedies["y"] == "sampler={'y': mcce.Auto(['lognorm', 'quantile'])}"
    assert "LogNorm" in followed["y"].sampler
    assert not followed.rejected
