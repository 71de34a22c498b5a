#!/usr/bin/env bash
# Importing ml_dtypes 0.7.0 takes a second of a processor, 0.6.0 takes a fiftieth of that.
#
# Seen with ml_dtypes 0.6.0 and 0.7.0 of PyPI, NumPy 2.4.6, CPython 3.11 on Linux x86-64:
#
#   0.7.0 enters loops for pairs of unlike types into NumPy's ufuncs (bfloat16 + float8_e4m3fn gives
#   bfloat16 there, float32 in 0.6.0). NumPy compares each new loop of a ufunc with all that it has,
#   tuple by tuple, so the time grows with the square of the loops. Each process that needs bfloat16
#   in NumPy pays it: every import of a library that names the dtype.
#
# The output seen, line by line (seconds of user and system time):
#
#   ml_dtypes 0.6.0: imported in 0.017 s; bfloat16 + float8_e4m3fn is float32
#   ml_dtypes 0.7.0: imported in 1.083 s; bfloat16 + float8_e4m3fn is bfloat16
#   as described
#
# What to write instead: `ml_dtypes!=0.7.0` in the requirements.
#
# Exit status: 0 if 0.7.0 takes more than ten times as long; 1 if not; 2 if the packages cannot be had.
set -euo pipefail

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cat >"$place/import_it.py" <<'PROGRAM'
import sys
import time

import numpy as np

began = time.process_time()
import ml_dtypes

took = time.process_time() - began
mixed = np.ones(1, ml_dtypes.bfloat16) + np.ones(1, ml_dtypes.float8_e4m3fn)
print(
    f"ml_dtypes {ml_dtypes.__version__}: imported in {took:.3f} s; "
    f"bfloat16 + float8_e4m3fn is {mixed.dtype}",
    file=sys.stderr,
)
print(took)
PROGRAM
for version in 0.6.0 0.7.0; do
    "${PYTHON:-python3}" -m venv "$place/$version"
    "$place/$version/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir \
        numpy==2.4.6 "ml_dtypes==$version" || exit 2
    "$place/$version/bin/python" "$place/import_it.py" >"$place/$version.seconds"
done 2>&1
if awk 'NR == 1 { older = $1 } NR == 2 { exit !($1 > 10 * older) }' "$place"/0.6.0.seconds "$place"/0.7.0.seconds; then
    echo "as described"
else
    echo "changed"
    exit 1
fi
