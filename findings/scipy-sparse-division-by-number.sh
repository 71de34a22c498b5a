#!/usr/bin/env bash
# A sparse array of SciPy divided by a number is multiplied by the reciprocal of the number.
#
# Seen with SciPy 1.17.1, NumPy 2.4.6, CPython 3.11 on Linux x86-64:
#
#   S / c, for a csr_array (csc, coo and dia likewise) of floats and a Python or NumPy number c, is
#   computed as S * (1 / c), which rounds twice. So elements differ from those of S.toarray() / c in
#   the last bit. Where 1 / c overflows (|c| < 5.6e-309), stored elements become inf though the
#   quotient is finite, and a stored 0 becomes NaN, where NumPy gives 0. An array of one element
#   counts as a number.
#
# The output seen, line by line:
#
#   scipy 1.17.1, numpy 2.4.6
#   csr / 49: 0.0020408163265306120, dense / 49: 0.0020408163265306124
#   csr, csc, coo, dia / 49: equal to the product with 1 / 49: True
#   csr of [0.0 (stored), 1e-310] / 2e-310: [nan, inf], dense: [0.0, 0.5]
#   csr / np.array([[49.0]]): equal to dense / 49: False
#   as described
#
# What to write instead: S.multiply(...) rounds as often; for NumPy's bits divide the data, as in
# sparse.csr_array((S.data / c, S.indices, S.indptr), shape=S.shape).
#
# Exit status: 0 if SciPy behaves so; 1 if it does not any more; 2 if the packages cannot be had.
set -euo pipefail

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"${PYTHON:-python3}" -m venv "$place/venv"
"$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir \
    scipy==1.17.1 numpy==2.4.6 || exit 2

"$place/venv/bin/python" -W ignore - <<'PROGRAM'
import sys

import numpy as np
import scipy
from scipy import sparse

print(f"scipy {scipy.__version__}, numpy {np.__version__}")
changed = []


def note(name, holds):
    """Note the name of what is not as it was seen."""
    if not holds:
        changed.append(name)


dense = np.array([[0.1, 0.7, 0.3]])
S = sparse.csr_array(dense)
found, exact = (S / 49).data, dense[0] / 49
print(f"csr / 49: {found[0]:.19f}, dense / 49: {exact[0]:.19f}")
note("the last bit", found[0] != exact[0])
formats = [S, S.tocsc(), S.tocoo(), S.todia()]
products = [np.array_equal((x / 49).toarray(), dense * (1 / 49)) for x in formats]
print(f"csr, csc, coo, dia / 49: equal to the product with 1 / 49: {all(products)}")
note("the reciprocal", all(products))
small = np.array([0.0, 1e-310])
T = sparse.csr_array((small, np.array([0, 1]), np.array([0, 2])), shape=(1, 2))
found, exact = (T / 2e-310).data, small / 2e-310
print(f"csr of [0.0 (stored), 1e-310] / 2e-310: {found.tolist()}, dense: {exact.tolist()}")
note("an overflow", np.isnan(found[0]) and np.isinf(found[1]) and exact.tolist() == [0.0, 0.5])
quotient = S / np.array([[49.0]])
quotient = quotient.toarray() if sparse.issparse(quotient) else quotient
equal = np.array_equal(quotient, dense / 49)
print(f"csr / np.array([[49.0]]): equal to dense / 49: {equal}")
note("an array of one element", not equal)
print(f"changed: {', '.join(changed)}" if changed else "as described")
sys.exit(bool(changed))
PROGRAM
