"""Programs with wrong calls: names, arguments, options, devices, buffers, and rules that lie.

Table.
"""

from __future__ import annotations

import ctypes
import math
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np

import tenfold as tn
from tenfold.errors import (
    DeviceError,
    DTypeError,
    ForeignDTypeError,
    NumberError,
    RunError,
    ShapeError,
    UnsupportedError,
)

from .error_table import wrong, wrong_values

BY_NAME = (
    "add() got some positional-only arguments passed as keyword arguments: 'x1, x2'"
    if sys.version_info >= (3, 13)
    else "add() 'x1' parameter is positional only, but was passed as a keyword"
)
"""Python's own sentence."""


@wrong(
    AttributeError,
    "module 'tenfold' has no attribute 'concatenate'; use tn.concat",
    operands=0,
    remedy=False,
)
def a_name_of_numpy_that_is_another_here() -> None:
    tn.concatenate


@wrong(
    AttributeError,
    "module 'tenfold' has no attribute 'expandims'; did you mean tn.expand_dims?",
    operands=0,
    remedy=False,
)
def a_name_that_is_misspelt() -> None:
    tn.expandims


@wrong(
    AttributeError,
    "module 'tenfold' has no attribute 'polynomial'; use tenfold.numpy.polynomial",
    operands=0,
    remedy=False,
)
def a_module_that_numpy_has() -> None:
    tn.polynomial


@wrong(
    AttributeError,
    "module 'tenfold.random' has no attribute 'rand'; make a generator: rng = "
    "tn.random.default_rng(seed)",
    operands=0,
    remedy=False,
)
def a_function_of_numpys_old_generator() -> None:
    tn.random.rand(3)


@wrong(
    AttributeError,
    "'tenfold.Array' object has no attribute 'ptp'; write tn.max(x) - tn.min(x)",
    operands=0,
    remedy=False,
)
def a_method_that_does_not_exist() -> None:
    tn.zeros(3).ptp()


@wrong(
    AttributeError,
    "'tenfold.Array' object has no attribute 'exp'; write tn.exp(x)",
    operands=0,
    remedy=False,
)
def a_property_that_is_a_function_here() -> None:
    tn.zeros(3).exp


@wrong(
    AttributeError,
    "'tenfold.Array' object has no attribute 'H'; write tn.conj(x.mT)",
    operands=0,
    remedy=False,
)
def a_property_that_does_not_exist() -> None:
    tn.zeros(3).H


@wrong(
    AttributeError,
    "'tenfold.Array' object has no attribute 'setfield'; write x[...] = value",
    operands=0,
    remedy=False,
)
def a_method_that_numpy_alone_has() -> None:
    tn.zeros(3).setfield(1, "f8")


@wrong(
    AttributeError,
    "'tenfold.Array' object has no attribute 'wiat'; did you mean x.wait?",
    operands=0,
    remedy=False,
)
def a_method_that_is_misspelt() -> None:
    tn.zeros(3).wiat()


@wrong(
    TypeError,
    "clip() got an unexpected keyword argument 'a_min'; write min=",
    operands=0,
    remedy=False,
)
def a_keyword_that_is_another_here() -> None:
    tn.clip(tn.zeros(3), a_min=1)


@wrong(
    TypeError,
    "sum() got an unexpected keyword argument 'out'; "
    "assign the result instead, as in y = tn.sum(x)",
    operands=0,
    remedy=False,
)
def a_keyword_that_nothing_has() -> None:
    tn.sum(tn.zeros(3), out=tn.zeros(()))


@wrong(
    TypeError,
    "zeros() takes 1 positional argument but 2 were given; by name alone: dtype=, device=",
    operands=0,
    remedy=False,
)
def a_dtype_by_position() -> None:
    tn.zeros(3, "float32")


