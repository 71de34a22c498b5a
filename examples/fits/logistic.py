"""Logistic regression: samples of two classes, the loss in two lines, and SGD in place.

Run, from examples/: python -m fits.logistic
"""

from __future__ import annotations

from collections.abc import Iterator

import click
import numpy as np

import tenfold as tn


def samples(count: int, features: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rows, and the class of each: 0 or 1, drawn from the logistic model."""
    random = np.random.default_rng(seed)
    x = random.standard_normal((count, features))
    odds = x @ np.linspace(-2, 2, features)
    return x, (random.random(count) < 1 / (1 + np.exp(-odds))).astype(float)


def loss_of(w: tn.Array, x: tn.Array, y: tn.Array) -> tn.Array:
    """Return the mean of `log(1 + exp(z)) - y * z`."""
    z = x @ w
    return tn.mean(tn.logaddexp(z, tn.zeros_like(z)) - y * z)


def train(
    x: np.ndarray, y: np.ndarray, steps: int, rate: float = 1.0
) -> Iterator[tuple[tn.Array, float]]:
    """Give the weights and the loss after each step of gradient descent."""
    w, rows, classes = tn.zeros(x.shape[1]), tn.asarray(x), tn.asarray(y)
    gradient = tn.value_and_grad(lambda w: loss_of(w, rows, classes))
    for _ in range(steps):
        loss, by_w = gradient(w)
        w -= rate * by_w
        tn.eval(loss, w)
        yield w, loss.item()


def accuracy(w: tn.Array, x: np.ndarray, y: np.ndarray) -> float:
    """Return the share of samples whose class is the likelier one."""
    return float(np.mean((x @ np.asarray(w) > 0) == (y > 0)))


@click.command()
@click.option("--count", default=100_000, show_default=True, type=click.IntRange(1))
@click.option("--features", default=20, show_default=True, type=click.IntRange(2))
@click.option("--steps", default=50, show_default=True, type=click.IntRange(1))
def main(count: int, features: int, steps: int) -> None:
    """Train, and print the loss and the accuracy on other samples."""
    w, loss = [*train(*samples(count, features), steps)][-1]
    share = accuracy(w, *samples(10_000, features, seed=1))
    print(f"loss {loss:.4f} after {steps} steps; {share:.1%} of 10,000 other samples are right")


if __name__ == "__main__":
    main()
