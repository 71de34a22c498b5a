"""Array: its Python methods, and the hooks by which the native core calls Python.

>>> import tenfold as tn
>>> x = tn.asarray([1.0, 2.0]) * 2
>>> x.tolist()
[2.0, 4.0]
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np

from tenfold import _native, pipeline
from tenfold._native import Array
from tenfold.array import array_function, array_ufunc, ndarray_methods
from tenfold.core import op_decorators
from tenfold.core.inference import infer, refuse_scalar
from tenfold.core.interpreter import ORIGIN
from tenfold.core.op import Kind
from tenfold.core.structure import Structure
from tenfold.errors import DTypeError, ForeignDTypeError, message, raise_if_failed
from tenfold.interop import display, dlpack, materialize, pickling, scipy_sparse
from tenfold.interop.asarray import asarray, from_dlpack
from tenfold.mutation.assign import assign, assign_result, view_setter
from tenfold.mutation.external_buffer import wrap
from tenfold.mutation.setitem import set_item
from tenfold.mutation.view_writethrough import advance
from tenfold.ops import rounding
from tenfold.ops.assignment import set_at
from tenfold.ops.complex import imag, real
from tenfold.ops.create import full
from tenfold.ops.gathering import gather
from tenfold.ops.indexing import get_item, index, iterate
from tenfold.ops.movement import matrix_transpose, transpose
from tenfold.storage import kinds
from tenfold.submission import eval  # noqa: A004  # the settled public name

API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
"""Of the array API standard; each contains those before it."""


IMPORTED = (np.ndarray, np.generic, bool, int, float, complex)
"""Operand types that are imported. Lists are not: they would be converted anew at each use."""


def _import_operand(value: Any, peer: Any) -> Any:
    """Import a foreign operand of an operation, on the device of its peer."""
    if not isinstance(value, IMPORTED):
        return NotImplemented
    peers = peer if isinstance(peer, tuple) else (peer,)
    device = next((p.device for p in peers if isinstance(p, Array)), None)
    return asarray(value, device=device)


def _convert_operand(value: Any, peer: Any) -> Any:
    """As `_import_operand`, for an operator: with other elements NumPy computes it
    (`interop/foreign_operands.py`).
    """
    try:
        return _import_operand(value, peer)
    except ForeignDTypeError:
        return NotImplemented


def _refuse_operand(operation: str, operands: tuple[Any, ...]) -> None:
    """Refuse the first operand that is neither an array nor a number."""
    foreign = next((x for x in operands if not isinstance(x, (Array, *IMPORTED))), None)
    arrays = [x for x in operands if isinstance(x, Array)]
    if foreign is None:  # elements that only NumPy holds
        for operand in operands:
            try:
                asarray(operand)
            except DTypeError as error:
                raise error.completed(operation, arrays[:8]) from None
    raise op_decorators.not_an_array_error(foreign, operation).completed(operation, arrays[:8])


def compare_object(self: Array, other: Any, differs: bool) -> Any:
    """Return for each element whether it equals an object, or `differs`, as NumPy: an object that
    compares itself with arrays answers; None and text equal no number; others wait for the values.

    >>> import tenfold as tn
    >>> (tn.asarray([0, 1]) == None).tolist(), (tn.asarray([0, 1]) != "a").tolist()
    ([False, False], [True, True])
    """
    if other is None or isinstance(other, (str, bytes)):
        return full(self.shape, differs, dtype=np.bool_, device=self.device)
    kind: Any = type(other)
    answer = kind.__ne__(other, self) if differs else kind.__eq__(other, self)
    if answer is not NotImplemented:
        return answer
    values: Any = materialize.value_of(self, "!=" if differs else "==")
    return asarray(values != other if differs else values == other, device=self.device)


def _evaluate_all(arrays: tuple[Array, ...]) -> None:
    raise_if_failed(pipeline.evaluate(arrays))


def _evaluate(array: Array) -> None:
    raise_if_failed(pipeline.evaluate([array]))


def array_namespace(_self: Array, *, api_version: str | None = None) -> ModuleType:
    """Return the tenfold module: the functions of the array API standard for this array.

    Raises ValueError for a version of the standard that tenfold does not have.

    >>> import tenfold as tn
    >>> tn.asarray([1]).__array_namespace__(api_version="2025.12") is tn
    True
    """
    if api_version is not None and api_version not in API_VERSIONS:
        rule = f"version {api_version!r} of the array API standard is not supported"
        remedy = f"the versions are: {', '.join(API_VERSIONS)}"
        raise ValueError(message("__array_namespace__", rule, remedy=remedy))
    return sys.modules["tenfold"]


def contains(self: Array, value: object) -> bool:
    """Whether an element equals `value`; computes, and waits."""
    if isinstance(value, (list, tuple)):
        value = asarray(value)
    matches: object = self == value
    return isinstance(matches, Array) and bool(np.any(materialize.value_of(matches, "in")))


def kind_of_node(self: Array) -> Kind:
    """The kinds of its operation: VALUE, MAP, VIEW or CONTRACTION, combined by bitwise or."""
    return Kind(_native.node_of(self).kind)


def storage(self: Array) -> str:
    """What is known of its matrices (..., n, n), such as "lower"; "dense" if nothing is.

    The words are those of `tn.assume`, "identity", "permutation", "selection" and "hermitian", and
    the names of the storage kinds, such as "csr". They
    stay after `wait`, and follow from what operations do: see `docs/algebra.md`.

    >>> import tenfold as tn
    >>> x = tn.tril(tn.ones((2, 2))).wait()
    >>> x.storage, (x.T * 2).storage, (x + 1).storage
    ('lower', 'upper', 'dense')
    """
    kind = kinds.storage_kind(self)
    return kind.name if kind else Structure(_native.node_of(self).type.structure).word


def nnz(self: Array) -> int:
    """The number of elements that an array of a storage kind stores.

    Raises AttributeError for a dense array: `tn.count_nonzero` counts.
    """
    if kinds.storage_kind(self) is None:
        raise AttributeError("nnz: the array is dense; tn.count_nonzero(x) counts its elements")
    return kinds.components(self)[0].size


def _get_item(self: Array, key: Any) -> Any:
    """The hook of `x[key]`."""
    return kinds.item_of(self, key) if _native.has_kind(self) else get_item(self, key)


def to_dlpack(
    self: Array,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """Return a DLPack capsule of a copy of the values, which is counted in `copies`. Waits.

    With `copy=False` the values themselves are lent, flagged read-only: not to write to them is the
    consumer's promise. On a device of NVIDIA nobody waits: `stream` is ordered behind what computes
    the values. Raises BufferError for a device that is neither the array's own nor the CPU, and
    for a stream that the device has not.
    """
    own = dlpack.device_number(self.device)
    if dlpack.check_request(stream, dl_device, copy, own) and own != dlpack.CPU:
        value = materialize.computed_value(self, "__dlpack__")
        return dlpack.export_memory(value, stream, max_version, copy)
    values = materialize.value_of(self, "__dlpack__")
    return dlpack.export_values(values, max_version=max_version, copy=copy)


def dlpack_device(self: Array) -> tuple[int, int]:
    """Return DLPack's number of the device: (1, 0), the CPU, or (2, n), that of cuda:n."""
    return dlpack.device_number(self.device)


