"""Random programs: the same text for NumPy and Tenfold, with results that are defined everywhere.

Takes a seed, how many operations and of what kinds; hands on a `Program`: a function of a library's
names and some arrays, and the shapes of these for a shape of the largest. It holds for any length
of the axes, so one program is one structure of many shapes.

    program = make(3, 12, rank=2)
    arrays = program.inputs((40, 50), seed=0)
    values = program.function(np, *arrays)          # a tuple

So that values can be compared, what could part two libraries is kept away: no division by what may
be 0, no logarithm of what may not be positive, no growth (each value has a bound, and is pressed
between 0.5 and -0.5 when that passes 100), and comparisons, floors and casts to whole numbers only
of what both compute to the last bit, for which elementary functions and sums do not count.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Shape = tuple[int, ...]
LARGEST = 100.0
ELEMENTWISE = ("unary", "binary", "binary", "scalar", "where", "quotient")
EVERYTHING = (*ELEMENTWISE, "binary", "fold", "cast", "turn", "slice", "spread")

EXACT = ("abs", "negative")
NEAR = {
    "tanh": "xp.tanh({})",
    "sin": "xp.sin({})",
    "cos": "xp.cos({})",
    "exp": "xp.exp(-xp.abs({}))",
}
ROOTS = {"sqrt": "xp.sqrt(xp.abs({}) + 0.5)", "log": "xp.log(xp.abs({}) + 1)"}


@dataclass(frozen=True)
class Variable:
    """A value of a program, as far as it is known while it is written.

    An axis is (which of the axes of the largest shape it is, or -1 for length 1, and which of the
    ways in which slices have cut it): two axes with the same have the same length.
    """

    name: str
    axes: tuple[tuple[int, str], ...]
    dtype: str
    bound: float
    exact: bool


@dataclass(frozen=True)
class Program:
    """A random program."""

    text: str
    function: Callable[..., tuple[Any, ...]]
    operations: int
    leaves: tuple[Variable, ...]

    def inputs(self, largest: Shape, seed: int) -> list[np.ndarray]:
        """Its arrays, of numbers between -1 and 1, for a shape."""
        values = np.random.default_rng(seed)
        shapes = [tuple(largest[a] if a >= 0 else 1 for a, _ in leaf.axes) for leaf in self.leaves]
        pairs = zip(self.leaves, shapes, strict=True)
        return [values.uniform(-1, 1, shape).astype(leaf.dtype) for leaf, shape in pairs]


class _Writer:
    """Writes a program, an operation after the other."""

    def __init__(self, seed: int, operations: int, rank: int, kinds: Sequence[str]) -> None:
        self.choose, self.most, self.rank = random.Random(seed), operations, rank
        self.kinds = kinds
        self.lines: list[str] = []
        self.operations = 0
        self.unread: dict[str, Variable] = {}
        self.dtype = self.choose.choice(("float32", "float64", "float64"))
        self.leaves = tuple(self._leaf(number) for number in range(self.choose.randrange(2, 6)))
        self.values: list[Variable] = list(self.leaves)

    def _leaf(self, number: int) -> Variable:
        axes = [(axis, "") for axis in range(self.rank)]
        form = self.choose.random() if number else 1.0
        if form < 0.15:
            axes = axes[1:]
        elif form < 0.3:
            axes[self.choose.randrange(self.rank)] = (-1, "")
        return Variable("abcdef"[number], tuple(axes), self.dtype, 1.0, True)

    def program(self) -> Program:
        while self.operations < self.most:
            kind = self.choose.choice(self.kinds)
            getattr(self, kind)(self._some())
        results = ", ".join([*self.unread])
        names = ", ".join(leaf.name for leaf in self.leaves)
        body = "".join(f"    {line}\n" for line in self.lines)
        text = f"def program(xp, {names}):\n{body}    return ({results},)\n"
        space: dict[str, Any] = {}
        exec(compile(text, "<program>", "exec"), space)
        return Program(text, space["program"], self.operations, self.leaves)

    def _some(self) -> Variable:
        """A value: mostly one that nothing has read, so that few results are left in the end."""
        if self.unread and self.choose.random() < 0.75:
            return self.choose.choice([*self.unread.values()])
        return self.choose.choice(self.values)

    def _fits(self, x: Variable) -> Variable:
        """A value that can be combined with one, and makes nothing of more axes or greater ones."""
        found = [y for y in self.values if y != x and _broadcasts(x, y)]
        unread = [y for y in found if y.name in self.unread]
        return self.choose.choice(unread or found or [x])

    def _write(
        self,
        text: str,
        reads: Sequence[Variable],
        operations: int = 1,
        **changes: Any,
    ) -> Variable:
        first = reads[0]
        facts = {
            "axes": first.axes,
            "dtype": first.dtype,
            "bound": first.bound,
            "exact": all(each.exact for each in reads),
        }
        name = f"v{len(self.lines)}"
        made = Variable(name, **{**facts, **changes})
        self.lines.append(f"{name} = {text}")
        self.operations += operations
        for each in reads:
            self.unread.pop(each.name, None)
        self.unread[name] = made
        self.values.append(made)
        if made.bound > LARGEST:
            low, high = ("-0.5", "0.5") if made.dtype in _FLOATS else ("-1", "1")
            pressed = f"xp.minimum(xp.maximum({name}, {low}), {high})"
            return self._write(pressed, [made], 2, bound=float(high))
        return made

    def _float(self, x: Variable) -> Variable:
        """A value as floats."""
        if x.dtype in _FLOATS:
            return x
        text = f"xp.astype({x.name}, xp.{self.dtype})"
        return self._write(text, [x], dtype=self.dtype)

    def unary(self, x: Variable) -> None:
        x = self._float(x)
        table = self.choose.choice((EXACT, NEAR, ROOTS))
        name = self.choose.choice([*table])
        if table is EXACT:
            self._write(f"xp.{name}({x.name})", [x])
        elif table is NEAR:
            self._write(
                NEAR[name].format(x.name), [x], 3 if name == "exp" else 1, bound=1.0, exact=False
            )
        else:
            exact = x.exact and name == "sqrt"
            self._write(ROOTS[name].format(x.name), [x], 3, bound=x.bound + 0.5, exact=exact)

    def binary(self, x: Variable) -> None:
        x, y = self._float(x), self._float(self._fits(x))
        symbol = self.choose.choice("+-*m")
        bound = {"*": x.bound * y.bound, "m": max(x.bound, y.bound)}.get(symbol, x.bound + y.bound)
        name = self.choose.choice(("maximum", "minimum"))
        text = f"xp.{name}({x.name}, {y.name})" if symbol == "m" else f"{x.name} {symbol} {y.name}"
        self._write(text, [x, y], axes=_together(x, y), dtype=_wider(x, y), bound=bound)

    def scalar(self, x: Variable) -> None:
        number = round(self.choose.uniform(0.1, 2), 3) if x.dtype in _FLOATS else 3
        symbol = self.choose.choice("+-*")
        bound = x.bound * number if symbol == "*" else x.bound + number
        self._write(f"{x.name} {symbol} {number}", [x], bound=bound)

    def quotient(self, x: Variable) -> None:
        x, y = self._float(x), self._float(self._fits(x))
        text = f"{x.name} / (xp.abs({y.name}) + 0.5)"
        axes, dtype = _together(x, y), _wider(x, y)
        self._write(text, [x, y], 3, axes=axes, dtype=dtype, bound=x.bound * 2)

    def where(self, x: Variable) -> None:
        """A choice by a comparison of values that are exact, or the comparison as numbers."""
        exact = [y for y in self.values if y.exact and y.dtype in _FLOATS and y.axes == x.axes]
        if len(exact) < 2:
            return self.binary(x)
        first, second = self.choose.sample(exact, 2)
        symbol = self.choose.choice(("<", ">", "<=", ">="))
        if self.choose.random() < 0.3:
            text = f"xp.astype({first.name} {symbol} {second.name}, xp.{self.dtype})"
            self._write(text, [first, second], 2, dtype=self.dtype, bound=1.0)
            return None
        other = self.choose.choice([y for y in self.values if y.axes == x.axes])
        x, other = self._float(x), self._float(other)
        text = f"xp.where({first.name} {symbol} {second.name}, {x.name}, {other.name})"
        bound = max(x.bound, other.bound)
        reads = [x, other, first, second]
        self._write(
            text, reads, 2, dtype=_wider(x, other), bound=bound, exact=x.exact and other.exact
        )
        return None

    def fold(self, x: Variable) -> None:
        if not any(axis >= 0 for axis, _ in x.axes):
            return self.binary(x)
        x, axis = self._float(x), self.choose.randrange(len(x.axes))
        name = self.choose.choice(("mean", "max", "min", "sum"))
        keeps = self.choose.random() < 0.6
        text = f"xp.{name}({x.name}, axis={axis}, keepdims={keeps})"
        middle = [(-1, "")] if keeps else []
        axes = (*x.axes[:axis], *middle, *x.axes[axis + 1 :])
        exact = x.exact and name in ("max", "min")
        if name == "sum":  # of 10^5 elements at most
            self._write(f"{text} * 0.00001", [x], 2, axes=axes, exact=False)
        else:
            self._write(text, [x], axes=axes, exact=exact)
        return None

    def cast(self, x: Variable) -> None:
        if x.dtype in _FLOATS and x.exact and self.choose.random() < 0.5:
            text = f"xp.astype(xp.floor({x.name} * 4), xp.int32)"
            self._write(text, [x], 3, dtype="int32", bound=x.bound * 4 + 1)
        else:
            dtype = "float32" if x.dtype == "float64" else "float64"
            self._write(f"xp.astype({x.name}, xp.{dtype})", [x], dtype=dtype)

    def turn(self, x: Variable) -> None:
        if len(x.axes) < 2:
            return self.unary(x)
        order = self.choose.sample(range(len(x.axes)), len(x.axes))
        axes = tuple(x.axes[axis] for axis in order)
        self._write(f"xp.permute_dims({x.name}, {tuple(order)})", [x], axes=axes)
        return None

    def slice(self, x: Variable) -> None:
        """Neighbours along an axis: two slices of one value, combined."""
        long = [n for n, (axis, cut) in enumerate(x.axes) if axis >= 0 and len(cut) < 2]
        if not long:
            return self.unary(x)
        x, axis = self._float(x), self.choose.choice(long)
        before = ":, " * axis
        pairs = ((("1:", ":-1"), "n"), (("::2", "::2"), "h"), (("1:", "1:"), "n"))
        (one, other), letter = self.choose.choice(pairs)
        cut = (x.axes[axis][0], x.axes[axis][1] + letter)
        axes = (*x.axes[:axis], cut, *x.axes[axis + 1 :])
        if one == other:
            self._write(f"{x.name}[{before}{one}]", [x], axes=axes)
        else:
            text = f"{x.name}[{before}{one}] - {x.name}[{before}{other}]"
            self._write(text, [x], 3, axes=axes, bound=2 * x.bound)
        return None

    def spread(self, x: Variable) -> None:
        """A value with fewer elements, broadcast to the shape of another one."""
        found = [y for y in self.values if len(y.axes) >= len(x.axes) and _broadcasts(y, x)]
        larger = [y for y in found if y.axes != x.axes and _together(x, y) == y.axes]
        if not larger:
            return self.unary(x)
        other = self.choose.choice(larger)
        self._write(f"xp.broadcast_to({x.name}, {other.name}.shape)", [x], axes=other.axes)
        return None


_FLOATS = ("float32", "float64")


def _wider(x: Variable, y: Variable) -> str:
    return max(x.dtype, y.dtype)


def _pairs(x: Variable, y: Variable) -> list[tuple[tuple[int, str], tuple[int, str]]]:
    """The axes of two values that meet, from the last on."""
    rank = max(len(x.axes), len(y.axes))
    one, other = (((-1, ""),) * (rank - len(each.axes)) + each.axes for each in (x, y))
    return [*zip(one, other, strict=True)]


def _broadcasts(x: Variable, y: Variable) -> bool:
    """Whether two values go together, and no axis comes twice in what they make: it is no larger
    than the largest shape.
    """
    pairs = _pairs(x, y)
    axes = [max(pair)[0] for pair in pairs if max(pair)[0] >= 0]
    agree = all(a == b or -1 in (a[0], b[0]) for a, b in pairs)
    return agree and len(set(axes)) == len(axes)


def _together(x: Variable, y: Variable) -> tuple[tuple[int, str], ...]:
    """The axes of what two values make."""
    return tuple(max(pair) for pair in _pairs(x, y))


def make(seed: int, operations: int, rank: int, kinds: Sequence[str] = EVERYTHING) -> Program:
    """The program of a seed: so many operations, or one or two more."""
    return _Writer(seed, operations, rank, kinds).program()
