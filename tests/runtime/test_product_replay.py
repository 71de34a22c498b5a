"""Products in a replay: no Python, the bits of the first evaluation, whatever lies where."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native, pipeline
from tenfold.core.graph import Graph
from tenfold.runtime.devices import cpu
from tenfold.storage import dense
from tenfold.testing import assert_equal_bits

Arrays = list[Any]

EXPRESSIONS: dict[str, Callable[..., Any]] = {
    "matrices": lambda xp, a, b, c, v, p, s: a @ b,
    "chain": lambda xp, a, b, c, v, p, s: a @ b @ c @ a,
    "vector": lambda xp, a, b, c, v, p, s: a @ v + v,
    "row": lambda xp, a, b, c, v, p, s: v @ a,
    "dot": lambda xp, a, b, c, v, p, s: v @ v,
    "transposed": lambda xp, a, b, c, v, p, s: a.T @ b.T + c,
    "added": lambda xp, a, b, c, v, p, s: a @ b + c,
    "subtracted": lambda xp, a, b, c, v, p, s: c - a @ b,
    "scaled": lambda xp, a, b, c, v, p, s: s * (a @ b),
    "negated and scaled": lambda xp, a, b, c, v, p, s: s * c - (s + 1) * (a @ b),
    "scaled twice": lambda xp, a, b, c, v, p, s: (s * (a @ b)) * 1.75 + c * s,
    "row added": lambda xp, a, b, c, v, p, s: a @ b + v,
    "column added": lambda xp, a, b, c, v, p, s: a @ b + v[:, None],
    "strided added": lambda xp, a, b, c, v, p, s: a @ b + c[:, ::-1],
    "several": lambda xp, a, b, c, v, p, s: a @ b + c @ a - s * (b @ c) + c,
    "activated": lambda xp, a, b, c, v, p, s: xp.abs(a @ b + c),
    "computed first": lambda xp, a, b, c, v, p, s: (a + b) @ xp.exp(c * 0.01),
    "parts": lambda xp, a, b, c, v, p, s: a[1:, ::-1] @ b[::-1, ::2],
    "element": lambda xp, a, b, c, v, p, s: (a @ b)[-1, 0],
    "stack": lambda xp, a, b, c, v, p, s: p @ xp.swapaxes(p, 1, 2),
    "stack and matrix": lambda xp, a, b, c, v, p, s: p @ a + c,
    "contracted": lambda xp, a, b, c, v, p, s: xp.tensordot(p, p, axes=((0, 2), (0, 2))),
    "traced": lambda xp, a, b, c, v, p, s: xp.linalg.trace(a @ b) * v,
}
LENGTHS = (6, 23, 1)
DTYPES = ("float64", "float32", "complex64", "complex128", "int32", "float16")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the operations that Python computes."""
    seen: list[str] = []
    original = cpu.compute_call

    def noted(node: Any, *given: Any, **options: Any) -> Any:
        seen.append(node.name)
        return original(node, *given, **options)

    monkeypatch.setattr(cpu, "compute_call", noted)
    tn.trim()
    with tn.options(device="cpu", tier=1):
        yield seen
    tn.trim()


def inputs(length: int, dtype: str, seed: int) -> Arrays:
    """Three matrices, a vector and a stack; small whole numbers, whose products are exact."""
    random = np.random.default_rng(seed)

    def made(*shape: int) -> np.ndarray:
        values = random.integers(-3, 4, shape)
        if dtype.startswith("complex"):
            values = values + 1j * random.integers(-3, 4, shape)
        return values.astype(dtype)

    square = (length, length)
    return [made(*square), made(*square), made(*square), made(length), made(5, *square)]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_other_values_have_the_bits_of_a_first_evaluation(name: str, calls: list[str]) -> None:
    expression = EXPRESSIONS[name]
    for dtype, length in zip(DTYPES, LENGTHS * 2, strict=True):
        found, scalars = [], (2, 3, -1) if dtype == "int32" else (2.5, 3.25, -1.5)
        for seed, scalar in enumerate(scalars):
            given = [tn.asarray(x) for x in inputs(length, dtype, seed)]
            found.append(np.asarray(expression(tn, *given, scalar)))
        tn.trim()
        for seed, scalar in reversed([*enumerate(scalars)]):
            given = [tn.asarray(x) for x in inputs(length, dtype, seed)]
            assert_equal_bits(found[seed], np.asarray(expression(tn, *given, scalar)))
            with tn.options(device="reference"):
                given = [tn.asarray(x) for x in inputs(length, dtype, seed)]
                right = np.asarray(expression(tn, *given, scalar))
            tolerance = 1e-2 if dtype == "float16" else 1e-4
            np.testing.assert_allclose(found[seed], right, rtol=tolerance, atol=tolerance)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex64", "complex128", "int32"])
