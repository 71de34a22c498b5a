r"""Alignment verification: proves that LLVM loads and stores claim no more alignment than they
have.

Input: the text of a module. Raises VerifyError for a load or a store whose address is not proved to
be a multiple of its claimed alignment. Scratch memory and stack slots begin at multiples of 64
bytes; multiples are propagated through the integers and pointers of a function to a fixed point (P.
Granger, "Static analysis of arithmetical congruences", 1989). A non-temporal store must follow a
branch on the low bits of its own address.

>>> text = '''define i64 @kernel(ptr %scratch, i64 %n) {
...   %a = mul i64 %n, 32
...   %p = getelementptr i8, ptr %scratch, i64 %a
...   store <4 x double> zeroinitializer, ptr %p, align 32
... }'''
>>> verify_alignment(text)
1
>>> verify_alignment(text.replace(", 32\n", ", 16\n"))
Traceback (most recent call last):
...
tenfold.errors.VerifyError: verify: %p is a multiple of 16 bytes, but aligned to 32 is claimed
  store <4 x double> zeroinitializer, ptr %p, align 32
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import gcd

from tenfold.errors import VerifyError
from tenfold.schedule.target import DEFAULT

MAX_ALIGNMENT = DEFAULT.caches.alignment_bytes
"""The largest alignment that is tracked."""
NARROW_BYTES = {"i1": 1, "i8": 1, "i16": 2, "half": 2, "bfloat": 2, "i32": 4, "float": 4}
"""The bytes of scalars of less than 8 bytes."""
ACCESS = re.compile(
    r"(?:load|store) (?:<\d+ x (\w+)>|(\w+))[^\n]*?, ptr (%[\w.]+), align (\d+)(, !nontemporal)?"
)
DEFINITION = re.compile(r"^ +(%[\w.]+) = (\w+) ([^\n]*)$", re.MULTILINE)


def verify_alignment(text: str) -> int:
    """Raise for a claim that is not proved; return the number of claims."""
    claims = 0
    for function in text.split("\ndefine ") if "align" in text else []:
        multiples: dict[str, int] | None = None
        for match in ACCESS.finditer(function):
            vector, scalar, pointer, claimed, nontemporal = match.groups()
            align = int(claimed)
            if align <= NARROW_BYTES.get(vector or scalar, 8):
                continue
            claims += 1
            if nontemporal and _is_guarded(function[: match.start()], pointer, align):
                continue
            if multiples is None:
                multiples = _multiples(function)
            multiple = multiples.get(pointer, 1)
            if multiple % align:
                rule = f"{pointer} is a multiple of {multiple} bytes"
                rule = f"{rule}, but aligned to {align} is claimed"
                raise VerifyError("verify", f"{rule}\n  {match.group()}")
    return claims


def _is_guarded(preceding: str, pointer: str, align: int) -> bool:
    """Return whether the last branch tested that the low bits of an address are 0."""
    lines = [line.strip() for line in preceding.splitlines() if line.strip()][-6:]
    pattern = (
        rf"(%[\w.]+) = ptrtoint ptr {re.escape(pointer)} to i64\n"
        rf"(%[\w.]+) = and i64 \1, {align - 1}\n"
        r"(%[\w.]+) = icmp eq i64 \2, 0\n"
        r"br i1 \3, label %([\w.]+), label %[\w.]+\n"
        r"\4:"
    )
    return re.search(pattern, "\n".join(lines)) is not None


def _multiples(function: str) -> dict[str, int]:
    """Return, for each value, the largest power of two that divides all its definitions."""
    definitions = [
        (name, opcode, operands) for name, opcode, operands in DEFINITION.findall(function)
    ]
    multiples = {name: MAX_ALIGNMENT for name, _, _ in definitions} | {"%scratch": MAX_ALIGNMENT}
    changed = True
    while changed:
        changed = False
        for name, opcode, operands in definitions:
            multiple = _multiple_of(opcode, operands, multiples)
            if multiple < multiples[name]:
                multiples[name], changed = multiple, True
    return multiples


def _multiple_of(opcode: str, operands: str, multiples: dict[str, int]) -> int:
    if opcode == "alloca":
        return int(operands.rpartition("align ")[2])
    if opcode not in ("getelementptr", "mul", "shl", "add", "sub", "and", "phi", "select", "call"):
        return 1
    if opcode == "call" and "@llvm.smin.i64" not in operands and "@llvm.smax.i64" not in operands:
        return 1
    factors = list(_operand_multiples(opcode, operands, multiples))
    if opcode == "mul":
        return min(MAX_ALIGNMENT, factors[0] * factors[1])
    if opcode == "and":
        return max(factors)
    if opcode == "getelementptr":
        size = NARROW_BYTES.get(
            operands.partition(",")[0], 0 if operands.startswith(("<", "{")) else 8
        )
        return gcd(factors[0], min(MAX_ALIGNMENT, size * factors[1])) if size else 1
    if opcode == "shl":
        distance = operands.rpartition(", ")[2]
        return min(MAX_ALIGNMENT, factors[0] << int(distance)) if distance.isdigit() else factors[0]
    return gcd(*factors)


def _operand_multiples(opcode: str, arguments: str, multiples: dict[str, int]) -> Iterator[int]:
    """Yield a power of two that divides each operand."""
    if opcode == "phi":
        operands = re.findall(r"\[ ([^,]+),", arguments)
    elif opcode == "select":
        operands = [token.rpartition(" ")[2] for token in arguments.split(", ")[1:]]
    elif opcode == "call":
        operands = [token.rpartition(" ")[2] for token in arguments.rstrip(")").split(", ")]
    elif opcode == "getelementptr":
        operands = [token.rpartition(" ")[2] for token in arguments.split(", ")[1:]]
    else:
        operands = [token.rpartition(" ")[2] for token in arguments.split(", ")]
    for operand in operands:
        number = re.fullmatch(r"-?\d+", operand)
        if number:
            value = int(operand)
            yield min(MAX_ALIGNMENT, value & -value) if value else MAX_ALIGNMENT
        else:
            yield multiples.get(operand, 1)


__all__ = ["verify_alignment"]
