"""Functions of neural networks: element rules in other operations."""

from __future__ import annotations

from tenfold._native import Array
from tenfold.ir.declare import elementwise
from tenfold.ops.elementary import exp


@elementwise(accuracy=4)
def sigmoid(x: Array, /) -> Array:
    """1 / (1 + exp(-x)), element by element: floating dtypes, integers in float64.

    >>> import tenfold as tn
    >>> tn.sigmoid(tn.asarray([0.0])).tolist()
    [0.5]
    """
    return 1 / (1 + exp(-x))
