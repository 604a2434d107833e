"""Letters of a batch run, written with the part of each row.

Texts are read once, before workers start. A letter is named by its row's id; where characters of the id are not allowed
in a file name, the row's number is appended, so names are unique over all parts. Letters are written before their part
is finished, so a part that is redone overwrites them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

from mcce import report
from mcce.base.checks import check_flag
from mcce.base.files import check_path
from mcce.counterfactuals import Counterfactuals
from mcce.exceptions import InputError
from mcce.report.languages import own_texts, read_texts
from mcce.report.letter_layout import letter_name
from mcce.report.names import Names
from mcce.report.result_letters import NOT_REFUSED, OwnTexts


@dataclass(frozen=True)
class Letters:
    """Letters to write beside the tables of `MCCE.explain_batches`.

    Attributes
    ----------
    folder : str or path
        A new or empty folder, or that of the run to resume.
    language, texts, all, reasons : as in `mcce.report.letters`
    names : Names, optional
        Names of features and values, in addition to or instead of those of the explainer.
    decision : str, optional
        The wanted decision in words; by default the explainer's.

    Examples
    --------
    >>> import mcce, tempfile
    >>> from pathlib import Path
    >>> X = mcce.datasets.load_loans(200).X.select_dtypes("number")
    >>> explainer = mcce.MCCE(lambda rows: rows["salary"] > 40_000, decision=True, random_state=1).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     letters = mcce.batches.Letters(f"{folder}/letters", all=True)
    ...     done = explainer.explain_batches(X, f"{folder}/out", n_samples=50, letters=letters)
    ...     print(done.totals["letters"] == len(list(Path(letters.folder).glob("*.html"))))
    True
    """

    folder: str | PathLike[str]
    language: str = "en"
    texts: OwnTexts = None
    all: bool = False
    reasons: bool = False
    names: Names | None = None
    decision: str | None = None

    @classmethod
    def read(cls, given: Letters | str | PathLike[str] | None) -> Letters | None:
        """Return letters with checked texts; a folder alone means letters in English."""
        if given is None:
            return None
        letters = given if isinstance(given, Letters) else cls(given)
        check_flag(letters.all, "all")
        check_flag(letters.reasons, "reasons")
        folder = check_path(letters.folder)
        if folder.exists() and not folder.is_dir():
            raise InputError(f"letters go to {folder}, which is a file; give the name of a folder.")
        read_texts(letters.language, letters.texts)
        return replace(letters, folder=folder, texts=own_texts(letters.texts))

    @property
    def path(self) -> Path:
        return Path(self.folder)


@dataclass(frozen=True)
class Written:
    """The letters of a part: pages by file name, and the rows without a letter, with the reason."""

    pages: dict[str, str]
    unlettered: tuple[tuple[Hashable, str], ...]


def write_letters(found: Counterfactuals, letters: Letters, row_numbers: Sequence[int]) -> Written:
    """Return the letters of a part; `row_numbers` are those of its factuals in the whole source."""
    names, decision = found.names.replaced_by(letters.names), letters.decision or found.decision
    reworded = replace(found, names=names, decision=decision)
    pages = report.letters(
        reworded, all=letters.all, html=True, language=letters.language, texts=letters.texts, reasons=letters.reasons
    )
    number_of = dict(zip(found.factuals.index, row_numbers))
    without = report.unlettered(reworded, all=letters.all)
    without = without[without != NOT_REFUSED]
    return Written(
        {_file_name(who, number_of[who]): page for who, page in pages.items()},
        tuple((who, str(why)) for who, why in without.items()),
    )


def _file_name(who: Hashable, row_number: int) -> str:
    name = letter_name(who)
    return f"{name}.html" if name == str(who) else f"{name}.{row_number}.html"
