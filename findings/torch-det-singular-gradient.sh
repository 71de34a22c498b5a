#!/usr/bin/env bash
# The gradient of torch.linalg.det at a singular matrix is 0, and the right one with create_graph=True.
#
# Seen with PyTorch 2.13.0 (CPU, float64), NumPy 2.4.6, CPython 3.11 on Linux x86-64:
#
#   The determinant is a polynomial; its gradient is the matrix of cofactors, which is not 0 for a
#   matrix of rank n - 1. torch.autograd.grad(det(A), A) gives zeros where the determinant is
#   computed as exactly 0, since it solves with det(A) on the right side. With create_graph=True
#   another formula gives the cofactors, but for rounding. So one flag, which is to change no value,
#   changes the gradient. torch.func.jvp gives 0, too, and torch.autograd.gradcheck fails.
#
# The output seen, line by line:
#
#   torch 2.13.0, numpy 2.4.6
#   [[1.0, 2.0], [2.0, 4.0]]: backward 0, create_graph 4.0 -2.0 -2.0 1.0, cofactors 4.0 -2.0 -2.0 1.0
#   [[0.0, 1.0], [0.0, 2.0]]: backward 0, create_graph 2.0 0.0 -1.0 0.0, cofactors 2.0 0.0 -1.0 0.0
#   jvp along the first element of [[1, 2], [2, 4]]: 0.0, right: 4.0
#   gradcheck at [[1, 2], [2, 4]]: False
#   as described
#
# What to write instead: create_graph=True, or the formula itself for small matrices.
#
# Exit status: 0 if PyTorch behaves so; 1 if it does not any more; 2 if the packages cannot be had.
set -euo pipefail

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"${PYTHON:-python3}" -m venv "$place/venv"
"$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir \
    torch==2.13.0 numpy==2.4.6 || exit 2

"$place/venv/bin/python" -W ignore - <<'PROGRAM'
import sys

import numpy as np
import torch

torch.set_default_dtype(torch.float64)
print(f"torch {torch.__version__.split('+')[0]}, numpy {np.__version__}")
changed = []


def note(name, holds):
    """Note the name of what is not as it was seen."""
    if not holds:
        changed.append(name)


def numbers(matrix):
    return " ".join(f"{x + 0.0:.1f}" for x in np.ravel(matrix) + 0.0)


for a in ([[1.0, 2.0], [2.0, 4.0]], [[0.0, 1.0], [0.0, 2.0]]):
    x = torch.tensor(a, requires_grad=True)
    (plain,) = torch.autograd.grad(torch.linalg.det(x), x)
    (graph,) = torch.autograd.grad(torch.linalg.det(x), x, create_graph=True)
    graph = np.round(graph.detach().numpy(), 9)
    cofactors = np.array([[a[1][1], -a[1][0]], [-a[0][1], a[0][0]]])
    zero = "0" if not plain.any() else numbers(plain.numpy())
    print(f"{a}: backward {zero}, create_graph {numbers(graph)}, cofactors {numbers(cofactors)}")
    note(f"the gradient at {a}", zero == "0" and np.allclose(graph, cofactors, atol=1e-9))
x, first = torch.tensor([[1.0, 2.0], [2.0, 4.0]]), torch.tensor([[1.0, 0.0], [0.0, 0.0]])
tangent = torch.func.jvp(torch.linalg.det, (x,), (first,))[1].item()
print(f"jvp along the first element of [[1, 2], [2, 4]]: {tangent}, right: 4.0")
note("jvp", tangent == 0)
holds = torch.autograd.gradcheck(torch.linalg.det, (x.requires_grad_(),), raise_exception=False)
print(f"gradcheck at [[1, 2], [2, 4]]: {holds}")
note("gradcheck", not holds)
print(f"changed: {', '.join(changed)}" if changed else "as described")
sys.exit(bool(changed))
PROGRAM
