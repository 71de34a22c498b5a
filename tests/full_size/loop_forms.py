"""The forms of loops: what is computed by Tenfold and by NumPy, of which operands, and how near.

Takes a generator, a dtype and a length; a Form makes operands of about so many elements, and
computes them with a namespace: Tenfold's, on any device, or NumPy's.

>>> [form.name for form in FORMS][:2]
['add_one', 'polynomial']
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tenfold as tn
from tenfold.dtypes import canonical, kind_of

Operands = list[np.ndarray]

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
HALVES = ("float16", "bfloat16")
FLOATS = ("float32", "float64")
REAL = (*INTEGERS, *HALVES, *FLOATS)
COMPLEX = ("complex64", "complex128")
NUMBERS = (*REAL, *COMPLEX)
ALL = ("bool", *NUMBERS)
EXACT = ("bool", *INTEGERS, *HALVES, *FLOATS)


@dataclass(frozen=True)
class Form:
    """What is computed. `check` says how near to NumPy's the result is, and whether its bits are
    those of the reference device.

    bits: both have the same bits. sums: NumPy adds in another order; the reference has the bits.
    near: within `ulp` units of NumPy. product: as exact as adding one term after the other is.
    """

    name: str
    function: Callable[..., Any]
    operands: Callable[[np.random.Generator, str, int], Operands]
    dtypes: tuple[str, ...] = NUMBERS
    check: str = "bits"
    ulp: int = 0
    longest: int = 1 << 26
    numpy: Callable[..., Any] | None = None
    """What NumPy computes, where it is not `function` of NumPy's namespace."""

    def with_numpy(self, operands: Operands) -> Any:
        """Return NumPy's result."""
        return (self.numpy or self.function)(np, *operands)

    def with_tenfold(self, operands: Operands) -> Any:
        """Return Tenfold's, by the options in force."""
        return np.asarray(self.function(tn, *map(tn.asarray, operands)))


def sample(generator: np.random.Generator, dtype: str, shape: Any) -> np.ndarray:
    """Integers over the whole range, floats and parts of complex numbers from 0.5 to 2."""
    kind = kind_of(canonical(dtype))
    if kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        limits = np.iinfo(dtype)
        return generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    real = generator.random(shape, np.float32) * np.float32(1.5) + np.float32(0.5)
    if kind == "c":
        return (real + 1j * generator.random(shape, np.float32)).astype(dtype)
    return real.astype(canonical(dtype))


def vectors(count: int) -> Callable[[np.random.Generator, str, int], Operands]:
    """So many vectors of the length."""
    return lambda generator, dtype, n: [sample(generator, dtype, n) for _ in range(count)]


def rows(count: int) -> Callable[[np.random.Generator, str, int], Operands]:
    """A matrix of so many rows as long as the length."""
    return lambda generator, dtype, n: [sample(generator, dtype, (count, n))]


def columns(count: int) -> Callable[[np.random.Generator, str, int], Operands]:
    """A matrix of so many columns as long as the length."""
    return lambda generator, dtype, n: [sample(generator, dtype, (n, count))]


