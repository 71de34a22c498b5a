"""Display: the `repr`, HTML, `str` and `format` text of an Array.

Takes an Array, returns text. `repr` and HTML compute nothing, and their cost does not depend on the
expression; `str` and formats show values, so they wait.

>>> from tenfold.interop.asarray import asarray
>>> asarray([1.0, 2.0]) + 1
<Array float64[2] pending add, depth 1, device 'cpu'>
"""

from __future__ import annotations

import math

import numpy as np

from tenfold import _native
from tenfold._native import Array
from tenfold.core.graph import type_text
from tenfold.errors import message
from tenfold.interop.materialize import value_of
from tenfold.storage import dense, kinds

EDGE = 3
THRESHOLD = 200
MAX_SHOWN = 1000
"""Limit of shown elements: an array of many axes has many edges."""


def _summary(array: Array) -> str:
    node = _native.node_of(array)
    if kind := kinds.storage_kind(array):
        parts = kinds.components(array)
        texts = [
            f"{name} {type_text(_native.node_of(part).type)}"
            for name, part in zip(kind.component_names, parts, strict=True)
        ]
        stored = f"{type_text(node.type)} {kind.name} of {', '.join(texts)}"
        return f"Array {stored}, device {array.device!r}"
    if node.pending:
        state = f"pending {node.name}, depth {node.depth}"
    else:
        state = "computed" if node.value() is not None else "traced"
    return f"Array {type_text(node.type)} {state}, device {array.device!r}"


def _values_text(array: Array) -> str | None:
    """Return the shortened values as text; None if not computed or too many to show."""
    value = _native.node_of(array).value()
    if value is None or math.prod(min(n, 2 * EDGE + 1) for n in array.shape) > MAX_SHOWN:
        return None
    return np.array2string(
        dense.export_or_copy(value),
        threshold=THRESHOLD,
        edgeitems=EDGE,
        max_line_width=88,
        separator=", ",
        prefix="Array(",
    )


def represent(array: Array, form: str = "repr") -> str:
    """Return `repr` (computes nothing) or `str` (waits) of an Array.

    Of a storage kind they show its components.
    """
    if kind := kinds.storage_kind(array):
        if form != "str":
            return f"<{_summary(array)}>"
        lines = [_summary(array)]
        for name, part in zip(kind.component_names, kinds.components(array), strict=True):
            values = value_of(part, "str")
            lines.append(f"  {name}: {np.array2string(values, threshold=EDGE, edgeitems=EDGE)}")
        return "\n".join(lines)
    if form == "str":
        values = value_of(array, "str")
        return str(values.item()) if values.ndim == 0 else np.array2string(values)
    values_text = _values_text(array)
    if values_text is None:
        return f"<{_summary(array)}>"
    shape = f", shape={array.shape}" if array.size == 0 and array.ndim != 1 else ""
    return f"Array({values_text}{shape}, dtype={array.dtype})"


def to_html(self: Array) -> str:
    """Return the array as HTML for notebooks; computes nothing."""
    import html  # imported only for notebooks

    head = f"<code>{html.escape(_summary(self))}</code>"
    values_text = _values_text(self)
    return (
        f"<div>{head}</div>"
        if values_text is None
        else f"<div>{head}<pre>{html.escape(values_text)}</pre></div>"
    )


def format_array(self: Array, specification: str) -> str:
    """Format the only element of an array as Python formats the number; waits."""
    if not specification:
        return str(self)
    if self.ndim:
        rule = f"format {specification!r} needs a single number, not shape {self.shape}"
        raise TypeError(
            message("format", rule, [self], "index one element, or print np.asarray(x)")
        )
    return format(value_of(self, "format").item(), specification)
