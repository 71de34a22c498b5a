"""Random gradients of linear algebra: programs of decompositions and solves, compared with JAX's.

Takes a number of programs and a seed; prints each gradient or directional derivative that differs
beyond rounding, with its seed and program, and ends with 1 if there is one. Arrays are float64 or
complex128, matrices or stacks of them. A program is flagged, and not compared, where a value or
JAX's gradient is not finite.

A difference is rounding as `tools/random_gradients.py` says.

    pip install jax
    python tools/random_matrix_gradients.py --programs 2000
"""

from __future__ import annotations

import argparse
import random
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

import tenfold as tn

jax: Any = import_module("jax")
jnp: Any = import_module("jax.numpy")
jsl: Any = import_module("jax.scipy.linalg")
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)

TOLERANCE, PERTURBATION, SPREAD = 1e-10, 1e-12, 100.0

JAX = SimpleNamespace(
    **{name: getattr(jnp, name) for name in ("abs", "cos", "exp", "sin", "sqrt", "sum", "tanh")},
    **{name: getattr(jnp, name) for name in ("conj", "eye", "matrix_transpose", "real", "where")},
    linalg=SimpleNamespace(
        **{name: getattr(jnp.linalg, name) for name in ("cholesky", "det", "eigh", "eigvalsh")},
        **{name: getattr(jnp.linalg, name) for name in ("inv", "matrix_power", "norm", "pinv")},
        **{name: getattr(jnp.linalg, name) for name in ("qr", "slogdet", "svd", "trace")},
        eigvals=jnp.linalg.eigvals,
        expm=jsl.expm,
        lu=lambda x: jax.vmap(jsl.lu)(x) if x.ndim > 2 else jsl.lu(x),
        solve=jnp.linalg.solve,
        triangular_solve=lambda a, b: jsl.solve_triangular(jnp.tril(a), b, lower=True),
    ),
)
"""JAX by the names that the programs use."""


def _adjoint(lib: Any, x: Any) -> Any:
    return lib.conj(lib.matrix_transpose(x))


def _unit(lib: Any, x: Any) -> Any:
    """A matrix of moderate size, which keeps later steps tame."""
    return x / lib.sqrt(1 + lib.sum(lib.abs(x) ** 2))


def _regular(lib: Any, x: Any) -> Any:
    return _unit(lib, x) + 2 * lib.eye(x.shape[-1])


def _definite(lib: Any, x: Any) -> Any:
    return _unit(lib, x) @ _adjoint(lib, _unit(lib, x)) + lib.eye(x.shape[-1])


def _from_svd(lib: Any, x: Any) -> Any:
    u, s, vh = lib.linalg.svd(x, full_matrices=False)
    return (u * lib.tanh(s)[..., None, :]) @ vh


def _from_eigh(lib: Any, x: Any) -> Any:
    values, vectors = lib.linalg.eigh(x + _adjoint(lib, x))
    return (vectors * lib.sin(values)[..., None, :]) @ _adjoint(lib, vectors)


def _from_lu(lib: Any, x: Any) -> Any:
    _, lower, upper = lib.linalg.lu(x)
    return lower @ lib.sin(upper) if lower.shape[-1] == upper.shape[-2] else x


def _from_qr(lib: Any, x: Any) -> Any:
    q, r = lib.linalg.qr(x)
    return q @ lib.sin(r)


def _scaled(lib: Any, x: Any, scale: Any) -> Any:
    return x * lib.tanh(lib.real(scale))[..., None, None]


STEPS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "product": lambda _, x, y: x @ y,
    "solve": lambda lib, x, y: lib.linalg.solve(_regular(lib, x), y),
    "inv": lambda lib, x, y: lib.linalg.inv(_regular(lib, x)) @ y,
    "det": lambda lib, x, y: _scaled(lib, y, lib.linalg.det(x)),
    "slogdet": lambda lib, x, y: _scaled(lib, y, lib.linalg.slogdet(_regular(lib, x))[1]),
    "cholesky": lambda lib, x, y: lib.linalg.cholesky(_definite(lib, x)) @ y,
    "triangular": lambda lib, x, y: lib.linalg.triangular_solve(_regular(lib, x), y),
    "qr": lambda lib, x, _: _from_qr(lib, x),
    "lu": lambda lib, x, _: _from_lu(lib, x),
    "svd": lambda lib, x, _: _from_svd(lib, x),
    "eigh": lambda lib, x, _: _from_eigh(lib, x),
    "eigvalsh": lambda lib, x, y: y * lib.linalg.eigvalsh(x + _adjoint(lib, x))[..., None, :],
    "eigvals": lambda lib, x, y: _scaled(
        lib, y, lib.sum(lib.abs(lib.linalg.eigvals(x)) ** 2, axis=-1)
    ),
    "expm": lambda lib, x, _: lib.linalg.expm(_unit(lib, x)),
    "pinv": lambda lib, x, y: lib.linalg.pinv(_regular(lib, x)[..., :, 1:]) @ y,
    "power": lambda lib, x, y: lib.linalg.matrix_power(_regular(lib, x), -2) @ y,
    "nuclear": lambda lib, x, y: _scaled(lib, y, lib.linalg.norm(x, "nuc", (-2, -1))),
    "trace": lambda lib, x, y: _scaled(lib, y, lib.linalg.trace(x)),
    "sine": lambda lib, x, y: lib.sin(_unit(lib, x)) + y,
}
WIDE = {"pinv"}
"""Steps that change the shape: they go last."""