def matrix(count: int) -> Callable[[np.random.Generator, str, int], Operands]:
    """A matrix of about as many elements as the length, in rows of so many."""
    return lambda generator, dtype, n: [sample(generator, dtype, (n // count + 1, count))]


def with_indices(generator: np.random.Generator, dtype: str, n: int) -> Operands:
    """A vector, and as many places in it, also from the end."""
    return [sample(generator, dtype, n), generator.integers(-n, n, n)]


def shared_indices(generator: np.random.Generator, dtype: str, n: int) -> Operands:
    """A short vector, and so many places in it."""
    return [sample(generator, dtype, 1000), generator.integers(0, 1000, n)]


def factors(generator: np.random.Generator, dtype: str, n: int) -> Operands:
    """Matrices of which the product takes about so many multiply-adds."""
    order = max(round(n ** (1 / 3)), 1)
    return [
        sample(generator, dtype, (order, order + 1)),
        sample(generator, dtype, (order + 1, order + 2)),
    ]


def shifted(generator: np.random.Generator, dtype: str, n: int) -> Operands:
    """A vector, and small numbers to shift it by."""
    return [sample(generator, dtype, n), generator.integers(0, 7, n).astype(dtype)]


def _set_part(xp: Any, x: Any, y: Any) -> Any:
    x = x + y
    x[1:] = y[:-1]
    x[::3] = x[::3] * 2
    return x


def _set_in_place(xp: Any, x: Any, y: Any) -> Any:
    x = x + y
    x *= y
    x -= 1
    return x


def _set_indices(xp: Any, x: Any, i: Any) -> Any:
    x = x * 1
    x[i] = 1
    return x


def _window(xp: Any, x: Any, y: Any) -> Any:
    """Assignments to the caller's own memory, of which the first element is left alone."""
    if xp is np:
        memory = np.array(x)
        memory[1:] += y[1:]
        memory[1:] *= memory[1:]
        return memory
    memory = np.array(x)
    window = tn.wrap(memory[1:])
    window += y[1:]
    window *= window
    window.wait()
    return memory


_squares = tn.function(lambda x, y: x * x - y)
_per_row = tn.vmap(lambda row: row * row[0] + 1)


def _call(xp: Any, x: Any, y: Any) -> Any:
    return x * x - y if xp is np else _squares(x, y)


def _mapped(xp: Any, x: Any) -> Any:
    return x * x[:, :1] + 1 if xp is np else _per_row(x)


def _quotients(xp: Any, x: Any) -> Any:
    return x / (x + 1) / (x + 2) / (x + 3)


def _chain(xp: Any, x: Any, y: Any) -> Any:
    return xp.log(xp.exp(x) + xp.exp(-y)) * xp.sqrt(x + y)


def _polynomial(xp: Any, x: Any, y: Any) -> Any:
    return (x * 3 - y) * x + (y - 1) * y


def _stencil(xp: Any, x: Any) -> Any:
    return x[2:] + x[1:-1] * 2 - x[:-2] if x.shape[0] > 2 else x


MAPS = (
    Form("add_one", lambda xp, x: x + 1, vectors(1)),
    Form("polynomial", _polynomial, vectors(2), REAL),
    Form("compare", lambda xp, x, y: (x < y) | (x == 1), vectors(2), EXACT),
    Form("where", lambda xp, x, y: xp.where(x < y, x, y), vectors(2), REAL),
    Form("logical", lambda xp, x, y: (x ^ y) | (x & ~y), vectors(2), ("bool", *INTEGERS)),
    Form("shifts", lambda xp, x, y: (x << y) + (x >> y), shifted, INTEGERS),
    Form("floor_divide", lambda xp, x, y: x // (y | 1) + x % (y | 1), vectors(2), INTEGERS),
    Form("divide", lambda xp, x, y: x / y, vectors(2), FLOATS),
    Form("quotients", _quotients, vectors(1), FLOATS),
    Form("square_roots", lambda xp, x, y: xp.sqrt(x + xp.sqrt(y)), vectors(2), FLOATS),
    Form("convert", lambda xp, x: xp.astype(x, xp.float32), vectors(1), EXACT),
    Form("to_integers", lambda xp, x: xp.astype(x * 50, xp.int16), vectors(1), FLOATS),
    Form("complex", lambda xp, x, y: x * y + x, vectors(2), COMPLEX, "near", 8),
    Form("parts", lambda xp, x: xp.real(x) - xp.imag(x), vectors(1), COMPLEX),
    Form("outer", lambda xp, x: x + x[:, :1], matrix(257), REAL),
    Form("chain", _chain, vectors(2), FLOATS, "near", 16, 1 << 22),
    Form("power", lambda xp, x, y: x**y, vectors(2), FLOATS, "near", 4, 1 << 22),
    Form("sine", lambda xp, x: xp.sin(x) / xp.cos(x), vectors(1), FLOATS, "near", 12, 1 << 22),
    Form("tanh", lambda xp, x: xp.tanh(x) * x, vectors(1), FLOATS, "near", 8, 1 << 22),
)
VIEWS = (
    Form("strided", lambda xp, x: x[::2] * 3, vectors(1), ALL[1:]),
    Form("reversed", lambda xp, x: x[::-1] + x, vectors(1)),
    Form("stencil", _stencil, vectors(1), REAL),
    Form("turned", lambda xp, x: x.T + 1, matrix(67)),
    Form("turned_long", lambda xp, x: x.T * 1, rows(3)),
    Form(
        "turned_3",
        lambda xp, x: xp.permute_dims(xp.reshape(x, (-1, 7, 11)), (2, 0, 1)) + 1,
        matrix(77),
    ),
    Form("concat", lambda xp, x, y: xp.concat([x, y[1:], x]), vectors(2), ALL),
    Form("stack", lambda xp, x, y: xp.stack([x, y], axis=1), vectors(2), ALL),
    Form("pad", lambda xp, x: xp.pad(x, (3, 5)), vectors(1), ALL),
    Form("roll", lambda xp, x: xp.roll(x, 5) + x, vectors(1)),
    Form("repeat", lambda xp, x: xp.repeat(x, 3), vectors(1), ALL, longest=1 << 21),
    Form("take", lambda xp, x, i: x[i], with_indices, ALL),
    Form("take_short", lambda xp, x, i: x[i + 0] + 1, shared_indices),
    Form("take_along", lambda xp, x, i: xp.take_along_axis(x, i, axis=0), with_indices, ALL),
)
FOLDS = (
    Form("sum", lambda xp, x: xp.sum(x), vectors(1), ALL, "sums"),
    Form("sum_rows", lambda xp, x: xp.sum(x, axis=1), rows(3), NUMBERS, "sums"),
    Form("sum_columns", lambda xp, x: xp.sum(x, axis=0), columns(5), NUMBERS, "sums"),
    Form("sum_short", lambda xp, x: xp.sum(x, axis=1), matrix(13), NUMBERS, "sums"),
    Form("sum_long_columns", lambda xp, x: xp.sum(x, axis=0), rows(9), NUMBERS, "sums"),
    Form("mean", lambda xp, x: xp.mean(x), vectors(1), FLOATS, "sums"),
    Form("distance", lambda xp, x, y: xp.sum((x - y) * (x - y)), vectors(2), FLOATS, "sums"),
    Form("max", lambda xp, x: xp.max(x), vectors(1), REAL),
    Form("min_columns", lambda xp, x: xp.min(x, axis=0), columns(6), REAL),
    Form("argmax", lambda xp, x: xp.argmax(x), vectors(1), REAL),
    Form("argmin_rows", lambda xp, x: xp.argmin(x, axis=1), rows(3), REAL),
    Form("any", lambda xp, x: xp.any(x == 3), vectors(1), ALL[1:]),
    Form("all_rows", lambda xp, x: xp.all(x != 3, axis=1), rows(4), INTEGERS),
    Form("count", lambda xp, x: xp.count_nonzero(x), vectors(1), ALL),
    Form("softmax", lambda xp, x: x / xp.sum(x, axis=1, keepdims=True), rows(3), FLOATS, "sums"),
    Form("cumulative", lambda xp, x: xp.cumulative_sum(x), vectors(1), NUMBERS, "sums"),
    Form("cumulative_rows", lambda xp, x: xp.cumulative_sum(x, axis=1), rows(3), REAL, "sums"),
    Form(
        "cumulative_columns", lambda xp, x: xp.cumulative_sum(x, axis=0), columns(5), REAL, "sums"
    ),
)
OTHERS = (
    Form("set_part", _set_part, vectors(2), REAL),
    Form("set_in_place", _set_in_place, vectors(2), REAL),
    Form("set_indices", _set_indices, with_indices, REAL),
    Form("window", _window, vectors(2), REAL),
    Form("function", _call, vectors(2), REAL),
    Form("vmap", _mapped, matrix(129), REAL),
    Form("matmul", lambda xp, x, y: x @ y, factors, (*INTEGERS, *FLOATS, *COMPLEX), "product"),
    Form("matmul_rows", lambda xp, x: x @ x.T, rows(5), (*FLOATS, "int32"), "product"),
    Form("matmul_vector", lambda xp, x: x @ x[0], matrix(131), FLOATS, "product"),
    Form("vecdot", lambda xp, x, y: xp.vecdot(x, y), vectors(2), FLOATS, "product"),
    Form("sort", lambda xp, x: xp.sort(x), vectors(1), EXACT, longest=1 << 20),
    Form("sort_rows", lambda xp, x: xp.sort(x, axis=0), columns(4), REAL, longest=1 << 18),
    Form("argsort", lambda xp, x: xp.argsort(x, stable=True), vectors(1), REAL, longest=1 << 18),
)
FORMS = (*MAPS, *VIEWS, *FOLDS, *OTHERS)
