"""Random products of matrices against NumPy: every dtype, any strides, stacks that broadcast,
vectors, lengths of 0, views that tenfold makes and views that are imported.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import tenfold as tn
from tenfold.dtypes import BOOL, DTYPES, HALF_DTYPES, kind_of, promote_dtypes

LENGTHS = (0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64, 65, 100, 130)
SEEDS = range(36)
CPUS = ("native", "x86-64-v3", "x86-64-v2")


def values(random: Random, dtype: np.dtype, shape: list[int]) -> np.ndarray:
    """Small whole numbers, whose products and sums are exact; integers over all their range."""
    draw = np.random.default_rng(random.getrandbits(32))
    if dtype == BOOL:
        return draw.random(shape) < 0.4
    if kind_of(dtype) in "iu":
        limits = np.iinfo(dtype)
        return draw.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    whole = draw.integers(-3, 4, shape).astype(np.float32)
    if kind_of(dtype) == "c":
        return (whole + 1j * draw.integers(-3, 4, shape)).astype(dtype)
    return whole.astype(dtype)


def lying(random: Random, dtype: np.dtype, shape: list[int]) -> tuple[np.ndarray, tn.Array]:
    """An array in some layout, and the same made of an array in row-major order or imported."""
    order = list(range(len(shape)))
    if random.random() < 0.4:
        random.shuffle(order)
    steps = [random.choice([1, 1, 1, 2, 3, -1, -2]) for _ in shape]
    whole = values(random, dtype, [abs(steps[axis]) * shape[axis] for axis in order])
    back = tuple(order.index(axis) for axis in range(len(shape)))
    parts = tuple(
        slice(None, None, step) if step > 0 else slice(None, -1 - length * -step, step)
        for step, length in zip(steps, shape, strict=True)
    )
    moved = whole.transpose(back)[parts]
    whole.flags.writeable = False
    moved.flags.writeable = False
    made = tn.permute_dims(tn.asarray(whole), back)[parts] if shape else tn.asarray(whole)
    if random.random() < 0.15 and len(shape) > 1 and shape[0] > 0:
        moved = np.broadcast_to(moved[:1], moved.shape)
        made = tn.broadcast_to(made[:1], made.shape)
    return moved, made if random.random() < 0.5 else tn.asarray(moved)


def shapes(random: Random) -> tuple[list[int], list[int]]:
    m, k, n = (random.choice(LENGTHS) for _ in range(3))
    stack = [random.choice([1, 2, 3, 3, 0, 40]) for _ in range(random.choice([0, 0, 0, 1, 2, 3]))]
    if np.prod(stack) > 20:
        m, k, n = min(m, 9), min(k, 9), min(n, 9)
    first, second = (
        [1 if random.random() < 0.25 else length for length in stack][random.choice([0, 0, 1]) :]
        for _ in range(2)
    )
    left, right = [*first, m, k], [*second, k, n]
    if not first and random.random() < 0.25:
        left = [k]
    if not second and random.random() < 0.25:
        right = [k]
    return left, right


def check(found: tn.Array, x: np.ndarray, y: np.ndarray) -> None:
    dtype = promote_dtypes(x.dtype, y.dtype)
    wide = np.dtype(np.float32) if dtype in HALF_DTYPES else dtype
    expected = np.asarray(np.matmul(x.astype(wide), y.astype(wide))).astype(dtype)
    where = (x.dtype, y.dtype, x.shape, y.shape, x.strides, y.strides)
    assert (found.shape, found.dtype) == (expected.shape, dtype), where
    whole = kind_of(dtype) in "biu" or not any(kind_of(z.dtype) in "iu" for z in (x, y))
    if whole:  # every sum is exact
        np.testing.assert_array_equal(np.asarray(found), expected, str(where))
        return
    larger = np.complex128 if kind_of(dtype) == "c" else np.float64
    got, right = np.asarray(found).astype(larger), expected.astype(larger)
    moduli = np.matmul(abs(x.astype(larger)), abs(y.astype(larger)))
    eps = {"float16": 2.0**-10, "bfloat16": 2.0**-7}.get(str(dtype)) or float(np.finfo(dtype).eps)
    finite = np.isfinite(got) & np.isfinite(right)
    assert np.all(finite | (dtype in HALF_DTYPES)), where
    assert np.all(abs(got - right)[finite] <= (2 * x.shape[-1] + 2) * eps * moduli[finite]), where


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # halves overflow
def test_random_products_equal_numpy(seed: int) -> None:
    random = Random(seed)
    cpu = CPUS[seed % len(CPUS)]
    names = sorted(DTYPES)
    with tn.options(device="cpu", cpu=cpu):
        for _ in range(20):
            first = random.choice(names)
            second = first if random.random() < 0.7 else random.choice(names)
            left, right = shapes(random)
            x, x1 = lying(random, DTYPES[first], left)
            y, x2 = lying(random, DTYPES[second], right)
            check(x1 @ x2, x, y)
