"""A loop that never looks stays flat: past `pending_depth` the graph below is computed."""

from __future__ import annotations

import pytest

import tenfold as tn
from tenfold import _native

from .long_graphs import leaf

DEFAULT = 100_000


def depth(x: tn.Array) -> int:
    return int(_native.node_of(x).depth)


def test_a_long_loop_stays_below_the_default_depth() -> None:
    turns = 3
    x, deepest, computed = leaf(), 0, 0
    before = _native.read_counters()["kernels"]
    for step in range(turns * DEFAULT):
        x = x + 1
        if step % 500 == 0:
            deepest = max(deepest, depth(x))
            kernels = _native.read_counters()["kernels"]
            computed, before = computed + (kernels > before), kernels
    assert DEFAULT - 1000 < deepest <= DEFAULT
    assert computed == turns - 1  # the last of them is below the loop's end
    assert x.tolist() == [3e5, 3e5 + 1, 3e5 + 2]


def test_compound_assignment_in_a_loop_stays_flat_too() -> None:
    x = leaf()
    with tn.options(pending_depth=100):
        for _ in range(1000):
            x += 1
            assert depth(x) <= 100
    assert x.tolist() == [1000.0, 1001.0, 1002.0]


def test_calls_in_a_loop_stay_flat_too() -> None:
    x = leaf()
    with tn.options(pending_depth=100):
        for _ in range(1000):
            x = tn.sqrt(tn.flip(x))
            assert depth(x) <= 101


def test_without_a_limit_nothing_is_computed() -> None:
    x = leaf()
    with tn.options(pending_depth=0), tn.profile() as p:
        for _ in range(2 * DEFAULT):
            x = x + 1
    assert p.launches == 0
    assert depth(x) == 2 * DEFAULT


def test_a_failure_below_the_limit_waits_for_who_asks() -> None:
    x = tn.asarray([2]) ** tn.asarray([-1])
    with tn.options(pending_depth=100):
        for _ in range(1000):
            x = x * 1
    with pytest.raises(ValueError, match="pow"):
        x.wait()


def test_held_node_is_kept_when_the_graph_below_is_computed() -> None:
    x, held = leaf(), []
    with tn.options(pending_depth=100):
        for step in range(500):
            x = x + 1
            if step % 50 == 0:
                held.append((step, x))
    for step, early in held:
        assert early.tolist() == [step + 1.0, step + 2.0, step + 3.0]
