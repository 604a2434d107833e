"""Letters of batches equal those of `explain`, one per factual, after any interruption."""

from dataclasses import replace

import pandas as pd
import pytest

import mcce
from mcce import InputError
from mcce.batches import Letters, folder
from tests.batches.problem import ROWS, SETTINGS, explainer, written
from tests.marks import nightly

WHO = ROWS.head(40).assign(who=[f"case {i}" if i % 3 else f"c{i}" for i in range(40)])


def pages(where):
    return {path.name: path.read_text(encoding="utf-8") for path in where.glob("*.html")}


def test_letters_match_explain_with_given_labels(tmp_path):
    names = mcce.Names(labels={"income": "yearly pay"})
    letters = Letters(tmp_path / "letters", all=True, decision="the loan is granted", names=names)
    done = explainer().explain_batches(WHO, tmp_path / "out", **SETTINGS, letters=letters)
    found = explainer().explain(WHO.set_index("who"), n_samples=SETTINGS["n_samples"])
    found = replace(found, names=replace(found.names, labels=names.labels), decision="the loan is granted")
    expected = mcce.report.letters(found, all=True, html=True)
    assert done.totals["letters"] == len(expected) > 15
    numbered = {f"case {i}": f"case_{i}.{i}" for i in range(len(WHO))}  # file names have no blanks
    assert pages(tmp_path / "letters") == {f"{numbered.get(who, who)}.html": expected[who] for who in expected.index}
    assert any("yearly pay" in page for page in expected)


@pytest.mark.slow
def test_letters_have_reasons_on_request(tmp_path):
    letters = Letters(tmp_path / "letters", all=True, reasons=True)
    done = explainer().explain_batches(WHO.head(3), tmp_path / "out", **SETTINGS, letters=letters)
    assert done.totals["letters"] > 0
    assert all("Your rights" in page for page in pages(tmp_path / "letters").values())
    with pytest.raises(InputError, match="letters"):
        explainer().explain_batches(WHO.head(3), tmp_path / "out", **SETTINGS, letters=replace(letters, reasons=False))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*a level that is not known")
def test_spreadsheet_does_not_execute_the_list_of_missing_letters(tmp_path):
    some = WHO.assign(who=["=cmd()", *WHO["who"][1:]], job=["astronaut", *WHO["job"][1:]])
    explainer().explain_batches(some, tmp_path / "out", **SETTINGS, letters=tmp_path / "letters")
    assert pd.read_csv(tmp_path / "out" / "unlettered.csv")["id"].iloc[0] == "'=cmd()"


@pytest.mark.slow
def test_factuals_without_letter_are_listed_with_the_reason(tmp_path):
    some = WHO.copy()
    some.loc[4, "job"] = "astronaut"
    with pytest.warns(mcce.MCCEWarning, match="'case 4' .*holds 'astronaut'.*`unexplained` says so"):
        done = explainer().explain_batches(some, tmp_path / "out", **SETTINGS, letters=tmp_path / "letters")
    listed = pd.read_csv(tmp_path / "out" / "unlettered.csv").set_index("id")["why"]
    assert listed["case 4"].startswith("it could not be read: column 'job' holds 'astronaut'")
    totals = done.totals
    assert totals["letters"] + len(listed) + totals["already"] == totals["rows"]
    assert len(pages(tmp_path / "letters")) == totals["letters"]


class Killed(BaseException):
    """A run that is killed: its leftovers cannot be removed."""


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.6, *nightly(0.02)])
def test_killed_and_resumed_run_writes_one_letter_each(tmp_path, monkeypatch, share):
    done = explainer().explain_batches(WHO, tmp_path / "out", **SETTINGS, letters=Letters(tmp_path / "whole", all=True))
    left = int(share * done.totals["letters"])
    whole = folder.atomic_write

    def until_killed(path, **how):
        nonlocal left
        if path.suffix == ".html":
            left -= 1
            if left < 0:
                (path.parent / ".mcce-half.html").write_text("half a letter")
                raise Killed
        return whole(path, **how)

    monkeypatch.setattr(folder, "atomic_write", until_killed)
    again = {**SETTINGS, "letters": Letters(tmp_path / "again", all=True)}
    with pytest.raises(Killed):
        explainer().explain_batches(WHO, tmp_path / "out2", **again)
    monkeypatch.undo()
    sent = []
    for part in (tmp_path / "out2").glob("parts/*.json"):
        first = int(part.stem.removeprefix("part-")) * SETTINGS["batch_size"]
        for who in WHO["who"].iloc[first : first + SETTINGS["batch_size"]]:
            for path in (tmp_path / "again").glob(f"{who}.html"):  # sent, then removed
                sent.append(path.name)
                path.unlink()
    explainer().explain_batches(WHO, tmp_path / "out2", **again)
    expected = written(tmp_path / "whole")
    assert bool(sent) == (share > 0.5)
    assert written(tmp_path / "again") == {name: data for name, data in expected.items() if name not in sent}
    assert written(tmp_path / "out2") == written(tmp_path / "out")


@pytest.mark.slow
def test_other_files_and_other_letters_raise(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "diary.txt").write_text("private")
    with pytest.raises(InputError, match=r"holds 'diary.txt', which this run did not write; give a new or empty"):
        explainer().explain_batches(WHO, tmp_path / "out", **SETTINGS, letters=tmp_path / "mine")
    with pytest.raises(InputError, match=r"diary.txt, which is a file; give the name of a folder"):
        explainer().explain_batches(WHO, tmp_path / "out", **SETTINGS, letters=tmp_path / "mine" / "diary.txt")
    with pytest.raises(InputError, match="there are no letters in 'xx'"):
        explainer().explain_batches(WHO, tmp_path / "out", **SETTINGS, letters=Letters(tmp_path / "new", language="xx"))
    explainer().explain_batches(WHO, tmp_path / "out", **SETTINGS, letters=tmp_path / "new")
    with pytest.raises(InputError, match=r"settings.letters.all was false, is true"):
        explainer().explain_batches(WHO, tmp_path / "out", **SETTINGS, letters=Letters(tmp_path / "new", all=True))
    with pytest.raises(InputError, match=r"settings.letters was .*is null"):
        explainer().explain_batches(WHO, tmp_path / "out", **SETTINGS)
    letters = Letters(tmp_path / "third", names=mcce.Names({"wage": "pay"}))
    with pytest.raises(InputError, match="labels names 'wage', which is not a column"):
        explainer().explain_batches(WHO, tmp_path / "third_out", **SETTINGS, letters=letters)
