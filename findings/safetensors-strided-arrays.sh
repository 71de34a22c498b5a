#!/usr/bin/env bash
# safetensors.numpy.save_file stores other values for an array that is not in C order, and says nothing.
#
# Seen with safetensors 0.8.0, NumPy 2.4.6, ml_dtypes 0.6.0, CPython 3.11 on Linux x86-64:
#
#   save_file and save hand on the address and the shape of an array, not its strides. Of a
#   Fortran-ordered array, a transposed one or one with a step, the file has the bytes that lie in
#   memory, in the shape of the array: other values. The docstring asks for "contiguous and dense"
#   arrays; nothing tests it. Moreover save() writes bfloat16, and load() of these bytes raises KeyError: 'BF16';
#   load_file() reads it once ml_dtypes has been imported.
#
# The output seen, line by line:
#
#   safetensors 0.8.0, numpy 2.4.6, ml_dtypes 0.6.0
#   Fortran order: saved [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], loaded [[0.0, 3.0, 1.0], [4.0, 2.0, 5.0]]
#   transposed: saved [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]], loaded [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
#   every second column: saved [[0.0, 2.0], [3.0, 5.0]], loaded [[0.0, 1.0], [2.0, 3.0]]
#   in C order: saved [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]], loaded [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
#   load of saved bfloat16: KeyError 'BF16'
#   as described
#
# What to write instead: save_file({"x": np.asarray(x, order="C")}, path), and load_file.
#
# Exit status: 0 if safetensors behaves so; 1 if it does not any more; 2 if the packages cannot be had.
set -euo pipefail

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"${PYTHON:-python3}" -m venv "$place/venv"
"$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir \
    safetensors==0.8.0 numpy==2.4.6 ml_dtypes==0.6.0 || exit 2

"$place/venv/bin/python" -W ignore - "$place" <<'PROGRAM'
import sys

import ml_dtypes
import numpy as np
import safetensors
from safetensors.numpy import load, load_file, save, save_file

versions = safetensors.__version__, np.__version__, ml_dtypes.__version__
print("safetensors {}, numpy {}, ml_dtypes {}".format(*versions))
file = f"{sys.argv[1]}/x.safetensors"
changed = []
x = np.arange(6.0).reshape(2, 3)
cases = {
    "Fortran order": (np.asfortranarray(x), False),
    "transposed": (x.T, False),
    "every second column": (x[:, ::2], False),
    "in C order": (np.asarray(x.T, order="C"), True),
}
for name, (array, is_right) in cases.items():
    save_file({"x": array}, file)
    loaded = load_file(file)["x"]
    print(f"{name}: saved {array.tolist()}, loaded {loaded.tolist()}")
    if np.array_equal(array, loaded) != is_right:
        changed.append(name)
half = np.asarray([1.0, 2.0], ml_dtypes.bfloat16)
try:
    print(f"load of saved bfloat16: {load(save({'x': half}))['x'].tolist()}")
    changed.append("load of bfloat16")
except KeyError as error:
    print(f"load of saved bfloat16: KeyError {error}")
save_file({"x": half}, file)
if load_file(file)["x"].dtype != half.dtype:
    changed.append("load_file of bfloat16")
print(f"changed: {', '.join(changed)}" if changed else "as described")
sys.exit(bool(changed))
PROGRAM
