"""Rules as pairs of text, `rule [dtypes] before => after`, executed on both sides: bit for bit,
where a rule is of class bitwise, else within a running-error bound."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph, type_text
from tenfold.core.structure import Half
from tenfold.dtypes import kind_of
from tenfold.ops import assume, factors
from tenfold.ops.gemm import gemm
from tenfold.ops.lu_and_triangular import solve_diagonal, triangular_solve
from tenfold.ops.syrk import syrk, trmm
from tenfold.rule_registry import optimise_graph
from tenfold.runtime.reference import Reference
from tenfold.testing import (
    all_dtypes,
    assert_close,
    assert_equal_bits,
    random_array,
    special_values,
)

ROOM = Path(__file__).parent
PAIR = re.compile(r"(?P<refused>! )?(?P<rule>[\w-]+) \[(?P<dtypes>[^]]+)\] (?P<text>.+)")
NAMED = {str(dtype): dtype for dtype in all_dtypes()}
SHAPES = ("vector", "matrix", "number", "empty")


class Pair(NamedTuple):
    file: str
    rule: str
    dtypes: str
    before: str
    after: str | None


def pairs() -> Iterator[Pair]:
    for path in sorted(ROOM.glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line or line.startswith("#"):
                continue
            found = PAIR.fullmatch(line)
            assert found is not None, f"{path.name}: {line}"
            before, _, after = found["text"].partition(" => ")
            assert bool(after) != bool(found["refused"]), f"{path.name}: {line}"
            yield Pair(path.stem, found["rule"], found["dtypes"], before, after or None)


@pytest.fixture(autouse=True)
def on_the_reference_device() -> Iterator[None]:
    with tn.options(device="reference"):
        yield


PAIRS = list(pairs())


def dtypes_of(pair: Pair) -> list[np.dtype]:
    if all(word in NAMED for word in pair.dtypes.split()):
        return [NAMED[word] for word in pair.dtypes.split()]
    return list(all_dtypes(pair.dtypes))


def shaped(values: np.ndarray, shape: str) -> np.ndarray:
    """Special values as a vector, as two rows of a matrix, one number, or none."""
    if shape == "vector":
        return values
    if shape == "matrix":
        return np.stack([values, values[::-1]])[:, ::-1]
    return values[-1:].reshape(()) if shape == "number" else values[:0]


@cache
def leaf(name: str, dtype: np.dtype, shape: str) -> np.ndarray:
    values = special_values(dtype)
    if name == "x":
        return shaped(values, shape)
    if name == "y":
        return shaped(np.roll(values, 1), shape)
    if name == "b":
        return shaped(np.arange(len(values)) % 2 == 0, shape)
    return np.asarray(random_array(LEAVES[name], dtype, seed=ord(name)))


def read_twice(x: tn.Array) -> tn.Array:
    return x[0] + x[-1]


def number(x: tn.Array, value: int) -> complex:
    return value * 1.0 if x.dtype == tn.bfloat16 else x.dtype.type(value).item()


LEAVES = {"m": (3, 4), "t": (2, 3, 4), "u": (3, 1), "v": (12,), "s": (), "e": (0, 3)}
LEAVES |= {"w": (4, 3), "r": (2, 4, 3)}
LEAVES |= {"a": (3, 3), "d": (3, 3), "g": (2, 3, 3)}  # far from singular
LEAVES |= {
    "h": (100, 70),
    "k": (100, 70),
    "p": (70, 100),
    "q": (70, 70),
    "z": (100, 100),
}  # worth halving
FUNCTIONS = {name: getattr(tn, name) for name in tn.__all__ if not name.startswith("_")} | {
    "np": np,
    "twice": read_twice,
    "number": number,
    "factors": factors.factors,
    "gemm": gemm,
    "Half": Half,
    "syrk": syrk,
    "trmm": trmm,
    "solved": factors.solve_factored,
    "inverse": factors.inv_factored,
    "determinant": factors.det_factored,
    "divided": solve_diagonal,
    "verified": assume.verified,
    "logarithm": factors.logarithm_of,
    "substituted": lambda x, y, *params: _native.apply(triangular_solve.id, (x, y), params),
}


def names_for(text: str, dtype: np.dtype, shape: str) -> dict[str, Any]:
    """Return what a text may name: leaves, and tenfold's functions."""
    words = set(re.findall(r"\b[a-z]\b", text))
    leaves = {word: tn.asarray(leaf(word, dtype, shape)) for word in words}
    kept: list[tn.Array] = []

    def seen(x: tn.Array) -> tn.Array:
        """An array with a name, through which an evaluation has passed: this one stores it."""
        kept.append(x)
        _native.node_of(x).passed_through()
        return x

    return {**FUNCTIONS, **leaves, "seen": seen}


