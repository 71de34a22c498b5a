"""Opaque operators (`@tn.operator`): make a call of any Python function one lazy node.

Takes a function, returns an Op whose calls are lazy. The function runs at the wait, at most once
in an evaluation.

>>> import numpy as np, tenfold as tn
>>> @tn.operator
... def smooth(x): return np.convolve(np.asarray(x), [0.25, 0.5, 0.25], "same")
>>> (smooth(tn.asarray([0.0, 4.0, 0.0])) * 2).tolist()
[2.0, 4.0, 2.0]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array
from tenfold.core.op import Op
from tenfold.storage import dense
from tenfold.transforms.py_callback import (
    Function,
    checked_cost,
    checked_function,
    declared_name,
    opaque_op,
)


def operator(
    function: Function | None = None,
    /,
    *,
    shape: Any = None,
    dtype: Any = None,
    name: str | None = None,
    cost: float = 1.0,
    pure: bool = False,
) -> Any:
    """Make an opaque Python function an operator: `@tn.operator`, or `@tn.operator(...)`.

    The function gets its positional arguments as computed Arrays, and its keyword-only arguments
    unchanged. It returns an Array, an ndarray, or any argument of `tn.asarray`. `shape` and `dtype`
    declare the result: constants, or functions of the inputs' Types and the keyword-only
    parameters. The default is the shape and dtype of the first input. `pure` declares that the
    function has no side effects; a call with an unused result does not run in either case. `cost`
    is the cost of one element in additions.

    A bad declaration raises TypeError or ValueError. An error of the function is raised where a
    caller waits, as a RunError from the original, with the operator's name and the line of its
    call. A result of another shape or dtype than declared raises the same error.

    >>> import tenfold as tn
    >>> @tn.operator(shape=(2,), dtype=tn.int64)
    ... def extremes(x): return [int(min(x.tolist())), int(max(x.tolist()))]
    >>> extremes(tn.asarray([3.0, 1.0, 2.0])).tolist()
    [1, 3]
    """

    def declare(user_function: Function) -> Op[...]:
        checked = checked_function("tn.operator", user_function)

        return opaque_op(
            checked,
            checked,
            _value_array,
            shape=shape,
            dtype=dtype,
            name=declared_name("tn.operator", checked, name),
            cost=checked_cost("tn.operator", cost),
            pure=pure,
            public=False,
        )

    return declare if function is None else declare(function)


def _value_array(values: np.ndarray, device: str) -> Array:
    return _native.value_array(dense.adopt(values, device))
