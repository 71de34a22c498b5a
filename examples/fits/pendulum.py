"""Fits a damped pendulum to measured angles: gradients through the steps of an ODE solver.

The steps of a Runge-Kutta method are one `tn.scan`, and its derivative is a scan in reverse. The
unknowns are frequency, damping and the first angle.

Run, from examples/: python -m fits.pendulum
"""

from __future__ import annotations

import click
import numpy as np

import tenfold as tn
from trees.training import Adam

STEPS, END = 200, 10.0
TRUTH = np.array([1.7, 0.15, 1.2])
"""Frequency (1/s), damping (1/s), first angle."""
FIRST_GUESS = np.array([1.5, 0.3, 1.0])


def rate(unknowns: tn.Array, state: tn.Array) -> tn.Array:
    """Return the derivative of (angle, velocity) by time."""
    angle, velocity = state[0], state[1]
    frequency, damping = unknowns[0], unknowns[1]
    return tn.stack([velocity, -(frequency**2) * tn.sin(angle) - damping * velocity])


def angles(unknowns: tn.Array, steps: int = STEPS) -> tn.Array:
    """Return the angle after each step of the classical Runge-Kutta method."""
    dt = END / steps

    def step(state: tn.Array, _: None) -> tuple[tn.Array, tn.Array]:
        k1 = rate(unknowns, state)
        k2 = rate(unknowns, state + dt / 2 * k1)
        k3 = rate(unknowns, state + dt / 2 * k2)
        k4 = rate(unknowns, state + dt * k3)
        state = state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return state, state[0]

    first = tn.stack([unknowns[2], tn.zeros(())])
    return tn.scan(step, first, length=steps)[1]


def measured(noise: float, seed: int = 0) -> np.ndarray:
    """Return the angles of the true pendulum, with normal noise."""
    exact = np.asarray(angles(tn.asarray(TRUTH)))
    return exact + noise * np.random.default_rng(seed).standard_normal(STEPS)


def fit(data: np.ndarray, steps: int, rate: float = 0.05) -> tuple[np.ndarray, float]:
    """Return the unknowns after so many steps of Adam, and the last mean square error."""
    unknowns, observed = tn.asarray(FIRST_GUESS), tn.asarray(data)
    gradient = tn.function(
        tn.value_and_grad(lambda unknowns: tn.mean((angles(unknowns) - observed) ** 2))
    )
    optimiser = Adam([unknowns], rate)
    loss = tn.zeros(())
    for _ in range(steps):
        loss, by_unknowns = gradient(unknowns)
        optimiser.step([by_unknowns])
    return np.asarray(unknowns), loss.item()


@click.command()
@click.option("--steps", default=120, show_default=True, type=click.IntRange(1))
@click.option("--noise", default=0.02, show_default=True, type=click.FloatRange(0))
def main(steps: int, noise: float) -> None:
    """Fit the pendulum, and print the unknowns beside those that made the angles."""
    found, loss = fit(measured(noise), steps)
    print(f"root mean square error {loss**0.5:.4f} after {steps} steps, noise {noise}")
    for name, value, truth in zip(
        ("frequency", "damping", "first angle"), found, TRUTH, strict=True
    ):
        print(f"  {name:12}{value:8.4f}, true {truth}")


if __name__ == "__main__":
    main()
