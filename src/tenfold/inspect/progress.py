"""Progress bar: a line on stderr for work that takes long.

Takes a description of the work, the bytes done and the total bytes. Shows a spinner or a bar, only
on a terminal and only after half a second, and clears it when the work ends.

    with Progress() as progress:
        progress.stage("reading a.npz")
        progress.update(512, 1024)
"""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

SHOW_AFTER_SECONDS = 0.5
"""Seconds before anything is shown."""


class Progress:
    """A line that shows the current work; without a terminal it does nothing."""

    def __init__(self) -> None:
        self.lock = threading.Lock()  # the timer starts the display from its own thread
        self.is_stopped = False
        self.bars: Bars | None = None
        self.task: TaskID | None = None
        self.timer = threading.Timer(SHOW_AFTER_SECONDS, self._show)
        self.timer.daemon = True

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self.bars = _bars()
            self.timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.timer.cancel()
        with self.lock:
            self.is_stopped = True
            if self.bars is not None:
                self.bars.stop()

    def _show(self) -> None:
        with self.lock:
            if self.bars is not None and not self.is_stopped:
                self.bars.start()

    def stage(self, name: str, total: int | None = None) -> None:
        """Begin the next piece of work, with its total bytes if they are known."""
        if self.bars is not None:
            if self.task is not None:
                self.bars.remove_task(self.task)
            self.task = self.bars.add_task(name, total=total)

    def update(self, done: int, total: int) -> None:
        """Set the bytes done and the total bytes."""
        if self.bars is not None and self.task is not None:
            self.bars.update(self.task, completed=done, total=total)

    def advance(self, count: int) -> None:
        """Add to the bytes done."""
        if self.bars is not None and self.task is not None:
            self.bars.advance(self.task, count)


def _bars() -> Bars:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )
    from rich.progress import Progress as Bars

    return Bars(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
