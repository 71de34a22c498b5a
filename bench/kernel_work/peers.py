"""The libraries: how each is imported, is given a formula and its inputs, and says it is done.

Takes nothing; hands on a `Peer` for each library that is installed. A peer turns a `Work` (rows.py)
into a function of its own arrays that returns a newly allocated result, computed to the end.

    peer = load("jax")
    function = peer.prepare(work)
    values = peer.values(function(*map(peer.give, arrays)))
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from kernel_work import THREADS
from kernel_work.rows import Work

Function = Callable[..., Any]


@dataclass(frozen=True)
class Peer:
    """One library: its version, and how it is handed arrays and work."""

    name: str
    version: str
    give: Callable[[np.ndarray], Any]
    prepare: Callable[[Work], Function]
    values: Callable[[Any], np.ndarray] = np.asarray


def as_is(values: np.ndarray) -> np.ndarray:
    return values


def numpy_peer() -> Peer:
    version = np.__version__
    return Peer("numpy", version, as_is, lambda work: work.formula("numpy", np))


def numexpr_peer() -> Peer:
    numexpr = import_module("numexpr")
    numexpr.set_num_threads(THREADS)

    def prepare(work: Work) -> Function:
        def function(*inputs: np.ndarray) -> Any:
            names = dict(zip("abc", inputs, strict=False))
            return numexpr.evaluate(work.text, names, {})

        return function

    return Peer("numexpr", numexpr.__version__, as_is, prepare)


def numba_peer() -> Peer:
    numba = import_module("numba")
    numba.set_num_threads(THREADS)

    def prepare(work: Work) -> Function:
        compiled: Function = numba.njit(parallel=True, fastmath=False)(work.formula("numba", np))
        return compiled

    return Peer("numba", numba.__version__, as_is, prepare)


def jax_peer() -> Peer:
    jax = import_module("jax")
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_platforms", "cpu")

    def prepare(work: Work) -> Function:
        formula = work.formula("jax", import_module("jax.numpy"))
        function = formula if work.steps else jax.jit(formula)  # one of steps compiles its step
        return lambda *inputs: function(*inputs).block_until_ready()

    return Peer("jax", jax.__version__, jax.device_put, prepare)


def torch_peer() -> Peer:
    torch = import_module("torch")
    torch.set_num_threads(THREADS)

    def prepare(work: Work) -> Function:
        function: Function = torch.inference_mode()(work.formula("torch", torch))
        return function

    return Peer("torch", torch.__version__, torch.from_numpy, prepare)


def compiled_torch_peer() -> Peer:
    torch = import_module("torch")
    eager = torch_peer()

    def prepare(work: Work) -> Function:
        function: Function = torch.inference_mode()(torch.compile(work.formula("torch", torch)))
        return function

    return Peer("torch.compile", eager.version, eager.give, prepare)


def tenfold_peer() -> Peer:
    """Tenfold as a user has it: the expression is built and evaluated at each call."""
    tenfold = import_module("tenfold")
    if "TENFOLD_THREADS" in os.environ and "threads" in tenfold.settings.current():
        tenfold.set_options(threads=THREADS)

    def prepare(work: Work) -> Function:
        formula = work.formula("tenfold", tenfold)
        return lambda *inputs: formula(*inputs).wait()

    return Peer("tenfold", tenfold.__version__, tenfold.asarray, prepare)


LOADERS: dict[str, Callable[[], Peer]] = {
    "tenfold": tenfold_peer,
    "numpy": numpy_peer,
    "numexpr": numexpr_peer,
    "numba": numba_peer,
    "jax": jax_peer,
    "torch": torch_peer,
    "torch.compile": compiled_torch_peer,
}


def load(name: str) -> Peer | None:
    """The peer of that name, or None where the library is not installed."""
    try:
        return LOADERS[name]()
    except ImportError:
        return None


def load_all(names: Collection[str]) -> dict[str, Peer | None]:
    """The peers of these names; Tenfold, and NumPy, whose values are the measure, always."""
    wanted = [name for name in LOADERS if name in names or name in ("tenfold", "numpy")]
    return {name: load(name) for name in wanted}
