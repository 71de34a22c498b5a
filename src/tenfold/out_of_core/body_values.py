"""Body values: compute the instructions of a scalar IR body on ndarrays, by NumPy.

Takes a function that emits elements into a Body, and an ndarray for each of its operands. Hands on
an ndarray for each element. IEEE arithmetic, so the bits are those of kernels.

>>> from tenfold.codegen.reducers import COMBINE
>>> left, right = np.asarray([1.0, 5.0]), np.asarray([4.0, 2.0])
>>> compute_body(lambda k, x, y: COMBINE["largest"](k, (x,), (y,)), left, right)[0].tolist()
[4.0, 5.0]
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.core.cast_values import cast_values
from tenfold.core.scalar_ir import Body, Element, Instruction
from tenfold.dtypes import BOOL, kind_of

UFUNCS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "select": np.where,
}
"""The primitives that reducers use, by their names."""


def compute_body(emit: Callable[..., Sequence[Element]], *operands: np.ndarray) -> list[np.ndarray]:
    """Return the value of each element that `emit(body, *elements)` returns."""
    body = Body()
    elements = [body.load(at, x.dtype) for at, x in enumerate(operands)]
    results = emit(body, *elements)
    values: list[Any] = []
    with np.errstate(all="ignore"):
        for instruction in body.instructions:
            values.append(_value(instruction, values, operands))
    return [np.asarray(values[element.position]) for element in results]


def _value(instruction: Instruction, values: list[Any], operands: Sequence[np.ndarray]) -> Any:
    name, dtype, inputs, data = instruction
    if name == "load":
        assert isinstance(data, int), "the number of an operand"
        return operands[data]
    if name == "constant":
        if kind_of(dtype) in "iu" or dtype == BOOL:
            return dtype.type(data)
        return np.asarray(data, f"u{dtype.itemsize}").view(dtype)[()]
    (first, *_) = arguments = [values[at] for at in inputs]
    if name == "convert":
        return cast_values(np.asarray(first), dtype)
    if name == "bits":
        return np.asarray(first).view(dtype)
    return UFUNCS[name](*arguments)
