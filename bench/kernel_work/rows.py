"""The rows of the table: each a formula, its inputs, and what Tenfold must reach.

Takes nothing; hands on `WORKS`. A formula is written once, for any library with NumPy's names, and
again only for a library whose users would write it in another way.

Table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

Function = Callable[..., Any]
Inputs = Callable[[np.random.Generator, float], list[np.ndarray]]
"""The arrays of a work, from random numbers and a factor by which their sizes are shrunk."""


@dataclass(frozen=True)
class Need:
    """Tenfold must be so many times as fast as the best of some peers."""

    ratio: float
    peers: tuple[str, ...]


@dataclass(frozen=True)
class Work:
    """One line of the table."""

    name: str
    title: str
    inputs: Inputs
    plain: Callable[[Any], Function]
    """From a library's names to the function of the inputs."""
    needs: tuple[Need, ...]
    variants: dict[str, Callable[[Any], Function]] = field(default_factory=dict)
    text: str = ""
    """The formula for NumExpr."""
    also: tuple[str, ...] = ()
    """Peers that are measured though nothing is required of them."""
    floor: float | None = None
    """The share of the copy's bandwidth that must be reached."""
    steps: int = 0
    """How many steps it assigns to its inputs in, if it does: they are copied before each call. The
    function takes the number as `steps`, too."""
    one_kernel: bool = False
    error_as_numpy: bool = False
    tolerance: tuple[float, float] = (1e-5, 1e-6)
    """Relative and absolute: how far the values may be from NumPy's."""

    @property
    def peers(self) -> tuple[str, ...]:
        """Everybody who is measured, Tenfold first."""
        names = [name for need in self.needs for name in need.peers]
        return tuple(dict.fromkeys(["tenfold", *names, *self.also]))

    def formula(self, peer: str, names: Any) -> Function:
        """The function of the inputs for a peer."""
        return self.variants.get(peer, self.plain)(names)


def vectors(count: int, size: int, dtype: type, low: float = 0, high: float = 1) -> Inputs:
    def make(random: np.random.Generator, factor: float) -> list[np.ndarray]:
        length = max(int(size * factor), 1)
        return [random.uniform(low, high, length).astype(dtype) for _ in range(count)]

    return make


def stacks(count: int, *shape: int) -> Inputs:
    """float32 arrays of a shape whose first axis is shrunk."""

    def make(random: np.random.Generator, factor: float) -> list[np.ndarray]:
        actual = (max(int(shape[0] * factor), 1), *shape[1:])
        return [random.standard_normal(actual, dtype=np.float32) for _ in range(count)]

    return make


def squares(count: int, size: int) -> Inputs:
    """float32 matrices, both of whose axes are shrunk."""

    def make(random: np.random.Generator, factor: float) -> list[np.ndarray]:
        side = max(int(size * math.sqrt(factor)), 1)
        return [random.standard_normal((side, side), dtype=np.float32) for _ in range(count)]

    return make


def rows_with_weights(random: np.random.Generator, factor: float) -> list[np.ndarray]:
    return [*ROWS(random, factor), *vectors(2, 1024, np.float32)(random, 1)]


def options_to_price(random: np.random.Generator, factor: float) -> list[np.ndarray]:
    """Prices of shares, strikes, and years to go."""
    bounds = ((10, 50), (10, 50), (0.25, 2))
    return [vectors(1, 4_000_000, np.float32, *pair)(random, factor)[0] for pair in bounds]


def linear_of_two(_: Any) -> Function:
    return lambda a, b: (a + b) * 2 + a


def linear_of_three(_: Any) -> Function:
    return lambda a, b, c: 2 * a + 3 * b - c * a


def waves(xp: Any) -> Function:
    return lambda a, b, c: xp.sin(a) ** 2 + xp.cos(b) ** 2 + xp.exp(-c)


def black_scholes(xp: Any, erf: Function | None = None) -> Function:
    """The price of a European call: Black, Scholes 1973, J. Political Economy 81(3), eq. 13.

    Interest 2 %, volatility 30 % a year. NumPy has no erf, its peers have it under several names.
    """
    erf = erf or xp.erf
    interest, volatility, root = 0.02, 0.3, math.sqrt(0.5)

    def normal(x: Any) -> Any:
        return 0.5 + 0.5 * erf(x * root)

    def price(share: Any, strike: Any, years: Any) -> Any:
        spread = volatility * xp.sqrt(years)
        drift = (interest + 0.5 * volatility**2) * years
        first = (xp.log(share / strike) + drift) / spread
        second = first - spread
        return share * normal(first) - strike * xp.exp(-interest * years) * normal(second)

    return price


def with_erf_of(module: str) -> Callable[[Any], Function]:
    return lambda xp: black_scholes(xp, import_module(module).erf)


def squared_distance(xp: Any) -> Function:
    return lambda a, b: xp.sum((a - b) ** 2)


def squared_distance_loop(_: Any) -> Function:
    prange = import_module("numba").prange

    def function(a: Any, b: Any) -> float:
        total = 0.0
        for i in prange(a.size):
            total += (a[i] - b[i]) ** 2
        return total

    return function


def softmax(xp: Any) -> Function:
    def function(x: Any) -> Any:
        powers = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
        return powers / xp.sum(powers, axis=-1, keepdims=True)

    return function


def log_softmax(xp: Any) -> Function:
    def function(x: Any) -> Any:
        shifted = x - xp.max(x, axis=-1, keepdims=True)
        return shifted - xp.log(xp.sum(xp.exp(shifted), axis=-1, keepdims=True))

    return function


