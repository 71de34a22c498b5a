"""More alignment than an element's is claimed only where it is proved, or tested at run time."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tenfold as tn
from product_launch import product_step, scaled_step
from tenfold import _native
from tenfold.codegen.llvm.module_emitter import render
from tenfold.codegen.llvm.verify_alignment import verify_alignment
from tenfold.core.graph import Graph
from tenfold.core.op import Contraction
from tenfold.core.structure import Half
from tenfold.dtypes import COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, INT64
from tenfold.errors import VerifyError
from tenfold.schedule.product_forms import ProductOperand, ScaledProduct
from tenfold.schedule.schedule import schedule_graph
from tenfold.schedule.target import target_of

MATRICES = Contraction(((1,), (0,)), ((0,), (1,)))


def streamed() -> str:
    """A map of more than the cache holds, which stores past it."""
    x = tn.asarray(np.zeros(4_000_000))
    launch = schedule_graph(Graph.of([_native.node_of(x + 1.0)])).steps[0].launch
    assert launch is not None, "it is a kernel"
    assert launch.kernel.streamed
    return render(launch.kernel, target_of("x86-64-v4").simd)


def a_product(dtype: np.dtype = FLOAT64, width: int = 32, order: int = 100) -> str:
    x = ProductOperand((order, order), (dtype.itemsize * order, dtype.itemsize), dtype)
    return product_step(MATRICES, x, x, width=width).text


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64, COMPLEX64, COMPLEX128, INT64], ids=str)
@pytest.mark.parametrize("width", [16, 32, 64])
def test_alignment_of_scratch_memory_of_products_is_proved(dtype: np.dtype, width: int) -> None:
    for order in (3, 20):
        assert verify_alignment(a_product(dtype, width, order)) > 0


def test_alignment_of_half_products_is_proved() -> None:
    x = ProductOperand((100, 100), (800, 8), FLOAT64)
    for half in Half:
        step = scaled_step(x, x, ScaledProduct(half=half), width=32)
        assert verify_alignment(step.text) > 0


def test_stores_past_the_cache_are_tested_at_run_time() -> None:
    assert verify_alignment(streamed()) > 0


def test_store_past_the_cache_without_its_test_is_refused() -> None:
    text, changed = re.subn(r"and i64 (%\w+), 63", r"and i64 \1, 31", streamed())
    assert changed
    with pytest.raises(VerifyError, match="aligned to 64 is claimed"):
        verify_alignment(text)


def test_store_past_the_cache_at_another_address_than_the_tested_is_refused() -> None:
    text, changed = re.subn(r"ptrtoint ptr %\w+", "ptrtoint ptr %scratch", streamed())
    assert changed
    with pytest.raises(VerifyError, match="aligned to 64 is claimed"):
        verify_alignment(text)


def test_panel_one_element_off_is_refused() -> None:
    moved = "getelementptr i8, ptr %scratch, i64 "
    text, changed = re.subn(rf"({moved}\d+)", r"\g<1>8", a_product())
    assert changed
    with pytest.raises(VerifyError, match="is a multiple of 8 bytes, but aligned to 32"):
        verify_alignment(text)
