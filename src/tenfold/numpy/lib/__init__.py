"""`numpy.lib`: only its `stride_tricks`, whose windows are lazy views."""

from __future__ import annotations

from tenfold.numpy.lib import stride_tricks

__all__ = ["stride_tricks"]