@dataclass(frozen=True)
class Program:
    """Steps on slots, the first of which are the arrays."""

    steps: list[tuple[str, int, int]]
    arrays: list[np.ndarray]
    weights: np.ndarray


def draw(seed: int) -> Program:
    """Draw a program."""
    rng, values = random.Random(seed), np.random.default_rng(seed)
    shape = rng.choice(((4, 4), (2, 3, 3)))  # few: JAX compiles each operation for each shape
    arrays = [values.standard_normal(shape) for _ in range(rng.choice((1, 2)))]
    if rng.random() < 0.3:
        arrays = [x + 1j * values.standard_normal(shape) for x in arrays]
    names = [name for name in STEPS if name not in WIDE]
    steps: list[tuple[str, int, int]] = []
    for at in range(rng.randint(1, 4)):
        slots = range(len(arrays) + at)
        # the last slot is read, so that all steps count
        steps.append((rng.choice(names), slots[-1], rng.choice(slots)))
    if rng.random() < 0.1:
        last = len(arrays) + len(steps) - 1
        steps.append((rng.choice(sorted(WIDE)), last, last))
    return Program(steps, arrays, values.standard_normal(shape))


def loss_of(program: Program, lib: Any, *arrays: Any) -> Any:
    """Return the weighted sum of the last slot."""
    slots = list(arrays)
    for name, first, second in program.steps:
        slots.append(STEPS[name](lib, slots[first], slots[second]))
    result = slots[-1]
    weights = program.weights[..., : result.shape[-2], :]
    return lib.sum(lib.real(result) * weights) + lib.sum(lib.abs(result) ** 2)


def _error(found: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    """Return the largest difference, relative to the largest element of all gradients."""
    errors = [np.max(np.abs(x - y)) for x, y in zip(found, wanted, strict=True)]
    return float(max(errors) / max(np.max(np.abs(y)) for y in wanted))


def gradients_of_jax(program: Program, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Return JAX's gradients: those of complex arrays are the conjugates of Tenfold's."""
    positions = tuple(range(len(arrays)))
    gradients = jax.grad(partial(loss_of, program, JAX), argnums=positions)(*arrays)
    return [np.conj(np.asarray(x)) for x in gradients]


def gradients_of_tenfold(program: Program, seed: int) -> list[np.ndarray]:
    """Return the gradients, by a function that is traced or not; and test the derivative along a
    direction.
    """
    arrays = [tn.asarray(x) for x in program.arrays]
    loss = partial(loss_of, program, tn)
    gradient = tn.grad(loss, argnums=tuple(range(len(arrays))))
    found = (tn.function(gradient) if seed % 2 else gradient)(*arrays)
    directions = [tn.asarray(np.cos(x.real) + (1j if x.dtype.kind == "c" else 0)) for x in arrays]
    directions = [tn.astype(v, x.dtype) for v, x in zip(directions, arrays, strict=True)]
    along = tn.jvp(loss, tuple(arrays), tuple(directions))[1]
    pairs = zip(found, directions, strict=True)
    products = [np.real(np.conj(np.asarray(g)) * np.asarray(v)) for g, v in pairs]
    size = sum(float(np.abs(x).sum()) for x in products)
    assert abs(along.item() - sum(float(x.sum()) for x in products)) <= 1e-9 * size, "jvp"
    return [np.asarray(x) for x in found]


def difference(program: Program, seed: int) -> tuple[str, str]:
    """Return why a program is flagged, or nothing, and how its gradient differs from JAX's."""
    wanted = gradients_of_jax(program, program.arrays)
    if not all(np.isfinite(x).all() for x in wanted):
        return "a gradient that is not finite", ""
    found = gradients_of_tenfold(program, seed)
    error = _error(found, wanted)
    if error <= TOLERANCE:
        return "", ""
    signs = np.random.default_rng(seed)
    moved = [x * (1 + PERTURBATION * signs.choice((-1, 1), x.shape)) for x in program.arrays]
    spread = _error(gradients_of_jax(program, moved), wanted)
    if error <= SPREAD * spread:
        return "", ""
    return "", f"by {error:.3g} of the largest element; a perturbation by {spread:.3g}"


def main() -> int:
    """Compare programs until so many have been compared."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=2000, help="how many are compared")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=20, help="differences after which it ends")
    options = parser.parse_args()
    seed, counts, used = options.seed, Counter[str](), Counter[str]()
    while counts["compared"] < options.programs and counts["different"] < options.most:
        program = draw(seed)
        try:
            reason, text = difference(program, seed)
        except Exception:  # noqa: BLE001  # a fault is reported with its seed
            reason, text = "", traceback.format_exc()
        counts[reason or "compared"] += 1
        used.update({name for name, _, _ in program.steps})
        if text:
            counts["different"] += 1
            shapes = [(x.shape, str(x.dtype)) for x in program.arrays]
            print(f"seed {seed}: {text}\n{program.steps} {shapes}", flush=True)
        seed += 1
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    print("programs by step:", ", ".join(f"{n} {name}" for name, n in sorted(used.items())))
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
