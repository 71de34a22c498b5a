"""Loops: one kernel for each operation, its dtypes and how its operands lie, and no more."""

from __future__ import annotations

from itertools import product

import numpy as np

from tenfold.dtypes import FLOAT32, FLOAT64
from tenfold.ops.arithmetic import add, multiply
from tenfold.ops.cast import astype
from tenfold.schedule.generic_elementwise import GenericElementwise

INT64 = np.dtype(np.int64)


def test_numbers_of_any_kind_beside_an_array_have_one_loop() -> None:
    loops = {
        GenericElementwise(
            add, (), ((FLOAT32, False), (number, True)), (FLOAT32,) * 2, FLOAT32, "1"
        )
        for number in (INT64, FLOAT64)
    }
    assert len(loops) == 1


def test_loops_of_one_text_have_one_kernel_and_those_of_two_have_two() -> None:
    dtypes, kernels = (FLOAT32, FLOAT64, INT64), {}
    for op, own, scalar, steps in product((add, multiply), dtypes, dtypes, "1s0"):
        for entering in (own, FLOAT64):
            inputs = (own, False), (scalar, True)
            loop = GenericElementwise(op, (), inputs, (entering,) * 2, entering, steps)
            assert kernels.setdefault(loop.text, loop.kernel) == loop.kernel
    for source, target in product(dtypes, repeat=2):
        loop = GenericElementwise(astype, (target,), ((source, False),), (source,), target, "1")
        assert kernels.setdefault(loop.text, loop.kernel) == loop.kernel
    assert len(set(kernels.values())) == len(kernels)
