"""NumPy's namespace on Tenfold's arrays: NumPy's own names, keywords and positions.

`import tenfold.numpy as np` takes the place of `import numpy as np`. Functions return lazy Arrays;
those whose shapes depend on values compute at the call. `docs/numpy-names.md` has the differences.

>>> import tenfold.numpy as np
>>> np.concatenate([np.zeros(2), [1, 2]]).sum(0).item()
3.0
"""

from __future__ import annotations

import importlib
from functools import partial
from types import FunctionType
from typing import Any, NoReturn

import numpy as np

from tenfold.numpy import (
    calculus,
    creation,
    elementwise,
    fft,
    index_tricks,
    lib,
    linalg,
    logic,
    manipulation,
    numpy_objects,
    polynomials,
    products,
    quantiles,
    searching,
    sums_and_extremes,
)
from tenfold.numpy.by_numpy import or_by_numpy
from tenfold.numpy.calculus import *
from tenfold.numpy.creation import *
from tenfold.numpy.elementwise import *
from tenfold.numpy.index_tricks import *
from tenfold.numpy.logic import *
from tenfold.numpy.manipulation import *
from tenfold.numpy.numpy_objects import *
from tenfold.numpy.polynomials import *
from tenfold.numpy.products import *
from tenfold.numpy.quantiles import *
from tenfold.numpy.searching import *
from tenfold.numpy.sums_and_extremes import *

PAGES = (
    calculus,
    creation,
    elementwise,
    index_tricks,
    logic,
    manipulation,
    numpy_objects,
    polynomials,
    products,
    quantiles,
    sums_and_extremes,
    searching,
)
"""The modules whose public names are those of this namespace."""
SUBMODULES = {"random": "tenfold.namespace.legacy_random"}
"""Modules of later rooms, imported when they are used."""

__all__ = ["fft", "lib", "linalg", *SUBMODULES, *(name for page in PAGES for name in page.__all__)]


def __getattr__(name: str) -> Any:
    """Import a submodule; refuse any other name that NumPy has and this namespace has not."""
    if name in SUBMODULES:
        return importlib.import_module(SUBMODULES[name])
    return _refuse(__name__, name)


def _refuse(module: str, name: str) -> NoReturn:
    # The room of errors for names is a later one than this.
    raise importlib.import_module("tenfold.namespace.absent").missing_name_error(module, name)


for _module, _pages, _theirs in (
    (globals(), PAGES, np),
    (vars(linalg), (linalg,), np.linalg),
    (vars(fft), (fft,), np.fft),
):
    _module.update(
        (name, or_by_numpy(function, getattr(_theirs, name)))
        for page in _pages
        for name, function in vars(page).items()
        if name in page.__all__ and isinstance(function, FunctionType) and hasattr(_theirs, name)
    )
for _page in (fft, lib, linalg):
    _page.__dict__["__getattr__"] = partial(_refuse, _page.__name__)
