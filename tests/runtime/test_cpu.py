"""The cpu device: processors it compiles for, its caches, NaN at its birth, kernels refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.codegen.llvm import module_emitter
from tenfold.errors import CompileError, RunError
from tenfold.jit import program
from tenfold.settings import CPU_LEVELS
from tenfold.testing import assert_close, assert_equal_bits

TARGETS = [
    "native",
    *(name for name, level in CPU_LEVELS.items() if level <= _native.processor_level()),
]
BASELINE = ["x86-64", "x86-64-v2"]


@pytest.fixture(autouse=True)
def on_the_cpu() -> Iterator[None]:
    with tn.options(device="cpu"):
        yield


def test_a_processor_above_this_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "processor_level", lambda: 2)
    with pytest.raises(ValueError, match=r"'x86-64-v3' has instructions that this .* 'x86-64-v2'"):
        tn.options(cpu="x86-64-v3")
    with tn.options(cpu="x86-64-v2"):
        pass


def test_a_processor_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="none of native, x86-64, x86-64-v2"):
        tn.options(cpu="pentium")


def test_the_environment_names_the_processor() -> None:
    code = "from tenfold import settings; print(settings.get('cpu'))"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"TENFOLD_CPU": "x86-64"}, capture_output=True, check=True
    )
    assert done.stdout == b"x86-64\n"


def test_programs_of_different_processors_are_different(own_programs: None) -> None:
    x = tn.asarray(np.arange(7.0))
    counts = []
    for _ in range(2):
        for target in TARGETS:
            with tn.options(cpu=target, tier="1"), tn.profile() as p:
                assert_equal_bits(x * 3 - 0.125, np.arange(7.0) * 3 - 0.125)
            counts.append(p.compiles)
    assert counts[: len(TARGETS)] == [1] * len(TARGETS)
    assert counts[len(TARGETS) :] == [0] * len(TARGETS)


def everywhere(compute: Callable[[], tn.Array]) -> list[np.ndarray]:
    """What something is for each processor."""
    found = []
    for target in TARGETS:
        with tn.options(cpu=target, tier="0"):
            found.append(np.asarray(compute()))
    return found


def test_halves_are_the_same_on_every_processor() -> None:
    halves = np.arange(2**16, dtype=np.uint16)
    x = halves.view(np.float16)
    first, *others = everywhere(lambda: tn.astype(tn.asarray(x), tn.float32))
    assert all(first.tobytes() == other.tobytes() for other in others)
    near = first[np.isfinite(first)]
    floats = np.concatenate(
        [
            *(near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(0))),
            (near[:-1].astype(np.float64) + near[1:]).astype(np.float32) / 2,
            np.random.default_rng(0).integers(0, 2**32, 2**16, np.uint32).view(np.float32),
        ]
    )
    first, *others = everywhere(lambda: tn.astype(tn.asarray(floats), tn.float16))
    assert all(first.tobytes() == other.tobytes() for other in others)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(first, floats.astype(np.float16))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round"])
def test_rounding_to_whole_floats_is_the_same_on_every_processor(name: str, dtype: str) -> None:
    edges = [0.5, 1.5, 2.5, 0.49999997, 2**23 - 0.5, 2**23 + 1, 2**52 - 0.5, 2**52 + 1, 1e30]
    plain = [*np.linspace(0, 5, 101), *edges, np.inf, 0.0, 1e-45, 4.9e-324]
    x = np.array([*plain, *(-value for value in plain), np.nan]).astype(dtype)
    wanted = (np.rint if name == "round" else getattr(np, name))(x)
    for found in everywhere(lambda: getattr(tn, name)(tn.asarray(x))):
        assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("target", BASELINE)
def test_without_fma_elementary_functions_are_calls_and_right(target: str) -> None:
    values = np.linspace(0.1, 3, 50)
    x = tn.asarray(values)
    with tn.options(cpu=target):
        y = tn.exp(x) + tn.fma(x, x, 1.0)
        assert "2 calls" in y.explain("scheduled")
        with tn.profile() as p:
            y.wait()
    assert (p.kernels, p.calls) == (1, 2)
    assert_close(y, np.exp(values) + (values * values + 1), ulp=4)


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_nan_is_named_where_it_is_born(device: str) -> None:
    with tn.options(device=device, check_nans=True):
        x = tn.asarray([1.0, -1.0, np.nan])
        line = sys._getframe().f_lineno + 1
        y = tn.sqrt(x) + 1
        for _ in range(2):
            with pytest.raises(RunError) as caught:
                y.wait()
            text = str(caught.value)
            assert text.startswith("sqrt: NaN was made of operands without NaN, at index (1,)")
            assert f"{__file__}:{line}" in text
            assert "remedy: " in text


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_nan_that_was_there_goes_through(device: str) -> None:
    with tn.options(device=device, check_nans=True):
        x = tn.asarray([1.0, 4.0, np.nan])
        y = tn.sqrt(x)[None, :] * tn.asarray([[2.0], [3.0]])
        assert_equal_bits(y, np.sqrt([1.0, 4.0, np.nan]) * np.array([[2.0], [3.0]]))
        assert np.isnan(tn.sum(y).item())
        assert np.isnan(tn.where(x > 1, np.nan, x)[1].item())
        assert np.isnan(tn.full(3, np.nan)[0].item())


def test_a_reduction_may_give_birth_to_nan() -> None:
    with tn.options(check_nans=True):
        x = tn.asarray([np.inf, -np.inf])
        with pytest.raises(RunError, match="sum: NaN was made"):
            tn.sum(x).item()
        with pytest.raises(RunError, match="divide: NaN was made"):
            tn.mean(tn.zeros(0)).item()
    assert np.isnan(tn.sum(x).item())


def test_results_without_the_nan_are_computed() -> None:
    with tn.options(check_nans=True):
        x = tn.asarray([-1.0])
        bad, good = tn.log(x) + 1, x * 2
        tn.eval(bad, good)
        with pytest.raises(RunError, match="log: NaN"):
            bad.wait()
        assert good.tolist() == [-2.0]


def test_check_nans_changes_no_bits() -> None:
    x = np.random.default_rng(0).normal(size=(30, 40)).astype(np.float32)
    found = []
    for check in (False, True):
        with tn.options(check_nans=check):
            a = tn.asarray(x)
            centred = a - tn.mean(a, axis=1, keepdims=True)
            found.append(np.asarray(tn.softmax(centred, axis=1) @ tn.exp(centred).T))
    assert found[0].tobytes() == found[1].tobytes()


def test_a_kernel_that_llvm_refuses_raises_and_the_device_works_on(
    monkeypatch: pytest.MonkeyPatch, own_programs: None
) -> None:
    x = tn.asarray(np.arange(9.0))
    y = x * 5 - 0.03125
    with monkeypatch.context() as patch:
        patch.setattr(program, "render", lambda *given: module_emitter.render(*given) + "nonsense")
        for _ in range(2):
            with tn.options(tier="0"), pytest.raises(CompileError, match="LLVM refuses a kernel"):
                y.wait()
    with monkeypatch.context() as patch:  # a text that is read but not right
        broken = "define i64 @kernel() {\nentry:\n%x = add i64 %x, 1\nret i64 %x\n}"
        patch.setattr(program, "render", lambda *_: broken)
        with tn.options(tier="0"), pytest.raises(CompileError, match="LLVM refuses a kernel"):
            y.wait()
    assert_equal_bits(y, np.arange(9.0) * 5 - 0.03125)
    assert_equal_bits(x + 1, np.arange(9.0) + 1)


def test_tiers_have_the_same_bits() -> None:
    x = np.random.default_rng(1).normal(size=(40, 70)).astype(np.float32)
    found = set()
    for tier in ("0", "1", "auto"):
        with tn.options(tier=tier):
            a = tn.asarray(x)
            found.add(np.asarray(tn.tanh(a) * tn.exp(-a * a) + tn.sum(a, axis=0)).tobytes())
    assert len(found) == 1


@pytest.mark.parametrize("name", ["pow", "logaddexp", "atan2", "hypot"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_long_body_past_the_cache_has_the_bits_of_a_short_array(name: str, dtype: str) -> None:
    random = np.random.default_rng(12)
    x, y = (random.uniform(0.5, 2, 1 << 21).astype(dtype) for _ in range(2))
    op = getattr(tn, name)
    with tn.options(device="cpu"):
        whole = np.asarray(op(tn.asarray(x), tn.asarray(y)))
        parts = [
            np.asarray(op(tn.asarray(x[i : i + 1000]), tn.asarray(y[i : i + 1000])))
            for i in (0, 1_000_000, (1 << 21) - 1000)
        ]
    for i, part in zip((0, 1_000_000, (1 << 21) - 1000), parts, strict=True):
        np.testing.assert_array_equal(whole[i : i + 1000], part)
