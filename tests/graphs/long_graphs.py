"""Long graphs: chains, fans and ladders of any number of operations, and a small stack."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

import numpy as np

import tenfold as tn

T = TypeVar("T")
MILLION = 10**6
"""The operations of the largest graphs: two tests make such ones."""
MANY = 10**5


def leaf() -> tn.Array:
    return tn.asarray(np.arange(3.0))


def chain(operations: int) -> tn.Array:
    """`x + 1 + 1 + ...`: as deep as it is large."""
    x = leaf()
    with tn.options(pending_depth=0):
        for _ in range(operations):
            x = x + 1
    return x


def fan(operations: int) -> tn.Array:
    """Half the operations read one leaf; the others add their results pairwise: wide and flat."""
    x = leaf()
    layer = [x + 1 for _ in range((operations + 1) // 2)]
    while len(layer) > 1:
        odd = layer[-1:] if len(layer) % 2 else []
        layer = [a + b for a, b in zip(layer[::2], layer[1::2], strict=False)] + odd
    return layer[0]


def ladder(operations: int) -> tn.Array:
    """Each operation reads the one before twice: 2**operations paths lead down."""
    x = leaf()
    with tn.options(pending_depth=0):
        for _ in range(operations):
            x = tn.maximum(x, x)
    return x


def on_small_stack(function: Callable[[], T]) -> T:
    """Run a function on a thread with a stack of 256 KiB, where deep recursion dies."""
    found: list[T] = []
    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=lambda: found.append(function()))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    return found[0]
