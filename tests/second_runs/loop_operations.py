"""Random operations of a loop's step, as Python source, with bounds of what they make.

>>> drawing = Drawing(3)
>>> drawing.values.append(Value("x", (3,), "float64"))
>>> unary(drawing)
>>> drawing.values[-1].bound <= LARGEST
True
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

Shape = tuple[int, ...]
LARGEST = 64.0
"""Of a value, and of the factor by which it follows the state."""
SLOPE = 0.9
"""Of a carry: how much of a change of the state before the step is left after it."""
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 40)
FUNCTIONS = (
    "xp.tanh({}) * 0.5",
    "xp.sin({}) - 0.25",
    "xp.sqrt(xp.abs({}) + 1) * 0.5",
    "xp.exp(-xp.abs({}))",
)


@dataclass(frozen=True)
class Value:
    """The source of a value, its shape and dtype, and bounds: of its elements, of how much it
    follows a change of the state, and of its rounding error in this step, in units in the last
    place of 1.
    """

    source: str
    shape: Shape
    dtype: str
    bound: float = 1.0
    slope: float = 1.0
    error: float = 0.0

    @property
    def kind(self) -> str:
        return np.dtype(self.dtype).kind


@dataclass
class Program:
    """A source with `main(steps)`, the leaves that it reads, and how its results are asked for."""

    seed: int
    source: str = ""
    leaves: dict[str, np.ndarray] = field(default_factory=dict)
    steps: int = 0
    error: float = 0.0
    is_single: bool = False
    """Whether numbers are single floats somewhere."""
    reading: str = "each"
    is_steady: bool = True
    """Whether all is computed at the end, by graphs that differ in the number of steps alone."""

    @property
    def assigns_products(self) -> bool:
        """Whether assignments, which may be computed at once, meet products."""
        products = ("@", "linalg")
        return any(x in self.source for x in ("+=", "*=", "] =")) and any(
            x in self.source for x in products
        )

    @property
    def tolerance(self) -> float:
        """Bound of rounding errors: of a step, and of what is left of those of all before."""
        eps = float(np.finfo(np.float32 if self.is_single else np.float64).eps)
        return 8 * eps * (1 + self.error) / (1 - SLOPE)


class Drawing:
    """A program that is being drawn: lines of the present loop, and values in scope."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.program = Program(seed)
        self.n = self.rng.choice(LENGTHS)
        self.m = self.rng.choice(LENGTHS[:8])
        self.count = 0
        self.lines: list[str] = []
        self.values: list[Value] = []
        self.carries: list[Value] = []
        self.functions: list[str] = []

    def name(self, prefix: str = "t") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def leaf(self, shape: Shape, dtype: str, largest: float = 1.0) -> Value:
        """A constant array, whose elements are at most `largest`."""
        name, scale = self.name("c"), np.dtype(dtype)
        if scale.kind == "b":
            values = self.numbers.integers(0, 2, shape)
        elif scale.kind == "i":
            values = self.numbers.integers(-7, 8, shape)
        else:
            values = self.numbers.integers(-16, 17, shape) / 16 * largest
        self.program.leaves[name] = np.asarray(values, dtype)
        return Value(name, shape, dtype, 7.0 if scale.kind == "i" else largest, 0.0)

    def matrix(self, dtype: str) -> Value:
        """A constant square matrix of which the rows have sums of at most 1."""
        made = self.leaf((self.n, self.n), dtype)
        values = self.program.leaves[made.source]
        values /= max(1.0, float(np.abs(values).sum(axis=1).max()))
        return made

    def eye(self, dtype: str) -> str:
        """Three times the identity, the name of a leaf."""
        self.program.leaves["eye_" + dtype] = 3 * np.eye(self.n, dtype=dtype)
        return "eye_" + dtype

    def made(self, source: str, like: Value, **bounds: Any) -> Value:
        """A new value in scope; one that is used once has no name."""
        value = replace(like, source=f"({source})", **bounds)
        largest = max(value.bound, value.slope)
        if value.kind in "fc" and largest > LARGEST:
            factor = 2.0 ** -math.ceil(math.log2(largest))
            value = scaled(value, factor)
        if self.rng.random() < 0.75:
            value = self.named(value)
        self.values.append(value)
        return value

    def named(self, value: Value) -> Value:
        name = self.name()
        self.lines.append(f"{name} = {value.source}")
        return replace(value, source=name)

    def pick(self, wanted: Callable[[Value], bool]) -> Value | None:
        """One of the values in scope, oftener a new one."""
        found = [value for value in self.values if wanted(value)]
        if not found:
            return None
        recent = found[-3:] if self.rng.random() < 0.7 else found
        return self.rng.choice(recent)

    def floating(self, *, axes: Sequence[int] = (0, 1, 2)) -> Value | None:
        return self.pick(lambda value: value.kind in "fc" and len(value.shape) in axes)

    def partner(self, value: Value) -> Value:
        """Another operand of the same dtype, which broadcasts to the shape."""
        found = self.pick(
            lambda other: (
                other.dtype == value.dtype
                and (other.shape == value.shape or other.shape in ((), value.shape[1:]))
            )
        )
        return found or self.leaf(value.shape, value.dtype)


