"""Tenfold: lazy tensor expressions, written like NumPy.

>>> import tenfold as tn
>>> x = tn.asarray([3.0, 4.0])
>>> tn.sqrt(tn.sum(x * x)).item()
5.0
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from tenfold import _native, dtypes, ops, settings
from tenfold._native import Array
from tenfold.ir.op import Kind

for _page in pkgutil.iter_modules(ops.__path__):
    importlib.import_module(f"tenfold.ops.{_page.name}")

from tenfold.devices import reference  # noqa: E402  # a device declares itself when imported
from tenfold.array import asarray, install  # noqa: E402
from tenfold.namespace import surface  # noqa: E402
from tenfold.settings import options, set_options  # noqa: E402

_native.declare_weak_types([dtypes.BOOL, dtypes.INT64, dtypes.FLOAT64, dtypes.COMPLEX128])
install()
settings.load_environment()
surface.install_methods()
globals().update(dtypes.DTYPES)
globals().update(surface.functions())
linalg = ModuleType("tenfold.linalg")
linalg.__dict__.update(surface.functions("linalg"))
operators = surface.operators()