@wrong(
    TypeError,
    "reshape() takes 2 positional arguments but 3 were given; "
    "give the shape as one tuple, as in (2, -1)",
    operands=0,
    remedy=False,
)
def a_shape_that_is_no_tuple() -> None:
    tn.reshape(tn.zeros(6), 2, -1)


@wrong(
    TypeError,
    "round() too many positional arguments; for n decimals write tn.round(x * 10**n) / 10**n",
    operands=0,
    remedy=False,
)
def decimals_to_round_to() -> None:
    tn.round(tn.zeros(3), 2)


@wrong(DTypeError, "sqrt: PatternVariable of a rule's pattern is not an array", operands=0)
def an_operation_in_a_pattern() -> None:
    (x,) = tn.rules.variables("x")
    tn.Rule("root", tn.sqrt(x), x)


@wrong(
    AttributeError,
    "attribute 'size' of 'tenfold.Array' objects is not writable",
    operands=0,
    remedy=False,
)
def setting_an_attribute() -> None:
    tn.zeros(6).size = 3


@wrong(
    TypeError,
    "add() missing a required argument: 'x2'",
    operands=0,
    remedy=False,
)
def too_few_arguments() -> None:
    tn.add(tn.zeros(3))


@wrong(
    TypeError,
    "sin() too many positional arguments",
    operands=0,
    remedy=False,
)
def too_many_arguments() -> None:
    tn.sin(tn.zeros(3), tn.zeros(3))


@wrong(
    TypeError,
    "sum() got an unexpected keyword argument 'axes'; did you mean axis=?",
    operands=0,
    remedy=False,
)
def an_unknown_keyword() -> None:
    tn.sum(tn.zeros(3), axes=0)


@wrong(
    TypeError,
    "sum() too many positional arguments; by name alone: axis=, dtype=, keepdims=",
    operands=0,
    remedy=False,
)
def a_keyword_given_by_position() -> None:
    tn.sum(tn.zeros(3), 0)


@wrong(
    TypeError,
    BY_NAME,
    operands=0,
    remedy=False,
)
def an_operand_given_by_name() -> None:
    tn.add(x1=tn.zeros(3), x2=1.0)


@wrong(
    TypeError,
    "eval: argument 1 is float, not an Array",
    operands=0,
)
def no_arrays_to_evaluate() -> None:
    tn.eval(3.0)


@wrong(
    TypeError,
    "cannot create 'tenfold.Array' instances",
    operands=0,
    remedy=False,
)
def making_an_array_by_its_class() -> None:
    tn.Array([1, 2, 3])


@wrong(
    ShapeError,
    "searchsorted: side 'middle' is neither 'left' nor 'right'",
    operands=2,
)
def a_side_that_does_not_exist() -> None:
    tn.searchsorted(tn.zeros(3), tn.zeros(2), side="middle")


@wrong(
    ShapeError,
    "qr: mode 'full' is neither 'reduced' nor 'complete'",
)
def a_mode_of_qr_that_does_not_exist() -> None:
    tn.linalg.qr(tn.zeros((2, 2)), mode="full")


@wrong(
    ShapeError,
    "arange: a step of 0 never arrives",
    operands=0,
)
def a_range_that_does_not_move() -> None:
    tn.arange(0, 3, 0)


@wrong(
    UnsupportedError,
    "options: unknown option 'turbo'",
    operands=0,
)
def an_option_that_does_not_exist() -> None:
    tn.set_options(turbo=True)


@wrong(
    ValueError,
    "options: strict_dtypes: 'perhaps' is neither true nor false; use 1 or 0",
    operands=0,
    remedy=False,
)
def an_option_whose_value_is_no_flag() -> None:
    tn.options(strict_dtypes="perhaps")


@wrong(
    ValueError,
    "options: pending_depth: 3 is not a whole number from 65 to 4294967294",
    operands=0,
    remedy=False,
)
def a_depth_that_is_too_small() -> None:
    tn.set_options(pending_depth=3)


