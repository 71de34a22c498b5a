"""What every room of the tests shares: the profiles under which Hypothesis looks for examples.

No test fails for being slow: other work on the machine is no fault of ours. `make fuzz` tries
100,000 examples.

Of a grid that is marked `exhaustive` a run takes the cases that `sample` below chooses, of a loop
that asks the fixture `part` one case in `PART`; all of them are for `pytest --grids=all`, which is
`make test-all`. With `--one-in=3` it takes a third of all tests, another one for each `--seed`;
files and folders that `--whole` names are taken whole.

Kernels are not kept on disk, unless a test says so or TENFOLD_CACHE does: what one test compiles,
another that counts compiling would find. Where they are kept is no place of the user's.

Each scheduling pass is verified, and every kernel that is planned (`schedule/passes.py`).
"""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any

import hypothesis
import pytest

# A shell starts its background jobs with SIGINT ignored; tests of interrupts need Python's handler.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Before tenfold is imported, and for the processes that tests start.
os.environ.setdefault("TENFOLD_CACHE", "0")
os.environ.setdefault("TENFOLD_VERIFY_KERNELS", "1")
if "TENFOLD_CACHE_DIR" not in os.environ:
    os.environ["TENFOLD_CACHE_DIR"] = tempfile.mkdtemp(prefix="tenfold-tests-")
    atexit.register(shutil.rmtree, os.environ["TENFOLD_CACHE_DIR"], ignore_errors=True)

hypothesis.settings.register_profile(
    "tests",
    max_examples=40,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    print_blob=True,
)
hypothesis.settings.register_profile(
    "fuzz", hypothesis.settings.get_profile("tests"), max_examples=100_000
)
hypothesis.settings.load_profile("tests")


def skip_other_processors(items: list[pytest.Item]) -> None:
    """Skip the cases of processors that have more instructions than this one."""
    from tenfold import _native
    from tenfold.settings import CPU_LEVELS

    highest = _native.processor_level()
    for item in items:
        cpu = item.callspec.params.get("cpu") if hasattr(item, "callspec") else None
        if isinstance(cpu, str) and CPU_LEVELS.get(cpu, 0) > highest:
            item.add_marker(pytest.mark.skip(f"this processor cannot run {cpu}"))


def skip_other_devices(items: list[pytest.Item]) -> None:
    """Skip the tests of the CPU where TENFOLD_DEVICE names another device."""
    device = os.environ.get("TENFOLD_DEVICE", "cpu")
    for item in items:
        if device != "cpu" and item.get_closest_marker("cpu"):
            item.add_marker(pytest.mark.skip(f"{device} is not the CPU"))


