"""einsum against NumPy's, and a message of its own for every wrong text."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.dtypes import DTYPES, HALF_DTYPES, kind_of

CASES = [
    ("i->i", [(3,)]),
    ("ij->ji", [(2, 3)]),
    ("ij", [(2, 3)]),
    ("ji", [(2, 3)]),
    ("bA", [(2, 3)]),
    ("ij->", [(2, 3)]),
    ("ij->i", [(2, 3)]),
    ("ij->j", [(0, 3)]),
    ("ii", [(3, 3)]),
    ("ii->i", [(3, 3)]),
    ("iij->ij", [(3, 3, 2)]),
    ("iji->j", [(3, 2, 3)]),
    ("iii->i", [(2, 2, 2)]),
    ("ijij->ij", [(2, 3, 2, 3)]),
    ("ijij->ji", [(2, 3, 2, 3)]),
    ("ijij", [(2, 3, 2, 3)]),
    ("...ii->...i", [(4, 3, 3)]),
    ("i,i", [(3,), (3,)]),
    ("i,j", [(2,), (3,)]),
    ("i,j->ji", [(2,), (3,)]),
    ("i,i->i", [(3,), (3,)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("ij,jk->ki", [(2, 3), (3, 4)]),
    ("ij,jk->", [(2, 3), (3, 4)]),
    ("ij,jk->ijk", [(2, 3), (3, 4)]),
    ("ij,ij->", [(2, 3), (2, 3)]),
    ("ij,ji->i", [(2, 3), (3, 2)]),
    ("bij,bjk->bik", [(4, 2, 3), (4, 3, 5)]),
    ("bij,bjk->ik", [(4, 2, 3), (4, 3, 5)]),
    ("bij,jk->bik", [(4, 2, 3), (3, 5)]),
    ("ijk,lk->jl", [(2, 3, 4), (5, 4)]),
    ("ii,ij->j", [(3, 3), (3, 2)]),
    ("ij,j", [(2, 0), (0,)]),
    ("ij,jk", [(2, 1), (3, 4)]),
    ("i,i->i", [(1,), (3,)]),
    ("...ij,...jk->...ik", [(4, 2, 3), (3, 5)]),
    ("...ij,...jk", [(4, 1, 2, 3), (5, 3, 2)]),
    ("...,...", [(2, 3), (3,)]),
    ("i...->...", [(2, 3, 4)]),
    ("i...->...i", [(2, 3, 4)]),
    ("...i", [(2, 3)]),
    ("...", [()]),
    ("...->...", [(2, 3)]),
    ("ij->...ij", [(2, 3)]),
    ("a...b,b...->a...", [(2, 5, 3), (3, 5)]),
    ("", [()]),
    (",", [(), ()]),
    (",ij->ij", [(), (2, 3)]),
    ("i,j,k", [(2,), (3,), (4,)]),
    ("ij,jk,kl", [(2, 3), (3, 4), (4, 5)]),
    ("ij,jk,kl->", [(2, 3), (3, 4), (4, 5)]),
    ("ij,jk,ki->", [(2, 3), (3, 4), (4, 2)]),
    ("ij,ij,ij->ij", [(2, 3), (2, 3), (2, 3)]),
    ("ij,ij,ij->i", [(2, 3), (2, 3), (2, 3)]),
    ("abc,ad,bde,ce->", [(2, 3, 4), (2, 5), (3, 5, 2), (4, 2)]),
    ("a,b,c,d,e->edcba", [(2,), (1,), (3,), (2,), (2,)]),
    (" i j , j k -> i k ", [(2, 3), (3, 4)]),
]


def numbers(shape: tuple[int, ...], dtype: np.dtype, seed: int) -> np.ndarray:
    random = np.random.default_rng((seed, *shape))
    kind = kind_of(dtype)
    if kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        limits = np.iinfo(dtype)
        return random.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    values = random.uniform(-1, 1, shape)
    if kind == "c":
        return (values + 1j * random.uniform(-1, 1, shape)).astype(dtype)
    return values.astype(dtype)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
@pytest.mark.parametrize(("text", "shapes"), CASES, ids=str)
def test_einsum_equals_numpy(text: str, shapes: Any, dtype: np.dtype) -> None:
    operands = [numbers(shape, dtype, seed) for seed, shape in enumerate(shapes)]
    result = tn.einsum(text, *(tn.asarray(x) for x in operands))
    assert result.dtype == dtype
    if kind_of(dtype) not in "fc":
        np.testing.assert_array_equal(np.asarray(result), np.einsum(text, *operands), strict=True)
        return
    wide = [x.astype(np.complex128 if kind_of(dtype) == "c" else float) for x in operands]
    expected = np.asarray(np.einsum(text, *wide))
    assert result.shape == expected.shape
    # Every product of two terms is rounded once more in a half type.
    inner = max((x.size for x in wide), default=1) + 2
    steps = len(operands) if dtype in HALF_DTYPES else 0
    eps = float(np.finfo(np.float32 if dtype in HALF_DTYPES else dtype).eps) * inner
    eps += steps * {"float16": 2.0**-10, "bfloat16": 2.0**-7}.get(str(dtype), 0.0)
    moduli = np.asarray(np.einsum(text, *map(np.abs, wide)))
    got = np.asarray(result).astype(expected.dtype)
    assert np.all(np.abs(got - expected) <= eps * (moduli + 1e-5))


def test_einsum_promotes_before_it_sums() -> None:
    small, large = np.full(300, 100, np.int8), np.asarray([0.5])
    result = tn.einsum("i,j->j", small, large)
    assert result.dtype == tn.float64
    assert result.tolist() == [15000.0]


def test_a_python_scalar_is_weak() -> None:
    result = tn.einsum(",ij->ij", 2.5, np.ones((2, 3), np.float32))
    assert result.dtype == tn.float32
    assert result.tolist() == [[2.5] * 3] * 2


def test_a_python_int_beyond_the_dtype_is_refused_not_wrapped() -> None:
    with pytest.raises(OverflowError, match="einsum: Python integer 300 is out of bounds"):
        tn.einsum("i,->i", tn.asarray([1], dtype=tn.uint8), 300)


def test_strict_dtypes_refuses_to_mix() -> None:
    x, y = tn.ones((2, 2)), tn.ones((2, 2), dtype=tn.float32)
    with tn.options(strict_dtypes=True):
        with pytest.raises(tn.errors.DTypeError, match="einsum: strict_dtypes refuses to mix"):
            tn.einsum("ij,jk", x, y)
        assert tn.einsum("ij,->ij", y, 2.0).tolist() == [[2.0, 2.0]] * 2


def test_einsum_of_one_operand_is_a_new_name() -> None:
    x = tn.asarray([1.0, 2.0])
    same = tn.einsum("i->i", x)
    assert same is not x
    assert same.tolist() == [1.0, 2.0]


def test_a_matrix_chain_is_multiplied_in_its_cheapest_order() -> None:
    shapes = [(100, 2), (2, 100), (100, 2)]
    chain = tn.einsum("ij,jk,kl", *(tn.zeros(shape) for shape in shapes))
    before = tn._native.read_counters()["multiply_adds"]
    chain.wait()
    assert tn._native.read_counters()["multiply_adds"] - before == 100 * 2 * 2 + 100 * 2 * 2


def test_many_operands() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    text = ",".join(a + b for a, b in itertools.pairwise(letters))
    matrices = [np.full((2, 2), 0.5) for _ in range(25)]
    np.testing.assert_allclose(np.asarray(tn.einsum(text, *matrices)), np.full((2, 2), 0.5))


PRODUCTS: list[tuple[str, list[tuple[int, ...]], int]] = [
    ("ij,jk->ik", [(5, 6), (6, 7)], 1),
    ("ij,kj->ik", [(5, 6), (7, 6)], 1),
    ("ji,jk->ik", [(6, 5), (6, 7)], 1),
    ("ji,kj->ki", [(6, 5), (7, 6)], 1),
    ("bij,bkj->bik", [(4, 5, 6), (4, 7, 6)], 1),
    ("bji,bjk->bik", [(4, 6, 5), (4, 6, 7)], 1),
    ("ij,bjk->bik", [(5, 6), (4, 6, 7)], 1),
    ("ijk,kl->ijl", [(4, 5, 6), (6, 7)], 1),
    ("ij,jkl->ikl", [(5, 6), (6, 7, 8)], 1),
    ("ij,kjl->ikl", [(5, 6), (7, 6, 8)], 1),
    ("ijk,jkl->il", [(4, 5, 6), (5, 6, 7)], 1),
    ("ijk,ljk->il", [(4, 5, 6), (7, 5, 6)], 1),
    ("ijk,lkj->il", [(4, 5, 6), (7, 6, 5)], 1),
    ("ikj,jkl->il", [(4, 6, 5), (5, 6, 7)], 1),
    ("bqhd,bkhd->bhqk", [(2, 5, 3, 6), (2, 7, 3, 6)], 1),
    ("bhqd,bhkd->bhqk", [(2, 3, 5, 6), (2, 3, 7, 6)], 1),
    ("bhqk,bkhd->bqhd", [(2, 3, 5, 7), (2, 7, 3, 6)], 1),
    ("abcd,edcf->abef", [(2, 3, 4, 5), (6, 5, 4, 3)], 1),
    ("abcd,bd->ac", [(2, 3, 4, 5), (3, 5)], 1),
    ("aibj,bkaj->ikab", [(4, 5, 2, 6), (2, 7, 4, 6)], 1),
    ("ij,ij->", [(5, 6), (5, 6)], 1),
    ("ij,ji->", [(5, 6), (6, 5)], 1),
    ("ij,ij->i", [(5, 6), (5, 6)], 1),
    ("ij,ij->j", [(5, 6), (5, 6)], 1),
    ("bi,bj->ij", [(4, 5), (4, 6)], 1),
    ("...ij,...jk->...ik", [(4, 5, 6), (6, 7)], 1),
    ("iij,jk->ik", [(5, 5, 6), (6, 7)], 1),
    ("i,j->ij", [(5,), (6,)], 0),
    ("bij,b->bij", [(4, 5, 6), (4,)], 0),
    ("ii->", [(5, 5)], 0),
    ("ii->i", [(5, 5)], 0),
    ("ij->ji", [(5, 6)], 0),
]
"""Each is one product at most, and whether it is."""


@pytest.mark.parametrize(("text", "shapes", "calls"), PRODUCTS, ids=str)
def test_two_operands_are_one_product_and_nothing_is_copied(
    text: str, shapes: Any, calls: int
) -> None:
    arrays = [numbers(shape, np.dtype(float), seed) for seed, shape in enumerate(shapes)]
    with tn.options(device="cpu"):
        operands = [tn.asarray(x) for x in arrays]
        result = tn.einsum(text, *operands)
        with tn.profile() as p:
            result.wait()
    assert (p.calls, p.copies, p.temporaries, p.gathers) == (calls, 0, 0, 0)
    assert p.launches <= 1
    np.testing.assert_allclose(np.asarray(result), np.einsum(text, *arrays), 1e-12)


def test_operands_in_another_order_of_memory_are_read_where_they_lie() -> None:
    x, y = numbers((6, 3, 5, 2), np.dtype(float), 0), numbers((6, 7, 3, 2), np.dtype(float), 1)
    with tn.options(device="cpu"):
        q = tn.permute_dims(tn.asarray(x), (3, 1, 2, 0))  # (b, h, q, d)
        k = tn.permute_dims(tn.asarray(y), (3, 2, 1, 0))
        scores = tn.einsum("bhqd,bhkd->bhqk", q, k)
        with tn.profile() as p:
            scores.wait()
    assert (p.calls, p.kernels, p.copies, p.temporaries) == (1, 0, 0, 0)
    np.testing.assert_allclose(np.asarray(scores), np.einsum("dhqb,dkhb->bhqk", x, y), 1e-12)


def paths() -> int:
    """How many paths are cached."""
    return next(each.entries for each in tn.caches.facts() if each.name == "einsum paths")


def test_a_text_is_read_once_for_each_dtype_and_shape() -> None:
    x, y = tn.ones((2, 3)), tn.ones((3, 4))
    tn.einsum("pq,qr->pr", x, y)
    before = paths()
    tn.einsum("pq,qr->pr", x + 1, y)
    assert paths() == before
    tn.einsum("pq,qr->pr", tn.ones((5, 3)), y)
    assert paths() == before + 1


def test_assigning_to_an_operand_later_leaves_the_result() -> None:
    x, y = tn.ones((2, 3)), tn.ones((4, 3))
    result = tn.einsum("ij,kj->ik", x, y)
    y += 1
    assert result.tolist() == [[3.0] * 4] * 2


def test_the_view_of_a_diagonal_writes_through() -> None:
    x = tn.zeros((2, 2))
    diagonal = tn.einsum("ii->i", x)
    diagonal += 5
    assert x.tolist() == [[5.0, 0.0], [0.0, 5.0]]


def test_an_axis_of_length_one_is_no_product() -> None:
    x, y = np.arange(3.0).reshape(3, 1), np.arange(4.0).reshape(1, 4)
    result = tn.einsum("ij,jk->ik", x, y)
    with tn.profile() as p:
        result.wait()
    assert p.multiply_adds == 0
    assert result.tolist() == (x @ y).tolist()


WRONG: list[tuple[str, list[tuple[int, ...]], str]] = [
    ("ij->ik", [(2, 3)], "the output letter 'k' stands in no term"),
    ("ij->ii", [(2, 3)], "the output letter 'i' stands more than once in 'ii'"),
    (
        "ij,jk",
        [(2, 3), (2, 2)],
        "the letter 'j' has length 3 in operand 1 and 2 in operand 2",
    ),
    ("ii", [(2, 3)], "the letter 'i' has length 2 in operand 1 and 3 in operand 1"),
    ("ii", [(1, 3)], "the letter 'i' has length 1 in operand 1 and 3 in operand 1"),
    ("i,i,i", [(1,), (0,), (2,)], "the letter 'i' has length 0 in operand 2 and 2 in operand 3"),
    ("ij,jk", [(2, 3)], "'ij,jk' has 2 terms for 1 operand"),
    ("ij", [(2, 3), (2, 3)], "'ij' has 1 term for 2 operands"),
    ("ij", [], "'ij' has 1 term for 0 operands"),
    ("i2", [(2, 3)], "'2' in 'i2' is not a letter"),
    ("ié", [(2, 3)], "'é' in 'ié' is not a letter"),
    ("i_", [(2, 3)], "'_' in 'i_' is not a letter"),
    ("ij->i->j", [(2, 3)], "the arrow '->' stands 2 times in 'ij->i->j'"),
    ("ij-i", [(2, 3)], "'-' in 'ij-i' is not part of an arrow"),
    ("ij>i", [(2, 3)], "'>' in 'ij>i' is not part of an arrow"),
    ("i..j", [(2, 3)], "'.' in 'i..j' is not part of an ellipsis"),
    ("....i", [(2, 3)], "'.' in '....i' is not part of an ellipsis"),
    ("...i...->i", [(2, 3)], "the ellipsis stands twice in the term '...i...' of operand 1"),
    ("...i->...i...", [(2, 3)], "the ellipsis stands twice in the output"),
    ("...i->i", [(2, 3)], "the output 'i' lacks the ellipsis that the operands have"),
    ("...i,...i", [(2, 3), (4, 3)], "an axis of the ellipsis has length 2 in operand 1 and 4 in"),
    ("ijk", [(2, 3)], "the term 'ijk' names 3 axes, operand 1 has 2"),
    ("i", [(2, 3)], "the term 'i' names 1 axis, operand 1 has 2"),
    ("i,ijk...", [(2,), (2, 3)], "the term 'ijk...' names 3 axes, operand 2 has 2"),
    ("ij->i,j", [(2, 3)], "there is a comma in the output 'i,j'"),
]


@pytest.mark.parametrize(("text", "shapes", "words"), WRONG, ids=str)
def test_wrong_text_has_its_own_message(text: str, shapes: Any, words: str) -> None:
    with pytest.raises(tn.errors.ShapeError) as caught:
        tn.einsum(text, *(tn.zeros(shape) for shape in shapes))
    assert str(caught.value).startswith("einsum: ")
    assert words in str(caught.value)


@pytest.mark.parametrize(("text", "shapes", "words"), WRONG, ids=str)
def test_numpy_refuses_the_same_text(text: str, shapes: Any, words: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # NumPy's words are its own
        np.einsum(text, *(np.zeros(shape) for shape in shapes))


def test_non_text_is_refused() -> None:
    with pytest.raises(tn.errors.DTypeError, match="subscripts are text, not Array"):
        tn.einsum(tn.zeros((2,)), tn.zeros((2,)))  # type: ignore[arg-type]


def test_non_array_is_refused() -> None:
    with pytest.raises(tn.errors.DTypeError, match="einsum: list is not an array"):
        tn.einsum("i", [1, 2])


@pytest.mark.parametrize(
    "text", ["ij,jk->ik", "ij,kj->ki", "ii,ij->j", "ij,ij->", "ij,jk", "i...,i...->..."]
)
def test_cached_text_is_right_for_other_operands(text: str) -> None:
    random = np.random.default_rng(0)
    for dtype in ("float64", "int32"):
        for _ in range(2):
            values = [(4 * random.random((3, 3))).astype(dtype) for _ in range(2)]
            x, y = map(tn.asarray, values)
            np.testing.assert_allclose(tn.einsum(text, x, y), np.einsum(text, *values))
            np.testing.assert_allclose(
                tn.einsum(text, y, y), np.einsum(text, *values[1:], values[1])
            )
            same = tn.asarray(values[0])
            np.testing.assert_allclose(
                tn.einsum(text, same, x), np.einsum(text, values[0], values[0])
            )
            np.testing.assert_allclose(
                tn.einsum(text, x.T, y[:, ::-1]), np.einsum(text, values[0].T, values[1][:, ::-1])
            )


def test_a_view_by_einsum_is_a_view_each_time() -> None:
    for _ in range(2):
        x = tn.asarray([[1.0, 2.0], [3.0, 4.0]])
        turned = tn.einsum("ij->ji", x)
        assert turned.base is x
        turned[0, 1] = 7.0
        assert x.tolist() == [[1.0, 2.0], [7.0, 4.0]]
