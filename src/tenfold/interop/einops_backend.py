"""einops backend: lets the functions of einops take Arrays.

einops finds the backend of an array among the subclasses of its `AbstractBackend`.
`interop/import_hooks.py` declares the subclass for Arrays when einops is imported.

>>> import einops
>>> import tenfold as tn
>>> einops.rearrange(tn.zeros((2, 3, 4)), "a b c -> (a c) b").shape
(8, 3)
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.dtypes import kind_of
from tenfold.ops.arange import arange
from tenfold.ops.einsum import einsum
from tenfold.ops.joining import concat, stack
from tenfold.ops.movement import expand_dims
from tenfold.ops.tile_repeat_roll import tile


def declare_backend(backends: ModuleType) -> None:
    """Declare the backend of Arrays as a subclass of `AbstractBackend`, which einops looks up."""
    abstract: Any = backends.AbstractBackend

    class TenfoldBackend(abstract):  # type: ignore[misc]  # a class of another library
        """The operations that einops needs; it has methods of arrays by itself."""

        framework_name = "tenfold"

        def is_appropriate_type(self, tensor: object) -> bool:
            return isinstance(tensor, Array)

        def from_numpy(self, x: np.ndarray) -> Array:
            from tenfold.interop.asarray import asarray

            return asarray(x)

        def to_numpy(self, x: Array) -> np.ndarray:
            return np.asarray(x)

        def arange(self, start: int, stop: int) -> Array:
            return arange(start, stop)

        def stack_on_zeroth_dimension(self, tensors: Sequence[Array]) -> Array:
            return stack([*tensors])

        def tile(self, x: Array, repeats: tuple[int, ...]) -> Array:
            return tile(x, repeats)

        def concat(self, tensors: Sequence[Array], axis: int) -> Array:
            return concat([*tensors], axis=axis)

        def add_axis(self, x: Array, new_position: int) -> Array:
            return expand_dims(x, new_position)

        def is_float_type(self, x: Array) -> bool:
            return kind_of(x.dtype) == "f"

        def einsum(self, pattern: str, *x: Array) -> Array:
            return einsum(pattern, *x)

    backends.TenfoldBackend = TenfoldBackend  # type: ignore[attr-defined]  # keeps the class alive
