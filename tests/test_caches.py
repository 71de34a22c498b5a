"""Caches: what they keep and what goes first, how all are listed and emptied, and what of compiled
code stays while somebody holds it.
"""

from __future__ import annotations

import gc
import itertools
import re
import resource
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native, caches
from tenfold.caches import LruCache
from tenfold.jit.program import PROGRAMS

LAST_PLAN = 1 << 16
"""Bytes of code that a plan of these tests takes at most."""


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    """Nothing is kept."""
    loaded()
    tn.trim()
    yield
    tn.trim()


def loaded() -> int:
    """The bytes of code, once no thread that has compiled holds what it made."""
    for thread in threading.enumerate():
        if thread.name == "tenfold background":
            thread.join()
    gc.collect()
    return _native.loaded_code_bytes()


def entries() -> dict[str, int]:
    return {each.name: each.entries for each in caches.facts()}


def work() -> list[float]:
    """Fill most of the caches."""
    x = tn.asarray(np.arange(12.0).reshape(3, 4))
    made = [x * 2 + x[1:2], tn.einsum("ij,kj->ik", x, x), tn.concat([x, x], axis=1), x.T @ x]
    y = tn.asarray(np.zeros((4, 5)))
    y[1:3] = 2.5
    y[..., ::2][0] = 3
    made += [y, tn.linalg.solve(tn.eye(3) * 2, x), tn.sum(x, axis=0, keepdims=True) * 3.5]
    with tn.options(tier=1):
        made += [tn.exp(x) / 3.1, tn.asarray(np.ones((5, 7))) - 1.5]
    return [float(np.asarray(each).sum()) for each in made]


def test_recently_used_entries_stay() -> None:
    kept: LruCache[int, str] = LruCache(100)
    kept[0] = "asked for"
    kept[1] = "never"
    for number in range(2, 1_000):
        kept[number] = "new"
        assert kept.get(0) == "asked for"
        assert len(kept) <= 100
    assert kept.get(1) is None
    assert 999 in kept
    kept.clear()
    assert len(kept) == 0
    assert 0 not in kept


def test_first_entry_of_a_key_stays_unless_it_is_replaced() -> None:
    kept: LruCache[str, int] = LruCache(4)
    assert [kept.setdefault("one", 1), kept.setdefault("one", 2)] == [1, 1]
    for name in ("two", "three", "four"):
        kept[name] = 0
        assert kept.setdefault("one", 3) == 1
    kept["one"] = 5
    assert kept.get("one") == 5


