"""Texts of letters by language, and the conventions of a language for numbers, dates and units.

1. The texts of a language are one TOML file, such as `texts/nb.toml`; each file in this folder adds a language. A
   user's file replaces one of them: it has the same keys, and its `language` selects the notation of numbers and dates.
2. The English file defines the keys and the fields of each text. A file with a missing or unknown key, or with a
   missing field, raises an error that lists all problems. Braces may hold only the name of a field: no conversion,
   format, attribute or index. A literal brace is doubled.
3. The plural form of a text follows the rules of CLDR, as do decimal and thousands separators, per cent, the position
   of currency signs, and dates. They require babel, the extra `languages`, except for English.
4. The label of the decision, "the loan is granted", is turned into "the loan was not granted" and "the loan would have
   been granted" where one of the label patterns of the file matches; otherwise it is used unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

from mcce.constraints.reading import parse_file
from mcce.exceptions import InputError, did_you_mean, listing, shorten, spell
from mcce.report.names import Marks

ENGLISH = "en"
FOLDER = Path(__file__).parent / "texts"
PLURALS = ("zero", "one", "two", "few", "many", "other")
LABEL = ("says", "would", "was_not")
MOST_WRONG = 5
SPELLINGS = {"no": "nb", "norwegian": "nb", "english": "en", "german": "de", "deutsch": "de", "french": "fr"}


def available_languages() -> list[str]:
    """Return the codes of the available languages.

    Examples
    --------
    >>> available_languages()
    ['de', 'en', 'fr', 'nb']
    """
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


@dataclass(frozen=True)
class Texts:
    """The texts of a language, by key, such as `letter.title`.

    Attributes
    ----------
    language : its code
    texts : key to text, or to texts by plural form
    labels : patterns of the label of the decision, each with its "would have been" and its "was not" form
    marks : notation of numbers and dates; None for English
    """

    language: str
    texts: Mapping[str, str | Mapping[str, str]]
    labels: tuple[tuple[str, str, str], ...]
    marks: Marks | None

    def fill(self, key: str, number: int = 0, /, **filled: object) -> str:
        """Return a text with its fields filled in, in the plural form of the number."""
        text = self.texts[key]
        if not isinstance(text, str):
            text = text.get(self._form(number), text["other"])
        return text.format(**filled)

    def _form(self, n: int) -> str:
        if self.language == ENGLISH:
            return "one" if n == 1 else "other"
        return str(_locale(self.language).plural_form(n))

    def listed(self, parts: Sequence[str], word: str = "and") -> str:
        """Return texts as a sentence has them: "a", "a and b", "a, b and c"."""
        if len(parts) < 2:
            return "".join(parts)
        return self.fill(f"words.{word}", first=", ".join(parts[:-1]), last=parts[-1])

    def conditional_form(self, decision: str) -> str | None:
        """Return the "would have been" form of a label; None if no pattern matches."""
        return self._label_form(decision, 1)

    def negated_form(self, decision: str) -> str | None:
        """Return the "was not" form of a label; None if no pattern matches."""
        return self._label_form(decision, 2)

    def _label_form(self, decision: str, position: int) -> str | None:
        for label in self.labels:
            pattern = re.escape(label[0]).replace(r"\{who\}", "(?P<who>.+?)").replace(r"\{what\}", "(?P<what>.+)")
            if found := re.fullmatch(pattern, decision.strip().rstrip(".")):
                return label[position].format(**found.groupdict())
        return None


def read_texts(language: str = ENGLISH, texts: str | PathLike[str] | Mapping[str, Any] | None = None) -> Texts:
    """Return the texts of a language, or those of a user's TOML file or dict.

    Examples
    --------
    >>> read_texts().conditional_form("the loan is granted")
    'the loan would have been granted'
    >>> read_texts().listed(["age", "sex", "home"], "or")
    'age, sex or home'
    """
    content = own_texts(texts)
    if content is None:
        return _shipped(_known_language(language))
    return _checked(content, "texts" if isinstance(texts, Mapping) else f"texts {texts}")


def own_texts(texts: str | PathLike[str] | Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a user's texts, a TOML file or a dict, as a dict."""
    if texts is None or isinstance(texts, Mapping):
        return None if texts is None else dict(texts)
    return _read_file(Path(texts), f"texts {texts}")


def _known_language(language: Any) -> str:
    known = available_languages()
    code = str(language).strip()
    code = SPELLINGS.get(code.lower(), re.split("[-_]", code.lower())[0])
    if code not in known:
        raise InputError(
            f"there are no letters in {spell(language)}; give texts of your own, a TOML file like those in "
            f"mcce/report/texts, or another language; {did_you_mean(str(language), known)}"
        )
    return code


@cache
def _shipped(language: str) -> Texts:
    where = f"texts of {language!r}"
    return _checked(_read_file(FOLDER / f"{language}.toml", where), where)


def text_of(language: str) -> str:
    """Return the file of a language as text, as a template for a user's file."""
    return (FOLDER / f"{_known_language(language)}.toml").read_text(encoding="utf-8")


def _read_file(path: Path, where: str) -> dict[str, Any]:
    if not path.is_file():
        raise InputError(f"{where}: there is no such file; check its name and folder.")
    try:
        content: dict[str, Any] = parse_file(path.read_text(encoding="utf-8-sig"), "TOML", where)
        return content
    except UnicodeDecodeError as error:
        raise InputError(f"{where} is not a TOML file: {error}; save it as UTF-8.") from None


@cache
def _english() -> dict[str, Any]:
    return _flat(_read_file(FOLDER / f"{ENGLISH}.toml", "texts of 'en'"))


