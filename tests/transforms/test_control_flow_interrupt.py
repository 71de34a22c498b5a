"""Loops that do not end: Ctrl-C in a wait ends them, and so does the end of the interpreter."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

PATIENCE = 100  # seconds; a hang fails, and nothing else does
ENDLESS = """
import os, signal, sys, threading, time
import tenfold as tn
from tenfold import _native
from tenfold.submission import wait_idle

n = int(sys.argv[1])
x = tn.while_loop(lambda s: s[0] >= 0, lambda s: (s[0] + 1, tn.cos(s[1])), (0, tn.ones(n)))[1]

def launches():
    return _native.read_counters()["launches"]

def wait_for_steps():
    begun, end = launches(), time.monotonic() + 0.3
    while launches() < begun + 100 and time.monotonic() < end:  # one launch may be many steps
        time.sleep(1e-3)
"""
INTERRUPTED = """
def interrupt():
    wait_for_steps()  # by now it waits
    os.kill(os.getpid(), signal.SIGINT)

def ask():
    {before}
    try:
        threading.Thread(target=interrupt).start()  # on a busy machine it may interrupt this
        {asks}
        print("not interrupted")
    except KeyboardInterrupt:
        print("interrupted", _native.node_of(x).pending)

ask()
ask()  # it can be asked for again
print(tn.sum(tn.eval(tn.ones((300, 300)) * 2)).item())
now = launches()
wait_idle()  # a loop that ran on would keep this waiting
print(launches() - now)
"""
ENDED = """
from tenfold.engine import engine
engine.EXIT_SECONDS = 0.1
class Endless(tn.Operator):
    pure = True
    def run(self):
        return x.wait()

{asks}
wait_for_steps()
print("the end", flush=True)
"""


def run(program: str, n: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", ENDLESS + textwrap.dedent(program), str(n)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize(
    ("before", "asks", "n"),
    [
        ("", "x.wait()", 3),
        ("", "(x + 1).tolist()", 20_000),
        ("tn.eval(x)", "(x + 1).tolist()", 3),
        ("tn.eval(x)", "x.wait()", 20_000),
    ],
)
def test_an_interrupt_ends_a_loop_and_nothing_is_lost(before: str, asks: str, n: int) -> None:
    process = run(INTERRUPTED.format(before=before, asks=asks), n)
    assert process.stdout.split("\n")[:2] == ["interrupted True"] * 2, process.stderr
    assert process.stdout.split("\n")[2:4] == ["180000.0", "0"]
    assert process.stderr == ""
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("asks", "n"),
    [
        ("threading.Thread(target=x.wait, daemon=True).start()", 20_000),
        ("tn.eval(x)", 3),
        ("handle = tn.engine().push(Endless())", 20_000),
        ("handle = tn.engine().push(Endless())", 3),
    ],
)
def test_the_interpreter_ends_while_a_loop_runs(asks: str, n: int) -> None:
    process = run(ENDED.format(asks=asks), n)
    assert process.stdout == "the end\n", process.stderr
    assert process.returncode == 0, process.stderr
