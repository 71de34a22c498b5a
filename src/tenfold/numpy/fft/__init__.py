"""Fourier transforms in NumPy's form: `tenfold.numpy.fft`.

Takes NumPy's positions and keywords, hands on Arrays of the operations of `tn.fft`.

>>> ifft(fft([1.0, 2.0])).real.tolist()
[1.0, 2.0]
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tenfold._native import Array
from tenfold.core.op import Operation
from tenfold.core.trace_state import user_stacklevel
from tenfold.numpy.arguments import as_array, deliver
from tenfold.ops import fft as transforms
from tenfold.ops.fft import fftfreq, rfftfreq

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip


def _form(operation: Operation[...]) -> Callable[..., Any]:
    """Return a transform that takes lists and `out=` too."""

    def transform(a: Any, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        s = args[0] if args else kwargs.get("s")
        if s is not None and name.endswith(("n", "2")):
            axes = args[1] if len(args) > 1 else kwargs.get("axes", () if "2" in name else None)
            kwargs.pop("s", None)
            args = (_lengths(s, axes), *args[1:])
        result: Array = operation(as_array(a), *args, **kwargs)
        return deliver(result, out)

    name = transform.__name__ = transform.__qualname__ = operation.name
    transform.__doc__ = operation.doc
    return transform


def _lengths(s: Any, axes: Any) -> list[int]:
    """Return lengths, -1 for None; warn of what NumPy is about to refuse."""
    lengths = [-1 if length is None else length for length in s]
    texts = {
        "`axes` should not be `None` if `s` is not `None`": axes is None,
        "passing an array containing `None` values to `s` is deprecated; use -1": None in s,
    }
    for text, holds in texts.items():
        if holds:
            warnings.warn(text, DeprecationWarning, stacklevel=user_stacklevel())
    return lengths


fft = _form(transforms.fft)
fft2 = _form(transforms.fft2)
fftn = _form(transforms.fftn)
fftshift = _form(transforms.fftshift)
hfft = _form(transforms.hfft)
ifft = _form(transforms.ifft)
ifft2 = _form(transforms.ifft2)
ifftn = _form(transforms.ifftn)
ifftshift = _form(transforms.ifftshift)
ihfft = _form(transforms.ihfft)
irfft = _form(transforms.irfft)
irfft2 = _form(transforms.irfft2)
irfftn = _form(transforms.irfftn)
rfft = _form(transforms.rfft)
rfft2 = _form(transforms.rfft2)
rfftn = _form(transforms.rfftn)