def scaled(value: Value, factor: float) -> Value:
    return replace(
        value,
        source=f"({factor!r} * {value.source})",
        bound=value.bound * factor,
        slope=value.slope * factor,
        error=(value.error + value.bound) * factor,
    )


def elementwise(d: Drawing) -> None:
    x = d.floating()
    if x is None:
        return
    y = d.partner(x)
    error, sign = x.error + y.error, d.rng.choice("+-")
    which = d.rng.randrange(6 if x.kind == "f" else 3)
    if which < 2:
        bound = x.bound + y.bound
        d.made(
            f"{x.source} {sign} {y.source}",
            x,
            bound=bound,
            slope=x.slope + y.slope,
            error=error + bound,
        )
    elif which == 2:
        slope = x.slope * y.bound + y.slope * x.bound
        error = x.error * y.bound + y.error * x.bound + x.bound * y.bound
        d.made(f"{x.source} * {y.source}", x, bound=x.bound * y.bound, slope=slope, error=error)
    elif which == 3:
        function = d.rng.choice(("maximum", "minimum"))
        d.made(
            f"xp.{function}({x.source}, {y.source})",
            x,
            bound=max(x.bound, y.bound),
            slope=max(x.slope, y.slope),
            error=error,
        )
    elif which == 4:
        slope = x.slope + x.bound * y.slope
        error = x.error + x.bound * (2 + y.error)
        d.made(f"{x.source} / (xp.abs({y.source}) + 1)", x, slope=slope, error=error)
    else:
        power = d.rng.choice((2, 3))
        bound = x.bound**power
        slope = power * x.bound ** (power - 1)
        d.made(
            f"{x.source} ** {power}",
            x,
            bound=bound,
            slope=slope * x.slope,
            error=slope * x.error + 2 * bound,
        )


def unary(d: Drawing) -> None:
    x = d.floating()
    if x is None:
        return
    if x.kind == "c":
        part = d.rng.choice(("xp.conj({})", "({}) * 1j", "-{}"))
        d.made(part.format(x.source), x)
    elif d.rng.random() < 0.5:
        number = d.rng.choice((0.5, -0.25, 1.5, 2, 0.1))
        d.made(
            f"{x.source} * {number} + 0.125",
            x,
            bound=x.bound * abs(number) + 0.125,
            slope=x.slope * abs(number),
            error=x.error * abs(number) + 2 * x.bound * abs(number) + 1,
        )
    else:
        function = d.rng.choice(FUNCTIONS)
        bound = math.sqrt(x.bound + 1) + 1
        d.made(function.format(x.source), x, bound=bound, error=x.error + 8 * bound)


def choice(d: Drawing) -> None:
    """Choose by a mask that rounding does not change."""
    x = d.pick(lambda value: True)
    if x is None:
        return
    y = d.partner(x)
    whole = d.pick(lambda value: value.kind == "i" and value.shape == x.shape)
    mask = f"{whole.source} % 3 == 0" if whole else d.leaf(x.shape, "bool").source
    d.made(
        f"xp.where({mask}, {x.source}, {y.source})",
        x,
        bound=max(x.bound, y.bound),
        slope=max(x.slope, y.slope),
        error=max(x.error, y.error),
    )


