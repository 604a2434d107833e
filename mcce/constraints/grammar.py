"""The language of rules and formulas: one expression in Python's grammar, read by `ast` and checked by a whitelist.

It has numbers, texts in quotes, names of columns (unusual ones in `backticks`, dots allowed), ``+ - * / **``,
comparisons (also chained), ``in [...]``, ``and``, ``or``, ``not``, ``a if condition else b``, ``was(column)`` and the
functions of `FUNCTIONS`. Nothing is executed: `mcce.constraints.formula` computes the parts of the tree with numpy. The
length of a text and the number and depth of its parts are limited, and an exponent is a small number.
"""

from __future__ import annotations

import ast
import keyword
import re
import warnings
from dataclasses import dataclass, field
from typing import NoReturn

from mcce.exceptions import InputError, did_you_mean, spell

MOST_CHARACTERS, MOST_PARTS, MOST_NESTED = 10_000, 2_000, 100
MOST_SHOWN = 60  # characters of a text in a message
FUNCTIONS: dict[str, tuple[int, int | None]] = {  # least and greatest number of arguments
    **dict.fromkeys(("abs", "ceil", "exp", "floor", "log", "missing", "sqrt"), (1, 1)),
    **dict.fromkeys(("max", "min"), (2, None)),
    "round": (1, 2),
}
_PIECE = re.compile(
    r"""(?P<text>'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")
      | `(?P<name>[^`]+)`
      | (?P<wrong>=>|=<|<>|&&?|\|\|?|!(?!=)|(?<![=!<>:])=(?!=)|\^|//|%|[≤≥≠−–×÷]|["'`])
      | (?P<word>[^\W\d]\w*)
      | (?P<space>\s)""",
    re.VERBOSE | re.DOTALL,
)
_REMEDIES = {
    **{"=>": ">=", "=<": "<=", "<>": "!=", "&": "and", "&&": "and", "|": "or", "||": "or", "!": "not", "=": "=="},
    **{"^": "**", "≤": "<=", "≥": ">=", "≠": "!=", "−": "-", "–": "-", "×": "*", "÷": "/"},
}
_ALLOWED = (ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Compare, ast.IfExp, ast.Call, ast.Name, ast.Attribute, ast.Constant)
_OPERATORS = (ast.Not, ast.USub, ast.UAdd, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)


@dataclass(frozen=True)
class Expression:
    """A text as a tree whose parts all belong to the language; made by `parse`.

    Attributes
    ----------
    text : the text as given.
    what : what it is, for messages: "rule", "relation", or a formula.
    tree : the tree of its parts.
    """

    text: str
    what: str
    tree: ast.expr = field(repr=False, compare=False)
    read: str = field(repr=False, compare=False)  # the text as Python reads it: names in backticks are replaced
    origin: tuple[int, ...] = field(repr=False, compare=False)  # place in `text` of each character of `read`
    quoted: dict[str, str] = field(repr=False, compare=False)  # replacement and name

    def name(self, node: ast.expr) -> str | None:
        """Return the name of a column, None for other parts."""
        if isinstance(node, ast.Name):
            return self.quoted.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            owner = self.name(node.value)
            return None if owner is None else f"{owner}.{self.quoted.get(node.attr, node.attr)}"
        return None

    def text_of(self, node: ast.AST) -> str:
        """Return a part as it was written."""
        begin, end = self._place(node, "col_offset"), self._place(node, "end_col_offset")
        return self.text[self.origin[begin] : self.origin[end]].strip()

    def refuse(self, node: ast.AST, wrong: str) -> NoReturn:
        """Raise an error at the position of a part."""
        raise _error(self.text, self.what, self.origin[self._place(node, "col_offset")], wrong)

    def _place(self, node: ast.AST, which: str) -> int:
        return len(self.read.encode()[: getattr(node, which)].decode())  # ast counts bytes


