"""A text file as people have it: its encoding, its separator, and whether its rows are whole.

1. Bytes become text by the mark at their beginning (UTF-8, UTF-16, UTF-32), else as UTF-8. What is no UTF-8 is read as
   Windows' western code page, which contains Latin-1, if that is what it looks like, and that is said; anything else is
   refused with its line. `--encoding` says it.
2. The separator is the one of , ; tab | by which the first rows have as many cells as the header has names; a first
   line as in `sep=;` names it, and so does `--sep`. If two would do, neither is chosen.
3. A row with fewer cells than the header has names, or a quote that is never closed, is refused with its line.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from mcce.cli.console import say
from mcce.exceptions import InputError

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}
LOOKED_AT = 100  # rows, to find the separator
MARKS = {  # the longer ones first: UTF-32 begins like UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
OTHERS = {  # what a file is whose name says that it is text
    b"PK\x03\x04": "an Excel workbook or another zip archive; name it .xlsx if it is a workbook, else unpack it",
    b"PAR1": "a Parquet file; name it .parquet",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook (.xls); save it as .xlsx or CSV",
    b"%PDF": "a PDF; give the table that it was made from",
    b"\x1f\x8b": "compressed by gzip; name it .csv.gz",
}
WESTERN = "cp1252"
PARTS_OF_UTF8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}")
# Greek or Russian read as western: words of accented letters; that of DOS: daggers and quotes inside words
NOT_WESTERN = re.compile(r"[^\W\d_a-zA-Z]{3}|[a-z][€‚ƒ„…†‡ˆ‰‹‘“”•˜™›][a-z]", re.IGNORECASE)


@dataclass(frozen=True)
class TextFile:
    """The text of a file, and how it is to be read.

    Attributes
    ----------
    text : from the header on
    encoding, sep : found or given
    skipped : lines before the header
    """

    text: str
    encoding: str
    sep: str
    skipped: int = 0

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Return each row that is no empty line, the header first, with the line it begins on."""
        lines = io.StringIO(self.text, newline="")
        reader, begin = csv.reader(lines, delimiter=self.sep, strict=True), self.skipped + 1
        for cells in reader:
            if cells:
                yield begin, cells
            begin = self.skipped + reader.line_num + 1


def read_text(where: str, path: str, encoding: str | None, sep: str | None) -> TextFile:
    """Read a file (steps 1 to 3); `where` names it in messages."""
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        raw = file.read()
    for beginning, what in OTHERS.items():
        if raw.startswith(beginning):
            raise InputError(f"{where} is {what}.")
    text, encoding = _decode(where, raw, encoding)
    skipped, hint = 0, re.match(r"sep=(.)\r?\n", text)
    if hint is not None:  # how Excel is told
        text, skipped, sep = text[hint.end() :], 1, sep or hint[1]
    if text.lstrip()[:15].lower().startswith(("<!doctype html", "<html", "<?xml")):
        raise InputError(f"{where} is a web page or XML, not a table of text; export it as CSV.")
    found = TextFile(text, encoding, sep or _find_separator(where, text), skipped)
    _check_rows(where, found)
    return found


def _decode(where: str, raw: bytes, encoding: str | None) -> tuple[str, str]:
    """Step 1."""
    marked = next((name for mark, name in MARKS.items() if raw.startswith(mark)), None)
    if encoding is not None:
        try:
            b"a".decode(encoding, "replace")  # also tells what is no encoding of text
            name = codecs.lookup(encoding).name
        except LookupError:
            raise InputError(
                f"--encoding is {encoding!r}, which is not known; write utf-8, utf-16, cp1252 (western Windows), "
                "cp1250 (central European), latin-1, shift_jis, or another of Python's names."
            ) from None
        name = "utf-8-sig" if name == "utf-8" else name
    elif marked is not None:
        name = marked
    elif b"\0" in raw:
        line = raw[: raw.index(b"\0")].count(b"\n") + 1
        raise InputError(
            f"{where}, line {line}: there are NUL bytes, as in UTF-16 without a mark. Add --encoding utf-16-le (or "
            "utf-16-be) if that is what it is; save it as UTF-8 otherwise."
        )
    else:
        name = "utf-8"
    try:
        return raw.decode(name), name
    except UnicodeDecodeError as error:
        if encoding is None and marked is None:
            return _decode_western(where, raw, error), WESTERN
        raise _undecodable(where, raw, error, name) from None


def _decode_western(where: str, raw: bytes, error: UnicodeDecodeError) -> str:
    """Return bytes that are no UTF-8 as western text, if nothing speaks against it."""
    try:
        text = raw.decode(WESTERN)
    except UnicodeDecodeError as second:
        raise _undecodable(where, raw, second, "UTF-8 or cp1252") from None
    strange = NOT_WESTERN.search(text)
    if PARTS_OF_UTF8.search(raw):
        raise _undecodable(where, raw, error, "UTF-8, which other parts of the file are")
    if strange is not None:
        begin = strange.start()
        raise _undecodable(where, raw, UnicodeDecodeError("utf-8", raw, begin, begin + 1, ""), "UTF-8, nor western")
    line, word = text[: error.start].count("\n") + 1, re.findall(r"\S*$", text[: error.start])[0][-20:]
    word += re.findall(r"^[\w'-]*", text[error.start :])[0][:20] or text[error.start]
    say(
        f"{where} is not UTF-8; it is read as western text ({WESTERN}), which has {word.split(';')[-1]!r} on line "
        f"{line}. If that is wrong, add --encoding"
    )
    return text


def _undecodable(where: str, raw: bytes, error: UnicodeDecodeError, name: str) -> InputError:
    line = raw[: error.start].count(b"\n") + 1
    around = raw[max(error.start - 8, 0) : error.start + 8].decode("ascii", "backslashreplace")
    return InputError(
        f"{where}, line {line}: the byte 0x{raw[error.start]:02x} in {around!r} is not {name}. Name the encoding, as "
        "in --encoding cp1250 or --encoding shift_jis; save it as UTF-8 otherwise."
    )


def _find_separator(where: str, text: str) -> str:
    """Step 2."""
    fits, could = [], {}
    for sep in SEPARATORS:
        try:
            widths = [len(cells) - (cells[-1] == "") for _, cells in islice(TextFile(text, "", sep).rows(), LOOKED_AT)]
            header = next((cells for _, cells in TextFile(text, "", sep).rows()), [])
        except csv.Error:  # a quote that is never closed is told below
            header, widths = text.partition("\n")[0].split(sep), []
        if len(header) > 1:
            could[sep] = len(header)
            if all(width in (len(header), len(header) - 1) for width in widths[1:]):
                fits.append(sep)
    if len(fits) > 1:
        named = " or ".join(f"a {SEPARATORS[sep]}" for sep in fits)
        raise InputError(f"{where} could be separated by {named}; say which, as in --sep '{fits[0]}'.")
    return fits[0] if fits else max(could, key=lambda sep: could[sep], default=",")


def _check_rows(where: str, file: TextFile) -> None:
    """Step 3."""
    width, line = 0, file.skipped + 1
    try:
        for line, cells in file.rows():
            width = width or len(cells)
            if len(cells) < width:
                raise InputError(
                    f"{where}, line {line} has {len(cells)} cell(s), {' '.join(cells)[:40]!r}, where the header has "
                    f"{width} names. Complete or remove it; is the file whole?"
                )
            line += 1
    except csv.Error as error:
        raise InputError(
            f"{where}, line {line}: a quote is not closed, or text follows its end ({error}). Correct it there; a "
            "quote inside a quoted cell is doubled."
        ) from None
