"""Random programs whose structure stays while all else that a plan may have learnt changes.

A Program is a list of statements on slots: leaves (arrays), numbers (Python scalars) and what
earlier statements made. An Environment says what stands in the slots: lengths, dtypes, layouts,
sharing of leaves, numbers, which intermediates are held, the tier and the thread. `run` evaluates a
program in an environment; the same program in another one must have that one's values.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

import tenfold as tn
from tenfold import _native, pipeline
from tenfold.core.bitwise_equal import different
from tenfold.storage import dense

VECTOR, MATRIX, TURNED, SQUARE = ("n",), ("m", "n"), ("n", "m"), ("n", "n")
SHAPES = (VECTOR, MATRIX, TURNED, SQUARE)
NUMBERS = (20, 20, 19, 33, 0, 1, -1, 2, 0.5, 20.5, 1e9, 17, -40, float("nan"), float("inf"), True)
TAME = (20, 20, 19, 33, 1, 2, 0.5, 20.5, 17, 40, 3)
DTYPES = (np.float64, np.float64, np.float64, np.float32, np.int32, np.int64, np.complex128)

UNUSUAL = (
    {"tier": 0},
    {"fuse": False},
    {"threads": 1},
    {"optimise": False},
    {"cpu": "x86-64-v3"},
    {"cpu": "x86-64-v2"},
    {"cpu": "x86-64"},
    {"batch": False},
)

Shape = tuple[str, ...]


@dataclass(frozen=True)
class Statement:
    """One operation: what computes it, the slots of its arrays, and how many numbers it takes."""

    name: str
    function: Callable[..., Any]
    arrays: tuple[int, ...]
    numbers: int
    shape: Shape


@dataclass
class Program:
    """Leaves, then statements; slots are numbered through."""

    leaves: list[Shape]
    statements: list[Statement] = field(default_factory=list)
    outputs: tuple[int, ...] = ()
    options: tuple[dict[str, Any], ...] = ()
    """Under which options it is evaluated: few, since each compiles kernels of its own."""
    large: bool = False

    @property
    def numbers(self) -> int:
        """How many numbers it takes."""
        return sum(each.numbers for each in self.statements)

    def __str__(self) -> str:
        lines = [f"s{i} = leaf {shape}" for i, shape in enumerate(self.leaves)]
        for i, each in enumerate(self.statements, len(self.leaves)):
            inside = [f"s{a}" for a in each.arrays] + ["#"] * each.numbers
            lines.append(f"s{i} = {each.name}({', '.join(inside)})")
        return "\n".join([*lines, f"outputs {self.outputs}"])


@dataclass
class Environment:
    """What stands in the slots, and how it is asked for."""

    lengths: dict[str, int]
    leaves: list[np.ndarray]
    numbers: list[Any]
    held: frozenset[int]
    options: dict[str, Any]
    together: bool
    dropped: bool
    """Whether leaves are given up before the evaluation: their memory may be written over."""
    derived: bool = False
    """Whether derivatives by the leaves are asked for, too."""
    way: str = "plain"
    """How the program is called: see WAYS."""

    def __str__(self) -> str:
        arrays = [f"{a.dtype}{a.shape} strides {a.strides}" for a in self.leaves]
        return (
            f"{self.lengths} numbers {self.numbers} held {sorted(self.held)} options "
            f"{self.options} together {self.together} dropped {self.dropped} "
            f"derived {self.derived} {self.way}\n  {arrays}"
        )


def _same(x: Shape) -> Shape:
    return x


def _first(x: Shape, _y: Shape) -> Shape:
    return x


def _abs1(x: Any) -> Any:
    return tn.abs(x) + 1


def _assign(x: Any, y: Any) -> Any:
    x = x + 0
    x[1:] = (y * 2)[1:]
    return x


def _assign_number(x: Any, c: Any) -> Any:
    x = x + 0
    x[1] = c
    x[2:] = x[:-2] if x.shape[0] > 2 else x[2:]
    return x


def _loop(x: Any, c: Any) -> Any:
    x = x + 0
    for i in range(3):
        x[i : i + 2] += c
    return x


def _solve(a: Any, b: Any) -> Any:
    n = a.shape[0]
    return tn.linalg.solve(_bounded(a) + 4 * n * tn.eye(n, dtype=a.dtype), b)


def _bounded(x: Any) -> Any:
    """What keeps products and solves well conditioned, whatever went in."""
    return tn.where(tn.abs(x) < 4.0123, x, tn.zeros_like(x))


@tn.function
def _cell(x: Any, c: Any) -> Any:
    return tn.sqrt(_abs1(x * c)) / 3


@tn.function
def _pair(x: Any, y: Any) -> Any:
    return x * 20 + y * 20 / 19


def _scan(x: Any, c: Any) -> Any:
    return tn.scan(lambda s, e: (s / 2 + e * c, s / 2 + e * c), x[0] * 0 + c, x)[1]


def _vmapped(x: Any, c: Any) -> Any:
    return tn.vmap(lambda row: row / (tn.sum(_abs1(row)) + 1) + c)(x)


def _cond(x: Any, c: Any) -> Any:
    return tn.cond(tn.sum(tn.abs(x)) > 20.0123, lambda v: v * 2 + c, lambda v: v - c, x)


Entry = tuple[str, Callable[..., Any], tuple[tuple[Shape, ...], ...], int, Callable[..., Shape]]

ELEMENTWISE = (SHAPES,)
PAIRS = tuple((s, s) for s in SHAPES)
"""(name, function, shapes of operands (choices), numbers, shape of the result)."""
ONE = tuple((s,) for s in SHAPES)
ROWS = ((MATRIX,), (TURNED,), (SQUARE,))

TABLE: list[tuple[str, Callable[..., Any], tuple[tuple[Shape, ...], ...], int, Any, bool]] = [
    # name, function, operand shapes, numbers, shape of the result, whether numbers must be tame
    ("add", lambda x, y: x + y, PAIRS, 0, _first, False),
    ("subtract", lambda x, y: x - y, PAIRS, 0, _first, False),
    ("multiply", lambda x, y: x * y, PAIRS, 0, _first, False),
    ("divide", lambda x, y: x / _abs1(y), PAIRS, 0, _first, False),
    ("add_number", lambda x, c: x + c, ONE, 1, _same, False),
    ("number_minus", lambda x, c: c - x, ONE, 1, _same, False),
    ("scale", lambda x, c: x * c, ONE, 1, _same, False),
    ("over", lambda x, c: x / c, ONE, 1, _same, True),
    ("affine", lambda x, c, d: (x * c + 1) / d, ONE, 2, _same, True),
    (
        "between",
        lambda x, c, d: tn.where(tn.abs(x) > c + 0.0123, x * d, x - c),
        ONE,
        2,
        _same,
        False,
    ),
    ("root", lambda x: tn.sqrt(_abs1(x)), ONE, 0, _same, False),
    ("exp", lambda x: tn.exp(-_abs1(x)), ONE, 0, _same, False),
    ("tanh", lambda x, c: tn.tanh(tn.abs(x) / c), ONE, 1, _same, True),
    ("power", lambda x, c: _abs1(x) ** c, ONE, 1, _same, True),
    ("chosen", lambda x, y: tn.where(tn.abs(x) > tn.abs(y), x, y), PAIRS, 0, _first, False),
    ("sum_last", lambda x, c: tn.sum(x * c, axis=-1, keepdims=True) + x, ONE, 1, _same, False),
    ("sum_first", lambda x: x - tn.sum(x, axis=0, keepdims=True), ONE, 0, _same, False),
    ("mean", lambda x, c: x - tn.mean(x) / c, ONE, 1, _same, True),
    ("deviation", lambda x: x - tn.sum(tn.abs(x) * tn.abs(x)) ** 0.5, ONE, 0, _same, False),
    ("largest", lambda x: tn.max(tn.abs(x), axis=-1, keepdims=True) + x, ONE, 0, _same, False),
    ("cumulative", lambda x, c: tn.cumulative_sum(x + c, axis=0), ONE, 1, _same, False),
    ("turned", lambda x: tn.matrix_transpose(x), ROWS, 0, lambda x: x[::-1], False),
    ("flip", lambda x: tn.flip(x), ONE, 0, _same, False),
    ("roll", lambda x: tn.roll(x, 1, axis=0), ONE, 0, _same, False),
    ("tail", lambda x, y: tn.concat([x[:1], y[1:]], axis=0), PAIRS, 0, _first, False),
    ("joined", lambda x, c: tn.concat([x[1:] * c, x[:1] / 3], axis=0), ONE, 1, _same, False),
    ("stacked", lambda x, y, c: tn.sum(tn.stack([x * c, y]), axis=0), PAIRS, 1, _first, False),
    ("row", lambda x, c: x + x[0] * c, ROWS, 1, _same, False),
    ("column", lambda x, c: x * x[:, :1] + c, ROWS, 1, _same, False),
    ("take", lambda x: tn.take(x, tn.arange(x.shape[0])[::-1], axis=0), ONE, 0, _same, False),
    ("sort", lambda x: tn.sort(tn.abs(x), axis=-1), ONE, 0, _same, False),
    (
        "matvec",
        lambda a, x: _bounded(a) @ _bounded(x),
        ((SQUARE, VECTOR),),
        0,
        lambda *_: VECTOR,
        False,
    ),
    (
        "product",
        lambda a, b: _bounded(a) @ _bounded(b),
        ((SQUARE, SQUARE), (TURNED, MATRIX)),
        0,
        lambda *_: SQUARE,
        False,
    ),
    (
        "scaled_product",
        lambda a, b, c, d: _bounded(a) * c @ _bounded(b) + b * d,
        ((SQUARE, SQUARE),),
        2,
        lambda *_: SQUARE,
        True,
    ),
    (
        "chain",
        lambda a, b, x: _bounded(a) @ _bounded(b) @ _bounded(x),
        ((SQUARE, SQUARE, VECTOR),),
        0,
        lambda *_: VECTOR,
        False,
    ),
    (
        "outer",
        lambda x, y: tn.expand_dims(x, axis=1) * tn.expand_dims(y, axis=0),
        ((VECTOR, VECTOR),),
        0,
        lambda *_: SQUARE,
        False,
    ),
    ("solve", _solve, ((SQUARE, VECTOR), (SQUARE, SQUARE)), 0, lambda a, b: b, False),
    ("diagonal", lambda a, c: tn.linalg.diagonal(a) * c, ((SQUARE,),), 1, lambda _: VECTOR, False),
    ("assign", _assign, PAIRS, 0, _first, False),
    ("assign_number", _assign_number, ONE, 1, _same, True),
    ("assign_loop", _loop, ONE, 1, _same, True),
    ("cell", _cell, ONE, 1, _same, True),
    ("pair", _pair, PAIRS, 0, _first, False),
    ("scan", _scan, ((VECTOR,), (MATRIX,)), 1, _same, True),
    ("vmap", _vmapped, ROWS, 1, _same, True),
    ("cond", _cond, ONE, 1, _same, True),
    (
        "single",
        lambda x: tn.astype(tn.astype(tn.abs(x), tn.float32), tn.float64),
        ONE,
        0,
        _same,
        False,
    ),
]
INEXACT = frozenset(
    ("matvec", "product", "scaled_product", "chain", "solve", "exp", "tanh", "power")
)


LARGE = (100_003, 131_073, 400_000, 1_000_001, 2_000_003, 3_145_729, 5_000_000, 8_000_001)
"""Lengths of large vectors: on both sides of 24 MiB, from which results bypass the cache."""
HOT_THRESHOLD = 4
"""Runs after which a small graph is planned: a few, so that both ways come in turn."""
SMALL_ONLY = frozenset(("outer", "scan"))
"""What takes time or memory that grows faster than a large vector."""


def draw_program(rng: random.Random, *, large: bool = False) -> Program:
    """Draw a program of two to nine statements; `large`: on vectors alone, of LARGE lengths."""
    shapes_of_leaves = (VECTOR,) if large else SHAPES
    program = Program([rng.choice(shapes_of_leaves) for _ in range(rng.randint(1, 4))])
    program.large = large
    shapes = list(program.leaves)
    for _ in range(rng.randint(2, 9)):
        name, function, operands, numbers, result, _ = rng.choice(TABLE)
        fitting = [each for each in operands if all(shape in shapes for shape in each)]
        if not fitting or (large and name in SMALL_ONLY):
            continue
        wanted = rng.choice(fitting)
        recent = rng.random() < 0.7
        chosen = []
        for shape in wanted:
            places = [i for i, s in enumerate(shapes) if s == shape]
            chosen.append(places[-1] if recent and not chosen else rng.choice(places))
        made = result(*wanted)
        program.statements.append(Statement(name, function, tuple(chosen), numbers, made))
        shapes.append(made)
    last = len(shapes) - 1
    others = (
        rng.sample(range(len(program.leaves), len(shapes)), k=min(1, len(shapes) - 1))
        if (rng.random() < 0.3 and len(shapes) > len(program.leaves))
        else []
    )
    program.options = ({}, {}, {"tier": 1}, rng.choice(UNUSUAL))
    program.outputs = tuple(dict.fromkeys([last, *others]))
    return program


def draw_environment(rng: random.Random, program: Program, before: Environment | None) -> Any:
    """Draw an environment; one that comes after another often changes one thing alone."""
    if before is None or rng.random() < 0.15:
        return _fresh(rng, program)
    made = Environment(
        before.lengths,
        list(before.leaves),
        list(before.numbers),
        before.held,
        before.options,
        before.together,
        before.dropped,
    )
    for change in rng.sample(CHANGES, k=rng.choice((1, 1, 1, 2, 3))):
        change(rng, program, made)
    return made


def _fresh(rng: random.Random, program: Program) -> Environment:
    lengths = _lengths(rng, program)
    made = Environment(lengths, [], [], frozenset(), {}, True, False)
    made.leaves = [_leaf(rng, shape, lengths) for shape in program.leaves]
    _share(rng, program, made)
    _change_numbers(rng, program, made)
    _change_holders(rng, program, made)
    _change_options(rng, program, made)
    return made


def _lengths(rng: random.Random, program: Program) -> dict[str, int]:
    if program.large:
        return {"n": rng.choice(LARGE) + rng.randint(0, 40), "m": 1}
    few = (3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 40)
    many = (100, 130, 200) if rng.random() < 0.2 else few
    n = rng.choice(many)
    return {"n": n, "m": n if rng.random() < 0.2 else rng.choice(few)}


def _leaf(rng: random.Random, shape: Shape, lengths: dict[str, int]) -> np.ndarray:
    dtype = np.dtype(rng.choice(DTYPES))
    return laid_out(rng, _values(rng, tuple(lengths[a] for a in shape), dtype))


def _values(rng: random.Random, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    generator = np.random.default_rng(rng.getrandbits(32))
    made = generator.integers(-40, 40, shape) / (1 if dtype.kind == "i" else 16)
    return made.astype(dtype)


def laid_out(rng: random.Random, values: np.ndarray) -> np.ndarray:
    """Return the same values in another layout: strided, reversed, transposed, at an offset."""
    form = rng.choice(("plain", "plain", "plain", "offset", "stride", "reverse", "fortran"))
    if form == "offset":
        room = np.zeros(values.size + 3, values.dtype)
        room[3:] = values.ravel()
        return room[3:].reshape(values.shape)
    if form == "stride":
        room = np.zeros((*values.shape[:-1], 2 * values.shape[-1]), values.dtype)
        room[..., ::2] = values
        return room[..., ::2]
    if form == "reverse":
        return np.ascontiguousarray(values[::-1])[::-1]
    if form == "fortran":
        return np.asfortranarray(values)
    return np.ascontiguousarray(values)


def _share(rng: random.Random, program: Program, made: Environment) -> None:
    """Let leaves be one array, or be so no more."""
    for i, shape in enumerate(program.leaves):
        same = [j for j in range(i) if program.leaves[j] == shape]
        if same and rng.random() < 0.4:
            made.leaves[i] = made.leaves[rng.choice(same)]
        elif rng.random() < 0.5:
            made.leaves[i] = made.leaves[i].copy()


def _change_numbers(rng: random.Random, program: Program, made: Environment) -> None:
    pool = rng.sample(NUMBERS, k=2) if rng.random() < 0.5 else NUMBERS
    tame = rng.sample(TAME, k=2) if rng.random() < 0.5 else TAME
    numbers: list[Any] = []
    gentle = {row[0]: row[5] for row in TABLE}
    for each in program.statements:
        numbers += [rng.choice(tame if gentle[each.name] else pool) for _ in range(each.numbers)]
    made.numbers = numbers


def _untie(rng: random.Random, program: Program, made: Environment) -> None:
    """Change one number alone, or make two equal."""
    if not made.numbers:
        return
    at = rng.randrange(len(made.numbers))
    made.numbers[at] = rng.choice(made.numbers) if rng.random() < 0.5 else rng.choice(TAME)


def _change_holders(rng: random.Random, program: Program, made: Environment) -> None:
    slots = range(len(program.leaves), len(program.leaves) + len(program.statements))
    made.held = frozenset(i for i in slots if rng.random() < rng.choice((0.0, 0.2, 0.6)))
    made.together = rng.random() < 0.5
    made.dropped = rng.random() < 0.5


def _change_options(rng: random.Random, program: Program, made: Environment) -> None:
    made.options = rng.choice(program.options)


def _change_lengths(rng: random.Random, program: Program, made: Environment) -> None:
    made.lengths = _lengths(rng, program)
    made.leaves = [
        laid_out(rng, _values(rng, tuple(made.lengths[a] for a in shape), leaf.dtype))
        for shape, leaf in zip(program.leaves, made.leaves, strict=True)
    ]


def _change_layouts(rng: random.Random, _: Program, made: Environment) -> None:
    at = rng.randrange(len(made.leaves))
    made.leaves[at] = laid_out(rng, made.leaves[at])


def _change_dtypes(rng: random.Random, program: Program, made: Environment) -> None:
    at = rng.randrange(len(made.leaves))
    made.leaves[at] = _leaf(rng, program.leaves[at], made.lengths)


def _change_values(rng: random.Random, _: Program, made: Environment) -> None:
    made.leaves = [laid_out(rng, _values(rng, x.shape, x.dtype)) for x in made.leaves]


CHANGES = (
    _change_numbers,
    _untie,
    _untie,
    _share,
    _change_holders,
    _change_options,
    _change_lengths,
    _change_lengths,
    _change_layouts,
    _change_dtypes,
    _change_values,
)


@dataclass
class Run:
    """What an evaluation gave: values of outputs and of what was held, and where bits differ from
    those of a plan that was made for it alone.
    """

    values: list[np.ndarray]
    unlike_anew: list[int]
    tolerance: float
    """Products may be taken in another order, and those of single floats round by themselves."""


def run(program: Program, environment: Environment, device: str, *, anew: bool = False) -> Run:
    """Evaluate a program in an environment; `anew`: compare bits with a plan of its own."""
    options = {"device": device, "hot_threshold": HOT_THRESHOLD}
    options |= environment.options if device == "cpu" else {}
    with tn.options(**options):
        leaves = _leaves(environment)
        if environment.way == "plain" or device == "reference":
            asked = _asked(program, environment, leaves)
        else:
            asked = WAYS[environment.way](partial(_asked, program, environment), leaves)
        if environment.dropped:
            leaves.clear()
        shadow = _anew(asked) if anew and environment.together else []
        if environment.together:
            tn.eval(*asked)
        for array in asked:
            array.wait()
    values = [np.asarray(array) for array in asked]
    unlike = [i for i, x in enumerate(shadow) if x is not None and different(values[i], x).any()]
    single = any(leaf.dtype == np.float32 for leaf in environment.leaves)
    return Run(values, unlike, 1e-3 if single else 1e-9)


def _leaves(environment: Environment) -> list[tn.Array]:
    """The different leaves as Arrays: one array is one Array."""
    found = []
    for leaf in _different(environment.leaves):
        is_watched = environment.derived and leaf.dtype.kind in "fc"
        found.append(tn.watch(tn.asarray(leaf)) if is_watched else tn.asarray(leaf))
    return found


def _different(leaves: list[np.ndarray]) -> list[np.ndarray]:
    return list({id(leaf): leaf for leaf in leaves}.values())


def _asked(program: Program, environment: Environment, leaves: Sequence[Any]) -> list[Any]:
    """Write the program; return its outputs, what is held, and derivatives."""
    numbers = [id(leaf) for leaf in _different(environment.leaves)]
    slots = [leaves[numbers.index(id(leaf))] for leaf in environment.leaves]
    at = 0
    for each in program.statements:
        given = environment.numbers[at : at + each.numbers]
        at += each.numbers
        slots.append(each.function(*[slots[i] for i in each.arrays], *given))
    asked = [slots[i] for i in (*program.outputs, *sorted(environment.held))]
    return asked + _derivatives(program, slots) if environment.derived else asked


def _traced(write: Callable[..., list[Any]], leaves: list[tn.Array]) -> list[Any]:
    return list(tn.function(lambda *given: tuple(write(given)))(*leaves))


def _pushed(write: Callable[..., list[Any]], leaves: list[tn.Array]) -> list[Any]:
    traced = tn.function(lambda *given: tuple(write(given)))
    with tn.Engine() as engine:
        return list(engine.push(traced, *leaves).get())


def _mapped(write: Callable[..., list[Any]], leaves: list[tn.Array]) -> list[Any]:
    rows = [tn.stack([x, x]) for x in leaves]
    return [y[1] for y in tn.vmap(lambda *given: tuple(write(given)))(*rows)]


WAYS: dict[str, Callable[..., list[Any]]] = {
    "traced": _traced,
    "pushed": _pushed,
    "mapped": _mapped,
}
"""Ways to call a program, beside "plain"."""
UNSTEADY = frozenset(("largest", "sort", "chosen", "between", "cond"))
"""What rounding may decide: then derivatives differ by more than rounding."""


def _derivatives(program: Program, slots: list[Any]) -> list[tn.Array]:
    """The derivatives of the outputs by the leaves; none where rounding decides which they are."""
    names = {each.name for each in program.statements}
    outputs = [slots[i] for i in program.outputs if slots[i].dtype.kind in "fc"]
    leaves = [x for x in slots[: len(program.leaves)] if x.dtype.kind in "fc"]
    leaves = list({id(x): x for x in leaves}.values())
    if not outputs or not leaves or (names & UNSTEADY and names & INEXACT):
        return []
    cotangents = [tn.full(x.shape, 0.375, dtype=x.dtype) for x in outputs]
    return list(tn.grad_of(outputs, leaves, cotangents))


def _anew(arrays: list[tn.Array]) -> list[np.ndarray | None]:
    """The values by a plan without any cache, of those that are still to be computed."""
    nodes = [_native.node_of(array) for array in arrays]
    pending = list(dict.fromkeys(node for node in nodes if node.pending))
    made = pipeline.shadow_compute(pending) if pending else None
    if made is None:
        return [None] * len(arrays)
    found = {n: dense.export(v[0]).copy() for n, v in zip(pending, made, strict=True)}
    return [found.get(node) for node in nodes]


def differs(found: np.ndarray, wanted: np.ndarray, tolerance: float) -> str:
    """Say how results differ by more than rounding; nothing where they do not."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return f"{found.dtype}{found.shape} is not {wanted.dtype}{wanted.shape}"
    if found.dtype.kind in "biu":
        return "" if np.array_equal(found, wanted) else "integers differ"
    with np.errstate(all="ignore"):
        finite = np.isfinite(wanted)
        largest = np.max(np.abs(wanted[finite]), initial=1.0)
        bound = largest * (1e-3 if found.dtype.itemsize <= 4 else tolerance)
        wrong = finite & ~(np.abs(found - wanted) <= bound)
    count = int(np.count_nonzero(wrong))
    return f"{count} of {found.size} differ by more than {bound}" if count else ""
