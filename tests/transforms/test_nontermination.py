"""What never ends by itself ends with a clear error, before memory is gone or the stack overflows.

Each program runs in a process of its own, whose memory is limited.
"""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest

pytestmark = pytest.mark.cpu

MOST = 2 << 30
"""Bytes of address space that a program may have."""

BEGIN = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({most}, {most}))
import tenfold as tn

x = tn.ones(4)
step = tn.function(lambda x: tn.tanh(x) + 1)

def peak():  # MiB of this program: what getrusage says has that of who started it, too
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) >> 10 for line in status if line.startswith("VmHWM"))

def limit(mebibytes_left):  # of address space; without a number: what it was
    with open("/proc/self/status") as status:
        size = next(int(line.split()[1]) for line in status if line.startswith("VmSize"))
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    soft = hard if mebibytes_left is None else (size << 10) + (mebibytes_left << 20)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))

def raised(function, *given):
    try:
        function(*given)
    except Exception as error:
        print(type(error).__name__, error)
    else:
        print("nothing was raised")

"""
END = """
limit(None)
print(tn.all(step(tn.zeros(4)) == 1).item())  # all goes on
"""


def told(program: str) -> list[str]:
    """Run a program; return what it printed."""
    text = BEGIN.format(most=MOST) + dedent(program) + END
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert lines[-1] == "True"
    return lines[:-1]


def test_recursion_in_python_is_pythons_error() -> None:
    (line, value) = told("""
        def endless(x):
            return endless(step(x))
        raised(endless, x)
        def wide(x):
            return step(wide(x))
        y = step(x)
        try:
            wide(y)
        except RecursionError:
            print(tn.all(step(y) == step(step(x))).item())  # nothing is lost
    """)
    assert line.startswith("RecursionError maximum recursion depth exceeded")
    assert value == "True"


@pytest.mark.parametrize("limit", [1000, 10**6])
def test_a_function_that_calls_itself_with_ever_new_types_or_numbers_is_refused(limit: int) -> None:
    lines = told(f"""
        sys.setrecursionlimit({limit})
        @tn.function
        def longer(x):
            return tn.sum(longer(tn.concat([x, tn.ones(1)])))
        @tn.function
        def numbered(x, n):
            return numbered(x * n, n + 1)
        @tn.function
        def first(x, n):
            return second(x, n + 1)
        @tn.function
        def second(x, n):
            return first(x, n + 1)
        raised(longer, x)
        raised(numbered, x, 0)
        raised(first, x, 0)
        @tn.function
        def doubled(x):
            return doubled(tn.concat([x, x]))
        raised(doubled, x)
        @tn.function
        def ends(x, n):
            return ends(x + 1, n - 1) if n else x
        print(ends(x, 100).tolist())
        raised(ends, x, 10000)
        print(ends(x, 50).tolist())
    """)
    names = [line.split(":")[0] for line in lines if "Error" in line]
    assert names == [
        "RunError longer",
        "RunError numbered",
        "RunError first",
        "ShapeError concat",
        "RunError ends",
    ]
    assert sum("128 functions are traced inside one another" in line for line in lines) == 4
    values = [line for line in lines if line.startswith("[")]
    assert values == ["[101.0, 101.0, 101.0, 101.0]", "[51.0, 51.0, 51.0, 51.0]"]


def test_a_loop_that_never_looks_stays_small() -> None:
    (first, most, value) = told("""
        h = x
        for _ in range(150_000):
            h = step(h)
        print(peak())
        for _ in range(350_000):
            h = step(h)
        print(peak())
        print(h.tolist())
    """)
    assert int(most) < int(first) + 40, "MiB"
    assert value.startswith("[1.96117975137")


def test_ever_new_numbers_keep_little() -> None:
    (most,) = told("""
        scaled = tn.function(lambda x, n: tn.tanh(x) * n)
        for n in range(3000):
            h = scaled(x, n)
        h.wait()
        print(peak())
    """)
    assert int(most) < 600, "MiB"


def test_memory_that_is_gone_is_an_error_and_comes_back() -> None:
    (line,) = told("""
        import itertools
        held = []
        step(x).wait()  # the compiler is loaded
        limit(300)
        def endless():
            for _ in itertools.count():
                held.append(step(x))
        try:
            endless()
        except MemoryError as error:
            first = held[0]
            del held
            print("MemoryError", first.tolist())
    """)
    assert line.startswith("MemoryError [1.76159")


def test_a_kernel_without_memory_to_compile_it_is_an_error_and_comes_back() -> None:
    lines = told("""
        tn.set_options(cache=False)
        limit(100)
        raised((tn.gelu(x) * 2).wait)  # LLVM cannot be loaded
        limit(None)
        print((tn.gelu(x) * 2).tolist())
        limit(40)
        y = tn.tanh(x) / 3 + tn.exp(x)
        raised(y.wait)
        limit(None)
        print(y.tolist())
    """)
    assert lines[0].startswith("MemoryError compile: 256 MiB of address space are not free")
    assert lines[1].startswith("[1.68268")
    assert lines[2].startswith("MemoryError compile: 64 MiB of address space are not free")
    assert lines[3].startswith("[2.97214")


@pytest.mark.usefixtures("fused_multiply_add")
def test_arrays_that_cannot_be_computed_for_memory_are_an_error() -> None:
    (line,) = told("""
        rows = [step(tn.ones(1 << 20) * i) for i in range(1000)]
        rows[0].wait()  # the kernel is compiled
        limit(400)
        raised(lambda: [row.wait() for row in rows] and tn.eval(*rows))
        del rows
    """)
    assert line.startswith("MemoryError")
