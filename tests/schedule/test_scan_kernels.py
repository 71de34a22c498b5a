"""Scans as kernels: every form has the bits of the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.dtypes import DTYPES, kind_of
from tenfold.schedule.schedule import schedule_graph

SCANS = [tn.cumulative_sum, tn.cumulative_prod]
OPTIONS: list[dict[str, Any]] = [{}, {"include_initial": True}, {"exclusive": True}]
SHAPES = [
    ((2,), 0),
    ((1023,), 0),
    ((1024,), 0),
    ((1025,), 0),
    ((9 * 1024 + 7,), 0),
    ((3, 2050), 1),
    ((19, 1030), 1),
    ((19, 17), 1),
    ((1030, 33), 0),
    ((2, 1025, 5), 1),
    ((40, 3), 1),
]
PARTS = 1 << 18
"""Elements from which many threads scan parts of a row."""
SCANNED = ["bool", "int8", "uint32", "int64", "float16", "bfloat16", "float32", "float64"]
SCANNED += ["complex64", "complex128"]


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return numbers of which neither sums nor products overflow soon."""
    found = np.random.default_rng(len(shape)).standard_normal(shape)
    kind = kind_of(DTYPES[dtype])
    if kind == "c":
        found = np.exp(1j * found) * (1 + found / 100)
    elif kind == "f":
        found = np.where(found < 0, -1, 1) * (1 + found / 50)
    else:
        found = np.abs(found) * 3
    return found.astype(DTYPES[dtype])


def on(device: str, scan: Any, x: np.ndarray, *, threads: int = 1, **options: Any) -> np.ndarray:
    """Scan on a device."""
    with tn.options(device=device, threads=threads), np.errstate(all="ignore"):
        return np.asarray(scan(tn.asarray(x), **options))


def check(scan: Any, x: np.ndarray, **options: Any) -> None:
    """Compare the bits of both devices."""
    expected = on("reference", scan, x, **options)
    found = on("cpu", scan, x, **options)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert found.tobytes() == expected.tobytes()


def forms(array: tn.Array) -> list[str]:
    """Return the kinds of the steps that compute an array, of kernels how they go."""
    steps = schedule_graph(Graph.of([_native.node_of(array)])).steps
    return [step.launch.kernel.traversal if step.launch else step.kind for step in steps]


@pytest.mark.exhaustive
@pytest.mark.parametrize("scan", SCANS)
@pytest.mark.parametrize("dtype", SCANNED)
@pytest.mark.parametrize(("shape", "axis"), [SHAPES[3], SHAPES[6], SHAPES[8]])
def test_scan_of_every_dtype_has_the_bits_of_the_reference(scan, dtype, shape, axis):
    check(scan, numbers(shape, dtype), axis=axis)


@pytest.mark.exhaustive
@pytest.mark.parametrize("scan", SCANS)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("options", OPTIONS)
def test_scan_across_the_ends_of_blocks_has_the_bits_of_the_reference(scan, shape, axis, options):
    check(scan, numbers(shape, "float32"), axis=axis, **options)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(("shape", "axis"), [SHAPES[4], SHAPES[7], SHAPES[8]])
def test_scan_of_halves_puts_the_identity_first(shape, axis, options):
    check(tn.cumulative_sum, numbers(shape, "float16"), axis=axis, **options)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float64", "complex64", "int8"])
def test_layout_of_the_operand_changes_no_bit(dtype, axis):
    x = numbers((1040, 38), dtype)
    for seen in (np.asfortranarray(x), x[::-1], x[:, ::-1], x[::2, 1::3], x.T.copy().T, x[:, :1]):
        with tn.options(device="reference"):
            expected = np.asarray(tn.cumulative_sum(tn.asarray(seen), axis=axis))
        for device_view in (seen, np.ascontiguousarray(seen)):
            found = on("cpu", tn.cumulative_sum, device_view, axis=axis)
            assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("axis", [0, 1])
