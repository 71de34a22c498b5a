"""Result memory: refuse results that do not fit in memory, before any work.

Takes the nodes that are asked for, hands on the MemoryError that waiters raise, or None. Without
it the system would end the process, once the pages of a result are written.

>>> import tenfold as tn
>>> refusal_of([_native.node_of(tn.ones((1 << 30, 1 << 15)))]).args[0].partition(",")[0]
'full: the results have 262'
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold import _native
from tenfold._native import Node
from tenfold.core.op import Op
from tenfold.dtypes import COMPLEX128
from tenfold.errors import message
from tenfold.machine import available_memory

CHECKED_BYTES = 1 << 30
"""The bytes of results from which the free memory is asked for; also in
`native/python/replay_bindings.cpp`."""
RESULTS_REMEDY = (
    "write it to a file by parts, with tn.wrap(memmap)[...] = e, or with tn.blockwise(..., out=) "
    "into a memory map or an array of zarr or h5py"
)


def refusal_of(nodes: Sequence[Node]) -> MemoryError | None:
    """Return the error of results that do not fit; views and updates have memory already."""
    if COMPLEX128.itemsize * sum([node.type.size for node in nodes]) < CHECKED_BYTES:
        return None  # as for thousands of small results
    sizes = [(_new_bytes(node), node) for node in nodes]
    total = sum(size for size, _ in sizes)
    return results_refusal(max(sizes, key=lambda pair: pair[0])[1].name, total)


def results_refusal(operation: str, num_bytes: int) -> MemoryError | None:
    """Return the error of results of that many bytes, if they do not fit."""
    if num_bytes < CHECKED_BYTES:
        return None
    free = available_memory() + _native.pool_bytes()[0]
    if num_bytes <= free:
        return None
    rule = f"the results have {_size_text(num_bytes)}, and {_size_text(free)} of memory are free"
    return MemoryError(message(operation, rule, remedy=RESULTS_REMEDY))


def _size_text(num_bytes: int) -> str:
    gibibytes = num_bytes / (1 << 30)
    return f"{gibibytes:,.1f} GiB" if gibibytes >= 1 else f"{num_bytes:,} bytes"


def _new_bytes(node: Node) -> int:
    op = node.op if node.pending else None
    if isinstance(op, Op) and (op.semantics.view or op.lowering.updates):
        return 0
    type_ = node.type
    return type_.size * type_.dtype.itemsize if node.pending else 0
