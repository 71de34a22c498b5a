"""What is made of a trace goes with it: its op, what is known of it, its plans."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from call_programs import several
from tenfold import _native, caches
from tenfold.transforms import batch_compiler


def op_of(call: tn.Array) -> weakref.ref[Any]:
    """The op of a pending call."""
    op = _native.node_of(call).op
    assert op.semantics.body is not None
    return weakref.ref(op)


def collected() -> None:
    for _ in range(2):
        gc.collect()
        tn.ones(1) + 1  # what native code has let go is released where Python comes by


def alone(function: Any, x: tn.Array) -> None:
    function(x).wait()


def often(function: Any, x: tn.Array) -> None:
    for _ in range(40):  # as one plan of all calls in the end
        (function(function(x)) * 2 + function(x)).wait()


def in_groups(function: Any, x: tn.Array) -> None:
    # by this thread: one that rests keeps what it has looked up last
    tn.stack([function(function(one)) for one in several(300, 4)]).wait()


def compared(function: Any, x: tn.Array) -> None:
    with tn.options(verify=True):
        in_groups(function, x)


def explained(function: Any, x: tn.Array) -> None:
    tn.explain(function(x) + 1, function(x) * 2)


def called_by_another(function: Any, x: tn.Array) -> None:
    outer = tn.function(lambda x: function(x) * function(x + 1))
    in_groups(outer, x)
    often(outer, x)


def mapped(function: Any, x: tn.Array) -> None:
    tn.vmap(function)(tn.stack([x, x])).wait()


USES = [alone, often, in_groups, compared, explained, called_by_another, mapped]


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_an_op_goes_with_its_function(use: Callable[[Any, tn.Array], None]) -> None:
    function = tn.function(lambda x: tn.tanh(x) * 3 + 1)
    op = op_of(function(tn.ones(4)))
    use(function, tn.ones(4))
    collected()
    assert op() is not None
    del function
    collected()
    assert op() is None


def test_pending_calls_keep_what_they_are_made_of() -> None:
    function = tn.function(lambda x: tn.tanh(x) * 3 + 1)
    xs = several(300, 4)
    calls = [function(function(x)) for x in xs]
    op = op_of(calls[0])
    del function
    collected()
    assert op() is not None
    tn.eval(*calls)
    for x, call in zip(xs, calls, strict=True):
        first = np.tanh(np.asarray(x)) * 3 + 1
        np.testing.assert_allclose(np.asarray(call), np.tanh(first) * 3 + 1, rtol=1e-12)
    del calls, call
    collected()
    assert op() is None


def test_traces_that_were_not_used_for_long_go() -> None:
    function = tn.function(lambda x, by: x * by)
    ops = []
    for by in range(600):
        call = function(tn.ones(4), by)
        ops.append(op_of(call))
        assert call.tolist() == [by] * 4
    collected()
    left = [number for number, op in enumerate(ops) if op() is not None]
    assert len(left) <= 256
    assert left[0] > 300
    assert function(tn.ones(4), 0).tolist() == [0.0] * 4  # traced anew
    assert function(tn.ones(4), 599).tolist() == [599.0] * 4


def test_captured_array_is_freed() -> None:
    def used() -> weakref.ref[tn.Array]:
        weights = tn.asarray([1.0, 2.0])
        function = tn.function(lambda x: x * weights)
        assert function(tn.ones(2)).tolist() == [1.0, 2.0]
        return weakref.ref(weights)

    array = used()
    collected()
    assert array() is None


def test_caches_are_as_full_as_before() -> None:
    """Of the same functions, one after the other, no more is kept than of the first ones."""

    def used() -> None:
        function = tn.function(lambda x: tn.tanh(x) * 3 + 1)
        tn.eval(*[function(x) for x in several(600, 4)])
        often(function, tn.ones(4))

    def entries() -> dict[str, int]:
        vars(batch_compiler)["_forget_queue"].clear()  # entries go when 128 others have followed
        collected()
        found = {each.name: each.entries for each in caches.facts()}
        names = ("executables", "inferred types", "batch expressions", "batch counts")
        return {name: found[name] for name in names}

    for _ in range(5):
        used()
    before = entries()
    for _ in range(5):
        used()
    # a thread of tn.eval that rests keeps what it has looked up last: one entry, not one a function
    assert all(count <= before[name] + 1 for name, count in entries().items())