def test_views_are_scanned_where_they_lie(axis):
    x = numbers((60, 70), "float32")

    def views(y: tn.Array) -> list[tn.Array]:
        row = tn.broadcast_to(y[3], (50, 70))
        return [y.T, y[::-1], y[:, ::-2], row, tn.broadcast_to(y[:, :1], (60, 30))]

    for number in range(len(views(tn.asarray(x)))):
        results = []
        for device in ("cpu", "reference"):
            with tn.options(device=device):
                results.append(
                    np.asarray(tn.cumulative_sum(views(tn.asarray(x))[number], axis=axis))
                )
        assert results[0].tobytes() == results[1].tobytes()


@pytest.mark.parametrize(("shape", "axis"), [((200, 3000), 1), ((3000, 200), 0), ((300_000,), 0)])
def test_number_of_threads_changes_no_bit(shape, axis):
    x = numbers(shape, "float64")
    one, two = (on("cpu", tn.cumulative_sum, x, axis=axis, threads=n) for n in (1, 2))
    assert one.tobytes() == two.tobytes()


@pytest.mark.exhaustive
@pytest.mark.parametrize("scan", SCANS)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("shape", [(0,), (1,), (0, 3), (3, 0), (1, 5), (5, 1), (2, 0)])
def test_short_and_empty_axes(scan, options, shape):
    for axis in range(len(shape)):
        check(scan, numbers(shape, "float32"), axis=axis, **options)


def test_zeros_keep_their_signs_and_infinities_their_numbers():
    x = np.array([-0.0, -0.0, 0.0, -0.0, np.inf, 1.0])
    check(tn.cumulative_sum, x)
    check(tn.cumulative_prod, x[3:])
    many = np.full(1100, -0.0)
    check(tn.cumulative_sum, many)
    check(tn.cumulative_prod, np.array([complex(np.inf, 0), complex(-0.0, 1), 1j]))


def test_nan_stays_from_where_it_is():
    x = np.ones(3000)
    x[1500] = np.nan
    found = on("cpu", tn.cumulative_sum, x)
    assert np.array_equal(np.isnan(found), np.arange(3000) >= 1500)


@pytest.mark.parametrize(
    ("shape", "axis", "form"),
    [
        ((20_000,), 0, "scan blocks"),
        ((300, 50), 1, "scan"),
        ((50, 300), 0, "scan columns"),
        ((3, 50, 300), 1, "scan columns"),
        ((1000, 8), 1, "scan columns"),
        ((3, 5000), 1, "scan blocks"),
        ((300_000,), 0, "scan parts"),
        ((2, 300_000), 1, "scan parts"),
    ],
)
def test_scan_takes_packets_from_what_is_independent(shape, axis, form):
    with tn.options(device="cpu"):
        assert forms(tn.cumulative_sum(tn.ones(shape) + tn.ones(shape), axis=axis))[-1] == form
        assert forms(tn.cumulative_sum(tn.asarray(np.ones(shape)), axis=axis)) == [form]


@pytest.mark.parametrize(("shape", "axis"), [((3000,), 0), ((40, 50), 1), ((40, 50), 0)])
def test_operand_of_a_scan_is_computed_in_its_loops(shape, axis):
    x = numbers(shape, "float32")

    def formula(y: tn.Array) -> tn.Array:
        return tn.cumulative_sum(tn.sqrt(y * y) - 1, axis=axis)

    with tn.options(device="cpu"):
        found = formula(tn.asarray(x))
        assert len(forms(found)) == 1
        result = np.asarray(found)
    with tn.options(device="reference"):
        assert np.asarray(formula(tn.asarray(x))).tobytes() == result.tobytes()


def test_scan_of_a_scan_and_its_fold_are_steps_of_their_own():
    x = numbers((70, 1100), "float64")

    def formula(y: tn.Array) -> tn.Array:
        once = tn.cumulative_sum(y, axis=1)
        return tn.cumulative_sum(once * 2, axis=0) + tn.sum(once, axis=1, keepdims=True)

    results = []
    for device in ("cpu", "reference"):
        with tn.options(device=device):
            results.append(np.asarray(formula(tn.asarray(x))))
    assert results[0].tobytes() == results[1].tobytes()


