r"""Alignment verification: proves that LLVM loads and stores claim no more alignment than they
have.

Takes the text of a program. Raises VerifyError for a load or a store whose address is not proved to
be a multiple of its claimed alignment. Scratch memory and stack slots begin at multiples of 64
bytes; multiples are followed through the integers and pointers of a function to a fixed point (P.
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

MAX_ALIGNMENT = 64
"""The largest multiple that is followed."""
BYTES = {"i1": 1, "i8": 1, "i16": 2, "half": 2, "bfloat": 2, "i32": 4, "float": 4}
"""Of scalars of less than 8 bytes."""
ACCESS = re.compile(
    r"(?:load|store) (?:<\d+ x (\w+)>|(\w+))[^\n]*?, ptr (%[\w.]+), align (\d+)(, !nontemporal)?"
)
DEFINITION = re.compile(r"^ +(%[\w.]+) = (\w+) ([^\n]*)$", re.MULTILINE)


def verify_alignment(text: str) -> int:
    """Refuse what is not proved; return how many claims are."""
    claims = 0
    for function in text.split("\ndefine ") if "align" in text else []:
        multiples: dict[str, int] | None = None
        for found in ACCESS.finditer(function):
            vector, scalar, pointer, claimed, past = found.groups()
            align = int(claimed)
            if align <= BYTES.get(vector or scalar, 8):
                continue
            claims += 1
            if past and _is_guarded(function[: found.start()], pointer, align):
                continue
            if multiples is None:
                multiples = _multiples(function)
            known = multiples.get(pointer, 1)
            if known % align:
                rule = f"{pointer} is a multiple of {known} bytes"
                rule = f"{rule}, but aligned to {align} is claimed"
                raise VerifyError("verify", f"{rule}\n  {found.group()}")
    return claims


def _is_guarded(before: str, pointer: str, align: int) -> bool:
    """Whether the last branch was taken as the low bits of an address are 0."""
    lines = [line.strip() for line in before.splitlines() if line.strip()][-6:]
    wanted = (
        rf"(%[\w.]+) = ptrtoint ptr {re.escape(pointer)} to i64\n"
        rf"(%[\w.]+) = and i64 \1, {align - 1}\n"
        r"(%[\w.]+) = icmp eq i64 \2, 0\n"
        r"br i1 \3, label %([\w.]+), label %[\w.]+\n"
        r"\4:"
    )
    return re.search(wanted, "\n".join(lines)) is not None


def _multiples(function: str) -> dict[str, int]:
    """For each value a power of two that divides it: the largest that fits all definitions."""
    defined = [(name, word, rest) for name, word, rest in DEFINITION.findall(function)]
    known = {name: MAX_ALIGNMENT for name, _, _ in defined} | {"%scratch": MAX_ALIGNMENT}
    changed = True
    while changed:
        changed = False
        for name, word, rest in defined:
            made = _multiple_of(word, rest, known)
            if made < known[name]:
                known[name], changed = made, True
    return known


def _multiple_of(word: str, rest: str, known: dict[str, int]) -> int:
    if word == "alloca":
        return int(rest.rpartition("align ")[2])
    if word not in ("getelementptr", "mul", "shl", "add", "sub", "and", "phi", "select", "call"):
        return 1
    if word == "call" and "@llvm.smin.i64" not in rest and "@llvm.smax.i64" not in rest:
        return 1
    factors = list(_operand_multiples(word, rest, known))
    if word == "mul":
        return min(MAX_ALIGNMENT, factors[0] * factors[1])
    if word == "and":
        return max(factors)
    if word == "getelementptr":
        size = BYTES.get(rest.partition(",")[0], 0 if rest.startswith(("<", "{")) else 8)
        return gcd(factors[0], min(MAX_ALIGNMENT, size * factors[1])) if size else 1
    if word == "shl":
        distance = rest.rpartition(", ")[2]
        return min(MAX_ALIGNMENT, factors[0] << int(distance)) if distance.isdigit() else factors[0]
    return gcd(*factors)


def _operand_multiples(word: str, rest: str, known: dict[str, int]) -> Iterator[int]:
    """What divides each operand."""
    if word == "phi":
        operands = re.findall(r"\[ ([^,]+),", rest)
    elif word == "select":
        operands = [part.rpartition(" ")[2] for part in rest.split(", ")[1:]]
    elif word == "call":
        operands = [part.rpartition(" ")[2] for part in rest.rstrip(")").split(", ")]
    elif word == "getelementptr":
        operands = [part.rpartition(" ")[2] for part in rest.split(", ")[1:]]
    else:
        operands = [part.rpartition(" ")[2] for part in rest.split(", ")]
    for operand in operands:
        number = re.fullmatch(r"-?\d+", operand)
        if number:
            value = int(operand)
            yield min(MAX_ALIGNMENT, value & -value) if value else MAX_ALIGNMENT
        else:
            yield known.get(operand, 1)


__all__ = ["verify_alignment"]
