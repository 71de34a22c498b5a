"""Vocabulary: the allow-list of names for expressions: operations, array methods, constants and
dtypes.

Takes: the op table and the dtypes. Hands on: a `Vocabulary`, the allow-list that `evaluate` looks
names up in. Nothing is listed here by hand that the op table knows: a new operation can be used in
an expression as soon as it is declared.

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
from tenfold.namespace.array_api_info import CONSTANTS

PROPERTIES = frozenset({"T", "mT", "shape", "ndim", "size", "dtype"})


@dataclass(frozen=True)
class Vocabulary:
    """An allow-list: only what stands in it can be reached from an expression."""

    functions: Mapping[str, Callable[..., object]]
    """Functions by name; those of a page with a dot, as `linalg.solve`."""
    methods: frozenset[str]
    properties: frozenset[str]
    names: Mapping[str, object]
    """What a bare name may mean besides an input: constants and dtypes."""
    instead: Callable[[str], str]
    """How an expression writes what NumPy has the name for; "" for other names."""
    array: type
    """The type whose methods and properties may be used, and whose elements may be subscripted."""

    @property
    def pages(self) -> frozenset[str]:
        """The parts of the namespace that have a name of their own, such as `linalg`."""
        return frozenset(name.partition(".")[0] for name in self.functions if "." in name)


def _equivalent_of(name: str) -> str:
    function = vars(np).get(name)
    operation = implementation_of(function) if callable(function) else None
    if operation is not None:
        return f"{operation.full_name}(x)"
    written = EQUIVALENTS.get(name, "").replace("tn.", "")
    return "" if "np." in written or "copy." in written else written


def vocabulary() -> Vocabulary:
    """The allow-list of what Tenfold itself offers, as the op table stands now."""
    return Vocabulary(
        functions={**OPS, "asarray": tn.asarray},
        methods=frozenset(operation.name for operation in OPS.values() if operation.method),
        properties=PROPERTIES,
        names={**CONSTANTS, **DTYPES},
        instead=_equivalent_of,
        array=tn.Array,
    )
