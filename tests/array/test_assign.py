"""`tn.assign`, compound operators, and views as targets."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import AliasError, DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("no_history")


def numbered(*shape: int) -> np.ndarray:
    return np.arange(float(np.prod(shape))).reshape(shape)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("=", [2.0, 4.0]),
        ("+=", [3.0, 6.0]),
        ("-=", [-1.0, -2.0]),
        ("*=", [2.0, 8.0]),
        ("/=", [0.5, 0.5]),
    ],
)
def test_saver_writes_what_its_operator_says(op: str, expected: list[float]) -> None:
    y = tn.asarray([1.0, 2.0])
    old = y * 1
    assert tn.assign(y, tn.asarray([2.0, 4.0]), op) is y
    assert (y.tolist(), old.tolist()) == (expected, [1.0, 2.0])
    assert tn.assign(y, tn.asarray([0.0, 1.0]), op, noalias=True) is y


def test_saver_broadcasts_and_converts() -> None:
    y = tn.zeros((2, 2), dtype=tn.float32)
    tn.assign(y, [1, 2])
    tn.assign(y, tn.asarray([[0.5], [1.5]]), "*=")
    assert (y.tolist(), y.dtype) == ([[0.5, 1.0], [1.5, 3.0]], tn.float32)
    tn.assign(y, np.ones((1, 2, 2)))
    assert y.tolist() == [[1.0, 1.0], [1.0, 1.0]]


VIEWS: dict[str, Callable[[Any], Any]] = {
    "slice": lambda x: x[1:, ::2],
    "slice of slices": lambda x: x[1:][:, ::-1][::2, 1:3],
    "row": lambda x: x[2],
    "transpose": lambda x: x.T,
    "permuted": lambda x: np.transpose(np.reshape(x, (2, 3, 4)), (2, 0, 1)),
    "reshape": lambda x: np.reshape(x, (2, 12)),
    "flat": lambda x: np.reshape(x, (-1,))[::5],
    "slice of a reshape of a slice": lambda x: np.reshape(x[1:4], (4, 3))[1:, ::-1],
    "transpose of a reshape": lambda x: np.reshape(x, (3, 8)).T[1:, ::2],
    "flip": np.flip,
    "mirrored": lambda x: x[::-1, ::-1],
    "diagonal": np.diagonal,
    "diagonal above, backwards": lambda x: np.diagonal(x, 1)[::-1],
    "diagonal of a reshape": lambda x: np.diagonal(np.reshape(x, (2, 3, 4)), 1, 2, 1),
    "new axes": lambda x: x[None, 1:, None, :, None],
    "squeezed": lambda x: np.squeeze(x[:, 2:3]),
    "one element": lambda x: x[3:4, 1:2],
    "nothing": lambda x: x[6:],
}


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("name", VIEWS)
def test_view_writes_through(name: str, device: str) -> None:
    move = VIEWS[name]
    theirs = numbered(6, 4)
    positions = move(np.arange(24).reshape(6, 4))
    with tn.options(device=device):
        x = tn.asarray(theirs)
        captured, other = x + 0, x[::-1]
        view = move(x)
        value = -numbered(*view.shape) - 1
        assert view.base is not None
        view[...] = value
        view += 0.5
        tn.assign(view, 2, "*=")
    theirs.reshape(-1)[positions] = (value + 0.5) * 2
    tn.testing.assert_equal_bits(x, theirs)
    tn.testing.assert_equal_bits(view, theirs.reshape(-1)[positions])
    tn.testing.assert_equal_bits(other, theirs[::-1])
    tn.testing.assert_equal_bits(captured, numbered(6, 4))


def test_reshape_that_is_no_view_is_an_array_of_its_own() -> None:
    x = tn.asarray(numbered(2, 3))
    flat = tn.reshape(x.T, (6,))
    flat[0] = 100
    assert x[0, 0].item() == 0.0
    assert flat[0].item() == 100.0


def test_parts_of_complex_numbers_write_through() -> None:
    z = tn.zeros(3, dtype=tn.complex128)
    tn.view_as_real(z)[:, 1] = [1, 2, 3]
    tn.view_as_real(z[::2])[..., 0] += 5
    assert z.tolist() == [5 + 1j, 2j, 5 + 3j]
    x = tn.zeros((2, 2))
    tn.view_as_complex(x)[1] = 3 - 4j
    assert x.tolist() == [[0.0, 0.0], [3.0, -4.0]]


def test_compound_operator_on_a_transpose_is_one_statement() -> None:
    x = tn.asarray(numbered(2, 3))
    x.T -= tn.asarray(numbered(3, 2))
    x.mT *= 2
    tn.testing.assert_equal_bits(x, (numbered(2, 3) - numbered(3, 2).T) * 2)
    x.T = tn.zeros((3, 2))
    assert x.tolist() == [[0.0] * 3] * 2


def test_every_compound_operator_writes_through_a_view() -> None:
    x, theirs = tn.arange(12), np.arange(12)
    for y in (x[1::2], theirs[1::2]):
        y += 5
        y -= 1
        y *= 3
        y //= 2
        y %= 7
        y **= 2
        y <<= 2
        y >>= 1
        y |= 8
        y &= 27
        y ^= 5
    tn.testing.assert_equal_bits(x, theirs)
    m = tn.asarray(numbered(4, 4))
    inner = m[:2, 2:]
    inner @= tn.asarray([[0.0, 1.0], [1.0, 0.0]])
    inner /= 2
    assert m[0].tolist() == [0.0, 1.0, 1.5, 1.0]


def test_elements_and_gathered_parts_are_no_views() -> None:
    x = tn.asarray([1, 2, 3])
    element, some = x[1], x[[0, 2]]
    element += 10
    some += 10
    assert (x.tolist(), element.item(), some.tolist()) == ([1, 2, 3], 12, [11, 13])


# What concat joined.


def test_assigning_to_a_concat_splits() -> None:
    p, q = tn.zeros((1, 1, 2, 2)), tn.zeros((1, 2, 2, 2))
    tn.assign(tn.concat([p, q], axis=1), tn.reshape(tn.arange(12.0), (1, 3, 2, 2)))
    assert (p.size, q.size) == (4, 8)
    assert np.asarray(p).ravel().tolist() == [0.0, 1.0, 2.0, 3.0]
    assert np.asarray(q).ravel().tolist() == [float(n) for n in range(4, 12)]


def test_joined_views_and_dtypes_write_through() -> None:
    x, y = tn.zeros(6), tn.zeros(3, dtype=tn.float32)
    both = tn.concat([x[4:], y, x[:2]])
    assert tn.assign(both, np.arange(7.0)) is both
    assert x.tolist() == [5.0, 6.0, 0.0, 0.0, 0.0, 1.0]
    assert y.tolist() == [2.0, 3.0, 4.0]
    assert both.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    tn.assign(both, 2, "*=")
    assert (x.tolist(), y.tolist()) == ([10.0, 12.0, 0.0, 0.0, 0.0, 2.0], [4.0, 6.0, 8.0])


def test_all_of_a_joined_target_is_read_before_any_is_written() -> None:
    x = tn.arange(4)
    tn.assign(tn.concat([x[:2], x[2:]]), x[::-1])
    assert x.tolist() == [3, 2, 1, 0]
    tn.assign(tn.concat([x, x]), tn.arange(8))
    assert x.tolist() == [4, 5, 6, 7]


def test_joined_target_keeps_nothing_alive_and_refuses_what_is_gone() -> None:
    p, q = tn.zeros(2), tn.zeros(3)
    both = tn.concat([p, q])
    gone = weakref.ref(p)
    del p
    gc.collect()
    assert gone() is None
    with pytest.raises(ValueError, match=r"(?s)array 1 of the joined ones has no name.*remedy"):
        tn.assign(both, 1)
    assert q.tolist() == [0.0, 0.0, 0.0]


def test_misfit_in_one_part_writes_none() -> None:
    p, q = tn.zeros(2), tn.zeros(2, dtype=tn.int64)
    for op in ("=", "+=", "/="):
        with pytest.raises(DTypeError):
            tn.assign(tn.concat([p, q]), np.full(4, 1.5), op)
    with pytest.raises(ShapeError):
        tn.assign(tn.concat([p, q]), [1, 2, 3])
    assert (p.tolist(), q.tolist()) == ([0.0, 0.0], [0, 0])


def test_concat_that_was_assigned_to_is_an_array_like_any_other() -> None:
    p, q = tn.zeros(2), tn.zeros(2)
    both = tn.concat([p, q])
    both += 1
    tn.assign(both, 5)
    assert (both.tolist(), p.tolist()) == ([5.0] * 4, [0.0, 0.0])


# What is wrong.


@pytest.mark.parametrize("op", ["", "==", "^=", "//=", None])
def test_other_operators_are_refused(op: Any) -> None:
    with pytest.raises(ValueError, match=r"assign: op .* is none of =, \+=, -=, \*=, /="):
        tn.assign(tn.zeros(2), 1, op)


def test_target_that_is_no_array_is_refused() -> None:
    for target in (np.zeros(2), [1.0], 3):
        with pytest.raises(TypeError, match=r"(?s)assign: the target is .*, not an Array.*remedy"):
            tn.assign(target, 1)
    with pytest.raises(TypeError, match="noalias 3 is not a bool"):
        tn.assign(tn.zeros(2), 1, noalias=3)  # type: ignore[arg-type]  # the point of it


def test_wrong_saver_changes_nothing() -> None:
    y, ints = tn.zeros((2, 2)), tn.asarray([1, 2])
    with pytest.raises(ShapeError):
        y += tn.zeros((3, 3))
    with pytest.raises(ShapeError, match=r"\+=: a result of shape \(3, 2, 2\)"):
        tn.assign(y[...], tn.zeros((3, 2, 2)), "+=")
    with pytest.raises(ShapeError, match=r"assign: a value of shape \(3,\)"):
        tn.assign(y, [1, 2, 3])
    with pytest.raises(DTypeError, match=r"\+=: a result of float64 cannot replace int64"):
        ints[:1] += 1.5
    with pytest.raises(DTypeError, match="/=: a result of float64"):
        tn.assign(ints, 2, "/=")
    assert (y.tolist(), ints.tolist()) == ([[0.0, 0.0], [0.0, 0.0]], [1, 2])


# Promises.

NO_ALIAS: list[tuple[str, Callable[[Any], Any], Callable[[Any], Any], bool]] = [
    ("product", lambda x: x, lambda x: x @ x, False),
    ("transpose", lambda x: x, lambda x: x.T, False),
    ("itself", lambda x: x, lambda x: x * 2, False),
    ("neighbour", lambda x: x[1:], lambda x: x[:-1], False),
    ("reshaped", lambda x: x[0], lambda x: tn.reshape(x, (-1,))[3:7], False),
    ("other rows", lambda x: x[:2], lambda x: x[2:] + 1, True),
    ("between", lambda x: x[:, ::2], lambda x: tn.exp(x[:, 1::2]), True),
    ("upside down", lambda x: x[::-1][:2], lambda x: x[:2], True),
    ("other memory", lambda x: x, lambda x: tn.ones((4, 4)) @ tn.ones((4, 4)), True),
]


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize(
    ("part", "expr", "holds"), [row[1:] for row in NO_ALIAS], ids=[row[0] for row in NO_ALIAS]
)
def test_promise_of_no_alias_is_checked_where_asked(
    part: Callable[[Any], Any], expr: Callable[[Any], Any], holds: bool, pending: bool
) -> None:
    x = tn.asarray(numbered(4, 4)) + 0
    if not pending:
        x.wait()
    theirs = numbered(4, 4)
    with tn.options(verify=True):
        if holds:
            tn.assign(part(x), expr(x), noalias=True)
        else:
            with pytest.raises(AliasError, match=r"(?s)bytes .* are written, bytes .* read by"):
                tn.assign(part(x), expr(x), noalias=True)
            tn.testing.assert_equal_bits(x, theirs)
            tn.assign(part(x), expr(x))
    y = tn.asarray(theirs)
    tn.assign(part(y), expr(y), noalias=True)
    tn.testing.assert_equal_bits(x, np.asarray(y))


# Threads.


def test_reader_sees_a_part_before_or_after_an_assignment_never_a_mixture() -> None:
    x = tn.zeros((20, 50))
    rows = x[5:10]
    stop = threading.Event()
    mixtures: list[np.ndarray] = []

    def read() -> None:
        while not stop.is_set():
            for values in (np.asarray(rows), np.asarray(x + 0)[5:10]):
                if values.min() != values.max():
                    mixtures.append(values)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for step in range(100):
        rows[...] = float(step)
        x[:5] += 1
    stop.set()
    for reader in readers:
        reader.join()
    assert not mixtures
    assert (x[7, 3].item(), x[0, 0].item(), x[12, 0].item()) == (99.0, 100.0, 0.0)


def test_promise_that_holds_needs_no_temporary() -> None:
    x, a, b = (tn.asarray(numbered(4, 4)) for _ in range(3))
    for verify in (False, True):
        with tn.options(verify=verify), tn.profile() as p:
            tn.assign(x, a @ b, noalias=True).wait()
        assert (p.temporaries, p.copies) == (0, 0)
    assert x.tolist() == (numbered(4, 4) @ numbered(4, 4)).tolist()
