"""Products: packet code and library calls, against NumPy, for every dtype, layout and size."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from product_launch import multiply, step_of, widths
from tenfold import _native
from tenfold.codegen.gemm.dot import DotProduct
from tenfold.codegen.gemm.small import SmallGemm
from tenfold.dtypes import BFLOAT16, BOOL, DTYPES, FLOAT16, HALF_DTYPES, kind_of
from tenfold.runtime.blas import routines

LENGTHS = (1, 7, 64, 65, 129)
WAYS = ("packets", "library")
SOME_DTYPES = ("float64", "complex64", "int8", "float16", "bool")


@pytest.fixture(params=[64, 32])
def width(request: pytest.FixtureRequest) -> int:
    if request.param not in widths():
        pytest.skip("this processor has no registers of 64 bytes")
    return int(request.param)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, target_facts: Callable[..., None]) -> str:
    """Whether matrices of floating dtypes are multiplied by packet code or by BLAS."""
    target_facts("libraries", blas_multiply_adds=None if request.param == "packets" else 0)
    return str(request.param)


@pytest.fixture
def seven_threads() -> Iterator[None]:
    before = _native.threads()
    _native.set_threads(7)
    yield
    _native.set_threads(before)


def values(dtype: np.dtype, *shape: int, seed: int = 0) -> np.ndarray:
    """Return small whole numbers, whose products and sums are exact, or a mask."""
    draw = np.random.default_rng([seed, *shape])
    if dtype == BOOL:
        return draw.random(shape) < 0.3
    if kind_of(dtype) in "iu":
        info = np.iinfo(dtype)
        return draw.integers(info.min, info.max, shape, dtype, endpoint=True)
    whole = draw.integers(-3, 4, shape).astype(np.float32)
    if kind_of(dtype) == "c":
        return (whole + 1j * draw.integers(-3, 4, shape)).astype(dtype)
    return whole.astype(dtype)


def expected(x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
    """Return NumPy's product; of halves that of their float32, rounded once."""
    if x1.dtype in HALF_DTYPES:
        return np.matmul(x1.astype(np.float32), x2.astype(np.float32)).astype(x1.dtype)
    return np.asarray(np.matmul(x1, x2))


def check(x1: np.ndarray, x2: np.ndarray, width: int = 32) -> None:
    """Compare a product of values whose sums are exact, bit for bit."""
    right = expected(x1, x2)
    np.testing.assert_array_equal(multiply("matmul", (), x1, x2, right.shape, width=width), right)


def test_errors_of_all_sizes_are_below_the_bound(way: str) -> None:
    """No product of (m, k) @ (k, n) is off by more than 1e-12 k."""
    draw = np.random.default_rng(0)
    for m, n, k in itertools.product(LENGTHS, repeat=3):
        x1, x2 = draw.normal(size=(m, k)), draw.normal(size=(k, n))
        found = multiply("matmul", (), x1, x2, (m, n), width=32)
        assert np.max(np.abs(found - x1 @ x2)) < 1e-12 * k, (m, n, k)


def test_errors_in_the_widest_registers_are_below_the_bound() -> None:
    draw = np.random.default_rng(0)
    for m, n, k in itertools.product(LENGTHS, repeat=3):
        x1, x2 = draw.normal(size=(m, k)), draw.normal(size=(k, n))
        found = multiply("matmul", (), x1, x2, (m, n), width=widths()[-1])
        assert np.max(np.abs(found - x1 @ x2)) < 1e-12 * k, (m, n, k)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_every_dtype_has_the_exact_sums(dtype: np.dtype, width: int) -> None:
    for m, k, n in ((1, 1, 1), (3, 5, 2), (13, 300, 35), (30, 9, 70)):
        check(values(dtype, m, k), values(dtype, k, n), width)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_every_dtype_has_the_exact_sums_in_small_stacks(dtype: np.dtype, width: int) -> None:
    for m, k, n in ((1, 1, 1), (3, 4, 5), (8, 8, 8)):
        x1, x2 = values(dtype, 100, m, k), values(dtype, 100, k, n)
        assert "small" in str(step_of("matmul", (), x1, x2, width))
        check(x1, x2, width)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_every_dtype_has_the_exact_sums_in_narrow_registers(dtype: np.dtype) -> None:
    check(values(dtype, 13, 9), values(dtype, 9, 35), 16)
    check(values(dtype, 70, 3, 4), values(dtype, 70, 4, 5), 16)
    check(values(dtype, 20, 37), values(dtype, 37), 16)


