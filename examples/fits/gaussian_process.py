"""Gaussian process regression with a learned kernel: the scale, length and noise of greatest
likelihood, through a Cholesky factor and a triangular solve.

The kernel is scale * exp(-(distance / length)**2 / 2), and noise on its diagonal. The likelihood is
that of Rasmussen and Williams 2006, "Gaussian processes for machine learning", equation 5.8.

Run, from examples/: python -m fits.gaussian_process
"""

from __future__ import annotations

import click
import numpy as np
from scipy.optimize import minimize

import tenfold as tn


def measured(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return positions, and a noisy sine at them."""
    x = np.linspace(0, 10, count)
    return x, np.sin(x) + 0.1 * np.random.default_rng(seed).standard_normal(count)


def kernel(logarithms: tn.Array, x: tn.Array, z: tn.Array) -> tn.Array:
    """Return the covariances of the values at `x` and `z` without noise."""
    scale, length = tn.exp(logarithms[0]), tn.exp(logarithms[1])
    return scale * tn.exp(-0.5 * ((x[:, None] - z) / length) ** 2)


def loss_of(logarithms: tn.Array, x: tn.Array, y: tn.Array) -> tn.Array:
    """Return the negative logarithm of the likelihood of `y`."""
    noise = tn.exp(logarithms[2]) * tn.eye(len(x))
    factor = tn.linalg.cholesky(kernel(logarithms, x, x) + noise)
    whitened = tn.linalg.triangular_solve(factor, y)
    determinant = tn.sum(tn.log(tn.linalg.diagonal(factor)))
    return tn.sum(whitened**2) / 2 + determinant + len(x) / 2 * np.log(2 * np.pi)


def fit(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """Return scale, length and noise of greatest likelihood, and the logarithm of that."""
    positions, values = tn.asarray(x), tn.asarray(y)
    gradient = tn.function(tn.value_and_grad(lambda w: loss_of(w, positions, values)))

    def both(logarithms: np.ndarray) -> tuple[float, np.ndarray]:
        loss, by_logarithms = gradient(tn.asarray(logarithms))
        tn.eval(loss, by_logarithms)
        return loss.item(), np.asarray(by_logarithms)

    found = minimize(both, np.log([1.0, 1.0, 0.1]), jac=True, method="L-BFGS-B", tol=1e-12)
    return np.exp(found.x), -float(found.fun)


@click.command()
@click.option("--count", default=200, show_default=True, type=click.IntRange(3))
def main(count: int) -> None:
    """Fit, and print the kernel and its likelihood."""
    (scale, length, noise), likelihood = fit(*measured(count))
    print(f"scale {scale:.4f}, length {length:.4f}, noise {noise:.5f}: {likelihood:.4f}")


if __name__ == "__main__":
    main()
