"""Named intermediates: what a schedule does with the live nodes that nothing asks for.

Takes a Snapshot, hands on a line for each: it is stored, passed through, or rewritten away, with
the bytes that a store takes and the work to compute it later.

>>> import tenfold as tn
>>> from tenfold import pipeline
>>> x = tn.asarray([1.0, 2.0])
>>> doubled = x * 2
>>> result = doubled + 1
>>> print(*named_lines(Snapshot(pipeline.graph_of([result]))))
  named %2 = multiply float64[2]: passed through; to store 16 bytes, to compute it later 2 elements
"""

from __future__ import annotations

from collections.abc import Iterator

from tenfold.core.graph import type_text
from tenfold.inspect.snapshot import Snapshot
from tenfold.inspect.text_format import count_text, in_bytes
from tenfold.schedule.schedule_ir import ItemKind

MAX_NAMED = 20
"""The most intermediates that are listed."""


def named_lines(snapshot: Snapshot) -> Iterator[str]:
    """Yield the line of each live node that nothing asks for."""
    graph = snapshot.graph
    named = graph.named()
    if not named:
        return
    outcomes = _Outcomes(snapshot)
    for at in named[:MAX_NAMED]:
        node = graph.nodes[at]
        stored_bytes = node.type.size * node.type.dtype.itemsize
        yield (
            f"  named %{at} = {node.name} {type_text(node.type)}: {outcomes.text(at)}; "
            f"to store {in_bytes(stored_bytes)}, to compute it later {outcomes.work_text(at)}"
        )
    if len(named) > MAX_NAMED:
        yield f"  ... {count_text(len(named) - MAX_NAMED, 'more named intermediate')} ..."


class _Outcomes:
    """The decisions of a schedule about the nodes of the original graph."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.graph, self.plan = snapshot.graph, snapshot.plan
        optimised, report = snapshot.rewritten
        self.positions = {node: at for at, node in enumerate(optimised.nodes)}
        self.positions.update(report.replaced_nodes)

    def text(self, at: int) -> str:
        """Return what happens to a node."""
        position = self.positions.get(self.graph.nodes[at])
        if position is None:
            return "rewritten away"
        return "stored" if self._is_stored(at) else "passed through"

    def work_text(self, at: int) -> str:
        """Return the work to compute a node from values and from what this evaluation stores."""
        multiply_adds, elements = 0, 0
        visited, worklist = {at}, [at]
        while worklist:
            position = worklist.pop()
            work = self.graph.multiply_adds(position)
            multiply_adds += work
            inputs = self.graph.inputs[position]
            if not work:
                elements += max([self.graph.nodes[i].type.size for i in (position, *inputs)])
            for i in inputs:
                if i not in visited and self.graph.nodes[i].pending and not self._is_stored(i):
                    visited.add(i)
                    worklist.append(i)
        parts = [f"{multiply_adds:,} multiply-adds"] if multiply_adds else []
        parts += [f"{elements:,} element{'s' * (elements != 1)}"] if elements else []
        return " and ".join(parts)

    def _is_stored(self, at: int) -> bool:
        """Whether this evaluation gives a node its value."""
        position = self.positions.get(self.graph.nodes[at])
        if position is None:
            return False
        item = self.plan.items_at[position]
        return item in self.plan.live_out or self.plan.items[item].kind is ItemKind.VALUE


__all__ = ["named_lines"]