def layouts(dtype: np.dtype, *shape: int) -> Iterator[np.ndarray]:
    """Return matrices of one shape that lie in every way."""
    rows, columns = shape[-2:]
    plain = values(dtype, *shape)
    yield plain
    yield np.swapaxes(np.ascontiguousarray(np.swapaxes(plain, -1, -2)), -1, -2)
    yield values(dtype, *shape[:-2], 2 * rows, 3 * columns)[..., ::2, ::3]
    yield values(dtype, *shape[:-2], rows, 2 * columns)[..., :columns]
    yield plain[..., ::-1, :]
    yield plain[..., ::-1]
    yield np.broadcast_to(values(dtype, *shape[:-2], 1, columns), shape)
    yield np.broadcast_to(values(dtype, *shape[:-2], rows, 1), shape)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", SOME_DTYPES)
def test_every_layout_gives_the_same_sums(dtype: str, way: str) -> None:
    first, second = (list(layouts(DTYPES[dtype], *shape)) for shape in ((13, 9), (9, 40)))
    for x1, x2 in itertools.product(first, second):
        check(x1, x2)


@pytest.mark.parametrize("dtype", ["float32", "complex128", "uint16"])
def test_every_layout_of_small_stacks_gives_the_same_sums(dtype: str, width: int) -> None:
    first, second = (list(layouts(DTYPES[dtype], 64, *shape)) for shape in ((3, 4), (4, 5)))
    for x1, x2 in zip(first, reversed(second), strict=True):
        check(x1, x2, width)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", SOME_DTYPES)
def test_vectors_of_every_layout_have_the_exact_sums(dtype: str, way: str) -> None:
    for x1 in layouts(DTYPES[dtype], 70, 33):
        for vector in (values(DTYPES[dtype], 33), values(DTYPES[dtype], 66)[::-2]):
            check(x1, vector)
            check(vector, x1.T)
            check(x1[0], vector)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ["float64", "complex64", "int32", "bfloat16"])
def test_stacks_broadcast(dtype: str, way: str) -> None:
    shapes = (
        ((4, 1, 7, 3), (5, 3, 20)),
        ((5, 7, 3), (3, 20)),
        ((7, 3), (2, 5, 3, 20)),
        ((2, 1, 3), (3, 20)),
        ((3,), (2, 5, 3, 20)),
        ((2, 5, 7, 3), (3,)),
        ((6, 20, 7, 3), (20, 3, 4)),
    )
    for first, second in shapes:
        check(values(DTYPES[dtype], *first), values(DTYPES[dtype], *second))


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ["float32", "complex128", "int16", "float16", "bool"])
def test_empty_sums_are_zero_and_empty_results_empty(dtype: str, way: str) -> None:
    shapes = (
        ((3, 0), (0, 4)),
        ((0, 3), (3, 4)),
        ((3, 4), (4, 0)),
        ((0, 3, 4), (4, 5)),
        ((100, 2, 0), (100, 0, 2)),
        ((0,), (0,)),
        ((0,), (0, 3)),
        ((5, 0), (0,)),
    )
    for first, second in shapes:
        check(values(DTYPES[dtype], *first), values(DTYPES[dtype], *second))


