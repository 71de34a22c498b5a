"""ChunkFold tree: the fixed tree by which records of parts are combined, whatever comes first.

A part has a place (level, number): it covers the rows of 2**level units from `number * 2**level`
on. Two parts whose numbers are 2k and 2k + 1 are combined to (level + 1, k), no others before all
are there. So the tree depends on the places alone, not on workers or the order of arrival. Where
chunks begin at multiples of 1,024 rows, a unit is a block of the canonical reduction
(`core/canonical_reduction.py`), and the tree is a part of its tree: the bits are the same.

>>> leaves_of([(0, 3072), (3072, 5000)])
[[((1, 0), 0, 2048), ((0, 2), 2048, 3072)], [((0, 3), 3072, 4096), ((0, 4), 4096, 5000)]]
>>> leaves_of([(0, 10), (10, 15)])
[[((0, 0), 0, 10)], [((0, 1), 10, 15)]]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from tenfold.core.canonical_reduction import BLOCK

Record = TypeVar("Record")
Place = tuple[int, int]
"""The level and the number of a part."""
Leaf = tuple[Place, int, int]
"""A part that is folded at once: its place, its first row, and the row behind its last."""


def leaves_of(chunks: Sequence[tuple[int, int]]) -> list[list[Leaf]]:
    """Return the leaves of each chunk: one, or those that the canonical reduction has."""
    if any(begin % BLOCK for begin, _ in chunks):
        return [
            [((0, at), begin, end)] if begin < end else [] for at, (begin, end) in enumerate(chunks)
        ]
    last = max(end for _, end in chunks)
    return [_aligned_leaves(begin, end, end == last) for begin, end in chunks]


def _aligned_leaves(begin: int, end: int, is_last: bool) -> list[Leaf]:
    leaves: list[Leaf] = []
    while begin < end:
        block, blocks = begin // BLOCK, -(-(end - begin) // BLOCK)
        largest = (block & -block).bit_length() - 1 if block else 62
        level = (blocks - 1).bit_length()  # that covers all of the remaining blocks
        if not is_last or level > largest:
            level = min(blocks.bit_length() - 1, largest)
        stop = min(begin + (BLOCK << level), end)
        leaves.append(((level, block >> level), begin, stop))
        begin = stop
    return leaves


def merge(
    combine: Callable[[Record, Record], Record], *parts: Mapping[Place, Record]
) -> dict[Place, Record]:
    """Return records with all siblings combined; in any order it comes to the same."""
    merged: dict[Place, Record] = {}
    for records in parts:
        for (level, number), record in records.items():
            while (sibling := merged.pop((level, number ^ 1), None)) is not None:
                record = combine(record, sibling) if number % 2 == 0 else combine(sibling, record)
                level, number = level + 1, number // 2
            merged[level, number] = record
    return merged


def close(combine: Callable[[Record, Record], Record], parts: Mapping[Place, Record]) -> Record:
    """Return the record of all parts: the last ones have no siblings."""
    ordered = sorted(parts.items(), key=lambda item: item[0][1] << item[0][0])
    *left, (_, result) = ordered
    for _, record in reversed(left):
        result = combine(record, result)
    return result
