"""The criticism of several features: table, text, page, pictures."""

import dataclasses

import matplotlib
import numpy as np
import pytest

import mcce
from mcce.exceptions import InputError
from mcce.judging.criticism import Criticism
from tests.judging.processes import RIGHT, RIGHT_LEVELS, WRONG, Levels, criticise
from tests.marks import slow_rows
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


def test_the_table_has_a_row_for_each_feature(criticism):
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


def test_the_accused_are_named_the_worst_first(criticism):
    assert set(criticism.accused) == {"<b>salary</b>", "housing"}
    assert [criticism[name].p for name in criticism.accused] == sorted(each.p for each in criticism)[:2]
    assert criticism["housing"].feature.name == "housing"
    assert len(criticism) == len(list(criticism)) == 3
    with pytest.raises(InputError, match=r"'housign' is not among the features criticised; .*'housing'"):
        criticism["housign"]


def test_the_text_says_one_sentence_each(criticism):
    lines = repr(criticism).split("\n")
    assert lines[0] == "3 conditionals judged by 300 new rows: 2 accused at level 0.05"
    assert len(lines) == 5 + 2  # and two samplers to try
    for line, says in zip(lines[2:], criticism.sentences):
        assert line.endswith(says)
    assert "right: passes (p = " in lines[2]


def test_names_are_escaped_on_a_page(criticism):
    page = criticism._repr_html_()
    assert "<b>salary" not in page
    assert "&lt;b&gt;salary" in page


@pytest.mark.slow
def test_one_picture_a_feature(criticism):
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
    heights = [patch.get_height() for patch in axes[0].patches if patch.get_height() == int(patch.get_height())]
    assert sum(heights) >= 300
    plt.close(axes[0].figure)


@pytest.mark.parametrize(
    ("target", "accused", "wanted"),
    [
        ("amount", "norm", "gamma"),
        ("amount", "gamma", ""),
        *slow_rows(
            ("overdispersed", "poisson", "negbin"),
            ("saved", "norm", "twopart"),
            ("saved", "twopart", ""),
            ("grade", "marginal", "mcce.ForestSampler(pooling='trees')"),
        ),
    ],
)
def test_an_accused_conditional_has_a_sampler_to_try(target, accused, wanted):
    """Following the advice, the conditional of the known process passes."""
    train, new = (make_frame(1500, seed=seed)[["age", "sex", target]] for seed in (1, 2))
    chain = mcce.ChainModel(sampler={target: accused}, fixed=["age", "sex"], random_state=1).fit(train)
    found = chain.criticise(new)
    shown = wanted if "(" in wanted else repr(wanted)
    assert found.remedies == ({target: f"sampler={{'{target}': {shown}}}"} if wanted else {})
    assert ("to try: sampler=" in repr(found)) == bool(wanted)
    assert ("to try: <code>" in found._repr_html_()) == bool(wanted)
