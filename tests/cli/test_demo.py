"""`mcce demo`: its text, its files, and folders that cannot be written."""

import numpy as np
import pytest
from matplotlib.image import imread

from mcce.cli import main
from tests.plain_words import assert_plain


@pytest.mark.slow
def test_demo_prints_text_and_writes_picture_and_page(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path / "new"), "--factuals", "8"]) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.replace(str(tmp_path), "").splitlines())) <= 90
    text = " ".join(said.split())
    assert "A woman of 36 asks her bank for a loan of 14,000 dollars. She earns 68,000" in text
    assert "so she is refused" in text
    assert text.count("the loan would have been granted (probability of default") == 3
    assert "for 8 of 8 refused customers" in text
    assert "age (fixed) 36 same same same" in text
    changed = [line.split()[0] for line in said.splitlines() if line.count(" same") in (1, 2) and "  same" in line]
    assert changed == ["salary", "housing", "loan"]  # not savings: their increase would exceed the loan
    assert "The published method returns whole drawn customers: for this one " in text
    assert "1 record: every hash is right, and the chain is complete. Reproduced byte for byte: 1 of 1." in text
    assert "After a change: 000001-customer_1.json was changed: its hash is not that of its content." in text
    assert str(tmp_path / "new" / "mcce-demo.png") in said
    assert np.ptp(imread(tmp_path / "new" / "mcce-demo.png")) == 1.0, "the picture is blank"
    page = (tmp_path / "new" / "mcce-demo.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert page.count("<li>") == 3
    assert "data:image/png;base64,iVBOR" in page
    assert "customer 1" in page
    assert "http" not in page
    assert_plain(said)
    assert_plain(page)


def test_demo_reports_an_unwritable_folder(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["demo", "--out", str(tmp_path / "file"), "--factuals", "1"]) == 2
    assert f"mcce: error: {tmp_path / 'file'}: File exists" in capsys.readouterr().err


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.nightly
def test_demo_twice_keeps_the_files_of_the_first_run(tmp_path, capsys):
    arguments = ["demo", "--out", str(tmp_path), "--factuals", "5"]
    (tmp_path / "mcce-demo.html").write_text("my own notes")
    assert main(arguments) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"mcce-demo.html", "mcce-demo-2.png", "mcce-demo-2.html"}
    assert (tmp_path / "mcce-demo.html").read_text() == "my own notes"
    assert str(tmp_path / "mcce-demo-2.html") in capsys.readouterr().out
    assert main([*arguments, "--force"]) == 0
    assert len(list(tmp_path.iterdir())) == 4
    assert (tmp_path / "mcce-demo.html").read_text(encoding="utf-8").startswith("<!doctype html>")
