"""The parts of a complex array are views: assignments to them write through."""

import copy
import pickle

import numpy as np
import pytest

import tenfold as tn
import tenfold.numpy as tnp

DTYPES = ["complex64", "complex128"]
START = np.arange(6).reshape(2, 3) * (1 - 2j) + 1j


def _writes(a, module):
    """Write into parts of `a` in many ways; `module` has NumPy's functions."""
    a.real[0] = 7
    a.T.imag[1:] = module.asarray([1.5, -2.0])
    a.real.T[..., 0] += 3
    a[::2].imag[..., ::-1] *= 2
    a.real[a.imag > 0] = -1
    a.imag[[0, 1, 0], [2, 0, 2]] = [4, 5, 6]
    a.real.reshape(-1)[4] = 9
    a[:, 1:].real[1:][...] -= a[:, :2].imag[1:]
    a.imag = a.real[0]
    a.real += 1
    module.real(a)[1, 1:] += 2
    module.imag(a)[...] += a.real
    np.add.at(a.real, [0, 0], 1)
    module.copyto(a.imag[0], module.asarray([1, 2, 3]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_assignments_to_parts_write_through(dtype):
    expected, x = START.astype(dtype), tn.asarray(START.astype(dtype))
    _writes(expected, np)
    _writes(x, tnp)
    assert x.dtype == expected.dtype
    np.testing.assert_array_equal(np.asarray(x), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_assignments_to_parts_of_a_window_change_its_memory(dtype):
    memory = np.zeros((4, 6), dtype)
    expected = START.astype(dtype)
    memory[::2, ::2] = expected
    _writes(expected, np)
    _writes(tn.wrap(memory[::2, ::2]), tnp)
    np.testing.assert_array_equal(memory[::2, ::2], expected)
    assert not memory[1::2].any()
    assert not memory[:, 1::2].any()


def test_a_traced_function_writes_into_parts():
    def written(a):
        a.real[0] = 7
        a.T.imag[1:] += 2
        return a, a.real.T

    expected = START.copy()
    expected_parts = written(expected)
    function, x = tn.function(written), tn.asarray(START)
    for _ in range(2):
        for result, wanted in zip(function(x), expected_parts, strict=True):
            np.testing.assert_array_equal(np.asarray(result), wanted)
    mapped = tn.vmap(lambda a: written(a)[0])(tn.stack([x, x]))
    np.testing.assert_array_equal(np.asarray(mapped), np.stack([expected, expected]))


def test_views_of_parts_read_what_others_write():
    z = tn.asarray(START, copy=True)
    part, row = z.real, z.real[1]
    z[1] = 4 + 5j
    assert row.tolist() == [4.0, 4.0, 4.0]
    row[0] = -1
    assert z[1, 0].item() == -1 + 5j
    assert part[1].tolist() == [-1.0, 4.0, 4.0]


def test_expressions_of_a_part_keep_the_value_before():
    z = tn.asarray([1 + 2j])
    doubled = z.imag * 2
    z.imag[0] = 7
    assert doubled.tolist() == [4.0]
    assert z.tolist() == [1 + 7j]


def test_parts_of_an_array_without_a_name_live_on():
    start = np.asarray([1 + 2j, 3 + 4j])
    part = (tn.asarray(start) * 1).real
    row = part[1:]
    assert part.base is None
    row[0] = 9
    assert part.tolist() == [1.0, 9.0]
    z = tn.asarray(start) * 1
    real, other, imag = z.real, z.real, z.imag
    z[0] = 0
    del z
    other[1] = 8
    assert (real.tolist(), imag.tolist()) == ([0.0, 8.0], [0.0, 4.0])


def test_a_part_in_place_of_another_shape_writes_through():
    z = tn.asarray(START, copy=True)
    part = z.real
    z.shape = (6,)
    part[1, 2] = 50
    assert z.real[5].item() == 50


def test_the_real_part_of_a_real_array_is_the_array():
    x = tn.asarray([1.0, 2.0])
    assert x.real is x
    assert tnp.real(x) is x
    x.real[0] = 3
    x.real += 1
    tn.real(x)[1] = 8
    assert x.tolist() == [4.0, 8.0]


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "float16"])
@pytest.mark.parametrize("shape", [(), (1,), (3,)])
def test_the_imaginary_part_of_a_real_array_is_read_only(dtype, shape):
    x = tn.asarray(np.ones(shape, dtype))
    for part in (x.imag, tn.imag(x), tnp.imag(x), x.imag[None]):
        assert part.dtype == dtype
        assert not np.asarray(part).any()
        with pytest.raises(ValueError, match="assignment destination is read-only: imag of"):
            part[...] = 1
    with pytest.raises(TypeError, match="array does not have imaginary part to set"):
        x.imag = 1
    assert np.asarray(x).all()


def test_a_part_refuses_complex_numbers_and_nothing_has_changed():
    z = tn.asarray([1 + 2j])
    with pytest.raises(TypeError, match="same-kind rule"):
        z.real[0] = 1j
    with pytest.raises(TypeError, match="same-kind rule"):
        z.imag = tn.asarray([1j])
    assert z.tolist() == [1 + 2j]


def test_parts_of_special_values_do_not_touch_each_other():
    z = tn.asarray([complex(np.inf, -0.0), complex(np.nan, np.inf)])
    z.imag[0] = -np.inf
    z.real[1] = -0.0
    values = np.asarray(z)
    assert [values[0].real, values[0].imag, values[1].imag] == [np.inf, -np.inf, np.inf]
    assert np.signbit(values[1].real)


def test_an_assignment_to_a_slice_of_a_part_allocates_no_array():
    z = tn.asarray(np.zeros(100_000, complex), copy=True)

    def step():
        z.imag[10:20] += 1
        z.wait()

    for _ in range(3):
        step()
    with tn.profile() as p:
        step()
    assert p.bytes_allocated < 10_000


def test_copies_of_parts_are_arrays_of_their_own():
    z = tn.asarray(START, copy=True)
    for taken in (pickle.loads(pickle.dumps(z.real)), copy.deepcopy(z.real), z.real.copy()):
        taken[...] = 100
    assert not (np.asarray(z.real) == 100).any()


def test_sums_of_windows_of_a_part_are_added_to_the_elements():
    z = tn.asarray(np.zeros(4, complex), copy=True)
    windows = tn.sliding_window_view(z.imag, 2)
    windows += 1
    assert z.tolist() == [1j, 2j, 2j, 1j]
