#!/usr/bin/env bash
# mlx.core.grad by an integer rounds each factor of the chain to an integer: k*1.5 has 1, k*k/2 has 0.
#
# Seen with MLX 0.32.4 (CPU), CPython 3.11 on Linux x86-64:
#
#   mx.grad(f) at an array of int32 raises no error and returns an int32. Where an integer is
#   converted to float in f, the cotangent is converted back, and its fraction is cut off, before it
#   is multiplied further. So k * k / 2 at 3, whose derivative is 3, has 0: the cotangent 0.5 of
#   k * k becomes 0. Written (k converted to float)**2 / 2 it has 3, written k / 2 * k it has 2.
#
# The output seen, line by line:
#
#   mlx 0.32.4
#   k * 1.5: value 4.5, derivative 1 mlx.core.int32
#   k * k / 2: value 4.5, derivative 0 mlx.core.int32
#   k / 2 * k: value 4.5, derivative 2 mlx.core.int32
#   float(k)**2 / 2: value 4.5, derivative 3 mlx.core.int32
#   as described
#
# What to write instead: differentiate by k.astype(mx.float32).
#
# Exit status: 0 if MLX behaves so; 1 if it does not any more; 2 if the package cannot be had.
set -euo pipefail

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"${PYTHON:-python3}" -m venv "$place/venv"
"$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir \
    "mlx[cpu]==0.32.4" || exit 2

"$place/venv/bin/python" -W ignore - <<'PROGRAM'
import sys
from importlib.metadata import version

import mlx.core as mx

mx.set_default_device(mx.cpu)
print(f"mlx {version('mlx')}")
k = mx.array(3)
changed = []
for name, f, expected in (
    ("k * 1.5", lambda k: k * 1.5, 1),
    ("k * k / 2", lambda k: k * k / 2, 0),
    ("k / 2 * k", lambda k: k / 2 * k, 2),
    ("float(k)**2 / 2", lambda k: k.astype(mx.float32) ** 2 / 2, 3),
):
    derivative = mx.grad(f)(k)
    print(f"{name}: value {f(k).item()}, derivative {derivative.item()} {derivative.dtype}")
    if (f(k).item(), derivative.item(), derivative.dtype) != (4.5, expected, mx.int32):
        changed.append(name)
print(f"changed: {', '.join(changed)}" if changed else "as described")
sys.exit(bool(changed))
PROGRAM
