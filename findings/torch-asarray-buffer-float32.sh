#!/usr/bin/env bash
# torch.asarray reads any buffer that is not an ndarray as raw bytes of PyTorch's default dtype.
#
# Seen with PyTorch 2.13.0 (CPU), JAX 0.10.2, NumPy 2.4.6, CPython 3.11 on Linux x86-64:
#
#   torch.asarray(o), where o lends a buffer (PEP 3118) and is no tensor, ndarray, NumPy scalar or
#   DLPack capsule, ignores the format, the item size and the shape that the buffer declares. The
#   result has one axis, and the dtype torch.get_default_dtype(), float32, unless dtype= is given.
#   Its length is nbytes / itemsize of that dtype, so three numbers of float64 become six of float32.
#   There is no error, if the number of bytes is a multiple of the item size (else a ValueError).
#   The only warning is that the buffer is read-only, where it is, once for each process.
#   A method __dlpack__ of the object is not tried: arrays of JAX have one, and are read wrongly.
#   torch.as_tensor and torch.tensor read arrays of JAX correctly (by __array__).
#
# The output seen, line by line:
#
#   torch 2.13.0, jax 0.10.2, numpy 2.4.6
#   array.array float64 : torch.float32 [0.0, 1.875, 0.0, 2.0, 0.0, 2.125]
#   memoryview float64 2x3 : torch.float32 shape (12,)
#   array.array int32 : torch.float32 [1.401298464324817e-45, 2.802596928649634e-45, ...]
#   jax float64 : torch.float32 [0.0, 1.875, 0.0, 2.0, 0.0, 2.125]
#   jax int32 : torch.float32 [1.401298464324817e-45, 2.802596928649634e-45, ...]
#   jax float32 : torch.float32 [1.0, 2.0, 3.0]
#   ndarray float64 : torch.float64 [1.0, 2.0, 3.0]
#   from_dlpack of jax float64 : torch.float64 [1.0, 2.0, 3.0]
#   as_tensor of jax float64 : torch.float64 [1.0, 2.0, 3.0]
#   default dtype float64, jax int32 x4 : torch.float64 shape (2,)
#   as described
#
# What to write instead: torch.from_dlpack(o), or torch.as_tensor(o) where o has __array__.
#
# Exit status: 0 if PyTorch behaves so; 1 if it does not any more; 2 if the packages cannot be had.
set -euo pipefail

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"${PYTHON:-python3}" -m venv "$place/venv"
"$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir \
    torch==2.13.0 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 || exit 2

JAX_ENABLE_X64=1 JAX_PLATFORMS=cpu "$place/venv/bin/python" -W ignore - <<'PROGRAM'
import array
import struct
import sys

import jax
import jax.numpy as jnp
import numpy as np
import torch

print(f"torch {torch.__version__.split('+')[0]}, jax {jax.__version__}, numpy {np.__version__}")
changed = []


def check(name, tensor, dtype, values=None, shape=None):
    """Print a tensor; note the name if it is not the one that was seen."""
    found = tensor.tolist()
    print(name, ":", tensor.dtype, found if values is not None else f"shape {tuple(tensor.shape)}")
    same = found == values if values is not None else tuple(tensor.shape) == shape
    if not same or tensor.dtype != dtype:
        changed.append(name)


def as_float32(format, *numbers):
    """The float32 numbers that the bytes of other numbers spell."""
    data = struct.pack(f"{len(numbers)}{format}", *numbers)
    return list(struct.unpack(f"{len(data) // 4}f", data))


three = [1.0, 2.0, 3.0]
doubles, ints = as_float32("d", *three), as_float32("i", 1, 2, 3)
f32, f64 = torch.float32, torch.float64

check("array.array float64", torch.asarray(array.array("d", three)), f32, doubles)
table = memoryview(array.array("d", range(6))).cast("B").cast("d", (2, 3))
check("memoryview float64 2x3", torch.asarray(table), f32, shape=(12,))
check("array.array int32", torch.asarray(array.array("i", [1, 2, 3])), f32, ints)

x = jnp.asarray(three)
assert x.dtype == "float64" and hasattr(x, "__dlpack__")
check("jax float64", torch.asarray(x), f32, doubles)
check("jax int32", torch.asarray(jnp.asarray([1, 2, 3], dtype="int32")), f32, ints)
check("jax float32", torch.asarray(x.astype("float32")), f32, three)

check("ndarray float64", torch.asarray(np.asarray(three)), f64, three)
check("from_dlpack of jax float64", torch.from_dlpack(x), f64, three)
check("as_tensor of jax float64", torch.as_tensor(x), f64, three)

torch.set_default_dtype(f64)
four = jnp.asarray([1, 2, 3, 4], dtype="int32")
check("default dtype float64, jax int32 x4", torch.asarray(four), f64, shape=(2,))

print(f"changed: {', '.join(changed)}" if changed else "as described")
sys.exit(bool(changed))
PROGRAM
