"""After Ctrl-C at any point of a call the next use works: nothing stays locked or switched.

Each run is interrupted at another point.
"""

import threading
from functools import partial
from itertools import takewhile

import numpy as np
import pytest

import tenfold as tn
from interruption import interrupt
from tenfold import settings
from tenfold.core.interpreter import ORIGIN
from tenfold.core.trace_state import TRACE
from tenfold.runtime import timeline
from tenfold.storage.rw_lock import EXTERNAL_BUFFER_LOCK

MAX_POINTS = 5000
LENGTH = 8


class _Program:
    def __init__(self):
        self.memory = np.zeros(LENGTH)
        self.window, self.part = tn.wrap(self.memory), tn.wrap(self.memory[::2])
        self.engine = tn.Engine(threads=1)
        self.x = tn.asarray(np.arange(float(LENGTH)))
        self.large = tn.asarray(np.ones(70_000))
        self.function = tn.function(lambda a: a * 2 + 1)
        u = tn.rules.variables("u")[0]
        self.rule = tn.Rule("halved", u / 2.0, u * 0.5)
        self.value, self.checks = 0.0, 0

    def write(self):
        self.window[1:3] += 1
        self.window[0] = self.part[1] * 2

    def write_under_readers(self):
        reader = self.window[1:5] * 1
        shown = self.window[2:4]
        self.part[1:3] = 7
        freed = tn.wrap(self.memory[1:])
        later = freed + shown.sum()
        del freed
        self.window[3] = 5
        assert tn.sum(reader + later[:4]).item() is not None

    def read(self):
        (self.window + 1).wait()
        self.window.tolist()

    def trace(self):
        tn.function(lambda a: a * 2 + self.value)(self.x).wait()
        tn.vmap(lambda a: a + 1)(self.x).wait()

    def set_options(self):
        with tn.options(fast=True, fuse=False), tn.rules.using(self.rule):
            (self.x / 2.0).wait()

    def profile(self):
        with tn.profile():
            (self.x + 1).wait()

    def hold(self):
        with self.engine.hold():
            handle = self.engine.push(tn.operators.add, self.x, 1.0)
        handle.get()

    def submit(self):
        self.value += 1
        tn.eval(self.large * self.value + 1)[0].item()

    def use(self):
        """Use everything, and compare the values."""
        self.value += 1
        self.window[0] = self.value
        self.part[1] = self.value + 1
        assert self.memory[[0, 2]].tolist() == [self.value, self.value + 1]
        assert self.window[:3:2].tolist() == [self.value, self.value + 1]
        assert (self.window + 1)[0].item() == self.value + 1
        assert self.part.tolist() == self.memory[::2].tolist()
        assert self.function(self.x).tolist()[:3] == [1.0, 3.0, 5.0]
        assert self.engine.push(tn.operators.add, self.x, 1.0).get(timeout=30)[2].item() == 3.0
        assert (self.large * self.value)[5].item() == self.value

    def check(self):
        """Check that nothing is switched or locked, and use everything here and in a thread."""
        assert TRACE.get() is None
        assert ORIGIN.get() is None
        assert not EXTERNAL_BUFFER_LOCK.is_reading()
        assert not timeline.is_recording()
        assert settings.get("fast") is False
        assert self.rule not in tn.rules.list()
        self.use()
        self.checks += 1
        if self.checks % 16 == 1:
            thread = threading.Thread(target=self.use, daemon=True)
            thread.start()
            thread.join(60)
            assert not thread.is_alive(), "another thread hangs"


STEPS = {
    _Program.read: 1,
    _Program.write: 7,
    _Program.write_under_readers: 3,
    _Program.trace: 61,
    _Program.set_options: 1,
    _Program.profile: 1,
    _Program.hold: 1,
    _Program.submit: 1,
}
"""The actions, and the distance of the points at which each is interrupted."""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of a destructor
@pytest.mark.parametrize("action", STEPS, ids=lambda action: action.__name__)
def test_the_next_use_works_after_an_interrupt_at_any_point(action):
    program = _Program()
    action(program)
    program.use()
    points = range(1, MAX_POINTS, STEPS[action])
    run = partial(action, program)
    met = list(takewhile(lambda point: interrupt(run, point, program.check), points))
    assert 5 < len(met) < len(points)