def test_threads_keep_and_ask_at_once() -> None:
    kept: LruCache[int, int] = LruCache(16)
    wrong = []

    def use(seed: int) -> None:
        for number in range(20_000):
            key = number * seed % 40
            found = kept.get(key)
            if found not in (None, key):
                wrong.append((key, found))
            kept[key] = key

    threads = [threading.Thread(target=use, args=(seed,)) for seed in (1, 3, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(kept) <= 16


def test_every_cache_has_a_name_and_a_cap_which_it_keeps() -> None:
    for _ in range(3):
        work()
    found = [*caches.facts()]
    assert len({each.name for each in found}) == len(found) > 20
    for each in found:
        assert 0 <= each.entries <= each.capacity, each
        assert each.capacity > 0, each
        assert len(each.reason.split()) >= 3, each


def test_trimming_empties_every_cache_and_changes_no_result() -> None:
    elsewhere = loaded()  # what others hold, as operations do their loops
    before = work()
    filled, code = entries(), loaded()
    assert sum(count > 0 for count in filled.values()) >= 15
    tn.trim()
    left = {name: count for name, count in entries().items() if count}
    assert not left
    # another thread has its last plan until it computes again
    assert loaded() <= elsewhere + (code - elsewhere) // 2 + LAST_PLAN
    assert work() == before


def resident() -> int:
    """Return the bytes of memory that the process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.parametrize("length", [60, 5_000, 40_000])
def test_trimming_returns_its_bytes_to_the_system(length: int) -> None:
    arrays = [tn.full(length, float(i)).wait() for i in range(6_000_000 // (length + 60))]
    arrays = arrays[::100]  # between freed ones
    before = resident()
    returned = tn.trim()
    assert returned > 20_000_000
    assert before - resident() >= 0.9 * returned
    assert arrays[-1][-1] == 100.0 * (len(arrays) - 1)


def test_trimming_lets_go_of_code_that_nobody_needs() -> None:
    with tn.options(tier=1):
        x, sizes = tn.asarray(np.arange(10.0)), []
        for _ in range(5):
            (x * 3.25 - 1.75).wait()
            sizes.append(loaded())
            tn.trim()
        assert max(sizes) - sizes[0] <= LAST_PLAN
        assert loaded() - sizes[0] <= LAST_PLAN
        assert (x * 3.25 - 1.75).tolist() == [i * 3.25 - 1.75 for i in range(10)]


def test_code_that_was_forgotten_stays_for_the_plans_that_run_it() -> None:
    x, before = tn.asarray(np.arange(10.0)), loaded()

    def computed(number: float) -> np.ndarray:
        """A formula that no other test has: its code is loaded here."""
        return np.asarray(tn.expm1(x / number) * tn.log1p(x) - tn.asinh(x * number) * tn.tanh(x))

    with tn.options(tier=1):
        first = computed(3.25)
        PROGRAMS.by_kernel.clear()
        assert loaded() > before
        with tn.profile() as p:
            other, again = computed(4.75), computed(3.25)
    n = np.arange(10.0)
    wanted = np.expm1(n / 4.75) * np.log1p(n) - np.arcsinh(n * 4.75) * np.tanh(n)
    assert p.compiles == 0
    assert again.tobytes() == first.tobytes()
    np.testing.assert_allclose(other, wanted, rtol=1e-13)


def test_more_programs_than_are_kept_are_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PROGRAMS.by_kernel, "capacity", 8)
    x = np.arange(7.0)
    operations = [tn.sin, tn.cos, tn.exp, tn.tanh, tn.sqrt, tn.square, tn.negative, tn.abs]

    def run() -> list[bytes]:
        with tn.options(tier=0):
            pairs = itertools.product(operations, repeat=2)
            return [np.asarray(one(abs(other(tn.asarray(x))))).tobytes() for one, other in pairs]

    first = run()
    assert len(PROGRAMS.by_kernel) <= 8
    assert run() == first  # by plans
    _native.clear_plan_cache()
    caches.clear_all()
    assert run() == first


def test_code_goes_while_other_threads_compute() -> None:
    x = np.random.default_rng(0).random(50_000)
    wanted = np.sqrt(x * 1.5 + 0.25)
    over, wrong = threading.Event(), []

    def compute() -> None:
        while not over.is_set():
            made = tn.sqrt(tn.asarray(x) * 1.5 + 0.25)
            if np.asarray(made).tobytes() != wanted.tobytes():
                wrong.append(made)

    threads = [threading.Thread(target=compute) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(40):
        tn.trim()
        PROGRAMS.by_kernel.clear()
    over.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_whatever_keeps_answers_is_in_the_list() -> None:
    """`functools.cache` has no end: it is for what has few arguments, and says so here."""
    tables = {
        "cli/warming.py",  # a command's own
        "runtime/blas/routines.py",  # routines of a library
        "jit/ptx.py",  # processors of NVIDIA by their names
        "jit/target_key.py",  # processors by their names in the settings
        "runtime/devices/cuda.py",  # no arguments
        "runtime/lapack/drivers.py",
        "jit/llvm_bindings.py",  # no arguments
        "dtypes.py",  # pairs of dtypes
        "array/array_function.py",  # functions of NumPy
        "namespace/surface.py",  # operations
        "numpy/by_numpy.py",  # classes of errors
        "ops/erfc.py",  # no arguments
        "ops/fft.py",  # no arguments
        "out_of_core/partial_folds.py",  # reductions, by the dtypes of their operands
        "schedule/generic_elementwise.py",  # dtypes
        "schedule/target.py",  # processors, and numbers of threads
    }
    root = Path(tn.__file__).parent
    found = set()
    for path in root.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(root).as_posix()
        if re.search(r"^\s*@(functools\.)?cache$", text, re.MULTILINE):
            found.add(name)
        if name != "caches.py":
            assert "lru_cache" not in text, f"{name}: keep answers by tenfold.caches"
    assert found == tables