def reduction(d: Drawing) -> None:
    x = d.floating(axes=(1, 2))
    if x is None:
        return
    axis = d.rng.choice((None, *range(len(x.shape))))
    keeps = d.rng.random() < 0.3
    count = math.prod(x.shape) if axis is None else x.shape[axis]
    shape = tuple(1 if keeps else n for i, n in enumerate(x.shape) if keeps or i != axis)
    if axis is None:
        shape = (1,) * len(x.shape) if keeps else ()
    elif keeps:
        shape = tuple(1 if i == axis else n for i, n in enumerate(x.shape))
    which = d.rng.randrange(3 if x.kind == "f" else 1)
    name, times = (("mean", 1.0), ("max", 1.0), ("sum", float(count)))[which]
    error = times * x.error + times * x.bound * (2 + math.log2(count + 1))
    reduced = f"xp.{name}({x.source}, axis={axis}, keepdims={keeps})"
    made = replace(x, shape=shape, slope=times * x.slope, bound=times * x.bound, error=error)
    if keeps and d.rng.random() < 0.7:
        made = replace(
            made,
            shape=x.shape,
            bound=made.bound + x.bound,
            slope=made.slope + x.slope,
            error=made.error + x.error + made.bound + x.bound,
        )
        reduced = f"{x.source} - {reduced}"
    d.made(reduced, made)


def movement(d: Drawing) -> None:
    x = d.pick(lambda value: len(value.shape) > 0 and value.shape[0] > 1)
    if x is None:
        return
    y = d.pick(lambda value: value.dtype == x.dtype and value.shape == x.shape) or x
    k = d.rng.randrange(1, x.shape[0])
    joined = replace(
        x,
        bound=max(x.bound, y.bound),
        slope=max(x.slope, y.slope),
        error=max(x.error, y.error),
    )
    forms = [
        f"xp.roll({x.source}, {d.rng.choice((1, -1))}, axis=0)",
        f"xp.concat([{x.source}[{k}:], {y.source}[:{k}]], axis=0)",
        f"{x.source}[::-1]",
        f"xp.flip({x.source}) + 0",
        f"{x.source} + 0 * {y.source}[{k - 1}]",
    ]
    if len(x.shape) == 2 and x.shape[0] == x.shape[1]:
        forms.append(f"{x.source}.T")
    row = f"{x.source}[{d.rng.choice((0, -1, k))}] * 1"
    if d.rng.random() < 0.2:
        d.made(row, x, shape=x.shape[1:])
    else:
        d.made(d.rng.choice(forms), joined)


def product(d: Drawing) -> None:
    x = d.pick(lambda v: v.kind == "f" and len(v.shape) > 0 and v.shape[0] == d.n)
    if x is None:
        return
    n, m, eye = d.n, d.matrix(x.dtype).source, d.eye(x.dtype)
    which = d.rng.randrange(6)
    if which < 2:
        error = x.error + n * x.bound
        d.made(f"{m} @ {x.source}", x, error=error)
    elif which == 2 and x.shape == (n, n):
        bound, slope = n * x.bound**2, 2 * n * x.bound * x.slope
        d.made(
            f"{x.source} @ {x.source}",
            x,
            bound=bound,
            slope=slope,
            error=2 * n * x.bound * x.error + n * bound,
        )
    elif which == 3:  # of a matrix like 3 I + K, whose inverse is at most 1/2
        error = x.error + 8 * n * x.bound
        d.made(f"xp.linalg.solve({m} + {eye}, {x.source})", x, error=error)
    elif which == 4 and x.shape == (n, n):
        inner = f"{x.source} * {1 / (n * x.bound)!r} + {eye}"
        name = d.rng.choice(("inv({})", f"solve({{}}, {eye})"))
        slope = x.slope / x.bound
        error = x.error / x.bound + 16 * n
        d.made(f"xp.linalg.{name.format(inner)}", x, bound=1.0, slope=slope, error=error)
    else:
        error = x.error + 2 * n * x.bound
        step = f"{m}.T @ ({m} @ {x.source} - {x.source})"
        d.made(
            f"{x.source} - {1 / n!r} * ({step})",
            x,
            bound=3 * x.bound,
            slope=3 * x.slope,
            error=3 * error,
        )


