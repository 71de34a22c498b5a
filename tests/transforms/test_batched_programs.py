"""Programs of several operations, batched: every choice of what has the batch axis gives the stack
of the members.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.core.op import Op
from tenfold.core.pytree import flatten
from tenfold.testing import assert_close, assert_equal_bits

MEMBERS = 3
Program = Callable[..., Any]


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(-40, 40, (MEMBERS, *shape)) / 8


def indices(below: int, *shape: int) -> np.ndarray:
    """Indices of both signs."""
    return np.random.default_rng(below).integers(-below, below, (MEMBERS, *shape))


def stored(key: Callable[..., Any], with_sum: bool = False) -> Program:
    """A program that replaces, or adds to, a part of its first argument."""

    def program(x: tn.Array, value: Any, *rest: tn.Array) -> tn.Array:
        if with_sum:
            x[key(*rest)] += value
        else:
            x[key(*rest)] = value
        return x

    return program


def check(program: Program, given: Sequence[np.ndarray], close: bool = False) -> None:
    """Compare, for every choice of arguments that have the batch axis, with the members."""
    for chosen in itertools.product((True, False), repeat=len(given)):
        if not any(chosen):
            continue
        axes = tuple(0 if own else None for own in chosen)
        args = [tn.asarray(x if own else x[0]) for x, own in zip(given, chosen, strict=True)]
        found = flatten(tn.vmap(program, in_axes=axes)(*args))[0]
        for number in range(MEMBERS):
            own_args = [
                tn.asarray(x[number if own else 0]) for x, own in zip(given, chosen, strict=True)
            ]
            for one, other in zip(found, flatten(program(*own_args))[0], strict=True):
                if close:
                    assert_close(np.asarray(one)[number], np.asarray(other), rtol=1e-9, atol=1e-9)
                else:
                    assert_equal_bits(np.asarray(one)[number], np.asarray(other))


READS: dict[str, tuple[Program, list[np.ndarray]]] = {
    "x[i]": (lambda x, i: x[i], [floats(5, 2), indices(5, 4)]),
    "x[:, i]": (lambda x, i: x[:, i], [floats(2, 5, 3), indices(5, 2, 2)]),
    "x[i, :, j]": (lambda x, i, j: x[i, :, j], [floats(4, 2, 5), indices(4, 3), indices(5, 3)]),
    "x[:, i, j]": (lambda x, i, j: x[:, i, j], [floats(2, 4, 5), indices(4, 2, 1), indices(5, 3)]),
    "x[1:, i, None]": (lambda x, i: x[1:, i, None], [floats(4, 3, 2), indices(3, 2)]),
    "x[i] scalar": (lambda x, i: x[i], [floats(5, 2), indices(5)]),
    "take": (lambda x, i: tn.take(x, i, axis=1), [floats(2, 4, 3), indices(4, 5)]),
    "take_along_axis": (
        lambda x, i: tn.take_along_axis(x, i, axis=0),
        [floats(4, 3), indices(4, 2, 3)],
    ),
    "by argsort": (lambda x: tn.take_along_axis(x, tn.argsort(x, axis=0), axis=0), [floats(5, 2)]),
    "mask": (lambda x, y: tn.where(x > y, x, 0), [floats(4, 3), floats(3)]),
    "backwards": (lambda x: (x[::-1, 1::2], x[..., None, -1], x.T), [floats(4, 5)]),
    "searchsorted": (
        lambda x, y: tn.searchsorted(tn.sort(x), y, side="right"),
        [floats(6), floats(2, 2)],
    ),
    "isin": (lambda x, y: tn.isin(x, y), [floats(6), floats(2, 2)]),
    "split": (lambda x: tn.split(x, 2)[1] + tn.concat([x[:1], x[:1]]), [floats(4, 2)]),
    "reshape": (lambda x: tn.reshape(x.T, (2, 6)), [floats(3, 4)]),
    "broadcast_to": (lambda x: tn.broadcast_to(x, (3, 4, 2), axis=1), [floats(4, 1)]),
    "argmax of all": (lambda x: (tn.argmax(x), tn.argmin(x, keepdims=True)), [floats(3, 4)]),
    "statistics": (lambda x: (tn.mean(x), tn.std(x, axis=0), tn.softmax(x)), [floats(37, 3)]),
    "signs": (lambda x: tn.sign(x) * tn.linalg.slogdet(x).sign, [floats(3, 3)]),
    "parts": (lambda x: tn.linalg.eigh(x @ x.T).eigenvalues * 0 + 1, [floats(3, 3)]),
}
WRITES: dict[str, tuple[Program, list[np.ndarray]]] = {
    "x[1] = v": (stored(lambda: 1), [floats(3, 4), floats(4)]),
    "x[::-2, 1:] += v": (stored(lambda: np.s_[::-2, 1:], True), [floats(4, 3), floats(2)]),
    "x[None, ..., 0] = v": (stored(lambda: np.s_[None, ..., 0]), [floats(4, 3), floats(1, 4)]),
    "x[i] = v": (stored(lambda i: i), [floats(6, 2), floats(2), indices(6, 4)]),
    "x[i] += v": (stored(lambda i: i, True), [floats(6, 2), floats(4, 1), indices(6, 4)]),
    "x[:, i] = v": (stored(lambda i: np.s_[:, i]), [floats(2, 6, 2), floats(3, 2), indices(6, 3)]),
    "x[i, :, j] = v": (
        stored(lambda i, j: (i, slice(None), j)),
        [floats(4, 2, 5), floats(3, 2), indices(4, 3), indices(5, 3)],
    ),
    "x[:, i, j] = v": (
        stored(lambda i, j: (slice(None), i, j)),
        [floats(2, 4, 5), floats(2, 1, 3), indices(4, 2, 1), indices(5, 3)],
    ),
    "add_at": (
        lambda x, i, v: tn.add_at(x, i, v),
        [floats(5, 2), indices(5, 2, 3), floats(3, 2)],
    ),
    "segment_sum": (
        lambda x, i: tn.segment_sum(x, tn.abs(i), 6),
        [floats(7, 2), indices(5, 7)],
    ),
}


@pytest.mark.parametrize("name", READS)
def test_reading_program_is_the_stack_of_its_members(name: str) -> None:
    program, given = READS[name]
    check(program, given)


@pytest.mark.parametrize("name", WRITES)
def test_writing_program_is_the_stack_of_its_members(name: str) -> None:
    program, given = WRITES[name]
    check(program, given)


SHAPES = [
    ((4,), (4,)),
    ((3, 4), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4, 5)),
    ((3, 4), (4, 1)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 4, 5)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((3, 4), (2, 4, 1)),
    ((2, 1, 3, 4), (5, 4, 2)),
    ((0, 4), (4, 5)),
    ((3, 0), (0, 5)),
]


@pytest.mark.parametrize(("first", "second"), SHAPES)
def test_product_of_members_is_the_stack_of_their_products(
    first: tuple[int, ...], second: tuple[int, ...]
) -> None:
    check(lambda x, y: x @ y, [floats(*first), floats(*second)], close=True)
    complex_ones = [floats(*shape) + 1j * floats(*shape)[::-1] for shape in (first, second)]
    check(lambda x, y: x @ y, complex_ones, close=True)


@pytest.mark.parametrize(
    "text", ["i,i", "ij,j->i", "ij,jk->ik", "ij,kj->ki", "ijk,jl->lik", "ii,i->i", "i,j", "bij,bjk"]
)
def test_einsum_of_members_is_the_stack_of_theirs(text: str) -> None:
    first, second = text.split("->")[0].split(",")
    lengths = dict(zip("bijkl", (2, 3, 3, 4, 2), strict=True))
    given = [floats(*(lengths[letter] for letter in term)) for term in (first, second)]
    check(lambda x, y: tn.einsum(text, x, y), given, close=True)
    if text == "i,i":
        complex_ones = [x + 1j * x[::-1] for x in given]
        check(lambda x, y: tn.vecdot(x, y), complex_ones, close=True)


@pytest.mark.parametrize(
    ("first", "second"),
    [((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (3,)), ((2, 3, 3), (3, 2)), ((3, 3), (2, 3, 2))],
)
def test_solves_of_members_are_the_stack_of_theirs(
    first: tuple[int, ...], second: tuple[int, ...]
) -> None:
    matrices = floats(*first) + 20 * np.eye(3)
    check(lambda a, b: tn.linalg.solve(a, b), [matrices, floats(*second)], close=True)
    lower = np.tril(matrices)
    check(lambda a, b: tn.linalg.triangular_solve(a, b), [lower, floats(*second)], close=True)


@pytest.mark.parametrize("order", [None, 1, np.inf])
def test_norms_of_members_are_the_stack_of_theirs(order: Any) -> None:
    check(lambda x: tn.linalg.norm(x, ord=order), [floats(5, 4)], close=True)
    check(lambda x: tn.linalg.norm(x, ord=order, keepdims=True), [floats(5, 4)], close=True)
    check(lambda x: tn.linalg.norm(x, ord=order, axis=0), [floats(5, 4)], close=True)


def test_a_shared_matrix_goes_second_where_the_members_have_one_column() -> None:
    matrix = tn.asarray(floats(8, 8)[0])

    def first_operand(program: Program, *shape: int) -> tuple[int, ...]:
        graph = Graph.of([_native.node_of(tn.vmap(program)(tn.ones(shape)))])
        (found,) = [
            node
            for node in graph.nodes
            if isinstance(node.op, Op) and node.op.rewriting.contraction
        ]
        return found.inputs[0].type.shape

    assert first_operand(lambda x: matrix @ x, 9, 8) == (9, 8)
    assert first_operand(lambda x: tn.einsum("ij,j->i", matrix, x), 9, 8) == (9, 8)
    assert first_operand(lambda x: matrix @ x, 9, 8, 1) == (9, 8, 1)
    assert first_operand(lambda x: matrix @ x, 9, 8, 4) == (8, 8)


def test_an_index_out_of_range_fails_in_whichever_member_it_is() -> None:
    rows = tn.zeros((3, 4))
    wrong = tn.asarray([[0, 1], [2, 9], [1, 1]]) + 0
    programs: list[Program] = [
        lambda x, i: x[i],
        lambda x, i: tn.add_at(x, i, tn.ones((2,))),
        lambda x, i: tn.segment_sum(tn.ones((2,)) * x[0], i, 4),
        lambda x, i: tn.put_at(x, i, 1.0),
    ]
    for program in programs:
        with pytest.raises(IndexError, match=r"out of (bounds|range)"):
            tn.vmap(program)(rows, wrong).wait()
    negative = tn.vmap(lambda i: tn.segment_sum(tn.ones((2,)), i, 4))(tn.asarray([[0, -1]]) + 0)
    with pytest.raises(IndexError, match=r"segment id -\d"):
        negative.wait()


def test_products_with_a_shared_operand_are_one_call() -> None:
    matrix, rows = tn.asarray(floats(8, 8)[0]), tn.asarray(np.ones((100, 8)))
    stacks = tn.asarray(np.ones((100, 8, 4)))
    programs: list[tuple[Program, tn.Array]] = [
        (lambda x: matrix @ x, rows),
        (lambda x: x @ matrix, rows),
        (lambda x: tn.vecdot(x, matrix[0]), rows),
        (lambda x: tn.einsum("ij,j->i", matrix, x), rows),
        (lambda x: matrix @ x, stacks),
        (lambda x: x.T @ matrix, stacks),
    ]
    for program, given in programs:
        mapped = tn.vmap(program)
        with tn.options(tier="0"), tn.profile() as p:
            mapped(given).wait()
        assert (p.launches, p.calls, p.temporaries) == (1, 1, 0)
