"""Rejection samplers: distributions that need a variable count of random blocks, in NumPy.

Attempt t of an element takes the blocks of its streams t, so a value depends on (key, draw, index)
and its parameters alone. Each attempt is one pass over the elements that are not accepted yet.

>>> elements = Elements(np.asarray(1), np.asarray(2), (4,))
>>> poisson(elements, np.full(4, 3.5)).shape
(4,)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tenfold.core.shape_rules import Shape, product
from tenfold.ops import philox
from tenfold.ops.philox import ARRAYS, STREAM_SHIFT, STREAMS, UINT64, Block

Floats = np.ndarray
Blocks = Callable[[int], Block]
"""The two blocks of an attempt, by their number 0 or 1."""
Proposal = Callable[[Blocks, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From the blocks of an attempt and the positions to values, and whether each is accepted."""
SMALL_MEAN = 10.0
"""The mean below which the distribution is inverted, term by term."""
VARIABLE_STREAMS = STREAMS // 4
"""The streams of one of the variables that a number is made of."""
LAST_STREAM = VARIABLE_STREAMS - 1
"""A stream that no attempt reaches."""
LAST_TERM = 200
"""The number of the term that ends an inversion; below `SMALL_MEAN` none as late is needed."""


class Elements:
    """The elements of a result: their keys, draws and indices, in row-major order."""

    def __init__(
        self, key: np.ndarray, draw: np.ndarray, size: Shape, stream: int = 0, count: int = 1
    ) -> None:
        lead = np.broadcast_shapes(key.shape, draw.shape)
        length = product(size) * count
        first = np.uint64(stream << STREAM_SHIFT)
        self.size = product(lead) * length
        keys = (np.broadcast_to(x, lead).astype(UINT64).reshape(-1, 1) for x in (key, draw))
        self.key, self.draw = (np.repeat(x, length) for x in keys)
        self.index = np.tile(np.arange(length, dtype=UINT64) + first, product(lead))

    def part(self, start: int, step: int) -> Elements:
        """Return every `step`-th element from `start` on."""
        part = object.__new__(Elements)
        part.key, part.draw = self.key[start::step], self.draw[start::step]
        part.index = self.index[start::step]
        part.size = part.index.size
        return part

    def block(self, positions: np.ndarray, stream: int) -> Block:
        """Return the random words of some elements."""
        index = self.index[positions] + np.uint64(stream << STREAM_SHIFT)
        return philox.block(self.key[positions], self.draw[positions], index)

    def uniform(self, stream: int = 0) -> tuple[Floats, Floats]:
        """Return two uniform numbers in (0, 1] for each element."""
        block = self.block(np.arange(self.size), stream)
        return uniforms(block)


def uniforms(block: Block) -> tuple[Floats, Floats]:
    """Return two uniform numbers in (0, 1]."""
    return philox.positive_unit(ARRAYS, *block[:2]), philox.positive_unit(ARRAYS, *block[2:])


def log(x: Floats) -> Floats:
    """Return the logarithm of positive numbers, the same on every machine."""
    logarithm: Floats = philox.log(ARRAYS, np.asarray(x, np.float64))
    return logarithm


def accepted(elements: Elements, propose: Proposal, positions: np.ndarray) -> Floats:
    """Return the first accepted value of each element at some positions, 0 at all others."""
    result = np.zeros(elements.size)
    for attempt in range(0, LAST_STREAM - 1, 2):
        if not positions.size:
            break

        def blocks(number: int, at: np.ndarray = positions, first: int = attempt) -> Block:
            return elements.block(at, first + number)

        values, is_accepted = propose(blocks, positions)
        result[positions[is_accepted]] = values[is_accepted]
        positions = positions[~is_accepted]
    return result


def gamma(elements: Elements, shape: Floats) -> Floats:
    """G. Marsaglia, W. Tsang, "A simple method for generating gamma variables", 2000.

    For shapes below 1 the number of shape + 1 times u**(1 / shape).
    """
    result = np.exp(_log_gamma(*_gamma_factors(elements, shape), shape))
    result[shape == 0] = 0.0
    return result