def update(d: Drawing) -> None:
    """Assign to parts of a copy, or of a view of it."""
    x = d.pick(lambda v: v.kind in "fc" and len(v.shape) > 0 and v.shape[0] > 2)
    if x is None:
        return
    y = d.pick(lambda v: v.dtype == x.dtype and v.shape == x.shape) or x
    u, view = d.name("u"), d.name("v")
    d.lines += [f"{u} = {x.source} + 0", f"{view} = {u}[::2]"]
    forms = (
        f"{u}[1:-1] += 0.25 * ({y.source}[:-2] + {y.source}[2:])",
        f"{u}[1:-1] += 0.25 * ({u}[:-2] + {u}[2:])",
        f"{u}[0] = 0.5",
        f"{view} *= 0.5",
        f"{u}[-1] = {y.source}[0] * 0.5",
        f"{u} += 0.5 * {y.source}",
    )
    bound, slope, error = max(x.bound, 0.5), x.slope, x.error
    for form in d.rng.sample(forms, k=d.rng.choice((1, 1, 2))):
        d.lines.append(form)
        bound = 1.5 * bound + y.bound
        slope = 1.5 * slope + y.slope
        error = 1.5 * error + y.error + 2 * bound
    bounds = {"bound": bound, "slope": slope, "error": error}
    d.values.append(replace(x, source=u, **bounds))
    if d.rng.random() < 0.4:
        shape = (len(range(0, x.shape[0], 2)), *x.shape[1:])
        d.values.append(replace(x, source=view, shape=shape, **bounds))


def whole_numbers(d: Drawing) -> None:
    x = d.pick(lambda value: value.kind == "i")
    if x is None:
        return
    y = d.partner(x)
    y = y if y.kind == "i" else x
    largest = d.rng.choice((2, 5, 7))
    forms = (
        f"({x.source} + {y.source}) % {largest}",
        f"({x.source} * 3 + 1) % {largest}",
        f"xp.bitwise_xor({x.source}, {y.source}) % {largest}",
        f"xp.maximum({x.source}, {y.source}) % {largest}",
    )
    d.made(d.rng.choice(forms), x)


def gathered(d: Drawing) -> None:
    x = d.pick(lambda v: v.kind in "fc" and len(v.shape) > 0)
    i = d.pick(lambda v: v.kind == "i" and len(v.shape) == 1)
    if x is not None and i is not None:
        shape = i.shape + x.shape[1:]
        source = f"xp.take({x.source}, {i.source} % {x.shape[0]}, axis=0)"
        d.made(source, x, shape=shape)


def draw(d: Drawing) -> None:
    shape = d.rng.choice(((), (d.n,), (d.n, d.n)))
    like = Value("", shape, "float64", 1.0, 0.0)
    d.made(f"rng.random({shape})", like)


def called(d: Drawing) -> None:
    """Call a tn.function, by a push now and then."""
    x = d.pick(lambda v: v.kind == "f")
    if x is None:
        return
    y = d.pick(lambda v: v.dtype == x.dtype and v.shape == x.shape) or x
    name, body = d.name("f"), d.rng.choice(FUNCTIONS).format("x")
    d.functions += ["@function", f"def {name}(x, y):", f"    return {body} - 0.25 * y"]
    bound = math.sqrt(x.bound + 1) + 1 + y.bound
    error = x.error + y.error + 8 * bound
    arguments = f"{x.source}, {y.source}"
    source = f"{name}({arguments})"
    if d.rng.random() < 0.25:
        period = d.rng.choice((7, 50))
        d.program.is_steady = False
        source = f"push({name}, {arguments}) if k % {period} == 3 else {source}"
    d.made(source, x, bound=bound, slope=x.slope + y.slope, error=error)


def branch(d: Drawing) -> None:
    """Another operation in some steps."""
    x = d.floating()
    if x is None:
        return
    y = d.partner(x)
    name, period = d.name(), d.rng.choice((2, 3, 10, 97))
    d.program.is_steady = d.program.is_steady and period <= 3
    d.lines += [
        f"if k % {period} == 1:",
        f"    {name} = {x.source} * 0.5",
        "else:",
        f"    {name} = {x.source} + {y.source}",
    ]
    bound = x.bound + y.bound
    error = x.error + y.error + bound
    d.values.append(replace(x, source=name, bound=bound, slope=x.slope + y.slope, error=error))


OPERATIONS: tuple[Callable[[Drawing], None], ...] = (
    *(elementwise,) * 6,
    *(unary,) * 4,
    *(movement,) * 3,
    *(reduction,) * 3,
    *(choice,) * 2,
    *(update,) * 2,
    *(whole_numbers,) * 2,
    product,
    gathered,
    draw,
    called,
    branch,
)
