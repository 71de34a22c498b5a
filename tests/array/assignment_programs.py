"""Random programs of assignments over one or two buffers, run line by line by Tenfold and by the
interpreter that copies everything.

Takes a seed; a difference is an AssertionError that prints the program so far. A program has names
of its buffers, views of views of them (overlapping, strided, transposed, reshaped), and names that
captured a value; it assigns in every manner, waits now and then for one name, and in the end for
all.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import tenfold as tn

from .copying_interpreter import OPERATORS, Name, Refused

DTYPES = ("float64", "float64", "int64", "float32", "int32", "uint8", "complex128", "bool")
ERRORS = (ValueError, TypeError)
MOST_NAMES = 9


class Machine:
    """A program while it is run: each name by both, and the lines so far."""

    def __init__(self, seed: int, device: str) -> None:
        self.random = random.Random(seed)
        self.lines = [f"# seed {seed} by {MANNERS[seed % len(MANNERS)]}"]
        self.ours: list[tn.Array] = []
        self.truth: list[Name] = []
        self.device = device
        self.exports: list[tuple[np.ndarray, tuple[Any, ...]]] = []
        """What was seen of names, which nobody may write over any more."""

    # Choices.

    def chance(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def name(self) -> int:
        return self.random.randrange(len(self.ours))

    def key_of_axis(self, length: int) -> Any:
        """An int or a slice: long, short, reversed, strided or empty."""
        form = self.random.randrange(8)
        if form == 0 and length:
            return self.random.randrange(-length, length)
        if form < 3:
            return slice(None)
        low, high = sorted(self.random.randrange(length + 1) for _ in range(2))
        if low == high and not self.chance(6):
            low, high = 0, length
        step = self.random.choice((1, 1, 1, 2, 3))
        if self.chance(3):
            return slice(high - 1, low - 1 if low else None, -step) if high else slice(0, 0)
        return slice(low, high, step)

    def basic_key(self, shape: tuple[int, ...]) -> tuple[Any, ...]:
        key: list[Any] = [self.key_of_axis(length) for length in shape]
        if key and self.chance(4):
            del key[self.random.randrange(len(key)) :]
        if self.chance(6):
            key.insert(self.random.randrange(len(key) + 1), None)
        if self.chance(6):
            key.append(...)
        return tuple(key)

    def key(self, shape: tuple[int, ...]) -> Any:
        """Any key NumPy knows."""
        form = self.random.randrange(10)
        if form == 0 or not shape:
            return ...
        if form == 1 and 0 not in shape:
            first = np.asarray([self.random.randrange(-shape[0], shape[0]) for _ in range(3)])
            return first if self.chance(2) else (first, *self.basic_key(shape[1:]))
        if form == 2:
            axes = self.random.randrange(1, len(shape) + 1)
            bits = [self.chance(2) for _ in range(int(np.prod(shape[:axes])))]
            return np.asarray(bits, bool).reshape(shape[:axes])
        if form == 3 and len(shape) > 1 and 0 not in shape:
            pair = [[self.random.randrange(length) for _ in range(2)] for length in shape[:2]]
            return (np.asarray(pair[0]), np.asarray(pair[1]))
        return self.basic_key(shape)

    def scalar(self, dtype: np.dtype) -> Any:
        if dtype.kind == "b":
            return self.chance(2)
        whole = self.random.randrange(4)
        return whole if dtype.kind in "iu" and not self.chance(9) else whole / 2

    def symbol(self, *dtypes: np.dtype) -> str:
        """One whose bits are promised: complex products are not, nor has bool a difference."""
        kinds = {dtype.kind for dtype in dtypes}
        return self.random.choice("+-" if "c" in kinds else "+*" if "b" in kinds else "++--**/")

    # Lines.

    def add(self, ours: tn.Array, truth: Name, text: str) -> None:
        self.lines.append(f"x{len(self.ours)} = {text}")
        if ours.size != truth.read().size or ours.shape != truth.shape:
            self.fail("shape", ours.shape, truth.shape)
        self.ours.append(ours)
        self.truth.append(truth)

    def leaf(self) -> None:
        rank = self.random.choice((1, 1, 2, 2, 2, 3, 3, 0))
        longest = self.random.choice((5, 5, 5, 40 if rank < 3 else 7))
        shape = tuple(self.random.randrange(1, longest + 1) for _ in range(rank))
        dtype = np.dtype(self.random.choice(DTYPES))
        count = int(np.prod(shape))
        values = np.arange(count).reshape(shape) % 97
        values = (values % 2 == 1) if dtype.kind == "b" else values.astype(dtype)
        text = f"leaf {shape} {dtype}"
        self.add(tn.asarray(values, device=self.device), Name.of(values), text)

    def view(self) -> None:
        number = self.name()
        ours, truth = self.ours[number], self.truth[number]
        move, text = self.movement(truth.shape)
        self.add(move(ours), truth.view(move), f"x{number}{text}")

    def movement(self, shape: tuple[int, ...]) -> tuple[Callable[[Any], Any], str]:
        form, rank = self.random.randrange(12), len(shape)
        if form == 0:
            order = self.random.sample(range(rank), rank)
            return (lambda x: np.transpose(x, order)), f".permuted({order})"
        if form == 1 and rank == 2:
            return (lambda x: x.T), ".T"
        if form == 2 and rank > 1:
            first, second = self.random.sample(range(rank), 2)
            offset = self.random.randrange(-1, 2)
            return (
                lambda x: np.diagonal(x, offset, first, second),
                f".diagonal({offset}, {first}, {second})",
            )
        if form == 3:
            return (lambda x: np.reshape(x, (-1,))), ".reshape(-1)"
        if form == 4 and rank and np.prod(shape) % 2 == 0:
            half = (2, int(np.prod(shape)) // 2)
            return (lambda x: np.reshape(x, half)), f".reshape({half})"
        if form == 5 and self.chance(3):
            wide = (2, *shape)
            return (lambda x: np.broadcast_to(x, wide)), f".broadcast_to({wide})"
        if form == 6 and rank:
            return np.flip, ".flipped()"
        if form == 7:
            return np.squeeze, ".squeezed()"
        basic = self.basic_key(shape)
        key = basic if ... in basic else (*basic, ...)  # never an element alone
        return (lambda x: x[key]), f"[{key}]"

    def capture(self) -> None:
        """A name of its own, of what some names hold now."""
        number = self.name()
        ours, truth = self.ours[number], self.truth[number].read()
        form = self.random.randrange(3)
        if form == 0:
            made, value, text = tn.asarray(ours, copy=True), truth, f"copy of x{number}"
        elif form == 1 or ours.dtype.kind == "b":
            made, value, text = ours + 1, truth + 1, f"x{number} + 1"
        else:
            made, value, text = -ours, -truth, f"-x{number}"
        self.add(made, Name.of(np.asarray(value)), text)

    def value(self, shape: tuple[int, ...], dtype: np.dtype) -> tuple[Any, Any, str]:
        """A right side, mostly of this shape: a number, part of a name, or two parts together."""
        if self.chance(4):
            number = self.scalar(dtype)
            return number, number, repr(number)
        ours, truth, text = self.part(shape)
        if self.chance(3) and truth.dtype.kind != "b":
            other, other_truth, other_text = self.part(shape)
            symbol = self.random.choice("+-")
            if other_truth.dtype.kind != "b" and fit(truth.shape, other_truth.shape):
                function = OPERATORS[symbol]
                text = f"({text} {symbol} {other_text})"
                return function(ours, other), function(truth, other_truth), text
        return ours, truth, text

    def part(self, shape: tuple[int, ...]) -> tuple[Any, np.ndarray, str]:
        """Part of some name that fits a shape, at any place, as often as one does."""
        number = self.name()
        ours, truth = self.ours[number], self.truth[number]
        more = len(truth.shape) - len(shape)
        key: list[Any] = []
        for axis, length in enumerate(truth.shape):
            wanted = shape[axis - more] if axis >= more else 0
            if axis < more:
                key.append(self.random.randrange(length) if length else slice(None))
            elif wanted <= length and not self.chance(30):
                start = self.random.randrange(length - wanted + 1)
                backwards = slice(start + wanted - 1, start - 1 if start else None, -1)
                forwards = slice(start, start + wanted)
                key.append(backwards if wanted and self.chance(4) else forwards)
            else:
                key.append(slice(0, 1))
        taken = (*key, ...)
        return ours[taken], truth.read()[taken], f"x{number}[{taken}]"

    def assignment(self) -> None:
        number = self.name()
        ours, truth = self.ours[number], self.truth[number]
        form = self.random.randrange(6)
        if form == 0 and self.joined():
            return
        key = self.key(truth.shape) if form > 2 else ...
        value, expected, text = self.value(truth.numbers[key].shape, truth.dtype)
        symbol = self.symbol(truth.dtype, np.result_type(expected)) if self.chance(2) else ""
        if form == 1:
            text = f"assign(x{number}, {text}, '{symbol}=')"
            self.both(
                text,
                lambda: tn.assign(ours, value, f"{symbol}="),
                lambda: truth.assign(key, expected, symbol),
            )
            return
        place = f"x{number}" if form == 2 and symbol else f"x{number}[{key!r}]"
        self.both(
            f"{place} {symbol}= {text}",
            lambda: compound(ours, key, symbol, value, whole=form == 2),
            lambda: truth.assign(key, expected, symbol),
        )

    def joined(self) -> bool:
        """Assign to two names side by side, where there are such."""
        first, second = self.name(), self.name()
        p, q = self.truth[first], self.truth[second]
        if not p.shape or p.shape[1:] != q.shape[1:] or len(p.shape) != len(q.shape):
            return False
        cut = p.shape[0]
        value, expected, text = self.value((cut + q.shape[0], *p.shape[1:]), p.dtype)
        shares: Any = (expected, expected)
        if np.ndim(expected):
            try:
                whole = np.broadcast_to(expected, (cut + q.shape[0], *p.shape[1:]))
            except ValueError:
                return False
            shares = whole[:cut], whole[cut:]

        def truth() -> None:
            for name, share in zip((p, q), shares, strict=True):
                check = Name.of(name.read())
                check.assign(..., share)  # both fit, or neither is written
                if name.repeats:
                    raise Refused("repeats")
            p.assign(..., shares[0])
            q.assign(..., shares[1])

        pair = self.ours[first], self.ours[second]
        self.both(
            f"assign(concat([x{first}, x{second}]), {text})",
            lambda: tn.assign(tn.concat(pair), value),
            truth,
        )
        return True

    def both(self, text: str, ours: Callable[[], Any], truth: Callable[[], Any]) -> None:
        """Run a line by both: neither refuses it, or both do."""
        self.lines.append(text)
        refused = ""
        try:
            with np.errstate(all="ignore"):
                truth()
        except Refused as why:
            refused = str(why)
            self.lines[-1] += f"  # refused: {refused}"
        try:
            ours()
        except ERRORS as error:
            if not refused:
                self.fail(f"refused: {error}", "an error", "none")
        else:
            if refused:
                self.fail("not refused", "none", refused)

    def look(self, number: int) -> None:
        found, wanted = np.asarray(self.ours[number]), self.truth[number].read()
        self.lines.append(f"look at x{number}")
        if bits(found) != bits(wanted):
            self.fail(f"x{number}", found, wanted)
        self.exports.append((found, bits(wanted)))

    def fail(self, what: str, found: Any, wanted: Any) -> None:
        program = "\n".join(self.lines)
        raise AssertionError(f"{what}:\n{found}\nnot\n{wanted}\n{program}")

    def run(self) -> None:
        for _ in range(self.random.choice((1, 1, 2))):
            self.leaf()
        for _ in range(self.random.randrange(4, 16)):
            form = self.random.randrange(12)
            if form < 3 and len(self.ours) < MOST_NAMES:
                self.view()
            elif form == 3 and len(self.ours) < MOST_NAMES:
                self.capture()
            elif form == 4:
                self.look(self.name())
            else:
                self.assignment()
        for number in self.random.sample(range(len(self.ours)), len(self.ours)):
            self.look(number)
        for found, seen in self.exports:
            if bits(found) != seen:
                self.fail("an export was written over", found, seen)


def compound(x: tn.Array, key: Any, symbol: str, value: Any, *, whole: bool) -> None:
    """Python's own statement."""
    if not symbol:
        x[key] = value
    elif whole:
        x = x if x.ndim or x.base is not None else x[...]  # the name stays the same
        in_place(x, symbol, value)
    elif symbol == "+":
        x[key] += value
    elif symbol == "-":
        x[key] -= value
    elif symbol == "*":
        x[key] *= value
    else:
        x[key] /= value