def _log_gamma(logarithm: Floats, power: Floats, shape: Floats) -> Floats:
    """Return the logarithm of gamma numbers, which may be too small for a float."""
    small = np.flatnonzero(power)
    result = logarithm.copy()
    result[small] += power[small] / shape[small]
    return result


def _gamma_factors(elements: Elements, shape: Floats) -> tuple[Floats, Floats]:
    """Return x and y such that exp(x + y / shape) is a gamma number; y is 0 from shape 1 on."""
    is_small = shape < 1.0
    d = np.where(is_small, shape + 1.0, shape) - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)

    def propose(blocks: Blocks, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = philox.normal(ARRAYS, blocks(0), np.dtype(np.float64))
        u, _ = uniforms(blocks(1))
        cube = (1.0 + c[at] * x) ** 3
        positive = cube > 0.0
        logarithm = log(np.where(positive, cube, 1.0))
        bound = 0.5 * x * x + d[at] * (1.0 - cube + logarithm)
        return np.log(d[at]) + logarithm, positive & (log(u) < bound)

    result = accepted(elements, propose, np.flatnonzero(np.isfinite(shape)))
    result = np.where(np.isfinite(shape), result, shape)  # infinity and NaN remain
    at = np.flatnonzero(is_small & (shape > 0.0))
    u = philox.positive_unit(ARRAYS, *elements.block(at, LAST_STREAM)[:2])
    power = np.zeros(elements.size)
    power[at] = log(u)
    return result, power


def beta(elements: Elements, a: Floats, b: Floats) -> Floats:
    """The share of one gamma number in the sum of two, by their logarithms."""
    pairs = elements.part(0, 2), elements.part(1, 2)
    x, y = (_gamma_factors(part, p) for part, p in zip(pairs, (a, b), strict=True))
    difference = _log_gamma(*y, b) - _log_gamma(*x, a)
    m = np.maximum(a, b)  # both may be below every float: the sum of logarithms, times m
    scaled = (m * y[0] + y[1] * (m / b) - (m * x[0] + x[1] * (m / a))) / m
    difference = np.where(np.isfinite(difference) | ~np.isfinite(a + b), difference, scaled)
    return np.asarray(1.0 / (1.0 + np.exp(difference)))


def dirichlet(elements: Elements, alpha: Floats) -> Floats:
    """The shares of gamma numbers in their sums, by their logarithms, relative to the largest.

    All may be below every float, so the logarithms are multiplied by the largest alpha.
    """
    logarithm, power = (x.reshape(alpha.shape) for x in _gamma_factors(elements, alpha.reshape(-1)))
    largest = alpha.max(-1, initial=0.0, keepdims=True)
    is_positive = alpha > 0.0
    ratio = largest / np.where(is_positive, alpha, 1.0)
    scaled = np.where(is_positive, largest * logarithm + power * ratio, -np.inf)
    top = scaled.max(-1, initial=-np.inf, keepdims=True)
    shares = np.exp((scaled - np.where(np.isfinite(top), top, 0.0)) / np.where(largest, largest, 1))
    shares = np.where(np.isnan(alpha) | np.isinf(alpha), np.nan, shares)
    total = shares.sum(-1, keepdims=True)
    return np.asarray(shares / np.where(total == 0.0, 1.0, total))


def poisson(elements: Elements, mean: Floats) -> np.ndarray:
    """Inversion below a mean of 10, else PTRS: W. Hoermann, "The transformed rejection method for
    generating Poisson random variables", 1993.
    """
    u, _ = elements.uniform(LAST_STREAM)
    small = np.flatnonzero(mean < SMALL_MEAN)
    result = np.zeros(elements.size)
    probability = np.exp(-mean[small])
    result[small] = _inverted(u[small], probability, lambda k, at: mean[small][at] / k)
    b = 0.931 + 2.53 * np.sqrt(mean)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    squeeze = 0.9277 - 3.6224 / (b - 2.0)

    def propose(blocks: Blocks, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        u, v = uniforms(blocks(0))
        u -= 0.5
        us = 0.5 - np.abs(u)
        k = np.floor((2.0 * a[at] / us + b[at]) * u + mean[at] + 0.43)
        quick = (us >= 0.07) & (v <= squeeze[at])
        tried = (k >= 0.0) & ~((us < 0.013) & (v > us))
        safe = np.where(tried, k, 0.0)
        ratio = log(v) + log(inverse_alpha[at]) - log(a[at] / (us * us) + b[at])
        bound = safe * log(mean[at]) - mean[at] - log_factorial(safe)
        return k, quick | (tried & (ratio <= bound))

    large = np.flatnonzero(mean >= SMALL_MEAN)
    return (result + accepted(elements, propose, large)).astype(np.int64)


def _inverted(u: Floats, probability: Floats, ratio: Callable[[int, np.ndarray], Floats]) -> Floats:
    """Return the smallest k with u <= P(0) + ... + P(k), where P(k) = P(k - 1) * ratio(k).

    A term that is 0, or the last one, ends the sum: k is at most its predecessor.
    """
    result = np.zeros(u.size)
    at = np.flatnonzero(u > probability)
    probability = total = probability[at]
    for k in range(1, LAST_TERM):
        probability = probability * ratio(k, at)
        going = probability > 0.0
        at, probability, total = at[going], probability[going], (total + probability)[going]
        if not at.size:
            break
        result[at] = k
        going = u[at] > total
        at, probability, total = at[going], probability[going], total[going]
    return result


def inversion_table(probability: Floats, ratio: Callable[[int], float]) -> Floats:
    """Return the sums P(0) + ... + P(k) of `_inverted`: how many are below u is its result.

    `probability` is P(0), (1,).
    """
    totals = [probability]
    for k in range(1, LAST_TERM):
        probability = probability * ratio(k)
        if not probability[0] > 0.0:
            break
        totals.append(totals[-1] + probability)
    return np.concatenate(totals[:-1]) if len(totals) > 1 else np.empty(0)


def binomial_table(n: float, p: float) -> Floats:
    """Return the `inversion_table` of `n` trials of a probability `p` up to 1/2."""
    odds = p / (1.0 - p)
    zero = np.exp(n * np.log1p(-np.asarray([p])))
    return inversion_table(zero, lambda k: (n - (k - 1)) * odds / k)


def poisson_table(mean: float) -> Floats:
    """Return the `inversion_table` of a mean."""
    return inversion_table(np.exp(-np.asarray([mean])), lambda k: mean / k)


HALF_LOG_TAU = 0.9189385332046727
_SMALL = np.arange(16.0)
SMALL_TAILS = np.concatenate([[0.0], np.cumsum(np.log(_SMALL[1:]))]) - (
    (_SMALL + 0.5) * np.log(_SMALL + 1.0) - (_SMALL + 1.0) + HALF_LOG_TAU
)


def stirling_tail(k: Floats) -> Floats:
    """Return log k! - ((k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2) of whole floats: a table up
    to 15, Stirling's series beyond.
    """
    x = np.maximum(k, 15.0) + 1.0
    inverse = 1.0 / (x * x)
    series = (1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse / 1680))) / x
    return np.where(k <= 15.0, SMALL_TAILS[np.minimum(k, 15.0).astype(np.int64)], series)


