#!/usr/bin/env bash
# PyTensor's derivative by an integer depends on how a product is written: k*k/2 has 0, k/2*k has 1.5.
#
# Seen with PyTensor 3.0.7, NumPy as it installs, CPython 3.11 on Linux x86-64:
#
#   pytensor.grad(y, k) of a float y by an int64 k gives a float, without an error or a warning. A
#   product of integers passes 0, and so does their quotient, though it is a float; the product of
#   an integer and a float passes its derivative. So of three expressions that are 4.5 at k = 3, and
#   whose derivative is 3, one has 0, one 1.5, and one 3; k / 2 has 0, and k * 0.5 has 0.5.
#
# The output seen, line by line, after the versions:
#
#   k * k / 2: value 4.5, derivative 0.0
#   k / 2 * k: value 4.5, derivative 1.5
#   k * 0.5 * k: value 4.5, derivative 3.0
#   x * x / 2 of a float x: value 4.5, derivative 3.0
#   k / 2: value 1.5, derivative 0.0
#   k * 0.5: value 1.5, derivative 0.5
#   as described
#
# What to write instead: differentiate by a float variable, and compute with pt.cast of it.
#
# Exit status: 0 if PyTensor behaves so; 1 if it does not any more; 2 if the package cannot be had.
set -euo pipefail

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"${PYTHON:-python3}" -m venv "$place/venv"
"$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir \
    pytensor==3.0.7 || exit 2

PYTENSOR_FLAGS="base_compiledir=$place/compiled" "$place/venv/bin/python" -W ignore - <<'PROGRAM'
import sys

import numpy as np
import pytensor
import pytensor.tensor as pt

print(f"pytensor {pytensor.__version__}, numpy {np.__version__}")
k, x = pt.scalar("k", dtype="int64"), pt.scalar("x", dtype="float64")
changed = []
for name, y, variable, *expected in (
    ("k * k / 2", k * k / 2, k, 4.5, 0.0),
    ("k / 2 * k", k / 2 * k, k, 4.5, 1.5),
    ("k * 0.5 * k", k * 0.5 * k, k, 4.5, 3.0),
    ("x * x / 2 of a float x", x * x / 2, x, 4.5, 3.0),
    ("k / 2", k / 2, k, 1.5, 0.0),
    ("k * 0.5", k * 0.5, k, 1.5, 0.5),
):
    value, derivative = pytensor.function([variable], [y, pytensor.grad(y, variable)])(3)
    print(f"{name}: value {value}, derivative {derivative}")
    if [float(value), float(derivative)] != expected:
        changed.append(name)
print(f"changed: {', '.join(changed)}" if changed else "as described")
sys.exit(bool(changed))
PROGRAM
