"""Programs of an engine as data: what is put, pushed, cancelled, dropped, held, flushed and read.

Handles are numbered in the order in which `Put` and `Push` make them. A program is a tuple of
statements, and `show` writes it as Python text that makes it again:

>>> print(show((Put((1, 2)), Push("add", (0, 0)))))
(
    Put((1, 2)),
    Push('add', (0, 0)),
)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

Value = int | tuple[int, ...]
"""A cell's number, or the elements of an int64 vector."""


@dataclass(frozen=True)
class Put:
    """Hand a value to the engine: a tuple becomes an array, an int a cell; makes a handle."""

    value: Value

    def __repr__(self) -> str:
        return f"Put({self.value!r})"


@dataclass(frozen=True)
class Push:
    """Push an operator of the vocabulary on handles; makes a handle."""

    operator: str
    inputs: tuple[int, ...]

    def __repr__(self) -> str:
        return f"Push({self.operator!r}, {self.inputs!r})"


@dataclass(frozen=True)
class Cancel:
    """Ask that the work of a handle be not begun."""

    handle: int

    def __repr__(self) -> str:
        return f"Cancel({self.handle})"


@dataclass(frozen=True)
class Drop:
    """Forget a handle."""

    handle: int

    def __repr__(self) -> str:
        return f"Drop({self.handle})"


@dataclass(frozen=True)
class Read:
    """Wait for a handle and compare what it has."""

    handle: int

    def __repr__(self) -> str:
        return f"Read({self.handle})"


@dataclass(frozen=True)
class Flush:
    """Wait for what a handle needs, or for everything."""

    handle: int | None = None

    def __repr__(self) -> str:
        return f"Flush({'' if self.handle is None else self.handle})"


@dataclass(frozen=True)
class Hold:
    """Statements during which nothing runs that is not asked for."""

    body: tuple[Statement, ...]

    def __repr__(self) -> str:
        return f"Hold({self.body!r})"


Statement = Put | Push | Cancel | Drop | Read | Flush | Hold
Program = tuple[Statement, ...]


def flat(program: Program) -> Iterator[Statement]:
    """Every statement but the holds themselves, in the order in which they are executed."""
    for statement in program:
        if isinstance(statement, Hold):
            yield from flat(statement.body)
        else:
            yield statement


def makers(program: Program) -> list[Put | Push]:
    """What makes handle 0, 1, ..."""
    return [each for each in flat(program) if isinstance(each, Put | Push)]


def show(program: Program, indent: int = 0) -> str:
    """Return a program as Python text that makes it again, one statement a line."""
    space = "    " * (indent + 1)
    lines = ["("]
    for statement in program:
        if isinstance(statement, Hold):
            lines.append(f"{space}Hold({show(statement.body, indent + 1)}),")
        else:
            lines.append(f"{space}{statement!r},")
    return "\n".join([*lines, "    " * indent + ")"])
