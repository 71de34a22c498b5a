"""Programs to try: every small graph in every order of arrival, and random ones of a seed.

Hands on programs. A program on its way from push to push is every graph whose numbering fits it, so
that all choices of earlier handles as inputs are all graphs in all orders of arrival.

>>> sum(1 for _ in graphs(3))  # 1 + 2 + 8
11
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product

from program_operators import CELL, OPERATIONS, VECTOR, Kind
from program_statements import Cancel, Drop, Flush, Hold, Program, Push, Put, Read, Statement

Graph = tuple[tuple[int, ...], ...]
"""The inputs of each operator, among those before it."""


def graphs(most: int, least: int = 1) -> Iterator[Graph]:
    """Every graph of so many operators in every order in which they can arrive."""
    for count in range(least, most + 1):
        choices = [
            [chosen for size in range(index + 1) for chosen in combinations(range(index), size)]
            for index in range(count)
        ]
        yield from product(*choices)


def colourings(count: int, colours: int) -> Iterator[tuple[int, ...]]:
    """Every way to give operators signatures, up to their names: the first is always 0."""
    for rest in product(range(colours), repeat=count - 1):
        found = (0, *rest)
        if all(colour <= max(found[:index], default=-1) + 1 for index, colour in enumerate(found)):
            yield found


def exhaustive(most: int) -> Iterator[Program]:
    """Every graph of two signatures of batched operators: awaited at once, and under hold."""
    for graph in graphs(most):
        for colours in colourings(len(graph), 2):
            pushes = tuple(
                Push(("stir_a", "stir_b")[colour], (0, *(each + 1 for each in inputs)))
                for inputs, colour in zip(graph, colours, strict=True)
            )
            yield (Put(3), *pushes)
            yield (Put(3), Hold(pushes), Flush())


MIXED = ("add", "axpy", "note", "step", "gather", "batch_axpy", "even_only", "even_batch")
"""Operators of vectors, one of each sort."""


def sorts(most: int) -> Iterator[Program]:
    """Every graph of a few operators of every sort, each with one or two inputs."""
    for graph in graphs(most):
        if any(len(inputs) > 2 for inputs in graph):
            continue
        for names in product(MIXED, repeat=len(graph)):
            pushes = tuple(
                Push(name, padded(inputs, len(OPERATIONS[name].takes)))
                for name, inputs in zip(names, graph, strict=True)
            )
            yield (Put((3, 4)), *pushes)
            yield (Put((2, 4)), Hold((*pushes, Drop(len(pushes)))))


def padded(inputs: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Return so many inputs: those there are, one after the put array, and that array."""
    return (*(each + 1 for each in inputs), 0, 0)[:count]


def siblings(most: int) -> Iterator[Program]:
    """Up to so many members of one batch, any of which may fail, and work on each of them."""
    for count in range(1, most + 1):
        for odd in product((0, 1), repeat=count):
            puts = tuple(Put((2 * index + each, 1)) for index, each in enumerate(odd))
            batch = tuple(Push("even_batch", (index,)) for index in range(count))
            after = tuple(Push("add", (count + index, index)) for index in range(count))
            yield (*puts, Hold((*batch, *after)), Flush())


WEIGHTS = [1 if operation.fails else 4 for operation in OPERATIONS.values()]
"""How often each operator is pushed: those that fail seldom, else little would be computed."""


@dataclass
class Draft:
    """A random program on its way: the kinds of its handles, and which may still be used."""

    source: random.Random
    kinds: list[Kind] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    live: list[int] = field(default_factory=list)
    cancelled: set[int] = field(default_factory=set)

    def program(self, count: int) -> Program:
        """Return a program of so many statements besides what it begins with."""
        begin = [self.put(length) for length in (2, 2, 3)] + [self.put(0)]
        return (*begin, *self.statements(count, held=False))

    def statements(self, count: int, *, held: bool) -> list[Statement]:
        found: list[Statement] = []
        while len(found) < count:
            if not held and self.source.random() < 0.08:
                found.append(Hold(tuple(self.statements(self.source.randint(1, 8), held=True))))
            else:
                found.extend(self.statement())
        return found

    def statement(self) -> list[Statement]:
        chance = self.source.random()
        if chance < 0.72 or not self.live:
            return self.push()
        handle = self.source.choice(self.live)
        if chance < 0.82:
            return self.drop(handle) if len(self.live) > 4 else []
        if chance < 0.84:
            if handle in self.cancelled:
                return []
            self.cancelled.add(handle)
            return [Cancel(handle)]
        if chance < 0.90:
            return [Read(handle)]
        return [Flush(handle)] if chance < 0.95 else [Flush()] if chance < 0.96 else []

    def put(self, length: int) -> Statement:
        """Put a vector of that length, or with 0 a cell."""
        numbers = [self.source.randint(-9, 9) for _ in range(length)]
        self.make(VECTOR if length else CELL, length)
        return Put(tuple(numbers) if length else self.source.randint(0, 99))

    def push(self) -> list[Statement]:
        """Push an operator on handles that fit it, if there are any; often on one just made."""
        name = self.source.choices([*OPERATIONS], WEIGHTS)[0]
        operation = OPERATIONS[name]
        takes = operation.takes
        if operation.many:
            takes = takes * self.source.randint(1, 3)
        length = self.source.choice((2, 2, 3))
        inputs = [self.pick(kind, length) for kind in takes]
        if None in inputs:
            return []
        vectors = [self.lengths[each] for each in inputs if each is not None]
        given = tuple(each for each in inputs if each is not None)
        self.make(operation.gives, 0 if operation.gives == CELL else vectors[0] or 2)
        made: list[Statement] = [Push(name, given)]
        if operation.form in ("in_place", "cumulative") and self.source.random() < 0.6:
            made.extend(self.drop(given[0]))  # nobody else can see it: it may be written over
        return made

    def pick(self, kind: Kind, length: int) -> int | None:
        wanted = 0 if kind == CELL else length
        fitting = [each for each in self.live if self.lengths[each] == wanted]
        if not fitting:
            return None
        return self.source.choice(fitting[-3:] if self.source.random() < 0.5 else fitting)

    def make(self, kind: Kind, length: int) -> None:
        self.live.append(len(self.kinds))
        self.kinds.append(kind)
        self.lengths.append(length)

    def drop(self, handle: int) -> list[Statement]:
        if handle not in self.live or handle < 4:
            return []
        self.live.remove(handle)
        return [Drop(handle)]


def random_program(seed: int | Sequence[int]) -> Program:
    """Return the program of a seed: 1 to 40 statements, every feature mixed."""
    source = random.Random(str(seed))
    return Draft(source).program(source.randint(1, 40))
