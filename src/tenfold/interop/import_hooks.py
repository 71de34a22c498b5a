"""Import hooks: register Arrays with libraries that know only arrays of registered classes.

Takes nothing. A library is told when it is imported, which Tenfold itself never does, or at once if
it is already imported.

>>> import einops
>>> import tenfold as tn
>>> einops.rearrange(tn.zeros((2, 3, 4)), "a b c -> (a c) b").shape
(8, 3)
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

from tenfold.interop.dask import DASK_REGISTRARS
from tenfold.interop.einops_backend import declare_backend
from tenfold.interop.scipy_ndimage import NDIMAGE_REGISTRARS

REGISTRARS: dict[str, Callable[[ModuleType], None]] = {
    "einops._backends": declare_backend,
    **DASK_REGISTRARS,
    **NDIMAGE_REGISTRARS,
}
"""By the module of another library: what registers Arrays after its import."""


class _AfterImport:
    """Calls the registrars after the imports of their modules."""

    def find_spec(
        self, name: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        register = _pending.pop(name, None)
        if register is None:
            return None
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                register(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]  # of this one
        return spec


_pending = {**REGISTRARS}


def install() -> None:
    """Register with the libraries that are imported; with the others when they are."""
    for name in [*_pending]:
        module = sys.modules.get(name)
        if module is not None:
            _pending.pop(name)(module)
    if _pending:
        sys.meta_path.insert(0, _AfterImport())
