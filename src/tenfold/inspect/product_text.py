"""Product report: how the schedule says that a product is computed, and which routines a call uses.

Takes a Snapshot and a step, hands on text. It reads the choice of the schedule and decides nothing.

>>> import tenfold as tn
>>> from tenfold import pipeline
>>> x = tn.asarray([[1, 2], [3, 4]])
>>> product_line(Snapshot(pipeline.graph_of([x @ x])).plan.steps[0].product)
'generated code: BLAS has no int64'
"""

from __future__ import annotations

from tenfold.inspect.snapshot import Snapshot
from tenfold.jit.program import Source
from tenfold.runtime.blas.product_dispatch import bind_product
from tenfold.schedule.product_forms import ProductChoice
from tenfold.schedule.schedule_ir import Step

BLAS = {"trsm", "trmm", "gemm", "syrk", "herk", "trsv", "gemv", "symm", "hemm"}
"""Routines of BLAS that LAPACK drivers call, without the letter of the dtype."""


def product_line(product: ProductChoice) -> str:
    """Return how a product is computed: by which routine of BLAS or by generated code, and why."""
    if product.is_blas:
        return f"BLAS {product.routine}: {product.reason}"
    return f"generated code: {product.reason}"


def library_of(snapshot: Snapshot, step: Step) -> str:
    """Return the routines that a call uses: of LAPACK and BLAS, else of NumPy or the user."""
    node = snapshot.optimised.nodes[step.position]
    routines = () if step.driver is None else step.driver.routines
    if routines:
        lapack = [name for name in routines if name[1:] not in BLAS]
        blas = [name for name in routines if name[1:] in BLAS]
        by_library = [("LAPACK", lapack), ("BLAS", blas)]
        return "; ".join(f"{library} {', '.join(names)}" for library, names in by_library if names)
    if node.op.semantics.opaque:
        return f"Python function {node.name}"
    return f"NumPy, reference function of {node.name}"


def compiled_by(step: Step) -> tuple[Source, int] | None:
    """Return the source that LLVM compiles for a step, and its work; None for a plain call."""
    if step.launch is not None:
        return step.launch.kernel, step.launch.elements
    if step.product is not None:
        product = bind_product(step.product)
        return product.kernel, product.multiply_adds
    return None
