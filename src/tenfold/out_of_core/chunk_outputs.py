"""Chunk outputs: where the rows of results go, and the arrays that the caller gets.

Takes the results of a plan and the caller's `out`: an ndarray, a memory map, an array of zarr or
h5py for each result that comes in rows, or None. Without one the rows are joined in memory.

>>> target = np.zeros(3)
>>> Output(target, 0).write(1, np.asarray([5.0, 6.0]))
>>> target.tolist()
[0.0, 5.0, 6.0]
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold._native import Type
from tenfold.core.pytree import TreeDef
from tenfold.errors import AliasError, DTypeError, RunError, ShapeError, raise_if_failed
from tenfold.interop.asarray import asarray
from tenfold.out_of_core.chunk_plan import ChunkPlan, Piece
from tenfold.out_of_core.shared_bytes import is_same_array, is_same_store, memory_of, shares_bytes
from tenfold.runtime.result_memory import results_refusal


class Output:
    """The target of the rows of one result."""

    def __init__(self, target: Any, axis: int) -> None:
        self.target, self.axis, self.rows = target, axis, 0
        self.lock = threading.Lock()
        """Held while rows are written to a target whose chunks they may share, and counted."""

    def write(self, begin: int, value: np.ndarray) -> None:
        """Write rows from `begin` on."""
        end = begin + value.shape[self.axis]
        key = (*(slice(None),) * self.axis, slice(begin, end))
        if isinstance(self.target, np.ndarray):
            self.target[key] = value
        with self.lock:
            if not isinstance(self.target, np.ndarray):
                self.target[key] = value
            self.rows += end - begin

    def whole(self) -> Any:
        """Return the target. Raises RunError unless all its rows have been written."""
        length = self.target.shape[self.axis]
        if self.rows != length:
            rule = f"{self.rows} of {length} rows were written"
            raise RunError("tn.blockwise", rule, remedy="report it, with the function")
        return self.target


class Outputs:
    """The targets of all results of a plan."""

    def __init__(self, plan: ChunkPlan, structure: TreeDef, out: Any) -> None:
        self.plan, self.structure = plan, structure
        self.given = given_targets(out, structure)
        self.targets: dict[int, Output] = {}
        types = [plan.graph.nodes[at].type for at in plan.graph.outputs]
        missing = 0
        for at, (target, type_) in enumerate(zip(self.given, types, strict=True)):
            if target is not None:
                check_target(target, type_)
            elif plan.axes[plan.graph.outputs[at]] is not None:
                missing += type_.size * type_.dtype.itemsize
        _refuse_shared([target for target in self.given if target is not None])
        raise_if_failed(results_refusal("tn.blockwise", missing))
        for at, (target, type_) in enumerate(zip(self.given, types, strict=True)):
            axis = plan.axes[plan.graph.outputs[at]]
            if axis is not None:
                target = np.empty(type_.shape, type_.dtype) if target is None else target
                self.targets[at] = Output(target, axis)

    def refuse_sources(self, sources: Sequence[Any], axes: Sequence[int]) -> None:
        """Refuse a target that shows a source of which rows are read after they are written.

        A target that is the source itself takes each row where it was read, in the last pass.
        """
        keeps, plan = all(pass_.keeps_rows for pass_ in self.plan.passes), self.plan
        for at, target in enumerate(map(memory_of, self.given)):
            is_last = plan.level_after(plan.graph.outputs[at]) == len(plan.passes) - 1
            for source, axis in zip(sources, axes, strict=True):
                own = memory_of(source)
                arrays = isinstance(own, np.ndarray) and isinstance(target, np.ndarray)
                is_same = is_same_array(own, target) if arrays else is_same_store(own, target)
                in_rows = keeps and at in self.targets and self.targets[at].axis == axis
                in_place = is_same and in_rows and is_last
                if not in_place and (is_same or (arrays and shares_bytes(own, target))):
                    rule = "out is a source, or shares its memory, and rows of it are read later"
                    raise AliasError("tn.blockwise", rule, remedy="write to another array")

    def write(self, piece: Piece) -> None:
        """Write the rows of a result."""
        self.targets[piece.output].write(piece.begin, piece.value)

    def results(self, values: Sequence[np.ndarray | None]) -> list[Any]:
        """Return the targets, and for results that are whole their values."""
        results: list[Any] = []
        for at, value in enumerate(values):
            target = self.given[at]
            if value is not None and target is not None:
                target[...] = value
            joined = self.targets[at].whole() if value is None else value
            results.append(asarray(joined, copy=False) if target is None else target)
        return results


def given_targets(out: Any, structure: TreeDef) -> list[Any]:
    """Return the target of each result; None for one that is to be in memory.

    Targets stand in the tree of the results, or in one tuple or list.
    """
    if out is None or structure.type is None:
        return [out] * structure.leaves
    parts: list[Any] = [out]
    if isinstance(out, dict) and structure.type is dict:
        if out.keys() != {*structure.keys}:
            rule = f"out has the keys {[*out]}, the results {[*structure.keys]}"
            raise ShapeError("tn.blockwise", rule, remedy="name each result")
        parts = [out[key] for key in structure.keys]
    elif isinstance(out, (tuple, list)) and structure.type is not dict:
        parts = [*out]
    elif type(out) is structure.type:  # a dataclass
        parts = [getattr(out, str(name)) for name in structure.keys]
    if len(parts) == len(structure.children) and not any(part is out for part in parts):
        pairs = zip(parts, structure.children, strict=True)
        return [target for part, child in pairs for target in given_targets(part, child)]
    if len(parts) != structure.leaves:
        rule = f"out has {len(parts)} arrays for {structure.leaves} results"
        remedy = "give one for each result, in the same tuples and dicts, None for one in memory"
        raise ShapeError("tn.blockwise", rule, remedy=remedy)
    return parts


def _refuse_shared(targets: Sequence[Any]) -> None:
    """Refuse two results in the same memory."""
    memories = [*map(memory_of, targets)]
    for at, target in enumerate(memories):
        for other in memories[:at]:
            arrays = isinstance(target, np.ndarray) and isinstance(other, np.ndarray)
            if shares_bytes(other, target) if arrays else is_same_store(other, target):
                rule = "two results have one array in out"
                raise AliasError("tn.blockwise", rule, remedy="give each its own")


def check_target(target: Any, type_: Type) -> None:
    """Refuse a target that cannot take a result."""
    if not hasattr(target, "shape") or not hasattr(target, "__setitem__"):
        rule = f"out is a {type(target).__name__}, to whose slices nothing can be assigned"
        raise DTypeError("tn.blockwise", rule, remedy="give an ndarray, a memory map, zarr or h5py")
    if isinstance(target, np.ndarray) and not target.flags.writeable:
        rule = "out is read-only"
        raise AliasError("tn.blockwise", rule, remedy="open it for writing, as mode='r+'")
    shape, dtype = tuple(target.shape), np.dtype(target.dtype)
    if shape != type_.shape:
        rule = f"out has shape {shape}, the result has {type_.shape}"
        raise ShapeError("tn.blockwise", rule, remedy="create out with the shape of the result")
    if not np.can_cast(type_.dtype, dtype, "same_kind"):
        rule = f"out of {dtype} cannot hold a result of {type_.dtype}"
        raise DTypeError("tn.blockwise", rule, remedy="create out with the dtype of the result")
