"""einops backend: lets the functions of einops take Arrays, whichever of the two is imported first.

einops finds the backend of an array among the subclasses of its `AbstractBackend`. The subclass for
Arrays is declared when einops is imported, which Tenfold itself never does.

>>> import einops
>>> import tenfold as tn
>>> einops.rearrange(tn.zeros((2, 3, 4)), "a b c -> (a c) b").shape
(8, 3)
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
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

MODULE = "einops._backends"
"""The module of einops that declares its backends."""


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


class _AfterImport(MetaPathFinder):
    """Declares the backend after the import of `MODULE`; then it is gone."""

    def find_spec(
        self, name: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                declare_backend(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]  # of this one
        return spec


def install() -> None:
    """Declare the backend now if einops is imported, else when it is."""
    backends = sys.modules.get(MODULE)
    if backends is not None:
        declare_backend(backends)
    else:
        sys.meta_path.insert(0, _AfterImport())
