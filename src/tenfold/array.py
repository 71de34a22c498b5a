"""Array: the methods that are not native, and the hooks by which the core calls Python.

>>> import tenfold as tn
>>> x = tn.asarray([1.0, 2.0]) * 2
>>> x.tolist()
[2.0, 4.0]
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tenfold import _native, pipeline, settings
from tenfold._native import Array, Node
from tenfold.dtypes import canonical, same_kind
from tenfold.errors import DTypeError, RunError, ShapeError, UnsupportedError, message
from tenfold.ir import declare
from tenfold.ir.op import infer, refuse_scalar
from tenfold.ops.cast import astype
from tenfold.storage import dense


def asarray(
    obj: Any, /, *, dtype: Any = None, device: str | None = None, copy: bool | None = None
) -> Array:
    """Return `obj` (nested lists, a number, an ndarray, a buffer, DLPack) as an Array.

    A writeable buffer is copied, a read-only one or a memory map shared; `copy=False` shares and is
    the caller's promise not to write; `copy=True` always copies. Raises DTypeError for text and
    objects.

    >>> import tenfold as tn
    >>> tn.asarray([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    where = settings.checked_device(device)
    wanted = None if dtype is None else canonical(dtype, "asarray")
    if isinstance(obj, Array):
        return obj if wanted is None or obj.dtype == wanted else astype(obj, wanted)
    values = obj if isinstance(obj, np.ndarray) else _from_python(obj)
    fresh = not isinstance(obj, np.ndarray)
    if fresh and copy is None and values.base is None:
        copy = False  # nobody else has it
    return _native.value_array(dense.import_values(values, where, dtype=wanted, copy=copy))


def _from_python(obj: Any) -> np.ndarray:
    if hasattr(obj, "__dlpack__") and not hasattr(obj, "__array__"):
        return np.from_dlpack(obj)
    if isinstance(obj, (list, tuple)) and _holds_arrays(obj):
        return np.asarray([np.asarray(item) for item in obj])
    return np.asarray(obj)


def _holds_arrays(items: Any) -> bool:
    return any(isinstance(item, Array) for item in items)


def value_of(array: Array, operation: str | None = None) -> np.ndarray:
    """Compute an Array and return its values, read-only; `operation` names an implicit wait."""
    node = _native.node_of(array)
    if node.pending:
        if operation is not None:
            _refuse_sync(operation)
        _native.count("syncs")
        pipeline.evaluate([array])
    value = node.value()
    assert value is not None, "evaluation publishes the value of its outputs"
    return dense.export(value)


def _refuse_sync(operation: str) -> None:
    if settings.get("strict_sync"):
        raise RunError(
            operation,
            "strict_sync refuses an implicit wait",
            remedy="call x.wait() or tn.eval(x) first",
        )


def _wait(self: Array) -> Array:
    """Compute the values and return the array itself. Raises what the computation raises."""
    value_of(self)
    return self


def _item(self: Array) -> Any:
    """Return the only element as a Python number. Raises ValueError for several."""
    if self.size != 1:
        raise ShapeError("item", f"{self.size} elements are not one", [self], "index one first")
    return value_of(self, "item").item()


def _tolist(self: Array) -> Any:
    """Return the values as nested lists of Python numbers."""
    return value_of(self, "tolist").tolist()


def _scalar_of(array: Array, form: str) -> Any:
    if array.size != 1:
        hint = "use tn.any(x) or tn.all(x)" if form == "bool" else "index one first"
        raise ShapeError(form, f"an array of {array.size} elements is no single number", [array], hint)
    item = value_of(array, form).item()
    if form == "index" and not isinstance(item, int):
        raise TypeError(message("index", f"{array.dtype} is no integer", [array], "use int(x)"))
    if form in ("int", "float") and isinstance(item, complex):
        raise TypeError(message(form, "complex numbers have two parts", [array], "take tn.real(x)"))
    return {"bool": bool, "int": int, "float": float, "index": int}[form](item)


def _convert(value: Any, peer: Any) -> Any:
    """Import a foreign operand of an operation, on the device of its peer."""
    if not isinstance(value, (np.ndarray, np.generic, bool, int, float, complex)):
        return NotImplemented
    peers = peer if isinstance(peer, tuple) else (peer,)
    device = next((p.device for p in peers if isinstance(p, Array)), None)
    return asarray(value, device=device)


def _assign(target: Array, result: Array, symbol: str) -> None:
    """`target op= e` where the result is not simply the target's next value."""
    operation = f"{symbol}="
    if target.base is not None:
        raise UnsupportedError(
            operation, "assigning through a view", [target], "assign to the base, as in x = x + e"
        )
    if result.shape != target.shape:
        rule = f"a result of shape {result.shape} cannot replace shape {target.shape}"
        raise ShapeError(operation, rule, [target], "write x = x + e to make a new array")
    if not same_kind(result.dtype, target.dtype):
        rule = f"a result of {result.dtype} cannot replace {target.dtype} (same-kind rule)"
        raise DTypeError(operation, rule, [target], "write x = x + e, or convert e with tn.astype")
    _native.rebind(target, _native.node_of(astype(result, target.dtype)))


def _origin() -> tuple[str, int]:
    """The first line outside of tenfold, from the inside out."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("tenfold."):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def _evaluate(array: Array) -> None:
    pipeline.evaluate([array])


def _get_item(array: Array, key: Any) -> Array:
    raise UnsupportedError("getitem", "indexing is not there yet", [array])


def _set_item(array: Array, key: Any, value: Any) -> None:
    raise UnsupportedError(
        "setitem", "assigning through a view", [array], "build a new array with tn.where or concat"
    )


def _format(array: Array, form: str) -> str:
    node: Node = _native.node_of(array)
    shape = ", ".join(str(length) for length in array.shape)
    state = "pending" if node.pending else "computed"
    return f"<Array {array.dtype}[{shape}] {state}, device {array.device!r}>"


def install() -> None:
    """Give the core its hooks and Array its methods; called once, at import."""
    declare.set_converter(_convert)
    _native.set_hooks(
        infer=infer,
        convert=_convert,
        refuse_scalar=refuse_scalar,
        evaluate=_evaluate,
        get_item=_get_item,
        set_item=_set_item,
        assign=_assign,
        scalar_of=_scalar_of,
        origin=_origin,
        format=_format,
    )
    Array.wait = _wait
    Array.item = _item
    Array.tolist = _tolist


def _complex(self: Array) -> complex:
    return complex(value_of(self, "complex").item())
