"""Loops as people first write them, in NumPy's words: state has a name, and is read at the end.

Takes a random generator, which varies the shapes a little; hands on a Program: its loop, run by
NumPy or by Tenfold. `wait` gets the state of each step, and gives it back.

    program = PROGRAMS[0].make(np.random.default_rng(3))
    program(np, 50, lambda *state: None)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Wait = Callable[..., None]
Run = Callable[[Any, int, Wait], Sequence[Any]]
"""(library, number of steps, what is done with the state of each step) -> the results"""


@dataclass(frozen=True)
class Program:
    """A loop, the numbers of its steps, and what is required of it."""

    name: str
    make: Callable[[np.random.Generator], Run]
    steps: tuple[int, ...]
    """A row each."""
    of_waiting: float
    """The most of the time of waiting in every step."""
    of_numpy: float
    """The most of NumPy's time."""
    has_bits_of_waiting: bool = True
    """False where rules see more without waiting: they choose the order of a chain of products."""
    has_values_of_numpy: bool = True
    """False where draws have other streams."""


def near(random: np.random.Generator, length: int) -> int:
    """Return a length near another one."""
    return int(length + random.integers(-length // 16, length // 16 + 1))


def inputs(*arrays: np.ndarray) -> Callable[[Any], list[Any]]:
    """Return the arrays of a library, made once."""
    made: dict[str, list[Any]] = {}
    return lambda xp: made.setdefault(xp.__name__, [*map(xp.asarray, arrays)])


def gradient_descent(rows: int) -> Callable[[np.random.Generator], Run]:
    def make(random: np.random.Generator) -> Run:
        m, n = near(random, rows), near(random, 50)
        data = inputs(random.random((m, n)), random.random(m))

        def run(xp: Any, steps: int, wait: Wait) -> list[Any]:
            X, y = data(xp)
            w = xp.zeros(n)
            for _ in range(steps):
                w = w - 0.02 * (X.T @ (X @ w - y) / m)
                wait(w)
            return [w]

        return run

    return make


def power_iteration(random: np.random.Generator) -> Run:
    n = near(random, 64)
    matrix = random.random((n, n))
    data = inputs(matrix + matrix.T, random.random(n))

    def run(xp: Any, steps: int, wait: Wait) -> list[Any]:
        G, d = data(xp)
        for _ in range(steps):
            d = G @ d
            d = d / xp.linalg.norm(d)
            wait(d)
        return [d]

    return run


def gray_scott(random: np.random.Generator) -> Run:
    m, n = near(random, 128), near(random, 128)

    def run(xp: Any, steps: int, wait: Wait) -> list[Any]:
        def laplace(a: Any) -> Any:
            vertical = xp.roll(a, 1, axis=0) + xp.roll(a, -1, axis=0)
            return vertical + xp.roll(a, 1, axis=1) + xp.roll(a, -1, axis=1) - 4 * a

        u, v = xp.ones((m, n)), xp.zeros((m, n))
        u[50:60, 50:60], v[50:60, 50:60] = 0.5, 0.25
        for _ in range(steps):
            reaction = u * v * v
            u = u + (0.16 * laplace(u) - reaction + 0.035 * (1 - u))
            v = v + (0.08 * laplace(v) + reaction - (0.06 + 0.035) * v)
            wait(u, v)
        return [u, v]

    return run


class Network:
    """Two layers, trained in small steps."""

    def __init__(self, xp: Any, weights: Sequence[Any], rate: float) -> None:
        self.xp, self.rate = xp, rate
        self.W1, self.b1, self.W2, self.b2 = (xp.array(each) for each in weights)

    def step(self, x: Any, y: Any) -> Any:
        hidden = self.xp.tanh(x @ self.W1 + self.b1)
        error = hidden @ self.W2 + self.b2 - y
        back = (error @ self.W2.T) * (1 - hidden * hidden)
        self.W2 += -self.rate * (hidden.T @ error)
        self.b2 += -self.rate * self.xp.sum(error, axis=0)
        self.W1 += -self.rate * (x.T @ back)
        self.b1 += -self.rate * self.xp.sum(back, axis=0)
        return self.xp.mean(error * error)


def network(random: np.random.Generator) -> Run:
    """A call makes some steps of one network, as a session that reads the loss now and then."""
    rows, n, hidden = near(random, 32), near(random, 8), near(random, 16)
    x, weights = random.standard_normal((rows, n)), 0.3 * random.standard_normal((n, hidden))
    data = inputs(x, np.sin(x[:, :1]), weights, 0.3 * random.standard_normal((hidden, 1)))
    networks: dict[tuple[Any, Wait], Network] = {}

    def run(xp: Any, steps: int, wait: Wait) -> list[Any]:
        x, y, first, second = data(xp)
        if (xp, wait) not in networks:
            zeros = xp.zeros(hidden), xp.zeros(1)
            networks[xp, wait] = Network(xp, (first, zeros[0], second, zeros[1]), 0.05 / rows)
        net = networks[xp, wait]
        loss = xp.zeros(())
        for _ in range(steps):
            loss = net.step(x, y)
            wait(net.W1, net.b1, net.W2, net.b2, loss)
        return [loss, net.W1, net.W2]

    return run


def kalman(random: np.random.Generator) -> Run:
    seen = np.cumsum(random.standard_normal((500, 2)), axis=0)
    step = 0.5 + 0.1 * random.random()

    def run(xp: Any, steps: int, wait: Wait) -> list[Any]:
        F, H = xp.eye(4), xp.zeros((2, 4))
        F[0, 2] = F[1, 3] = step
        H[0, 0] = H[1, 1] = 1.0
        Q, R = 0.01 * xp.eye(4), 0.5 * xp.eye(2)
        x, P, likelihood = xp.zeros(4), xp.eye(4), 0.0
        for z in xp.asarray(seen[:steps]):
            x, P = F @ x, F @ P @ F.T + Q
            residual, S = z - H @ x, H @ P @ H.T + R
            K = P @ H.T @ xp.linalg.inv(S)
            x, P = x + K @ residual, (xp.eye(4) - K @ H) @ P
            distance = residual @ xp.linalg.solve(S, residual)
            likelihood = likelihood - 0.5 * (distance + xp.log(xp.linalg.det(2 * xp.pi * S)))
            wait(x, P, likelihood)
        return [x, likelihood]

    return run


def metropolis(random: np.random.Generator) -> Run:
    seed, scale = int(random.integers(1000)), 0.5 + random.random()

    def run(xp: Any, steps: int, wait: Wait) -> list[Any]:
        draws = xp.random.default_rng(seed)
        x, kept = 0.0, []
        for _ in range(steps):
            proposal = x + scale * draws.standard_normal()
            if xp.log(draws.random()) < 0.5 * (x * x - proposal * proposal):
                x = proposal
            wait(x)
            kept.append(float(x))
        return [xp.asarray(kept)]

    return run


def autoregression(random: np.random.Generator) -> Run:
    noise = random.standard_normal(4000)
    data = inputs(noise)

    def run(xp: Any, steps: int, wait: Wait) -> list[Any]:
        (e,) = data(xp)
        x = xp.zeros(steps)
        for t in range(1, steps):
            x[t] = 0.9 * x[t - 1] + e[t]
            wait(x)
        return [x]

    return run


def newton(random: np.random.Generator) -> Run:
    a, b = 1 + random.random(2)

    def run(xp: Any, steps: int, wait: Wait) -> list[Any]:
        x = xp.asarray([1.0, 0.5])
        for _ in range(steps):
            f = xp.asarray([x[0] * x[0] + x[1] * x[1] - a - 1, x[0] - b * x[1]])
            J = xp.asarray([[2 * x[0], 2 * x[1]], [1.0, -b]])
            x = x - xp.linalg.solve(J, f)
            wait(x)
        return [x]

    return run


PROGRAMS = (
    Program(
        "gradient descent 500x50",
        gradient_descent(500),
        (0, 1, 50, 56, 57, 300, 1200, 2000),
        1.1,
        math.inf,
    ),
    Program("gradient descent 5000x50", gradient_descent(5000), (300, 317), 1.1, 0.8),
    Program("power iteration", power_iteration, (50, 204, 205, 1200), 1.1, math.inf),
    Program("Gray-Scott 128x128", gray_scott, (300, 341), 1.1, 0.7),
    Program("two-layer network", network, (50, 200, 233), 1.1, 2.0),
    Program("Kalman filter", kalman, (443, 500), 1.1, 1.0, has_bits_of_waiting=False),
    Program("Metropolis", metropolis, (1000,), math.inf, 4.0, has_values_of_numpy=False),
    Program("AR(1) by elements", autoregression, (1000, 1117), 1.1, 4.0),
    Program("Newton on 2 numbers", newton, (20, 23), 1.1, 4.0),
)
