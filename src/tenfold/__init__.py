"""Tenfold: lazy tensor expressions with NumPy's API, fused into compiled kernels.

An expression is checked where it is written and computed as a whole where its values are needed.
`x.explain()` shows how; `docs/quickstart.md` is a tour of ten minutes.

>>> import tenfold as tn
>>> x = tn.asarray([3.0, 4.0])
>>> tn.sqrt(tn.sum(x * x)).item()
5.0
"""

from __future__ import annotations

import importlib
from pathlib import Path

from tenfold import _native, dtypes, errors, machine, ops, rules, settings
from tenfold._native import Array
from tenfold.array import array
from tenfold.array.array import asarray, assign, eval, from_dlpack, wrap  # noqa: A004  # settled
from tenfold.core.op import Kind
from tenfold.interop import import_hooks
from tenfold.interop.dask import from_dask, to_dask
from tenfold.kinds import csr_solve as csr_solve
from tenfold.kinds.csr import csr, csr_from_coo
from tenfold.kinds.diagonal import diagonal_matrix
from tenfold.kinds.permutation import permutation
from tenfold.pipeline import trim
from tenfold.rewrite.cse import cse
from tenfold.rewrite.rule import Rule
from tenfold.runtime.stream import stream as stream
from tenfold.settings import options, set_options
from tenfold.version import __version__ as __version__

# An operation or a device enters its table when the module that declares it is imported.
for _page in sorted(Path(ops.__path__[0]).glob("[!_]*.py")):
    importlib.import_module(f"tenfold.ops.{_page.stem}")
for _device in sorted((Path(__file__).parent / "runtime/devices").glob("[!_]*.py")):
    importlib.import_module(f"tenfold.runtime.devices.{_device.stem}")

_native.declare_weak_types([dtypes.BOOL, dtypes.INT64, dtypes.FLOAT64, dtypes.COMPLEX128])
array.install()
import_hooks.install()
del array  # the name of a module here, of a function in NumPy: its absence says what to write
settings.load_environment()
_native.set_storable_bytes(machine.available_memory() // 2)  # the rest is for what it is made of

from tenfold._native import Handle  # noqa: E402  # made from the tables that are full now
from tenfold.engine.engine import Engine, engine  # noqa: E402  # as above
from tenfold.engine.operators import (  # noqa: E402  # as above
    BatchedOperator,
    CumulativeOperator,
    EngineObject,
    InPlaceOperator,
    Operator,
)
from tenfold.namespace import (  # noqa: E402  # as above
    absent,
    api_sections,
    array_api_info,
    random_generator,
    single_import,
    surface,
)
from tenfold.out_of_core.blockwise import blockwise  # noqa: E402  # as above
from tenfold.transforms.checkpoint import checkpoint  # noqa: E402  # as above
from tenfold.transforms.conjugate_gradient import cg  # noqa: E402  # as above
from tenfold.transforms.control_flow import cond, scan, while_loop  # noqa: E402  # as above
from tenfold.transforms.custom_jvp import custom_jvp  # noqa: E402  # as above
from tenfold.transforms.custom_op import op  # noqa: E402  # as above
from tenfold.transforms.custom_vjp import custom_vjp  # noqa: E402  # as above
from tenfold.transforms.derivatives import (  # noqa: E402  # as above
    grad,
    grad_of,
    value_and_grad,
    vjp,
    watch,
)
from tenfold.transforms.function import function  # noqa: E402  # as above
from tenfold.transforms.jacobians import hessian, hvp, jacobian  # noqa: E402  # as above
from tenfold.transforms.operator_decorator import operator  # noqa: E402  # as above
from tenfold.transforms.tangents import jvp, linearize  # noqa: E402  # as above
from tenfold.transforms.vmap import vmap  # noqa: E402  # as above

surface.install_methods()
linalg = surface.module(
    "linalg",
    "Linear algebra: decompositions, solves, norms.",
    {"LinAlgError": errors.LinAlgError, "cg": cg},
)
fft = surface.module("fft", "Fourier transforms, lazily, by pocketfft.")
random = surface.module(
    "random", "Random numbers: Philox4x32-10, inside kernels.", random_generator.GENERATOR_API
)
operators = surface.operators()
_operations = surface.functions()
globals().pop("jit")  # the name of a package here, of a function in JAX: as with `array` above
__getattr__ = absent.module_getattr("tenfold", globals(), absent.LAZY)
for _module in (linalg, fft, random):
    _module.__dict__["__getattr__"] = absent.module_getattr(_module.__name__)
globals().update(array_api_info.STANDARD_NAMES)
globals().update(dtypes.DTYPES)
globals().update(_operations)
__doc__ = f"{__doc__ or ''}\n{api_sections.overview()}\n"

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
    "asarray",
    "assign",
    "blockwise",
    "checkpoint",
    "cond",
    "cse",
    "csr",
    "csr_from_coo",
    "custom_jvp",
    "custom_vjp",
    "diagonal_matrix",
    "engine",
    "errors",
    "eval",
    "explain",
    "fft",
    "from_dask",
    "from_dlpack",
    "function",
    "grad",
    "grad_of",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "linalg",
    "linearize",
    "load_function",
    "op",
    "operator",
    "operators",
    "options",
    "permutation",
    "profile",
    "random",
    "rules",
    "scan",
    "set_options",
    "stream",
    "testing",
    "to_dask",
    "trim",
    "value_and_grad",
    "vjp",
    "vmap",
    "watch",
    "while_loop",
    "wrap",
    *array_api_info.STANDARD_NAMES,
    *dtypes.DTYPES,
    *_operations,
]


def __dir__() -> list[str]:
    """The public names, for completion; the modules that make them are not among them."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


single_import.install()
