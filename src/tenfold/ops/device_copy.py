"""Device copies (`x.to_device`): the values of an array in the memory of another device.

Takes an array and the name of a device, hands on a pending array of that device. The graph is
computed in parts, each on one device (`runtime/graph_chunks.py`).

>>> import tenfold as tn
>>> x = tn.asarray([1.0, 2.0]).to_device("emulated:1")
>>> x.device, (x + x).tolist()
('emulated:1', [2.0, 4.0])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.op import BoundCall, Inferred, SampleCall
from tenfold.core.op_decorators import array, as_stack, derived, operation
from tenfold.core.structure import same_structure
from tenfold.errors import message
from tenfold.settings import checked_device


def _rule(types: tuple[Type, ...], _device: str) -> Inferred:
    return Inferred(((types[0].shape, types[0].dtype),), (types[0].dtype,))


def _reference(x: np.ndarray, _device: str, stream: None = None) -> np.ndarray:
    return x


@operation(
    rule=_rule,
    structure=same_structure,
    reference=_reference,
    moves=True,
    name="to_device",
    rebind=lambda x, device: BoundCall((x,), (checked_device(device, "to_device"),)),
    public=False,
    portable=True,
    batch_params=as_stack,
    vjp=lambda g, y, x, device: (to_device(g, x.device),),  # type: ignore[has-type]  # below
)
def _copied(x: Array, /, device: str) -> BoundCall:
    """Return the values of `x` in memory of a device."""
    return BoundCall((x,), (device,))


@derived(
    reference=_reference,
    samples=[SampleCall(((2, 3),), {"device": "emulated:1"})],
    method=True,
)
def to_device(x: Array, /, device: str, *, stream: Any = None) -> Array:
    """Return `x` on another device, where what is made of it is computed: shape (...), its dtype.

    The copy is made when a value is asked for. `stream` must be None. Raises DeviceError for a
    device that does not exist, ValueError for a stream.

    >>> import tenfold as tn
    >>> tn.to_device(tn.asarray([1]), "reference").device
    'reference'
    """
    x = array(x)
    target_device = checked_device(device, "to_device")
    if stream is not None:
        rule = f"stream {stream!r} is not None"
        raise ValueError(message("to_device", rule, [x], remedy="leave stream out"))
    return x if target_device == x.device else _copied(x, target_device)
