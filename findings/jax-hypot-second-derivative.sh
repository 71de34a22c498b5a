#!/usr/bin/env bash
# Second derivatives of jax.numpy.hypot are 0 where abs(x) == abs(y), and gradients of small ones NaN.
#
# Seen with JAX 0.10.2 (CPU, float64), NumPy 2.4.6, CPython 3.11 on Linux x86-64:
#
#   hypot(x, y) is smooth but at the origin. At x = y its Hessian is [[a, -a], [-a, a]] with
#   a = 1 / (2 sqrt(2) x). JAX gives zeros there, without a warning, while the gradient is right and
#   points close by have the right Hessian. hypot is computed as the larger one times
#   sqrt(1 + (smaller / larger)**2), and a tie of maximum and minimum gives each operand half of the
#   cotangent, so that what differs between x and y is lost in the second derivative.
#   The gradient at (1e-200, 0) is [nan, nan], the right one [1, 0]; at the origin it is [0.5, 0.5].
#
# The output seen, line by line:
#
#   jax 0.10.2, numpy 2.4.6
#   Hessian of hypot at [1.0, 1.0]: [[0.0, 0.0], [0.0, 0.0]], of sqrt(x*x + y*y): 0.354 -0.354
#   Hessian of hypot at [1.0, -1.0]: [[0.0, 0.0], [0.0, 0.0]], of sqrt(x*x + y*y): 0.354 0.354
#   Hessian of hypot at [1.0, 1.0000001]: 0.354 -0.354
#   gradient of hypot at [1e-200, 0.0]: [nan, nan]
#   gradient of hypot at [0.0, 0.0]: [0.5, 0.5]
#   as described
#
# What to write instead: jnp.sqrt(x * x + y * y), where that neither overflows nor is differentiated
# at the origin.
#
# Exit status: 0 if JAX behaves so; 1 if it does not any more; 2 if the packages cannot be had.
set -euo pipefail

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"${PYTHON:-python3}" -m venv "$place/venv"
"$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir \
    jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 || exit 2

JAX_ENABLE_X64=1 JAX_PLATFORMS=cpu "$place/venv/bin/python" -W ignore - <<'PROGRAM'
import sys

import jax
import jax.numpy as jnp
import numpy as np

print(f"jax {jax.__version__}, numpy {np.__version__}")
changed = []


def note(name, holds):
    """Note the name of what is not as it was seen."""
    if not holds:
        changed.append(name)


def hypot(z):
    return jnp.hypot(z[0], z[1])


def root(z):
    return jnp.sqrt(z[0] * z[0] + z[1] * z[1])


for point in ([1.0, 1.0], [1.0, -1.0]):
    z = jnp.asarray(point)
    found, expected = (np.asarray(jax.hessian(f)(z)) for f in (hypot, root))
    first = f"Hessian of hypot at {point}: {found.tolist()}"
    print(f"{first}, of sqrt(x*x + y*y): {expected[0, 0]:.3f} {expected[0, 1]:.3f}")
    note(f"the Hessian at {point}", not found.any() and abs(expected[0, 0] - 8**-0.5) < 1e-12)
    same = np.allclose(jax.grad(hypot)(z), np.asarray(point) / 2**0.5)
    note(f"the gradient at {point}", same)
point = [1.0, 1.0000001]
found = np.asarray(jax.hessian(hypot)(jnp.asarray(point)))
print(f"Hessian of hypot at {point}: {found[0, 0]:.3f} {found[0, 1]:.3f}")
note("the Hessian close by", abs(found[0, 0] - 8**-0.5) < 1e-6)
for point, expected in (([1e-200, 0.0], [np.nan] * 2), ([0.0, 0.0], [0.5, 0.5])):
    found = jax.grad(hypot)(jnp.asarray(point)).tolist()
    print(f"gradient of hypot at {point}: {found}")
    note(f"the gradient at {point}", np.array_equal(found, expected, equal_nan=True))
print(f"changed: {', '.join(changed)}" if changed else "as described")
sys.exit(bool(changed))
PROGRAM
