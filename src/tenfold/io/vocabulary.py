"""Vocabulary: the allow-list of names for expressions: operations, methods, constants and dtypes.

Takes the op table and the dtypes. Returns a `Vocabulary`, in which `evaluate` looks names up. It is
derived from the op table, so an expression can use a new operation as soon as it is declared.

    vocabulary().functions["sqrt"]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

import tenfold as tn
from tenfold.core.op import OPS
from tenfold.dtypes import DTYPES
from tenfold.interop.numpy_dispatch import EQUIVALENTS, implementation_of
from tenfold.namespace.array_api_info import API_CONSTANTS

EXPRESSION_PROPERTIES = frozenset({"T", "mT", "shape", "ndim", "size", "dtype"})


@dataclass(frozen=True)
class Vocabulary:
    """An allow-list: an expression can use these names only."""

    functions: Mapping[str, Callable[..., object]]
    """Functions by name; those of a page with a dot, as `linalg.solve`."""
    methods: frozenset[str]
    properties: frozenset[str]
    names: Mapping[str, object]
    """Constants and dtypes by name."""
    equivalent: Callable[[str], str]
    """Returns the equivalent expression for a NumPy name; "" for other names."""
    array: type
    """The type whose methods and properties may be used, and whose elements may be subscripted."""

    @property
    def pages(self) -> frozenset[str]:
        """The submodules of the namespace, such as `linalg`."""
        return frozenset(name.partition(".")[0] for name in self.functions if "." in name)


def _equivalent_of(name: str) -> str:
    function = vars(np).get(name)
    operation = implementation_of(function) if callable(function) else None
    if operation is not None:
        return f"{operation.full_name}(x)"
    equivalent = EQUIVALENTS.get(name, "").replace("tn.", "")
    return "" if "np." in equivalent or "copy." in equivalent else equivalent


def vocabulary() -> Vocabulary:
    """Return the allow-list of the current op table."""
    return Vocabulary(
        functions={**OPS, "asarray": tn.asarray},
        methods=frozenset(operation.name for operation in OPS.values() if operation.method),
        properties=EXPRESSION_PROPERTIES,
        names={**API_CONSTANTS, **DTYPES},
        equivalent=_equivalent_of,
        array=tn.Array,
    )