EVERY = 16
"""Of the cases of a grid that add no new value of a parameter one in so many is taken."""
FEW = 8
"""The same of a grid whose cases have nothing in common."""
PART = 5
"""Of the cases of a loop that asks `part` one in so many is taken."""
WHOLE = pytest.StashKey[set[str] | None]()
"""The names of the tests whose loops are run whole; None: all of them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    text = (
        "Cases of the grids that are marked `exhaustive`: a sample, all, or what the sample leaves."
    )
    parser.addoption("--grids", choices=("sample", "all", "rest"), default="sample", help=text)
    parser.addoption("--one-in", type=int, default=1, help="Take one in so many tests.")
    parser.addoption("--seed", type=int, default=0, help="Which tests `--one-in` takes.")
    parser.addoption("--whole", default="", help="Files and folders that `--one-in` takes whole.")
    parser.addoption("--skips-fail", action="store_true", help="A test that skips has failed.")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, pytest.TestReport]:
    """Let a test that skips fail if `--skips-fail` asks for it."""
    report: pytest.TestReport = yield
    if report.skipped and item.config.getoption("--skips-fail"):
        report.outcome, report.longrepr = "failed", str(report.longrepr)
    return report


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say which processor this is, the target of kernels, and which part of the tests is taken."""
    from tenfold import _native, machine, settings

    name, _ = machine.processor()
    levels = {level: text for text, level in settings.CPU_LEVELS.items()}
    level = levels[_native.processor_level()]
    lines = [f"processor: {name or 'unknown'}, {level}; kernels for {settings.get('cpu')}"]
    one_in, seed = config.getoption("--one-in"), config.getoption("--seed")
    if one_in > 1:
        lines.append(f"one test in {one_in}, seed {seed}")
    return lines


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests as `--grids` and `--one-in` say; a case that is named runs always."""
    skip_other_processors(items)
    skip_other_devices(items)
    config.stash[WHOLE] = None
    if any("[" in each for each in config.args):
        return
    left_out = left_out_cases(items, config)
    one_in, seed = config.getoption("--one-in"), config.getoption("--seed")
    whole = tuple(config.getoption("--whole").split())
    left_out |= {
        item.nodeid
        for item in items
        if not item.nodeid.startswith(whole) and not is_taken(item.nodeid, one_in, seed)
    }
    if left_out:
        deselected = [item for item in items if item.nodeid in left_out]
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if item.nodeid not in left_out]


def left_out_cases(items: list[pytest.Item], config: pytest.Config) -> set[str]:
    """Return the names of the tests that a run of `--grids` leaves out."""
    grids = config.getoption("--grids")
    if grids == "all":
        return set()
    cases: dict[str, list[str]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("exhaustive"):
            cases[item.nodeid.partition("[")[0]].append(item.nodeid)
    sampled = {nodeid for grid in cases.values() for nodeid in sample(grid)}
    rest = {nodeid for grid in cases.values() for nodeid in grid} - sampled
    config.stash[WHOLE] = rest
    if grids == "sample":
        return rest
    loops = {item.nodeid for item in items if "part" in getattr(item, "fixturenames", ())}
    return {item.nodeid for item in items} - rest - loops


Part = Callable[[Iterable[Any]], list[Any]]


@pytest.fixture
def part(request: pytest.FixtureRequest) -> Part:
    """A function that takes the cases of a loop, and returns those that this run tries."""
    whole, name = request.config.stash[WHOLE], request.node.nodeid
    grids = request.config.getoption("--grids")
    return lambda cases: part_of([*cases], name, "all" if whole is None or name in whole else grids)


def part_of(cases: list[Any], name: str, grids: str) -> list[Any]:
    """Return one case in `PART`, the first of them chosen by the name of the test; `rest`: the
    others.
    """
    if grids == "all":
        return cases
    first = zlib.crc32(name.encode()) % max(min(PART, len(cases)), 1)
    sampled = {*range(len(cases))[first::PART]}
    return [case for i, case in enumerate(cases) if (i in sampled) == (grids == "sample")]


def is_taken(nodeid: str, one_in: int, seed: int) -> bool:
    """Whether a test is of the part of all tests that a seed chooses, by its name alone."""
    return zlib.crc32(f"{seed}:{nodeid}".encode()) % one_in == 0


def pytest_collection_finish() -> None:
    """Leave the items out of each later collection of garbage, for which many tests ask."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def frozen_heap() -> Iterator[None]:
    """Leave what a module has left behind out of each later collection of garbage, too."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture
def fused_multiply_add(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Where kernels contain elementary functions, and few products are calls of BLAS: on the level
    in force, at least on x86-64-v3. So are processes that the test starts.
    """
    import tenfold as tn
    from tenfold import _native
    from tenfold.settings import CPU_LEVELS, get

    if CPU_LEVELS.get(str(get("cpu")), _native.processor_level()) >= CPU_LEVELS["x86-64-v3"]:
        yield
        return
    if _native.processor_level() < CPU_LEVELS["x86-64-v3"]:
        pytest.skip("this processor has no fused multiply-add")
    monkeypatch.setenv("TENFOLD_CPU", "x86-64-v3")
    with tn.options(cpu="x86-64-v3"):
        yield


@pytest.fixture
def no_history() -> None:
    """Forget what other tests computed: what came with many lengths would be interpreted."""
    import tenfold as tn

    tn.trim()


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The lengths of the graphs that Python has planned."""
    import tenfold as tn
    from tenfold.runtime.devices import cpu

    seen: list[int] = []
    original: Callable[..., Any] = cpu.schedule_graph

    def noted(graph: Any, **options: Any) -> Any:
        seen.append(len(graph))
        return original(graph, **options)

    monkeypatch.setattr(cpu, "schedule_graph", noted)
    tn.trim()
    yield seen
    tn.trim()


@pytest.fixture
def target_facts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """A function that changes facts of all targets: `target_facts("work", serial_elements=0)`."""
    from dataclasses import replace

    from tenfold.schedule import target

    def change(group: str, **facts: Any) -> None:
        for name, each in target.INSTRUCTION_SETS.items():
            changed = replace(each, **{group: replace(getattr(each, group), **facts)})
            monkeypatch.setitem(target.INSTRUCTION_SETS, name, changed)
        target.target_of.cache_clear()

    yield change
    monkeypatch.undo()
    target.target_of.cache_clear()


def sample(nodeids: Sequence[str]) -> list[str]:
    """Return a part of a grid that depends on the names of its cases alone.

    A case is taken if a value of one of its parameters (a part of its name between hyphens) was in
    none before, in the order of checksums; of the others one in `EVERY`. Where each case has a
    value of its own, one in `FEW` is taken.
    """
    ordered = sorted(nodeids, key=lambda nodeid: (zlib.crc32(nodeid.encode()), nodeid))
    seen: set[tuple[int, str]] = set()
    new, known = [], []
    for nodeid in ordered:
        values = set(enumerate(nodeid.partition("[")[2].removesuffix("]").split("-")))
        (known if values <= seen else new).append(nodeid)
        seen |= values
    if len(new) > 0.75 * len(ordered):
        return ordered[: -(-len(ordered) // FEW)]
    return new + known[::EVERY]
