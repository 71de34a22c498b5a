"""What every room of the tests shares: the profiles under which Hypothesis looks for examples.

No test fails for being slow: other work on the machine is no fault of ours. `make fuzz` tries
100,000 examples.

Kernels are not kept on disk, unless a test says so or TENFOLD_CACHE does: what one test compiles,
another that counts compiling would find. Where they are kept is no place of the user's.

Every kernel that is planned is verified (`plan/verify.py`).
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

import hypothesis
import pytest

# Before tenfold is imported, and for the processes that tests start.
os.environ.setdefault("TENFOLD_CACHE", "0")
os.environ.setdefault("TENFOLD_VERIFY_KERNELS", "1")
if "TENFOLD_CACHE_DIR" not in os.environ:
    os.environ["TENFOLD_CACHE_DIR"] = tempfile.mkdtemp(prefix="tenfold-tests-")
    atexit.register(shutil.rmtree, os.environ["TENFOLD_CACHE_DIR"], ignore_errors=True)

hypothesis.settings.register_profile(
    "tests",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    print_blob=True,
)
hypothesis.settings.register_profile(
    "fuzz", hypothesis.settings.get_profile("tests"), max_examples=100_000
)
hypothesis.settings.load_profile("tests")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the cases of processors that have more instructions than this one."""
    from tenfold import _native
    from tenfold.settings import CPU_LEVELS

    highest = _native.processor_level()
    for item in items:
        cpu = item.callspec.params.get("cpu") if hasattr(item, "callspec") else None
        if isinstance(cpu, str) and CPU_LEVELS.get(cpu, 0) > highest:
            item.add_marker(pytest.mark.skip(f"this processor cannot run {cpu}"))
