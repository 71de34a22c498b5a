"""Products of matrices: one launch for a batch, without the GIL, with the bits of each alone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn

COUNT = 100
"""Members of a batch: more than a panel of a shared factor has, and no power of two."""


@pytest.fixture
def engine() -> Iterator[tn.Engine]:
    with tn.Engine(threads=2) as engine:
        yield engine


def matrices(count: int, rows: int, columns: int, dtype: str = "float64") -> list[np.ndarray]:
    random = np.random.default_rng([count, rows, columns])
    return [(4 * random.standard_normal((rows, columns))).astype(dtype) for _ in range(count)]


def factors(
    engine: tn.Engine, form: str, sizes: tuple[int, int, int], dtype: str = "float64"
) -> list[tuple[Any, Any]]:
    """Handles of what is multiplied: pairs, or all with the same left or right factor."""
    m, k, n = sizes
    lefts = [engine.put(x) for x in matrices(1 if form == "left" else COUNT, m, k, dtype)]
    rights = [engine.put(x) for x in matrices(1 if form == "right" else COUNT, k, n, dtype)]
    return [(lefts[i % len(lefts)], rights[i % len(rights)]) for i in range(COUNT)]


def pushed(engine: tn.Engine, pairs: list[tuple[Any, Any]]) -> list[tn.Handle]:
    return [engine.push(tn.operators.matmul, left, right) for left, right in pairs]


def held(engine: tn.Engine, pairs: list[tuple[Any, Any]]) -> list[tn.Handle]:
    with engine.hold():
        handles = pushed(engine, pairs)
    engine.flush()
    return handles


forms = pytest.mark.parametrize("form", ["pairs", "left", "right"])


@forms
def test_batch_runs_while_another_thread_keeps_the_gil(engine: tn.Engine, form: str) -> None:
    pairs = factors(engine, form, (5, 6, 7))
    held(engine, pairs)  # what is seen for the first time needs Python
    before, end = sys.getswitchinterval(), time.monotonic() + 60
    sys.setswitchinterval(1000)  # who waits for the GIL waits longer than this test
    try:
        with engine.hold():
            handles = pushed(engine, pairs)
        while not all(handle.done() for handle in handles):
            assert time.monotonic() < end, "a worker waits for the GIL"
    finally:
        sys.setswitchinterval(before)


@pytest.mark.exhaustive
@forms
@pytest.mark.parametrize(
    ("sizes", "dtype"),
    [
        ((4, 4, 4), "float64"),
        ((16, 16, 16), "float32"),
        ((16, 16, 1), "float64"),
        ((16, 40, 1), "float32"),
        ((1, 16, 16), "float64"),
        ((1, 40, 1), "float64"),
        ((40, 1, 40), "float64"),
        ((3, 9, 5), "complex128"),
        ((3, 9, 5), "float16"),
        ((7, 5, 3), "int32"),
        ((3, 0, 3), "float64"),
        ((0, 3, 3), "float64"),
    ],
)
@pytest.mark.usefixtures("fused_multiply_add")
def test_batch_has_the_bits_of_each_alone(
    engine: tn.Engine, form: str, sizes: tuple[int, int, int], dtype: str
) -> None:
    pairs = factors(engine, form, sizes, dtype)
    found = [np.asarray(handle.get()) for handle in held(engine, pairs)]
    for (left, right), values in zip(pairs, found, strict=True):
        alone = np.asarray(left.get() @ right.get())
        assert values.dtype == alone.dtype
        assert values.tobytes() == alone.tobytes()
        expected = np.asarray(left.get()) @ np.asarray(right.get())
        np.testing.assert_allclose(values, expected, 1e-2 if dtype == "float16" else 1e-4, 1e-2)


@forms
def test_batch_is_counted_as_one_product_of_all(engine: tn.Engine, form: str) -> None:
    pairs = factors(engine, form, (6, 5, 4))
    for _ in range(2):
        with tn.profile() as p:
            held(engine, pairs)
        assert (p.launches, p.calls, p.kernels, p.batches) == (1, 1, 0, 1)
        assert p.gathers == (2 if form == "pairs" else 1)
        assert p.multiply_adds == COUNT * 6 * 5 * 4


def test_parts_of_a_large_batch_are_one_launch(engine: tn.Engine) -> None:
    pairs = factors(engine, "pairs", (4, 4, 4)) * 5
    held(engine, pairs)
    with tn.profile() as p:
        held(engine, pairs)
    assert (p.launches, p.batches) == (1, 1)


@forms
def test_transposed_factors_among_others(engine: tn.Engine, form: str) -> None:
    pairs = factors(engine, form, (6, 6, 6))
    turned = [(engine.put(left.get().T), engine.put(right.get().T)) for left, right in pairs[:9]]
    mixed = pairs[:50] + turned + pairs[50:]
    for (left, right), handle in zip(mixed, held(engine, mixed), strict=True):
        expected = np.asarray(left.get()) @ np.asarray(right.get())
        np.testing.assert_allclose(np.asarray(handle.get()), expected, 1e-12, 1e-11)


@pytest.mark.cpu
def test_products_by_blas_need_no_gil() -> None:
    """With registers of 16 bytes products from 32^3 multiply-adds on are calls of BLAS."""
    program = """
import sys, time
import numpy as np
import tenfold as tn

values = [np.full((64, 64), float(i)) for i in range(8)]
with tn.Engine(threads=2) as engine:
    factors = [engine.put(x) for x in values]
    def pushed():
        with engine.hold():
            return [engine.push(tn.operators.matmul, x, x) for x in factors]
    first = [handle.get() for handle in pushed()]
    with tn.profile() as p:
        sys.setswitchinterval(1000)
        handles, end = pushed(), time.monotonic() + 60
        while not all(handle.done() for handle in handles):
            assert time.monotonic() < end, "a worker waits for the GIL"
        sys.setswitchinterval(0.005)
    assert (p.calls, p.launches, p.multiply_adds) == (8, 8, 8 * 64**3), p
    for x, before, handle in zip(values, first, handles):
        np.testing.assert_array_equal(np.asarray(handle.get()), np.asarray(before))
        np.testing.assert_array_equal(np.asarray(before), x @ x)
    step = (tn.asarray(values[0]) @ tn.asarray(values[1])).explain("scheduled")
    assert "BLAS dgemm" in step, step
"""
    environment = {**os.environ, "TENFOLD_CPU": "x86-64-v2"}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


def test_products_that_no_plan_computes_without_python_are_right(engine: tn.Engine) -> None:
    pairs = factors(engine, "left", (40, 40, 40))
    with tn.options(cpu="x86-64-v2", check_nans=True):
        handles = held(engine, pairs)
    for (left, right), handle in zip(pairs, handles, strict=True):
        expected = np.asarray(left.get()) @ np.asarray(right.get())
        np.testing.assert_allclose(np.asarray(handle.get()), expected, 1e-10, 1e-10)
