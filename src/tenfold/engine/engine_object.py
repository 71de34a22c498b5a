"""Engine objects: values of a user's own class, with hooks for the engine.

>>> class Names(EngineObject):
...     def __init__(self): self.names = []
>>> Names().device
'cpu'
"""

from __future__ import annotations

import copy

from tenfold.errors import DeviceError
from tenfold.storage import dense


class EngineObject:
    """A value of your own with hooks for the engine; deriving from it is optional.

    Its `device` is the host's, and `to_device(device)` refuses another one, unless the class
    defines both. `nbytes` counts it against the memory limit. `copy()` is called before an in-place
    operator changes an object with other references, `free()` when nothing refers to the object any
    more.
    """

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return 0

    @property
    def device(self) -> str:
        """The device of its arrays."""
        return dense.HOST

    def to_device(self, device: str) -> EngineObject:
        """Return the object on a device, for an operator whose first operand is there."""
        rule = f"a {type(self).__name__} is on {self.device!r}, its operator on {device!r}"
        remedy = f"define `device` and to_device(self, device) in {type(self).__name__}"
        raise DeviceError("push", rule, remedy=remedy)

    def copy(self) -> EngineObject:
        """Return an object that can be changed without this one changing."""
        return copy.deepcopy(self)

    def free(self) -> None:
        """Release its resources; called once, when it is deleted."""

    def __del__(self) -> None:
        self.free()
