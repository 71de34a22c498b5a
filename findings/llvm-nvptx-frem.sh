#!/usr/bin/env bash
# LLVM's frem of float32 on NVPTX is no fmod: 1e10 and 3 have 256, where fmod has 1.
#
# Seen with llvmlite 0.50.0 (LLVM 22.1.0), CPython 3.11 on Linux x86-64, without a GPU:
#
#   LLVM's Language Reference says of frem: "This is the same output as a libm 'fmod' function, but
#   without any possibility of setting errno." The NVPTX backend makes it x - trunc(x / y) * y: one
#   rounded division, one truncation, one fused multiply-add. Where x / y has more than 24 bits, the
#   quotient is rounded, and what is left may be larger than y, or negative. The program evaluates
#   the instructions that it finds in the PTX, each with the rounding that its name has.
#
# The output seen, line by line:
#
#   llvmlite 0.50.0, LLVM 22.1.0
#   div.rn.f32 cvt.rzi.f32.f32 neg.f32 fma.rn.f32
#   1e10 frem 3: 256.0 by these instructions, fmod 1.0
#   1e8 frem 3: -2.0 by these instructions, fmod 1.0
#   5.5 frem 2: 1.5 by these instructions, fmod 1.5
#   as described
#
# What to write instead: a division with remainder in integers, of significands and exponents.
#
# Exit status: 0 if LLVM behaves so; 1 if it does not any more; 2 if the package cannot be had.
set -euo pipefail

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"${PYTHON:-python3}" -m venv "$place/venv"
"$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir \
    "llvmlite==0.50.0" || exit 2

"$place/venv/bin/python" - <<'PROGRAM'
import math
import re
import struct
import sys
from fractions import Fraction

import llvmlite
from llvmlite import binding

TEXT = """target triple = "nvptx64-nvidia-cuda"
define float @remainder(float %x, float %y) {
  %r = frem float %x, %y
  ret float %r
}"""
EXPECTED = ["div.rn.f32", "cvt.rzi.f32.f32", "neg.f32", "fma.rn.f32"]


def rounded(value):
    """The float32 nearest to a fraction."""
    return struct.unpack("f", struct.pack("f", float(value)))[0]


print(f"llvmlite {llvmlite.__version__}, LLVM {'.'.join(map(str, binding.llvm_version_info))}")
binding.initialize_all_targets()
binding.initialize_all_asmprinters()
machine = binding.Target.from_triple("nvptx64-nvidia-cuda").create_target_machine(cpu="sm_80", opt=2)
ptx = machine.emit_assembly(binding.parse_assembly(TEXT))
found = re.findall(r"\b(?:div|rem|cvt|neg|fma|mul|sub|call)\.\S+", ptx)
print(*found)
changed = found != EXPECTED
for x, y, seen in ((1e10, 3.0, 256.0), (1e8, 3.0, -2.0), (5.5, 2.0, 1.5)):
    quotient = math.trunc(rounded(Fraction(x) / Fraction(y)))
    remainder = rounded(Fraction(x) - quotient * Fraction(y))
    name = f"{x:g} frem {y:g}".replace("e+0", "e").replace("e+", "e")
    print(f"{name}: {remainder} by these instructions, fmod {math.fmod(x, y)}")
    changed |= remainder != seen
print("changed" if changed else "as described")
sys.exit(changed)
PROGRAM
