"""Read the edges of a graph from text, from a DOT file or from a JSON file.

1. Text: ``age, sex -> education -> salary``. Lines end with a newline or a semicolon. A line is a chain of features;
   commas separate several features in one place, which all have the edge. ``a <-> b`` means that a and b share an
   unmeasured cause. A name alone is a feature without edges. Names that contain one of these marks must be in double
   quotes.
2. DOT (Graphviz; also the syntax ``dag { ... }`` of dagitty): statements of nodes and edges, subgraphs in braces. Of
   the attributes only ``dir=both`` counts, which is ``<->``.
3. JSON: an object with `edges` and, optionally, `nodes` and `confounded`; the node-link format of networkx; or an
   object with `causal_ordering` and `confounding`, as in R's shapr.

No code in a file is run.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from mcce.base.files import check_path
from mcce.constraints.reading import parse_file
from mcce.exceptions import InputError, shorten

FILES = (".dot", ".gv", ".json")
ARROWS = ("->", "<->")
_TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"?|<->|->|[;\n,]|(?:(?!<->|->)[^";\n,])+')
_DOT = re.compile(
    r"""(?P<skip>(?m:^[ \t]*\#[^\n]*)|[^\S\n]+|\n|//[^\n]*|/\*.*?(?:\*/|\Z))"""
    r"""|(?P<token>"(?:\\.|[^"\\])*"|<->|->|--|[{}\[\];,=]|(?:(?!<->|->|--)[^\s{}\[\];,="])+)""",
    re.DOTALL,
)
_PLAIN = re.compile(r'(?!.*->)[^\s",;][^\n",;]*(?<!\s)|[^\s",;]')


@dataclass
class Parts:
    """The parts of a graph as they are read: names, directed edges, and pairs that share an unmeasured cause."""

    nodes: list[Any] = field(default_factory=list)
    edges: list[tuple[Any, Any]] = field(default_factory=list)
    confounded: list[tuple[Any, Any]] = field(default_factory=list)

    def join(self, before: list[str], arrow: str, after: list[str]) -> None:
        """Add the edges from each name on the left to each name on the right."""
        pairs = list(product(before, after))
        (self.confounded if arrow == "<->" else self.edges).extend(pairs)


def parse_text(text: str, where: str = "graph") -> Parts:
    """Return the parts of a graph that is given as text (step 1)."""
    found = Parts()
    for number, line in enumerate(_lines(text), 1):
        chain: list[list[str]] = [[]]
        arrows: list[str] = []
        name: str | None = None
        for token in [*line, ","]:
            if token in (*ARROWS, ","):
                if name is not None:
                    chain[-1].append(name)
                else:
                    raise InputError(
                        f"{where}, line {number}: {shorten(''.join(line).strip())!r} lacks a name beside "
                        f"{(arrows or [','])[-1] if token == ',' else token!r}; write it as in 'education -> salary'."
                    )
                name = None
                if token in ARROWS:
                    arrows.append(token)
                    chain.append([])
            elif token.strip():
                if name is not None:
                    raise InputError(
                        f"{where}, line {number}: {shorten(''.join(line).strip())!r} has quotes inside a name; quote "
                        "the whole name, as in '\"my column\" -> salary'."
                    )
                name = _unquoted(token.strip(), f"{where}, line {number}")
        for names in chain:
            found.nodes += names
        for before, arrow, after in zip(chain, arrows, chain[1:]):
            found.join(before, arrow, after)
    return found


def _lines(text: str) -> Iterator[list[str]]:
    """Yield the tokens of each line that is not blank."""
    line: list[str] = []
    for token in [*_TEXT.findall(text), "\n"]:
        if token in (";", "\n"):
            if any(each.strip() for each in line):
                yield line
            line = []
        else:
            line.append(token)


def quoted(name: object) -> str:
    """Return a name as written in a text: in quotes if it would not be read as one name."""
    text = str(name)
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _unquoted(token: str, where: str) -> str:
    if not token.startswith('"'):
        return token
    try:
        return str(json.loads(token.replace("\n", "\\n"), strict=False))
    except ValueError:
        raise InputError(f"{where}: a name in quotes is not closed, or has a wrong escape: {shorten(token)}.") from None


def parse_dot(text: str, where: str) -> Parts:
    """Return the parts of a graph in the DOT language (step 2)."""
    tokens = list(_tokens(text, where))
    while tokens and tokens[0].lower() == "strict":
        tokens.pop(0)
    kind = tokens[0].lower() if tokens else ""
    if kind not in ("digraph", "dag"):
        raise InputError(
            f"{where} begins with {shorten(kind)!r}; give a directed graph, as in 'digraph {{ education -> salary }}'."
        )
    start = next((i for i, token in enumerate(tokens[:3]) if token == "{"), None)
    if start is None:
        raise InputError(f"{where}: no '{{' after {kind!r}; write 'digraph {{ education -> salary }}'.")
    try:
        found, _, end = _DotReader(tokens, where).block(start + 1)
    except RecursionError:
        raise InputError(f"{where} has braces too deep inside each other; flatten its subgraphs.") from None
    if end != len(tokens):
        raise InputError(f"{where}: {shorten(tokens[end])!r} stands after the closing brace; give one graph.")
    return found


def _tokens(text: str, where: str) -> Iterator[str]:
    place = 0
    while place < len(text):
        match = _DOT.match(text, place)
        if match is None:
            raise InputError(f"{where} cannot be read at {shorten(text[place:], 40)!r}; correct it there.")
        if match["token"] is not None:
            yield match["token"]
        place = match.end()


class _DotReader:
    """A reader of DOT statements; each method takes the position of a token and returns the position after its part."""

    def __init__(self, tokens: list[str], where: str) -> None:
        self.tokens, self.where = tokens, where

    def at(self, place: int) -> str:
        if place >= len(self.tokens):
            raise InputError(f"{self.where} ends before its closing brace; complete it.")
        return self.tokens[place]

    def block(self, place: int) -> tuple[Parts, list[str], int]:
        """Read statements up to the closing brace; return also the names in them."""
        found = Parts()
        names: list[str] = []
        while self.at(place) != "}":
            if self.at(place) in (";", ","):
                place += 1
                continue
            place = self.statement(found, names, place)
        return found, names, place + 1

    def statement(self, found: Parts, names: list[str], place: int) -> int:
        if self.at(place + 1) == "=":  # an attribute of the graph, as rankdir=LR
            return place + 3
        if self.at(place).lower() in ("graph", "node", "edge") and self.at(place + 1) == "[":
            return self.attributes(place + 1)[1]
        chain, arrows = [], []
        while True:
            operand, place = self.operand(found, place)
            chain.append(operand)
            if self.at(place) == "--":
                raise InputError(f"{self.where}: an edge {operand[-1:]} -- has no direction; write '->' or '<->'.")
            if self.at(place) not in ARROWS:
                break
            arrows.append(self.at(place))
            place += 1
        both = False
        while self.at(place) == "[":
            attributes, place = self.attributes(place)
            both = both or attributes.get("dir") == "both"
        for before, arrow, after in zip(chain, arrows, chain[1:]):
            found.join(before, "<->" if both else arrow, after)
        for operand in chain:
            names += operand
        return place

    def operand(self, found: Parts, place: int) -> tuple[list[str], int]:
        """Read a name, or the names of a subgraph."""
        token = self.at(place)
        if token.lower() == "subgraph":
            place += 1 if self.at(place + 1) == "{" else 2
            token = self.at(place)
        if token == "{":
            inner, names, place = self.block(place + 1)
            found.nodes += inner.nodes
            found.edges += inner.edges
            found.confounded += inner.confounded
            return names, place
        if token in ("}", "[", "]", "=", ";", ",", "--", *ARROWS):
            raise InputError(f"{self.where}: expected a name, got {token!r}; write 'education -> salary'.")
        name = _unquoted(token, self.where)
        found.nodes.append(name)
        return [name], place + 1

    def attributes(self, place: int) -> tuple[dict[str, str], int]:
        """Read attributes in brackets."""
        found: dict[str, str] = {}
        place += 1
        while self.at(place) != "]":
            if self.at(place + 1) == "=":
                found[self.at(place)] = self.at(place + 2).strip('"')
                place += 3
            else:
                place += 1
        return found, place + 1


def read_file(path: str | os.PathLike[str]) -> Parts | Mapping[str, Any] | list[Any]:
    """Return the parts of a graph in a DOT file, or the contents of a JSON file."""
    file = check_path(path)
    where = f"graph of {file.name}"
    if file.suffix.lower() not in FILES:
        raise InputError(f"a graph is read from .dot, .gv and .json files; got {file.name!r}; convert it.")
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the graph in {file.name!r} cannot be read: {error}") from error
    if file.suffix.lower() != ".json":
        return parse_dot(text, where)
    content = parse_file(text, "JSON", where)
    if not isinstance(content, (dict, list)):
        raise InputError(f"{where} is a {type(content).__name__}; give an object with 'edges', or a list of edges.")
    return content
