"""Compiling from several threads: one lock beside LLVM's machines, for all `Programs`."""

from __future__ import annotations

import subprocess
import sys

import pytest

COMPILED = """
import os, signal, sys, threading, warnings
from itertools import product
import numpy as np
import tenfold as tn
from tenfold.jit.compiler import compile_ir
from tenfold.jit.program import Programs, source_of
from tenfold.ops.arithmetic import add, subtract
from tenfold.schedule.generic_elementwise import GenericElementwise
from tenfold.schedule.target import target_of

LEVELS = 0, 2
tn.set_options(cache=False)
loops = []
for op, dtype, steps in product((add, subtract), ("f4", "i8"), ("11", "s1")):
    operand = np.dtype(dtype)
    inputs = ((operand, False),) * 2
    loops.append(GenericElementwise(op, (), inputs, (operand,) * 2, operand, steps))
failures = []

def guarded(work):
    try:
        work()
    except BaseException as error:
        failures.append(error)

def start(*works):
    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    return threads

def compile_loops(programs):
    for loop, level in product(loops, LEVELS):
        programs.compile(loop, "native", optimised=level > 0)

def compile_texts():
    for loop, level in product(loops, LEVELS):
        compile_ir(source_of(loop, target_of("native")), "native", level)
"""
PROGRAMS = """
for thread in start(*(lambda: compile_loops(Programs()) for _ in range(4))):
    thread.join()
print(failures)
"""
TEXTS = """
for thread in start(lambda: compile_loops(Programs()), compile_texts, compile_texts):
    thread.join()
print(failures)
"""
FORKS = """
warnings.simplefilter("ignore", DeprecationWarning)
shared = Programs()
threads = start(*(lambda: compile_loops(Programs()) for _ in range(2)))
codes = []
while any(thread.is_alive() for thread in threads) or not codes:
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a child that waits for a lost thread ends by this
        shared.compile(loops[0], "native", optimised=True)
        os._exit(0)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(failures + [code for code in codes if code])
"""


@pytest.mark.parametrize("work", [PROGRAMS, TEXTS, FORKS], ids=["programs", "texts", "forks"])
def test_threads_compile_at_once_whatever_cache_they_compile_for(work: str) -> None:
    done = subprocess.run(  # two threads at one machine would abort this process
        [sys.executable, "-c", COMPILED + work],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout == "[]\n"
