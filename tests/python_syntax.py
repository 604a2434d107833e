"""Recognise Python syntax in a message that another front end shows."""

import re

PYTHON_SYNTAX = {
    "a constant": r"\b(True|False|None|nan)\b",
    "the module": r"\b(mcce|pd|pandas|np|numpy)\.[A-Za-z_]",
    "a keyword argument": r"[A-Za-z_]\w*=(?=[\[({'\"\w.])",
    "a list": r"(?<!\[)(?<!in )\[(?!\[)(?=[^\]]*\])(?![-(]?[0-9.]+, [-0-9.a-z]+[\])])",
    "a dict": r"\{[^}]*:[^}]*\}",
    "no keyword": r"\w=\B",
    "a class of the package": r"\b(MCCE|Interval|OneOf|Not|Several|Privacy|Robust|Names|Within)\b",
    "a sampler": r"\b[A-Z]\w*(Sampler|Generator|Forest|Model)\b",
    "a method of the explainer": r"\b(fit|explain|save|load|generate|sentence|diagnose)\(",
    "a type": r"\b(DataFrame|Series|ndarray|LazyFrame|NoneType|dict|tuple|bool|str|int64|float64|dtype)\b",
    "an attribute": r"\w_\b(?!\w)",
    "the table": r"\bX\b",
}
R_CALLS = r"\b(explain|letter)\("  # also valid in R
OF_FILES = r"\b[a-z_]+ = \[[^\]]*\]|for example \[[^\]]*\]|--kinds says \w+="  # lists of TOML, pairs of options


def find_python(text: str, ours: str = "") -> list[str]:
    """Return what looks like Python in a text; `ours` is a pattern of what the front end shares."""
    rest = re.sub(r"'[^']*'|\"[^\"]*\"", "''", re.sub(ours, "", text) if ours else text)  # values of the data, quoted
    return [f"{what}: {found[0]!r}" for what, pattern in PYTHON_SYNTAX.items() if (found := re.search(pattern, rest))]
