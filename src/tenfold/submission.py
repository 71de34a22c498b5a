"""Asynchronous evaluation (`tn.eval`): submits large arrays to an engine and returns at once.

`eval` computes small arrays directly, which is faster than waking a thread. It submits large arrays
to a separate engine, which computes submissions in order. A reader of a pending value waits for its
submission (`native/ir/submission.h`).

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
"""Limit of pending submissions; a further one is computed by its caller."""


def eval(*arrays: Array) -> Any:  # noqa: A001  # the settled public name
    """Start computing arrays together and return at once: the array, or a tuple of several.

    Shared subexpressions are computed once. Another thread computes large arrays, under the options
    of this call and in the order of the calls. An error that depends on values is raised where a
    caller waits. Raises TypeError for an argument that is not an Array.

    >>> import tenfold as tn
    >>> x = tn.asarray([3.0, 4.0])
    >>> total, largest = tn.eval(tn.sum(x), tn.max(x))
    >>> total.item()
    7.0
    """
    if len(arrays) == 1 and _native.try_compute(arrays[0]):
        return arrays[0]
    nodes = _native.pending_of(arrays)
    if isinstance(nodes, int):
        rule = f"argument {nodes + 1} is {type(arrays[nodes]).__name__}, not an Array"
        raise TypeError(message("eval", rule, remedy="pass Arrays one by one: tn.eval(x, y)"))
    if nodes and not (_compute_if_small(nodes) or _queue.submit(nodes)):
        pipeline.compute(nodes)  # each waiter raises the failure itself
    return arrays[0] if len(arrays) == 1 else arrays


def _compute_if_small(nodes: Nodes) -> bool:
    """Compute nodes at once if they are small, or inside an operator; return whether it did."""
    is_small = (
        _native.are_all_small(nodes) or _native.inside_operator() or EXTERNAL_BUFFER_LOCK.enabled
    )
    if is_small:
        pipeline.compute(nodes)
    return is_small


class SubmittedEvaluation(Operator):
    """A submission: nodes, and the context with the options for computing them."""

    def __init__(self, nodes: Nodes, context: Context) -> None:
        self.nodes, self.context = nodes, context

    def run(self) -> None:
        """Compute the nodes and wake the waiting threads; they report a failure themselves."""
        if not _queue.starts(self):
            return
        _native.run_submissions_here(True)
        try:
            self.context.run(pipeline.compute, self.nodes)
        except KeyboardInterrupt:
            pass  # the waiting thread raises it; a later reader computes the nodes again
        finally:
            _native.run_submissions_here(False)
            _queue.end(self)


class SubmissionQueue:
    """Pending submissions and the engine that runs them."""

    def __init__(self) -> None:
        self._lock = fork_safe_lock.lock()  # protects all fields below
        self._engine: Engine | None = None
        self._pending: set[SubmittedEvaluation] = set()
        self._not_started: set[SubmittedEvaluation] = set()  # of them
        self._open = True

    def submit(self, nodes: Nodes) -> bool:
        """Submit nodes; False if too many are pending, or the interpreter exits."""
        with self._lock:
            if not self._open or len(self._pending) >= MAX_PENDING:
                return False
            if self._engine is None:
                self._engine = Engine(threads=1)
            evaluation = SubmittedEvaluation(nodes, copy_context())  # with rules and options
            try:
                self._pending.add(evaluation)
                self._not_started.add(evaluation)
                _native.submit(nodes)
                self._engine.push(evaluation)
            except BaseException:  # no thread may wait for a submission that will not run
                if self.starts(evaluation):  # a signal may come after the push
                    self.end(evaluation)
                raise
        return True

    def starts(self, evaluation: SubmittedEvaluation) -> bool:
        """Whether a submission has not started yet; from now on it has."""
        try:
            self._not_started.remove(evaluation)
        except KeyError:
            return False
        return True

    def end(self, evaluation: SubmittedEvaluation) -> None:
        """End a submission."""
        _native.end_submission(evaluation.nodes)
        self._pending.discard(evaluation)

    def wait_idle(self) -> None:
        """Wait until no submission is pending."""
        engine = self._engine
        if engine is not None and self._pending and not _native.inside_operator():
            engine.flush()

    def reset_after_fork(self) -> None:
        """Drop all submissions: in the child of a fork no thread computes them."""
        self._engine, self._pending, self._not_started = None, set(), set()
        _native.forget_submissions()

    def close(self) -> None:
        """Accept no more submissions, so that callers compute them, and drop those not started."""
        self._open = False
        if self._engine is not None:
            self._engine.shutdown(wait=False)
        _native.forget_submissions()


def wait_idle() -> None:
    """Wait until all submissions have ended, for a caller that counts running work."""
    _queue.wait_idle()


_queue = SubmissionQueue()
os.register_at_fork(after_in_child=_queue.reset_after_fork)
atexit.register(_queue.close)