def fit(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether shapes broadcast together."""
    try:
        np.broadcast_shapes(one, other)
    except ValueError:
        return False
    return True


def in_place(x: tn.Array, symbol: str, value: Any) -> None:
    if symbol == "+":
        x += value
    elif symbol == "-":
        x -= value
    elif symbol == "*":
        x *= value
    else:
        x /= value


def bits(values: np.ndarray) -> tuple[Any, ...]:
    """The shape, the dtype and every bit; all NaNs are one."""
    parts = np.ascontiguousarray(values).reshape(-1)
    parts = parts.view(parts.real.dtype) if parts.dtype.kind == "c" else parts
    if parts.dtype.kind == "f":
        parts = np.where(parts != parts, np.array(np.nan, parts.dtype), parts)
    return values.shape, values.dtype, parts.tobytes()


MANNERS: tuple[dict[str, Any], ...] = (
    {"device": "cpu"},
    {"device": "reference"},
    {"device": "cpu", "optimise": False},
    {"device": "reference"},
    {"device": "cpu", "tier": "0"},
    {"device": "cpu", "fuse": False},
    {"device": "cpu", "pending_depth": 65},
)
"""How programs are computed, one after the other."""


def check(seed: int) -> None:
    """Run the program of a seed, in the manner that is its turn."""
    manner = MANNERS[seed % len(MANNERS)]
    with tn.options(**manner), np.errstate(all="ignore"):  # both overflow alike
        Machine(seed, str(manner["device"])).run()
