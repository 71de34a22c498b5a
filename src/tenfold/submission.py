"""Asynchronous evaluation (`tn.eval`): submits large arrays to an engine while the program goes on.

`eval` computes small arrays at once: that takes less than waking a thread. It submits large ones to
an engine of their own, which computes one submission after the other, in order. A reader of a value
that is still being computed waits for its submission (`native/engine/submission.h`).

>>> import tenfold as tn
>>> x = eval(tn.ones((1000, 1000)) * 2)  # returns at once
>>> tn.sum(x).item()
2000000.0
"""

from __future__ import annotations

import atexit
import os
from contextvars import Context, copy_context
from typing import Any

from tenfold import _native, pipeline
from tenfold._native import Array, Nodes
from tenfold.engine.engine import Engine
from tenfold.engine.operators import Operator
from tenfold.errors import message
from tenfold.jit import fork_safe_lock
from tenfold.storage.rw_lock import EXTERNAL_BUFFER_LOCK

MAX_PENDING = 64
"""Submissions that may wait; the caller of one more computes it itself."""


def eval(*arrays: Array) -> Any:  # noqa: A001  # the settled public name
    """Have arrays computed together and return at once: the array, or a tuple of several.

    Shared subexpressions are computed once. Another thread computes large arrays meanwhile, under
    the options of this call and in the order of the calls. An error that depends on values is
    raised where a caller waits. Raises TypeError for an argument that is not an Array.

    >>> import tenfold as tn
    >>> x = tn.asarray([3.0, 4.0])
    >>> total, largest = tn.eval(tn.sum(x), tn.max(x))
    >>> total.item()
    7.0
    """
    if len(arrays) == 1 and _native.replayed(arrays[0]):
        return arrays[0]
    nodes = _native.pending_of(arrays)
    if isinstance(nodes, int):
        rule = f"argument {nodes + 1} is {type(arrays[nodes]).__name__}, not an Array"
        raise TypeError(message("eval", rule, remedy="pass Arrays one by one: tn.eval(x, y)"))
    if nodes and not (_compute_if_small(nodes) or _queue.takes(nodes)):
        pipeline.compute(nodes)  # a failure is raised afresh to each who waits
    return arrays[0] if len(arrays) == 1 else arrays


def _compute_if_small(nodes: Nodes) -> bool:
    """Compute what is to be computed here and now; whether it was."""
    here = _native.are_small(nodes) or _native.inside_operator() or EXTERNAL_BUFFER_LOCK.enabled
    if here:
        pipeline.compute(nodes)
    return here


class SubmittedEvaluation(Operator):
    """What is submitted: nodes, and the context whose options they are computed under."""

    def __init__(self, nodes: Nodes, context: Context) -> None:
        self.nodes, self.context = nodes, context

    def run(self) -> None:
        """Compute the nodes and wake the waiting threads; they report a failure themselves."""
        _native.run_submissions_here(True)
        try:
            self.context.run(pipeline.compute, self.nodes)
        except KeyboardInterrupt:
            pass  # the thread that waited was interrupted and told; a later reader computes anew
        finally:
            _native.run_submissions_here(False)
            _native.end_submission(self.nodes)
            _queue.ended()


class SubmissionQueue:
    """Submissions that have not ended, and the engine that runs them."""

    def __init__(self) -> None:
        self._lock = fork_safe_lock.lock()  # protects all below
        self._engine: Engine | None = None
        self._waiting = 0
        self._open = True

    def takes(self, nodes: Nodes) -> bool:
        """Submit nodes; False where there are too many already, or the interpreter ends."""
        with self._lock:
            if not self._open or self._waiting >= MAX_PENDING:
                return False
            if self._engine is None:
                self._engine = Engine(threads=1)
            _native.submit(nodes)
            self._waiting += 1
            try:
                self._engine.push(
                    SubmittedEvaluation(nodes, copy_context())
                )  # rules too, not options alone
            except BaseException:  # no thread may wait for a submission that will not run
                self._waiting -= 1
                _native.end_submission(nodes)
                raise
        return True

    def ended(self) -> None:
        """One has ended."""
        with self._lock:
            self._waiting -= 1

    def settle(self) -> None:
        """Wait for the end of all."""
        engine = self._engine
        if engine is not None and self._waiting and not _native.inside_operator():
            engine.flush()

    def begin_anew(self) -> None:
        """In the child of a fork no other thread computes the parent's submissions."""
        self._engine, self._waiting = None, 0
        _native.forget_submissions()

    def close(self) -> None:
        """Accept no more submissions: each thread computes its own. Drop those not begun."""
        self._open = False
        if self._engine is not None:
            self._engine.shutdown(wait=False)
        _native.forget_submissions()


def wait_idle() -> None:
    """Wait until all submissions have ended, for a caller that counts running work."""
    _queue.settle()


_queue = SubmissionQueue()
os.register_at_fork(after_in_child=_queue.begin_anew)
atexit.register(_queue.close)