def parse(text: str, what: str = "rule") -> Expression:
    """Return the tree of a text; raise if it is not in the language.

    Examples
    --------
    >>> from mcce.constraints.grammar import parse
    >>> parse("savings => 3 * rent")
    Traceback (most recent call last):
    mcce.exceptions.InputError: rule 'savings => 3 * rent', at character 9: '=>' is not an operator; write '>='.
    """
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"{what} is {spell(text)}; give a text such as 'savings >= 3 * rent'.")
    if len(text) > MOST_CHARACTERS:
        raise _error(text, what, MOST_CHARACTERS, f"it has more than {MOST_CHARACTERS:,} characters; split it.")
    read, origin, quoted = _readable(text, what)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # backslashes in texts
        try:
            tree = ast.parse(read, mode="eval").body
        except SyntaxError as error:
            place = origin[min(error.offset or len(origin), len(origin)) - 1]
            hint = "unusual names of columns belong in `backticks`, levels and dates in quotes"
            raise _error(text, what, place, f"{error.msg}; {hint}.") from None
        except (ValueError, RecursionError, MemoryError):
            raise _error(text, what, 0, "it is nested too deep, or holds a character of no text; split it.") from None
    expression = Expression(text, what, tree, read, origin, quoted)
    _check(expression)
    return expression


def _readable(text: str, what: str) -> tuple[str, tuple[int, ...], dict[str, str]]:
    """Return the text for `ast`: names in backticks or beyond ASCII replaced, whitespace as blanks."""
    parts: list[str] = []
    origin: list[int] = []
    quoted: dict[str, str] = {}
    place = len(text) - len(text.lstrip())

    def add(part: str, begin: int, end: int) -> None:
        parts.append(part)
        length = end - begin
        origin.extend(begin + min(k, length - 1) for k in range(len(part)))

    while place < len(text):
        match = _PIECE.match(text, place)
        end = place + 1 if match is None else match.end()
        piece = text[place:end]
        if match is None or match["text"] is not None:
            add(piece.replace("\n", " "), place, end)
        elif match["wrong"] is not None:
            raise _error(text, what, place, _wrong_sign(piece))
        elif match["space"] is not None:
            add(" ", place, end)
        elif match["word"] == "then":
            raise _error(text, what, place, "'then' is not an operator; write 'B if A else True' for 'if A then B'.")
        elif match["name"] is not None or not piece.isascii():  # Python rewrites some letters in names
            alias = next(a for k in range(len(quoted), 2 * MOST_CHARACTERS) if (a := f"_name{k}_") not in text)
            quoted[alias] = piece if match["name"] is None else match["name"]
            add(alias, place, end)
        else:
            add(piece, place, end)
        place = end
    return "".join(parts), (*origin, len(text)), quoted


def _wrong_sign(sign: str) -> str:
    if sign in "'\"`":
        return f"the text after {sign} is not closed; close it."
    if sign in ("//", "%"):
        return f"{sign!r} is not supported; write floor(a / b), or a - b * floor(a / b)."
    return f"{sign!r} is not an operator; write {_REMEDIES[sign]!r}."


