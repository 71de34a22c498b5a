"""Names that are NumPy's own objects: dtypes, constants, printing, files, error states. Table.

Takes the names from NumPy. Functions that print or store values get the values of Arrays.

>>> float32 is np.float32
True
>>> array_str(np.zeros(2))
'[0. 0.]'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import (
    False_,
    ScalarType,
    True_,
    base_repr,
    binary_repr,
    bool,
    bool_,
    broadcast,
    busday_count,
    busday_offset,
    busdaycalendar,
    byte,
    bytes_,
    cdouble,
    char,
    character,
    clongdouble,
    complex64,
    complex128,
    complex256,
    csingle,
    datetime64,
    datetime_as_string,
    datetime_data,
    double,
    dtype,
    dtypes,
    e,
    emath,
    euler_gamma,
    exceptions,
    finfo,
    flexible,
    float16,
    float32,
    float64,
    float128,
    format_float_positional,
    format_float_scientific,
    get_include,
    get_printoptions,
    getbufsize,
    geterr,
    geterrcall,
    half,
    iinfo,
    inf,
    info,
    int8,
    int16,
    int32,
    int64,
    int_,
    intc,
    intp,
    is_busday,
    isdtype,
    issubdtype,
    little_endian,
    long,
    longdouble,
    longlong,
    memmap,
    mintypecode,
    nan,
    ndindex,
    nditer,
    nested_iters,
    newaxis,
    object_,
    pi,
    poly1d,
    polynomial,
    printoptions,
    promote_types,
    rec,
    recarray,
    record,
    sctypeDict,
    set_printoptions,
    setbufsize,
    seterrcall,
    short,
    show_config,
    show_runtime,
    single,
    str_,
    strings,
    testing,
    timedelta64,
    typecodes,
    typename,
    typing,
    ubyte,
    uint,
    uint8,
    uint16,
    uint32,
    uint64,
    uintc,
    uintp,
    ulong,
    ulonglong,
    ushort,
    void,
)

from tenfold._native import Array
from tenfold.errors import UnsupportedError
from tenfold.numpy.arguments import Immediate, export, imported
from tenfold.numpy.ufuncs import Ufunc

__all__ = [
    "False_",
    "ScalarType",
    "True_",
    "apply_along_axis",
    "apply_over_axes",
    "array2string",
    "array_repr",
    "array_str",
    "base_repr",
    "binary_repr",
    "bool",
    "bool_",
    "broadcast",
    "busday_count",
    "busday_offset",
    "busdaycalendar",
    "byte",
    "bytes_",
    "cdouble",
    "char",
    "character",
    "clongdouble",
    "complex64",
    "complex128",
    "complex256",
    "complexfloating",
    "csingle",
    "datetime64",
    "datetime_as_string",
    "datetime_data",
    "double",
    "dtype",
    "dtypes",
    "e",
    "emath",
    "errstate",
    "euler_gamma",
    "exceptions",
    "finfo",
    "flexible",
    "float16",
    "float32",
    "float64",
    "float128",
    "floating",
    "format_float_positional",
    "format_float_scientific",
    "frompyfunc",
    "generic",
    "get_include",
    "get_printoptions",
    "getbufsize",
    "geterr",
    "geterrcall",
    "half",
    "iinfo",
    "inexact",
    "inf",
    "info",
    "int8",
    "int16",
    "int32",
    "int64",
    "int_",
    "intc",
    "integer",
    "intp",
    "is_busday",
    "isdtype",
    "issubdtype",
    "little_endian",
    "long",
    "longdouble",
    "longlong",
    "memmap",
    "mintypecode",
    "nan",
    "ndarray",
    "ndenumerate",
    "ndindex",
    "nditer",
    "nested_iters",
    "newaxis",
    "number",
    "object_",
    "packbits",
    "pi",
    "poly1d",
    "polynomial",
    "printoptions",
    "promote_types",
    "rec",
    "recarray",
    "record",
    "save",
    "savetxt",
    "savez",
    "savez_compressed",
    "sctypeDict",
    "set_printoptions",
    "setbufsize",
    "seterr",
    "seterrcall",
    "short",
    "show_config",
    "show_runtime",
    "signedinteger",
    "single",
    "str_",
    "strings",
    "testing",
    "timedelta64",
    "typecodes",
    "typename",
    "typing",
    "ubyte",
    "ufunc",
    "uint",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uintc",
    "uintp",
    "ulong",
    "ulonglong",
    "unpackbits",
    "unsignedinteger",
    "ushort",
    "vectorize",
    "void",
]  # fmt: skip


class _ScalarKind(type):
    """The type of NumPy's abstract scalar types that Arrays without axes are instances of, too."""

    def __instancecheck__(cls, value: object) -> Any:
        kind = cls.__mro__[1]
        if type(value) is not Array:
            return isinstance(value, kind)
        return not value.ndim and issubclass(value.dtype.type, kind)

    def __subclasscheck__(cls, other: type) -> Any:
        return issubclass(other, cls.__mro__[1])


def _scalar_kind(kind: type) -> Any:
    return _ScalarKind(kind.__name__, (kind,), {"__doc__": kind.__doc__})


generic, number, integer, signedinteger, unsignedinteger, inexact, floating, complexfloating = map(
    _scalar_kind,
    (
        *(np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger),
        *(np.inexact, np.floating, np.complexfloating),
    ),
)
REFUSED = {"raise", "call"}
"""Reactions to floating-point errors that results of later evaluations cannot have."""
ndarray = Array
ufunc = Ufunc

apply_along_axis = Immediate(np.apply_along_axis)
apply_over_axes = Immediate(np.apply_over_axes)
array2string = Immediate(np.array2string)
array_repr = Immediate(np.array_repr)
array_str = Immediate(np.array_str)
packbits = Immediate(np.packbits)
save = Immediate(np.save)
savetxt = Immediate(np.savetxt)
savez = Immediate(np.savez)
savez_compressed = Immediate(np.savez_compressed)
unpackbits = Immediate(np.unpackbits)


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, **options: Any) -> Ufunc:
    """Return a Python function as a ufunc that computes at the call."""
    return Ufunc(np.frompyfunc(func, nin, nout, **options))


class ndenumerate(np.ndenumerate):  # noqa: N801  # NumPy's name
    """Indices and elements of an array; waits."""

    def __init__(self, arr: Any) -> None:
        super().__init__(export(arr, "np.ndenumerate"))


class vectorize(np.vectorize):  # noqa: N801  # NumPy's name
    """A Python function of numbers as a function of arrays; computes at the call."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function for each element of the broadcast arguments."""
        values = export(args, "np.vectorize"), export(kwargs, "np.vectorize")
        return imported(super().__call__(*values[0], **values[1]))


def _check_reactions(reactions: dict[str, Any]) -> None:
    if REFUSED & {*map(str, reactions.values())}:
        rule = f"{reactions} asks for errors at the call, where nothing is computed"
        remedy = "leave it out, and check np.isfinite(x).all(), or set tn.options(check_nans=True)"
        raise UnsupportedError("errstate", rule, (), remedy)


class errstate(np.errstate):  # noqa: N801  # NumPy's name
    """NumPy's reactions to floating-point errors; UnsupportedError for "raise" and "call"."""

    def __init__(self, **reactions: Any) -> None:
        _check_reactions(reactions)
        super().__init__(**reactions)


def seterr(**reactions: Any) -> Any:
    """Set NumPy's reactions to floating-point errors; UnsupportedError for "raise" and "call"."""
    _check_reactions(reactions)
    return np.seterr(**reactions)
