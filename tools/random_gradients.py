"""Random gradients: those of the random programs of `tests/second_runs`, compared with JAX's.

Takes a number of programs and a seed; prints each gradient that differs beyond rounding, with its
seed and program, and ends with 1 if there is one. Arrays are float64. A program is flagged, and not
compared, at the points of the conventions: `abs` near 0, ties of `sort` and `max`, comparisons of
numbers that are equal within `MARGIN`; and where a value or JAX's gradient is not finite.

A difference is rounding if it is below `TOLERANCE` of the largest element, or within `SPREAD`
times what a relative change of the inputs by `PERTURBATION` does to JAX's gradient.

    pip install jax
    python tools/random_gradients.py --programs 2000
"""

from __future__ import annotations

import argparse
import random
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

import tenfold as tn

sys.path.append(str(Path(__file__).parents[1] / "tests" / "second_runs"))
second_run_programs: Any = import_module("second_run_programs")
jax: Any = import_module("jax")
jnp: Any = import_module("jax.numpy")
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)
Program: TypeAlias = Any
"""`second_run_programs.Program`."""

LENGTHS, ROWS = (3, 8), (2, 5)
"""Of the axes n and m: few, since JAX compiles each operation for each shape."""
TOLERANCE, SINGLE_TOLERANCE = 1e-10, 1e-5
PERTURBATION, SPREAD, MARGIN = 1e-12, 100.0, 1e-9
SHARED = 0.3
"""How often a leaf is another leaf of its shape."""


@dataclass(frozen=True)
class Case:
    """A program with its arrays and numbers, and the weights of the sum that is differentiated."""

    program: Program
    arrays: list[np.ndarray]
    places: list[int]
    """For each leaf its array."""
    numbers: list[Any]
    weights: list[np.ndarray]


def _assigned(x: Any, y: Any) -> Any:
    return x.at[1:].set((y * 2)[1:])


def _number_assigned(x: Any, c: Any) -> Any:
    x = x.at[1].set(c)
    return x.at[2:].set(x[:-2]) if x.shape[0] > 2 else x


def _added_in_loop(x: Any, c: Any) -> Any:
    for i in range(3):
        x = x.at[i : i + 2].add(c)
    return x


def _cond(condition: Any, first: Any, second: Any, x: Any) -> Any:
    return jax.lax.cond(condition, first, second, x)


def _scan(body: Any, init: Any, xs: Any) -> Any:
    return jax.lax.scan(body, init, xs)


JAX = SimpleNamespace(
    **{name: getattr(jnp, name) for name in ("abs", "where", "zeros_like", "sqrt", "exp", "tanh")},
    **{name: getattr(jnp, name) for name in ("sum", "mean", "max", "sort", "flip", "roll", "take")},
    **{name: getattr(jnp, name) for name in ("stack", "arange", "expand_dims", "astype", "eye")},
    **{name: getattr(jnp, name) for name in ("float32", "float64", "matrix_transpose")},
    concat=jnp.concatenate,
    cumulative_sum=jnp.cumsum,
    linalg=SimpleNamespace(solve=None, diagonal=jnp.diagonal),
    vmap=jax.vmap,
    cond=_cond,
    scan=_scan,
)
"""JAX by the names that the programs use."""
OTHERWISE: dict[str, Callable[..., Any]] = {
    "assign": _assigned,
    "assign_number": _number_assigned,
    "assign_loop": _added_in_loop,
    "cell": lambda x, c: jnp.sqrt(jnp.abs(x * c) + 1) / 3,
    "pair": lambda x, y: x * 20 + y * 20 / 19,
}
"""Operations that JAX writes in another way: assignments, and functions of Tenfold."""


def _solve(a: Any, b: Any) -> Any:
    return jnp.linalg.solve(a, b) if b.ndim > 1 else jnp.linalg.solve(a, b[:, None])[:, 0]


JAX.linalg.solve = _solve


def _has_near(x: np.ndarray, y: Any) -> bool:
    """Whether elements are equal to those of `y`, or would be without rounding."""
    scale = max(float(np.max(np.abs(x), initial=1.0)), float(np.max(np.abs(y), initial=1.0)))
    return bool(np.any(np.abs(x - y) <= MARGIN * scale))


def _has_ties(x: np.ndarray) -> bool:
    in_order = np.sort(np.abs(x), axis=-1)
    return _has_near(in_order[..., 1:], in_order[..., :-1])


BOUNDED = {"matvec", "product", "scaled_product", "chain", "solve"}
SIGNED = {"between", "root", "exp", "tanh", "power", "chosen", "deviation", "largest", "sort"} | {
    "cell",
    "vmap",
    "cond",
    "single",
}
"""Operations that take `abs` of their first array; `divide` of the second."""
CONVENTIONS: dict[str, Callable[..., bool]] = {
    "between": lambda x, c, _: _has_near(np.abs(x), c + 0.0123),
    "chosen": lambda x, y: _has_near(np.abs(x), np.abs(y)) or _has_near(y, 0),
    "largest": _has_ties,
    "sort": _has_ties,
    "divide": lambda _, y: _has_near(y, 0),
    "cond": lambda x, _: _has_near(np.sum(np.abs(x)), 20.0123),
}


def is_at_convention(name: str, operands: Sequence[np.ndarray], numbers: Sequence[Any]) -> bool:
    """Whether the derivative of an operation is one of several, or hangs on a rounding."""
    if name in BOUNDED and any(_has_near(np.abs(x), 4.0123) for x in operands):
        return True
    if name in SIGNED and _has_near(operands[0], 0):
        return True
    return name in CONVENTIONS and CONVENTIONS[name](*operands, *numbers)


