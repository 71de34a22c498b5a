"""Rows that are one packet: their lengths, their bits, and reads of whole rows at computed
indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.core.loop_ir import Kernel
from tenfold.schedule.schedule import schedule_graph

FOLDS = {
    "sum": lambda x: tn.sum(x, axis=1),
    "std": lambda x: tn.std(x, axis=1),
    "softmax": lambda x: tn.softmax(x, axis=1),
    "two folds": lambda x: tn.sum(x, axis=1) / (1 + tn.max(tn.abs(x), axis=1)),
}


def kernels(x: tn.Array) -> list[Kernel]:
    steps = schedule_graph(Graph.of([_native.node_of(x)])).steps
    assert all(step.launch is not None for step in steps)
    return [step.launch.kernel for step in steps if step.launch is not None]


@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_rows_of_every_length_have_the_bits_of_other_devices(fold: str, dtype: str) -> None:
    for length in (3, 8, 9, 31, 32, 33):
        x = (np.arange(41 * length).reshape(41, length) % 7 - 3).astype(dtype)
        x[0] *= 0
        with tn.options(device="cpu", tier=1):
            found = np.asarray(FOLDS[fold](tn.asarray(x)))
        with tn.options(device="cpu", tier=0):
            wanted = np.asarray(FOLDS[fold](tn.asarray(x)))
        assert found.tobytes() == wanted.tobytes(), length


@pytest.mark.parametrize(
    ("length", "lanes", "masked"),
    [(3, 4, True), (8, 8, False), (9, 16, True), (16, 16, False), (17, 32, True), (32, 32, False)],
)
def test_row_is_one_packet_that_is_masked_unless_full(
    length: int, lanes: int, masked: bool
) -> None:
    (kernel,) = kernels(tn.sum(tn.asarray(np.ones((10, length))) * 2, axis=1))
    assert (str(kernel.form), kernel.lanes, kernel.masked) == ("short row", lanes, masked)


@pytest.mark.parametrize("fold", [tn.argmax, lambda x: tn.var(x + 1j)])
def test_result_of_a_fold_of_several_values_is_in_the_kernel_of_the_fold(fold: Any) -> None:
    x = np.random.default_rng(0).normal(size=(80, 9))
    many = tn.function(lambda x: tn.stack([fold(x[i]) * tn.arange(9.0) for i in range(80)]))
    with tn.options(device="reference"):
        wanted = np.asarray(tn.stack([fold(row) * tn.arange(9.0) for row in tn.asarray(x)]))
    np.testing.assert_allclose(np.asarray(many(tn.asarray(x))), wanted, rtol=1e-13)


def test_longer_rows_are_folded_block_by_block() -> None:
    (kernel,) = kernels(tn.sum(tn.asarray(np.ones((10, 33))), axis=1))
    assert str(kernel.form) == "row"


@pytest.mark.parametrize(("width", "form"), [(16, "short row"), (64, "row")])
def test_products_of_gathered_rows_are_folded_along_the_rows(width: int, form: str) -> None:
    rows, picks = np.ones((500, width)), np.arange(500)[::-1].copy()
    x, y = (tn.take(tn.asarray(rows), tn.asarray(picks), axis=0) for _ in range(2))
    (kernel,) = kernels(tn.sum(x * y, axis=1))
    assert (str(kernel.form), kernel.traversal) == (form, "gather")


@pytest.mark.parametrize(("width", "lanes"), [(3, 16), (8, 8), (12, 16)])
def test_gathered_rows_that_are_not_tiny_are_read_as_packets(width: int, lanes: int) -> None:
    rows, picks = np.random.default_rng(0).random((5000, width)), np.arange(5000)[::-1].copy()
    taken = tn.take(tn.asarray(rows), tn.asarray(picks), axis=0) * 2
    (kernel,) = kernels(taken)
    assert kernel.lanes == lanes
    assert np.array_equal(np.asarray(taken), rows[::-1] * 2)