def test_position_of_an_index_is_scanned():
    with tn.options(device="cpu"):
        found = tn.cumulative_sum(tn.arange(3000) * 2)
        assert found.tolist() == [i * (i + 1) for i in range(3000)]


@pytest.mark.exhaustive
@pytest.mark.parametrize("scan", SCANS)
@pytest.mark.parametrize("dtype", ["int8", "uint32", "float16", "float32", "float64", "complex64"])
def test_parts_of_a_row_are_scanned_in_the_same_order(scan, dtype):
    x = numbers((PARTS + 1025,), dtype)
    expected = on("reference", scan, x)
    for threads in (1, 2, 7):
        assert on("cpu", scan, x, threads=threads).tobytes() == expected.tobytes()


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("length", [PARTS, PARTS + 1, PARTS + 32 * 1024 - 1])
def test_ends_of_parts_are_where_they_were(options, length):
    x = numbers((3, length), "float32")
    expected = on("reference", tn.cumulative_sum, x, axis=1, **options)
    found = on("cpu", tn.cumulative_sum, x, axis=1, threads=2, **options)
    assert found.tobytes() == expected.tobytes()


def test_parts_are_scanned_again_when_the_expression_comes_again():
    x = numbers((PARTS + 5,), "float64")
    with tn.options(device="cpu", threads=2):
        y = tn.asarray(x)
        first, *others = (np.asarray(tn.cumulative_sum(y)) for _ in range(3))
    assert first.tobytes() == on("reference", tn.cumulative_sum, x).tobytes()
    assert all(each.tobytes() == first.tobytes() for each in others)


@pytest.mark.parametrize("length", [5000, PARTS + 77])
def test_rows_that_are_computed_or_lie_apart_are_scanned_in_blocks(length):
    x = numbers((2, 2 * length), "float32")

    def views(y: tn.Array) -> list[tn.Array]:
        lone = tn.broadcast_to(y[:1, :1], (1, length))
        return [y[:, ::2], y[1, ::-1], tn.sin(y[0]) * 2, y[:, 3:], lone]

    results: list[list[bytes]] = []
    for device in ("cpu", "reference"):
        with tn.options(device=device, threads=2):
            y = tn.asarray(x)
            scans = [tn.cumulative_sum(tn.sqrt(each * each), axis=-1) for each in views(y)[:2]]
            scans += [tn.cumulative_sum(each, axis=-1) for each in (*views(y)[3:], y[0, 1:])]
            results.append([np.asarray(each).tobytes() for each in scans])
            if device == "cpu":
                formula = np.asarray(tn.cumulative_sum(views(y)[2]))
                values = np.asarray(views(y)[2])
    assert results[0] == results[1]
    assert formula.tobytes() == on("reference", tn.cumulative_sum, values).tobytes()


def test_memory_behind_the_end_of_a_row_is_not_touched():
    whole = np.full(9 * 1024, np.nan)
    whole[:5000] = 1
    with tn.options(device="cpu"):
        found = np.asarray(tn.cumulative_sum(tn.asarray(whole)[:5000]))
    assert found.tolist() == list(range(1, 5001))


def test_parts_of_what_is_past_the_cache_need_more_than_two_threads():
    with tn.options(device="cpu"):
        for length, fewest in ((PARTS, 2), (1 << 23, 3)):
            found = tn.cumulative_sum(tn.asarray(np.ones(length, np.float32)))
            (step,) = schedule_graph(Graph.of([_native.node_of(found)])).steps
            assert step.launch is not None
            used = [threads for threads in range(1, 9) if step.launch.scans_in_parts(threads)]
            assert used == list(range(fewest, 9))


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_scans_down_few_columns_store_each_where_it_belongs(columns: int) -> None:
    x = np.arange(5 * columns).reshape(5, columns)
    result = tn.cumulative_sum(tn.asarray(x), axis=0, include_initial=True)
    assert np.array_equal(np.asarray(result)[1:], np.cumsum(x, axis=0))
    assert not np.any(np.asarray(result)[0])
    part = tn.asarray(x)[::2, ::2]
    assert np.array_equal(np.asarray(tn.cumulative_sum(part, axis=1)), x[::2, ::2].cumsum(1))
