"""A user's buffer is let go with the last Array and the last pending value that reads it."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native

N = 64


def read_only(memory: mmap.mmap) -> np.ndarray[Any, Any]:
    values = np.frombuffer(memory, float)
    values.flags.writeable = False
    return values


def captured(x: tn.Array) -> object:
    function = tn.function(lambda y: y * x)
    return function, function(tn.ones(N)).wait()


IMPORTS: dict[str, Callable[[mmap.mmap], tn.Array]] = {
    "wrap": lambda memory: tn.wrap(np.frombuffer(memory, float)),
    "wrap a memoryview": lambda memory: tn.wrap(memoryview(memory).cast("d")),
    "asarray": lambda memory: tn.asarray(read_only(memory)),
    "asarray without a copy": lambda memory: tn.asarray(read_only(memory), copy=False),
    "dlpack": lambda memory: tn.from_dlpack(np.frombuffer(memory, float)),
}
USES: dict[str, Callable[[tn.Array], object]] = {
    "pending": lambda x: x + 1,
    "computed": lambda x: (x + 1).wait(),
    "view": lambda x: x[2:5] * 2,
    "called": lambda x: tn.function(lambda y: y * 2)(x),
    "captured": captured,
    "pushed": lambda x: tn.engine().push(tn.operators.add, x, 1.0).get(),
    "submitted": lambda x: tn.eval(x * 2),
    "looped": lambda x: tn.scan(lambda c, y: (c + y, c), 0.0, x),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("source", IMPORTS.values(), ids=IMPORTS)
@pytest.mark.parametrize("array_goes_first", [True, False])
def test_a_buffer_can_be_closed_once_its_array_and_the_values_of_it_are_dropped(
    source: Callable[[mmap.mmap], tn.Array],
    use: Callable[[tn.Array], object],
    array_goes_first: bool,
) -> None:
    memory = mmap.mmap(-1, 8 * N)
    x = source(memory)
    y = use(x)
    if array_goes_first:
        del x
        del y
    else:
        del y
        del x
    memory.close()


def test_readers_of_a_dropped_window_keep_the_values_from_before_the_first_write() -> None:
    memory = np.arange(4.0)
    dropped, other = tn.wrap(memory), tn.wrap(memory)
    pending = dropped + 1
    del dropped
    other[0] = 10.0
    other[1] = 20.0
    assert pending.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert memory.tolist() == [10.0, 20.0, 2.0, 3.0]


def test_a_write_copies_nothing_for_readers_of_a_dropped_window_that_have_gone() -> None:
    memory = np.arange(4.0)
    dropped, other = tn.wrap(memory), tn.wrap(memory)
    pending = dropped + 1
    del dropped, pending
    before = _native.read_counters()["copies"]
    other[0] = 10.0
    assert _native.read_counters()["copies"] == before
