"""View materialisation: copies strided vectors before a matrix is multiplied with them.

Takes the items of a graph and their readers, hands on whether an item is copied first. Such an item
is strided in memory, as a column of a matrix, and is read by a product with a far larger matrix.
Its rows are multiplied by packets of contiguous elements: the copy costs less than it saves.

>>> import numpy as np
>>> import tenfold as tn
>>> x = tn.asarray(np.ones((200, 200)))
>>> with tn.options(device="cpu"), tn.profile() as p:
...     y = (x @ x[:, 2]).wait()
>>> p.calls, p.kernels
(1, 1)
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.core.graph import Graph
from tenfold.core.index_map import compose_view, identity
from tenfold.schedule.schedule_ir import ItemKind, ScheduleItem

SIZE_RATIO, LEAST_ELEMENTS = 16, 1 << 13
"""The least ratio of the sizes of matrix and vector, and the fewest elements of the matrix. Order
256 took 17 us with the copy and 24 without, order 64 as long either way."""


def needs_copy(
    graph: Graph, items: Sequence[ScheduleItem], users: Sequence[int], number: int
) -> bool:
    """Whether a view is a strided vector that `users` multiply with a large matrix."""
    item = items[number]
    if len(item.shape) != 1 or not _multiplies_matrix(graph, items, users, item.size):
        return False
    access = identity(item.shape)
    while item.kind is ItemKind.VIEW:
        access = compose_view(access, item.reads)
        item = items[item.inputs[0]]
    for position, (axis, coefficient, _) in enumerate(access):
        if axis == 0:
            return coefficient != 1 or any(length > 1 for length in item.shape[position + 1 :])
    return False


def _multiplies_matrix(
    graph: Graph, items: Sequence[ScheduleItem], users: Sequence[int], size: int
) -> bool:
    """Whether a product reads it with an operand many times as large."""
    for user in users:
        item = items[user]
        if (
            item.kind is ItemKind.CALL
            and graph.nodes[item.position].op.rewriting.contraction is not None
        ):
            factors = item.inputs[:2]
            return any(items[i].size >= max(SIZE_RATIO * size, LEAST_ELEMENTS) for i in factors)
    return False
