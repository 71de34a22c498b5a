"""What the emulated device leaves to the processor: a stored list, and nothing else.

After a change that shortens the list, TENFOLD_WRITE_FALLBACKS=1 writes it anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sampled_kernels import sampled, steps_of
from tenfold.core.loop_ir import THREAD_FORMS, KernelForm
from tenfold.core.op import OPS
from tenfold.dtypes import DTYPES
from tenfold.schedule.schedule_ir import Step

pytestmark = pytest.mark.cpu  # names its devices

LIST = Path(__file__).with_name("host_fallbacks.txt")
DTYPE_SAMPLE = ("float64", "int32", "complex64", "bool", "float16")
BY_THREADS = ("threads", "warps")
"""The routines of products that threads have."""


def fallback_of(step: Step) -> str | None:
    """What the processor does for a step, in place of threads."""
    if step.launch is not None:
        kernel = step.launch.kernel
        return None if kernel.block else f"kernel: {kernel.form}"
    if step.product is not None:
        return None if step.product.routine in BY_THREADS else f"product: {step.product.routine}"
    return f"call: {'+'.join(step.names)}" if step.kind == "call" else None


@pytest.mark.usefixtures("fused_multiply_add")
def test_fallbacks_are_those_of_the_list() -> None:
    found: set[str] = set()
    for operation in OPS.values():
        for dtype in DTYPE_SAMPLE:
            for pending in sampled(operation, DTYPES[dtype]):
                found.update(filter(None, map(fallback_of, steps_of(pending))))
    text = "".join(f"{line}\n" for line in sorted(found))
    if os.environ.get("TENFOLD_WRITE_FALLBACKS"):
        LIST.write_text(text)
    assert text == LIST.read_text()


def test_forms_without_threads_are_those_of_the_decision() -> None:
    """Searches and short rows are folds of rows by warps; the others are for later."""
    words = {str(form).partition(" ")[0] for form in KernelForm if form not in THREAD_FORMS}
    assert words == {"scan", "search", "scatter", "segments", "loop", "short"}
