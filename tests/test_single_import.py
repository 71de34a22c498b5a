"""A second import of the package, here or in another interpreter, is refused and does no harm."""

from __future__ import annotations

import subprocess
import sys

FIRST = """
import importlib, sys
import numpy as np
import tenfold as tn

x = tn.asarray([1.0, 2.0])
pending = x + 1

def remove(*names):
    for name in [*sys.modules]:
        if name in names or (not names and name.partition(".")[0] == "tenfold"):
            del sys.modules[name]

def refused(module, act=importlib.import_module):
    try:
        act(module)
    except ImportError as error:
        return "second import would break" in str(error) and "remedy" in str(error)
    return False
"""
AFTERWARDS = """
import tenfold
assert tenfold is tn
assert pending.tolist() == [2.0, 3.0]
assert "Array" in repr(x) and tn.sum(x * 3).item() == 9.0
assert tn.function(lambda a: a[0] + a)(x).tolist() == [2.0, 3.0]
assert tn.scan(lambda c, y: (c + y, c), 0.0, x)[0].item() == 3.0
assert tn.engine().push(tn.operators.add, x, 1.0).get().tolist() == [2.0, 3.0]
assert np.asarray(x @ x) == 5.0 and isinstance(x, tn.Array)
import tenfold.numpy
assert tenfold.numpy.array([1.0]).reshape(1, 1).shape == (1, 1)
"""
IN_ANOTHER_INTERPRETER = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
run = getattr(interpreters, "exec", None) or interpreters.run_string
CODE = '''
import sys
sys.path[:] = PATH
try:
    import tenfold
except ImportError:
    refused = True
assert refused
'''
for _ in range(2):
    other = interpreters.create()
    failure = run(other, CODE.replace("PATH", repr(sys.path)))
    assert failure is None, failure
    interpreters.destroy(other)
"""


ACTS = (
    "remove(); assert refused('tenfold')",
    "remove(); assert refused('tenfold.numpy')",
    "remove('tenfold'); assert refused('tenfold')",
    "remove('tenfold', 'tenfold._native'); assert refused('tenfold')",
    "remove('tenfold.core.op'); assert refused('tenfold.core.op')",
    "saved = {**sys.modules}; remove(); refused('tenfold'); sys.modules.update(saved)",
    "assert refused(tn, importlib.reload)",
    "assert refused(sys.modules['tenfold.pipeline'], importlib.reload)",
)
EACH_IN_A_CHILD = """
import os
for act in ACTS:
    child = os.fork()
    if child == 0:
        exec(act)
        break
    assert os.waitpid(child, 0)[1] == 0, act
"""


def run(program: str) -> None:
    command = [sys.executable, "-c", FIRST + program + AFTERWARDS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_second_import_is_refused_and_the_first_goes_on() -> None:
    run(EACH_IN_A_CHILD.replace("ACTS", repr(ACTS)))


def test_another_interpreter_is_refused_and_the_first_goes_on() -> None:
    run(IN_ANOTHER_INTERPRETER)
