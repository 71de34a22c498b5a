"""The methods of Array that are not native.

Made by `make stubs` from the op table; do not edit.
"""

from collections.abc import Iterator
from collections.abc import Sequence
from tenfold._native import Array
from tenfold.core.op import Kind
from tenfold.core.shape_rules import Axis
from tenfold.core.shape_rules import Shape
from typing import Any
import builtins
import numpy as np

class Methods:
    """The methods and properties of Array that are not native."""

    @property
    def T(self) -> Array:
        """`x.T`: the matrix (m, n) transposed, a view of shape (n, m). Raises ShapeError if not 2-d."""

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
        """Return DLPack's number of the device: (1, 0), the CPU."""

    def __format__(self, specification: str) -> str:
        """Format the only element of an array as Python formats the number; waits."""

    def __iter__(self) -> Iterator[Array]:
        """Iterate over the first axis. Raises TypeError for an array without axes."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the pickled form of an Array."""

    def __round__(self, ndigits: int | None = ...) -> Array:
        """Return `round(x)`: the elements rounded to whole numbers, in the dtype of `x`."""

    def _repr_html_(self) -> str:
        """Return the array as HTML for notebooks; computes nothing."""

    def all(self, /, *, axis: Axis = ..., keepdims: builtins.bool = ...) -> Array:
        """Whether no element is zero, over `axis`: one, a tuple of them, or all when None; bool."""
    def any(self, /, *, axis: Axis = ..., keepdims: builtins.bool = ...) -> Array:
        """Whether an element is not zero, over `axis`: one, a tuple of them, or all when None; bool."""
    def argmax(self, /, *, axis: int | None = ..., keepdims: builtins.bool = ...) -> Array:
        """Position of the largest element along `axis`, int64; in the flattened array when None."""
    def argmin(self, /, *, axis: int | None = ..., keepdims: builtins.bool = ...) -> Array:
        """Position of the smallest element along `axis`, int64; in the flattened array when None."""
    def argsort(self, /, *, axis: int = ..., descending: builtins.bool = ..., stable: builtins.bool = ...) -> Array:
        """Return the positions that sort `x` along `axis`: the shape of `x`, int64."""
    def astype(self, dtype: Any, /, *, copy: builtins.bool = ..., device: str | None = ...) -> Array:
        """Return `x` in another dtype: shape (...), the dtype named."""
    def explain(self, stage: str | None = ..., *, analyze: builtins.bool = ..., format: str = ...) -> str:
        """Return how the array is (to be) computed: see tn.explain."""

    def item(self) -> Any:
        """Return the only element as a Python number. Raises ShapeError when there is not exactly one."""

    @property
    def kind(self) -> Kind:
        """The kinds of its operation: VALUE, MAP, VIEW or CONTRACTION, combined by bitwise or."""

    @property
    def mT(self) -> Array:
        """The matrices (..., m, n) transposed, a view of shape (..., n, m)."""

    @mT.setter
    def mT(self, value: Any) -> None: ...

    def max(self, /, *, axis: Axis = ..., keepdims: builtins.bool = ...) -> Array:
        """Largest element over `axis`: one, a tuple of them, or all when None; the dtype of `x`."""
    def mean(self, /, *, axis: Axis = ..., keepdims: builtins.bool = ...) -> Array:
        """Arithmetic mean over `axis`: one, a tuple of them, or all when None. NaN over an empty axis."""
    def min(self, /, *, axis: Axis = ..., keepdims: builtins.bool = ...) -> Array:
        """Smallest element over `axis`: one, a tuple of them, or all when None; the dtype of `x`."""
    def permute_dims(self, /, axes: Sequence[int] | None = ...) -> Array:
        """Return a view of `x` with its axes in the order `axes`, each once; reversed if None."""
    def prod(self, /, *, axis: Axis = ..., dtype: Any = ..., keepdims: builtins.bool = ...) -> Array:
        """Product over `axis`: one, a tuple of them, or all when None. An empty product is 1."""
    def reshape(self, /, shape: Shape | int, *, copy: builtins.bool | None = ...) -> Array:
        """Return `x` with another shape and the same elements in row-major order; one length may be -1."""
    def searchsorted(self, x2: Array, /, *, side: str = ..., sorter: Array | None = ...) -> Array:
        """Return where each element of `x2` goes in `x1`, (n,), so that it stays sorted: int64 0 to n."""
    def std(self, /, *, axis: Axis = ..., correction: float = ..., keepdims: builtins.bool = ...) -> Array:
        """Standard deviation over `axis`: the square root of the variance, `tn.var`."""
    def sum(self, /, *, axis: Axis = ..., dtype: Any = ..., keepdims: builtins.bool = ...) -> Array:
        """Sum over `axis`: one, a tuple of them, or all when None. An empty sum is 0."""
    def to_device(self, device: str, /, *, stream: Any = ...) -> Array:
        """Return the array on another device, computed there from now on; `stream` must be None."""

    def tolist(self) -> Any:
        """Return the values as nested lists of Python numbers; one number for an array of no axes."""

    def var(self, /, *, axis: Axis = ..., correction: float = ..., keepdims: builtins.bool = ...) -> Array:
        """Variance over `axis`: the sum of squared distances from the mean, over n - `correction`."""
