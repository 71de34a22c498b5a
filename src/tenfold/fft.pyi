"""The public functions of tenfold.fft.

Made by `make stubs` from the op table; do not edit.
"""

from tenfold._native import Array
from tenfold.core.shape_rules import Axis
from typing import Any

def fft(x: Array, /, n: int | None = ..., axis: int = ..., norm: str | None = ...) -> Array:
    """Return the discrete Fourier transform of `x` along an axis, of `n` points: it is cut, or"""

def fft2(x: Array, /, s: tuple[int, ...] | None = ..., axes: tuple[int, ...] = ..., norm: str | None = ...) -> Array:
    """Return the transform along the last two axes."""

def fftfreq(n: int, /, d: float = ..., *, dtype: Any = ..., device: str | None = ...) -> Array:
    """Return the frequencies of the `n` numbers of a transform, for samples at distances `d`: 0 and"""

def fftn(x: Array, /, s: tuple[int, ...] | None = ..., axes: Axis = ..., norm: str | None = ...) -> Array:
    """Return the transform along several axes, all of them if `axes` is None; `s` has a length for"""

def fftshift(x: Array, /, axes: Axis = ...) -> Array:
    """Return `x` with the number of frequency 0 in the middle of each of `axes` (all if None)."""

def hfft(x: Array, /, n: int | None = ..., axis: int = ..., norm: str | None = ...) -> Array:
    """Return the transform, which is real, of numbers with Hermitian symmetry, of which `x` has the"""

def ifft(x: Array, /, n: int | None = ..., axis: int = ..., norm: str | None = ...) -> Array:
    """Return the inverse of `fft` along an axis."""

def ifft2(x: Array, /, s: tuple[int, ...] | None = ..., axes: tuple[int, ...] = ..., norm: str | None = ...) -> Array:
    """Return the inverse of `fft2`."""

def ifftn(x: Array, /, s: tuple[int, ...] | None = ..., axes: Axis = ..., norm: str | None = ...) -> Array:
    """Return the inverse of `fftn`."""

def ifftshift(x: Array, /, axes: Axis = ...) -> Array:
    """Return the inverse of `fftshift`."""

def ihfft(x: Array, /, n: int | None = ..., axis: int = ..., norm: str | None = ...) -> Array:
    """Return the inverse of `hfft`, of real `x`: n // 2 + 1 numbers."""

def irfft(x: Array, /, n: int | None = ..., axis: int = ..., norm: str | None = ...) -> Array:
    """Return the inverse of `rfft`: `n` real numbers, 2 * (length - 1) if it is None."""

def irfft2(x: Array, /, s: tuple[int, ...] | None = ..., axes: tuple[int, ...] = ..., norm: str | None = ...) -> Array:
    """Return the inverse of `rfft2`."""

def irfftn(x: Array, /, s: tuple[int, ...] | None = ..., axes: Axis = ..., norm: str | None = ...) -> Array:
    """Return the inverse of `rfftn`; `s` are the lengths of the result."""

def rfft(x: Array, /, n: int | None = ..., axis: int = ..., norm: str | None = ...) -> Array:
    """Return the n // 2 + 1 first numbers of the transform of real `x`; the others are their"""

def rfft2(x: Array, /, s: tuple[int, ...] | None = ..., axes: tuple[int, ...] = ..., norm: str | None = ...) -> Array:
    """Return the transform of real `x` along the last two axes."""

def rfftfreq(n: int, /, d: float = ..., *, dtype: Any = ..., device: str | None = ...) -> Array:
    """Return the frequencies of the n // 2 + 1 numbers of `rfft`."""

def rfftn(x: Array, /, s: tuple[int, ...] | None = ..., axes: Axis = ..., norm: str | None = ...) -> Array:
    """Return the transform of real `x` along several axes: of the last one as `rfft`."""
