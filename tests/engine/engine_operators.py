"""The vocabulary as operators of the engine, which count how often they ran.

Takes a name of `vocabulary.OPERATIONS`; hands on what is pushed. Vectors are int64 arrays, cells
are `Cell` objects, which in-place and cumulative operators change where they are.

    engine.push(operator("stir"), engine.put(Cell(3)))
"""

from __future__ import annotations

import threading
from collections import Counter
from functools import cache
from typing import Any

import numpy as np

import tenfold as tn
from program_operators import CELLS, OPERATIONS, Odd, mixed
from program_statements import Value

SEEDS = {"stir": 11, "stir_a": 13, "stir_b": 17, "stir_once": 19}


class Cell(tn.EngineObject):
    """A number that operators may change in place; freed at most once, and never used after."""

    nbytes = 8

    def __init__(self, number: int) -> None:
        self.number = number
        self.freed = False

    def copy(self) -> Cell:
        return Cell(self.read())

    def free(self) -> None:
        if self.freed:
            LOG.complaints.append("a cell is freed twice")
        self.freed = True

    def read(self) -> int:
        assert not self.freed, "a cell is read after it was freed"
        return self.number


class Log:
    """How often each operator ran, how large the batches were and what was wrong, of any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # of both, since workers note at once
        self.runs = Counter[str]()
        self.largest = 0
        self.complaints: list[str] = []

    def note(self, name: str, batch: int = 1) -> None:
        with self._lock:
            self.runs[name] += batch
            self.largest = max(self.largest, batch)

    def clear(self) -> None:
        with self._lock:
            self.runs.clear()
            self.complaints.clear()
            self.largest = 0


LOG = Log()


def import_value(value: Value) -> Any:
    """Return what is put into the engine for a value of a program."""
    return Cell(value) if isinstance(value, int) else np.array(value, dtype=np.int64)


def export_value(found: Any) -> Value:
    """Return what an engine's value says, as programs write it."""
    return found.read() if isinstance(found, Cell) else tuple(np.asarray(found).tolist())


def first(vector: tn.Array) -> int:
    return int(vector[0])


def refuse(name: str, number: int) -> None:
    if number % 2:
        raise Odd(f"{name} {number}")


class Axpy(tn.Operator):
    pure = True

    def run(self, a: tn.Array, b: tn.Array) -> tn.Array:
        LOG.note("axpy")
        return 31 * a + b


class Note(tn.Operator):
    def run(self, a: tn.Array) -> tn.Array:
        LOG.note("note")
        return a + 1


class Step(tn.InPlaceOperator):
    def run(self, a: tn.Array, b: tn.Array) -> tn.Array:
        LOG.note("step")
        a *= 3
        a -= b
        return a


class Gather(tn.CumulativeOperator):
    def run(self, b: tn.Array) -> tn.Array:
        LOG.note("gather")
        return 2 * b


class Batched(tn.BatchedOperator):
    """One that is pure and batched by the kinds of its inputs, unless said otherwise."""

    pure = True
    name = ""

    def signature(self, *inputs: Any) -> Any:
        return tuple(np.shape(each) if isinstance(each, tn.Array) else "cell" for each in inputs)

    def run_batch(self, members: list[Any]) -> list[Any]:
        LOG.note(self.name, len(members))
        if len({self.signature(*inputs) for inputs in members}) > 1:
            LOG.complaints.append(f"a batch of {self.name} has several signatures")
        return [self.one(*inputs) for inputs in members]

    def one(self, *inputs: Any) -> Any:
        raise NotImplementedError


class BatchAxpy(Batched):
    name = "batch_axpy"

    def one(self, a: tn.Array, b: tn.Array) -> tn.Array:
        return 31 * a + b


class EvenOnly(tn.Operator):
    name = "even_only"

    def run(self, a: tn.Array) -> tn.Array:
        LOG.note(self.name)
        refuse(self.name, first(a))
        return a + 1


class EvenPure(EvenOnly):
    pure = True
    name = "even_pure"


class EvenBatch(Batched):
    name = "even_batch"

    def one(self, a: tn.Array) -> tn.Array:
        refuse(self.name, first(a))
        return a + 1


class CellOf(tn.Operator):
    def run(self, a: tn.Array) -> Cell:
        LOG.note("cell_of")
        return Cell(mixed(7, *(number % CELLS for number in np.asarray(a).tolist())))


class VectorOf(tn.Operator):
    pure = True

    def run(self, a: Cell) -> np.ndarray:
        LOG.note("vector_of")
        return np.array([a.read(), a.read() + 1], dtype=np.int64)


class Stir(tn.Operator):
    pure = True

    def run(self, *cells: Cell) -> Cell:
        LOG.note("stir")
        return Cell(mixed(SEEDS["stir"], *(cell.read() for cell in cells)))


class StirBatch(Batched):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.pure = OPERATIONS[name].pure

    def one(self, *cells: Cell) -> Cell:
        return Cell(mixed(SEEDS[self.name], *(cell.read() for cell in cells)))


class Grow(tn.InPlaceOperator):
    """Changes the cell before it looks whether it may: a failure must harm no older value."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def run(self, a: Cell, b: tn.Array) -> Cell:
        LOG.note(self.name)
        before = a.read()
        a.number = (5 * before + first(b)) % CELLS
        if OPERATIONS[self.name].fails:
            refuse(self.name, before)
        return a


class Collect(tn.CumulativeOperator):
    def run(self, b: Cell) -> Cell:
        LOG.note("collect")
        return Cell(b.read())

    def add(self, a: Cell, b: Cell) -> Cell:
        return Cell((a.read() + b.read()) % CELLS)


MAKERS: dict[str, Any] = {
    "axpy": Axpy,
    "note": Note,
    "step": Step,
    "gather": Gather,
    "batch_axpy": BatchAxpy,
    "even_only": EvenOnly,
    "even_pure": EvenPure,
    "even_batch": EvenBatch,
    "cell_of": CellOf,
    "vector_of": VectorOf,
    "stir": Stir,
    "collect": Collect,
    **{name: lambda name=name: StirBatch(name) for name in ("stir_a", "stir_b", "stir_once")},
    **{name: lambda name=name: Grow(name) for name in ("grow", "even_grow")},
}


@cache
def operator(name: str) -> Any:
    """Return the operator of that name, one for all programs."""
    if OPERATIONS[name].form == "compiled":
        return getattr(tn.operators, name)
    return MAKERS[name]()