def draw_case(seed: int) -> Case:
    """Draw a program, arrays of float64 and tame numbers."""
    rng = random.Random(seed)
    program = second_run_programs.draw_program(rng)
    lengths = {"n": rng.choice(LENGTHS), "m": rng.choice(ROWS)}
    values = np.random.default_rng(seed)
    shapes = [tuple(lengths[axis] for axis in leaf) for leaf in program.leaves]
    places: list[int] = []
    for at, shape in enumerate(shapes):
        same = [places[i] for i in range(at) if shapes[i] == shape]
        shared = bool(same) and rng.random() < SHARED
        places.append(rng.choice(same) if shared else len({*places}))
    arrays = [values.standard_normal(shapes[places.index(i)]) * 3 for i in range(len({*places}))]
    numbers = [rng.choice(second_run_programs.TAME) for _ in range(program.numbers)]
    shapes = [made_shape(program, i, lengths) for i in program.outputs]
    return Case(program, arrays, places, numbers, [values.standard_normal(s) for s in shapes])


def made_shape(program: Program, slot: int, lengths: dict[str, int]) -> tuple[int, ...]:
    """Return the shape of a slot."""
    leaves = len(program.leaves)
    axes = program.leaves[slot] if slot < leaves else program.statements[slot - leaves].shape
    return tuple(lengths[axis] for axis in axes)


def slots_of(case: Case, library: Any, *arrays: Any) -> list[Any]:
    """Return what stands in all slots, computed by `tenfold` or by JAX."""
    slots, at = [arrays[i] for i in case.places], 0
    second_run_programs.tn = library
    try:
        for each in case.program.statements:
            numbers = case.numbers[at : at + each.numbers]
            at += each.numbers
            other = OTHERWISE.get(each.name) if library is JAX else None
            slots.append((other or each.function)(*[slots[i] for i in each.arrays], *numbers))
    finally:
        second_run_programs.tn = tn
    return slots


def loss_of(case: Case, library: Any, *arrays: Any) -> Any:
    """Return the weighted sum of the outputs."""
    slots = slots_of(case, library, *arrays)
    pairs = zip(case.program.outputs, case.weights, strict=True)
    return sum(library.sum(slots[i] * weights) for i, weights in pairs)


def flagged(case: Case) -> str:
    """Say why a program is not compared; nothing where it is."""
    with np.errstate(all="ignore"):
        slots = [np.asarray(x) for x in slots_of(case, tn, *map(tn.asarray, case.arrays))]
        if not all(np.isfinite(x).all() for x in slots):
            return "values that are not finite"
        at = 0
        for each in case.program.statements:
            numbers = case.numbers[at : at + each.numbers]
            at += each.numbers
            if is_at_convention(each.name, [slots[i] for i in each.arrays], numbers):
                return "a point of the conventions"
    return ""


def gradients_of_tenfold(case: Case, seed: int) -> list[np.ndarray]:
    """Return the gradients by all arrays: of a function, traced or not, or of a pending graph."""
    rng = random.Random(seed)
    arrays = [tn.asarray(x) for x in case.arrays]
    with tn.options(**rng.choice(case.program.options)):
        loss = partial(loss_of, case, tn)
        form = rng.choice(("grad", "grad_of", "function"))
        if form == "grad_of":  # watched: assignments compute what they update
            found = tn.grad_of(loss(*map(tn.watch, arrays)), arrays)
        else:
            gradient = tn.grad(loss, argnums=tuple(range(len(arrays))))
            gradient = tn.function(gradient) if form == "function" else gradient
            found = gradient(*arrays)
        tn.eval(*found)
        return [np.asarray(x) for x in found]


def difference(case: Case, seed: int) -> tuple[str, str]:
    """Return why a program is flagged, or nothing, and how its gradient differs from JAX's."""
    if reason := flagged(case):
        return reason, ""
    gradient = jax.grad(partial(loss_of, case, JAX), argnums=tuple(range(len(case.arrays))))
    wanted = [np.asarray(x) for x in gradient(*case.arrays)]
    if not all(np.isfinite(x).all() for x in wanted):
        return "a gradient that is not finite", ""
    found = gradients_of_tenfold(case, seed)
    single = any(each.name == "single" for each in case.program.statements)
    bound = SINGLE_TOLERANCE if single else TOLERANCE
    errors = [_error(x, y) for x, y in zip(found, wanted, strict=True)]
    if max(errors) <= bound:
        return "", ""
    random_signs = np.random.default_rng(seed)
    moved = [x * (1 + PERTURBATION * random_signs.choice((-1, 1), x.shape)) for x in case.arrays]
    spread = [_error(np.asarray(x), y) for x, y in zip(gradient(*moved), wanted, strict=True)]
    if max(errors) <= SPREAD * max(spread):
        return "", ""
    return "", f"by {max(errors):.3g} of the largest element; a perturbation by {max(spread):.3g}"


def _error(found: np.ndarray, wanted: np.ndarray) -> float:
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return np.inf
    error = np.max(np.abs(found - wanted), initial=0.0)
    return float(error / np.max(np.abs(wanted), initial=1e-300)) if error else 0.0


def main() -> int:
    """Compare programs until so many have been compared."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=2000, help="how many are compared")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=20, help="differences after which it ends")
    options = parser.parse_args()
    seed, counts = options.seed, Counter[str]()
    case: Any = None
    while counts["compared"] < options.programs and counts["different"] < options.most:
        case = draw_case(seed)
        try:
            reason, text = difference(case, seed)
        except Exception:  # noqa: BLE001  # a fault is reported with its seed
            reason, text = "", traceback.format_exc()
        counts[reason or "compared"] += 1
        if text:
            counts["different"] += 1
            print(f"seed {seed}: {text}\n{case.program}\nnumbers {case.numbers}", flush=True)
        seed += 1
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
