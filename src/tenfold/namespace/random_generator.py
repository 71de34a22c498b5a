"""Generator: random numbers with NumPy's methods; each call takes the next draw number of a key.

Takes a seed, hands on lazy Arrays. The key and the first draw number, 126 bits, come from NumPy's
SeedSequence. A Generator holds no other state, so a draw is a function of (key, draw number) alone,
and `tn.random.normal(key, draw, ...)` repeats it.

>>> rng = default_rng(7)
>>> key, draw = rng.state["key"], rng.state["draw"]
>>> rng.normal(size=3).tolist() == composite.normal(key, draw, size=3).tolist()
True
"""

from __future__ import annotations

import inspect
import operator
import threading
from collections.abc import Callable, MutableSequence
from math import inf
from typing import Any, Concatenate, NoReturn

import numpy as np

from tenfold._native import Array
from tenfold.core.op import Operation, P
from tenfold.core.trace_state import TRACE, note_wait
from tenfold.errors import UnsupportedError, message
from tenfold.interop.asarray import asarray
from tenfold.namespace.absent import missing_generator_attribute
from tenfold.namespace.draw_counter import DRAW_BITS, NORMAL, UNIT, DrawCounter
from tenfold.namespace.numpy_draws import NumpyDraws as NumpyDraws
from tenfold.ops import composite_distributions as composite
from tenfold.ops import distributions, permutations
from tenfold.ops import random as draws
from tenfold.ops.random import Integer, Size

BIT_GENERATOR = "Philox4x32-10"


class _DrawParameters:
    """The parameters of a method: those of a distribution but for the key, the draw number and the
    stream. inspect asks for them.
    """

    def __init__(self, distribution: Operation[...]) -> None:
        self.distribution = distribution

    @property
    def __signature__(self) -> inspect.Signature:
        declared = self.distribution.public_signature
        own = [p for name, p in declared.parameters.items() if name != "stream"]
        first = own[0].replace(name="self", annotation="Generator")
        return declared.replace(parameters=[first, *own[2:]])


def _drawn(
    distribution: Operation[Concatenate[Integer, Integer, P]],
) -> Callable[Concatenate[Any, P], Array]:
    """Return the method that gives a distribution the next draw of a Generator."""

    def method(self: Generator, /, *args: P.args, **kwargs: P.kwargs) -> Array:
        return distribution(*self.next_draw(), *args, **kwargs)

    method.__wrapped__ = _DrawParameters(distribution)  # type: ignore[attr-defined]  # for inspect
    method.__doc__ = (distribution.function.__doc__ or "").partition("\n\n")[0]
    method.__name__ = distribution.name
    method.__qualname__ = f"Generator.{distribution.name}"
    return method


