"""Constraints in the words of a letter: "months employed: at most 2 years more than now", with units, in any language.

1. A limit on one feature is translated from its text, as `mcce.allow` writes it; each part is one point.
2. A rule that compares one feature with a number, or with its current value plus a number, is written like a limit.
3. Any other rule stays a formula with the labels of the features, or is written by its name.
4. Numbers have the unit of their feature. Months and years are written out, and multiples of 12 months as years.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcce.exceptions import MCCEError
from mcce.report.languages import Texts
from mcce.report.names import Names

if TYPE_CHECKING:
    from mcce.constraints import grammar as nodes

MONTHS = 12
LONGEST = 2000  # letters of a rule that is parsed
_NUMBER = r"-?\d[\d_,]*(?:\.\d+)?(?:e[+-]?\d+)?"
_LIMITS = {
    rf"from ({_NUMBER}) to ({_NUMBER})": "range",
    rf"at least ({_NUMBER})": "at_least",
    rf"at most ({_NUMBER})": "at_most",
    r"only (.+)": "only",
    r"one of (.+)": "one_of",
    r"never (.+)": "never",
    rf"in steps of ({_NUMBER})": "steps",
    r"may only rise": "rises",
    r"may only fall": "falls",
    r"stays as it is": "stays",
    rf"changes by at most ({_NUMBER})": "step",
    rf"changes by at most ({_NUMBER})% of its range": "share",
    r"may become missing": "to_missing",
    r"may not become missing": "not_missing",
}
_WITH_LEVELS = ("only", "one_of", "never")
_PAST = {  # by the sign of a comparison with the current value, and the sign of the number added to it
    ("<=", 1): "up_to_more",
    (">=", 1): "at_least_more",
    (">=", -1): "up_to_less",
    ("<=", -1): "at_least_less",
    ("<=", 0): "falls",
    (">=", 0): "rises",
    ("==", 0): "stays",
}
_BOUND = {"<=": "at_most", ">=": "at_least", "<": "below", ">": "above"}
_TURNED = {"<=": ">=", ">=": "<=", "<": ">", ">": "<", "==": "=="}


def rules_in_words(
    rules: Sequence[str], names: Names, columns: Sequence[Hashable], texts: Texts
) -> dict[str, tuple[str, ...]]:
    """Return for the text of each constraint its points in a letter."""
    writer = _RuleWriter(names, {str(name): name for name in columns}, texts)
    return {rule: writer.points(rule) for rule in rules}


def plain_rule(text: str, names: Names, columns: Sequence[Hashable]) -> str:
    """Return the text of a constraint with labels in place of names, and simpler signs."""
    known = {str(name): names.label(name) for name in columns}
    any_name = "|".join(sorted(map(re.escape, known), key=len, reverse=True))
    found = re.compile(rf"(?<![\w.'])('?)({any_name})\1(?![\w.'])")
    text = found.sub(lambda name: known[name[2]], text)
    text = re.sub(r"\bwas\(([^()]*)\)", r"\1 now", text)
    return text.replace("<=", "≤").replace(">=", "≥")


@dataclass(frozen=True)
class _RuleWriter:
    names: Names
    columns: Mapping[str, Hashable]
    texts: Texts

    def points(self, rule: str) -> tuple[str, ...]:
        """Return the points of one constraint."""
        found = None
        if len(rule) <= LONGEST:
            found = self._only(rule) or self._limit(rule) or self._rule(rule)
        return found or (plain_rule(rule, self.names, list(self.columns.values())),)

    def _only(self, rule: str) -> tuple[str, ...] | None:
        if rule == "nothing may change":
            return (self.texts.fill("rule.nothing_changes"),)
        if not (rule.startswith("only ") and rule.endswith(" may change")):
            return None
        named = [part.strip("'\"") for part in rule[len("only ") : -len(" may change")].split(", ")]
        if not all(name in self.columns for name in named):
            return None
        labels = [self.names.label(self.columns[name]) for name in named]
        return (self.texts.fill("rule.only_these", len(labels), names=self.texts.listed(labels)),)

    def _limit(self, rule: str) -> tuple[str, ...] | None:
        """Return the points of a limit on one feature (1); None for other constraints."""
        name = next((name for name in self.columns if rule.startswith(f"{name}: ")), None)
        if name is None:
            return None
        feature, points, rest = self.columns[name], [], rule[len(name) + 2 :]
        while rest:
            parsed = self._one_limit(feature, rest)
            if parsed is None:
                return None
            point, rest = parsed
            points.append(point)
        return tuple(points)

    def _one_limit(self, feature: Hashable, words: str) -> tuple[str, str] | None:
        """Return the first limit in words, and the rest of the text."""
        for pattern, key in _LIMITS.items():
            if key in _WITH_LEVELS:
                found = re.match(r"(?:only|one of|never) ('(?:[^'\\]|\\.)*'(?:, '(?:[^'\\]|\\.)*')*)(?:, |$)", words)
                if found and words.startswith(pattern.split(" (")[0]):
                    levels = re.findall(r"'((?:[^'\\]|\\.)*)'", found[1])
                    values = self.texts.listed([self.names.text(feature, level) for level in levels], "or")
                    return self._fill(key, feature, values=values), words[found.end() :]
                continue
            found = re.match(rf"{pattern}(?:, |$)", words)
            if found:
                return self._fill(key, feature, **self._filled(key, feature, found.groups())), words[found.end() :]
        return None

    def _filled(self, key: str, feature: Hashable, values: Sequence[str]) -> dict[str, str]:
        numbers = [float(value.replace(",", "").replace("_", "")) for value in values]
        if key == "range":
            return dict(zip(("low", "high"), (self._amount(feature, number) for number in numbers)))
        if key == "share":
            return {"value": self.names.marks.number(f"{values[0]}%") if self.names.marks else f"{values[0]}%"}
        return {"value": self._amount(feature, numbers[0])} if numbers else {}

    def _rule(self, rule: str) -> tuple[str, ...] | None:
        """Return the point of a rule about one feature (2); None for other constraints."""
        from mcce.constraints import grammar as nodes  # imported on demand

        try:
            tree = nodes.parse(rule)
        except (MCCEError, RecursionError):
            return None  # the name of a rule
        if not isinstance(tree, nodes.ComparisonOf) or len(tree.signs) != 1 or tree.signs[0] not in _TURNED:
            return None
        left, right, sign = *tree.values, tree.signs[0]
        if not (isinstance(left, nodes.NameOf) and not left.was):
            left, right, sign = right, left, _TURNED[sign]
        if not isinstance(left, nodes.NameOf) or left.was or left.name not in self.columns:
            return None
        feature = self.columns[left.name]
        number = _number_of(right)
        if number is not None and sign in _BOUND:
            return (self._fill(_BOUND[sign], feature, value=self._amount(feature, number)),)
        step = _beyond(right, left.name)
        key = None if step is None else _PAST.get((sign, (step > 0) - (step < 0)))
        if key is None or step is None:
            return None
        return (self._fill(key, feature, **({"value": self._amount(feature, abs(step))} if step else {})),)

    def _fill(self, key: str, feature: Hashable, **filled: str) -> str:
        return self.texts.fill(f"rule.{key}", feature=self.names.label(feature), **filled)

    def _amount(self, feature: Hashable, number: float) -> str:
        """Return an amount of a feature with its unit (4)."""
        whole = int(number) if number == int(number) else None
        if whole and self._counts(feature, "month"):
            unit, n = ("years", whole // MONTHS) if whole % MONTHS == 0 else ("months", whole)
            return self.texts.fill(f"words.{unit}", n, n=self.names.count(n))
        if whole and self._counts(feature, "year"):
            return self.texts.fill("words.years", whole, n=self.names.count(whole))
        return self.names.text(feature, number if whole is None else whole)

    def _counts(self, feature: Hashable, what: str) -> bool:
        """Return whether a feature counts months or years, by its unit or the first or last word of its label."""
        words = {word.strip().lower() for word in self.texts.fill(f"words.{what}_words").split(",")}
        if feature in self.names.units:
            return self.names.units[feature].lower() in words
        called = re.findall(r"[^\W\d_]+", self.names.label(feature).lower())
        return bool(called) and bool(words & {called[0], called[-1]})


def _number_of(node: nodes.Node) -> float | None:
    from mcce.constraints import grammar as nodes

    if isinstance(node, nodes.Negative):
        inner = _number_of(node.value)
        return None if inner is None else -inner
    return node.value if isinstance(node, nodes.Number) else None


def _beyond(node: nodes.Node, name: str) -> float | None:
    """Return the number added to the current value of a feature; None for other expressions."""
    from mcce.constraints import grammar as nodes

    if isinstance(node, nodes.NameOf):
        return 0.0 if node.was and node.name == name else None
    if not isinstance(node, nodes.Arithmetic) or node.sign not in "+-":
        return None
    own, number = _beyond(node.left, name), _number_of(node.right)
    if own is None and node.sign == "+":
        own, number = _beyond(node.right, name), _number_of(node.left)
    if own is None or number is None:
        return None
    return own + (number if node.sign == "+" else -number)