def matrices_transposed(self: Array) -> Array:
    """The matrices (..., m, n) transposed, a view of shape (..., n, m)."""
    return matrix_transpose(self)


def real_parts(self: Array) -> Array:
    """The real parts, a view; of a real array itself."""
    return real(self) if self.dtype.kind == "c" else self


def imag_parts(self: Array) -> Array:
    """The imaginary parts, a view; of a real array 0, read-only."""
    return imag(self)


def set_imag_parts(self: Array, value: Any) -> None:
    """Write the imaginary parts. Raises TypeError for a real array, which has none."""
    if self.dtype.kind != "c":
        rule = "array does not have imaginary part to set"
        raise TypeError(message("imag", rule, [self], "make it complex first, with tn.astype"))
    view_setter(imag_parts)(self, value)


def rounded(self: Array, ndigits: int | None = None) -> Array:
    """Return `round(x)`: the elements rounded to whole numbers or digits, in the dtype of `x`."""
    result: Array = rounding.round(self) if ndigits is None else METHODS["round"](self, ndigits)
    return result


def explained(
    self: Array,
    stage: str | None = None,
    *,
    analyze: bool = False,
    format: str = "text",  # noqa: A002  # a settled name
) -> str:
    """Return how the array is (to be) computed: see tn.explain.

    >>> import tenfold as tn
    >>> print(tn.sum(tn.asarray([1.0]) * 2).explain("scheduled").splitlines()[0])
    scheduled: 1 kernel, 0 calls, 0 temporaries
    """
    from tenfold.inspect.explain import explain  # imported only where it is used

    return explain(self, stage=stage, analyze=analyze, format=format)


PROPERTIES = ndarray_methods.PROPERTIES | {
    "kind": property(kind_of_node),
    "nnz": property(nnz),
    "storage": property(storage),
    "T": property(transpose, view_setter(transpose)),
    "imag": property(imag_parts, set_imag_parts),
    "mT": property(matrices_transposed, view_setter(matrices_transposed)),
    "real": property(real_parts, view_setter(real_parts)),
}
METHODS = ndarray_methods.METHODS | {
    "item": materialize.item,
    "tolist": materialize.tolist,
    "explain": explained,
    "to_dense": kinds.to_dense,
    "to_scipy": scipy_sparse.to_scipy,
    "__array__": materialize.to_ndarray,
    "__array_function__": array_function.array_function,
    "__array_namespace__": array_namespace,
    "__array_ufunc__": array_ufunc.array_ufunc,
    "__complex__": materialize.to_complex,
    "__contains__": contains,
    "__copy__": pickling.rename,
    "__deepcopy__": pickling.deep_rename,
    "__dlpack__": to_dlpack,
    "__dlpack_device__": dlpack_device,
    "__format__": display.format_array,
    "__iter__": iterate,
    "__reduce__": pickling.reduce,
    "__round__": rounded,
    "_repr_html_": display.to_html,
}


def install() -> None:
    """Give the core its hooks and Array its methods; called once, at import."""
    op_decorators.set_converter(_import_operand)
    op_decorators.set_reader(materialize.value_of)
    _native.set_hooks(
        infer=infer,
        convert=_convert_operand,
        refuse_scalar=refuse_scalar,
        evaluate=_evaluate,
        evaluate_all=_evaluate_all,
        get_item=_get_item,
        set_item=set_item,
        assign=assign_result,
        advance=advance,
        scalar_of=materialize.scalar_of,
        origin=ORIGIN,
        format=display.represent,
        refuse_operand=_refuse_operand,
        wait=materialize.wait,
        apply_to_kinds=kinds.apply_to_kinds,
    )
    _native.set_slice_ops(index.id, set_at.id, gather.id)
    for name, function in METHODS.items():
        setattr(Array, name, function)
    for name, property_ in PROPERTIES.items():
        setattr(Array, name, property_)
    Array.__array_priority__ = 0.0  # as an ndarray; Dask reads that of each chunk


__all__ = ["Array", "asarray", "assign", "eval", "from_dlpack", "install", "wrap"]
