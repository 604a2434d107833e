"""Parts of a result: one factual, iteration, sentences, files."""

import pandas as pd
import pytest

import mcce


@pytest.fixture(scope="module")
def found():
    X = mcce.datasets.load_loans(300).X.set_axis([f"case {i}" for i in range(300)])
    explainer = mcce.MCCE(lambda rows: rows["salary"] > 40_000, decision=True, fixed=["age"], random_state=1).fit(X)
    return explainer.explain(X.iloc[:12], n_samples=100, n_counterfactuals=2)


@pytest.mark.slow
def test_single_factual(found):
    for id in found:
        one = found[id]
        assert type(one) is type(found)
        assert one.factuals.index.tolist() == [id]
        assert len(one) == (found.frame.index.get_level_values("id") == id).sum()
        assert one.sentence(id, 2) == found.sentence(id, 2)
        pd.testing.assert_frame_equal(one.changes(), found.changes().query("id == @id").reset_index(drop=True))
        assert one.summary().at["explained", "value"] == 1
        assert id in repr(one)
    assert "<table" in one._repr_html_()
    pd.testing.assert_frame_equal(one.contributions(id), found.contributions(id))


def test_iteration_yields_the_explained_ids(found):
    explained = found.frame.index.get_level_values("id").unique().tolist()
    assert list(found) == explained
    assert len(found) == 2 * len(explained), "len counts the counterfactuals"
    had_it = found.unexplained.index[0]
    assert had_it not in found
    assert explained[0] in found
    assert len(found[had_it]) == 0
    assert found[had_it].sentence(had_it) == found.sentence(had_it)
    with pytest.raises(mcce.InputError, match="no factual has the id 'nobody'; the ids are the index"):
        found["nobody"]
    with pytest.raises(mcce.InputError, match=f"'?{explained[0]}'? is the id and 1 the rank; give them as two arg"):
        found.sentence(found.frame.index[0])


def test_sentences_cover_every_factual(found):
    said = mcce.report.sentences(found)
    assert said.index.equals(found.factuals.index)
    assert said.to_dict() == {id: found.sentence(id) for id in found.factuals.index}
    id = next(iter(found))
    assert mcce.report.sentences(found, rank=2)[id] == found.sentence(id, 2)


def test_files(found, tmp_path):
    path = found.to_csv(tmp_path / "found.csv")
    read = pd.read_csv(path)
    assert read.columns.tolist() == found.to_frame().columns.tolist()
    assert read["id"].tolist() == found.to_frame()["id"].tolist()
    assert found.to_csv() == path.read_text(encoding="utf-8")
    assert found.to_csv(sep=";", decimal=",").splitlines()[0].startswith("id;rank;")
    pytest.importorskip("pyarrow")
    found.to_frame().to_parquet(tmp_path / "found.parquet", index=False)
    kept = pd.read_parquet(tmp_path / "found.parquet")
    pd.testing.assert_frame_equal(kept, found.to_frame(), check_dtype=False)
    assert kept["education"].dtype == found.frame["education"].dtype
    assert sorted(p.name for p in tmp_path.iterdir()) == ["found.csv", "found.parquet"]


@pytest.mark.parametrize(
    ("flag", "call"),
    [
        ("words", lambda found, **flag: found.changes(**flag)),
        ("standard_errors", lambda found, **flag: found.summary(**flag)),
        ("words", lambda found, **flag: found.contributions(next(iter(found)), **flag)),
        ("every", lambda found, **flag: found.principal_reasons(next(iter(found)), **flag)),
        ("prove", lambda found, **flag: found.why_unexplained(found.unexplained.index[0], **flag)),
        ("spreadsheet_safe", lambda found, **flag: found.to_csv(**flag)),
        ("html", lambda found, **flag: mcce.report.letter(found, next(iter(found)), **flag)),
        ("reasons", lambda found, **flag: mcce.report.letter(found, next(iter(found)), **flag)),
        ("all", lambda found, **flag: mcce.report.letters(found, **flag)),
        ("html", lambda found, **flag: mcce.report.letters(found, **flag)),
        ("reasons", lambda found, **flag: mcce.report.letters(found, all=True, **flag)),
        ("all", lambda found, **flag: mcce.report.unlettered(found, **flag)),
    ],
)
def test_flags_that_are_not_boolean_raise(found, flag, call):
    with pytest.raises(mcce.InputError, match=f"{flag} is 'yes'; it must be True or False"):
        call(found, **{flag: "yes"})
