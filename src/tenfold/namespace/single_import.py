"""Single import: refuses to execute a module of the package twice, and undoes what led to it.

Native code holds the classes and functions of the first import, so a second one would break every
Array. Removing the package from `sys.modules`, as some test isolation does, and `importlib.reload`
lead to one. Native code refuses other interpreters itself (`native/python/module.cpp`).

>>> import importlib, tenfold
>>> try:
...     importlib.reload(tenfold)
... except ImportError as error:
...     print(error)
tenfold: it is imported in this process, and a second import would break its Arrays
  remedy: leave the modules of tenfold in sys.modules
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

from tenfold.errors import message

PACKAGE_NAME = "tenfold"


class SingleImport:
    """A finder of `sys.meta_path` that finds nothing, and remembers the modules of the package."""

    def __init__(self) -> None:
        # no lock: each use is one call, atomic under the GIL
        self._modules: dict[str, ModuleType] = {}
        self._remember()

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> None:
        """Raise ImportError for a module that was imported before, and restore all of them."""
        if name.partition(".")[0] != PACKAGE_NAME:
            return
        self._remember()
        if name in self._modules:
            for known, module in self._modules.items():
                sys.modules.setdefault(known, module)
            rule = "it is imported in this process, and a second import would break its Arrays"
            remedy = f"leave the modules of {PACKAGE_NAME} in sys.modules"
            raise ImportError(message(name, rule, remedy=remedy), name=name)

    def _remember(self) -> None:
        for name, module in [*sys.modules.items()]:
            if name.partition(".")[0] == PACKAGE_NAME:
                self._modules.setdefault(name, module)


def install() -> None:
    """Guard the package, once all that `import tenfold` executes is there."""
    sys.meta_path.insert(0, SingleImport())
