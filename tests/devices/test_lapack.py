"""LAPACK by our pool: against NumPy's for every operation, dtype, layout and stack; failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.devices import blas, factorisations, factorise, lapack, reference
from tenfold.dtypes import DTYPES
from tenfold.render.library_call import LibraryCall, Routine

FLOATING = ["float32", "float64", "complex64", "complex128"]
SHAPES = [(1, 1), (5, 5), (3, 4, 4), (2, 3, 8, 8), (70, 4, 4)]
LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "rows": np.ascontiguousarray,
    "columns": lambda x: np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2),
    "reversed": lambda x: np.ascontiguousarray(x[..., ::-1, ::-1])[..., ::-1, ::-1],
}


def numbers(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng((seed, *shape))
    x = random.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * random.standard_normal(shape)
    return x.astype(dtype)


def definite(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    x = numbers(shape, dtype)
    return (x @ adjoint(x) + np.eye(shape[-1])).astype(dtype)


def adjoint(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


def equal(found: np.ndarray, expected: np.ndarray) -> None:
    """Equal up to rounding, which is relative to the largest element."""
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    tolerance = 1e-4 if np.finfo(expected.dtype).bits == 32 else 1e-12
    scale = float(np.max(np.abs(expected), initial=1))
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale)


@pytest.fixture
def by_lapack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every matrix is LAPACK's, and NumPy is not asked."""

    def refused(node: Any, inputs: Any) -> None:
        raise AssertionError(f"{node.name} was left to NumPy")

    for op, way in factorise.WAYS.items():
        monkeypatch.setitem(factorise.WAYS, op, way._replace(alone=0))
    monkeypatch.setattr(reference, "run_op", refused)


DTYPE = pytest.mark.parametrize("dtype", ["float64", "complex128"])
SHAPE = pytest.mark.parametrize("shape", SHAPES, ids=str)
LAYOUT = pytest.mark.parametrize("layout", LAYOUTS)


@DTYPE
@SHAPE
@LAYOUT
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_equals_numpy(shape: Any, dtype: str, layout: str, upper: bool) -> None:
    x = LAYOUTS[layout](definite(shape, dtype))
    found = factorisations.cholesky(x, upper)
    assert found is not None
    equal(found[0], np.linalg.cholesky(x, upper=upper))
    other = np.tril(found[0], -1) if upper else np.triu(found[0], 1)
    np.testing.assert_array_equal(other, np.zeros_like(other))


@DTYPE
@SHAPE
@LAYOUT
def test_inv_and_det_equal_numpy(shape: Any, dtype: str, layout: str) -> None:
    x = LAYOUTS[layout](definite(shape, dtype))
    found = factorisations.inverse(x)
    assert found is not None
    equal(found[0], np.linalg.inv(x))
    y = LAYOUTS[layout](numbers(shape, dtype))  # of either sign
    equal(factorisations.determinant(y)[0], np.asarray(np.linalg.det(y)))


@DTYPE
@pytest.mark.parametrize(
    ("left", "right"),
    [
        *(((5, 5), (5,)), ((5, 5), (5, 3)), ((4, 5, 5), (5,)), ((5, 5), (4, 5, 2))),
        *(((4, 1, 3, 3), (5, 3, 2)), ((3, 3), (3, 3)), ((1, 1), (1,)), ((70, 4, 4), (4, 1))),
    ],
    ids=str,
)
@LAYOUT
def test_solve_equals_numpy(left: Any, right: Any, dtype: str, layout: str) -> None:
    a = LAYOUTS[layout](definite(left, dtype))
    b = numbers(right, dtype, 1)
    b = b if b.ndim < 2 else LAYOUTS[layout](b)
    found = factorisations.solve(a, b)
    assert found is not None
    equal(found[0], np.linalg.solve(a, b))


@DTYPE
@LAYOUT
@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("shape", [*SHAPES, (5, 3), (3, 5), (2, 6, 4), (2, 4, 6)], ids=str)
def test_qr_equals_numpy(shape: Any, dtype: str, layout: str, mode: Any) -> None:
    x = LAYOUTS[layout](numbers(shape, dtype))
    found = factorisations.qr(x, mode)
    assert found is not None
    for mine, numpys in zip(found, np.linalg.qr(x, mode), strict=True):
        equal(mine, numpys)