def log_factorial(k: Floats) -> Floats:
    """Return log k! of whole floats."""
    return (k + 0.5) * log(k + 1.0) - (k + 1.0) + HALF_LOG_TAU + stirling_tail(k)


def binomial(elements: Elements, n: Floats, probability: Floats) -> np.ndarray:
    """Inversion for n p below 10, else BTRS: W. Hoermann, "The generation of binomial random
    variates", 1993. A probability above 1/2 counts the failures.
    """
    p = np.minimum(probability, 1.0 - probability)
    u, _ = elements.uniform(LAST_STREAM)
    small, large = np.flatnonzero(n * p < SMALL_MEAN), np.flatnonzero(n * p >= SMALL_MEAN)
    result = np.zeros(elements.size)
    odds, count = (p / (1.0 - p))[small], n[small]
    zero = np.exp(count * np.log1p(-p[small]))
    result[small] = _inverted(u[small], zero, lambda k, at: (count[at] - (k - 1)) * odds[at] / k)
    result += accepted(elements, _binomial_proposal(n, p), large)
    return np.where(probability > 0.5, n - result, result).astype(np.int64)


def _binomial_proposal(n: Floats, p: Floats) -> Proposal:
    deviation = np.sqrt(n * p * (1.0 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    squeeze = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * deviation
    m = np.floor((n + 1.0) * p)
    tails = stirling_tail(m) + stirling_tail(n - m)
    slope = np.log(p / (1.0 - p) * (n - m + 1.0) / (m + 1.0))

    def log_ratio(k: Floats, at: np.ndarray) -> Floats:
        """The logarithm of P(k) / P(m), by Stirling's formula; terms of size n cancel."""
        step, failures = k - m[at], n[at] - k
        up = (k + 0.5) * np.log1p(step / (m[at] + 1.0))
        down = (failures + 0.5) * np.log1p(step / (failures + 1.0))
        rest = tails[at] - stirling_tail(k) - stirling_tail(failures)
        return step * slope[at] - up + down + rest

    def propose(blocks: Blocks, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        u, v = uniforms(blocks(0))
        u -= 0.5
        us = 0.5 - np.abs(u)
        k = np.floor((2.0 * a[at] / us + b[at]) * u + n[at] * p[at] + 0.5)
        inside = (k >= 0.0) & (k <= n[at])
        quick = inside & (us >= 0.07) & (v <= squeeze[at])
        safe = np.where(inside, k, m[at])
        ratio = log(v * alpha[at] / (a[at] / (us * us) + b[at]))
        return k, quick | (inside & (ratio <= log_ratio(safe, at)))

    return propose


def zipf(elements: Elements, a: Floats) -> np.ndarray:
    """L. Devroye, "Non-uniform random variate generation", 1986, chapter 10.6."""
    exponent = a - 1.0
    b = 2.0**exponent
    least = (2.0**63) ** -exponent  # the others are not int64

    def propose(blocks: Blocks, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        u, v = uniforms(blocks(0))
        u = u * (1.0 - least[at]) + least[at]
        x = np.floor(u ** (-1.0 / exponent[at]))
        inside = (x >= 1.0) & (x < 2.0**63)
        t = (1.0 + 1.0 / np.where(inside, x, 1.0)) ** exponent[at]
        return x, inside & (v * x * (t - 1.0) / (b[at] - 1.0) <= t / b[at])

    is_one = a >= 1025.0  # 2 has a probability below every float
    result = accepted(elements, propose, np.flatnonzero(~is_one))
    return np.where(is_one, 1.0, result).astype(np.int64)


def logseries(elements: Elements, p: Floats) -> np.ndarray:
    """A. Kemp, "Efficient generation of logarithmically distributed random variables", 1981."""
    rate = np.log1p(-p)

    def propose(blocks: Blocks, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        u, v = uniforms(blocks(0))
        q = -np.expm1(rate[at] * u)
        large = np.floor(1.0 + log(v) / np.log(q))
        k = np.where(v >= p[at], 1.0, np.where(v <= q * q, large, np.where(v >= q, 1.0, 2.0)))
        return k, k >= 1.0

    return accepted(elements, propose, np.arange(elements.size)).astype(np.int64)


def vonmises(elements: Elements, center: Floats, kappa: Floats) -> Floats:
    """D. Best, N. Fisher, "Efficient simulation of the von Mises distribution", 1979.

    Uniform for kappa below 1e-8, a wrapped normal number above 1e6.
    """
    root = 1.0 + np.sqrt(1.0 + 4.0 * kappa * kappa)
    rho = (root - np.sqrt(2.0 * root)) / (2.0 * kappa)
    s = np.where(kappa < 1e-5, 1.0 / kappa + kappa, (1.0 + rho * rho) / (2.0 * rho))

    def propose(blocks: Blocks, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        u, v = uniforms(blocks(0))
        sign, _ = uniforms(blocks(1))
        z = np.cos(np.pi * u)
        w = (1.0 + s[at] * z) / (s[at] + z)
        y = kappa[at] * (s[at] - w)
        angle = np.arccos(np.clip(w, -1.0, 1.0))
        is_accepted = (y * (2.0 - y) >= v) | (log(y / v) + 1.0 >= y)
        return np.where(sign <= 0.5, -angle, angle), is_accepted

    uniform = kappa < 1e-8
    concentrated = kappa > 1e6
    result = accepted(elements, propose, np.flatnonzero((kappa >= 1e-8) & (kappa <= 1e6)))
    result = np.where(np.isnan(kappa), kappa, result)
    block = elements.block(np.arange(elements.size), LAST_STREAM)
    normal = philox.normal(ARRAYS, block, np.dtype(np.float64)) / np.sqrt(kappa)
    turn = np.pi * philox.symmetric_unit(ARRAYS, *block[:2])
    result = np.where(concentrated, normal, result) + center
    result = np.where(np.abs(result) <= np.pi, result, (result + np.pi) % (2.0 * np.pi) - np.pi)
    return np.where(uniform, turn, result)


def hypergeometric(elements: Elements, good: Floats, bad: Floats, sample: Floats) -> np.ndarray:
    """Up to 9 draws one by one, else HRUA: E. Stadlober, "The ratio of uniforms approach for
    generating discrete random variates", 1990.

    A sample of more than half, and more good than bad ones, count the complements.
    """
    total = good + bad
    fewer, more = np.minimum(good, bad), np.maximum(good, bad)
    drawn = np.minimum(sample, total - sample)
    few = drawn < SMALL_MEAN
    result = np.where(few, _one_by_one(elements, fewer, total, np.where(few, drawn, 0.0)), 0.0)
    result += accepted(elements, _ratio_proposal(fewer, more, drawn), np.flatnonzero(~few))
    result = np.where(good > bad, drawn - result, result)
    return np.where(drawn < sample, good - result, result).astype(np.int64)


def _one_by_one(elements: Elements, good: Floats, total: Floats, drawn: Floats) -> Floats:
    found = np.zeros(elements.size)
    for step in range(int(drawn.max(initial=0.0))):
        u, _ = elements.uniform(step)
        hit = (u * (total - step) <= good - found) & (step < drawn)
        found += hit
    return found


def _ratio_proposal(fewer: Floats, more: Floats, drawn: Floats) -> Proposal:
    total = fewer + more
    p = fewer / total
    center = drawn * p + 0.5
    deviation = np.sqrt((total - drawn) * drawn * p * (1.0 - p) / (total - 1.0) + 0.5)
    width = 1.7155277699214135 * deviation + 0.8989161620588988
    m = np.floor((drawn + 1.0) * (fewer + 1.0) / (total + 2.0))
    last = np.minimum(np.minimum(drawn, fewer) + 1.0, np.floor(center + 16.0 * deviation))

    def log_weight(k: Floats, at: np.ndarray) -> Floats:
        counts = (k, fewer[at] - k, drawn[at] - k, more[at] - drawn[at] + k)
        return np.asarray(-sum(map(log_factorial, counts)))

    def propose(blocks: Blocks, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        u, v = uniforms(blocks(0))
        x = center[at] + width[at] * (v - 0.5) / u
        inside = (x >= 0.0) & (x < last[at])
        k = np.where(inside, np.floor(x), m[at])
        ratio = log_weight(k, at) - log_weight(m[at], at)
        return k, inside & (2.0 * log(u) <= ratio)

    return propose