def graph_of(text: str, names: dict[str, Any]) -> Graph:
    return Graph.of([_native.node_of(eval(text, names))])


def computed(graph: Graph) -> np.ndarray:
    failure = Reference().run(graph)
    if failure is not None:
        raise failure
    return np.asarray(_native.array_of(graph.nodes[graph.outputs[0]]))


def canonical(graph: Graph) -> list[str]:
    """Return the nodes as text, equal ones once."""
    lines: dict[str, int] = {}
    places: list[int] = []
    for position, node in enumerate(graph.nodes):
        if node.is_scalar:
            line = f"scalar {node.scalar!r}"
        elif not node.pending:
            line = f"leaf {type_text(node.type)} {np.asarray(_native.array_of(node)).tobytes()!r}"
        else:
            inputs = [places[i] for i in graph.inputs[position]]
            line = f"{node.name} {inputs} {node.params} {type_text(node.type)}"
        places.append(lines.setdefault(line, len(lines)))
    return sorted(lines)


INEXACT = {rule.name for rule in tn.rules.list() if rule.exactness != "bitwise"}
ERROR = 64
"""Units of rounding, of the largest element: no pair adds up more than as many terms."""


def assert_same(changed: np.ndarray, plain: np.ndarray, fired: Collection[str]) -> None:
    if kind_of(plain.dtype) in "biu" or not INEXACT & set(fired):
        assert_equal_bits(changed, plain)
        return
    largest = np.abs(plain).astype(float).max(initial=1.0)
    unit = float(ml_dtypes.finfo(plain.dtype).eps)
    assert_close(changed, plain, atol=ERROR * unit * largest)


@pytest.mark.exhaustive
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.rule}: {pair.before}")
def test_rule_replaces_what_it_says_and_the_values_stay(pair: Pair) -> None:
    exactness = next(rule.exactness for rule in tn.rules.list() if rule.name == pair.rule)
    several = pair.file in ("constants", "casts", "booleans")
    with tn.options(fast=exactness == "fast"):
        for dtype in dtypes_of(pair):
            for shape in SHAPES if several else SHAPES[:1]:
                check(pair, dtype, shape)


def check(pair: Pair, dtype: np.dtype, shape: str) -> None:
    names = names_for(f"{pair.before} {pair.after}", dtype, shape)
    graph = graph_of(pair.before, names)
    after, report = optimise_graph(graph)
    fired = pair.rule in report.counts
    assert fired == (pair.after is not None), (dtype, shape, report.counts)
    if pair.after is not None:
        assert canonical(after) == canonical(graph_of(pair.after, names)), (dtype, shape)
    again, more = optimise_graph(after)
    assert more.counts == {}
    assert again is after
    changed = computed(after)
    assert_same(changed, computed(graph_of(pair.before, names)), report.counts)


def test_every_builtin_rule_has_a_pair_that_fires() -> None:
    tried = {pair.rule for pair in PAIRS if pair.after is not None}
    assert {rule.name for rule in tn.rules.list()} - tried == set()
