"""Real graphs: social networks that come with networkx, and who imports whom in the library.

Takes how many are wanted; hands on graphs of numbered nodes. Those of the library are the modules
that lie within two imports of one module. networkx, if it is installed, adds the karate club, Les
Misérables and Davis's women.

>>> path = Graph.of([("a", "b"), ("b", "c")])
>>> path.neighbours
((1,), (0, 2), (1,))
"""

from __future__ import annotations

import ast
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import chain, cycle, islice
from pathlib import Path

FOREIGN = {"test", "tests", "idlelib", "lib2to3", "site-packages", "dist-packages"}
"""Folders that are not read: tests, and what is not of the library."""
SOCIAL = ("karate_club_graph", "les_miserables_graph", "davis_southern_women_graph")
LEAST = 5
"""Nodes of the smallest graph."""

Edge = tuple[str, str]


@dataclass(frozen=True)
class Graph:
    """Who is joined to whom, by number."""

    neighbours: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(edges: Iterable[Edge]) -> Graph:
        """Return the graph of edges between names, as undirected and without loops."""
        joined = {edge for a, b in edges if a != b for edge in ((a, b), (b, a))}
        numbers = {name: number for number, name in enumerate(sorted({a for a, _ in joined}))}
        below: list[list[int]] = [[] for _ in numbers]
        for a, b in sorted(joined):
            below[numbers[a]].append(numbers[b])
        return Graph(tuple(map(tuple, below)))

    def __len__(self) -> int:
        return len(self.neighbours)


def graphs(count: int) -> list[Graph]:
    """Return so many graphs; each comes again and again if there are fewer."""
    found = [*islice(chain(social_graphs(), import_graphs()), count)]
    return [*islice(cycle(found), count)]


def social_graphs() -> Iterator[Graph]:
    """Give the networks of networkx, or nothing."""
    try:
        networkx = import_module("networkx")
    except ImportError:
        return
    for name in SOCIAL:
        yield Graph.of((str(a), str(b)) for a, b in getattr(networkx, name)().edges)


def import_graphs() -> Iterator[Graph]:
    """Give for each module of the library the graph around it."""
    for module in files():
        near = {module, *imports(module)}
        near |= {far for each in imports(module) for far in imports(each)}
        graph = Graph.of((a, b) for a in near for b in imports(a) & near)
        if len(graph) >= LEAST:
            yield graph


@cache
def files() -> dict[str, Path]:
    """Return the file of each module of the library, by dotted name."""
    root = Path(sysconfig.get_path("stdlib"))
    found = {name_of(path.relative_to(root)): path for path in sorted(root.rglob("*.py"))}
    return {name: path for name, path in found.items() if FOREIGN.isdisjoint(name.split("."))}


@cache
def imports(module: str) -> set[str]:
    """Return the other modules of the library that one imports."""
    return {name for name in imported(files()[module]) if name in files()} - {module}


def name_of(path: Path) -> str:
    """Return the dotted name of a module."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> Iterator[str]:
    """Give the modules that a file imports, by dotted name."""
    for node in ast.walk(ast.parse(path.read_bytes(), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
