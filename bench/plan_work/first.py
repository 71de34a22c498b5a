"""The first result of a process: an expression of ten operations on fifty numbers.

Takes nothing; prints as JSON the milliseconds from the first operator to the value, whether
llvmlite was imported, and whether the values are right. A process of its own runs it, with an empty
cache directory or one that another process has filled. `import tenfold` and the arrays come before.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np

import tenfold as tn

OPERATORS = "(a + b) * c - a / b + (c - a) * b - c / (b + 2)"
FUNCTIONS = "xp.where(a > b, (a + b) * c - a / b, xp.sqrt(a * c) + b * 0.5)"
TEXTS = {"operators": OPERATORS, "functions": FUNCTIONS}
"""The expressions of ten operations that all rows have; see warm.py."""

if __name__ == "__main__":
    random = np.random.default_rng(0)
    arrays = {name: random.uniform(0.5, 1.5, 50) for name in "abc"}
    given = {name: tn.asarray(array) for name, array in arrays.items()}
    code = compile(TEXTS[sys.argv[1]], "<expression>", "eval")
    begin = time.perf_counter()
    value = eval(code, {"xp": tn, **given}).wait()
    seconds = time.perf_counter() - begin
    right = np.array_equal(value, eval(code, {"xp": np, **arrays}))
    found = {
        "milliseconds": seconds * 1e3,
        "llvmlite": "llvmlite" in sys.modules,
        "right": bool(right),
    }
    print(json.dumps(found))
