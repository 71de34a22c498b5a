"""NumPy draws: a Generator of NumPy's whose numbers are Arrays, for results that must be NumPy's.

Takes a bit generator or a Generator of NumPy, hands on Arrays of the numbers that it draws at the
call: neither lazy nor inside kernels.

>>> rng = NumpyDraws(np.random.default_rng(7))
>>> rng.normal(size=2).tolist() == np.random.default_rng(7).normal(size=2).tolist()
True
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.core.trace_state import TRACE, note_wait
from tenfold.errors import UnsupportedError
from tenfold.interop.asarray import asarray
from tenfold.namespace.absent import missing_generator_attribute


class NumpyDraws:
    """Random numbers with NumPy's bits: each method is that of NumPy's Generator, computed at the
    call, and returns an Array. In a traced function it cannot be used: a trace would repeat its
    numbers.

    >>> import tenfold as tn
    >>> rng = tn.random.default_rng(np.random.PCG64(1))
    >>> rng.integers(100, size=3).tolist()
    [47, 51, 75]
    """

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def __repr__(self) -> str:
        return f"<NumpyDraws {self._generator.bit_generator.state['bit_generator']}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(self._generator, name):
            raise missing_generator_attribute(type(self).__name__, name)
        found = getattr(self._generator, name)
        return functools.partial(_draw, found) if callable(found) else found

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Shuffle an array, or a list, in place."""
        copied = np.array(x) if isinstance(x, Array) else x
        _draw(self._generator.shuffle, copied, axis)
        if copied is not x:
            x[...] = asarray(copied)

    def spawn(self, n_children: int) -> list[NumpyDraws]:
        """Return children with bit generators of their own."""
        return [*map(NumpyDraws, self._generator.spawn(n_children))]


def _draw(method: Any, *args: Any, **options: Any) -> Any:
    """Call a method of NumPy's Generator on arrays of NumPy, and return Arrays."""
    if TRACE.get() is not None:
        note_wait()
        rule = "a trace would repeat the numbers of a Generator"
        remedy = "pass a draw number, as in tn.random.normal(key, draw, ...)"
        raise UnsupportedError("random", rule, remedy=remedy)
    inputs = [np.asarray(x) if isinstance(x, Array) else x for x in args]
    named = {name: np.asarray(x) if isinstance(x, Array) else x for name, x in options.items()}
    drawn = method(*inputs, **named)
    return asarray(drawn) if isinstance(drawn, np.ndarray) else drawn


__all__ = ["NumpyDraws"]