@DTYPE
@LAYOUT
@SHAPE
def test_eigh_decomposes(shape: Any, dtype: str, layout: str) -> None:
    x = definite(shape, dtype)
    found = factorisations.eigh(LAYOUTS[layout](x))
    assert found is not None
    values, vectors = found
    equal(values, np.linalg.eigvalsh(x))
    equal((vectors * values[..., None, :]) @ adjoint(vectors), x)


@DTYPE
@LAYOUT
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [*SHAPES, (5, 3), (3, 5), (2, 6, 4), (2, 4, 6)], ids=str)
def test_svd_decomposes(shape: Any, dtype: str, layout: str, full: bool) -> None:
    x = numbers(shape, dtype)
    found = factorisations.svd(LAYOUTS[layout](x), full)
    assert found is not None
    expected = np.linalg.svd(x, full_matrices=full)
    for mine, numpys in zip(found, expected, strict=True):
        assert (mine.shape, mine.dtype) == (numpys.shape, numpys.dtype)
    u, s, vh = found
    equal(s, expected.S)
    inner = s.shape[-1]
    equal((u[..., :inner] * s[..., None, :]) @ vh[..., :inner, :], x)
    for basis in (adjoint(u) @ u, vh @ adjoint(vh)):
        equal(basis, np.zeros_like(basis) + np.eye(basis.shape[-1], dtype=dtype))


MAKERS: dict[str, Callable[[tn.Array], Any]] = {
    "cholesky": tn.linalg.cholesky,
    "inv": tn.linalg.inv,
    "solve": lambda x: tn.linalg.solve(x, np.ones(x.shape[-1], np.float32)),
    "det": tn.linalg.det,
    "qr": lambda x: tuple(tn.linalg.qr(x)),
    "eigh": lambda x: tuple(tn.linalg.eigh(x)),
    "svd": lambda x: tuple(tn.linalg.svd(x)),
}
OPERATION = pytest.mark.parametrize("name", MAKERS)


def computed(result: Any) -> tuple[np.ndarray, ...]:
    return tuple(np.asarray(x) for x in (result if isinstance(result, tuple) else (result,)))


@OPERATION
@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.usefixtures("by_lapack")
def test_the_device_takes_lapack_where_it_pays(name: str, dtype: str) -> None:
    for shape in ((4, 4), (2, 4, 4)):
        for found in computed(MAKERS[name](tn.asarray(definite(shape, dtype)))):
            assert np.isfinite(found).all()


@pytest.mark.usefixtures("by_lapack")
def test_integers_are_computed_in_float64() -> None:
    equal(np.asarray(tn.linalg.inv(np.full((1, 1), 4))), np.array([[0.25]]))


@pytest.mark.parametrize("name", ["inv", "solve", "det", "cholesky"])
def test_large_matrices_equal_numpys(name: str) -> None:
    x = definite((520, 520), "float64") / 1000
    with tn.options(device="reference"):
        expected = computed(MAKERS[name](tn.asarray(x)))
    for threads in (1, 2):
        with tn.options(threads=threads):
            equal(computed(MAKERS[name](tn.asarray(x)))[0], expected[0])


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.usefixtures("by_lapack")
def test_single_precision_is_computed_in_double_as_numpy_does(dtype: str) -> None:
    x = (1 / (np.arange(7)[:, None] + np.arange(7) + 1.0)).astype(dtype)  # condition 5e8
    equal(np.asarray(tn.linalg.inv(x)), np.linalg.inv(x))
    found = np.asarray(tn.linalg.det(x))
    np.testing.assert_allclose(found, np.linalg.det(x), rtol=1e-6)


@pytest.mark.usefixtures("by_lapack")
def test_results_are_operands_of_kernels() -> None:
    x = definite((3, 8, 8), "float64")
    q, r = tn.linalg.qr(tn.asarray(x) * 2)
    equal(np.asarray((q @ r) / 2 + 1), x + 1)


