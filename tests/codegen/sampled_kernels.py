"""Kernels of threads: those of the samples of all operations, on every dtype, and of folds in each
layout.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from itertools import product

import numpy as np

import tenfold as tn
from movement_samples import called
from tenfold import _native
from tenfold.codegen.simt.row_table import RowForm, RowTable
from tenfold.codegen.simt.thread_product import ThreadProduct
from tenfold.core.graph import Graph
from tenfold.core.loop_ir import Kernel
from tenfold.core.op import OPS, Operation
from tenfold.dtypes import DTYPES
from tenfold.errors import ExplainedError
from tenfold.inspect.product_text import compiled_by
from tenfold.jit.program import Source, cache_key
from tenfold.jit.ptx import ThreadKernel
from tenfold.rule_registry import optimise_graph
from tenfold.runtime.device import DEVICES
from tenfold.schedule.schedule_ir import Step

DEVICE = "emulated:0"
LAYOUTS = (((64, 96), None), ((64, 96), 0), ((64, 96), 1), ((2, 70000), 1), ((3, 40, 50), 1))
"""Shapes and folded axes: all, columns, rows, long rows, columns of a stack."""
ROW_DTYPES = ("float64", "float32", "int64", "int32", "int16", "int8")
FOLDS = (tn.sum, tn.max, tn.argmin, tn.any, tn.var)


def kernels_of(*arrays: tn.Array) -> list[Kernel]:
    """The kernels of pending arrays on the device."""
    return [source for source in sources_of(*arrays) if isinstance(source, Kernel)]


def sources_of(*arrays: tn.Array) -> list[Source]:
    """The kernels and products of pending arrays on the device."""
    return [found[0] for step in steps_of(*arrays) if (found := compiled_by(step)) is not None]


def steps_of(*arrays: tn.Array) -> tuple[Step, ...]:
    """The steps of pending arrays on the device."""
    graph, _ = optimise_graph(Graph.of([_native.node_of(array) for array in arrays]))
    plan = DEVICES[DEVICE].plan(graph)
    assert plan is not None
    return plan.steps


def pending(shape: tuple[int, ...], dtype: np.dtype) -> tn.Array:
    """An array that a kernel computes."""
    x = tn.asarray(np.ones(shape).astype(dtype), device=DEVICE)
    return tn.logical_not(x) if dtype == np.bool_ else x + x


def common_words(text: str) -> list[str]:
    """The functions of threads, without their heads, in the words that all targets have."""
    text = re.sub(r"(%\S+)\.global = load ptr addrspace\(1\), ptr (\S+)\n +\1 = addrspacecast.*",
                  r"\1 = load pointer, ptr \2", text)  # fmt: skip
    text = re.sub(r"load ptr, ptr", "load pointer, ptr", text)
    text = re.sub(r"call i32 (%shuffle\(ptr %status, |@llvm.nvvm.shfl.sync.idx.i32\(i32 -1, )"
                  r"(i32 \S+, i32 [^\s,)]+)(, i32 31)?\)", r"shuffle \2", text)  # fmt: skip
    text = re.sub(r"call void (%barrier\(ptr %status\)|@llvm.nvvm.barrier.*)", "barrier", text)
    head = r"(%unit = add i64 %block.first, %thread.wide|\.thread\(.*i64 %unit\) \{\nentry:)\n"
    head += r"( *%(?:shuffle|barrier)(?:.slot)? = .*\n)*"
    return [re.split(r"\n\}", body)[0] for body in re.split(head, text)[3::3]]


def sampled(operation: Operation[...], dtype: np.dtype) -> Iterator[tn.Array]:
    """The pending results of an operation's samples, for a dtype that it takes."""
    for sample in operation.samples if operation.public else ():
        arrays = [pending(shape, dtype) for shape in sample.shapes]
        try:
            made = called(operation, operation.public_signature, arrays, sample)
        except (ExplainedError, TypeError, ValueError):
            continue  # not for this dtype
        for each in made if isinstance(made, (tuple, list)) else (made,):
            if isinstance(each, tn.Array) and each.device == DEVICE:
                yield each


def expressions(dtype: np.dtype) -> Iterator[tn.Array]:
    """Each operation behind an operation on elements, and folds in each layout."""
    for operation in OPS.values():
        yield from sampled(operation, dtype)
    if dtype != np.bool_:
        yield tn.matrix_transpose(pending((64, 96), dtype)) + pending((96, 64), dtype)
        yield tn.tril(pending((96, 96), dtype)) @ pending((96, 64), dtype)
        yield pending((96, 64), dtype) @ tn.triu(pending((64, 64), dtype))
    for shape, axis in LAYOUTS:
        x = pending(shape, dtype)
        for fold in FOLDS:
            try:
                yield fold(x, axis=axis)
            except (ExplainedError, TypeError):
                continue


def all_kernels() -> list[ThreadKernel]:
    """All different kernels, in an order that depends on each of them alone."""
    kernels: dict[bytes, ThreadKernel] = {}
    for dtype in DTYPES.values():
        for expression in expressions(dtype):
            for source in sources_of(expression):
                if isinstance(source, ThreadProduct) or (
                    isinstance(source, Kernel) and source.block
                ):
                    assert isinstance(source, ThreadKernel)
                    kernels[hashlib.sha256(cache_key(source).encode()).digest()] = source
    for form, dtype in product(RowForm, ROW_DTYPES):
        rows = RowTable(form, DTYPES[dtype])
        kernels[hashlib.sha256(repr(rows).encode()).digest()] = rows
    return [kernels[digest] for digest in sorted(kernels)]