def layer_norm(xp: Any) -> Function:
    def function(x: Any, weight: Any, bias: Any) -> Any:
        mean = xp.mean(x, axis=-1, keepdims=True)
        variance = xp.var(x, axis=-1, keepdims=True)
        return (x - mean) / xp.sqrt(variance + 1e-5) * weight + bias

    return function


def torch_layer_norm(torch: Any) -> Function:
    norm = torch.nn.functional.layer_norm
    return lambda x, weight, bias: norm(x, (x.shape[-1],), weight, bias, 1e-5)


def variance(xp: Any) -> Function:
    return lambda x: xp.var(x, axis=-1)


def last_axis(function: Function) -> Function:
    """What a library has a function of its own for, over the last axis."""
    return lambda x: function(x, -1)


def sum_over(axis: int) -> Callable[[Any], Function]:
    return lambda xp: lambda x: xp.sum(x, axis=axis)


def add_transposed(_: Any) -> Function:
    return lambda a, b: a + b.T


def products(xp: Any) -> Function:
    return lambda a, b: xp.matmul(a, b)


def jax_function(name: str) -> Callable[[Any], Function]:
    return lambda _: last_axis(getattr(import_module("jax").nn, name))


def own_function(name: str) -> Callable[[Any], Function]:
    return lambda xp: last_axis(getattr(xp, name))


def tenfold_function(name: str) -> Callable[[Any], Function]:
    return lambda xp: lambda x: getattr(xp, name)(x, axis=-1)


ROWS = stacks(1, 8192, 1024)
CUBE = stacks(1, 256, 512, 256)
FASTER_ROWS = (Need(1.3, ("jax",)), Need(1.2, ("torch",)), Need(1.5, ("numpy",)))
FASTEST_OF_TWO = Need(1.0, ("numba", "jax"))


WORKS: Sequence[Work] = (
    Work(
        "linear32",
        "(a+b)*2+a, float32, 16 M",
        vectors(2, 16_000_000, np.float32),
        linear_of_two,
        (Need(4, ("numpy",)), Need(2, ("numexpr",)), Need(2, ("jax",))),
        text="(a+b)*2+a",
        floor=0.85,
    ),
    Work(
        "linear64",
        "2a+3b-ca, float64, 4 M",
        vectors(3, 4_000_000, np.float64),
        linear_of_three,
        (Need(4, ("numpy",)), FASTEST_OF_TWO),
        text="2*a+3*b-c*a",
        also=("numexpr",),
    ),
    Work(
        "waves",
        "sin(a)**2+cos(b)**2+exp(-c), float64, 4 M",
        vectors(3, 4_000_000, np.float64, -10, 10),
        waves,
        (Need(3, ("numpy",)), Need(1.5, ("jax",)), Need(1.2, ("numba",))),
        text="sin(a)**2+cos(b)**2+exp(-c)",
        also=("numexpr",),
        tolerance=(1e-12, 1e-13),
    ),
    Work(
        "black-scholes",
        "Black-Scholes, float32, 4 M",
        options_to_price,
        black_scholes,
        (Need(5, ("numpy",)), Need(1.2, ("jax",)), Need(1, ("torch.compile",))),
        {"numpy": with_erf_of("scipy.special"), "jax": with_erf_of("jax.scipy.special")},
        tolerance=(1e-4, 1e-4),
    ),
    Work(
        "distance",
        "sum((a-b)**2), float64, 4 M",
        vectors(2, 4_000_000, np.float64),
        squared_distance,
        (Need(3, ("numpy",)), FASTEST_OF_TWO),
        {"numba": squared_distance_loop},
        error_as_numpy=True,
        tolerance=(1e-12, 0),
    ),
    Work(
        "softmax",
        "softmax of rows, float32 8192x1024",
        ROWS,
        softmax,
        FASTER_ROWS,
        {
            "tenfold": tenfold_function("softmax"),
            "jax": jax_function("softmax"),
            "torch": own_function("softmax"),
        },
        one_kernel=True,
    ),
    Work(
        "log-softmax",
        "log-softmax of rows, float32 8192x1024",
        ROWS,
        log_softmax,
        FASTER_ROWS,
        {
            "tenfold": tenfold_function("log_softmax"),
            "jax": jax_function("log_softmax"),
            "torch": own_function("log_softmax"),
        },
        one_kernel=True,
    ),
    Work(
        "layer-norm",
        "layer norm of rows, float32 8192x1024",
        rows_with_weights,
        layer_norm,
        FASTER_ROWS,
        {"torch": torch_layer_norm},
        one_kernel=True,
        tolerance=(1e-4, 1e-5),
    ),
    Work(
        "variance",
        "variance of rows, float32 8192x1024",
        ROWS,
        variance,
        (Need(1.3, ("jax",)), Need(1.2, ("torch",)), Need(3, ("numpy",))),
        {"torch": lambda torch: lambda x: torch.var(x, dim=-1, correction=0)},
        one_kernel=True,
    ),
    *(
        Work(
            f"sum-axis-{axis}",
            f"sum over axis {axis}, float32 (256, 512, 256)",
            CUBE,
            sum_over(axis),
            (Need(1, ("jax",)),),
            also=("numpy", "torch"),
            tolerance=(1e-4, 1e-3),
        )
        for axis in range(3)
    ),
    Work(
        "add-transposed",
        "a + b.T, float32 4096x4096",
        squares(2, 4096),
        add_transposed,
        (Need(2, ("numpy",)), Need(1, ("jax",))),
        also=("torch",),
    ),
    Work(
        "products",
        "10,000 products of 8x8, float32",
        stacks(2, 10_000, 8, 8),
        products,
        (Need(3, ("numpy",)),),
        also=("jax", "torch"),
    ),
)
