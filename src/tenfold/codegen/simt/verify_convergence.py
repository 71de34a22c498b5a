r"""Convergence verification: proves that all threads come to each shuffle and barrier together.

Input: the text of a module in the words of the host. Raises VerifyError for a shuffle below a
branch on what differs within a warp, or a barrier below one on what differs within a block. What
differs follows from the thread's number through values and branches, to a fixed point (Karrenberg,
Hack, "Improving performance of OpenCL on CPUs", 2012, section 3). A branch ends at its first
post-dominator.

>>> text = '''define internal void @kernel.thread(i64 %unit) {
... entry:
...   %lane = and i64 %unit, 31
...   %first = icmp eq i64 %lane, 0
...   br i1 %first, label %then, label %after
... then:
...   br label %after
... after:
...   %x = call i32 %shuffle(ptr %status, i32 1, i32 0)
...   ret void
... }'''
>>> verify_convergence(text)
1
>>> verify_convergence(text.replace("then:\n", "then:\n  call void %barrier(ptr %status)\n"))
Traceback (most recent call last):
...
tenfold.errors.VerifyError: verify: a barrier depends on %first, which differs within a warp
  call void %barrier(ptr %status)
"""

from __future__ import annotations

import re

from tenfold.codegen.simt.words import BLOCK_THREADS, WARP
from tenfold.errors import VerifyError

SAME, WITHIN_BLOCK, WITHIN_WARP = range(3)
"""Where a value differs: nowhere in a block, between its warps, within a warp."""
WHERE = {WITHIN_BLOCK: "block", WITHIN_WARP: "warp"}
MEETINGS = {"%shuffle(": ("shuffle", WITHIN_WARP), "%barrier(": ("barrier", WITHIN_BLOCK)}
"""What threads do together, and the first level that it may not depend on."""
ASSIGNMENT = re.compile(r"^(%[\w.]+) = (.*)$")
NAME = re.compile(r"%[\w.]+")
THREAD_DIVISION = re.compile(r"udiv i64 %unit, (\d+)")
DIVISION_LEVELS = {WARP: WITHIN_BLOCK, BLOCK_THREADS: SAME}


def verify_convergence(text: str) -> int:
    """Raise for a shuffle or barrier that some threads may miss; return how many there are."""
    functions = text.split("\ndefine ")
    return sum(_Function(each).verify() for each in functions if any(m in each for m in MEETINGS))


class _Function:
    """The blocks of a function, and where each value and block differs."""

    def __init__(self, text: str) -> None:
        self.blocks: dict[str, list[str]] = {}
        lines: list[str] = []
        for line in text.partition("{\n")[2].splitlines():
            if line.endswith(":"):
                self.blocks[line[:-1]] = lines = []
            elif line.startswith("  "):
                lines.append(line.strip())
        self.successors = {
            name: re.findall(r"label %([\w.]+)", lines[-1]) for name, lines in self.blocks.items()
        }
        self.values = {"%unit": WITHIN_WARP}
        self.control = dict.fromkeys(self.blocks, (SAME, ""))
        """By block: where it differs whether it is run, and the condition of which that depends."""

    def verify(self) -> int:
        """Raise for what some threads may miss; return the number of shuffles and barriers."""
        regions, before = self._regions(), None
        while before != (before := (dict(self.values), dict(self.control))):
            for name, lines in self.blocks.items():
                for assignment in filter(None, map(ASSIGNMENT.match, lines)):
                    target, value = assignment.groups()
                    level = self._level(value, name)
                    self.values[target] = max(self.values.get(target, SAME), level)
            for name, region in regions.items():
                condition = NAME.findall(self.blocks[name][-1])[0]
                reason = self.values.get(condition, SAME), condition
                for block in region:
                    self.control[block] = max(self.control[block], reason)
        return sum(map(self._meetings, self.blocks))

    def _meetings(self, name: str) -> int:
        (level, condition), count = self.control[name], 0
        for line in self.blocks[name]:
            for word, (meeting, limit) in MEETINGS.items():
                count += word in line
                if word in line and level >= limit:
                    rule = f"a {meeting} depends on {condition}, which differs"
                    raise VerifyError("verify", f"{rule} within a {WHERE[level]}\n  {line}")
        return count

    def _level(self, value: str, block: str) -> int:
        """Return where a value differs."""
        if division := THREAD_DIVISION.fullmatch(value):
            return DIVISION_LEVELS.get(int(division[1]), WITHIN_WARP)
        # the memory of a thread, and what only one of them gets
        if value.startswith(("alloca", "atomicrmw")) or "%shuffle(" in value:
            return WITHIN_WARP
        levels = [self.values.get(name, SAME) for name in NAME.findall(value)]
        if value.startswith("phi"):  # which one it is depends on the way
            ways = re.findall(r", %([\w.]+) \]", value)
            levels += [self.control[way][0] for way in (block, *ways)]
        return max(levels, default=SAME)

    def _regions(self) -> dict[str, set[str]]:
        """By block that ends in a branch: the blocks on its ways, up to the first on all ways."""
        after = {name: set(self.blocks) for name in self.blocks}
        changed = True
        while changed:
            changed = False
            for name in reversed(self.blocks):
                ways = [after[each] for each in self.successors[name]]
                blocks = {name} | (set.intersection(*ways) if ways else set())
                changed |= blocks != after[name]
                after[name] = blocks
        regions: dict[str, set[str]] = {}
        for name, successors in self.successors.items():
            if len(successors) > 1:
                stack, region = [*successors], set[str]()
                while stack:
                    block = stack.pop()
                    if block not in region and block not in after[name] - {name}:
                        region.add(block)
                        stack += self.successors[block]
                regions[name] = region
        return regions


__all__ = ["verify_convergence"]
