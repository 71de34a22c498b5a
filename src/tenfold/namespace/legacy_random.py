"""NumPy's `random` module: its old functions of one global generator, and RandomState.

`tenfold.numpy.random` is this module. Arguments are NumPy's; the numbers are those of Tenfold's
Generator, so a seed repeats them but does not give NumPy's.

>>> seed(0)
>>> first = rand(2).tolist()
>>> seed(0)
>>> rand(2).tolist() == first, randint(6, size=(2, 3)).shape
(True, (2, 3))
"""

from __future__ import annotations

from typing import Any

from numpy.random import SeedSequence

from tenfold._native import Array
from tenfold.namespace.absent import module_getattr
from tenfold.namespace.random_generator import Generator, default_rng
from tenfold.ops.random import Size


class RandomState(Generator):
    """NumPy's old interface of a generator: a Generator with `rand`, `randn`, `randint` and `seed`.

    >>> RandomState(1).randn(3).shape
    (3,)
    """

    def seed(self, seed: Any = None) -> None:
        """Begin again with another seed; None takes one from the operating system."""
        self.state = Generator(seed).state

    def get_state(self) -> dict[str, Any]:
        """Return `state`, for `set_state`."""
        return self.state

    def set_state(self, state: dict[str, Any]) -> None:
        """Go back to a state."""
        self.state = state

    def rand(self, *shape: int) -> Array:
        """Return uniform numbers in [0, 1) of a shape."""
        return self.random(shape or None)

    def randn(self, *shape: int) -> Array:
        """Return standard normal numbers of a shape."""
        return self.standard_normal(shape or None)

    def random_sample(self, size: Size = None) -> Array:
        """Return uniform numbers in [0, 1)."""
        return self.random(size)

    def randint(self, low: Any, high: Any = None, size: Size = None, dtype: Any = "int64") -> Array:
        """Return integers from `low` (0 if it is the only bound) to below `high`."""
        return self.integers(low, high, size, dtype=dtype)

    def random_integers(self, low: Any, high: Any = None, size: Size = None) -> Array:
        """Return integers from `low` (1 if it is the only bound) to `high`, both included."""
        low, high = (1, low) if high is None else (low, high)
        return self.integers(low, high, size, endpoint=True)


_GLOBAL = RandomState()
LEGACY = (
    *("beta", "binomial", "bytes", "chisquare", "choice", "dirichlet", "exponential", "f", "gamma"),
    *("geometric", "get_state", "gumbel", "hypergeometric", "laplace", "logistic", "lognormal"),
    *("logseries", "multinomial", "multivariate_normal", "negative_binomial", "normal", "pareto"),
    *("noncentral_chisquare", "noncentral_f", "permutation", "poisson", "power", "rand", "randint"),
    *("randn", "random", "random_integers", "random_sample", "rayleigh", "seed", "set_state"),
    *("shuffle", "standard_cauchy", "standard_exponential", "standard_gamma", "standard_normal"),
    *("standard_t", "triangular", "uniform", "vonmises", "wald", "weibull", "zipf"),
)
"""The functions of the global generator: methods of a RandomState."""

seed, rand, randint = _GLOBAL.seed, _GLOBAL.rand, _GLOBAL.randint
globals().update({name: getattr(_GLOBAL, name) for name in LEGACY})
ranf = sample = _GLOBAL.random_sample

__all__ = ["Generator", "RandomState", "SeedSequence", "default_rng", "ranf", "sample", *LEGACY]
__getattr__ = module_getattr("tenfold.numpy.random")