def _error(text: str, what: str, at: int, wrong: str) -> InputError:
    """Return an error about a position; of a long text, the part around it is shown."""
    begin = max(0, min(at - MOST_SHOWN // 2, len(text) - MOST_SHOWN))
    end = begin + MOST_SHOWN
    shown = f"{'...' if begin else ''}{text[begin:end]}{'...' if end < len(text) else ''}"
    where = f"at character {at + 1}" if at < len(text.rstrip()) else "at its end"
    return InputError(f"{what} {spell(shown)}, {where}: {wrong}")


def _check(expression: Expression) -> None:
    """Raise if a part of the tree does not belong to the language."""
    waiting: list[tuple[ast.expr, int]] = [(expression.tree, 1)]
    n_parts = 0
    while waiting:
        node, depth = waiting.pop()
        n_parts += 1
        if depth > MOST_NESTED or n_parts > MOST_PARTS:
            expression.refuse(node, f"it has more than {MOST_PARTS} parts, or is nested {MOST_NESTED} deep; split it.")
        if not isinstance(node, _ALLOWED):
            expression.refuse(node, f"{spell(expression.text_of(node))} is not part of the language of rules.")
        waiting += [(part, depth + 1) for part in _parts(expression, node)]


def _parts(expression: Expression, node: ast.expr) -> list[ast.expr]:
    """Return the parts of an allowed part; raise if its operator, value or function is not allowed."""
    if isinstance(node, ast.Constant):
        _check_constant(expression, node)
    elif isinstance(node, ast.Attribute):
        if expression.name(node) is None:
            expression.refuse(node, f"{spell(expression.text_of(node))} is not a column.")
        return []
    elif isinstance(node, ast.Call):
        _check_call(expression, node)
        return node.args
    elif isinstance(node, ast.Compare):
        if any(isinstance(sign, (ast.Is, ast.IsNot)) for sign in node.ops):
            expression.refuse(node, "'is' is not an operator; write '==' or '!='.")
        if any(isinstance(sign, (ast.In, ast.NotIn)) for sign in node.ops):
            members = node.comparators[0]
            if len(node.ops) > 1 or not isinstance(members, (ast.List, ast.Tuple)) or not members.elts:
                expression.refuse(node, "'in' takes one list, as in job in ['clerk', 'pilot'].")
            return [node.left, *members.elts]
    elif isinstance(node, (ast.BinOp, ast.UnaryOp)):
        if not isinstance(node.op, _OPERATORS):
            expression.refuse(node, f"{spell(expression.text_of(node))} has an operator that is not supported.")
        if isinstance(node.op, ast.Pow):
            power = node.right.operand if isinstance(node.right, ast.UnaryOp) else node.right
            value = power.value if isinstance(power, ast.Constant) else None
            if not isinstance(value, (int, float)) or isinstance(value, bool) or value > 10:
                expression.refuse(node.right, "an exponent is a number from -10 to 10, as in x ** 2.")
    return [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]


def _check_constant(expression: Expression, node: ast.Constant) -> None:
    if isinstance(node.value, (bool, str)):
        return
    if not isinstance(node.value, (int, float)):
        fix = "write missing(column)" if node.value is None else "write a number or a text in quotes"
        expression.refuse(node, f"{spell(expression.text_of(node))} is not a value; {fix}.")
    if not abs(node.value) < 1e300:
        expression.refuse(node, "the number is too large.")


def _check_call(expression: Expression, node: ast.Call) -> None:
    function = expression.name(node.func)
    signatures = {**FUNCTIONS, "was": (1, 1)}
    if function not in signatures:
        hint = {"if": "write 'a if condition else b'"}.get(str(function), did_you_mean(function, signatures))
        expression.refuse(node, f"there is no function {spell(function or expression.text_of(node.func))}; {hint}")
    least, most = signatures[function]
    if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
        expression.refuse(node, f"{function}() takes plain values only.")
    if not least <= len(node.args) <= (most or len(node.args)):
        takes = f"{least} or more" if most is None else str(least) if least == most else f"{least} to {most}"
        expression.refuse(node, f"{function}() takes {takes} value{'s' if takes != '1' else ''}, got {len(node.args)}.")
    if function in ("was", "missing"):
        column = node.args[0]
        is_factual = function == "missing" and isinstance(column, ast.Call) and expression.name(column.func) == "was"
        if expression.name(column) is None and not is_factual:
            expression.refuse(node, f"{function}() takes a column, as in {function}(age).")
    if function == "round" and len(node.args) > 1 and decimals_of(node.args[1]) is None:
        expression.refuse(node.args[1], "the decimals of round() are a whole number from -12 to 12.")


def decimals_of(node: ast.expr) -> int | None:
    """Return a whole number from -12 to 12 that a part writes out; None for other parts."""
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    number = node.operand if negative else node  # type: ignore[attr-defined]
    if not isinstance(number, ast.Constant) or type(number.value) is not int or number.value > 12:
        return None
    return -number.value if negative else number.value


_BARE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*\Z", re.ASCII)


def column_text(name: object) -> str | None:
    """Return the name of a column as a rule writes it; None if it cannot (it holds a backtick).

    Examples
    --------
    >>> from mcce.constraints.grammar import column_text
    >>> column_text("loan.amount"), column_text("hours per week"), column_text("in")
    ('loan.amount', '`hours per week`', '`in`')
    """
    text = str(name)
    words = {*keyword.kwlist, "then", "true", "false"}
    if _BARE.match(text) and words.isdisjoint(text.split(".")):
        return text
    return f"`{text}`" if text and "`" not in text else None