@OPERATION
def test_a_stack_on_two_threads_and_on_one_equals_numpy(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = definite((64, 20, 20), "float64")
    with tn.options(device="reference"):
        expected = computed(MAKERS[name](tn.asarray(x)))
    calls: list[tuple[Routine, ...]] = []

    def watched(routines: tuple[Routine, ...], *given: Any, **named: Any) -> bool:
        calls.append(routines)
        return lapack.run(routines, *given, **named)

    monkeypatch.setattr(factorise, "STACK", 0)
    monkeypatch.setattr(factorisations, "run", watched)
    for threads in (1, 2, 7):
        calls.clear()
        with tn.options(threads=threads):
            found = computed(MAKERS[name](tn.asarray(x)))
        assert bool(calls) == (threads > 1)
        for mine, numpys in zip(found, expected, strict=True):
            equal(np.abs(mine), np.abs(numpys))  # a vector of eigh or svd may have either sign


def test_which_calls_are_lapacks() -> None:
    def pays(name: str, shape: tuple[int, ...], threads: int = 2) -> bool:
        way = next(way for op, way in factorise.WAYS.items() if op.name == name)
        each = shape[-1] ** 3
        return factorise._pays(way, shape, int(np.prod(shape[:-2])), each, threads)

    assert [n for n in (4, 100, 128, 1000) if pays("inv", (n, n))] == [128, 1000]
    assert [n for n in (4, 128, 256, 1000) if pays("cholesky", (n, n), 1)] == [256, 1000]
    for name in ("solve", "det"):
        assert [n for n in (4, 128, 256, 1000) if pays(name, (n, n), 1)] == [256, 1000]
    assert not any(pays(name, (1000, 1000)) for name in ("qr", "eigh", "svd"))
    assert all(pays(name, (50, 64, 64)) for name in MAKERS)
    assert not any(pays(name, (50, 64, 64), threads=1) for name in MAKERS)
    assert not any(pays(name, (3, 4, 4)) for name in MAKERS)
    assert not pays("det", (10000, 4, 4))
    assert not pays("inv", (lapack.LARGEST + 1, lapack.LARGEST + 1))


@OPERATION
@pytest.mark.usefixtures("by_lapack")
def test_of_nothing_numpy_is_asked(name: str) -> None:
    with pytest.raises(AssertionError, match="left to NumPy"):
        computed(MAKERS[name](tn.zeros((0, 3, 3))))


BAD = {"inv": np.zeros((3, 3)), "solve": np.ones((3, 3)), "cholesky": -np.eye(3)}
BAD |= {"svd": np.full((3, 3), np.nan)}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_matrix_of_a_stack_raises_at_the_wait(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for op, way in factorise.WAYS.items():
        monkeypatch.setitem(factorise.WAYS, op, way._replace(alone=0))
    x = definite((40, 3, 3), "float64")
    x[17] = BAD[name]
    result = MAKERS[name](tn.asarray(x))
    first = result[0] if isinstance(result, tuple) else result
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError, match=f"^{name}: .*test_lapack") as caught:
            (first + 1).wait()
        assert isinstance(caught.value.__cause__, np.linalg.LinAlgError)
    good = MAKERS[name](tn.asarray(x[:17]))  # the next call works
    assert np.isfinite(computed(good)[0]).all()


def test_nan_is_handed_on_as_numpy_does() -> None:
    x = definite((3, 4, 4), "float64")
    x[1, 2, 1] = np.nan
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(
            np.isnan(factorisations.determinant(x)[0]), np.isnan(np.linalg.det(x))
        )
        found = factorisations.inverse(x)
        assert found is not None
        np.testing.assert_array_equal(np.isnan(found[0]), np.isnan(np.linalg.inv(x)))
        for upper in (False, True):
            factors = factorisations.cholesky(x, upper)
            assert factors is not None
            expected = np.linalg.cholesky(x, upper=upper)
            np.testing.assert_array_equal(np.isnan(factors[0]), np.isnan(expected))
    assert factorisations.svd(x, True) is None  # NumPy raises, too


@pytest.mark.parametrize("upper", [False, True])
def test_only_one_triangle_is_read(upper: bool) -> None:
    x = definite((2, 5, 5), "float64")
    triangle = np.triu if upper else np.tril
    half = np.where(triangle(np.ones((5, 5))), x, np.nan)
    found = factorisations.cholesky(half, upper)
    assert found is not None
    equal(found[0], np.linalg.cholesky(x, upper=upper))
    if not upper:
        values = factorisations.eigh(half)
        assert values is not None
        equal(values[0], np.linalg.eigvalsh(x))


def test_singular_matrices_have_determinant_zero() -> None:
    for dtype in ("float64", "complex128"):
        x = np.zeros((2, 3, 3), dtype)
        with np.errstate(all="ignore"):
            assert factorisations.determinant(x)[0].tolist() == [0, 0]


def test_determinants_neither_overflow_nor_vanish_on_the_way() -> None:
    x = np.diag([1e200, 1e200, 1e-200, 1e-200])
    np.testing.assert_allclose(factorisations.determinant(x)[0], 1, rtol=1e-12)


def test_operands_are_left_as_they_are() -> None:
    x = definite((2, 6, 6), "float64")
    x.flags.writeable = False
    before = x.copy()
    for compute in (
        *(factorisations.inverse, factorisations.determinant, factorisations.eigh),
        *(lambda x: factorisations.cholesky(x, True), lambda x: factorisations.qr(x, "reduced")),
        *(lambda x: factorisations.svd(x, True), lambda x: factorisations.solve(x, x)),
    ):
        compute(x)
    np.testing.assert_array_equal(x, before)


def test_the_matrices_before_a_failure_and_after_it_are_computed() -> None:
    x = np.tile(np.array([[4.0, 0.0], [0.0, 9.0]]), (5, 1, 1))
    x[3] = -1
    factor = Routine("dpotrf", "'U n0 m0 n0 report", fails=True)
    assert not lapack.run((factor,), (x,), (2,), multiply_adds=1)
    for index in (0, 1, 2, 4):
        assert x[index].tolist() == [[2.0, 0.0], [0.0, 3.0]]
    heedless = factor._replace(fails=False)
    assert lapack.run((heedless,), (x,), (2,), multiply_adds=1)


def test_a_call_is_one_kernel_however_many_matrices() -> None:
    call = LibraryCall((Routine("dgetrf", "n0 n0 m0 n0 m1 report", fails=True),), buffers=2)
    assert str(call) == "library call of dgetrf, 2 buffers"
    assert call.text().count("call void") == 1


def test_work_memory_begins_at_multiples_of_64_bytes() -> None:
    float64 = DTYPES["float64"]
    assert lapack.placed((float64, 3), (DTYPES["int32"], 17), (float64, 1)) == ((0, 64, 192), 256)


def test_routines_say_how_much_memory_they_need() -> None:
    assert lapack.work_length("dgetri", (50, None, 50, None, None, -1)) >= 50
    assert lapack.work_length("zgeqrf", (30, 20, None, 30, None, None, -1)) >= 20


@pytest.mark.parametrize("package", ["scipy", "numpy"])
def test_blas_never_gets_more_threads_than_it_had(package: str) -> None:
    (library,) = [each.controller for each in blas._libraries(package)]
    before = library.get_num_threads()
    with blas.held(before + 5, package):
        assert library.get_num_threads() == before
        with blas.held(1, package):
            assert library.get_num_threads() == 1
    assert library.get_num_threads() == before


@OPERATION
def test_what_stays_numpys_obeys_the_threads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (library,) = [each.controller for each in blas._libraries("numpy")]
    seen = []
    run_op = reference.run_op

    def watched(*given: Any) -> Any:
        seen.append(library.get_num_threads())
        return run_op(*given)

    for op, way in factorise.WAYS.items():
        monkeypatch.setitem(factorise.WAYS, op, way._replace(alone=np.inf))
    monkeypatch.setattr(reference, "run_op", watched)
    with tn.options(threads=1):
        computed(MAKERS[name](tn.asarray(definite((80, 80), "float64"))))
    assert seen == [1]
