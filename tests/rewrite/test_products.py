"""Sums, products, scales, transposes of matrices: the fewest multiply-adds, the values of NumPy;
what they take in calls and temporaries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.conftest import Part
from tests.rewrite.products_search import Monomial, Shapes, fewest

import tenfold as tn
from tenfold.linear_algebra.chain_order import MAX_EXACT_MATRICES, Tree, best_order

SIZES = (1, 2, 3, 5, 8, 40)


class Expression(NamedTuple):
    """An expression of tenfold, NumPy's value and that of all moduli, and its monomials."""

    array: tn.Array
    value: np.ndarray
    bound: np.ndarray
    monomials: list[Monomial]
    """Names with ' are transposes, with * conjugates."""


class Expressions:
    """Random expressions; a matrix occurs again now and then."""

    def __init__(self, seed: int) -> None:
        self.random, self.values = Random(seed), np.random.default_rng(seed)
        self.complex = seed % 3 == 0
        self.leaves: list[tuple[str, tn.Array, np.ndarray]] = []
        self.shapes: Shapes = {}

    def one(self) -> Expression:
        sizes = self.random.sample(SIZES, 3)
        self.sizes = sizes
        rows, columns = self.random.choice(sizes), self.random.choice(sizes)
        return self.of(rows, columns, self.random.randint(2, 6))

    def of(self, rows: int, columns: int, leaves: int) -> Expression:
        wrap = self.random.random()
        if wrap > 0.9 and self.complex:
            return conjugated(self.unwrapped(rows, columns, leaves))
        if wrap < 0.15:
            return transposed(self.unwrapped(columns, rows, leaves))
        if wrap < 0.3:
            return scaled(
                self.unwrapped(rows, columns, leaves),
                self.random.choice([2.5, 0.5 - 2j if self.complex else -0.75, 3]),
            )
        return self.unwrapped(rows, columns, leaves)

    def unwrapped(self, rows: int, columns: int, leaves: int) -> Expression:
        if leaves == 1:
            return self.leaf(rows, columns)
        first = self.random.randint(1, leaves - 1)
        if self.random.random() < 0.6:
            inner = self.random.choice(self.sizes)
            return multiplied(self.of(rows, inner, first), self.of(inner, columns, leaves - first))
        sign = self.random.choice([1, -1])
        return added(self.of(rows, columns, first), self.of(rows, columns, leaves - first), sign)

    def leaf(self, rows: int, columns: int) -> Expression:
        known = [each for each in self.leaves if each[2].shape == (rows, columns)]
        if known and self.random.random() < 0.5:
            name, array, value = self.random.choice(known)
        else:
            value = self.values.standard_normal((rows, columns))
            if self.complex:
                value = value + 1j * self.values.standard_normal((rows, columns))
            name, array = f"m{len(self.leaves)}", tn.asarray(value)
            self.leaves.append((name, array, value))
            for mark in ("", "*"):
                self.shapes |= {name + mark: (rows, columns), f"{name}'{mark}": (columns, rows)}
        return Expression(array, value, abs(value), [(1.0, (name,))])


def transposed(x: Expression) -> Expression:
    monomials = [
        (scale, tuple(marked(name, "'") for name in reversed(names)))
        for scale, names in x.monomials
    ]
    return Expression(x.array.T, x.value.T, x.bound.T, monomials)


def conjugated(x: Expression) -> Expression:
    monomials = [
        (scale.conjugate(), tuple(marked(name, "*") for name in names))
        for scale, names in x.monomials
    ]
    return Expression(tn.conj(x.array), x.value.conj(), x.bound, monomials)


def marked(name: str, mark: str) -> str:
    marks = set(name.lstrip("m0123456789")) ^ {mark}
    return name.rstrip("'*") + "".join(sorted(marks))


def scaled(x: Expression, scale: complex) -> Expression:
    monomials = [(scale * coefficient, names) for coefficient, names in x.monomials]
    return Expression(scale * x.array, scale * x.value, abs(scale) * x.bound, monomials)


def added(x: Expression, y: Expression, sign: int) -> Expression:
    array = x.array + y.array if sign > 0 else x.array - y.array
    more = [(sign * by, names) for by, names in y.monomials]
    return Expression(array, x.value + sign * y.value, x.bound + y.bound, [*x.monomials, *more])


def multiplied(x: Expression, y: Expression) -> Expression:
    monomials = [(a * b, one + two) for a, one in x.monomials for b, two in y.monomials]
    return Expression(x.array @ y.array, x.value @ y.value, x.bound @ y.bound, monomials)


