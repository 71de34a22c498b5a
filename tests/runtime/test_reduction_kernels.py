"""Reductions in graphs that were seen seldom: axis by axis, by loops that take any layout."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import tenfold as tn
from tenfold.jit.program import source_of
from tenfold.ops import reduce
from tenfold.ops.variance import mean_beside, squared_deviations
from tenfold.schedule.generic_reduction import GenericReduction
from tenfold.schedule.target import target_of

RANDOM = np.random.default_rng(11)
FLOAT = np.dtype(float)

SUMS = (tn.sum, tn.prod, tn.mean)
EXTREMES = (tn.max, tn.min)
TRUTHS = (tn.any, tn.all, tn.count_nonzero)
POSITIONS = (tn.argmax, tn.argmin)
SPREADS = (tn.var, tn.std)
SHAPES = ((), (1,), (31,), (32,), (1025,), (5000,), (70, 3), (3, 70), (40, 50), (33, 1100),
          (2100, 3), (1, 7), (2, 3, 4), (20, 3, 30), (64, 40, 17), (1, 4, 1, 3), (3, 2, 2, 2, 3),
          (2, 5, 1, 40))  # fmt: skip

Reduce = Callable[..., tn.Array]


def layouts(plain: np.ndarray) -> Iterator[np.ndarray]:
    """The same values as they may lie in memory, and one that is repeated along an axis."""
    yield plain
    yield np.asfortranarray(plain)
    for axis in range(plain.ndim):
        along = (slice(None),) * axis
        yield np.repeat(plain, 3, axis)[(*along, slice(None, None, 3))]
        yield np.ascontiguousarray(np.flip(plain, axis))[(*along, slice(None, None, -1))]
        yield np.broadcast_to(plain[(*along, slice(0, 1))], plain.shape)
        yield np.moveaxis(np.ascontiguousarray(np.moveaxis(plain, axis, 0)), 0, axis)


def arrays(shape: tuple[int, ...], dtype: str) -> Iterator[tn.Array]:
    """Values of a shape that are read where they lie."""
    values = RANDOM.normal(0, 3, shape)
    plain = values > 0 if dtype == "bool" else values.astype(dtype)
    for each in layouts(plain):
        each.flags.writeable = False
        yield tn.asarray(each)


def axes_of(rank: int) -> list[int | tuple[int, ...] | None]:
    several: list[int | tuple[int, ...] | None] = [(0, rank - 1), tuple(range(rank - 1))]
    return [None, *range(rank), *(several if rank > 1 else ())]


def same(make: Callable[[], tn.Array]) -> bool:
    """Whether what is computed node by node has the bits of a plan."""
    found = np.asarray(make())
    with tn.options(tier=0, threads=1):
        planned = np.asarray(make())
    assert (found.dtype, found.shape) == (planned.dtype, planned.shape)
    return found.tobytes() == planned.tobytes()


def is_single(make: Callable[[], tn.Array]) -> bool:
    return "unfused until this structure has run" in make().explain("executed")


@pytest.mark.exhaustive
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_any_layout_and_axis_has_the_bits_of_a_plan(shape: tuple[int, ...]) -> None:
    for x in arrays(shape, "float64"):
        for axis in axes_of(len(shape)):
            assert same(lambda x=x, axis=axis: tn.sum(x, axis=axis) - 2.5)


@pytest.mark.exhaustive
@pytest.mark.parametrize("op", [*SUMS, *EXTREMES, *TRUTHS, *SPREADS], ids=lambda op: op.__name__)
def test_each_operation_has_the_bits_of_a_plan(op: Reduce) -> None:
    folded = itertools.cycle((((33, 40), 0), ((40, 33), 1), ((5, 18, 3), (0, 1))))
    for dtype in ("bool", "uint8", "int64", "float16", "bfloat16", "float32", "complex64"):
        if dtype == "complex64" and op in EXTREMES:
            continue
        shape, axis = next(folded)
        x = next(arrays(shape, dtype))
        assert same(lambda x=x, axis=axis: op(x, axis=axis, keepdims=True))


@pytest.mark.parametrize("op", POSITIONS, ids=lambda op: op.__name__)
def test_positions_are_those_of_numpy(op: Reduce) -> None:
    reference = getattr(np, op.__name__)
    for shape in SHAPES[POSITIONS.index(op) :: 2]:
        for x in arrays(shape, "int8"):  # there are equal ones
            for axis in (None, *range(len(shape))):
                found = np.asarray(op(x, axis=axis))
                np.testing.assert_array_equal(found, reference(np.asarray(x), axis=axis))


def test_a_dtype_to_sum_in_is_that_of_the_result() -> None:
    x = tn.asarray(RANDOM.normal(0, 3, (40, 50)))
    for dtype in ("float32", "int16", "complex128"):
        for axis in (0, 1, None):
            assert same(lambda dtype=dtype, axis=axis: tn.sum(x, axis=axis, dtype=dtype))


def test_zeros_and_nans_are_kept() -> None:
    zeros = tn.asarray(np.full((40, 50), -0.0))
    for axis in (0, 1, None):
        assert not np.signbit(np.asarray(tn.sum(zeros, axis=axis))).any()
        assert np.signbit(np.asarray(tn.max(zeros, axis=axis))).all()
        mixed = tn.where(tn.arange(50) == 7, 0.0, zeros).wait()
        assert not np.signbit(np.asarray(tn.max(mixed, axis=1))).any()
        assert np.signbit(np.asarray(tn.min(mixed, axis=1))).all()
    spoilt = tn.where(tn.arange(50) == 31, np.nan, zeros).wait()
    for op in (*SUMS, *EXTREMES, *SPREADS):
        assert np.isnan(np.asarray(op(spoilt, axis=1))).all()
        assert np.isnan(np.asarray(op(spoilt, axis=0))).sum() == 1
    assert (np.asarray(tn.argmax(spoilt, axis=1)) == 31).all()


def test_nothing_folds_to_the_identity() -> None:
    for shape in ((0,), (3, 0), (0, 3), (2, 0, 4)):
        x = tn.asarray(np.zeros(shape))
        for axis in (0, -1, None):
            assert same(lambda x=x, axis=axis: tn.sum(x, axis=axis) + 1)
            assert same(lambda x=x, axis=axis: tn.prod(x, axis=axis) + 1)
    with pytest.raises(tn.errors.ShapeError, match="no identity"):
        tn.max(tn.asarray(np.zeros((3, 0))), axis=1)


def test_reductions_go_by_loops_that_serve_all_shapes() -> None:
    def make(x: np.ndarray) -> tn.Array:
        values = tn.asarray(x)
        centred = values - tn.mean(values, axis=1, keepdims=True)
        return tn.max(centred, axis=0) - tn.min(centred * 2, axis=0)

    assert is_single(lambda: make(RANDOM.normal(0, 1, (5, 40))))
    told = make(RANDOM.normal(0, 1, (5, 40))).explain("executed")
    assert "1. sum: a reduction kernel for any shape, axis by axis" in told
    make(RANDOM.normal(0, 1, (50, 60))).wait()
    make(RANDOM.normal(0, 1, (60, 5))).wait()  # few of them: along another axis
    make(RANDOM.normal(0, 1, (5, 60))).wait()
    with tn.profile() as p:
        for n in range(2, 10):
            make(RANDOM.normal(0, 1, (n, 70 - n))).wait()
    assert (p.compiles, p.generic_compiles) == (0, 0)
    assert p.kernels == 8 * 7


def test_a_reduction_alone_needs_no_plan() -> None:
    x = tn.asarray(RANDOM.normal(0, 1, (8, 9)))
    assert is_single(lambda: tn.sum(x, axis=0))
    assert not is_single(lambda: tn.sum(x @ x.T))
    turned = tn.asarray(np.asfortranarray(RANDOM.normal(0, 1, (8, 9))))
    turned.wait()
    for _ in range(3):  # of several axes that do not follow one another
        np.testing.assert_array_equal(
            np.asarray(tn.argmax(turned) + 0), np.argmax(np.asarray(turned))
        )


def test_results_lie_as_what_they_are_made_of() -> None:
    x = tn.asarray(RANDOM.normal(0, 1, (6, 5, 4)).transpose(2, 1, 0))
    total = tn.sum(x.wait(), axis=1).wait()
    np.testing.assert_allclose(np.asarray(total), np.asarray(x).sum(axis=1))
    assert same(lambda: tn.sum(x, axis=1, keepdims=True) * x)
    assert same(lambda: tn.sum(x, axis=0, keepdims=True) * x)


@pytest.mark.exhaustive
@pytest.mark.parametrize("op", [tn.sum, tn.max, tn.var, tn.argmax], ids=lambda op: op.__name__)
def test_threads_do_not_change_bits(op: Reduce) -> None:
    for shape in ((300, 400), (3, 40_000), (40_000, 3), (7, 90, 190), (120_000,)):
        for x in arrays(shape, "float32"):
            for axis in range(len(shape)):
                found = []
                for threads in (1, 2, 3):
                    with tn.options(threads=threads):
                        found.append(np.asarray(op(x, axis=axis) + 0.5).tobytes())
                assert len(set(found)) == 1


def test_random_programs_with_reductions_have_the_bits_of_plans() -> None:
    def make(choose: np.random.Generator, x: tn.Array, y: tn.Array) -> tn.Array:
        for _ in range(8):
            op = (tn.sum, tn.mean, tn.max, tn.min, tn.var)[choose.integers(5)]
            axis = int(choose.integers(2))
            kind = choose.integers(4)
            if kind == 0:
                x = x - op(x, axis=axis, keepdims=True)
            elif kind == 1:
                x = x.T * 0.5 + op(y, axis=axis, keepdims=bool(axis)) * 0.01
                y = y.T
            elif kind == 2:
                x = tn.tanh(x + y)
            else:
                y = y[::-1] + op(x * y, axis=axis, keepdims=True) * 0.001
        return tn.sum(x + y, axis=int(choose.integers(2)))

    for seed in range(6):
        values = np.random.default_rng(seed)
        n = int(values.integers(2, 90))
        x, y = (tn.asarray(values.normal(0, 1, (n, n))) for _ in range(2))
        assert same(lambda seed=seed, x=x, y=y: make(np.random.default_rng(seed), x, y))


@pytest.mark.parametrize("column", [False, True])
@pytest.mark.parametrize("strided", [False, True])
def test_sizes_of_kernels_stand_as_native_code_gives_them(column: bool, strided: bool) -> None:
    kernel = GenericReduction(reduce.sum, FLOAT, FLOAT, FLOAT, column, strided).kernel
    axes = 4 if column else 3
    read = [("stride", 0, axis) for axis in range(axes - (not strided))]
    written = [("stride", 1, 0), ("stride", 1, 1)]
    lengths = [("length", axis, 0) for axis in range(axes)]
    assert list(kernel.sizes) == [*lengths, *read, *written, ("part", 0, 0), ("slots", 0, 0)]


def test_loops_are_told_apart() -> None:
    loops = [
        GenericReduction(op, FLOAT, FLOAT, FLOAT, column, strided, enters, leaves)
        for op in (reduce.sum, reduce.prod, squared_deviations, mean_beside)
        for column in (False, True)
        for strided in (False, True)
        for enters, leaves in ((True, True), (True, False))
    ]
    loops = [loop for loop in loops if loop.leaves or loop.folding.order == "each"]
    assert len({str(loop) for loop in loops}) == len(loops)
    assert str(loops[0].kernel) in source_of(loops[0], target_of("native")).replace("; ", "")
