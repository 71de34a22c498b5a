"""Tenfold: lazy tensor expressions, written like NumPy.

Made by `make stubs` from the op table; do not edit.
"""

from collections.abc import Sequence
from tenfold._native import Array
from tenfold.core.op import Kind
from tenfold.core.shape_rules import Axis
from tenfold.core.shape_rules import Shape
from typing import Any
import builtins
import numpy as np

from tenfold._native import Array as Array
from tenfold.engine.operators import BatchedOperator as BatchedOperator
from tenfold.engine.operators import CumulativeOperator as CumulativeOperator
from tenfold.engine.engine import Engine as Engine
from tenfold.engine.engine_object import EngineObject as EngineObject
from tenfold._native import Handle as Handle
from tenfold.engine.operators import InPlaceOperator as InPlaceOperator
from tenfold.core.op import Kind as Kind
from tenfold.engine.operators import Operator as Operator
from tenfold.inspect.profile import Profile as Profile
from tenfold.rewrite.rule import Rule as Rule
from tenfold.interop.asarray import asarray as asarray
from tenfold.mutation.assign import assign as assign
from tenfold.out_of_core.blockwise import blockwise as blockwise
from tenfold.transforms.checkpoint import checkpoint as checkpoint
from tenfold.transforms.control_flow import cond as cond
from tenfold.rewrite.cse import cse as cse
from tenfold.kinds.csr import csr as csr
from tenfold.kinds.csr import csr_from_coo as csr_from_coo
from tenfold.transforms.custom_jvp import custom_jvp as custom_jvp
from tenfold.transforms.custom_vjp import custom_vjp as custom_vjp
from tenfold.kinds.diagonal import diagonal_matrix as diagonal_matrix
from tenfold.engine.engine import engine as engine
from tenfold import errors as errors
from tenfold.submission import eval as eval
from tenfold.inspect.explain import explain as explain
from tenfold import fft as fft
from tenfold.interop.dask import from_dask as from_dask
from tenfold.interop.asarray import from_dlpack as from_dlpack
from tenfold.transforms.function import function as function
from tenfold.transforms.derivatives import grad as grad
from tenfold.transforms.derivatives import grad_of as grad_of
from tenfold.transforms.jacobians import hessian as hessian
from tenfold.transforms.jacobians import hvp as hvp
from tenfold.transforms.jacobians import jacobian as jacobian
from tenfold.transforms.tangents import jvp as jvp
from tenfold import linalg as linalg
from tenfold.transforms.tangents import linearize as linearize
from tenfold.io.function_reader import load_function as load_function
from tenfold.transforms.custom_op import op as op
from tenfold.transforms.operator_decorator import operator as operator
from tenfold import operators as operators
from tenfold.settings import options as options
from tenfold.kinds.permutation import permutation as permutation
from tenfold.inspect.profile import profile as profile
from tenfold import random as random
from tenfold import rules as rules
from tenfold.transforms.control_flow import scan as scan
from tenfold.settings import set_options as set_options
from tenfold.runtime.stream import stream as stream
from tenfold import testing as testing
from tenfold.interop.dask import to_dask as to_dask
from tenfold.pipeline import trim as trim
from tenfold.transforms.derivatives import value_and_grad as value_and_grad
from tenfold.transforms.derivatives import vjp as vjp
from tenfold.transforms.vmap import vmap as vmap
from tenfold.transforms.derivatives import watch as watch
from tenfold.transforms.control_flow import while_loop as while_loop
from tenfold.mutation.external_buffer import wrap as wrap
e: float
inf: float
nan: float
newaxis: Any
pi: float
__array_api_version__: str
from tenfold.namespace.array_api_info import namespace_info as __array_namespace_info__
from tenfold.namespace.array_api_info import can_cast as can_cast
from tenfold.namespace.array_api_info import finfo as finfo
from tenfold.namespace.array_api_info import iinfo as iinfo
from tenfold.namespace.array_api_info import isdtype as isdtype
from tenfold.namespace.array_api_info import result_type as result_type
bool: np.dtype
int8: np.dtype
int16: np.dtype
int32: np.dtype
int64: np.dtype
uint8: np.dtype
uint16: np.dtype
uint32: np.dtype
uint64: np.dtype
float16: np.dtype
bfloat16: np.dtype
float32: np.dtype
float64: np.dtype
complex64: np.dtype
complex128: np.dtype
def gelu(x: Array, /) -> Array:
    """`x * P(X <= x)` for a standard normal X, element by element; the exact form, by erfc."""

def relu(x: Array, /) -> Array:
    """The larger of `x` and 0, element by element: the dtype of `x`; NaN stays NaN."""

def sigmoid(x: Array, /) -> Array:
    """`1 / (1 + exp(-x))`, element by element: floating dtypes, integers as NumPy promotes them."""