def by_parts(x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
    """Return a complex product by its formula: BLAS multiplies by 1+0j once more, which makes NaN
    of every infinity."""
    product = np.empty((len(x1), x2.shape[1]), x1.dtype)
    product.real = x1.real @ x2.real - x1.imag @ x2.imag
    product.imag = x1.real @ x2.imag + x1.imag @ x2.real
    return product


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_special_values_spread_as_in_numpy(dtype: str, way: str) -> None:
    draw = np.random.default_rng(0)
    for m, k, n in ((5, 3, 4), (70, 20, 40), (70, 20, 1)):
        x1, x2 = (values(DTYPES[dtype], *shape) for shape in ((m, k), (k, n)))
        for x in (x1, x2):
            for special in (np.nan, np.inf, -np.inf, -0.0):
                x.flat[draw.integers(x.size, size=1 + x.size // 40)] = special
        with np.errstate(all="ignore"):
            right = x1 @ x2 if way == "library" or dtype != "complex64" else by_parts(x1, x2)
        found = multiply("matmul", (), x1, x2, (m, n))
        for part in (np.real, np.imag):
            np.testing.assert_array_equal(part(found), part(right))


@pytest.mark.parametrize("dtype", HALF_DTYPES, ids=str)
def test_halves_are_accumulated_in_float32(dtype: np.dtype, width: int) -> None:
    x = np.ones((20, 5000), dtype)
    x[:, 0] = 2048
    exact = np.float32(2048 + 4999)
    for second in (np.ones((5000, 20), dtype), np.ones(5000, dtype)):
        found = multiply("matmul", (), x, second, x.shape[:1] + second.shape[1:], width=width)
        assert (found == exact.astype(dtype)).all()


def test_subnormal_halves_are_not_flushed(width: int) -> None:
    for dtype, smallest in ((FLOAT16, 2.0**-24), (BFLOAT16, 2.0**-133)):
        x = np.full((3, 1), smallest, np.float32).astype(dtype)
        check(x, np.ones((1, 40), dtype), width)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_bits_depend_on_neither_threads_nor_registers(
    dtype: str, seven_threads: None, target_facts: Callable[..., None]
) -> None:
    target_facts("libraries", blas_multiply_adds=None)
    draw = np.random.default_rng(0)
    for first, second in (
        ((300, 301), (301, 200)),
        ((90, 8, 8), (90, 8, 8)),
        ((500, 300), (300,)),
        ((70, 9, 20), (70, 20, 19)),
        ((5, 700), (700, 130)),
    ):
        x1, x2 = (draw.normal(size=shape).astype(dtype) for shape in (first, second))
        shape = (x1 @ x2).shape
        results = {
            multiply("matmul", (), x1, x2, shape, width=width, threads=threads).tobytes()
            for width in widths()
            for threads in (1, 2, 7)
        }
        assert len(results) == 1


def test_library_calls_have_the_same_bits_for_any_number_of_threads(
    target_facts: Callable[..., None], seven_threads: None
) -> None:
    target_facts("libraries", blas_multiply_adds=0)
    draw = np.random.default_rng(0)
    x1, x2 = draw.normal(size=(600, 301)), draw.normal(size=(301, 200))
    assert step_of("matmul", (), x1, x2, 32).units == 3
    results = {
        multiply("matmul", (), x1, x2, (600, 200), threads=threads).tobytes()
        for threads in (1, 2, 7)
    }
    assert len(results) == 1


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", SOME_DTYPES)
def test_vecdot_conjugates_its_first_vector(dtype: str, width: int) -> None:
    for first, second, axis in (
        ((5, 70), (70,), -1),
        ((5, 70), (5, 70), -2),
        ((4, 1, 9), (5, 9), -1),
        ((100, 7), (100, 7), -1),
        ((3, 0), (3, 0), -1),
    ):
        x1, x2 = (
            values(DTYPES[dtype], *shape, seed=seed) for seed, shape in enumerate((first, second))
        )
        moved = [np.moveaxis(x, axis, -1) for x in (x1, x2)]
        if x1.dtype == FLOAT16:
            moved = [x.astype(np.float32) for x in moved]
        right = np.vecdot(*moved).astype(dtype)
        found = multiply("vecdot", (axis,), x1, x2, right.shape, width=width)
        np.testing.assert_array_equal(found, right)


def test_tensordot_contracts_any_axes(way: str) -> None:
    x1, x2 = values(DTYPES["float64"], 2, 3, 4, 5), values(DTYPES["float64"], 5, 4, 3, 2)
    for axes in (
        ((2, 3), (1, 0)),
        ((3, 2), (0, 1)),
        ((0, 3), (3, 0)),
        ((1,), (2,)),
        ((), ()),
        ((0, 1, 2, 3), (3, 2, 1, 0)),
    ):
        for first, second in ((x1, x2), (x1.T.copy().T, x2), (x1[::-1], x2.T.copy().T)):
            right = np.tensordot(first, second, axes)
            found = multiply("tensordot", (axes,), first, second, right.shape)
            np.testing.assert_array_equal(found, right)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", [*SOME_DTYPES, "bfloat16", "complex128", "int64"])
@pytest.mark.parametrize(
    ("first", "second", "axes"),
    [
        ((2, 400, 3), (3, 400, 2), ((0, 1, 2), (2, 1, 0))),  # a product of vectors
        ((3, 5, 8), (8, 3), ((0, 2), (1, 0))),  # a matrix times a vector
        ((8, 3), (3, 5, 8), ((0, 1), (2, 0))),  # a vector times a matrix
        ((2, 7, 40), (40, 2, 9), ((0, 2), (1, 0))),  # of one tile
        ((2, 201, 5, 3), (3, 33, 2), ((0, 3), (2, 0))),  # of blocks and panels
        ((1100, 13, 2), (2, 1100, 40), ((0, 2), (1, 0))),  # of slabs
        ((2, 7, 0), (0, 2, 9), ((0, 2), (1, 0))),
    ],
    ids=str,
)
def test_axes_that_cannot_be_walked_as_one_are_summed_where_they_lie(
    first: tuple[int, ...], second: tuple[int, ...], axes: tuple[tuple[int, ...], ...], dtype: str
) -> None:
    x1, x2 = (values(DTYPES[dtype], *shape) for shape in (first, second))
    wide = np.float32 if x1.dtype in HALF_DTYPES else x1.dtype
    right = np.tensordot(x1.astype(wide), x2.astype(wide), axes).astype(x1.dtype)
    for width in (*widths(), 16):
        found = multiply("tensordot", (axes,), x1, x2, right.shape, width=width)
        np.testing.assert_array_equal(found, right)


def test_the_longest_of_the_contracted_axes_is_walked() -> None:
    x1, x2 = np.zeros((3, 7, 40)), np.zeros((40, 3, 9))
    step = step_of("tensordot", (((0, 2), (1, 0)),), x1, x2, 32)
    named = dict(zip(step.kernel.sizes, step.sizes, strict=True))
    assert (named["k"], named["length of sum 0"]) == (40, 3)
    assert step.multiply_adds == 7 * 9 * 120
    assert "summed over 1 more" in str(step)
    beside = step_of(
        "tensordot", (((0, 2), (0, 2)),), np.zeros((40, 7, 9)), np.zeros((40, 5, 9)), 32
    )
    assert dict(zip(beside.kernel.sizes, beside.sizes, strict=True))["k"] == 9


def test_operands_need_not_be_aligned(width: int) -> None:
    memory = np.zeros(8 * 40 * 40 + 8, np.uint8)
    x1 = memory[3 : 3 + 8 * 40 * 40].view(np.float64).reshape(40, 40)
    x1[...] = values(DTYPES["float64"], 40, 40)
    check(x1, x1, width)


def test_a_stack_that_shares_a_matrix_is_one_tall_matrix() -> None:
    x1, x2 = np.ones((1000, 3, 3)), np.ones((3, 3))
    named = dict(zip((s := step_of("matmul", (), x1, x2, 32)).kernel.sizes, s.sizes, strict=True))
    assert (named["m"], named["n"], named["k"]) == (3000, 3, 3)


def test_multiply_adds_are_those_of_the_product() -> None:
    assert step_of("matmul", (), np.ones((5, 2, 3)), np.ones((3, 4)), 32).multiply_adds == 120
    assert step_of("vecdot", (-1,), np.ones((5, 3)), np.ones(3), 32).multiply_adds == 15


def test_a_step_says_what_computes_it() -> None:
    kinds = {}
    for length in (3, 8, 64, 512):
        x = np.ones((length, length))
        kinds[length] = step_of("matmul", (), x, x, 32).kind
    assert kinds == {
        3: "packet code",
        8: "packet code",
        64: "packet code",
        512: "library call",
    }
    x = np.ones((512, 512), np.int32)
    assert step_of("matmul", (), x, x, 32).reason == "BLAS has no int32"
    x = np.ones((600, 600))[::-1]
    assert "cannot be expressed by BLAS" in step_of("matmul", (), x, x, 32).reason


def test_long_vectors_of_a_stack_are_multiplied_along_them() -> None:
    def kernel(*shapes: tuple[int, ...]) -> type:
        x1, x2 = (np.ones(shape, np.float32) for shape in shapes)
        name, params = ("vecdot", (-1,)) if len(shapes[1]) == 2 else ("matmul", ())
        return type(step_of(name, params, x1, x2, 32).kernel)

    assert kernel((100, 7), (100, 7)) is SmallGemm
    assert kernel((100, 8), (100, 8)) is DotProduct
    assert kernel((100, 4, 7), (100, 7, 1)) is SmallGemm
    assert kernel((100, 4, 8), (100, 8, 1)) is DotProduct
    assert kernel((100, 4, 32), (100, 32, 2)) is SmallGemm


def test_blas_gets_its_threads_back() -> None:
    libraries = routines.libraries()
    before = [library.threads for library in libraries]
    with routines.limited_threads():
        with routines.limited_threads():
            assert {library.threads for library in libraries} == {1}
        assert {library.threads for library in libraries} == {1}
    assert [library.threads for library in libraries] == before


def test_a_child_of_a_fork_gets_the_threads_of_blas_back() -> None:
    libraries = routines.libraries()
    before = [library.threads for library in libraries]
    with routines.limited_threads():
        child = os.fork()
        if child == 0:
            found = [library.threads for library in libraries]
            os._exit(0 if found == before else 1)
        assert os.waitpid(child, 0)[1] == 0
