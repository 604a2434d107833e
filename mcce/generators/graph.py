"""A causal graph of features: which features cause which, stated by the user.

1. A graph has directed edges and, optionally, pairs of features that share an unmeasured cause (`confounded`). It has
   no directed cycle. No feature shares an unmeasured cause with one of its effects, directly or through other
   pairs: that effect could not be learned from data (Tian and Pearl 2002, "A general identification condition for
   causal effects").
2. The order is topological; among features whose parents have all been visited, the first column comes first (Kahn
   1962). Fixed features come before all others, so their parents must be fixed too.
3. Each feature is modelled on its parents. A feature that shares an unmeasured cause with features visited before it is
   modelled on these and on their parents as well: the factorisation of Tian and Pearl (2002), p(v_i | T_i and the
   parents of T_i), where T_i are the features connected to v_i by pairs among those visited so far. Without such pairs
   it is the product of p(feature | parents).
4. `from_ordering` takes the partial causal ordering of Heskes et al. (2020, "Causal Shapley values"), as the R package
   shapr does: every feature of an earlier group is a parent of every feature of a later one. The features of a
   confounded group are pairwise confounded, so they are drawn jointly given all earlier groups; those of an
   unconfounded group are drawn independently of each other given all earlier groups. shapr differs in the latter:
   there the features of an unconfounded group may depend on each other by mutual interaction.
5. In that order, each feature is independent, given its predictors, of every other feature visited before it
   (the ordered local Markov property; Richardson 2003, "Markov properties for acyclic directed mixed graphs"). These
   are the statements that `check_graph` tests (`mcce.judging.independence`).
6. The outcome that a model predicts, such as the default of a loan, may be a node of the graph (`outcome`). It is not a
   column and has no effects. The chain ignores it; recourse warns of actions that are not among its causes.

A graph is an assumption. Data can contradict the independences that it implies; they cannot confirm it, and they do not
show the direction of an edge.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from mcce.exceptions import InputError, did_you_mean, shorten, spell
from mcce.generators.graph_reading import ARROWS, FILES, Parts, parse_text, quoted, read_file
from mcce.storage.fields import stored
from mcce.storage.state import stateful
from mcce.wording import Parameter

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Pair = tuple[Any, Any]
_FORMS = (
    "a text as 'education -> salary', a list of edges, a networkx.DiGraph, a .dot or .json file, or "
    "mcce.Graph.from_ordering(...)"
)


class Independence(NamedTuple):
    """A statement that a graph implies: `feature` is independent of `other` given the features `given`."""

    feature: Any
    other: Any
    given: tuple[Any, ...]


@stateful("Graph")
@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """A causal graph of features, for ``MCCE(model, graph=...)`` and ``ChainModel(graph=...)``.

    The graph is an assumption of the user; `ChainModel.check_graph` tests the independences that it implies.

    Parameters
    ----------
    edges : list of pairs
        ``(cause, effect)``.
    confounded : list of pairs
        Features that share an unmeasured cause.
    nodes : list
        Features without edges, and the order of the others; features with edges may be left out.
    outcome : str or None
        The effect that is the outcome predicted by a model; it is not a column, and not among `nodes`.

    Notes
    -----
    A feature of the graph without parents is drawn independently of all features visited before it. A feature outside
    the graph is drawn as in a chain without a graph: see `ChainModel`.

    Examples
    --------
    >>> import mcce
    >>> graph = mcce.Graph.from_text("age -> education -> salary; age -> salary; salary -> savings")
    >>> graph.parents("salary"), graph.children("age"), graph.descendants("education"), graph.ancestors("salary")
    (['age', 'education'], ['education', 'salary'], ['salary', 'savings'], ['age', 'education'])
    >>> graph.order(), graph.predictors(graph.order())["savings"]
    (['age', 'education', 'salary', 'savings'], ['salary'])
    >>> mcce.Graph.read([("age", "education"), ("age", "salary")]) == mcce.Graph.from_text("age -> education, salary")
    True
    >>> print(graph.to_text())
    age -> education
    age, education -> salary
    salary -> savings
    >>> [(each.feature, each.other, each.given) for each in graph.independences()]
    [('savings', 'age', ('salary',)), ('savings', 'education', ('salary',))]
    >>> mcce.Graph.from_text("a -> b; b -> c; c -> a")
    Traceback (most recent call last):
    mcce.exceptions.InputError: graph has the cycle 'a' -> 'b' -> 'c' -> 'a'; remove one of these edges.
    """

    edges: Sequence[Pair] = stored(tuple, of=stored(tuple, 2))
    confounded: Sequence[Pair] = stored(tuple, of=stored(tuple, 2), default=())
    nodes: Sequence[Any] = stored(tuple, default=())
    outcome: str | None = stored(str, optional=True, default=None)

    _parents: dict[Any, list[Any]] = field(init=False)
    _joined: dict[Any, list[Any]] = field(init=False)
    _order: list[Any] = field(init=False)

    def __post_init__(self) -> None:
        edges, confounded = _pairs(self.edges, "edges"), _pairs(self.confounded, "confounded")
        nodes = _names(self.nodes, "nodes")
        once: dict[frozenset[Any], Pair] = {}
        for pair in confounded:
            if pair[0] == pair[1]:
                raise InputError(f"confounded joins {pair[0]!r} with itself; give two features, or leave it out.")
            once.setdefault(frozenset(pair), pair)
        every = [*nodes, *(name for pair in (*edges, *confounded) for name in pair)]
        if self.outcome is not None:
            self._check_outcome(edges, confounded)
            every = [name for name in every if name != self.outcome]
        object.__setattr__(self, "edges", tuple(dict.fromkeys(edges)))
        object.__setattr__(self, "confounded", tuple(once.values()))
        object.__setattr__(self, "nodes", tuple(dict.fromkeys(every)))
        parents: dict[Any, list[Any]] = {name: [] for name in self.nodes}
        for cause, effect in self.edges:
            if effect != self.outcome:
                parents[effect].append(cause)
        joined: dict[Any, list[Any]] = {name: [] for name in self.nodes}
        for one, other in self.confounded:
            joined[one].append(other)
            joined[other].append(one)
        object.__setattr__(self, "_parents", parents)
        object.__setattr__(self, "_joined", joined)
        object.__setattr__(self, "_order", self.order(self.nodes))
        self._check_identified()

    def _check_outcome(self, edges: Sequence[Pair], confounded: Sequence[Pair]) -> None:
        """Raise unless the outcome is an effect without effects (step 6)."""
        if not any(effect == self.outcome for _, effect in edges):
            known = [effect for _, effect in edges]
            hint = did_you_mean(self.outcome, known)
            raise InputError(f"outcome is {spell(self.outcome)}, which is not an effect in the graph; {hint}")
        effect = next((effect for cause, effect in edges if cause == self.outcome), None)
        if effect is not None:
            raise InputError(
                f"graph has {self.outcome!r} -> {effect!r}, but an outcome has no effects; remove the edge."
            )
        if any(self.outcome in pair for pair in confounded):
            raise InputError(f"graph has '<->' beside the outcome {self.outcome!r}, which is not drawn; leave it out.")

    def _check_identified(self) -> None:
        """Raise if a feature shares an unmeasured cause with one of its effects (step 1)."""
        if not self.confounded:
            return
        above: dict[Any, set[Any]] = {}
        for name in self._order:
            parents = self._parents[name]
            above[name] = {*parents}.union(*(above[each] for each in parents))
            cause = next((each for each in self._sharing(name, self.nodes) if each in above[name]), None)
            if cause is not None:
                raise InputError(
                    f"graph states that {cause!r} causes {name!r} and that both share an unmeasured cause, so the "
                    "effect cannot be learned; remove the '<->' or the edges between them."
                )

    # ---- other constructors

    @classmethod
    def read(cls, source: Any, outcome: str | None = None) -> Graph:
        """Return the graph given in any form that `ChainModel` takes.

        Parameters
        ----------
        source : Graph, str, path, list, dict or networkx.DiGraph
            A text that ends in .dot, .gv or .json, or a path, is a file; any other text has edges, see `from_text`. A
            list has pairs ``(cause, effect)`` or texts. A dict has the entries of a JSON file (`from_file`). Any object
            with `nodes`, `edges` and `is_directed` is read like a networkx graph.
        outcome : str or None
            The outcome that a model predicts, if it is in the graph.
        """
        if isinstance(source, cls):
            return source if outcome is None else cls(source.edges, source.confounded, source.nodes, outcome)
        if isinstance(source, os.PathLike) or (isinstance(source, str) and source.strip().lower().endswith(FILES)):
            return cls.from_file(source, outcome)
        if isinstance(source, str):
            if not any(arrow in source for arrow in ARROWS):
                raise InputError(f"graph is {spell(source)}, which has no edge; give {_FORMS}.")
            return cls.from_text(source, outcome)
        if all(hasattr(source, name) for name in ("nodes", "edges", "is_directed")):
            if not source.is_directed():
                raise InputError(
                    f"graph is a {type(source).__name__}, which has no directions; give a networkx.DiGraph."
                )
            return cls([(edge[0], edge[1]) for edge in source.edges], (), list(source.nodes), outcome)
        if isinstance(source, Mapping):
            return cls._from_mapping(source, "graph", outcome)
        if isinstance(source, Sequence):
            return cls._from_list(source, outcome)
        raise InputError(f"graph is {spell(source)}; give {_FORMS}.")

    @classmethod
    def from_text(cls, text: str, outcome: str | None = None) -> Graph:
        """Return the graph of a text.

        Parameters
        ----------
        text : str
            ``"age, sex -> education -> salary; savings"``: chains of features, separated by newlines or semicolons.
            Commas join several features at once, ``a <-> b`` means that both share an unmeasured cause, a name alone is
            a feature without edges. A name that contains such a mark must be in double quotes.
        outcome : str or None
            The outcome that a model predicts, if it is in the graph.

        Examples
        --------
        >>> import mcce
        >>> graph = mcce.Graph.from_text("education -> salary -> default; region", outcome="default")
        >>> graph.nodes, graph.causes
        (('education', 'salary', 'region'), ['education', 'salary'])
        """
        if not isinstance(text, str):
            raise InputError(f"text is {spell(text)}; give a text as 'education -> salary'.")
        return cls._from_parts(parse_text(text), outcome)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], outcome: str | None = None) -> Graph:
        """Return the graph in a DOT file (.dot, .gv) or a JSON file; see `mcce.generators.graph_reading`.

        Examples
        --------
        >>> import mcce, pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "loans.dot")
        ...     _ = path.write_text("digraph { age -> education -> salary }")
        ...     print(mcce.Graph.from_file(path).to_text())
        age -> education
        education -> salary
        """
        content = read_file(path)
        if isinstance(content, Parts):
            return cls._from_parts(content, outcome)
        where = f"graph of {os.path.basename(os.fspath(path))}"
        if isinstance(content, list):
            return cls._from_list(content, outcome)
        return cls._from_mapping(content, where, outcome)

    @classmethod
    def from_ordering(
        cls,
        causal_ordering: Sequence[Hashable | Sequence[Hashable]],
        confounding: bool | Sequence[bool] = False,
        outcome: str | None = None,
    ) -> Graph:
        """Return the graph of a partial causal ordering, as R's shapr takes it (Heskes et al. 2020).

        Parameters
        ----------
        causal_ordering : list of lists
            Groups of features, causes first. Every feature of a group is a parent of every feature of later groups.
        confounding : bool or list of bool
            For all groups or for each: whether its features share unmeasured causes. The features of a confounded group
            are drawn jointly given all earlier groups. Those of another group are drawn independently of each other
            given all earlier groups; shapr lets them depend on each other.
        outcome : str or None
            The outcome that a model predicts, if it is in the last group: an effect of all earlier groups.

        Examples
        --------
        >>> import mcce
        >>> groups = [["age", "sex"], ["education"], ["salary", "savings"]]
        >>> print(mcce.Graph.from_ordering(groups, confounding=[True, False, False]).to_text())
        age, sex -> education
        age, sex, education -> salary
        age, sex, education -> savings
        age <-> sex
        """
        if isinstance(causal_ordering, str) or not isinstance(causal_ordering, Sequence):
            raise InputError(
                f"causal_ordering is {spell(causal_ordering)}; give a list of lists of features, causes first."
            )
        groups = [_names([each] if isinstance(each, str) else each, "causal_ordering") for each in causal_ordering]
        every = [name for group in groups for name in group]
        repeated = next((name for name in every if every.count(name) > 1), None)
        if repeated is not None:
            raise InputError(f"causal_ordering names {repeated!r} more than once; name each feature once.")
        flags = [confounding] * len(groups) if isinstance(confounding, bool) else confounding
        if not isinstance(flags, Sequence) or len(flags) != len(groups) or {*map(type, flags)} - {bool}:
            raise InputError(
                f"confounding is {spell(confounding)} for {len(groups)} groups; give True or False, or one for each."
            )
        edges = [(a, b) for i, group in enumerate(groups) for b in group for before in groups[:i] for a in before]
        confounded = [
            (a, b) for group, flag in zip(groups, flags) if flag for i, b in enumerate(group) for a in group[:i]
        ]
        return cls(edges, [pair for pair in confounded if outcome not in pair], every, outcome)

    @classmethod
    def _from_parts(cls, parts: Parts, outcome: str | None) -> Graph:
        return cls(parts.edges, parts.confounded, parts.nodes, outcome)

    @classmethod
    def _from_list(cls, given: Sequence[Any], outcome: str | None) -> Graph:
        """Return the graph of a list of pairs and texts."""
        found = Parts()
        for each in given:
            if isinstance(each, str):
                part = parse_text(each)
                found.nodes += part.nodes
                found.edges += part.edges
                found.confounded += part.confounded
            else:
                found.edges += _pairs([each], "graph")
        return cls._from_parts(found, outcome)

    @classmethod
    def _from_mapping(cls, given: Mapping[Any, Any], where: str, outcome: str | None) -> Graph:
        """Return the graph of a JSON object."""
        known: tuple[str, ...]
        if "causal_ordering" in given:
            known = ("causal_ordering", "confounding", "outcome")
        else:
            known = ("edges", "links", "nodes", "confounded", "outcome", "directed", "multigraph", "graph")
        for key in given:
            if key not in known:
                raise InputError(f"{where} has the entry {spell(key)}; {did_you_mean(key, known)}")
        if "causal_ordering" in given:
            return cls.from_ordering(
                given["causal_ordering"], given.get("confounding", False), outcome or given.get("outcome")
            )
        edges = given.get("edges", given.get("links"))
        if not isinstance(edges, list) or given.get("directed") is False:
            raise InputError(f"{where} has no list of directed edges; give 'edges': [['education', 'salary']].")
        pairs = [(each.get("source"), each.get("target")) if isinstance(each, Mapping) else each for each in edges]
        nodes = [each.get("id") if isinstance(each, Mapping) else each for each in given.get("nodes", [])]
        return cls(pairs, given.get("confounded", ()), nodes, outcome or given.get("outcome"))

    # ---- relations between features

    def parents(self, name: Any) -> list[Any]:
        """Return the direct causes of a feature, in the order of the graph."""
        self._check_name(name)
        return [each for each in self._order if each in self._parents[name]]

    @property
    def causes(self) -> list[Any]:
        """The direct and indirect causes of the outcome, in the order of the graph; empty without an outcome."""
        direct = {cause for cause, effect in self.edges if effect == self.outcome}
        return [name for name in self._order if name in direct or not direct.isdisjoint(self.descendants(name))]

    def children(self, name: Any) -> list[Any]:
        """Return the direct effects of a feature, in the order of the graph."""
        self._check_name(name)
        return [each for each in self._order if name in self._parents[each]]

    def ancestors(self, name: Any) -> list[Any]:
        """Return the direct and indirect causes of a feature, in the order of the graph."""
        self._check_name(name)
        found, waiting = set(), [name]
        while waiting:
            new = [each for each in self._parents[waiting.pop()] if each not in found]
            found.update(new)
            waiting += new
        return [each for each in self._order if each in found]

    def descendants(self, name: Any) -> list[Any]:
        """Return the direct and indirect effects of a feature, in the order of the graph."""
        self._check_name(name)
        found = {name}
        for each in self._order:
            if not found.isdisjoint(self._parents[each]):
                found.add(each)
        return [each for each in self._order if each in found and each != name]

    def order(self, columns: Sequence[Any] | None = None) -> list[Any]:
        """Return the features, causes before effects (step 2).

        Parameters
        ----------
        columns : list or None
            Among features whose parents have been visited, the first in this list comes first; None takes `nodes`.
        """
        if columns is None:
            return list(self._order)
        rank = {name: i for i, name in enumerate(columns)}
        waiting = dict.fromkeys(sorted(self.nodes, key=rank.__getitem__))
        found: list[Any] = []
        while waiting:
            name = next((each for each in waiting if waiting.keys().isdisjoint(self._parents[each])), None)
            if name is None:
                cycle = " -> ".join(map(repr, self._cycle({*waiting})))
                raise InputError(f"graph has the cycle {shorten(cycle)}; remove one of these edges.")
            del waiting[name]
            found.append(name)
        return found

    def _cycle(self, inside: set[Any]) -> list[Any]:
        """Return a cycle among features that each have a parent among them."""
        walk = [next(name for name in self.nodes if name in inside)]
        while walk[-1] not in walk[:-1]:
            walk.append(next(each for each in self._parents[walk[-1]] if each in inside))
        cycle = walk[walk.index(walk[-1]) :][::-1]
        first = min(range(len(cycle) - 1), key=lambda i: self.nodes.index(cycle[i]))
        return [*cycle[first:-1], *cycle[:first], cycle[first]]

    def predictors(self, order: Sequence[Any]) -> dict[Any, list[Any]]:
        """Return, for each feature in a topological order, the features that it is modelled on (step 3)."""
        found: dict[Any, list[Any]] = {}
        for i, name in enumerate(order):
            joint = self._sharing(name, order[: i + 1])
            needed = joint.union(*(self._parents[each] for each in joint)) - {name}
            found[name] = [each for each in order[:i] if each in needed]
        return found

    def independences(self, columns: Sequence[Any] | None = None) -> list[Independence]:
        """Return the conditional independences that the graph implies, each pair of features once (step 5)."""
        order = self.order(columns)
        found = []
        for i, (name, given) in enumerate(self.predictors(order).items()):
            found += [Independence(name, other, tuple(given)) for other in order[:i] if other not in given]
        return found

    def _sharing(self, name: Any, among: Iterable[Any]) -> set[Any]:
        """Return the features connected to a feature by pairs with unmeasured causes, the feature included."""
        known, found, waiting = {*among}, {name}, [name]
        while waiting:
            new = {each for each in self._joined[waiting.pop()] if each in known} - found
            found |= new
            waiting += new
        return found

    def to_text(self) -> str:
        """Return the graph as text that `from_text` reads: one line for each feature with parents."""
        lines = []
        for name in self._order:
            parents = self.parents(name)
            if parents:
                lines.append(f"{', '.join(map(quoted, parents))} -> {quoted(name)}")
        direct = [quoted(name) for name in self._order if (name, self.outcome) in self.edges]
        lines += [f"{', '.join(direct)} -> {quoted(self.outcome)}"] if direct else []
        joined = {each for pair in (*self.edges, *self.confounded) for each in pair}
        alone = [quoted(name) for name in self._order if name not in joined]
        return "\n".join([*lines, *(f"{quoted(a)} <-> {quoted(b)}" for a, b in self.confounded), *alone])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the graph: causes above effects; dashed lines join features that share an unmeasured cause.

        Parameters
        ----------
        ax : Axes or None
            None makes a new figure, 400 pixels wide.

        Examples
        --------
        >>> import mcce
        >>> axes = mcce.Graph.from_text("age -> education -> salary; age -> salary").plot()
        """
        from mcce.generators.graph_plot import draw_graph

        parents = {name: self._parents[name] for name in self._order}
        if self.outcome is not None:
            parents[self.outcome] = [cause for cause, effect in self.edges if effect == self.outcome]
        return draw_graph(parents, self.edges, self.confounded, ax)

    # ---- with a table

    def of_columns(self, columns: Sequence[Any]) -> Graph:
        """Return the graph with the names of columns; raise if a feature is not a column.

        A name in a text also matches a column label that is not a text, such as a number, if it is written the same.
        """
        by_text = {str(column): column for column in reversed(columns)}
        if self.outcome is not None and self.outcome in by_text:
            raise InputError(
                f"the outcome {self.outcome!r} of the graph is a column of ",
                Parameter("X"),
                "; leave that column out, or read the graph without an outcome.",
            )
        names: dict[Any, Any] = {} if self.outcome is None else {self.outcome: self.outcome}
        for name in self.nodes:
            if name in columns:
                names[name] = name
            elif isinstance(name, str) and name in by_text:
                names[name] = by_text[name]
            else:
                raise InputError(
                    Parameter("graph"),
                    f" names {spell(name)}, which is not a column of ",
                    Parameter("X"),
                    f"; {did_you_mean(name, columns)}",
                )
        edges, confounded = ([(names[a], names[b]) for a, b in pairs] for pairs in (self.edges, self.confounded))
        return Graph(edges, confounded, [names[name] for name in self.nodes], self.outcome)

    def visit(self, columns: Sequence[Any], fixed: Sequence[Any]) -> tuple[list[Any], dict[Any, list[Any]]]:
        """Return the mutable columns in visiting order, and the predictors of those in the graph; see `ChainModel`."""
        for cause, effect in self.edges:
            if effect in fixed and cause not in fixed:
                raise InputError(
                    f"graph has {cause!r} -> {effect!r}, but {effect!r} is fixed and its cause is not: fixed features "
                    f"do not follow changes. Fix {cause!r} too, do not fix {effect!r}, or remove the edge."
                )
        order = self.order([*fixed, *(name for name in columns if name not in fixed)])
        mutable = [name for name in order if name not in fixed]
        predictors = self.predictors(order)
        outside = [name for name in columns if name not in fixed and name not in self._parents]
        return mutable + outside, {name: predictors[name] for name in mutable}

    def check_undrawn(self, names: Iterable[Any]) -> None:
        """Raise if the graph names a column that is computed from others and not drawn."""
        for name in names:
            if name in self._parents:
                raise InputError(
                    f"graph names {name!r}, which is derived from other columns and not drawn; leave it out of the "
                    "graph, and name the columns that it is computed from."
                )

    def _check_name(self, name: Any) -> None:
        if not isinstance(name, Hashable) or name not in self._parents:
            raise InputError(f"{spell(name)} is not a feature of the graph; {did_you_mean(name, self.nodes)}")

    def __contains__(self, name: object) -> bool:
        return isinstance(name, Hashable) and name in self._parents

    def __len__(self) -> int:
        return len(self.nodes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[Any, ...]:
        pairs = frozenset(map(frozenset, self.confounded))
        return frozenset(self.nodes), frozenset(self.edges), pairs, self.outcome

    def __repr__(self) -> str:
        outcome = "" if self.outcome is None else f", outcome={self.outcome!r}"
        return f"Graph.from_text({'; '.join(self.to_text().splitlines())!r}{outcome})"


def _names(given: Any, role: str) -> list[Any]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"{role} has {spell(given)}, where a list of features belongs.")
    names = list(given)
    for name in names:
        if name is None or not isinstance(name, Hashable):
            raise InputError(f"{role} has {spell(name)}, where the name of a feature belongs.")
    return names


def _pairs(given: Any, role: str) -> list[Pair]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"{role} is {spell(given)}; give a list of pairs of features.")
    found: list[Pair] = []
    for pair in given:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise InputError(f"{role} has {spell(pair)}; give pairs of features, as ('education', 'salary').")
        one, other = _names(pair, role)
        found.append((one, other))
    return found
