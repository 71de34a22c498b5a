"""Loops and branches of many members: under tn.vmap, and in groups of equal calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.testing import assert_equal_bits

from .loop_bodies import collatz, decay, numbers, steps_of


def test_a_scan_of_members_is_a_scan_of_each() -> None:
    xs, init, w = numbers(6, 5, 3), numbers(6, 3), tn.asarray(numbers(3))

    def one(c: Any, x: Any) -> Any:
        return tn.scan(lambda c, v: (tn.tanh(c + v) * w, (c, v * 2)), c, x, reverse=True)

    found = tn.vmap(one)(tn.asarray(init), tn.asarray(xs))
    for number in range(6):
        carry, (first, second) = one(tn.asarray(init[number]), tn.asarray(xs[number]))
        assert_equal_bits(found[0][number], carry)
        assert_equal_bits(found[1][0][number], first)
        assert_equal_bits(found[1][1][number], second)


@pytest.mark.parametrize("axes", [(0, None, None), (None, 0, None), (None, None, 0), (0, 0, None)])
def test_operands_shared_by_members_of_a_scan(axes: tuple[int | None, ...]) -> None:
    def given(axis: int | None, number: int) -> tn.Array:
        return tn.asarray(numbers(3, 5 + number) if axis == 0 else numbers(5 + number))

    def one(c: Any, x: Any, o: Any) -> Any:
        return tn.scan(lambda s, v: ((s[0] + v, s[1] * o[0]), (s[0], v)), (c[:4], 1.0), x)

    arguments = [given(axis, number) for number, axis in enumerate(axes)]
    found = tn.vmap(one, in_axes=axes)(*arguments)
    for number in range(3):
        own = [x if axis is None else x[number] for x, axis in zip(arguments, axes, strict=True)]
        wanted = one(*own)
        for a, b in zip((*found[0], *found[1]), (*wanted[0], *wanted[1]), strict=True):
            assert_equal_bits(a[number], b)


def test_members_of_a_while_loop_have_the_bits_of_each_alone() -> None:
    a = np.abs(numbers(50)) * 10.0 ** np.arange(-25, 25)

    def root(a: Any) -> Any:
        return tn.while_loop(
            lambda s: tn.abs(s[0] * s[0] - a) > 1e-12 * a,
            lambda s: ((s[0] + a / s[0]) / 2, s[1] + 1),
            (tn.asarray(1.0), 0),
        )

    found = tn.vmap(root)(tn.asarray(a))
    alone = [root(tn.asarray(each)) for each in a]
    assert_equal_bits(found[0], np.array([x.item() for x, _ in alone]))
    assert found[1].tolist() == [n.item() for _, n in alone]
    assert len(set(found[1].tolist())) > 5
    assert tn.vmap(collatz)(tn.arange(1, 30)).tolist() == [steps_of(n) for n in range(1, 30)]


def test_members_that_share_the_condition_end_together() -> None:
    def grown(x: Any) -> Any:
        return tn.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * x), (0, 1.0))

    n, powers = tn.vmap(grown)(tn.asarray([1.0, 2.0, 3.0]))
    assert n.tolist() == [5, 5, 5]
    assert powers.tolist() == [1.0, 32.0, 243.0]


def test_no_members_at_all() -> None:
    assert tn.vmap(collatz)(tn.zeros((0,), dtype=tn.int64)).tolist() == []
    found = tn.vmap(lambda c, x: tn.scan(decay, c, x))(tn.zeros((0, 2)), tn.ones((0, 3, 2)))
    assert [each.shape for each in found] == [(0, 2), (0, 3, 2)]


def test_members_choose_each_for_itself() -> None:
    chosen, x = np.array([True, False, True]), numbers(3, 2)

    def one(p: Any, x: Any) -> Any:
        return tn.cond(p, lambda x: {"a": x * 2, "b": 1.0}, lambda x: {"a": -x, "b": tn.sum(x)}, x)

    found = tn.vmap(one)(tn.asarray(chosen), tn.asarray(x))
    assert_equal_bits(found["a"], np.where(chosen[:, None], x * 2, -x))
    assert found["b"].tolist() == [1.0, tn.sum(tn.asarray(x[1])).item(), 1.0]


def test_members_that_share_pred_compute_one_branch() -> None:
    def one(m: Any) -> Any:
        return tn.cond(tn.asarray(False), tn.linalg.inv, lambda m: m + 1, m)

    assert tn.vmap(one)(tn.zeros((3, 2, 2))).tolist() == [[[1.0, 1.0]] * 2] * 3


def test_maps_of_maps_of_loops() -> None:
    table = tn.vmap(tn.vmap(lambda n, k: collatz(n) + k, in_axes=(None, 0)), in_axes=(0, None))
    found = table(tn.arange(1, 8), tn.arange(3))
    assert found.tolist() == [[steps_of(n) + k for k in range(3)] for n in range(1, 8)]


def test_a_map_in_a_loop() -> None:
    rows = tn.vmap(lambda x: tn.sum(x) * x)
    carry, _ = tn.scan(lambda c, _: (rows(c), None), tn.asarray([[1.0, 0.0], [0.0, 2.0]]), length=3)
    assert carry.tolist() == [[1.0, 0.0], [0.0, 256.0]]


def test_calls_in_groups_compute_one_branch_of_each() -> None:
    @tn.function
    def safe(m: tn.Array, regular: tn.Array) -> tn.Array:
        made: tn.Array = tn.cond(regular, tn.linalg.inv, lambda m: m, m)
        return made * 2

    matrices = [np.eye(2) * (i % 3) for i in range(60)]
    made = [safe(tn.asarray(m), tn.asarray(m[0, 0] > 0)) for m in matrices]
    for found, m in zip(tn.eval(*made), matrices, strict=True):
        assert_equal_bits(found, (np.linalg.inv(m) if m[0, 0] else m) * 2)


def test_a_member_that_fails_fails_alone_in_a_group() -> None:
    @tn.function
    def inverse(m: tn.Array) -> tn.Array:
        made: tn.Array = tn.scan(lambda c, _: (tn.linalg.inv(c), None), m, length=2)[0]
        return made

    made = [inverse(tn.eye(2) * (i % 7)) for i in range(40)]
    tn.eval(*made)
    for i, each in enumerate(made):
        if i % 7:
            np.testing.assert_allclose(np.asarray(each), np.eye(2) * (i % 7), rtol=1e-12)
        else:
            with pytest.raises(tn.errors.LinAlgError):
                each.wait()
