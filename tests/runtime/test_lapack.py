"""LAPACK by our pool: against NumPy's for every operation, dtype, layout and stack; failures."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.dtypes import FLOAT64
from tenfold.ops import linalg
from tenfold.runtime import reference
from tenfold.runtime.blas import routines
from tenfold.runtime.lapack import dispatch, drivers
from tenfold.schedule import driver_choice
from tenfold.schedule.lapack.driver_builder import DriverBuilder, StackedLayout
from tenfold.schedule.loop_schedule import pack_sizes
from tenfold.schedule.target import DEFAULT

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
    """NumPy is not asked."""

    def refused(node: Any, inputs: Any) -> None:
        raise AssertionError(f"{node.name} was left to NumPy")

    monkeypatch.setattr(reference, "run_op", refused)


def shared(x: np.ndarray) -> tn.Array:
    """An array that lies as the ndarray does."""
    x.flags.writeable = False
    return tn.asarray(x)


DTYPE = pytest.mark.parametrize("dtype", ["float64", "complex128"])
SHAPE = pytest.mark.parametrize("shape", SHAPES, ids=str)
LAYOUT = pytest.mark.parametrize("layout", LAYOUTS)


@DTYPE
@SHAPE
@LAYOUT
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.usefixtures("by_lapack")
def test_cholesky_equals_numpy(shape: Any, dtype: str, layout: str, upper: bool) -> None:
    x = LAYOUTS[layout](definite(shape, dtype))
    found = np.asarray(tn.linalg.cholesky(shared(x), upper=upper))
    equal(found, np.linalg.cholesky(x, upper=upper))
    other = np.tril(found, -1) if upper else np.triu(found, 1)
    np.testing.assert_array_equal(other, np.zeros_like(other))


@DTYPE
@SHAPE
@LAYOUT
@pytest.mark.usefixtures("by_lapack")
def test_inv_and_det_equal_numpy(shape: Any, dtype: str, layout: str) -> None:
    x = LAYOUTS[layout](definite(shape, dtype))
    equal(np.asarray(tn.linalg.inv(shared(x))), np.linalg.inv(x))
    y = LAYOUTS[layout](numbers(shape, dtype))  # of either sign
    equal(np.asarray(tn.linalg.det(shared(y))), np.asarray(np.linalg.det(y)))


@DTYPE
@pytest.mark.parametrize(
    ("left", "right"),
    [
        *(((5, 5), (5,)), ((5, 5), (5, 3)), ((4, 5, 5), (5,)), ((5, 5), (4, 5, 2))),
        *(((4, 1, 3, 3), (5, 3, 2)), ((3, 3), (3, 3)), ((1, 1), (1,)), ((70, 4, 4), (4, 1))),
        *(((3, 3), (6, 3, 1)), ((3, 3), (2, 4, 3, 1))),
    ],
    ids=str,
)
@LAYOUT
@pytest.mark.usefixtures("by_lapack")
def test_solve_equals_numpy(left: Any, right: Any, dtype: str, layout: str) -> None:
    a = LAYOUTS[layout](definite(left, dtype))
    b = numbers(right, dtype, 1)
    b = b if b.ndim < 2 else LAYOUTS[layout](b)
    expected = np.linalg.solve(a, b)
    for reassociate in (False, True):  # one matrix of several right sides is factored apart
        with tn.options(reassociate=reassociate):
            equal(np.asarray(tn.linalg.solve(shared(a), shared(b))), expected)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", FLOATING)
@LAYOUT
@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("shape", [*SHAPES, (5, 3), (3, 5), (2, 6, 4), (2, 4, 6)], ids=str)
@pytest.mark.usefixtures("by_lapack")
def test_qr_equals_numpy(shape: Any, dtype: str, layout: str, mode: Any) -> None:
    x = LAYOUTS[layout](numbers(shape, dtype))
    for mine, numpys in zip(tn.linalg.qr(shared(x), mode=mode), np.linalg.qr(x, mode), strict=True):
        equal(np.asarray(mine), numpys)


@pytest.mark.parametrize("dtype", FLOATING)
@LAYOUT
@SHAPE
@pytest.mark.usefixtures("by_lapack")
def test_eigh_decomposes(shape: Any, dtype: str, layout: str) -> None:
    x = definite(shape, dtype)
    given = shared(LAYOUTS[layout](x))
    values, vectors = map(np.asarray, tn.linalg.eigh(given))
    equal(values, np.linalg.eigvalsh(x))
    equal(np.asarray(tn.linalg.eigvalsh(given)), np.linalg.eigvalsh(x))
    equal((vectors * values[..., None, :]) @ adjoint(vectors), x)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", FLOATING)
@LAYOUT
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [*SHAPES, (5, 3), (3, 5), (2, 6, 4), (2, 4, 6)], ids=str)
@pytest.mark.usefixtures("by_lapack")
def test_svd_decomposes(shape: Any, dtype: str, layout: str, full: bool) -> None:
    x = numbers(shape, dtype)
    given = shared(LAYOUTS[layout](x))
    found = [np.asarray(each) for each in tn.linalg.svd(given, full_matrices=full)]
    expected = np.linalg.svd(x, full_matrices=full)
    for mine, numpys in zip(found, expected, strict=True):
        assert (mine.shape, mine.dtype) == (numpys.shape, numpys.dtype)
    u, s, vh = found
    equal(s, expected.S)
    equal(np.asarray(tn.linalg.svdvals(given)), expected.S)
    inner = s.shape[-1]
    equal((u[..., :inner] * s[..., None, :]) @ vh[..., :inner, :], x)
    for basis in (adjoint(u) @ u, vh @ adjoint(vh)):
        equal(basis, np.zeros_like(basis) + np.eye(basis.shape[-1], dtype=dtype))


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", FLOATING)
@LAYOUT
@SHAPE
@pytest.mark.usefixtures("by_lapack")
def test_eigvals_equal_numpy(shape: Any, dtype: str, layout: str) -> None:
    x = numbers(shape, dtype)
    found = np.asarray(tn.linalg.eigvals(shared(LAYOUTS[layout](x))))
    expected = np.linalg.eigvals(x).astype(found.dtype)
    np.testing.assert_allclose(
        np.sort_complex(found), np.sort_complex(expected), rtol=1e-3, atol=1e-3
    )


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
@pytest.mark.usefixtures("by_lapack")
def test_a_stack_on_two_threads_and_on_one_equals_numpy(name: str) -> None:
    x = definite((64, 20, 20), "float64")
    functions = {"solve": lambda x: np.linalg.solve(x, np.ones(20, np.float32))}
    made = functions.get(name, getattr(np.linalg, name))(x)
    expected = made if isinstance(made, tuple) else (made,)
    for threads in (1, 2, 7):
        with tn.options(threads=threads):
            found = computed(MAKERS[name](tn.asarray(x)))
        for mine, numpys in zip(found, expected, strict=True):
            equal(np.abs(mine), np.abs(numpys))  # a vector of eigh or svd may have either sign


def step(
    op: Any, shape: tuple[int, ...], results: int = 1, params: Any = ()
) -> drivers.DriverLaunch:
    strides = tuple(8 * int(np.prod(shape[axis + 1 :])) for axis in range(len(shape)))
    type_ = _native.Type(shape, FLOAT64, "cpu")
    layout = StackedLayout(shape, strides, FLOAT64)
    found = driver_choice.choose_driver(op, params, (layout,), (type_,) * results)
    assert found is not None
    return drivers.bind_driver(found)


def test_threads_follow_the_size_of_the_work() -> None:
    with tn.options(threads=2):
        assert drivers.threads_of(step(linalg.inv, (4, 4))) == 0  # with the GIL
        assert drivers.threads_of(step(linalg.inv, (100, 100))) == 1
        assert drivers.threads_of(step(linalg.inv, (50, 64, 64))) == 2
    with tn.options(threads=1):
        assert drivers.threads_of(step(linalg.inv, (50, 64, 64))) == 1


def test_blas_is_held_where_it_might_start_threads() -> None:
    order = DEFAULT.libraries.serial_order
    assert step(linalg.det, (5, order, order)).choice.single_threaded
    assert not step(linalg.det, (order + 1, order + 1)).choice.single_threaded
    # of several columns it does for any order
    assert not step(linalg.inv, (4, 4)).choice.single_threaded


def test_threads_of_blas_are_given_back_after_a_replay() -> None:
    (library,) = routines.libraries()
    before, x = library.threads, tn.asarray(definite((120, 120), "float64"))
    for _ in range(3):
        tn.linalg.det(x).wait()
        assert library.threads == before
    with pytest.raises(np.linalg.LinAlgError):
        tn.linalg.solve(tn.zeros((120, 120)) @ x, tn.ones(120)).wait()
    assert library.threads == before


def test_threads_of_blas_are_given_back_whatever_threads_do_at_once() -> None:
    (library,) = routines.libraries()
    before, x = library.threads, tn.asarray(definite((100, 100), "float64"))

    def work() -> None:
        for _ in range(50):
            tn.linalg.inv(x).wait()
            with routines.limited_threads():
                tn.linalg.det(x).wait()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert library.threads == before


@pytest.mark.parametrize("order", [4, 120])
def test_known_calls_of_lapack_run_no_python(order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = tn.asarray(definite((order, order), "float64")), tn.ones((order, 3))
    made = [lambda: tn.linalg.solve(x, y), lambda: tn.linalg.inv(x), lambda: tn.linalg.cholesky(x)]
    for each in made:
        for _ in range(20):  # until it is not compiled again
            each().wait()

    def called(*given: Any) -> None:
        raise AssertionError("Python was called")

    monkeypatch.setattr(dispatch, "compute_linalg", called)
    monkeypatch.setattr(drivers, "launch", called)
    monkeypatch.setattr(dispatch, "launch", called)
    for each in made:
        each().wait()


def test_order_above_lapacks_integers_is_numpys() -> None:
    order = DEFAULT.libraries.max_order + 1
    layout = StackedLayout((order, order), (8 * order, 8), FLOAT64)
    type_ = _native.Type((order, order), FLOAT64, "cpu")
    assert driver_choice.choose_driver(linalg.inv, (), (layout,), (type_,)) is None


@OPERATION
@pytest.mark.usefixtures("by_lapack")
def test_empty_operand_is_numpys(name: str) -> None:
    with pytest.raises(AssertionError, match="left to NumPy"):
        computed(MAKERS[name](tn.zeros((0, 3, 3))))


BAD = {"inv": np.zeros((3, 3)), "solve": np.ones((3, 3)), "cholesky": -np.eye(3)}
BAD |= {"svd": np.full((3, 3), np.nan)}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_matrix_of_a_stack_raises_at_the_wait(name: str) -> None:
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
    a = tn.asarray(x)
    with np.errstate(all="ignore"):
        for name in ("det", "inv", "cholesky"):
            found, expected = getattr(tn.linalg, name)(a), getattr(np.linalg, name)(x)
            np.testing.assert_array_equal(np.isnan(np.asarray(found)), np.isnan(expected))
        upper = np.linalg.cholesky(x, upper=True)
        found = tn.linalg.cholesky(a, upper=True)
        np.testing.assert_array_equal(np.isnan(np.asarray(found)), np.isnan(upper))
    with pytest.raises(np.linalg.LinAlgError, match="svd: SVD did not converge"):
        tn.linalg.svd(a).S.wait()  # NumPy raises, too


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.usefixtures("by_lapack")
def test_only_one_triangle_is_read(upper: bool) -> None:
    x = definite((2, 5, 5), "float64")
    triangle = np.triu if upper else np.tril
    half = tn.asarray(np.where(triangle(np.ones((5, 5))), x, np.nan))
    found = tn.linalg.cholesky(half, upper=upper)
    equal(np.asarray(found), np.linalg.cholesky(x, upper=upper))
    if not upper:
        equal(np.asarray(tn.linalg.eigh(half).eigenvalues), np.linalg.eigvalsh(x))


def test_singular_matrices_have_determinant_zero() -> None:
    for dtype in FLOATING:
        assert tn.linalg.det(tn.zeros((2, 3, 3), dtype=dtype)).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_determinants_neither_overflow_nor_vanish_on_the_way(dtype: str) -> None:
    x = np.diag([1e200, 1e300, 1e-300, 1e-200]).astype(dtype)
    np.testing.assert_allclose(tn.linalg.det(x).item(), 1, rtol=1e-12)
    assert tn.linalg.det(np.diag([1e-320, 1e300, 1e20]).astype(dtype)).item() == pytest.approx(
        1, rel=1e-3
    )
    assert tn.linalg.det(np.eye(400, dtype=dtype) * 1e-3).item() == 0
    assert abs(tn.linalg.det(np.eye(400, dtype=dtype) * 1e3).item()) == np.inf


@pytest.mark.skipif(_native.processor_level() < 3, reason="log has another formula")
def test_the_logarithm_of_a_determinant_has_the_bits_of_log() -> None:
    x = np.exp(np.random.default_rng(3).uniform(-200, 200, 4000))
    found = np.asarray(tn.linalg.slogdet(x[:, None, None]).logabsdet)
    with tn.options(cpu="x86-64-v3"):
        expected = np.asarray(tn.log(x))
    np.testing.assert_array_equal(found, expected)


def test_operands_are_left_as_they_are() -> None:
    x = definite((2, 6, 6), "float64")
    before, given = x.copy(), shared(x)
    for make in MAKERS.values():
        computed(make(given))
    np.testing.assert_array_equal(x, before)


def test_the_matrices_before_a_failure_and_after_it_are_computed() -> None:
    x = np.tile(np.array([[4.0, 0.0], [0.0, 9.0]]), (5, 1, 1))
    x[3] = -1
    y, call = np.zeros_like(x), step(linalg.cholesky, x.shape, params=(False,))
    buffers = [x.ctypes.data, y.ctypes.data, *call.addresses]
    sizes = pack_sizes(call.sizes)
    assert _native.launch(call.kernel, buffers, sizes, b"", call.scratch, 5, 5, 1) == 4
    for index in (0, 1, 2, 4):
        assert y[index].tolist() == [[2.0, 0.0], [0.0, 3.0]]


def test_a_call_is_one_kernel_however_many_matrices() -> None:
    for shape in ((2, 2), (70, 2, 2)):
        x = tn.asarray(definite(shape, "float64"))
        with tn.profile() as p:
            tn.linalg.det(x).wait()
        assert (p.calls, p.launches, p.kernels, p.compiles) == (1, 1, 0, 0)


@OPERATION
def test_no_call_of_lapack_is_compiled(name: str) -> None:
    with tn.profile() as p:
        for order in (3, 130):
            computed(MAKERS[name](tn.asarray(definite((2, order, order), "float64"))))
    assert (p.compiles, p.generic_compiles, p.background_compiles) == (0, 0, 0)


def test_work_memory_begins_at_multiples_of_64_bytes() -> None:
    made = DriverBuilder(FLOAT64, order=3, units=1)
    for length in (3, 17, 1):
        made.area(length)
    assert drivers.lay_out(made.areas) == ([0, 64, 256], [0, 0, 0], 320)


def test_routines_say_how_much_memory_they_need() -> None:
    assert drivers.work_length("dgetri", (50, None, 50, None, None, -1)) >= 50
    assert drivers.work_length("zgeqrf", (30, 20, None, 30, None, None, -1)) >= 20


@pytest.mark.parametrize("package", ["scipy", "numpy"])
def test_blas_never_gets_more_threads_than_it_had(package: str) -> None:
    (library,) = routines.libraries(package)
    before = library.threads
    with routines.limited_threads(before + 5, package):
        assert library.threads == before
        with routines.limited_threads(1, package):
            assert library.threads == 1
    assert library.threads == before


@pytest.mark.parametrize(
    "name", ["solve", "det", "slogdet", "eigvals", "eigvalsh", "svdvals", "cholesky", "lu"]
)
def test_another_thread_goes_on_while_lapack_works(name: str) -> None:
    make: Callable[[tn.Array], Any] = {
        "solve": lambda x: tn.linalg.solve(x, tn.ones(x.shape[-1])),
        "slogdet": lambda x: tn.linalg.slogdet(x).logabsdet,
        "lu": lambda x: tn.linalg.lu(x).U,
    }.get(name, getattr(tn.linalg, name))
    x = tn.asarray(definite((200, 200), "float64"))
    make(x).wait()  # what is known is replayed
    steps, stopped, ended = 0, threading.Event(), threading.Event()

    def work() -> None:
        for _ in range(3000):
            make(x).wait()
            if stopped.is_set():
                return
        ended.set()

    before = sys.getswitchinterval()
    sys.setswitchinterval(100)  # whoever holds the GIL keeps it: others go on where it is let go
    thread = threading.Thread(target=work)
    try:
        thread.start()
        while steps < 5:
            os.sched_yield()
            steps += 1
        assert not ended.is_set()
    finally:
        sys.setswitchinterval(before)
        stopped.set()
        thread.join()


def test_fallback_to_numpy_obeys_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    (library,) = routines.libraries("numpy")
    seen = []
    run_op = reference.run_op

    def watched(*given: Any) -> Any:
        seen.append(library.threads)
        return run_op(*given)

    monkeypatch.setattr(reference, "run_op", watched)
    with tn.options(threads=1):
        computed(tuple(tn.linalg.eig(tn.asarray(definite((80, 80), "float64")))))
    assert seen == [1]
