"""Product report: how a product of a plan will be computed, and why.

Takes a Snapshot and a product step, hands on the ProductStep that the device would choose: the same
decision, from the shapes, strides and dtype of the operands in the plan.

>>> import tenfold as tn
>>> from tenfold import pipeline
>>> x = tn.asarray([[1.0, 2.0], [3.0, 4.0]])
>>> snapshot = Snapshot(pipeline.graph_of([x @ x]))
>>> product_of(snapshot, snapshot.plan.steps[0]).kind
'packet code'
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tenfold._native import Node
from tenfold.codegen.gemm.blas_call import BlasGemm
from tenfold.core.shape_rules import row_major
from tenfold.inspect.snapshot import Snapshot
from tenfold.jit.program import Source
from tenfold.runtime.blas.accumulate import transposed_operand, update_of
from tenfold.runtime.blas.multiply import register_bytes
from tenfold.runtime.blas.product_dispatch import ProductStep, product_step, update_step
from tenfold.runtime.blas.product_forms import ProductOperand, copy_order
from tenfold.runtime.lapack.dispatch import LAPACK_OPS, launch_of
from tenfold.schedule.schedule_ir import Step

BLAS = {"trsm", "trmm", "gemm", "syrk", "herk", "trsv", "gemv", "symm", "hemm"}
"""Routines of BLAS that LAPACK programs call, without the letter of the dtype."""


def product_of(snapshot: Snapshot, step: Step) -> ProductStep | None:
    """Return the product of a step; None where it is not one."""
    graph = snapshot.optimised
    node = graph.nodes[step.position]
    if node.op is None or (node.op.contraction or node.op.accumulates_into) is None:
        return None
    x1, x2 = (_operand(snapshot, item, node.type.dtype) for item in step.reads[:2])
    if node.op.accumulates_into is not None:
        return _update_product(node, x1, x2)
    types = tuple(graph.nodes[i].type for i in graph.inputs[step.position])
    contraction = node.op.contraction(types, *node.params)
    x2 = _copied_layout(x2, copy_order(contraction, x1, x2))
    return product_step(contraction, x1, x2, width=register_bytes())


def _update_product(node: Node, x1: ProductOperand, x2: ProductOperand) -> ProductStep:
    """How a gemm is computed; its addend is in row-major order."""
    shape, dtype = node.type.shape, node.type.dtype
    strides = tuple(dtype.itemsize * stride for stride in row_major(shape))
    x3 = ProductOperand(shape, strides, dtype) if node.params[-1] else None
    update = update_of(node.params, dtype, x3)
    x1, x2 = map(transposed_operand, (x1, x2), node.params[:2])
    assumed = update._replace(half=update.half.replace("either", "lower"))
    step = update_step(x1, x2, assumed, width=register_bytes())
    if assumed == update:
        return step
    reason = step.reason.replace("triangle", "triangle, or the upper, as is found when it runs")
    return replace(step, reason=reason)


def product_line(product: ProductStep) -> str:
    """Return how a product is computed: by which routine of BLAS or by generated code, and why."""
    if isinstance(product.kernel, BlasGemm):
        return f"BLAS {product.kernel.routine}: {product.reason}"
    return f"generated code: {product.reason}"


def library_of(snapshot: Snapshot, step: Step) -> str:
    """Return the routines that a call uses: of LAPACK and BLAS, else of NumPy or the user."""
    graph = snapshot.optimised
    node = graph.nodes[step.position]
    if (routines := _routines(snapshot, step, node)) != ():
        lapack = [name for name in routines if name[1:] not in BLAS]
        blas = [name for name in routines if name[1:] in BLAS]
        by_library = [("LAPACK", lapack), ("BLAS", blas)]
        return "; ".join(f"{library} {', '.join(names)}" for library, names in by_library if names)
    if node.op.opaque:
        return f"Python function {node.name}"
    return f"NumPy, reference function of {node.name}"


def _routines(snapshot: Snapshot, step: Step, node: Node) -> tuple[str, ...]:
    """The routines of a call that has a LAPACK program; empty where there is none."""
    if node.op not in LAPACK_OPS:
        return ()
    layouts = tuple((x.shape, x.strides, x.dtype) for x in _operands(snapshot, step))
    lapack_step = launch_of(node.op, node.params, layouts, node.types)
    return () if lapack_step is None else tuple(dict.fromkeys(lapack_step.kernel.routines))


def _operands(snapshot: Snapshot, step: Step) -> list[ProductOperand]:
    return [_operand(snapshot, item, snapshot.plan.items[item].dtype) for item in step.reads]


def compiled_by(snapshot: Snapshot, step: Step) -> tuple[Source, int] | None:
    """Return the source that LLVM compiles for a step, and its work; None for a plain call."""
    if step.launch is not None:
        return step.launch.kernel, step.launch.elements
    if step.position >= 0 and (product := product_of(snapshot, step)) is not None:
        return product.kernel, product.multiply_adds
    return None


def _operand(snapshot: Snapshot, item: int, dtype: np.dtype) -> ProductOperand:
    """An operand with its layout in the plan; one of another dtype is converted to row-major."""
    plan_item = snapshot.plan.items[item]
    node = snapshot.optimised.nodes[plan_item.position]
    strides = next(
        (
            result.strides
            for step in snapshot.plan.steps
            for result in step.results
            if result.item == item
        ),
        None,
    )
    if strides is None and (value := node.value()) is not None:
        strides = value.strides or None  # none: row-major
    if strides is None or plan_item.dtype != dtype:
        strides = tuple(dtype.itemsize * stride for stride in row_major(plan_item.shape))
    return ProductOperand(plan_item.shape, strides, dtype)


def _copied_layout(x: ProductOperand, order: tuple[int, ...] | None) -> ProductOperand:
    """An operand after a copy with this axis order."""
    if order is None:
        return x
    lengths = tuple(x.shape[axis] for axis in order)
    strides = dict(zip(order, row_major(lengths), strict=True))
    return x._replace(strides=tuple(x.dtype.itemsize * strides[i] for i in range(len(order))))
