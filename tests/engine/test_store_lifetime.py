"""Stores in a loop: one that is dropped leaves nothing behind, also not in what a fork acquires."""

from __future__ import annotations

import gc
import os
import threading
import tracemalloc

import tenfold as tn
from tenfold.jit import fork_safe_lock

STORES = 500


def bytes_kept_by_stores(engine: tn.Engine) -> int:
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(STORES):
        engine.store().push("key", 1.0)
    engine.flush()
    gc.collect()
    return tracemalloc.get_traced_memory()[0] - before


def test_stores_that_are_dropped_keep_no_memory() -> None:
    with tn.Engine(threads=1) as engine:
        tracemalloc.start()
        try:
            bytes_kept_by_stores(engine)  # caches fill
            assert bytes_kept_by_stores(engine) < 20 * STORES
        finally:
            tracemalloc.stop()


def test_a_fork_acquires_locks_that_exist_and_a_child_finds_them_free() -> None:
    locks = [fork_safe_lock.lock() for _ in range(3)]
    held, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with locks[1]:
            held.set()
            go_on.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    del locks[0]
    threading.Timer(0.01, go_on.set).start()  # the fork waits for the thread
    child = os.fork()
    if child == 0:
        taken = all(each.acquire(blocking=False) for each in locks)
        os._exit(0 if taken else 1)
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert all(each.acquire(blocking=False) for each in locks)
    for each in locks:
        each.release()
