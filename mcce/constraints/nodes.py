"""The parts of a rule as it is written: what `mcce.constraints.grammar` makes of a text."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Node:
    """A part of a rule; `at` is where it begins in the text."""

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
class Name(Node):
    """A column; `was` asks for the factual's value."""

    name: str
    was: bool = False


@dataclass(frozen=True)
class Missing(Node):
    """Whether a value is missing."""

    name: Name


@dataclass(frozen=True)
class Call(Node):
    """A function of numbers: abs, min or max."""

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class Negative(Node):
    """A number with the other sign."""

    value: Node


@dataclass(frozen=True)
class Arithmetic(Node):
    """A sum, difference, product or quotient."""

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Comparison(Node):
    """Values compared one with the next; all comparisons have to hold."""

    values: tuple[Node, ...]
    signs: tuple[str, ...]


@dataclass(frozen=True)
class Member(Node):
    """Whether a value is one of some, or none of them."""

    value: Node
    among: tuple[Node, ...]
    negated: bool


@dataclass(frozen=True)
class AllOf(Node):
    """Conditions that have to hold together."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class AnyOf(Node):
    """Conditions of which one has to hold."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Not(Node):
    """A condition that may not hold."""

    part: Node


@dataclass(frozen=True)
class If(Node):
    """A condition that has to hold where another one does; `otherwise` has to hold elsewhere."""

    condition: Node
    then: Node
    otherwise: Node | None