@wrong(
    DeviceError,
    "zeros: device 'abacus' does not exist",
    operands=0,
)
def an_unknown_device() -> None:
    tn.zeros(3, device="abacus")


@wrong(
    DeviceError,
    "options: device 'abacus' does not exist",
    operands=0,
)
def an_unknown_device_as_option() -> None:
    tn.options(device="abacus")


@wrong(
    DeviceError,
    "add: operands are on different devices: {device}, second",
    operands=2,
)
def operands_on_different_devices() -> None:
    x, y = tn.zeros(3), tn.zeros(3, device="second")
    x + y


@wrong(
    UnsupportedError,
    "astype: a cast stays on its device, '{device}', and does not go to 'second'",
)
def casting_to_another_device() -> None:
    tn.astype(tn.zeros(3), tn.float32, device="second")


@wrong(DeviceError, "astype: device 'abacus' does not exist")
def casting_to_an_unknown_device() -> None:
    tn.astype(tn.zeros(3), tn.float32, device="abacus")


@wrong(
    DeviceError,
    "to_device: device 'abacus' does not exist",
)
def moving_to_an_unknown_device() -> None:
    tn.zeros(3).to_device("abacus")


@wrong(
    UnsupportedError,
    "explain: unknown stage 'imagined'",
    operands=0,
)
def explaining_a_stage_that_does_not_exist() -> None:
    tn.explain(tn.zeros(3), stage="imagined")


@wrong(
    UnsupportedError,
    "explain: unknown format 'poem'",
    operands=0,
)
def explaining_in_a_format_that_does_not_exist() -> None:
    tn.explain(tn.zeros(3), format="poem")


@wrong(
    AttributeError,
    "a profile has no counter 'wishes'; it has kernels, calls, launches, batches, "
    "temporaries, gathers, copies, allocations, bytes_allocated, compiles, "
    "background_compiles, generic_compiles, multiply_adds, host_syncs, densified",
    operands=0,
    remedy=False,
)
def a_counter_that_does_not_exist() -> None:
    with tn.profile() as p:
        p.wishes


@wrong(
    UnsupportedError,
    "np.unwrap: tenfold has no lazy form of it",
    operands=0,
)
def a_function_of_numpy_that_is_not_here() -> None:
    with tn.options(numpy_fallback="raise"):
        np.unwrap(tn.zeros(3))


@wrong(
    UnsupportedError,
    "np.add.reduceat: tenfold has no lazy form of it",
    operands=0,
)
def a_ufunc_method_that_is_not_here() -> None:
    with tn.options(numpy_fallback="raise"):
        np.add.reduceat(tn.zeros(3), [0])


@wrong(
    ValueError,
    "asarray: int64 elements cannot become float32 without a copy",
    operands=0,
)
def sharing_elements_that_must_be_converted() -> None:
    tn.asarray(np.arange(3), dtype=tn.float32, copy=False)


@wrong(
    ValueError,
    "asarray: byte-swapped elements cannot become int32 without a copy",
    operands=0,
)
def sharing_bytes_in_another_order() -> None:
    tn.asarray(np.arange(3, dtype=">i4"), copy=False)


@wrong(
    ForeignDTypeError,
    "asarray: object is not an array or a number",
    operands=0,
)
def an_object_that_is_no_buffer() -> None:
    tn.asarray(object())


@wrong(
    ForeignDTypeError,
    "asarray: c_void_p_Array_2 has elements that are not numbers: '<P' is not a valid PEP "
    "3118 buffer format string",
    operands=0,
)
def a_buffer_of_pointers() -> None:
    tn.asarray((ctypes.c_void_p * 2)())


@wrong(
    TypeError,
    "from_dlpack: float does not export DLPack",
    operands=0,
)
def dlpack_from_what_exports_none() -> None:
    tn.from_dlpack(3.0)


