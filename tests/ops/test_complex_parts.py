"""The parts of complex numbers: the interleaved view, and back."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3, 4)])
def test_parts_stand_side_by_side_and_make_the_number_again(
    dtype: str, shape: tuple[int, ...]
) -> None:
    generator = np.random.default_rng(0)
    values = (generator.standard_normal(shape) + 1j * generator.standard_normal(shape)).astype(
        dtype
    )
    parts = tn.view_as_real(tn.asarray(values))
    np.testing.assert_array_equal(np.asarray(parts), np.stack([values.real, values.imag], -1))
    np.testing.assert_array_equal(np.asarray(tn.view_as_complex(parts)), values)


def test_view_of_parts_is_a_view() -> None:
    x = tn.asarray([1 + 2j])
    assert tn.view_as_real(x).kind == tn.Kind.VIEW
    assert tn.view_as_real(x).base is x


def test_view_of_parts_reads_the_present_value() -> None:
    x = tn.asarray([1 + 2j])
    parts = tn.view_as_real(x)
    x += 1j
    assert parts.tolist() == [[1.0, 3.0]]


def test_real_array_has_no_two_parts() -> None:
    with pytest.raises(tn.errors.DTypeError, match="needs complex numbers"):
        tn.view_as_real(tn.asarray([1.0]))
    with pytest.raises(tn.errors.ShapeError, match="does not hold two parts"):
        tn.view_as_complex(tn.asarray([1.0, 2.0, 3.0]))
    with pytest.raises(tn.errors.DTypeError, match="needs float32 or float64"):
        tn.view_as_complex(tn.asarray([1, 2]))


def test_square_of_the_modulus_is_real() -> None:
    assert tn.abs2(tn.asarray([1 + 2j, 3 - 1j])).tolist() == [5.0, 10.0]
    assert tn.abs2(tn.asarray([1j], dtype=tn.complex64)).dtype == np.float32
    assert tn.abs2(tn.asarray([-3])).tolist() == [9]
