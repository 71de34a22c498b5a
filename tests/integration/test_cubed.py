"""cubed, unmodified: its chunks are computed with Tenfold, or are Arrays.

It is a part of the extra `[integration]`: see `test_other_libraries.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("cubed")

PROGRAM = """
import sys
import cubed
import cubed.array_api as xp
import numpy as np
import tenfold as tn

spec = cubed.Spec(work_dir=sys.argv[1], allowed_mem="200MB")
values = np.arange(120.0).reshape(12, 10)
x = cubed.from_array(values, chunks=(4, 5), spec=spec)
f = tn.function(lambda block: tn.tanh(block) * 2 + 1)
y = cubed.map_blocks(lambda block: np.asarray(f(tn.asarray(block))), x, dtype=x.dtype)
np.testing.assert_allclose(np.asarray(y.compute()), np.tanh(values) * 2 + 1)
for operation, expected in (
    (xp.exp(-x) + x, np.exp(-values) + values),
    (xp.sum(x, axis=0), values.sum(axis=0)),
    (xp.mean((x - xp.mean(x)) ** 2), values.var()),
    (xp.argmax(x, axis=1), values.argmax(axis=1)),
    (xp.matmul(x, xp.permute_dims(x, (1, 0))), values @ values.T),
    (xp.cumulative_sum(x, axis=0), values.cumsum(axis=0)),
    (xp.where(x > 3, x, 0), np.where(values > 3, values, 0)),
):
    result = operation.compute()
    np.testing.assert_allclose(np.asarray(result), expected)
print(type(result).__name__)
"""


@pytest.mark.parametrize(("backend", "kind"), [("numpy", "ndarray"), ("tenfold", "Array")])
def test_cubed_computes_with_tenfold(backend: str, kind: str, tmp_path: Path) -> None:
    environment = {**os.environ, "CUBED_BACKEND_ARRAY_API_MODULE": backend}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.split() == [kind], done.stderr