def random_expressions(count: int) -> list[tuple[int, Expression, Shapes]]:
    found: list[tuple[int, Expression, Shapes]] = []
    seed = 0
    while len(found) < count:
        seed += 1
        made = Expressions(seed)
        one = made.one()
        names = Counter(names for _, names in one.monomials)
        if len(one.monomials) <= 6 and max(names.values()) == 1:
            found.append((seed, one, made.shapes))
    return found


def test_random_expressions_take_the_fewest_multiply_adds(
    part: Part,
) -> None:
    for seed, one, shapes in part(random_expressions(300)):
        with tn.profile() as p:
            value = np.asarray(one.array)
        assert p.multiply_adds == fewest(one.monomials, shapes), seed
        assert np.all(abs(value - one.value) <= 1e-13 * one.bound), seed


def matrices(*shapes: tuple[int, ...], dtype: str = "float64") -> list[np.ndarray]:
    random = np.random.default_rng(0)
    values = [
        random.standard_normal(shape) + 1j * random.standard_normal(shape) for shape in shapes
    ]
    return [(x if dtype.startswith("c") else x.real).astype(dtype) for x in values]


def measured(
    expression: Callable[..., Any], *values: np.ndarray, tolerance: float = 1e-11
) -> tuple[int, int, int, int]:
    """Compare an expression with NumPy's; return (calls, kernels, temporaries, multiply-adds)."""
    arrays = [tn.asarray(x) for x in values]
    with tn.options(tier=1), tn.profile() as p:
        result = np.asarray(expression(*arrays))
    wanted = expression(*values)
    assert result.dtype == wanted.dtype
    np.testing.assert_allclose(result, wanted, rtol=tolerance, atol=tolerance * 100)
    return p.calls, p.kernels, p.temporaries, p.multiply_adds


SIX = [(40, 40)] * 6


def test_product_within_a_sum_takes_one_call_and_no_temporary() -> None:
    cubed = 40**3
    assert measured(lambda a, b, c, d, e: a + b @ c + d + e, *matrices(*SIX[:5])) == (
        1,
        1,
        0,
        cubed,
    )
    assert measured(lambda a, b, c: b @ c + a, *matrices(*SIX[:3])) == (1, 0, 0, cubed)


def test_products_of_a_sum_are_accumulated() -> None:
    found = measured(lambda a, b, c, d, e, f: a @ b + c @ d - e @ f, *matrices(*SIX))
    assert found == (3, 0, 0, 3 * 40**3)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_conjugate_transpose_and_scale_are_flags(dtype: str) -> None:
    for s in (2.5, -1, 1 - 2j) if dtype.startswith("c") else (2.5, -1):
        found = measured(
            lambda a, b, s=s: (
                a.conj().T @ (s * b) if isinstance(a, np.ndarray) else tn.conj(a).T @ (s * b)
            ),
            *matrices((30, 40), (30, 20), dtype=dtype),
            tolerance=1e-5 if dtype in ("float32", "complex64") else 1e-11,
        )
        assert found == (1, 0, 0, 30 * 40 * 20)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("kind", [complex, np.asarray])
def test_conjugate_of_a_scale_is_a_flag(kind: Callable[[Any], Any], dtype: str) -> None:
    expressions: list[Callable[..., Any]] = [
        lambda n, s, a, b, c: n.conj(a).T @ n.conj(s * b),
        lambda n, s, a, b, c: n.conj(s * a).T @ b,
        lambda n, s, a, b, c: n.conj(s * (a.T @ b)),
        lambda n, s, a, b, c: n.conj(a.T @ b + s * c),
        lambda n, s, a, b, c: s * (n.conj(a.T @ b) - c),
    ]
    values = matrices((30, 40), (30, 20), (40, 20), dtype=dtype)
    arrays = [tn.asarray(x) for x in values]
    for expression in expressions:
        for number in (2 - 1j, 0.5 + 3j):  # the second run has the plan of the first
            s = np.dtype(dtype).type(number)
            with tn.options(tier=1), tn.profile() as p:
                found = np.asarray(
                    expression(tn, tn.asarray(s) if kind is not complex else number, *arrays)
                )
            assert (p.calls, p.temporaries) == (1, 0)
            wanted = expression(np, s, *values)
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, atol=1e-4 if dtype == "complex64" else 1e-11)