def softplus(x: Array, /) -> Array:
    """`log(1 + exp(x))`, element by element: floating dtypes, integers as NumPy promotes them."""

def arange(start: float, /, stop: float | None = ..., step: float = ..., *, repeat: int = ..., dtype: Any = ..., device: str | None = ...) -> Array:
    """Return the numbers from `start` (0 when only one is given) below `stop` in steps of `step`,"""

def linspace(start: complex, stop: complex, /, num: int, *, dtype: Any = ..., device: str | None = ..., endpoint: builtins.bool = ...) -> Array:
    """Return `num` numbers at equal distances from `start` to `stop`, the last one included unless"""

def meshgrid(*arrays: Array, indexing: str = ...) -> tuple[Array, ...]:
    """Return for vectors of lengths n1, n2, ... an array each of the grid (n1, n2, ...) they span,"""

def abs(x: Array, /) -> Array:
    """Magnitude of `x`, element by element: the dtype of `x`, that of the parts for complex."""

def add(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Sum of `x1` and `x2`, element by element; shapes broadcast, dtypes promote. Bool: logical or."""

def copysign(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Magnitude of `x1` with the sign of `x2`, element by element; signed zeros and NaN count."""

def divide(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Quotient `x1 / x2`, element by element; integers are divided in float64. By zero: inf or NaN."""

def floor_divide(x1: Array | complex, x2: Array | complex, /) -> Array:
    """`x1 / x2` rounded down, element by element, in the common dtype; bool as int8."""

def multiply(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Product of `x1` and `x2`, element by element; shapes broadcast, dtypes promote. Bool: and."""

def negative(x: Array, /) -> Array:
    """`-x`, element by element; the dtype of `x`. Raises DTypeError for bool."""

def nextafter(x1: Array | complex, x2: Array | complex, /) -> Array:
    """The next floating number after `x1` towards `x2`, element by element."""

def positive(x: Array, /) -> Array:
    """`x` itself, element by element. Raises DTypeError for bool."""

def pow(x1: Array | complex, x2: Array | complex, /) -> Array:
    """`x1` to the power of `x2`, element by element, in the common dtype; bool as int8."""

def reciprocal(x: Array, /) -> Array:
    """`1 / x`, element by element: the dtype of `x`, int8 for bool."""

def remainder(x1: Array | complex, x2: Array | complex, /) -> Array:
    """`x1 - x2 * (x1 // x2)`, element by element, with the sign of `x2`; bool as int8."""

def sign(x: Array, /) -> Array:
    """-1, 0 or 1 as `x` is below, equal to or above 0; NaN for NaN. Complex: `x / abs(x)`, 0 at 0."""

def square(x: Array, /) -> Array:
    """`x * x`, element by element: the dtype of `x`, int8 for bool; integers wrap."""

def subtract(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Difference `x1 - x2`, element by element; shapes broadcast, dtypes promote. Raises DTypeError"""

def put_at(x: Array, indices: Array, values: Array | complex, /) -> Array:
    """Return `x` with the rows `indices` replaced by `values`; of an index that occurs twice the"""

def set_at(x: Array, key: Any, value: Array | complex, /) -> Array:
    """Return `x` with the part `x[key]` replaced by `value`, which broadcasts to its shape and is"""

def assume(x: Array, structure: str, /) -> Array:
    """Return an array of the same values with the promise that its matrices, (..., n, n), have a"""

def bitwise_and(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Bits set in both `x1` and `x2`, element by element; bool: logical and. Integers and bool."""

def bitwise_invert(x: Array, /) -> Array:
    """Every bit of `x` turned over, element by element; bool: logical not. Integers and bool."""

def bitwise_left_shift(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Bits of `x1` moved `x2` places up, element by element, in the common dtype; bool as int8."""

def bitwise_or(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Bits set in `x1` or `x2`, element by element; bool: logical or. Integers and bool."""

def bitwise_right_shift(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Bits of `x1` moved `x2` places down, element by element, in the common dtype; bool as int8."""

def bitwise_xor(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Bits set in one of `x1` and `x2` alone, element by element; bool: exclusive or."""

def astype(x: Array, dtype: Any, /, *, copy: builtins.bool = ..., device: str | None = ...) -> Array:
    """Return `x` in another dtype: shape (...), the dtype named."""

def equal(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1 == x2`, element by element: bool. NaN equals nothing, -0 equals 0."""

def greater(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1 > x2`, element by element: bool; False with NaN. Raises DTypeError for complex."""

def greater_equal(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1 >= x2`, element by element: bool; False with NaN. Raises DTypeError for complex."""

def less(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1 < x2`, element by element: bool; False with NaN. Raises DTypeError for complex."""

def less_equal(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1 <= x2`, element by element: bool; False with NaN. Raises DTypeError for complex."""

def not_equal(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1 != x2`, element by element: bool. NaN differs from everything."""

def abs2(x: Array, /) -> Array:
    """Square of the modulus of `x`, element by element: real, without the square root of `abs`."""

def conj(x: Array, /) -> Array:
    """`x` with the sign of its imaginary part turned, element by element; the dtype of `x`."""

def imag(x: Array, /) -> Array:
    """Imaginary part of `x`, element by element: float32 for complex64, float64 for complex128."""

def real(x: Array, /) -> Array:
    """Real part of `x`, element by element: float32 for complex64, float64 for complex128."""

def view_as_complex(x: Array, /) -> Array:
    """Return real `x` with real and imaginary parts side by side as complex numbers, a view: shape"""

def view_as_real(x: Array, /) -> Array:
    """Return the parts of complex `x` side by side, a view: shape (...) to (..., 2), real."""

def kron(x1: Array, x2: Array, /) -> Array:
    """Kronecker product: every element of `x1` times the whole of `x2`, (m, n), (p, q) to (mp, nq)."""

def matmul(x1: Array, x2: Array, /) -> Array:
    """Matrix product `x1 @ x2`: (..., m, k) @ (..., k, n) is (..., m, n); dtypes promote."""

def outer(x1: Array, x2: Array, /) -> Array:
    """Every element of `x1` times every element of `x2`: (m,) and (n,) to (m, n); dtypes promote."""

def tensordot(x1: Array, x2: Array, /, axes: Any = ...) -> Array:
    """Contract `axes` of `x1` with `axes` of `x2`; the axes of `x1` that are left come first."""

def vecdot(x1: Array, x2: Array, /, *, axis: int = ...) -> Array:
    """Product of vectors along `axis`: the sum of conj(x1) * x2, (..., k) and (..., k) to (...)."""

def convolve(x1: Array, x2: Array, /, *, mode: str = ...) -> Array:
    """Return the convolution of two arrays with as many axes: the sums of `x1[i - j] * x2[j]` over"""

def correlate(x1: Array, x2: Array, /, *, mode: str = ...) -> Array:
    """Return the cross-correlation of two arrays with as many axes: the sums of"""

def empty(shape: Shape | int, *, dtype: Any = ..., device: str | None = ...) -> Array:
    """Return an array of `shape` whose values are not to be relied on; float64 if no dtype is"""

def empty_like(x: Array, /, *, dtype: Any = ..., device: str | None = ...) -> Array:
    """Return an array of the shape, dtype and device of `x`, or the ones named, whose values are"""

def eye(n_rows: int, n_cols: int | None = ..., /, *, k: int = ..., dtype: Any = ..., device: str | None = ...) -> Array:
    """Return the matrix (n_rows, n_cols), square if one number is given, with 1 on its k-th"""

def full(shape: Shape | int, fill_value: Array | complex, *, dtype: Any = ..., device: str | None = ...) -> Array:
    """Return an array of `shape` that holds `fill_value` everywhere; without a dtype int64,"""

def full_like(x: Array, /, fill_value: Array | complex, *, dtype: Any = ..., device: str | None = ...) -> Array:
    """Return an array that holds `fill_value` everywhere, of the shape, dtype and device of `x`, or"""

def ones(shape: Shape | int, *, dtype: Any = ..., device: str | None = ...) -> Array:
    """Return an array of `shape` that holds 1; float64 if no dtype is named."""

def ones_like(x: Array, /, *, dtype: Any = ..., device: str | None = ...) -> Array:
    """Return an array that holds 1, of the shape, dtype and device of `x`, or the ones named."""

def zeros(shape: Shape | int, *, dtype: Any = ..., device: str | None = ...) -> Array:
    """Return an array of `shape` that holds 0; float64 if no dtype is named."""

def zeros_like(x: Array, /, *, dtype: Any = ..., device: str | None = ...) -> Array:
    """Return an array that holds 0, of the shape, dtype and device of `x`, or the ones named."""

def cumulative_prod(x: Array, /, *, axis: int | None = ..., dtype: Any = ..., include_initial: builtins.bool = ..., exclusive: builtins.bool = ...) -> Array:
    """Running product along `axis`, which may be left out for one axis; the shape of `x`."""

def cumulative_sum(x: Array, /, *, axis: int | None = ..., dtype: Any = ..., include_initial: builtins.bool = ..., exclusive: builtins.bool = ...) -> Array:
    """Running sum along `axis`, which may be left out for one axis; the shape of `x`."""

def diff(x: Array, /, *, axis: int = ..., n: int = ..., prepend: Array | None = ..., append: Array | None = ...) -> Array:
    """Differences of neighbours along `axis`, each minus the one before it, taken `n` times."""

def to_device(x: Array, /, device: str, *, stream: Any = ...) -> Array:
    """Return `x` on another device, where what is made of it is computed: shape (...), its dtype."""

def diag(x: Array, /, k: int = ...) -> Array:
    """Return the matrix with the vector `x` on its k-th diagonal, or of a matrix `x` the k-th"""

def diag_embed(x: Array, /, *, offset: int = ...) -> Array:
    """Return square matrices (..., n + |offset|, n + |offset|) with the vectors (..., n) of `x` on"""

def diagonal(x: Array, /, offset: int = ..., axis1: int = ..., axis2: int = ...) -> Array:
    """Return the view of the elements whose index on `axis2` is that on `axis1` plus `offset`; the"""

def tril(x: Array, /, k: int = ...) -> Array:
    """Return the matrices (..., m, n) of `x` with 0 above the k-th diagonal: their lower triangles."""

def triu(x: Array, /, k: int = ...) -> Array:
    """Return the matrices (..., m, n) of `x` with 0 below the k-th diagonal: their upper triangles."""

def einsum(subscripts: str, /, *operands: Any, optimize: Any = ...) -> Array:
    """Sum of products over the axes that letters name: einsum("ij,jk->ik", x, y) is x @ y."""

def acos(x: Array, /) -> Array:
    """Angle in [0, pi] radians whose cosine is `x`, element by element: NaN outside [-1, 1]"""

def acosh(x: Array, /) -> Array:
    """Number at or above 0 whose hyperbolic cosine is `x`, element by element: NaN below 1 (real"""

def asin(x: Array, /) -> Array:
    """Angle in [-pi/2, pi/2] radians whose sine is `x`, element by element: NaN outside [-1, 1]"""

def asinh(x: Array, /) -> Array:
    """Number whose hyperbolic sine is `x`, element by element."""

def atan(x: Array, /) -> Array:
    """Angle in [-pi/2, pi/2] radians whose tangent is `x`, element by element."""

def atan2(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Angle in [-pi, pi] radians of the point (`x2`, `x1`), element by element; signed zeros count."""

def atanh(x: Array, /) -> Array:
    """Number whose hyperbolic tangent is `x`, element by element: NaN outside [-1, 1] (real)."""

def cbrt(x: Array, /) -> Array:
    """Cube root of `x`, element by element, with the sign of `x`."""

def cos(x: Array, /) -> Array:
    """Cosine of `x` in radians, element by element."""

def cosh(x: Array, /) -> Array:
    """Hyperbolic cosine of `x`, element by element."""

def erf(x: Array, /) -> Array:
    """Error function `2 / sqrt(pi) * integral of exp(-t**2) from 0 to x`, element by element."""

def erfc(x: Array, /) -> Array:
    """`1 - erf(x)`, element by element, accurate where it is tiny."""

def exp(x: Array, /) -> Array:
    """e to the power of `x`, element by element."""

def exp2(x: Array, /) -> Array:
    """2 to the power of `x`, element by element."""

def expm1(x: Array, /) -> Array:
    """`exp(x) - 1`, element by element, accurate for small `x`."""

def hypot(x1: Array | complex, x2: Array | complex, /) -> Array:
    """`sqrt(x1**2 + x2**2)`, element by element, without overflow; inf if either is infinite."""

def log(x: Array, /) -> Array:
    """Natural logarithm of `x`, element by element: -inf at 0, NaN below (real dtypes)."""

def log10(x: Array, /) -> Array:
    """Logarithm of `x` to the base 10, element by element: -inf at 0, NaN below (real dtypes)."""

def log1p(x: Array, /) -> Array:
    """`log(1 + x)`, element by element, accurate for small `x`."""

def log2(x: Array, /) -> Array:
    """Logarithm of `x` to the base 2, element by element: -inf at 0, NaN below (real dtypes)."""

def logaddexp(x1: Array | complex, x2: Array | complex, /) -> Array:
    """`log(exp(x1) + exp(x2))`, element by element, without overflow."""

def sin(x: Array, /) -> Array:
    """Sine of `x` in radians, element by element."""

def sinh(x: Array, /) -> Array:
    """Hyperbolic sine of `x`, element by element."""

def sqrt(x: Array, /) -> Array:
    """Square root of `x`, element by element: NaN below 0 (real dtypes), -0 at -0."""

def tan(x: Array, /) -> Array:
    """Tangent of `x` in radians, element by element."""

def tanh(x: Array, /) -> Array:
    """Hyperbolic tangent of `x`, element by element."""

def fma(x1: Array | complex, x2: Array | complex, x3: Array | complex, /) -> Array:
    """`x1 * x2 + x3`, element by element, rounded once; shapes broadcast, dtypes promote."""

def gather(x: Array, /, *indices: Array, axes: tuple[int, ...] | None = ..., place: int | None = ...) -> Array:
    """Return the elements of `x` at integer `indices`, which broadcast together: the one at"""

def take(x: Array, indices: Array, /, *, axis: int | None = ...) -> Array:
    """Return the elements of `x` at integer `indices` along `axis`, which may be left out for one"""

def take_along_axis(x: Array, indices: Array, /, *, axis: int = ...) -> Array:
    """Return for each line of `x` along `axis` the elements at that line's own integer `indices`."""

def index(x: Array, /, key: Any) -> Array:
    """Return the view `x[key]` of `x`: the positions an int, a slice, `...`, None or a tuple of"""

def concat(arrays: Sequence[Array], /, axis: int | None = ...) -> Array:
    """Return `arrays` joined along `axis`, in which alone their shapes may differ; for None each is"""

def split(x: Array, indices_or_sections: int | Sequence[int], /, axis: int = ...) -> tuple[Array, ...]:
    """Return views of `x` that part it along `axis`, as a tuple: an int asks for so many equal"""

def stack(arrays: Sequence[Array], /, axis: int = ...) -> Array:
    """Return `arrays` of one shape joined along a new axis that stands at `axis` in the result."""

def unstack(x: Array, /, *, axis: int = ...) -> tuple[Array, ...]:
    """Return the views of `x` at each position along `axis`, without that axis, as a tuple."""

def segment_sort(x: Array, segment_ids: Array, /, *, descending: builtins.bool = ...) -> Array:
    """Return the elements of each segment of `x`, (n,), sorted among the places of that segment."""

def sort_by_key(keys: Array, values: Array, /, *, axis: int = ..., descending: builtins.bool = ...) -> Any:
    """Return `keys` sorted along `axis`, and `values` in the order of their keys."""

def choose_at(x: Array, indices: Array, /, *, axis: int = ...) -> Array:
    """Return the element of each row of `x` along `axis` at that row's own integer index."""

def fill_at(x: Array, indices: Array, values: Array, /, *, axis: int = ...) -> Array:
    """Return `x` with the element of each row along `axis` at that row's own index replaced."""

def mask_rows(x: Array, mask: Array, /) -> Array:
    """Return `x` with 0 in the rows where `mask` does not hold, whatever stood there."""

def one_hot(indices: Array, num_classes: int, /, *, axis: int = ..., dtype: Any = ...) -> Array:
    """Return 1 at the index of each row and 0 elsewhere: (...) integers to (..., num_classes),"""

def softmax_gradient(probabilities: Array, labels: Array, /, *, axis: int = ..., smoothing: float = ..., ignore_label: int | None = ...) -> Array:
    """Return the gradient of the cross-entropy of labels with respect to the logits, from the"""

def expand_dims(x: Array, /, axis: int | tuple[int, ...] = ...) -> Array:
    """Return a view of `x` with new axes of length 1 that stand at `axis` in the result."""

def flip(x: Array, /, axis: Axis = ...) -> Array:
    """Return a view of `x` read backwards along `axis`, or along every axis if None."""

def matrix_transpose(x: Array, /) -> Array:
    """Return a view of the matrices (..., m, n) of `x` transposed: (..., n, m); also `x.mT`."""

def moveaxis(x: Array, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Array:
    """Return a view of `x` with its axes `source` at the places `destination`; the others keep"""

def permute_dims(x: Array, /, axes: Sequence[int] | None = ...) -> Array:
    """Return a view of `x` with its axes in the order `axes`, each once; reversed if None."""

def squeeze(x: Array, /, axis: Axis = ...) -> Array:
    """Return a view of `x` without the axes `axis`, each of length 1; without all such if None."""

def swapaxes(x: Array, axis1: int, axis2: int, /) -> Array:
    """Return a view of `x` with two axes exchanged."""

def trace(x: Array, /, offset: int = ..., axis1: int = ..., axis2: int = ..., dtype: Any = ...) -> Array:
    """Sum along the diagonal of the matrices that `axis1` and `axis2` span; these axes are gone."""

def crop(x: Array, /, shape: Shape | int, *, start: Sequence[int] | None = ...) -> Array:
    """Return the part of `shape` in the middle of `x`, a view; or the part that begins at `start`."""

def pad(x: Array, /, pad_width: int | Sequence[int] | Sequence[Sequence[int]], mode: str = ..., *, constant_values: complex = ...) -> Array:
    """Return `x` with more positions before and after on each axis: `pad_width` is one number of"""

def pool(x: Array, /, window: Any, *, mode: str = ..., stride: Any | None = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: builtins.bool = ..., axis: int | Sequence[int] | None = ...) -> Array:
    """Return the maximum, minimum, sum or mean (`mode`) of each window of `x` on its last axes, or"""

def unpool(gradient: Array, x: Array, /, window: Any, *, mode: str = ..., stride: Any | None = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: builtins.bool = ..., axis: int | Sequence[int] | None = ..., ties: str = ...) -> Array:
    """Return the gradient with respect to `x` of `tn.pool(x, window, ...)`, from the gradient with"""

def upsample_nearest(x: Array, factor: Any, /, *, axis: int | Sequence[int] | None = ...) -> Array:
    """Return `x` with each element repeated `factor` times along `axis`: one axis, several, or all"""

def isfinite(x: Array, /) -> Array:
    """Whether `x` is neither infinite nor NaN, element by element: bool, for any dtype."""

def isinf(x: Array, /) -> Array:
    """Whether `x` is infinite, for complex in either part, element by element: bool, for any dtype."""

def isnan(x: Array, /) -> Array:
    """Whether `x` is NaN, for complex in either part, element by element: bool, for any dtype."""

def logical_and(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether both `x1` and `x2` are true (not 0), element by element: bool, for any dtypes."""

def logical_not(x: Array, /) -> Array:
    """Whether `x` is false (0), element by element: bool, for any dtype."""

def logical_or(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1` or `x2` is true (not 0), element by element: bool, for any dtypes."""

def logical_xor(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether one of `x1` and `x2` alone is true (not 0), element by element: bool, for any dtypes."""

def signbit(x: Array, /) -> Array:
    """Whether the sign of `x` is minus, element by element: bool; True for -0. Real dtypes."""

def all(x: Array, /, *, axis: Axis = ..., keepdims: builtins.bool = ...) -> Array:
    """Whether no element is zero, over `axis`: one, a tuple of them, or all when None; bool."""

def any(x: Array, /, *, axis: Axis = ..., keepdims: builtins.bool = ...) -> Array:
    """Whether an element is not zero, over `axis`: one, a tuple of them, or all when None; bool."""

def argmax(x: Array, /, *, axis: int | None = ..., keepdims: builtins.bool = ...) -> Array:
    """Position of the largest element along `axis`, int64; in the flattened array when None."""

def argmin(x: Array, /, *, axis: int | None = ..., keepdims: builtins.bool = ...) -> Array:
    """Position of the smallest element along `axis`, int64; in the flattened array when None."""

def count_nonzero(x: Array, /, *, axis: Axis = ..., keepdims: builtins.bool = ...) -> Array:
    """Count the elements that are not zero, over `axis`: one, a tuple of them, or all when None."""

def max(x: Array, /, *, axis: Axis = ..., keepdims: builtins.bool = ...) -> Array:
    """Largest element over `axis`: one, a tuple of them, or all when None; the dtype of `x`."""

def min(x: Array, /, *, axis: Axis = ..., keepdims: builtins.bool = ...) -> Array:
    """Smallest element over `axis`: one, a tuple of them, or all when None; the dtype of `x`."""

def prod(x: Array, /, *, axis: Axis = ..., dtype: Any = ..., keepdims: builtins.bool = ...) -> Array:
    """Product over `axis`: one, a tuple of them, or all when None. An empty product is 1."""

def sum(x: Array, /, *, axis: Axis = ..., dtype: Any = ..., keepdims: builtins.bool = ...) -> Array:
    """Sum over `axis`: one, a tuple of them, or all when None. An empty sum is 0."""

def broadcast_arrays(*arrays: Array) -> tuple[Array, ...]:
    """Return `arrays` read in the shape that they all broadcast to, as a tuple of views."""

def broadcast_shapes(*shapes: Shape) -> Shape:
    """Return the shape that all `shapes` broadcast to. Raises ShapeError when there is none."""

def broadcast_to(x: Array, /, shape: Shape | int, *, axis: int | None = ...) -> Array:
    """Return `x` read as an array of `shape`: axes of length 1 and missing ones are repeated. The"""

def reshape(x: Array, /, shape: Shape | int, *, copy: builtins.bool | None = ...) -> Array:
    """Return `x` with another shape and the same elements in row-major order; one length may be -1."""

def ceil(x: Array, /) -> Array:
    """Smallest whole number not below `x`, element by element; the dtype of `x`."""

def floor(x: Array, /) -> Array:
    """Largest whole number not above `x`, element by element; the dtype of `x`."""

def round(x: Array, /) -> Array:
    """Nearest whole number to `x`, element by element, the even one at a tie; the dtype of `x`."""

def trunc(x: Array, /) -> Array:
    """`x` without its fraction, element by element: rounded towards zero; the dtype of `x`."""

def segment_max(x: Array, segment_ids: Array, /, num_segments: int) -> Array:
    """Return the largest row of `x`, (n, ...), of each id of `segment_ids`, element by element."""

def segment_mean(x: Array, segment_ids: Array, /, num_segments: int) -> Array:
    """Return the mean of the rows of `x`, (n, ...), of each id of `segment_ids`."""

def segment_min(x: Array, segment_ids: Array, /, num_segments: int) -> Array:
    """Return the smallest row of `x`, (n, ...), of each id of `segment_ids`, element by element."""

def segment_prod(x: Array, segment_ids: Array, /, num_segments: int) -> Array:
    """Return the product of the rows of `x`, (n, ...), of each id of `segment_ids`, in order."""

def add_at(x: Array, indices: Array, values: Array, /) -> Array:
    """Return `x` with `values` added to the rows `indices`; an index that occurs twice adds twice."""

def segment_sum(x: Array, segment_ids: Array, /, num_segments: int) -> Array:
    """Sum the rows of `x`, (n, ...), that bear the same id of `segment_ids`, (n,) integers."""

def clip(x: Array, /, min: Any = ..., max: Any = ...) -> Array:
    """`x` held between `min` and `max`, element by element: shapes broadcast, the dtype of `x`."""

def maximum(x1: Array | complex, x2: Array | complex, /) -> Array:
    """The larger of `x1` and `x2`, element by element: NaN if either is NaN, and 0 is above -0."""

def minimum(x1: Array | complex, x2: Array | complex, /) -> Array:
    """The smaller of `x1` and `x2`, element by element: NaN if either is NaN, and -0 is below 0."""

def where(condition: Array | complex, x1: Array | complex, x2: Array | complex, /) -> Array:
    """`x1` where `condition` is true (not 0) and `x2` elsewhere, element by element."""

def isin(x1: Array, x2: Array, /, *, invert: builtins.bool = ...) -> Array:
    """Return for each element of `x1` whether it is equal to any element of `x2`; or, inverted, to"""

def nonzero(x: Array, /) -> tuple[Array, ...]:
    """Return where `x` is not 0: for each axis an int64 array (n,) of the positions, in row-major"""

def unique_all(x: Array, /) -> Any:
    """Return the different `values` of `x` (u,), the `indices` (u,) of their first occurrences in"""

def unique_counts(x: Array, /) -> Any:
    """Return the different `values` of `x` (u,) and how often each occurs, `counts` (u,). Computes"""

def unique_inverse(x: Array, /) -> Any:
    """Return the different `values` of `x` (u,) and the `inverse_indices` with the shape of `x`"""

def unique_values(x: Array, /) -> Array:
    """Return the different values of `x` (u,) in rising order. Computes `x`."""

def argsort(x: Array, /, *, axis: int = ..., descending: builtins.bool = ..., stable: builtins.bool = ...) -> Array:
    """Return the positions that sort `x` along `axis`: the shape of `x`, int64."""

def searchsorted(x1: Array, x2: Array, /, *, side: str = ..., sorter: Array | None = ...) -> Array:
    """Return where each element of `x2` goes in `x1`, (n,), so that it stays sorted: int64 0 to n."""

def sort(x: Array, /, *, axis: int = ..., descending: builtins.bool = ..., stable: builtins.bool = ...) -> Array:
    """Return `x` sorted along `axis`: the shape and dtype of `x`."""

def log_softmax(x: Array, /, *, axis: Axis = ...) -> Array:
    """Logarithm of `tn.softmax` along `axis`, exact where softmax itself would be 0."""

def logsumexp(x: Array, /, *, axis: Axis = ..., keepdims: builtins.bool = ...) -> Array:
    """Logarithm of the sum of `exp(x)` over `axis`, without overflow: one axis, a tuple, or all."""

def mean(x: Array, /, *, axis: Axis = ..., keepdims: builtins.bool = ...) -> Array:
    """Arithmetic mean over `axis`: one, a tuple of them, or all when None. NaN over an empty axis."""

def softmax(x: Array, /, *, axis: Axis = ...) -> Array:
    """`exp(x)` over its sum along `axis` (one, a tuple, or all when None), without overflow."""

def std(x: Array, /, *, axis: Axis = ..., correction: float = ..., keepdims: builtins.bool = ..., ddof: float | None = ...) -> Array:
    """Standard deviation over `axis`: the square root of the variance, `tn.var`."""

def var(x: Array, /, *, axis: Axis = ..., correction: float = ..., keepdims: builtins.bool = ..., ddof: float | None = ...) -> Array:
    """Variance over `axis`: the sum of squared distances from the mean, over n - `correction`."""

def stop_gradient(x: Array, /) -> Array:
    """Return the values of `x`, through which no derivative goes: that of the result by `x` is 0."""

def repeat(x: Array, repeats: int | Array, /, axis: int | None = ...) -> Array:
    """Return `x` with each position along `axis` repeated, one after the other, `repeats` times: an"""

def roll(x: Array, /, shift: int | tuple[int, ...], axis: Axis = ...) -> Array:
    """Return `x` with its elements moved on by `shift` positions along `axis`; those that go past"""

def tile(x: Array, repetitions: int | Sequence[int], /) -> Array:
    """Return `x` set side by side with itself, as often on each axis as `repetitions` says, counted"""

def col2im(columns: Array, /, shape: Any, window: Any, *, stride: Any = ..., padding: Any = ..., dilation: Any = ...) -> Array:
    """Return images of the sums of columns: (..., c * w, p) to (..., c, *shape), the adjoint of"""

def im2col(x: Array, /, window: Any, *, stride: Any = ..., padding: Any = ..., dilation: Any = ...) -> Array:
    """Return the windows of images as columns: (..., c, *spatial) to (..., c * w, p)."""

def sliding_window_view(x: Array, /, window_shape: Any, axis: int | Sequence[int] | None = ...) -> Array:
    """Return the view of all windows of `x`: the result has an axis of positions for each axis of"""

__all__ = [
    "Array",
    "BatchedOperator",
    "CumulativeOperator",
    "Engine",
    "EngineObject",
    "Handle",
    "InPlaceOperator",
    "Kind",
    "Operator",
    "Profile",
    "Rule",
    "__array_api_version__",
    "__array_namespace_info__",
    "abs",
    "abs2",
    "acos",
    "acosh",
    "add",
    "add_at",
    "all",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "asarray",
    "asin",
    "asinh",
    "assign",
    "assume",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "bfloat16",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "blockwise",
    "bool",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "can_cast",
    "cbrt",
    "ceil",
    "checkpoint",
    "choose_at",
    "clip",
    "col2im",
    "complex128",
    "complex64",
    "concat",
    "cond",
    "conj",
    "convolve",
    "copysign",
    "correlate",
    "cos",
    "cosh",
    "count_nonzero",
    "crop",
    "cse",
    "csr",
    "csr_from_coo",
    "cumulative_prod",
    "cumulative_sum",
    "custom_jvp",
    "custom_vjp",
    "diag",
    "diag_embed",
    "diagonal",
    "diagonal_matrix",
    "diff",
    "divide",
    "e",
    "einsum",
    "empty",
    "empty_like",
    "engine",
    "equal",
    "erf",
    "erfc",
    "errors",
    "eval",
    "exp",
    "exp2",
    "expand_dims",
    "explain",
    "expm1",
    "eye",
    "fft",
    "fill_at",
    "finfo",
    "flip",
    "float16",
    "float32",
    "float64",
    "floor",
    "floor_divide",
    "fma",
    "from_dask",
    "from_dlpack",
    "full",
    "full_like",
    "function",
    "gather",
    "gelu",
    "grad",
    "grad_of",
    "greater",
    "greater_equal",
    "hessian",
    "hvp",
    "hypot",
    "iinfo",
    "im2col",
    "imag",
    "index",
    "inf",
    "int16",
    "int32",
    "int64",
    "int8",
    "isdtype",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "jacobian",
    "jvp",
    "kron",
    "less",
    "less_equal",
    "linalg",
    "linearize",
    "linspace",
    "load_function",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_softmax",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsumexp",
    "mask_rows",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "meshgrid",
    "min",
    "minimum",
    "moveaxis",
    "multiply",
    "nan",
    "negative",
    "newaxis",
    "nextafter",
    "nonzero",
    "not_equal",
    "one_hot",
    "ones",
    "ones_like",
    "op",
    "operator",
    "operators",
    "options",
    "outer",
    "pad",
    "permutation",
    "permute_dims",
    "pi",
    "pool",
    "positive",
    "pow",
    "prod",
    "profile",
    "put_at",
    "random",
    "real",
    "reciprocal",
    "relu",
    "remainder",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "round",
    "rules",
    "scan",
    "searchsorted",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_prod",
    "segment_sort",
    "segment_sum",
    "set_at",
    "set_options",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sliding_window_view",
    "softmax",
    "softmax_gradient",
    "softplus",
    "sort",
    "sort_by_key",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "stop_gradient",
    "stream",
    "subtract",
    "sum",
    "swapaxes",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "testing",
    "tile",
    "to_dask",
    "to_device",
    "trace",
    "tril",
    "trim",
    "triu",
    "trunc",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unpool",
    "unstack",
    "upsample_nearest",
    "value_and_grad",
    "var",
    "vecdot",
    "view_as_complex",
    "view_as_real",
    "vjp",
    "vmap",
    "watch",
    "where",
    "while_loop",
    "wrap",
    "zeros",
    "zeros_like",
]
