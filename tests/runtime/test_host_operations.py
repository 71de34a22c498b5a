"""What the host computes for a device whose memory it cannot read: a stored list of operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from movement_samples import called
from tenfold import _native, pipeline
from tenfold.core.op import OPS
from tenfold.errors import ExplainedError
from tenfold.inspect.snapshot import Snapshot

DEVICE = "emulated:0"
# LAPACK, Fourier transforms, sorts, samples by rejection, and forms without a kernel, such as
# `pad` with reflected values. Table.
ON_HOST = """
arange argmax argmin argsort beta binomial cond det dirichlet eig eigh eigvals eigvalsh expm
factors fft fftn hfft hypergeometric ifft ifftn ihfft inv irfft irfftn isin linspace
logarithm_of_determinant logseries lu multinomial multivariate_hypergeometric norm pad poisson
qr reshape rfft rfftn roll searchsorted sign_of_determinant solve sort sqrtm stack
standard_gamma svd svdvals to_device triangular_solve vonmises zipf
""".split()


def values(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(len(shape) + sum(shape))
    return (rng.integers(1, 9, shape) / (1 if dtype == "int32" else 8)).astype(dtype)


def calls_of(arrays: Sequence[Any]) -> Iterator[str]:
    """The operations that the plan of pending arrays leaves to the host, on some elements."""
    pending = [x for x in arrays if isinstance(x, tn.Array) and _native.node_of(x).pending]
    snapshot = Snapshot(pipeline.graph_of(pending)) if pending else None
    if snapshot is None or not snapshot.has_schedule:
        return
    for step in snapshot.plan.steps:
        node = snapshot.optimised.nodes[step.position]
        sizes = [type_.size for each in (node, *node.inputs) for type_ in each.types]
        if step.kind == "call" and step.product is None and all(sizes):
            yield node.name


@pytest.mark.usefixtures("fused_multiply_add")  # without it elementary functions are calls
def test_operations_on_the_host_are_those_of_the_list() -> None:
    found: set[str] = set()
    for operation in OPS.values():
        for sample in operation.samples if operation.public else ():
            for dtype in ("float64", "int32"):
                with tn.options(device=DEVICE), suppress(ExplainedError, TypeError, ValueError):
                    arrays = [tn.asarray(values(shape, dtype)) for shape in sample.shapes]
                    made = called(operation, operation.public_signature, arrays, sample)
                    found.update(calls_of(made if isinstance(made, (tuple, list)) else (made,)))
    assert sorted(found) == ON_HOST


def test_explain_says_what_the_host_computes_and_copies_are_counted() -> None:
    x = tn.asarray([3.0, 1.0, 2.0], device=DEVICE)
    assert "computed on the host: operands and results are copied" in tn.sort(x).explain()
    with tn.profile() as p:
        tn.sort(x).wait()
    assert p.copies == 2
    with tn.profile() as p:
        (x + 1).wait()
    assert p.copies == 0


def test_explain_says_the_device_of_each_part() -> None:
    x = tn.exp(tn.asarray([1.0, 2.0])).to_device(DEVICE)
    assert (x * 2 + 1).explain("scheduled").splitlines() == [
        "scheduled: on several devices, in parts",
        "  cpu: exp",
        "  emulated:0: to_device",
        "  emulated:0: multiply, add",
    ]
