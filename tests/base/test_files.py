"""A file is written completely or not at all."""

import errno
import os
import stat

import pytest

from mcce import MCCE, ChainModel, Counterfactuals, InputError
from mcce.base.files import atomic_write
from mcce.datasets import load_loans
from tests.marks import nightly_rows

OLD, NEW = "the old result", "the new result"


def write(path, work=lambda beside: beside.write_text(NEW), **options):
    with atomic_write(path, **options) as beside:
        work(beside)


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), OSError(errno.ENOSPC, "full"), ValueError("no")])
def test_failed_writing_keeps_the_old_file_and_leaves_nothing_else(tmp_path, stop):
    path = tmp_path / "result.csv"
    path.write_text(OLD)

    def begin(beside):
        beside.write_text(NEW[:5])
        raise stop

    with pytest.raises(type(stop)) as caught:
        write(path, begin)
    assert path.read_text() == OLD
    assert os.listdir(tmp_path) == ["result.csv"]
    if isinstance(stop, OSError):
        assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(path))


def test_really_full_disk(tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    path = tmp_path / "result.csv"
    path.write_text(OLD)

    def begin(beside):
        beside.unlink()
        beside.symlink_to("/dev/full")
        beside.write_text(NEW)

    with pytest.raises(OSError, match="No space left"):
        write(path, begin)
    assert path.read_text() == OLD
    assert os.listdir(tmp_path) == ["result.csv"]


def test_new_file_appears_at_the_end_of_the_block(tmp_path):
    path = tmp_path / "result.csv.gz"
    path.write_text(OLD)
    with atomic_write(path) as beside:
        assert beside.parent == tmp_path
        assert beside.name.endswith(".csv.gz")  # the suffix selects the compression of pandas
        beside.write_text(NEW)
        assert path.read_text() == OLD
    assert path.read_text() == NEW
    assert os.listdir(tmp_path) == ["result.csv.gz"]


def test_file_created_meanwhile_is_kept(tmp_path):
    path = tmp_path / "result.csv"
    with pytest.raises(FileExistsError) as caught:
        write(path, lambda _: path.write_text(OLD), overwrite=False)
    assert caught.value.filename == str(path)
    assert path.read_text() == OLD


def test_permissions_and_links_are_kept(tmp_path):
    path, link = tmp_path / "result.csv", tmp_path / "link.csv"
    path.write_text(OLD)
    path.chmod(0o640)
    link.symlink_to(path)
    write(link)
    assert link.is_symlink()
    assert path.read_text() == NEW
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    write(tmp_path / "fresh.csv")
    (tmp_path / "plain.csv").write_text(NEW)
    assert (tmp_path / "fresh.csv").stat().st_mode == (tmp_path / "plain.csv").stat().st_mode


def test_devices_are_written_to_and_folders_raise(tmp_path):
    before = os.stat("/dev/null")
    write("/dev/null")
    assert os.stat("/dev/null").st_ino == before.st_ino
    with pytest.raises(InputError, match="is a folder; give the name of a file"):
        write(tmp_path)


def test_missing_folder_names_the_file(tmp_path):
    with pytest.raises(OSError, match="No such file") as caught:
        write(tmp_path / "nowhere" / "result.csv")
    assert caught.value.filename == str(tmp_path / "nowhere" / "result.csv")


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_unfinished_page_keeps_the_old_one(tmp_path, monkeypatch):
    X = load_loans(200).X
    found = MCCE(lambda rows: rows["salary"] > 40_000, decision=True, random_state=1).fit(X).explain(X.head(5))
    path = tmp_path / "page.html"
    path.write_text(OLD)

    def fill_the_disk(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fill_the_disk)
        with pytest.raises(OSError, match="No space left"):
            found.to_html(path)
    assert path.read_text() == OLD
    assert os.listdir(tmp_path) == ["page.html"]
    found.to_html(path)
    assert path.read_text(encoding="utf-8").endswith("</html>\n")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "why"), [("", "it is empty"), *nightly_rows(("a\0b", "it holds a NUL character"))])
def test_invalid_file_names(name, why):
    X = load_loans(50).X[["age", "salary"]]
    explainer = MCCE(lambda rows: rows["salary"] > 40_000, decision=True, random_state=1).fit(X)
    found = explainer.explain(X.head(2), n_samples=20)
    writers = (explainer.save, explainer.generator_.save, found.save, found.to_csv, found.to_html)
    readers = (lambda path: MCCE.load(path, None), ChainModel.load, Counterfactuals.load)
    for call in (*writers, *readers):
        with pytest.raises(InputError, match=f"is not a valid file name: {why}; give another name"):
            call(name)


def test_saving_to_a_folder_raises():
    chain = ChainModel(random_state=1).fit(load_loans(60).X[["age", "salary"]])
    with pytest.raises(InputError, match=r"'\.' is a folder; give the name of a file"):
        chain.save(".")
