"""Objects as code that runs anywhere: distances are filled in, all else is refused."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from tenfold import _native
from tenfold.errors import CompileError
from tenfold.jit.compiler import compile_ir
from tenfold.jit.object_image import ObjectImage
from tenfold.jit.program import PROGRAMS

LEVELS = (0, 2)


def called(image: ObjectImage, name: str, *given: int) -> int:
    """What a function of ints returns, after a padding that moves the code."""
    for _ in range(3):
        (entry,) = _native.load_code(image.code, [image.function_offsets[name]])
    kinds = [ctypes.c_int64] * (len(given) + 1)
    return int(ctypes.CFUNCTYPE(*kinds)(entry.address)(*given))


@pytest.mark.parametrize("level", LEVELS)
def test_constants_are_found_wherever_the_code_lies(level: int) -> None:
    text = """
    @table = private unnamed_addr constant [4 x i64] [i64 5, i64 7, i64 11, i64 13]
    define i64 @kernel(i64 %i) {
      %place = getelementptr i64, ptr @table, i64 %i
      %found = load i64, ptr %place
      ret i64 %found
    }"""
    assert [called(compile_ir(text, "native", level), "kernel", i) for i in range(4)] == [
        5,
        7,
        11,
        13,
    ]


@pytest.mark.parametrize("level", LEVELS)
def test_functions_call_each_other(level: int) -> None:
    text = """
    define internal i64 @square(i64 %i) noinline {
      %found = mul i64 %i, %i
      ret i64 %found
    }
    define i64 @kernel(i64 %i) {
      %once = call i64 @square(i64 %i)
      %twice = call i64 @square(i64 %once)
      ret i64 %twice
    }
    define i64 @finish(i64 %i) {
      %found = call i64 @kernel(i64 %i)
      %more = add i64 %found, 1
      ret i64 %more
    }"""
    image = compile_ir(text, "native", level)
    assert set(image.function_offsets) == {"kernel", "finish"}
    assert called(image, "kernel", 3) == 81
    assert called(image, "finish", 3) == 82


@pytest.mark.parametrize("level", LEVELS)
def test_a_table_of_jumps_is_distances(level: int) -> None:
    cases = " ".join(f"i64 {i}, label %case{i}" for i in range(8))
    blocks = "\n".join(f"case{i}:\n  ret i64 {i * i * 37 % 101}" for i in range(8))
    text = f"define i64 @kernel(i64 %i) {{\n  switch i64 %i, label %other [{cases}]\n{blocks}\n"
    text += "other:\n  ret i64 -1\n}"
    image = compile_ir(text, "native", level)
    found = [called(image, "kernel", i) for i in range(9)]
    assert found == [*(i * i * 37 % 101 for i in range(8)), -1]


CALLS = "declare i64 @elsewhere(i64)\ndefine i64 @kernel(i64 %i) {\n"
CALLS += "  %a = call i64 @elsewhere(i64 %i)\n  ret i64 %a\n}"
WRITES = "@count = internal global i64 5\ndefine i64 @kernel(i64 %i) {\n"
WRITES += "  store volatile i64 %i, ptr @count\n  ret i64 0\n}"
ADDRESS = "@own = constant ptr @kernel\ndefine i64 @kernel(i64 %i) {\n  ret i64 0\n}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (CALLS, "it calls elsewhere"),
        (WRITES, "it has memory of its own"),
        (ADDRESS, "it has memory of its own|it holds an address"),
    ],
)
@pytest.mark.parametrize("level", LEVELS)
def test_relocation_other_than_a_distance_is_refused(text: str, reason: str, level: int) -> None:
    with pytest.raises(CompileError, match=f"a kernel cannot be loaded: ({reason})"):
        compile_ir(text, "native", level)


def test_code_is_executable_and_not_writeable() -> None:
    text = "define i64 @kernel() {\n  ret i64 3\n}"
    (entry,) = _native.load_code(compile_ir(text, "native", 0).code, [0])
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(entry.address)() == 3
    assert mode_of(entry.address) == "r-xp"


def test_code_goes_with_its_last_function() -> None:
    PROGRAMS.wait_idle()  # else others' code may come
    text = "define i64 @kernel() {\n  ret i64 3\n}"
    one, other = _native.load_code(compile_ir(text, "native", 0).code, [0, 0])
    address, before = one.address, _native.loaded_code_bytes()
    del one
    assert mode_of(address) == "r-xp"
    assert other.address == address
    del other
    assert _native.loaded_code_bytes() < before
    assert mode_of(address) != "r-xp"


def mode_of(address: int) -> str:
    """How the memory at an address may be used; nothing where there is none."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        places, modes = line.split()[:2]
        first, last = (int(place, 16) for place in places.split("-"))
        if first <= address < last:
            return modes
    return ""


def test_nothing_and_too_much_code_is_not_loaded() -> None:
    assert _native.load_code(b"", [0]) == []