@pytest.mark.parametrize("name", ["matrices", "added", "scaled", "element", "stack", "vector"])
def test_a_known_product_is_computed_without_python(
    name: str, dtype: str, calls: list[str]
) -> None:
    for scalar in (3, 4):
        given = [tn.asarray(x) for x in inputs(8, dtype, 1)]
        with tn.profile() as counted:
            _ = EXPRESSIONS[name](tn, *given, scalar).wait()
    assert calls == []
    assert (counted.calls, counted.copies) == (1, 0)


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_scales_are_numbers_and_arrays_of_one_element(dtype: str, calls: list[str]) -> None:
    a, b, c, *_ = inputs(8, dtype, 1)
    random = np.random.default_rng(0)
    for _ in range(3):
        alpha, beta = random.normal(size=2).astype(dtype)
        x1, x2, x3 = map(tn.asarray, (a, b, c))
        found = tn.asarray(beta) * x3 - tn.asarray(alpha) * (x1 @ x2)
        np.testing.assert_allclose(np.asarray(found), beta * c - alpha * (a @ b), rtol=1e-4)
    assert calls == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("number", [float("inf"), float("nan"), 0.0, -0.0, 2**70, True, 3 - 2j])
def test_a_scale_in_a_replay_is_what_it_is_in_a_python_call(
    dtype: str, number: Any, calls: list[str]
) -> None:
    if isinstance(number, complex) and dtype == "float64":
        number = 3e300

    def made() -> tn.Array:
        a, b, c, *_ = map(tn.asarray, inputs(6, dtype, 2))
        return number * (a @ b) - number * c

    found, wanted = made(), made()
    graph, _ = pipeline.optimise(Graph.of([_native.node_of(wanted)]))
    product = next(
        node for node in graph.nodes if node.op and node.op.lowering.epilogue is not None
    )
    inputs_ = [
        np.asarray(node.scalar) if node.is_scalar else dense.export(node.value())
        for node in product.inputs
    ]
    (value,) = cpu.compute_call(product, inputs_)
    assert len(calls) == 1
    assert_equal_bits(found, dense.export(value))
    assert len(calls) == 1


def test_number_of_threads_changes_no_bit_of_a_replay(calls: list[str]) -> None:
    random = np.random.default_rng(0)
    values = [random.normal(size=(300, 300)).astype("float32") for _ in range(3)]
    found = []
    for threads in (1, 2, 7):
        with tn.options(threads=threads):
            for _ in range(2):
                a, b, c = map(tn.asarray, values)
                found.append(np.asarray(c - 0.75 * (a @ b)))
    for each in found:
        assert_equal_bits(each, found[0])
    assert calls == []


def test_products_of_parts_follow_the_array_that_moves(calls: list[str]) -> None:
    random = np.random.default_rng(0)
    one, other, number = random.normal(size=(60, 60)), random.normal(size=(60, 60)), [0.5, -1.5]
    a, b, s = map(tn.asarray, (one, other, np.asarray(number * 30)))
    target, wanted = tn.asarray(one) + 0.0, one.copy()
    for i in range(0, 48, 6):
        found = s[i] * (a[i : i + 4, :5] @ b[i : i + 5, :6]) - a[i : i + 4, 3:9]
        right = number[0] * (one[i : i + 4, :5] @ other[i : i + 5, :6]) - one[i : i + 4, 3:9]
        np.testing.assert_allclose(found, right, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose((a[i] @ b)[2], one[i] @ other[:, 2], rtol=1e-12, atol=1e-12)
        target[i : i + 6, i : i + 6] += 2.0 * (a[i : i + 6, :7] @ b[:7, :6])
        wanted[i : i + 6, i : i + 6] += 2.0 * (one[i : i + 6, :7] @ other[:7, :6])
    np.testing.assert_allclose(target, wanted, rtol=1e-12, atol=1e-12)
    assert calls == []


def test_threads_replay_one_plan_at_once(calls: list[str]) -> None:
    values = np.random.default_rng(0).normal(size=(8, 3, 9, 9))
    wanted = [2.5 * (a @ b) - c for a, b, c in values]

    def work(number: int) -> bool:
        for _ in range(50):
            a, b, c = map(tn.asarray, values[number])
            if not np.allclose(np.asarray(2.5 * (a @ b) - c), wanted[number]):
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
    assert calls == []
