"""Syntax trees of the functions in Python's own standard library: real trees, and no download.

Takes how many are wanted; hands on trees whose nodes have a label and children. A label is what
sort of node it is, with the name or the kind of constant that stands there: `Name(self)`.

>>> import ast
>>> tree = tree_of(ast.parse("def f(x): return x + 1").body[0])
>>> str(tree)
'FunctionDef(f)(arguments(arg(x)), Return(BinOp(Name(x), Add, Constant(int))))'
>>> tree.size, tree.depth
(8, 4)
"""

from __future__ import annotations

import ast
import random
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

FOREIGN = {"test", "tests", "idlelib", "lib2to3", "site-packages", "dist-packages"}
"""Folders that are not read: tests, and what is not of the library."""
PASSED_OVER = (ast.expr_context, ast.type_ignore)
"""Nodes that say nothing which their place does not say."""
SEED, MOST = 8, 16
"""Functions of one file at most."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A node with all that is below it."""

    label: str
    children: tuple[Tree, ...]

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return 1 + sum(child.size for child in self.children)

    @property
    def depth(self) -> int:
        """How many nodes the longest way down has."""
        return 1 + max((child.depth for child in self.children), default=0)

    def __str__(self) -> str:
        below = ", ".join(map(str, self.children))
        return f"{self.label}({below})" if below else self.label

    def __iter__(self) -> Iterator[Tree]:
        """Give every node."""
        yield self
        for child in self.children:
            yield from child


def tree_of(node: ast.AST) -> Tree:
    """Return the tree below a node of `ast`."""
    below = (each for each in ast.iter_child_nodes(node) if not isinstance(each, PASSED_OVER))
    return Tree(label_of(node), tuple(map(tree_of, below)))


def label_of(node: ast.AST) -> str:
    """Return the sort of a node, and what distinguishes it from others of the sort."""
    sort = type(node).__name__
    if isinstance(node, ast.Constant):
        return f"{sort}({type(node.value).__name__})"
    named = (getattr(node, field, None) for field in ("id", "name", "attr", "arg"))
    name = next((each for each in named if isinstance(each, str)), None)
    return sort if name is None else f"{sort}({name})"


def functions() -> Iterator[ast.AST]:
    """Give functions of the standard library, file by file, in an order that is always the same."""
    root, chosen = Path(sysconfig.get_path("stdlib")), random.Random(SEED)
    files = sorted(root.rglob("*.py"))
    for path in chosen.sample(files, len(files)):
        if FOREIGN.isdisjoint(path.relative_to(root).parts):
            nodes = ast.walk(ast.parse(path.read_bytes(), str(path)))
            found = [n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
            yield from chosen.sample(found, min(MOST, len(found)))


def trees(count: int) -> list[Tree]:
    """Return so many trees, always the same; there are thousands."""
    return [tree_of(node) for node in islice(functions(), count)]


def labels(trees: list[Tree]) -> list[str]:
    """Return the labels of some trees, each once."""
    return sorted({node.label for tree in trees for node in tree})
