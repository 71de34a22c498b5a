"""Kernels of one thread for each element: one text for all targets, and the bits of the CPU."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import tenfold as tn
from sampled_kernels import DEVICE, common_words, kernels_of, sources_of
from tenfold.codegen.simt.module import render_threads
from tenfold.codegen.simt.thread_gemm import ThreadGemm
from tenfold.codegen.simt.verify_convergence import verify_convergence
from tenfold.codegen.simt.warp_dot import WarpDot
from tenfold.codegen.simt.words import HOST_WORDS, PTX_WORDS
from tenfold.jit.ptx import ptx_of, ptx_source
from tenfold.testing import assert_equal_bits

pytestmark = pytest.mark.cpu  # names its devices


def on_device(values: np.ndarray) -> tn.Array:
    return tn.asarray(values, device=DEVICE)


def complex_values(dtype: str) -> np.ndarray:
    return (np.arange(1, 7) + 1j * np.arange(6, 0, -1)).astype(dtype)


X = np.arange(1, 13, dtype=np.float32).reshape(3, 4)


def samples() -> list[tn.Array]:
    """Pending arrays whose kernels have every word."""
    x, index = on_device(X), on_device(np.array([3, 0, 2]))
    return [
        tn.exp(x) * 2 + x[:, ::-1],
        tn.sin(x) - x,
        x / on_device(complex_values("complex64")[:4]),
        tn.take(tn.sqrt(x), index, axis=1) + 1,
        (x > 3) & (x < 9),
        tn.exp(x - tn.max(x, axis=1, keepdims=True)),
        tn.sum(x, axis=0),
        tn.argmax(on_device(np.tile(X, (2, 20000))), axis=1),
        tn.var(on_device(complex_values("complex128"))),
        on_device(np.ones((20, 40))) + tn.matrix_transpose(on_device(np.ones((40, 20)))),
    ]


@pytest.mark.parametrize("number", range(len(samples())))
def test_text_of_the_host_and_of_ptx_differ_in_their_words_alone(number: int) -> None:
    kernels = kernels_of(samples()[number])
    assert kernels
    for kernel in kernels:
        assert kernel.block
        host, ptx = (
            common_words(render_threads(kernel, words)) for words in (HOST_WORDS, PTX_WORDS)
        )
        assert len(host) == len(kernel.functions)
        assert host == ptx
        assert "store" in host[0]
        assert kernel.waits == any(" shuffle " in each or "  barrier" in each for each in host)


@pytest.mark.parametrize("number", range(len(samples())))
def test_ptx_rounds_each_operation(number: int) -> None:
    for kernel in kernels_of(samples()[number]):
        text = ptx_of(kernel, "sm_90")
        for forbidden in (".approx", ".ftz", "min.NaN", "max.NaN"):
            assert forbidden not in text
        assert not re.search(r"\b(add|sub|mul|div|fma|sqrt)\.f(16|32|64)", text)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainder_of_large_numbers_has_the_bits_of_the_processor(dtype: type) -> None:
    dividends = np.array([1e10, -1e10, 5.5, 1e30, np.inf, 7, 3e38], dtype)
    divisors = np.array([3, 3, -2, 7, 2, np.nan, 1e-30], dtype)
    found, expected = (
        np.asarray(
            tn.remainder(*(tn.asarray(each, device=device) for each in (dividends, divisors)))
        )
        for device in (DEVICE, "cpu")
    )
    assert found[0] == 1e10 % 3
    assert_equal_bits(found, expected)


def test_integer_to_bfloat16_rounds_once() -> None:
    values = np.array([0x1FFFFFFF_FFFFFFFF, 0x0101_0000_0000_0001, 16842753, -16842753, 2**63 - 1])
    for device in (DEVICE, "cpu"):
        x = tn.astype(tn.asarray(values, device=device), tn.bfloat16)
        assert np.asarray(tn.astype(x, tn.float32)).tolist()[2:4] == [16908288.0, -16908288.0]
    found, expected = (
        np.asarray(tn.astype(tn.asarray(values, device=device), tn.bfloat16)).view(np.int16)
        for device in (DEVICE, "cpu")
    )
    assert found.tolist() == expected.tolist()


def test_nan_stays_nan_in_minima_and_maxima() -> None:
    x, y = np.array([np.nan, 1, -0.0, np.inf]), np.array([1, np.nan, 0.0, -np.inf])
    for operation in (tn.minimum, tn.maximum):
        found, expected = (
            np.asarray(operation(tn.asarray(x, device=device), tn.asarray(y, device=device)))
            for device in (DEVICE, "cpu")
        )
        assert np.isnan(found[:2]).all()
        assert_equal_bits(found, expected)


@pytest.mark.usefixtures("fused_multiply_add")
def test_powers_of_two_are_exact() -> None:
    x = on_device(np.arange(-140, 128, dtype=np.float32))
    assert np.asarray(tn.exp2(x)).tolist() == [2.0**i for i in range(-140, 128)]
    assert ".approx" not in ptx_of(*kernels_of(tn.exp2(x)), "sm_90")


def test_element_that_fails_is_named_and_nothing_is_read_for_it() -> None:
    x = on_device(np.arange(6.0))
    index = on_device(np.array([2, 9, 1 << 40]))
    with pytest.raises(IndexError, match="9"):
        tn.take(x + 1, index).wait()


LENGTHS = (1, 31, 33, 1024, 1025, 2100)
FOLDS = {
    "sum": tn.sum,
    "prod": tn.prod,
    "max": tn.max,
    "argmin": tn.argmin,
    "any": tn.any,
    "var": tn.var,
    "softmax": lambda x, axis: tn.exp(x - tn.max(x, axis=axis, keepdims=True)),
}


@pytest.mark.parametrize("dtype", ["float64", "float16", "int8", "complex64", "bool"])
@pytest.mark.parametrize("name", FOLDS)
def test_fold_has_the_bits_of_the_processor(name: str, dtype: str) -> None:
    rng = np.random.default_rng(len(name))
    for length in LENGTHS:
        if dtype == "complex64" and name in ("max", "argmin", "softmax"):
            continue
        values = (rng.standard_normal((3, length)) * 3).astype(dtype)
        for axis, array in ((1, values), (0, values.T), (1, np.asfortranarray(values))):
            if dtype == "bool" and name in ("var", "softmax"):
                array = array.astype(np.float32)
            found, expected = (
                np.asarray(FOLDS[name](tn.asarray(array, device=device), axis=axis))
                for device in (DEVICE, "cpu")
            )
            assert_equal_bits(found, expected)


def test_long_rows_are_folded_by_many_warps() -> None:
    values = np.random.default_rng(0).standard_normal((2, 1024 * 1024 + 3 * 1024 + 5))
    x = on_device(values)
    (kernel,) = kernels_of(tn.sum(x, axis=1))
    assert kernel.functions == ("kernel", "finish")
    for fold in (tn.sum, tn.argmax, tn.var):
        found, expected = fold(x, axis=1), fold(tn.asarray(values, device="cpu"), axis=1)
        assert_equal_bits(np.asarray(found), np.asarray(expected))


def test_shuffle_below_a_branch_on_the_lane_is_refused() -> None:
    (kernel,) = kernels_of(tn.sum(on_device(X), axis=1))
    text = render_threads(kernel, HOST_WORDS)
    assert verify_convergence(text) == 6
    odd = "  %odd = trunc i64 %unit to i1\n  br i1 %odd, label %left, label %right\nleft:\n"
    place = re.search(r"  %\S+ = call i32 %shuffle", text)
    assert place is not None
    begin, end = text[: place.start()], text[place.start() :]
    end = end.replace("\n", "\n  br label %right\nright:\n", 1)
    with pytest.raises(tn.errors.VerifyError, match=r"a shuffle depends on %odd.*within a warp"):
        verify_convergence(begin + odd + end)


@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "complex64", "complex128"])
def test_transpose_through_shared_memory_has_the_bits_of_the_processor(dtype: str) -> None:
    rng = np.random.default_rng(1)
    for shape in ((16, 16), (33, 70), (3, 40, 65), (2, 3, 32, 64)):
        values = (rng.standard_normal((*shape[:-2], shape[-1], shape[-2])) * 3).astype(dtype)
        other = (rng.standard_normal(shape) * 3).astype(dtype)
        results = []
        for device in (DEVICE, "cpu"):
            x, y = tn.asarray(values, device=device), tn.asarray(other, device=device)
            turned = tn.matrix_transpose(x)
            pending = turned & y if dtype == "bool" else turned * y + turned
            if device == DEVICE:
                (kernel,) = kernels_of(pending)
                assert kernel.traversal == "tiled"
                assert verify_convergence(render_threads(kernel, HOST_WORDS)) == 1
            results.append(np.asarray(pending))
        assert_equal_bits(*results)


def test_operands_that_shared_memory_has_no_room_for_are_read_directly() -> None:
    rng = np.random.default_rng(2)
    values = [rng.standard_normal((40, 64)) + 1j for _ in range(4)]
    results = []
    for device in (DEVICE, "cpu"):
        first, *others = [tn.matrix_transpose(tn.asarray(v, device=device)) for v in values]
        pending = sum(others, first) + tn.asarray(np.ones((64, 40)), device=device)
        if device == DEVICE:
            (kernel,) = kernels_of(pending)
            assert (len(kernel.transposed_operands), len(kernel.staged_operands)) == (4, 2)
        results.append(np.asarray(pending))
    assert_equal_bits(*results)


MATRICES = (
    ((3, 4), (4, 5)),
    ((70, 130), (130, 65)),
    ((4, 5, 6), (4, 6, 70)),
    ((2, 1, 65, 17), (3, 17, 64)),
    ((80, 2, 3), (80, 3, 4)),
    ((64, 0), (0, 5)),
)


@pytest.mark.usefixtures("fused_multiply_add")  # else BLAS computes some of them
@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64", "complex128", "int8", "bool"])
def test_product_has_the_bits_of_packet_code(dtype: str) -> None:
    rng = np.random.default_rng(3)
    for shapes in MATRICES:
        operands = []
        for shape in shapes:
            parts = [rng.standard_normal(shape) * 3 for _ in range(2)]
            values = parts[0] + 1j * parts[1] if "complex" in dtype else parts[0]
            operands.append(values.astype(dtype))
        results = []
        for device in (DEVICE, "cpu"):
            x, y = (tn.asarray(each, device=device) for each in operands)
            if device == DEVICE:
                (kernel,) = [k for k in sources_of(x @ y) if isinstance(k, ThreadGemm)]
                assert verify_convergence(kernel.text()) == 2
                assert common_words(kernel.text()) == common_words(ptx_source(kernel))
            turned = tn.matrix_transpose(x) + 0 if dtype != "bool" else tn.matrix_transpose(x)
            results.append([np.asarray(x @ y), np.asarray(tn.matrix_transpose(turned) @ y)])
        for found, expected in zip(*results, strict=True):
            assert_equal_bits(found, expected)


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64", "complex128", "int8", "bool"])
def test_product_of_vectors_has_the_bits_of_packet_code(dtype: str) -> None:
    rng = np.random.default_rng(5)
    for k in (1, 7, 8, 33, 64, 130, 1000):
        parts = [rng.standard_normal((3, k)) * 3 for _ in range(4)]
        complex_parts = "complex" in dtype
        a, b = (
            (p + 1j * q if complex_parts else p).astype(dtype) for p, q in (parts[:2], parts[2:])
        )
        results = []
        for device in (DEVICE, "cpu"):
            x, y = tn.asarray(a, device=device), tn.asarray(b, device=device)
            pending = [x[0] @ y[0], x @ y[1], x.T[:, 0] @ y[2][::-1], tn.vecdot(x, y)]
            if device == DEVICE:
                (kernel,) = [k for k in sources_of(pending[0]) if isinstance(k, WarpDot)]
                assert common_words(kernel.text()) == common_words(ptx_source(kernel))
                verify_convergence(kernel.text())
            results.append([np.asarray(each) for each in pending])
        for found, expected in zip(*results, strict=True):
            assert_equal_bits(found, expected)


@pytest.mark.usefixtures("fused_multiply_add")
def test_scaled_product_with_an_addend_has_the_bits_of_packet_code() -> None:
    rng = np.random.default_rng(4)
    for dtype, factor in (("float64", 1), ("complex64", 1 + 1j)):
        values = [(rng.standard_normal((70, 70)) * factor).astype(dtype) for _ in range(3)]
        results = []
        for device in (DEVICE, "cpu"):
            x, y, z = (tn.asarray(each, device=device) for each in values)
            pending = [2 * (tn.conj(x) @ y) - 3 * z, x @ tn.conj(y) + z.T]
            pending += [2 * (tn.conj(x) @ y[0]) - z[1], x[0] @ tn.conj(y[1])]
            results.append([np.asarray(each) for each in pending])
        for found, expected in zip(*results, strict=True):
            assert_equal_bits(found, expected)


HALVES: dict[str, Callable[[tn.Array, tn.Array], tn.Array]] = {
    "symmetric": lambda x, s: x @ tn.matrix_transpose(x),
    "first lower": lambda x, s: tn.tril(s) @ x,
    "first upper": lambda x, s: tn.triu(s) @ x,
    "second lower": lambda x, s: tn.matrix_transpose(x) @ tn.tril(s),
    "second upper": lambda x, s: tn.matrix_transpose(x) @ tn.triu(s),
    "": lambda x, s: tn.tensordot(
        tn.reshape(s, (10, 13, 130)), tn.reshape(x, (13, 10, 97)), axes=((0, 1), (1, 0))
    ),
}
"""Products of a half of the terms, and one over several axes."""


@pytest.mark.usefixtures("fused_multiply_add")  # else BLAS computes some of them
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("half", HALVES)
def test_half_and_contracted_axes_have_the_bits_of_packet_code(half: str, dtype: str) -> None:
    rng, factor = np.random.default_rng(6), 1 + 1j if "complex" in dtype else 1
    shapes = (130, 97), (130, 130)
    x, s = ((rng.standard_normal(shape) * factor).astype(dtype) for shape in shapes)
    s[3, 90] = s[90, 3] = np.nan  # outside one triangle: no part of the result
    results = []
    for device in (DEVICE, "cpu"):
        pending = HALVES[half](tn.asarray(x, device=device), tn.asarray(s, device=device))
        if device == DEVICE:
            (kernel,) = [k for k in sources_of(pending) if isinstance(k, ThreadGemm)]
            assert (str(kernel.triangle), kernel.sums) == (half, not half)
            verify_convergence(kernel.text())
        results.append(np.asarray(pending))
    assert_equal_bits(*results)


SECTOR = 32
"""Bytes that the memory of a device moves at once."""


def sectors(text: str, stride: int) -> dict[str, int]:
    """The loads and stores of a warp by "ld" and "st": the sectors of all their requests, for lanes
    `stride` bytes apart; each request has an offset in the PTX.
    """
    counts = {"ld": 0, "st": 0}
    request = r"\b(ld|st)\.global\.b(\d+) .*?\[%\w+(?:\+(\d+))?\]"
    for name, bits, offset in re.findall(request, text):
        begins = [lane * stride + int(offset or 0) for lane in range(32)]
        ends = [begin + int(bits) // 8 - 1 for begin in begins]
        counts[name] += len({at // SECTOR for at in (*begins, *ends)})
    return counts


@pytest.mark.parametrize(
    ("dtype", "count"),
    [("float16", 2), ("float32", 4), ("float64", 8), ("complex64", 16), ("complex128", 32)],
)
def test_sectors_of_a_warp_are_those_of_the_decision(dtype: str, count: int) -> None:
    """docs/decisions/0060: a map of one operand."""
    x = on_device(np.ones(1000).astype(dtype))
    (kernel,) = kernels_of(x * x)
    text = ptx_of(kernel, "sm_90")
    assert sectors(text, x.dtype.itemsize) == {"ld": count, "st": count}


def test_shared_tile_reads_an_eighth_of_the_sectors_of_a_strided_read() -> None:
    x, y = on_device(np.ones((64, 64), np.float32)), on_device(np.ones((64, 64), np.float32))
    (kernel,) = kernels_of(tn.matrix_transpose(x) + y)
    text = ptx_of(kernel, "sm_90")
    assert sectors(text, 4) == {"ld": 8, "st": 4}  # both operands along their rows
    assert sectors(text, 4 * 64)["ld"] == 2 * 32  # what a read along columns would take
