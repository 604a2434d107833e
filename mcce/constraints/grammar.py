"""The grammar of rules: text to a tree of frozen nodes. No Python code is evaluated.

1. The text is split into tokens: numbers, text in quotes, names (bare or in backticks), signs.
2. Recursive descent, lowest precedence first::

       rule       = "if" either "then" rule ["else" rule] | either
       either     = both {"or" both}
       both       = negation {"and" negation}
       negation   = "not" negation | comparison
       comparison = sum {("==" | "!=" | "<" | "<=" | ">" | ">=") sum} | sum ["not"] "in" "[" sum {"," sum} "]"
       sum        = product {("+" | "-") product}
       product    = sign {("*" | "/") sign}
       sign       = "-" sign | atom
       atom       = number | text | "true" | "false" | name | function "(" rule {"," rule} ")" | "(" rule ")"
                    | "if" "(" rule "," rule "," rule ")"

   The functions are those of `FUNCTIONS`. ``if (...)`` is a function if its brackets contain a comma.
3. `mcce.constraints.meaning` checks the types of the parts against a table.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite
from typing import NoReturn

from mcce.exceptions import InputError, did_you_mean, spell
from mcce.wording import MOST_QUOTED


@dataclass(frozen=True)
class Node:
    """A part of a rule; `at` is its position in the text."""

    at: int = field(compare=False, kw_only=True, default=0)


@dataclass(frozen=True)
class Number(Node):
    """A number."""

    value: float


@dataclass(frozen=True)
class Text(Node):
    """Text in quotes: a level or a date."""

    value: str


@dataclass(frozen=True)
class Truth(Node):
    """True or false."""

    value: bool


@dataclass(frozen=True)
class NameOf(Node):
    """A column; with `was`, the factual's value."""

    name: str
    was: bool = False


@dataclass(frozen=True)
class Missing(Node):
    """Whether a value is missing."""

    name: NameOf


@dataclass(frozen=True)
class Call(Node):
    """A function of numbers, or of a difference of dates."""

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class IfValue(Node):
    """One value where a condition holds, another elsewhere."""

    condition: Node
    then: Node
    otherwise: Node


@dataclass(frozen=True)
class Negative(Node):
    """A negated number."""

    value: Node


@dataclass(frozen=True)
class Arithmetic(Node):
    """A sum, difference, product or quotient."""

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True)
class ComparisonOf(Node):
    """A chain of comparisons, all of which must hold."""

    values: tuple[Node, ...]
    signs: tuple[str, ...]


@dataclass(frozen=True)
class Member(Node):
    """Whether a value is, or is not, in a list."""

    value: Node
    among: tuple[Node, ...]
    negated: bool


@dataclass(frozen=True)
class AllOf(Node):
    """Conditions that must all hold."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class AnyOf(Node):
    """Conditions of which one must hold."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Negation(Node):
    """A condition that must not hold."""

    part: Node


@dataclass(frozen=True)
class If(Node):
    """A condition that must hold where another one does; `otherwise` must hold elsewhere."""

    condition: Node
    then: Node
    otherwise: Node | None