class Generator:
    """Random numbers by Philox4x32-10: made lazily, inside the kernels that use them.

    Each method takes the parameters of NumPy's Generator and returns a lazy Array. Equal seeds give
    equal numbers, for any count of threads, batch and order of evaluation. Several threads may use
    one Generator. In a traced function a Generator cannot be used, since the trace would repeat its
    numbers: `tn.function` calls such a function untraced, `tn.vmap` raises UnsupportedError.

    >>> import tenfold as tn
    >>> rng = tn.random.default_rng(2026)
    >>> rng.integers(10, size=4).shape
    (4,)
    """

    def __init__(self, seed: Any = None) -> None:
        sequence = seed if isinstance(seed, np.random.SeedSequence) else _sequence(seed)
        self._lock = threading.Lock()
        """Protects the count of children in `_sequence`."""
        self._sequence = sequence
        key, start = sequence.generate_state(2, np.uint64)
        self._draws = DrawCounter(int(key), int(start) >> 64 - DRAW_BITS)

    def __getattr__(self, name: str) -> NoReturn:
        raise missing_generator_attribute(type(self).__name__, name)

    def __repr__(self) -> str:
        return f"<Generator {BIT_GENERATOR}>"

    def __getstate__(self) -> dict[str, Any]:
        return {"state": self.state, "sequence": self._sequence}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._lock, self._sequence = threading.Lock(), state["sequence"]
        self._draws = DrawCounter(0, 0)
        self.state = state["state"]

    @property
    def state(self) -> dict[str, Any]:
        """The name of the generator, the key and the next draw number; it can be assigned.

        >>> import tenfold as tn
        >>> rng = tn.random.default_rng(1)
        >>> state = rng.state
        >>> first = rng.random(3).tolist()
        >>> rng.state = state
        >>> rng.random(3).tolist() == first
        True
        """
        key, draw = self._draws.state
        return {"bit_generator": BIT_GENERATOR, "key": key, "draw": draw}

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        if value.get("bit_generator") != BIT_GENERATOR:
            rule = f"a state of {value.get('bit_generator')!r} is not one of {BIT_GENERATOR}"
            raise ValueError(message("state", rule, (), "assign what `state` has given"))
        key, draw = operator.index(value["key"]), operator.index(value["draw"])
        self._draws.state = key % 2**64, draw % 2**DRAW_BITS

    def next_draw(self) -> tuple[int, int]:
        """Take the next draw: the key and the draw number, arguments of the functions of
        `tn.random`, in traced functions and for `engine.push`.

        >>> import tenfold as tn
        >>> key, draw = tn.random.default_rng(1).next_draw()
        >>> tn.random.normal(key, draw, size=3).shape
        (3,)
        """
        if TRACE.get() is not None:
            note_wait()
            rule = "a trace would repeat the numbers of a Generator"
            remedy = "pass a draw number, as in tn.random.normal(key, draw, ...)"
            raise UnsupportedError("random", rule, remedy=remedy)
        return self._draws.next()

    def spawn(self, n_children: int) -> list[Generator]:
        """Return Generators with keys of their own, by NumPy's SeedSequence.

        >>> import tenfold as tn
        >>> len(tn.random.default_rng(1).spawn(3))
        3
        """
        with self._lock:
            children = self._sequence.spawn(n_children)
        return [Generator(child) for child in children]

    def _standard(self, draw_op: Callable[..., Array], size: Size, dtype: Any) -> Array:
        if (
            size is None
            and (number := self._draws.number((draw_op, (), ("dtype", dtype)))) is not None
        ):
            return asarray(number) if dtype == "float64" else asarray(number, dtype=dtype)
        return draws.in_one_row(draw_op, *self.next_draw(), size, dtype=dtype)

    def random(self, size: Size = None, dtype: Any = "float64") -> Array:
        """Return uniform numbers in [0, 1)."""
        return self._standard(draws.random, size, dtype)

    def integers(
        self,
        low: Any,
        high: Any = None,
        size: Size = None,
        dtype: Any = "int64",
        endpoint: bool = False,
    ) -> Array:
        """Return integers from `low` (0 if it is the only bound) to below `high`."""
        if size is None and type(low) is int and (high is None or type(high) is int):
            bounds = (0, low) if high is None else (low, high)
            form = draws.integers, bounds, ("dtype", dtype), ("endpoint", endpoint)
            number = self._draws.number(form)
            if number is not None:
                return asarray(number) if dtype == "int64" else asarray(number, dtype=dtype)
        key = self.next_draw()
        return draws.integers(*key, low, high, size, dtype=dtype, endpoint=endpoint)

    def bytes(self, length: int) -> bytes:
        """Return random bytes; this waits."""
        words = draws.bits(*self.next_draw(), -(-operator.index(length) // 8))
        return np.asarray(words).astype("<u8").tobytes()[:length]

    def standard_normal(self, size: Size = None, dtype: Any = "float64") -> Array:
        """Return numbers of the standard normal distribution."""
        return self._standard(draws.standard_normal, size, dtype)

    def standard_exponential(self, size: Size = None, dtype: Any = "float64") -> Array:
        """Return numbers of the exponential distribution of mean 1."""
        return self._standard(draws.standard_exponential, size, dtype)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Size = None) -> Array:
        """Return uniform numbers in [low, high)."""
        if size is None and type(low) is float and type(high) is float and 0.0 < high - low < inf:
            number = self._draws.number(UNIT)
            if number is None:
                unit: Array = draws.random(*self.next_draw())
                return low + (high - low) * unit
            return asarray(low + (high - low) * number)
        return composite.uniform(*self.next_draw(), low, high, size)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None) -> Array:
        """Return numbers of the normal distribution of mean `loc` and deviation `scale`."""
        if size is None and type(scale) is float and scale > 0.0:
            is_plain = type(loc) is float
            if is_plain or (isinstance(loc, Array) and not loc.ndim):
                number = self._draws.number(NORMAL)
                if number is None:
                    drawn: Array = loc + scale * draws.standard_normal(*self.next_draw())
                else:
                    step = scale * number
                    drawn = asarray(loc + step) if is_plain else loc + asarray(step)
                return drawn
        return composite.normal(*self.next_draw(), loc, scale, size)

    standard_gamma = _drawn(distributions.standard_gamma)
    lognormal = _drawn(composite.lognormal)
    exponential = _drawn(composite.exponential)
    laplace = _drawn(composite.laplace)
    logistic = _drawn(composite.logistic)
    gumbel = _drawn(composite.gumbel)
    pareto = _drawn(composite.pareto)
    power = _drawn(composite.power)
    rayleigh = _drawn(composite.rayleigh)
    weibull = _drawn(composite.weibull)
    standard_cauchy = _drawn(composite.standard_cauchy)
    triangular = _drawn(composite.triangular)
    geometric = _drawn(composite.geometric)
    gamma = _drawn(composite.gamma)
    chisquare = _drawn(composite.chisquare)
    f = _drawn(composite.f)
    standard_t = _drawn(composite.standard_t)
    wald = _drawn(composite.wald)
    negative_binomial = _drawn(composite.negative_binomial)
    noncentral_chisquare = _drawn(composite.noncentral_chisquare)
    noncentral_f = _drawn(composite.noncentral_f)
    beta = _drawn(distributions.beta)
    vonmises = _drawn(distributions.vonmises)
    poisson = _drawn(distributions.poisson)
    binomial = _drawn(distributions.binomial)
    hypergeometric = _drawn(distributions.hypergeometric)
    zipf = _drawn(distributions.zipf)
    logseries = _drawn(distributions.logseries)
    multinomial = _drawn(distributions.multinomial)
    multivariate_hypergeometric = _drawn(distributions.multivariate_hypergeometric)
    dirichlet = _drawn(distributions.dirichlet)

    def multivariate_normal(
        self, mean: Any, cov: Any, size: Size = None, *, method: str = "svd"
    ) -> Array:
        """Return vectors of the normal distribution of this mean and covariance."""
        key = self.next_draw()
        return permutations.multivariate_normal(*key, mean, cov, size, method=method)

    def choice(
        self,
        a: Any,
        size: Size = None,
        replace: bool = True,
        p: Any = None,
        axis: int = 0,
        shuffle: bool = True,  # noqa: ARG002  # NumPy's: their order is always random
    ) -> Array:
        """Return random elements of `a`, or of the ints below it; waits for `p`, to check it."""
        if isinstance(p, Array):
            p.wait()
        return permutations.choice(*self.next_draw(), a, size, replace, p, axis)

    def permutation(self, x: Any, axis: int = 0) -> Array:
        """Return `x`, or the ints below it, with its parts along an axis in random order."""
        return permutations.permutation(*self.next_draw(), x, axis=axis)

    def permuted(self, x: Any, *, axis: int | None = None) -> Array:
        """Return `x` with each line along an axis in a random order of its own."""
        return permutations.permuted(*self.next_draw(), x, axis=axis)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Put the parts of `x` along an axis in random order, in place.

        `x` is an Array, an ndarray, or a list or other mutable sequence, whose items are moved.
        """
        if isinstance(x, np.ndarray):
            x[...] = np.asarray(self.permutation(x, axis))
        elif isinstance(x, Array):
            x[...] = self.permutation(x, axis)
        elif isinstance(x, MutableSequence) and axis == 0:
            order = self.permutation(len(x)).tolist()
            for position, item in enumerate([x[i] for i in order]):
                x[position] = item
        else:
            rule = f"{type(x).__name__} cannot be changed in place along axis {axis}"
            raise TypeError(message("shuffle", rule, (), "use permutation, which returns an array"))


def _sequence(seed: Any) -> np.random.SeedSequence:
    try:
        return np.random.SeedSequence(seed)
    except TypeError:
        rule = f"{type(seed).__name__} is not a seed"
        remedy = "give an int of 0 or more, a sequence of them, or None"
        raise TypeError(message("default_rng", rule, (), remedy)) from None


def default_rng(seed: Any = None) -> Generator | NumpyDraws:
    """Return a Generator for a seed: an int of 0 or more, a sequence of them, a SeedSequence, or
    None for one from the operating system; a Generator is returned as it is.

    Its numbers are not those that NumPy draws for the seed. For those pass NumPy's bit generator or
    Generator, as in `default_rng(np.random.PCG64(7))`: NumPy draws them at the call.

    >>> import tenfold as tn
    >>> tn.random.default_rng(7).normal(size=(2, 3)).shape
    (2, 3)
    """
    if isinstance(seed, (np.random.BitGenerator, np.random.Generator)):
        return NumpyDraws(np.random.default_rng(seed))
    return seed if isinstance(seed, (Generator, NumpyDraws)) else Generator(seed)


GENERATOR_API: dict[str, Any] = {
    "Generator": Generator,
    "NumpyDraws": NumpyDraws,
    "default_rng": default_rng,
}
"""The names of `tn.random` that are not operations."""