@wrong(
    DeviceError,
    "from_dlpack: memory of DLPack device (10, 0) cannot be read by the CPU",
    operands=0,
)
def dlpack_from_another_device() -> None:
    tn.from_dlpack(SimpleNamespace(__dlpack__=lambda **_: None, __dlpack_device__=lambda: (10, 0)))


@wrong(
    BufferError,
    "__dlpack__: DLPack device (2, 0) is not (1, 0), the CPU",
    operands=0,
)
def dlpack_to_another_device() -> None:
    tn.zeros(3).__dlpack__(dl_device=(2, 0))


@wrong(
    ValueError,
    "__array_namespace__: version '1999.12' of the array API standard is not supported",
    operands=0,
)
def a_version_of_the_standard_that_does_not_exist() -> None:
    tn.zeros(3).__array_namespace__(api_version="1999.12")


@tn.op(reference=lambda x: x[:-1])
def shortened(x: Any, /) -> Any:
    """Lies: one element less than an elementwise operation has."""


@tn.operator(shape=(3,), dtype=tn.float64)
def lying_about_its_shape(x: Any, /) -> Any:
    return np.zeros(2)


@tn.operator(dtype=tn.int64)
def lying_about_its_dtype(x: Any, /) -> Any:
    return np.asarray(x) + 0.5


@tn.operator
def failing(x: Any, /) -> Any:
    raise KeyError("nothing there")


@tn.op
def rooted_by_math(x: Any, /) -> Any:
    return math.sqrt(x)


@tn.op
def sums(x: Any, /) -> Any:
    return tn.sum(x)


@wrong_values(
    RunError,
    "shortened: its rule said shape (3,), its computation gave (2,) (written at {place})",
    remedy=True,
)
def an_op_that_lies_about_its_shape() -> tn.Array:
    return shortened(tn.zeros(3))


@wrong_values(
    RunError,
    "lying_about_its_shape: its rule said shape (3,), its computation gave (2,) (written "
    "at {place})",
    remedy=True,
)
def an_operator_that_lies_about_its_shape() -> tn.Array:
    return lying_about_its_shape(tn.zeros(3))


@wrong_values(
    RunError,
    "lying_about_its_dtype: its rule said dtype int64, its computation gave float64 "
    "(written at {place})",
    remedy=True,
)
def an_operator_that_lies_about_its_dtype() -> tn.Array:
    return lying_about_its_dtype(tn.zeros(3))


@wrong_values(
    RunError,
    "failing: KeyError: 'nothing there' (written at {place}, "
    f"raised at {__file__}:{failing.function.__code__.co_firstlineno + 2})",
)
def an_operator_that_raises() -> tn.Array:
    return failing(tn.zeros(3))


@wrong(
    ShapeError,
    "sums: its element rule reads or makes other elements than those at its index",
)
def an_element_rule_that_is_not_elementwise() -> None:
    sums(tn.zeros(3))


@wrong(UnsupportedError, "float: an array that is being traced has no values")
def a_function_of_math_in_an_element_rule() -> None:
    rooted_by_math(tn.zeros(3))


@wrong(NumberError, "float: an array of shape (3,) is not a single number")
def a_function_of_math_of_an_array() -> None:
    math.sin(tn.zeros(3))


@wrong(DTypeError, "sin: str is not an array or a number", operands=0)
def the_path_of_a_file_as_an_operand() -> None:
    tn.sin("angles.npy")


@wrong(
    AttributeError,
    "module 'tenfold' has no attribute 'loadtxt'; write tn.asarray(np.loadtxt(path))",
    operands=0,
    remedy=False,
)
def a_reader_of_files_of_numpy() -> None:
    tn.loadtxt


@wrong(
    AttributeError,
    "module 'tenfold' has no attribute 'jit'; write @tn.function to trace a function once; an "
    "expression is compiled without it",
    operands=0,
    remedy=False,
)
def a_compiler_of_functions() -> None:
    tn.jit
