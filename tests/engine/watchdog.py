"""Ends the process when a program hangs, with the program's text and where every thread stands.

Takes the program that runs now, or None. Waits have time limits of their own; this is for what has
none, such as `flush` and the end of an engine.

    WATCHDOG.watch(program)
"""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import time

from program_statements import Program, show

LIMIT = 120.0
"""Seconds that a program may take."""
PERIOD = 1.0


class Watchdog:
    """A thread that looks, once a second, whether the program of now has begun long ago."""

    def __init__(self) -> None:
        self._now: tuple[float, Program] | None = None  # replaced whole: no lock is needed
        self._thread: threading.Thread | None = None

    def watch(self, program: Program | None) -> None:
        """Say which program begins, or with None that it has ended."""
        self._now = None if program is None else (time.monotonic(), program)
        if self._thread is None:
            self._thread = threading.Thread(target=self._look, name="watchdog", daemon=True)
            self._thread.start()

    def _look(self) -> None:

        while True:
            time.sleep(PERIOD)
            now = self._now
            if now is not None and time.monotonic() - now[0] > LIMIT:
                print(f"a program hangs:\n{show(now[1])}", file=sys.__stderr__, flush=True)
                faulthandler.dump_traceback(file=sys.__stderr__)
                os._exit(1)


WATCHDOG = Watchdog()
