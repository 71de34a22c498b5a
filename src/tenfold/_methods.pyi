"""The methods of Array that are not native.

Made by `make stubs` from the op table; do not edit.
"""

from collections.abc import Iterator
from collections.abc import Sequence
from tenfold._native import Array
from tenfold.core.op import Kind
from tenfold.core.shape_rules import Axis
from typing import Any
import builtins
import numpy as np

class Methods:
    """The methods and properties of Array that are not native."""

    @property
    def T(self) -> Array:
        """`x.T`: the axes in reverse order, a view; of a matrix (m, n) the transposed one (n, m)."""

    @T.setter
    def T(self, value: Any) -> None: ...

    def __array__(self, dtype: Any = ..., copy: builtins.bool | None = ...) -> np.ndarray[Any, Any]:
        """Return the values as an ndarray: read-only, or a writeable copy for `copy=True`."""

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Dispatch a NumPy function; NotImplemented if `types` has arrays of another library."""

    def __array_namespace__(self, *, api_version: str | None = ...) -> Any:
        """Return the tenfold module: the functions of the array API standard for this array."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Dispatch a ufunc; NotImplemented if an operand is an array of another library."""

    def __await__(self) -> Any:
        """`await x`: submit the array, and wait for its values in a thread of the event loop."""

    def __complex__(self) -> complex:
        """Return the only element as a Python complex number."""

    def __contains__(self, value: object) -> builtins.bool:
        """Whether an element equals `value`; computes, and waits."""

    def __copy__(self) -> Array:
        """Return another name for the same value: a copy, since values never change."""

    def __deepcopy__(self, _memo: dict[int, Any]) -> Array:
        """As rename, for copy.deepcopy."""

    def __dlpack__(self, *, stream: Any = ..., max_version: tuple[int, int] | None = ..., dl_device: tuple[int, int] | None = ..., copy: builtins.bool | None = ...) -> Any:
        """Return a DLPack capsule of a copy of the values, which is counted in `copies`. Waits."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's number of the device: (1, 0), the CPU, or (2, n), that of cuda:n."""

    def __format__(self, specification: str) -> str:
        """Format the only element of an array as Python formats the number; waits."""

    def __iter__(self) -> Iterator[Array]:
        """Iterate over the first axis. Raises TypeError for an array without axes."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the pickled form of an Array."""

    def __round__(self, ndigits: int | None = ...) -> Array:
        """Return `round(x)`: the elements rounded to whole numbers or digits, in the dtype of `x`."""

    def _repr_html_(self) -> str:
        """Return the array as HTML for notebooks; computes nothing."""

    def all(self, axis: Axis = ..., out: Any = ..., keepdims: builtins.bool = ..., *, where: Any = ...) -> Any:
        """Whether no element is zero, over `axis`: one, a tuple of them, or all when None; bool."""

    def any(self, axis: Axis = ..., out: Any = ..., keepdims: builtins.bool = ..., *, where: Any = ...) -> Any:
        """Whether an element is not zero, over `axis`: one, a tuple of them, or all when None; bool."""

    def argmax(self, axis: int | None = ..., out: Any = ..., *, keepdims: builtins.bool = ...) -> Any:
        """Position of the largest element along `axis`, int64; in the flattened array when None."""

    def argmin(self, axis: int | None = ..., out: Any = ..., *, keepdims: builtins.bool = ...) -> Any:
        """Position of the smallest element along `axis`, int64; in the flattened array when None."""

    def argpartition(self, kth: Any, axis: int | None = ..., kind: str = ..., order: Any = ...) -> Array:
        """Return the indices that sort along `axis`, which parts it at every index."""

    def argsort(self, axis: int | None = ..., kind: Any = ..., order: Any = ..., *, stable: Any = ..., descending: builtins.bool | None = ...) -> Array:
        """Return the positions that sort `x` along `axis`: the shape of `x`, int64."""

    def astype(self, dtype: Any, order: str = ..., casting: str = ..., subok: builtins.bool = ..., copy: builtins.bool = ..., *, device: str | None = ...) -> Any:
        """Return `x` in another dtype: shape (...), the dtype named."""

    def byteswap(self, inplace: builtins.bool = ...) -> Array:
        """Return the elements with their bytes in reverse order; waits."""

    def choose(self, choices: Any, out: Any = ..., mode: str = ...) -> Any:
        """Return the element of the choice that each index names."""

    def clip(self, min: Any = ..., max: Any = ..., out: Any = ..., **options: Any) -> Any:
        """Return the elements limited to a range."""

    def compress(self, condition: Any, axis: int | None = ..., out: Any = ...) -> Any:
        """Return the slices along `axis` where the condition holds; waits for it."""

    def conj(self) -> Array:
        """Return the complex conjugates; real numbers as they are."""

    def conjugate(self) -> Array:
        """Return the complex conjugates; real numbers as they are."""

    def copy(self, order: str = ...) -> Array:
        """Return a new Array of the same values."""

    def cumprod(self, axis: int | None = ..., dtype: Any = ..., out: Any = ...) -> Any:
        """Return running products along `axis`, or of the flattened array."""

    def cumsum(self, axis: int | None = ..., dtype: Any = ..., out: Any = ...) -> Any:
        """Return running sums along `axis`, or of the flattened array."""

    @property
    def data(self) -> Any:
        """The memory of the values, read-only; waits."""

    def diagonal(self, offset: int = ..., axis1: int = ..., axis2: int = ...) -> Array:
        """Return the elements whose indices on two axes differ by `offset`."""

    def dot(self, b: Any, out: Any = ...) -> Any:
        """Return products summed over the last axis and the second last of `b`."""

    def dump(self, file: Any) -> None:
        """Pickle the array into a file, given by name or open."""

    def dumps(self) -> bytes:
        """Return the pickled array."""

    def explain(self, stage: str | None = ..., *, analyze: builtins.bool = ..., format: str = ...) -> str:
        """Return how the array is (to be) computed: see tn.explain."""

    def fill(self, value: Any) -> None:
        """Write a number into every element, cast to the dtype."""

    @property
    def flags(self) -> Any:
        """The flags of the values as they are exported; an Array takes writes always."""

    @property
    def flat(self) -> Array:
        """The elements along one axis; writes go through."""

    @flat.setter
    def flat(self, value: Any) -> None: ...

    def flatten(self, order: str = ...) -> Array:
        """Return a copy of the elements along one axis."""

    @property
    def imag(self) -> Array:
        """The imaginary parts, a view; of a real array 0, read-only."""

    @imag.setter
    def imag(self, value: Any) -> None: ...

    def item(self, *args: Any) -> Any:
        """Return the only element as a Python number, or the one at an index."""

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""

    @property
    def kind(self) -> Kind:
        """The kinds of its operation: VALUE, MAP, VIEW or CONTRACTION, combined by bitwise or."""

    @property
    def mT(self) -> Array:
        """The matrices (..., m, n) transposed, a view of shape (..., n, m)."""

    @mT.setter
    def mT(self, value: Any) -> None: ...

    def max(self, axis: Axis = ..., out: Any = ..., keepdims: builtins.bool = ..., initial: Any = ..., where: Any = ...) -> Any:
        """Largest element over `axis`: one, a tuple of them, or all when None; the dtype of `x`."""

    def mean(self, axis: Axis = ..., dtype: Any = ..., out: Any = ..., keepdims: builtins.bool = ..., *, where: Any = ...) -> Any:
        """Arithmetic mean over `axis`: one, a tuple of them, or all when None. NaN over an empty axis."""

    def min(self, axis: Axis = ..., out: Any = ..., keepdims: builtins.bool = ..., initial: Any = ..., where: Any = ...) -> Any:
        """Smallest element over `axis`: one, a tuple of them, or all when None; the dtype of `x`."""

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""

    @property
    def nnz(self) -> int:
        """The number of elements that an array of a storage kind stores."""

    def nonzero(self) -> tuple[Array, ...]:
        """Return the indices of elements that are not 0, one array for each axis; waits."""

    def partition(self, kth: Any, axis: int = ..., kind: str = ..., order: Any = ...) -> None:
        """Sort along `axis` in place, which parts it at every index."""

    def permute_dims(self, /, axes: Sequence[int] | None = ...) -> Array:
        """Return a view of `x` with its axes in the order `axes`, each once; reversed if None."""
    def prod(self, axis: Axis = ..., dtype: Any = ..., out: Any = ..., keepdims: builtins.bool = ..., initial: Any = ..., where: Any = ...) -> Any:
        """Product over `axis`: one, a tuple of them, or all when None. An empty product is 1."""

    def put(self, indices: Any, values: Any, mode: str = ...) -> None:
        """Write values at indices of the flattened array; waits."""

    def ravel(self, order: str | None = ...) -> Array:
        """Return the elements along one axis."""

    @property
    def real(self) -> Array:
        """The real parts, a view; of a real array itself."""

    @real.setter
    def real(self, value: Any) -> None: ...

    def repeat(self, repeats: Any, axis: int | None = ...) -> Array:
        """Return each element repeated, along `axis` or of the flattened array."""

    def reshape(self, *shape: Any, order: str | None = ..., copy: builtins.bool | None = ...) -> Array:
        """Return `x` with another shape and the same elements in row-major order; one length may be -1."""

    def round(self, decimals: int = ..., out: Any = ...) -> Any:
        """Return the elements rounded to some decimals, the even ones of two."""

    def searchsorted(self, v: Any, side: str = ..., sorter: Any = ...) -> Array:
        """Return where each element of `x2` goes in `x1`, (n,), so that it stays sorted: int64 0 to n."""

    def setflags(self, write: Any = ..., align: Any = ..., uic: Any = ...) -> None:
        """Refuse other flags than those that the array has."""

    def sort(self, axis: int = ..., kind: Any = ..., order: Any = ..., *, stable: Any = ..., descending: builtins.bool | None = ...) -> None:
        """Sort along `axis` in place."""

    def squeeze(self, axis: int | tuple[int, ...] | None = ...) -> Array:
        """Return the array without axes of length 1."""

    def std(self, axis: Axis = ..., dtype: Any = ..., out: Any = ..., ddof: float = ..., keepdims: builtins.bool = ..., *, where: Any = ..., mean: Any = ..., correction: float | None = ...) -> Any:
        """Standard deviation over `axis`: the square root of the variance, `tn.var`."""

    @property
    def storage(self) -> str:
        """What is known of its matrices (..., n, n), such as "lower"; "dense" if nothing is."""

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes between neighbours along each axis of the values as they are exported."""

    def sum(self, axis: Axis = ..., dtype: Any = ..., out: Any = ..., keepdims: builtins.bool = ..., initial: Any = ..., where: Any = ...) -> Any:
        """Sum over `axis`: one, a tuple of them, or all when None. An empty sum is 0."""

    def swapaxes(self, axis1: int, axis2: int) -> Array:
        """Return the array with two axes exchanged."""

    def take(self, indices: Any, axis: int | None = ..., out: Any = ..., mode: str = ...) -> Any:
        """Return the elements at indices along `axis`, or of the flattened array."""

    def to_dense(self) -> Array:
        """Return an array of elements that are stored one by one; a dense array itself."""

    def to_device(self, /, device: str, *, stream: Any = ...) -> Array:
        """Return `x` on another device, where what is made of it is computed: shape (...), its dtype."""
    def to_scipy(self) -> Any:
        """Return the matrix as a `scipy.sparse.csr_array` with buffers of its own; waits."""

    def tobytes(self, order: str = ...) -> bytes:
        """Return the bytes of the values; waits."""

    def tofile(self, fid: Any, sep: str = ..., format: str = ...) -> None:
        """Write the values into a file, as NumPy's; waits."""

    def tolist(self) -> Any:
        """Return the values as nested lists of Python numbers; one number for an array of no axes."""

    def trace(self, offset: int = ..., axis1: int = ..., axis2: int = ..., dtype: Any = ..., out: Any = ...) -> Any:
        """Return the sum of a diagonal."""

    def transpose(self, *axes: Any) -> Array:
        """Return the axes in another order, reversed by default."""

    def var(self, axis: Axis = ..., dtype: Any = ..., out: Any = ..., ddof: float = ..., keepdims: builtins.bool = ..., *, where: Any = ..., mean: Any = ..., correction: float | None = ...) -> Any:
        """Variance over `axis`: the sum of squared distances from the mean, over n - `correction`."""

    def view(self, dtype: Any = ..., type: Any = ...) -> Any:
        """Return a view; with another dtype a copy of the bytes in that dtype, which waits."""
