"""Unit verification: the units of a launch cover its loops once, within its scratch memory.

Takes a LaunchSpace, raises VerifyError. Scratch memory must be as large as the emitter needs. Each
form has the units of its emitter in codegen/: a unit is a part of the packet axis (maps, columns),
a row, several rows side by side, blocks of a row, or a tile. All but the last part of a row must
be whole packets, so that only row ends need masks.

    refuse_units(loop_space(launch))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tenfold.core.canonical_reduction import BLOCK, LANES
from tenfold.core.loop_ir import PITCH, SCATTER_CHUNK, SEGMENT_CHUNK, TILE, TILE_ROW, KernelForm
from tenfold.core.shape_rules import product
from tenfold.schedule.launch_space import LaunchSpace, violation

WORD_BYTES = 8
"""Bytes of an element in scratch memory of rows and columns, for every dtype."""


def refuse_units(space: LaunchSpace) -> None:
    """Refuse units, partial results or scratch memory that do not match the loops."""
    kernel, launch = space.kernel, space.launch
    form = "tiled" if kernel.transposed_operands else kernel.form
    units, scratch, totals, finish, parts = (THREAD_UNITS if kernel.block else FORMS)[form](space)
    if launch.units != units:
        raise violation(kernel, f"{launch.units} units, but {units} cover {space.lengths} once")
    if launch.grain < 1:
        raise violation(kernel, f"ranges of {launch.grain} units")
    if launch.scratch < scratch:
        raise violation(kernel, f"{launch.scratch} bytes of scratch memory, {scratch} are used")
    if launch.finish != finish:
        raise violation(kernel, f"{launch.finish} rows are finished, there are {finish}")
    if launch.parts != parts:
        raise violation(kernel, f"{launch.parts} parts of rows, there are {parts}")
    same_count = len(launch.totals) == len(totals)
    if not same_count or any(a < b for a, b in zip(launch.totals, totals, strict=True)):
        raise violation(kernel, f"tables of {launch.totals} bytes for totals of {totals}")


UnitLayout = tuple[int, int, tuple[int, ...], int, int]
"""Units, bytes of scratch memory, of each table of totals, rows that are finished, parts."""


def _rows(space: LaunchSpace) -> int:
    return product(space.lengths[:-1])


def _count_parts(space: LaunchSpace, length: int, multiple: int, noun: str) -> int:
    """The number of parts of a length; all but the last are multiples of packets."""
    if space.part < 1 or space.part % multiple:
        rule = f"a part of {space.part} is not a whole number of {noun} of {multiple}"
        raise violation(space.kernel, rule)
    return -(-length // space.part)


def _map(space: LaunchSpace) -> UnitLayout:
    parts = _count_parts(space, space.lengths[-1], space.kernel.lanes, "packets")
    return _rows(space) * parts, 0, (), 0, 0


def _tiled(space: LaunchSpace) -> UnitLayout:
    """Blocks are transposed whole: both axes have at least one, and tiles consist of blocks."""
    kernel, transposed = space.kernel, space.kernel.transposed_operands
    sizes = [kernel.operands[number].dtype.itemsize for number in transposed]
    height, width = TILE, min(TILE, TILE_ROW // max(sizes))
    if kernel.tile != (height, width):
        raise violation(kernel, f"tiles are {kernel.tile}, not {(height, width)}")
    if width % kernel.lanes:
        raise violation(kernel, f"a tile {width} wide is not a whole number of packets")
    blocks = [min(16, 64 // size) for size in sizes]
    if any(height % block or width % block for block in blocks):
        raise violation(kernel, f"tiles of {(height, width)} are not whole blocks of {blocks}")
    if min(space.lengths[-2:]) < max(blocks):
        raise violation(
            kernel, f"axes of {space.lengths[-2:]} are shorter than a block of {blocks}"
        )
    rows, columns = -(-space.lengths[-2] // height), -(-space.lengths[-1] // width)
    scratch = height * width * max(sizes) * len(transposed)
    return product(space.lengths[:-2]) * rows * columns, scratch, (), 0, 0


def _refuse_lanes(space: LaunchSpace) -> None:
    if space.kernel.lanes != LANES:
        raise violation(space.kernel, f"rows are folded {LANES} lanes at a time")


def _row(space: LaunchSpace) -> UnitLayout:
    _refuse_lanes(space)
    cached_bytes = (
        WORD_BYTES * len(space.kernel.cached_elements) * (space.lengths[-1] + space.kernel.lanes)
    )
    return _rows(space), cached_bytes, (), 0, 0


def _short_row(space: LaunchSpace) -> UnitLayout:
    """A row is one packet; without a mask it fills it."""
    kernel, length = space.kernel, space.lengths[-1]
    if length > kernel.lanes or (length < kernel.lanes and not kernel.masked):
        raise violation(kernel, f"a row of {length} is no packet of {kernel.lanes} elements")
    return _rows(space), 0, (), 0, 0


def _split(space: LaunchSpace) -> UnitLayout:
    _refuse_lanes(space)
    blocks = -(-space.lengths[-1] // BLOCK)
    parts, rows = _count_parts(space, blocks, 1, "blocks"), _rows(space)
    return rows * parts, 0, _totals(space, rows * blocks), rows, 0


def _search(space: LaunchSpace) -> UnitLayout:
    return _rows(space), 0, (), 0, 0


def _search_parts(space: LaunchSpace) -> UnitLayout:
    rows, parts = (
        _rows(space),
        _count_parts(space, space.lengths[-1], space.kernel.lanes, "packets"),
    )
    return rows * parts, 0, _totals(space, rows * parts), rows, 0


def _totals(space: LaunchSpace, count: int) -> tuple[int, ...]:
    """The bytes of a table for each part of each fold, with so many entries."""
    kernel = space.kernel
    return tuple([count * kernel.body[i].dtype.itemsize for f in kernel.folds for i in f.inputs])


def _column(space: LaunchSpace) -> UnitLayout:
    """Scratch memory has rows for the results of lanes and of pending blocks; of n blocks at most
    one is pending for each bit of n.
    """
    kernel = space.kernel
    parts = _count_parts(space, space.lengths[-1], kernel.lanes, "packets")
    blocks = -(-space.lengths[-2] // BLOCK)
    if space.slots < blocks.bit_length():
        raise violation(kernel, f"{space.slots} slots, {blocks.bit_length()} blocks can wait")
    rows = kernel.most_parts * (LANES + space.slots) + len(kernel.pass_results)
    scratch = WORD_BYTES * (space.part + kernel.lanes) * rows
    return product(space.lengths[:-2]) * parts, scratch, (), 0, 0


def _scanned(space: LaunchSpace) -> int:
    """The bytes of blocks side by side; a packet must not reach beyond its block."""
    kernel = space.kernel
    if BLOCK % kernel.lanes:
        raise violation(kernel, f"blocks of {BLOCK} are no whole number of packets")
    sizes = sum(kernel.body[i].dtype.itemsize for i in kernel.scan.inputs)
    return _side_by_side(space) * PITCH * sizes


def _side_by_side(space: LaunchSpace) -> int:
    return 8 if space.kernel.body[space.kernel.scan.inputs[0]].dtype.itemsize == 8 else 16


def _scan(space: LaunchSpace) -> UnitLayout:
    return -(-_rows(space) // _side_by_side(space)), _scanned(space), (), 0, 0


def _scan_blocks(space: LaunchSpace) -> UnitLayout:
    return _rows(space), _scanned(space), (), 0, 0


def _scan_parts(space: LaunchSpace) -> UnitLayout:
    """Totals are stored as whole packets of blocks: no part begins within one."""
    kernel, side_by_side, rows = space.kernel, _side_by_side(space), _rows(space)
    blocks = -(-space.lengths[-1] // BLOCK)
    parts = _count_parts(space, blocks, side_by_side, "packets of blocks")
    entries = rows * -(-blocks // side_by_side) * side_by_side
    totals = [entries * kernel.body[i].dtype.itemsize for i in kernel.scan.inputs]
    return rows, _scanned(space), tuple(totals), 0, rows * parts


def _scan_columns(space: LaunchSpace) -> UnitLayout:
    kernel = space.kernel
    parts = _count_parts(space, space.lengths[-1], kernel.lanes, "packets")
    scratch = 2 * WORD_BYTES * len(kernel.scan.inputs) * (space.part + kernel.lanes)
    return product(space.lengths[:-2]) * parts, scratch, (), 0, 0


def _scatter(space: LaunchSpace) -> UnitLayout:
    """Elements of a chunk are stored as whole packets, with the offsets of their cells."""
    kernel = space.kernel
    if SCATTER_CHUNK % kernel.lanes:
        raise violation(kernel, f"chunks of {SCATTER_CHUNK} are no whole number of packets")
    return 1, WORD_BYTES * SCATTER_CHUNK * (1 + len(kernel.scatter.values)), (), 0, 0


def _scatter_parts(space: LaunchSpace) -> UnitLayout:
    """Each part says in a table whether its offsets ascend. A chunk has a mask of each element."""
    parts = _count_parts(space, space.lengths[-1], 1, "elements")
    _, scratch, *_ = _scatter(space)
    scratch += WORD_BYTES * SCATTER_CHUNK
    if kernel_axes := space.kernel.axes - 1:
        raise violation(space.kernel, f"parts along {kernel_axes + 1} axes")
    return parts, scratch, (WORD_BYTES * parts,), 1, 0


def _scatter_rows(space: LaunchSpace) -> UnitLayout:
    if not space.kernel.scatter.is_contiguous:
        raise violation(space.kernel, "the cells of a row are not neighbours")
    parts = _count_parts(space, space.lengths[-1], space.kernel.lanes, "packets")
    return parts, 0, (), 0, 0


def _segments(space: LaunchSpace) -> UnitLayout:
    """Units of about as many entries and rows: each row belongs to that in which it begins."""
    kernel = space.kernel
    *outer, rows, entries = space.lengths[: kernel.folded + 1]
    scratch = WORD_BYTES * len(kernel.cached_elements) * (SEGMENT_CHUNK + kernel.lanes)
    return product(outer) * _count_parts(space, rows + entries, 1, "rows"), scratch, (), 0, 0


FORMS: Mapping[str, Callable[[LaunchSpace], UnitLayout]] = {
    KernelForm.MAP: _map,
    "tiled": _tiled,
    KernelForm.ROW: _row,
    KernelForm.SHORT_ROW: _short_row,
    KernelForm.SPLIT: _split,
    KernelForm.SEARCH: _search,
    KernelForm.SEARCH_PARTS: _search_parts,
    KernelForm.COLUMN: _column,
    KernelForm.SCAN: _scan,
    KernelForm.SCAN_BLOCKS: _scan_blocks,
    KernelForm.SCAN_PARTS: _scan_parts,
    KernelForm.SCAN_COLUMNS: _scan_columns,
    KernelForm.SEGMENTS: _segments,
    KernelForm.SCATTER: _scatter,
    KernelForm.SCATTER_PARTS: _scatter_parts,
    KernelForm.SCATTER_ROWS: _scatter_rows,
}
"""The units of each form."""


def _threads_of_map(space: LaunchSpace) -> UnitLayout:
    return product(space.lengths), 0, (), 0, 0


def _blocks_of_tiles(space: LaunchSpace) -> UnitLayout:
    tiles = -(-space.lengths[-2] // LANES) * -(-space.lengths[-1] // LANES)
    sizes = [
        space.kernel.operands[number].dtype.itemsize for number in space.kernel.staged_operands
    ]
    shared = sum(sizes) * LANES * (LANES + 1)
    return product(space.lengths[:-2]) * tiles * space.kernel.block, shared, (), 0, 0


def _threads_of_columns(space: LaunchSpace) -> UnitLayout:
    return product(space.lengths[:-2]) * space.lengths[-1], 0, (), 0, 0


def _warps_of_rows(space: LaunchSpace) -> UnitLayout:
    return _rows(space) * LANES, 0, (), 0, 0


def _warps_of_blocks(space: LaunchSpace) -> UnitLayout:
    blocks = _rows(space) * -(-space.lengths[-1] // BLOCK)
    return blocks * LANES, 0, _totals(space, blocks), _rows(space) * LANES, 0


THREAD_UNITS: Mapping[str, Callable[[LaunchSpace], UnitLayout]] = {
    KernelForm.MAP: _threads_of_map,
    "tiled": _blocks_of_tiles,
    KernelForm.ROW: _warps_of_rows,
    KernelForm.COLUMN: _threads_of_columns,
    KernelForm.SPLIT: _warps_of_blocks,
}
"""The same where a unit is a thread."""

__all__ = ["refuse_units"]