def _flat(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return texts by section and key; plural forms stay together."""
    sections = {name: each for name, each in content.items() if isinstance(each, Mapping)}
    alone = {name: each for name, each in content.items() if name not in (*sections, "language", "label")}
    return {**alone, **{f"{name}.{key}": text for name, each in sections.items() for key, text in each.items()}}


def _checked(content: Mapping[str, Any], where: str) -> Texts:
    """Return texts after comparing them with the English file; the error lists all problems (2)."""
    language, model, given = content.get("language"), _english(), _flat(content)
    if not isinstance(language, str) or not language.strip():
        raise InputError(f'{where} does not say its language; begin it with language = "en", or another code.')
    wrong = [f"{key!r} is missing" for key in model if key not in given]
    wrong += [f"{key!r} is not a key; {did_you_mean(key, model)}".rstrip(".") for key in given if key not in model]
    for key, text in given.items():
        if key in model:
            wrong += [f"{key!r} {problem}" for problem in _problems(text, model[key])]
    labels = content.get("label", [])
    if not isinstance(labels, list) or not all(isinstance(each, Mapping) for each in labels):
        wrong.append("'label' is not a list of [[label]]")
        labels = []
    for each in labels:
        wrong += [f"a [[label]] {problem}" for problem in _label_problems(each)]
    if wrong:
        more = f"; and {len(wrong) - MOST_WRONG} more" if len(wrong) > MOST_WRONG else ""
        raise InputError(f"{where}: {'; '.join(wrong[:MOST_WRONG])}{more}. Correct it there.")
    code = SPELLINGS.get(language.lower(), language)
    found = tuple((str(each["says"]), str(each["would"]), str(each["was_not"])) for each in labels)
    return Texts(code, given, found, _marks(code))


def _problems(text: Any, model: Any) -> list[str]:
    """Return the problems of a text, or of its plural forms, compared with the English file."""
    if isinstance(model, str):
        if not isinstance(text, str):
            return [f"is {spell(text)}; it must be a text"]
        return _of_fields(text, _fields(model), _fields(model))
    if not isinstance(text, Mapping) or "other" not in text or not all(isinstance(form, str) for form in text.values()):
        return ['needs forms by number: { one = "...", other = "..." }']
    allowed = set().union(*map(_fields, model.values()))
    found = [f"has the form {form!r}; {did_you_mean(form, PLURALS)}" for form in text if form not in PLURALS]
    for form, words in text.items():
        found += _of_fields(words, allowed, _fields(model["other"]) if form == "other" else allowed - {"n"})
    return found


def _of_fields(text: str, allowed: set[str], needed: set[str]) -> list[str]:
    """Return the problems of the fields of a text: braces without an allowed name, and absent fields."""
    tokens = [(match[0], match[1]) for match in _BRACES.finditer(text)]
    if any(token in ("{", "}") for token, _ in tokens):
        return [f"is {spell(text)}, which has a single brace; close it, or double it if the brace is text"]
    fields = _fields(text)
    write = f"write {listing(f'{{{name}}}' for name in sorted(allowed))}" if allowed else "nothing is filled in there"
    found = []
    for name in sorted(fields - allowed):
        what = "which is not filled in there" if name.isidentifier() else "which is not the name of a field alone"
        found.append(f"has {{{shorten(name)}}}, {what}; {write}")
    return found + [f"lacks {{{name}}}" for name in sorted(needed - fields)]


def _label_problems(each: Mapping[str, Any]) -> list[str]:
    if sorted(each) != sorted(LABEL) or not all(isinstance(text, str) for text in each.values()):
        return [f"has {listing(each)}; it needs the texts {listing(LABEL)}"]
    says, fields = each["says"], _fields(each["says"])
    found = _of_fields(says, {"who", "what"}, set())
    found += [] if found or fields else ["says nothing of {who} or {what}"]
    found += [f"says {{{name}}} twice; say it once" for name in sorted(fields) if says.count(f"{{{name}}}") > 1]
    return found + [problem for key in LABEL[1:] for problem in _of_fields(each[key], fields, fields)]


_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")  # a doubled brace, a field, or a single brace


def _fields(text: str) -> set[str]:
    """Return the contents of the braces of a text."""
    return {match[1] for match in _BRACES.finditer(text) if match[1] is not None}


def _locale(language: str) -> Any:
    try:
        from babel import Locale, UnknownLocaleError
    except ImportError:
        raise InputError(
            f"letters in {language!r} need babel, which knows its plurals, numbers and dates; pip install "
            "'mcce[languages]', or write them in English."
        ) from None
    try:
        return Locale.parse(language.replace("-", "_"))
    except (UnknownLocaleError, ValueError):
        raise InputError(f"language is {spell(language)}, unknown to babel; give a code such as 'nb'.") from None


def _marks(language: str) -> Marks | None:
    """Return the notation of numbers and dates of a language (3)."""
    if language == ENGLISH:
        return None
    locale = _locale(language)
    from babel.dates import format_date
    from babel.numbers import get_decimal_symbol, get_group_symbol, get_minus_sign_symbol

    percent = str(locale.percent_formats[None].pattern)
    return Marks(
        decimal=get_decimal_symbol(locale),
        group=get_group_symbol(locale),
        minus=get_minus_sign_symbol(locale),
        percent="".join(letter for letter in percent.split(";")[0] if letter not in "#,.0"),
        currency_first=str(locale.currency_formats["standard"].pattern).startswith("¤"),
        date=lambda value: str(format_date(value, "long", locale=locale)),
    )
