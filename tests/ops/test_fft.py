"""Fourier transforms: NumPy's values over dtypes, axes, lengths and norms, lazily and batched."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.testing import assert_equal_bits

COMPLEX = ("fft", "ifft")
FROM_REAL = ("rfft", "ihfft")
TO_REAL = ("irfft", "hfft")
ONE_AXIS = (*COMPLEX, *FROM_REAL, *TO_REAL)
SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn")
MATRIX = ("fft2", "ifft2", "rfft2", "irfft2")
REAL_INPUT = (*FROM_REAL, "rfftn", "rfft2")
PRECISION = {"float32": "single", "complex64": "single", "float16": "single"}


def values(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    random = np.random.default_rng(sum(shape))
    x = random.standard_normal(shape)
    if dtype.startswith("complex"):
        return (x + 1j * random.standard_normal(shape)).astype(dtype)
    return (10 * x).astype(dtype) if dtype in ("int32", "uint8", "int64") else x.astype(dtype)


def check(name: str, x: np.ndarray, **arguments: Any) -> None:
    """Compare with NumPy, within the error of a transform, and the dtype by the standard."""
    expected = getattr(np.fft, name)(x.astype(np.result_type(x.dtype, np.float32)), **arguments)
    result = getattr(tn.fft, name)(tn.asarray(x), **arguments)
    single = PRECISION.get(str(x.dtype)) == "single"
    kind = "complex" if expected.dtype.kind == "c" else "float"
    size = (64 if single else 128) // (1 if kind == "complex" else 2)
    assert result.dtype == np.dtype(f"{kind}{size}")
    assert result.shape == expected.shape
    assert np.asarray(result).shape == expected.shape
    scale = np.abs(expected).max() if expected.size else 1.0
    assert np.allclose(np.asarray(result), expected, atol=(2e-5 if single else 1e-13) * scale)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ONE_AXIS)
@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "complex64", "complex128", "int32", "uint8"]
)
def test_transform_along_one_axis_equals_numpys(name: str, dtype: str) -> None:
    if dtype.startswith("complex") and name in REAL_INPUT:
        with pytest.raises(TypeError, match="transforms real numbers"):
            getattr(tn.fft, name)(tn.asarray(values((4,), dtype)))
        return
    for shape, axis in (((8,), -1), ((7,), 0), ((5, 6), 0), ((5, 6), 1), ((3, 4, 5), 1)):
        for n in (None, 1, 4, 11):
            for norm in (None, "ortho", "forward", "backward"):
                check(name, values(shape, dtype), n=n, axis=axis, norm=norm)


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_transform_along_several_axes_equals_numpys(name: str, dtype: str) -> None:
    if dtype.startswith("complex") and name in REAL_INPUT:
        return
    x = values((4, 5, 6), dtype)
    for axes in (None, (0,), (2, 0), (-1, -2), (0, 1, 2)):
        for norm in (None, "ortho", "forward"):
            check(name, x, axes=axes, norm=norm)
        if axes is not None:
            check(name, x, s=(3, 8, 2)[: len(axes)], axes=axes)


@pytest.mark.parametrize("name", MATRIX)
def test_transform_of_matrices_equals_numpys(name: str) -> None:
    x = values((3, 4, 6), "float64")
    check(name, x)
    check(name, x, s=(5, 3), axes=(0, 1), norm="ortho")


@pytest.mark.parametrize("lengths", [(2, 3, 6), (3, 2, 6)])
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_an_axis_may_be_transformed_twice_with_two_lengths(
    name: str, lengths: tuple[int, ...]
) -> None:
    x = np.random.default_rng(0).random((2, 4, 4))
    given = {"s": lengths, "axes": (1, 1, 2)}
    found, wanted = getattr(tn.fft, name)(tn.asarray(x), **given), getattr(np.fft, name)(x, **given)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(np.asarray(found), wanted, atol=1e-12)


def test_an_axis_may_be_transformed_twice() -> None:
    for name in ("fftn", "ifftn", "rfftn", "irfftn"):
        for s in ((4, 4), (3, 6)):
            check(name, values((4, 5), "float64"), axes=(0, 0), s=s)


def test_half_precision_becomes_single() -> None:
    x = values((6,), "float16")
    assert tn.fft.fft(tn.asarray(x)).dtype == tn.complex64
    assert tn.fft.rfft(tn.astype(tn.asarray(x), tn.bfloat16)).dtype == tn.complex64
    check("fft", x)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9])
def test_frequencies_are_numpys_bit_for_bit(n: int) -> None:
    for d in (1.0, 0.1, 2):
        assert tn.fft.fftfreq(n, d).tolist() == np.fft.fftfreq(n, d).tolist()
        assert tn.fft.rfftfreq(n, d=d).tolist() == np.fft.rfftfreq(n, d).tolist()
    assert tn.fft.fftfreq(n, dtype="float32").dtype == tn.float32


def test_shifts_are_numpys() -> None:
    for shape in ((5,), (6,), (3, 4), (2, 3, 4)):
        x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
        for axes in (None, *([0, -1, (0, -1)] if len(shape) > 1 else [])):
            for name in ("fftshift", "ifftshift"):
                expected = getattr(np.fft, name)(x, axes=axes)
                assert getattr(tn.fft, name)(tn.asarray(x), axes=axes).tolist() == expected.tolist()


def test_numpy_functions_dispatch_here() -> None:
    x = tn.asarray([1.0, 2.0, 3.0])
    assert type(np.fft.rfft(x)) is tn.Array
    assert type(np.fft.fftshift(x)) is tn.Array


def test_strided_operands_are_transformed_in_place_of_copies() -> None:
    x = values((6, 8), "complex128")
    expected = np.fft.fft(x.T[::2], axis=0)
    assert np.allclose(np.asarray(tn.fft.fft(tn.asarray(x).T[::2], axis=0)), expected)


@pytest.mark.usefixtures("fused_multiply_add")
def test_transform_is_a_lazy_call_between_kernels() -> None:
    x = tn.asarray(values((1000,), "float64"))
    with tn.options(tier="1"), tn.profile() as p:
        y = tn.fft.rfft(x * 2.0) * 3.0
        assert (p.kernels, p.calls) == (0, 0)
        y.wait()
    assert (p.kernels, p.calls) == (2, 1)


def test_convolution_by_the_transform_equals_numpys() -> None:
    a, b = values((100,), "float64"), values((30,), "float64")
    n = 129
    product = tn.fft.rfft(tn.asarray(a), n) * tn.fft.rfft(tn.asarray(b), n)
    assert np.allclose(np.asarray(tn.fft.irfft(product, n)), np.convolve(a, b))


@pytest.mark.parametrize("name", [*ONE_AXIS, *SEVERAL])
def test_batch_is_one_call(name: str) -> None:
    x = values((10, 4, 6), "float64" if name in REAL_INPUT else "complex128")
    function = getattr(tn.fft, name)
    with tn.profile() as p:
        result = np.asarray(tn.vmap(function)(tn.asarray(x)))
    assert p.calls == 1
    for member, each in zip(result, x, strict=True):
        assert np.array_equal(member, np.asarray(function(tn.asarray(each))))


def test_every_count_of_threads_and_device_gives_the_same_bits() -> None:
    x = tn.asarray(values((64, 1024), "float64"))
    results = []
    for threads in (1, 2, 7):
        with tn.options(threads=threads):
            results.append(np.asarray(tn.fft.fft(x * 1.0)).tobytes())
    with tn.options(device="reference"):
        y = tn.asarray(values((64, 1024), "float64"))
        results.append(np.asarray(tn.fft.fft(y)).tobytes())
    assert len({*results}) == 1


def test_pushed_transform_equals_a_called_one() -> None:
    x = values((16,), "complex128")
    with tn.Engine() as engine:
        handles = [engine.push(tn.operators.fft.fft, tn.asarray(x * i)) for i in range(5)]
        for i, handle in enumerate(handles):
            assert np.allclose(np.asarray(handle.get()), np.fft.fft(x * i))


def test_transforms_of_no_points_and_other_mistakes_are_refused() -> None:
    empty, x = tn.zeros((0,)), tn.zeros((3, 4))
    for call, text in (
        (lambda: tn.fft.fft(empty), "0 points"),
        (lambda: tn.fft.rfft(x, n=0), "0 points"),
        (lambda: tn.fft.irfft(tn.zeros((1,))), "0 points"),
        (lambda: tn.fft.fft(x, norm="none"), "norm"),
        (lambda: tn.fft.fft(x, axis=2), "axis 2"),
        (lambda: tn.fft.fftn(x, s=(1, 2, 3)), "do not fit"),
        (lambda: tn.fft.fftn(x, s=(1,), axes=(0, 1)), "do not fit"),
        (lambda: tn.fft.rfftn(tn.zeros(())), "at least one axis"),
        (lambda: tn.fft.fftfreq(0), "0 points"),
        (lambda: tn.fft.fft(x, n=2.5), "not an int"),  # type: ignore[arg-type]  # refused
    ):
        with pytest.raises(ValueError, match=text):
            call()


def test_empty_batch_has_an_empty_result() -> None:
    assert np.asarray(tn.fft.fft(tn.zeros((0, 4)))).shape == (0, 4)
    assert np.asarray(tn.fft.rfft(tn.zeros((0, 4)))).shape == (0, 3)
    assert np.asarray(tn.fft.irfft(tn.zeros((3, 0, 4)), axis=0)).shape == (4, 0, 4)


def test_scipy_is_imported_with_the_first_transform() -> None:
    program = (
        "import sys, tenfold as tn; x = tn.fft.fft(tn.ones(4)); "
        "assert 'scipy' not in sys.modules; x.wait(); assert 'scipy.fft' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("points", [1, 2, 7, 8, 1024])
def test_lengths_at_and_beside_that_of_the_array_are_scipys(name: str, points: int) -> None:
    from scipy import fft as library

    values = np.random.default_rng(points).standard_normal((2, points))
    lengths = {None, 1, points - 1, points, points + 1, 2 * (points - 1), 2 * points - 1}
    for n in (n for n in lengths if n is None or n > 0):
        if n is None and points == 1 and name in ("irfft", "hfft"):
            continue  # a transform of no points
        for _ in range(2):
            found = np.asarray(getattr(tn.fft, name)(tn.asarray(values), n))
            assert_equal_bits(found, getattr(library, name)(values, n))