def test_chain_is_multiplied_in_the_best_order() -> None:
    assert (
        measured(lambda a, b, u: a @ b @ u, *matrices((512, 512), (512, 512), (512,)))[3] == 524288
    )
    tall, wide = matrices((1000, 10), (10, 1000))
    assert measured(lambda a, b, c: a @ b @ c, tall, wide, tall)[3] == 200000
    with tn.options(reassociate=False):
        found = measured(lambda a, b, u: a @ b @ u, *matrices((40, 40), (40, 40), (40,)))
    assert found[3] == 40**3 + 40**2


def test_scaled_product_is_accumulated_into_the_target() -> None:
    a, b, start = matrices((40, 30), (30, 20), (40, 20))
    x, y, z = tn.asarray(a), tn.asarray(b), tn.asarray(start)
    with tn.options(tier=1):
        for turn in range(1, 4):
            with tn.profile() as p:
                z += 2 * (x @ y)
                z.wait()
            assert (p.calls, p.kernels, p.temporaries, p.allocations) == (1, 0, 0, 0) or turn == 1
            np.testing.assert_allclose(
                np.asarray(z), start + 2 * turn * (a @ b), rtol=1e-12, atol=1e-12
            )
    held = (+z).wait()
    z -= x @ y
    np.testing.assert_allclose(np.asarray(z), start + 5 * (a @ b), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(np.asarray(held), start + 6 * (a @ b), rtol=1e-11, atol=1e-11)
    z *= x @ y
    np.testing.assert_allclose(
        np.asarray(z), (start + 5 * (a @ b)) * (a @ b), rtol=1e-11, atol=1e-11
    )


@pytest.mark.parametrize("stack", [(3,), (2, 40)])
def test_stacks_take_one_call_and_no_temporary(stack: tuple[int, ...]) -> None:
    random = np.random.default_rng(4)
    a, b, c = random.standard_normal((3, *stack, 4, 4))
    w, row = random.standard_normal((4, 4)), random.standard_normal(4)
    for expression in (
        lambda a, b, c, w, row: a @ b + c,
        lambda a, b, c, w, row: c - 2.5 * (a.mT @ b),
        lambda a, b, c, w, row: a @ w + row,
        lambda a, b, c, w, row: a @ w + c,
        lambda a, b, c, w, row: a @ b + a @ c,
    ):
        with tn.profile() as counted:
            found = np.asarray(expression(*map(tn.asarray, (a, b, c, w, row))))
        np.testing.assert_allclose(found, expression(a, b, c, w, row), rtol=1e-12, atol=1e-12)
        assert (counted.calls, counted.multiply_adds) == (1, 4 * a.size)
        assert counted.temporaries == counted.kernels
    assert counted.temporaries == 1  # b + c


def test_product_with_a_row_added_is_part_of_larger_expressions() -> None:
    random = np.random.default_rng(3)
    for m, k, n in ((4, 4, 4), (5, 6, 7)):
        values = [random.standard_normal(shape) for shape in ((m, k), (k, n), (n,), (n, m))]
        x, y, z, w = map(tn.asarray, values)
        one, two, row, four = values
        turned, mixed = (x @ y + z).T @ x, (x @ y + z) @ w - 2.5 * (x @ y + z[::-1]) @ w
        np.testing.assert_allclose(turned, (one @ two + row).T @ one, rtol=1e-10, atol=1e-10)
        wanted = (one @ two + row) @ four - 2.5 * (one @ two + row[::-1]) @ four
        np.testing.assert_allclose(mixed, wanted, rtol=1e-9, atol=1e-12)


def test_target_that_is_multiplied_is_not_written_over_too_soon() -> None:
    (start,) = matrices((65, 65))
    for change in (
        lambda x: x + x @ x,
        lambda x: x - 2 * (x.T @ x),
        lambda x: x.T * 3 - x @ x,
        lambda x: x[::-1] + x @ x.T @ x,
    ):
        x = tn.asarray(start)
        x = change(x)
        x = x + 0.5 * (x @ x)
        wanted = change(start)
        wanted = wanted + 0.5 * (wanted @ wanted)
        np.testing.assert_allclose(np.asarray(x), wanted, rtol=1e-10, atol=1e-7)


def test_parts_of_arrays_and_windows_are_targets() -> None:
    a, b = matrices((64, 64), (64, 64))
    memory = np.array(a)
    window = tn.wrap(memory[:, ::2])
    window += 2 * (tn.asarray(b) @ window)
    window.wait()
    wanted = np.array(a)
    wanted[:, ::2] += 2 * (b @ a[:, ::2])
    np.testing.assert_allclose(memory, wanted, rtol=1e-10, atol=1e-10)
    x = tn.asarray(a)
    x[:32, :32] += x[32:, 32:] @ x[:32, :32]
    wanted = np.array(a)
    wanted[:32, :32] += a[32:, 32:] @ a[:32, :32]
    np.testing.assert_allclose(np.asarray(x), wanted, rtol=1e-10, atol=1e-10)


def test_numbers_that_scale_are_no_part_of_the_plan() -> None:
    a, b, start = matrices((40, 30), (30, 20), (40, 20))
    x, y, z = tn.asarray(a), tn.asarray(b), tn.asarray(start)
    total = start
    with tn.options(tier=1):
        for turn, by in enumerate((0.3, 0.7, 1.9)):
            with tn.profile() as p:
                z += by * (x @ y)
                z.wait()
            assert turn == 0 or p.compiles == 0
            total = total + by * (a @ b)
    np.testing.assert_allclose(np.asarray(z), total, rtol=1e-11)


@pytest.mark.parametrize(
    "lengths", [(0, 3, 2), (3, 0, 2), (3, 2, 0), (1, 5, 4), (4, 5, 1), (1, 1, 1)]
)
def test_lengths_of_zero_and_one(lengths: tuple[int, int, int]) -> None:
    m, k, n = lengths
    measured(lambda a, b, c: c - 2 * (a @ b), *matrices((m, k), (k, n), (m, n)))
    measured(lambda a, b, c: 3 * (a @ b) + c @ c.T @ (a @ b), *matrices((m, k), (k, n), (m, n)))


@pytest.mark.parametrize("dtype", ["int64", "float16", "uint8"])
def test_other_dtypes_stay_as_they_are_written(dtype: str) -> None:
    values = np.arange(25).reshape(5, 5).astype(dtype) % 3
    array = tn.asarray(values)
    result = np.asarray(2 * (array @ array) - array)
    np.testing.assert_array_equal(result, 2 * (values @ values) - values)


def test_sums_and_chains_of_hundreds_of_products() -> None:
    random = np.random.default_rng(1)
    values = random.standard_normal((300, 3, 3)) / 2
    total, product = np.zeros((3, 3)), np.eye(3)
    array, chained = tn.zeros((3, 3)), tn.eye(3)
    for one, other in zip(values, values[::-1], strict=True):
        total, array = total + one @ other, array + tn.asarray(one) @ tn.asarray(other)
        product, chained = product @ one, chained @ tn.asarray(one)
    np.testing.assert_allclose(np.asarray(array), total, rtol=1e-10)
    np.testing.assert_allclose(np.asarray(chained), product, rtol=1e-8, atol=1e-300)


def test_sums_that_are_multiplied_again_and_again() -> None:
    values = np.random.default_rng(2).standard_normal((3, 3)) / 4
    for form in (lambda y, x: y @ x + x, lambda y, x: x + y @ x, lambda y, x: x - y.mT @ x):
        matrix, expected = tn.asarray(values), values
        array = matrix
        for _ in range(1500):
            array, expected = form(array, matrix), form(expected, values)
        np.testing.assert_allclose(np.asarray(array), expected, rtol=1e-10, atol=1e-13)


def cost_of(tree: Tree, lengths: tuple[int, ...]) -> tuple[int, int, int]:
    if isinstance(tree, int):
        return tree, tree + 1, 0
    (first, middle, one), (again, last, other) = (cost_of(part, lengths) for part in tree)
    assert middle == again
    return first, last, one + other + lengths[first] * lengths[middle] * lengths[last]


def test_long_chains_are_near_the_best_order() -> None:
    random = Random(5)
    for _ in range(20):
        lengths = tuple(
            random.choice([random.randint(1, 9), random.randint(1, 999)]) for _ in range(90)
        )
        count = MAX_EXACT_MATRICES + 1
        for end in (count, 90):
            cost, tree = best_order(lengths[:end])
            assert cost_of(tree, lengths) == (0, end - 1, cost)
        halves = best_order(lengths[:46])[0] + best_order(lengths[45:])[0]
        best = min(halves + lengths[0] * lengths[45] * lengths[-1], 10**15)
        assert best_order(lengths)[0] <= 1.155 * best


def test_map_of_a_product_takes_its_memory() -> None:
    a, b, c = matrices((40, 30), (30, 20), (40, 20))
    cubed = 40 * 30 * 20
    assert measured(lambda a, b, c: (a @ b + c[0]) ** 2, a, b, c) == (1, 1, 0, cubed)
    assert measured(lambda a, b, c: abs(a @ b + c), a, b, c) == (1, 1, 0, cubed)