MOST_LETTERS = 100_000
MOST_TOKENS = 400
MOST_NESTED = 30
COMPARISONS = ("==", "!=", "<=", ">=", "<", ">")
FUNCTIONS: dict[str, tuple[int, int | None]] = {  # least and greatest number of arguments
    **dict.fromkeys(("abs", "exp", "log", "sqrt", "days", "months", "years", "was", "missing"), (1, 1)),
    **dict.fromkeys(("round", "floor", "ceil", "trunc"), (1, 2)),
    **dict.fromkeys(("min", "max"), (2, None)),
    "if": (3, 3),
}
WORDS = ("if", "then", "else", "and", "or", "not", "in")
_TRUTH = {"true": True, "True": True, "false": False, "False": False}
# The lookahead prevents backtracking into a number, so that time is linear in its digits.
_TOKEN = re.compile(
    r"""\s*(?:(?=(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))(?P=number)(?!\w)
        |(?P<text>'[^']*'|"[^"]*")
        |(?P<quoted>`[^`]+`)
        |(?P<name>[^\W\d][\w.]*)
        |(?P<sign>==|!=|<=|>=|[-+*/()\[\],<>]))""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Token:
    """A token: its kind, its text and its position."""

    kind: str
    text: str
    at: int


def parse(text: str) -> Node:
    """Return the tree of a rule.

    Examples
    --------
    >>> from mcce.constraints.grammar import parse
    >>> parse("a < 2")
    ComparisonOf(at=0, values=(NameOf(at=0, name='a', was=False), Number(at=4, value=2.0)), signs=('<',))
    """
    return _Parser(text).whole()


def refuse(text: str, at: int, wrong: str) -> NoReturn:
    """Raise an error about a position in a rule."""
    where = f"at character {at + 1}" if at < len(text) else "at its end"
    raise InputError(f"rule {_around(text, at)}, {where}: {wrong}")


def _around(text: str, at: int) -> str:
    """Return a rule in quotes; of a long rule, the part around a position."""
    width = MOST_QUOTED - 10
    if len(text) <= width:
        return spell(text)
    begin = max(0, min(at - width // 2, len(text) - width))
    end = begin + width
    return spell(f"{'...' if begin else ''}{text[begin:end]}{'...' if end < len(text) else ''}")


def tokens_of(text: str) -> list[Token]:
    if len(text) > MOST_LETTERS:
        refuse(text, MOST_LETTERS, f"it has more than {MOST_LETTERS:,} characters; split it into several rules.")
    found = []
    place, end = 0, len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place, end)
        if match is None:
            at = place + len(text[place:]) - len(text[place:].lstrip())
            _refuse_sign(text, at)
        assert match.lastgroup is not None
        found.append(Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
        place = match.end()
        if len(found) > MOST_TOKENS:
            refuse(text, place, f"it has more than {MOST_TOKENS} words and signs; split it into several rules.")
    return [*found, Token("end", "", len(text))]


def _refuse_sign(text: str, at: int) -> NoReturn:
    sign = text[at]
    if sign in "'\"`":
        refuse(text, at, f"the text after {sign} is not closed; close it.")
    remedy = {"=": "write == to compare.", "!": "write != or not.", "&": "write and.", "|": "write or."}
    remedy["^"] = "write x * x."
    refuse(text, at, f"{sign!r} is not valid here; {remedy.get(sign, 'put unusual column names in `backticks`.')}")


class _Parser:
    """A recursive descent parser, one method for each line of the grammar."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        self.place = 0
        self.nested = 0

    @property
    def now(self) -> Token:
        return self.tokens[self.place]

    def whole(self) -> Node:
        if self.now.kind == "end":
            refuse(self.text, 0, "it is empty; write for example 'savings >= 3 * rent'.")
        found = self.rule()
        if self.now.kind != "end":
            self.refuse_now("expected the end, or a sign such as +, >=, and")
        return found

    def refuse_now(self, expected: str) -> NoReturn:
        got = "nothing more" if self.now.kind == "end" else spell(self.now.text)
        refuse(self.text, self.now.at, f"{expected}, got {got}.")

    def takes(self, *texts: str) -> str | None:
        """Consume the next token if it is one of these words or signs."""
        if self.now.kind in ("name", "sign") and self.now.text in texts:
            self.place += 1
            return self.tokens[self.place - 1].text
        return None

    def needs(self, text: str) -> None:
        if self.takes(text) is None:
            self.refuse_now(f"expected {text!r}")

    def deeper(self) -> None:
        self.nested += 1
        if self.nested > MOST_NESTED:
            refuse(self.text, self.now.at, f"it is nested more than {MOST_NESTED} deep; split it into several rules.")

    def rule(self) -> Node:
        self.deeper()
        at = self.now.at
        if not self.calls_if() and self.takes("if"):
            condition = self.either()
            self.needs("then")
            then = self.rule()
            found: Node = If(condition, then, self.rule() if self.takes("else") else None, at=at)
        else:
            found = self.either()
        self.nested -= 1
        return found

    def calls_if(self) -> bool:
        """Return whether the function if(condition, a, b) begins here: its brackets contain a comma."""
        if [token.text for token in self.tokens[self.place : self.place + 2]] != ["if", "("]:
            return False
        depth = 0
        for token in self.tokens[self.place + 1 :]:
            if token.kind != "sign":
                continue
            depth += (token.text in "([") - (token.text in ")]")
            if depth == 0 or (depth == 1 and token.text == ","):
                return depth == 1
        return False

    def either(self) -> Node:
        at, parts = self.now.at, [self.both()]
        while self.takes("or"):
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts), at=at)

    def both(self) -> Node:
        at, parts = self.now.at, [self.negation()]
        while self.takes("and"):
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts), at=at)

    def negation(self) -> Node:
        at = self.now.at
        if not self.takes("not"):
            return self.comparison()
        self.deeper()
        found = Negation(self.negation(), at=at)
        self.nested -= 1
        return found

    def comparison(self) -> Node:
        at, values, signs = self.now.at, [self.sum()], []
        while sign := self.takes(*COMPARISONS):
            signs.append(sign)
            values.append(self.sum())
        if signs:
            return ComparisonOf(tuple(values), tuple(signs), at=at)
        follows = self.tokens[min(self.place + 1, len(self.tokens) - 1)]
        if self.now.text == "not" and follows.text == "in":
            self.place += 2
            return Member(values[0], self.members(), True, at=at)
        return Member(values[0], self.members(), False, at=at) if self.takes("in") else values[0]

    def members(self) -> tuple[Node, ...]:
        self.needs("[")
        return self.listed(self.sum, "]")

    def listed(self, one: Callable[[], Node], closing: str) -> tuple[Node, ...]:
        found = [one()]
        while self.takes(","):
            found.append(one())
        self.needs(closing)
        return tuple(found)

    def sum(self) -> Node:
        at, found = self.now.at, self.product()
        while sign := self.takes("+", "-"):
            found = Arithmetic(sign, found, self.product(), at=at)
        return found

    def product(self) -> Node:
        at, found = self.now.at, self.sign()
        while sign := self.takes("*", "/"):
            found = Arithmetic(sign, found, self.sign(), at=at)
        return found

    def sign(self) -> Node:
        at = self.now.at
        if not self.takes("-"):
            return self.atom()
        self.deeper()
        found = Negative(self.sign(), at=at)
        self.nested -= 1
        return found

    def atom(self) -> Node:
        token = self.now
        if self.takes("("):
            found = self.rule()
            self.needs(")")
            return found
        is_word = token.kind == "name" and token.text in WORDS and not self.calls_if()
        if token.kind == "end" or token.kind == "sign" or is_word:
            self.refuse_now("expected a number, a level in quotes or a column")
        self.place += 1
        if token.kind == "number":
            value = float(token.text)
            return Number(value, at=token.at) if isfinite(value) else refuse(self.text, token.at, "it is too large.")
        if token.kind == "text":
            return Text(token.text[1:-1], at=token.at)
        if token.kind == "quoted":
            return NameOf(token.text[1:-1], at=token.at)
        if self.takes("("):
            return self.call(token)
        if token.text in _TRUTH:
            return Truth(_TRUTH[token.text], at=token.at)
        return NameOf(token.text, at=token.at)

    def call(self, token: Token) -> Node:
        function, at = token.text, token.at
        if function not in FUNCTIONS:
            refuse(self.text, at, f"there is no function {spell(function)}; {did_you_mean(function, FUNCTIONS)}")
        arguments = self.listed(self.rule, ")")
        least, most = FUNCTIONS[function]
        if not least <= len(arguments) <= (most or len(arguments)):
            takes = "two values or more" if most is None else f"{least} to {most} values"
            takes = f"{least} value{'s' if least > 1 else ''}" if least == most else takes
            refuse(self.text, at, f"{function}() takes {takes}, got {len(arguments)}.")
        if function == "if":
            return IfValue(*arguments, at=at)
        if function not in ("was", "missing"):
            return Call(function, arguments, at=at)
        column = arguments[0]
        if not isinstance(column, NameOf) or (column.was and function == "was"):
            refuse(self.text, at, f"{function}() takes a column, as in {function}(age).")
        return NameOf(column.name, was=True, at=column.at) if function == "was" else Missing(column, at=at)
