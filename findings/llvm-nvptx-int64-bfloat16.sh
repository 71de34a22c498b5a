#!/usr/bin/env bash
# LLVM's sitofp of i64 to bfloat on NVPTX rounds twice below sm_90: 16842753 becomes 16777216.
#
# Seen with llvmlite 0.50.0 (LLVM 22.1.0), CPython 3.11 on Linux x86-64, without a GPU:
#
#   LLVM's Language Reference says of sitofp: "If the value cannot be exactly represented, it is
#   rounded using the default rounding mode." For sm_80 the NVPTX backend converts to float32 and
#   then to bfloat16, so that a number just above the middle of two bfloat16 falls on the middle
#   first, and then to the even one. For sm_90 there is one instruction, which rounds once. The
#   program evaluates the instructions that it finds in the PTX.
#
# The output seen, line by line:
#
#   llvmlite 0.50.0, LLVM 22.1.0
#   sm_80: cvt.rn.f32.s64 cvt.rn.bf16.f32: 16842753 becomes 16777216
#   sm_90: cvt.rn.bf16.s64: 16842753 becomes 16908288
#   as described
#
# What to write instead: round the integer to odd in 24 bits first, then convert by way of float32.
#
# Exit status: 0 if LLVM behaves so; 1 if it does not any more; 2 if the package cannot be had.
set -euo pipefail

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"${PYTHON:-python3}" -m venv "$place/venv"
"$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir \
    "llvmlite==0.50.0" || exit 2

"$place/venv/bin/python" - <<'PROGRAM'
import re
import sys

import llvmlite
from llvmlite import binding

TEXT = """target triple = "nvptx64-nvidia-cuda"
define bfloat @converted(i64 %x) {
  %r = sitofp i64 %x to bfloat
  ret bfloat %r
}"""
SIGNIFICANDS = {"f32": 24, "bf16": 8}
EXPECTED = {
    "sm_80": (["cvt.rn.f32.s64", "cvt.rn.bf16.f32"], 16777216),
    "sm_90": (["cvt.rn.bf16.s64"], 16908288),
}


def rounded(number, bits):
    """The nearest number of so many bits, of two the even one."""
    unit = 1 << max(number.bit_length() - bits, 0)
    below, rest = divmod(number, unit)
    return unit * (below + (2 * rest > unit or (2 * rest == unit and below % 2)))


print(f"llvmlite {llvmlite.__version__}, LLVM {'.'.join(map(str, binding.llvm_version_info))}")
binding.initialize_all_targets()
binding.initialize_all_asmprinters()
target, changed = binding.Target.from_triple("nvptx64-nvidia-cuda"), False
for processor, (instructions, seen) in EXPECTED.items():
    machine = target.create_target_machine(cpu=processor, opt=2)
    found = re.findall(r"\bcvt\.\S+", machine.emit_assembly(binding.parse_assembly(TEXT)))
    number = 16842753
    for instruction in found:
        number = rounded(number, SIGNIFICANDS[instruction.split(".")[2]])
    print(f"{processor}: {' '.join(found)}: 16842753 becomes {number}")
    changed |= (found, number) != (instructions, seen)
print("changed" if changed else "as described")
sys.exit(changed)
PROGRAM
