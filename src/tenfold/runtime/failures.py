"""Failures: the exception of an instruction that failed in the executor.

Takes the Failure of a run of one operation and its node, hands on the exception for the waiters: it
names the operation and the user's line. The executor says which instruction failed and why. If a
kernel refuses its operands, the reference device computes the operation again and words the error.

>>> import tenfold as tn
>>> x = tn.asarray([[1.0, 2.0], [2.0, 4.0]])
>>> try:
...     _ = tn.linalg.inv(x).wait()
... except tn.errors.LinAlgError as error:
...     str(error).partition(" (")[0]
'inv: Singular matrix: x, float64'
"""

from __future__ import annotations

from typing import NoReturn

from tenfold._native import Failure, Node
from tenfold.core.graph import Graph
from tenfold.runtime.reference import Reference, ReferenceFailure
from tenfold.settings import device_failure


def error_of(failure: Failure, node: Node) -> Exception | None:
    """Return the exception of a failed operation; None if the reference device computes it."""
    error = failure.error
    if (failed := device_failure(node.name, node.type.device)) is not None:
        return failed
    if failure.cause == "memory" or isinstance(error, MemoryError):
        named = MemoryError(f"{node.name}: {error or f'no memory for {failure.nbytes} bytes'}")
        named.__cause__ = error
        return named
    if isinstance(error, ReferenceFailure):
        return error.error_at(node)
    if error is not None:
        return error
    return Reference(node.type.device).run(Graph.of([node]))


def raise_device_failure(device: str) -> NoReturn:
    """Raise the error of a device that computes no more; native code calls it."""
    failed = device_failure("memory", device)
    assert failed is not None, "it has failed for good"
    raise failed
