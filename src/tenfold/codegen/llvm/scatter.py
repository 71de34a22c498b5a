"""Scatter: combines elements into the cells of a result that they name, each cell in loop order.

Input: a FunctionEmitter of a kernel of a scatter form. Output: lines. A cell begins with its
initial value, and the elements that name it are combined with it one after the other, so no bit
depends on threads. In a kernel of form "scatter" the elements of a chunk, and the offsets of their
cells, are computed in packets in scratch memory, then combined one by one.

In "scatter parts" a unit of work is a part of the elements. It takes for granted that offsets
ascend: then the elements of a cell are neighbours, and belong to the part in which they begin. A
unit that finds them in another order says so in a table, and `finish` combines all in loop order.
In a dense chunk each cell is that of the element before or the next one: its loop has no branches.

In "scatter rows" each row of elements goes to neighbouring cells: packets of columns. A unit of
work is a part of the columns, and a range of units combines all rows once.
"""

from __future__ import annotations

import numpy as np

from tenfold.codegen.llvm import load_store
from tenfold.codegen.llvm.function_emitter import FunctionEmitter
from tenfold.codegen.llvm.load_store import PacketAddress
from tenfold.codegen.llvm.loop_emitter import (
    combine_partials,
    emit_rule,
    for_range,
    for_range_carrying,
    if_then,
    int_max,
    int_min,
    int_op,
    phi,
    read_packet,
    write_packet,
)
from tenfold.codegen.llvm.reduce_inner import begin_row
from tenfold.codegen.llvm.simd_emitter import Packet, SimdEmitter, literal, llvm_type
from tenfold.core.loop_ir import SCATTER_CHUNK, operand_of
from tenfold.core.scalar_ir import UNSIGNED, Body, Element
from tenfold.dtypes import BOOL, INT64

Parts = tuple[Packet, ...]
"""The real parts of an element."""


def scatter_all(emitter: FunctionEmitter, _: str) -> None:
    """Emit a unit of work: all elements in loop order."""
    _Scatter(emitter).combine_all()


def scatter_part(emitter: FunctionEmitter, number: str) -> None:
    """Emit a unit of work: the cells that begin in a part of ascending offsets."""
    _Part(emitter, number).emit()


def finish(emitter: FunctionEmitter, _: str) -> None:
    """Emit a unit of work: all elements in loop order, if a part does not ascend."""
    ir, part = emitter.ir, emitter.unit_length
    rounded = int_op(ir, "add", emitter.length(0), int_op(ir, "sub", part, 1))
    count = int_op(ir, "udiv", rounded, part)
    slot = ir.alloca(8)
    ir.line(f"store i64 0, ptr {slot}, align 8")

    def add_flag(number: str) -> None:
        (pointer,) = emitter.total_pointers([INT64], number)
        flags = int_op(ir, "or", _read(ir, slot), _read(ir, pointer))
        ir.line(f"store i64 {flags}, ptr {slot}, align 8")

    for_range(ir, "0", count, 1, add_flag)
    is_unordered = ir.value(f"icmp ne i64 {_read(ir, slot)}, 0")
    if_then(ir, is_unordered, _Scatter(emitter).combine_all)


def scatter_rows(emitter: FunctionEmitter) -> None:
    """Emit a range of units: all rows, of each the columns of these units."""
    ir, kernel = emitter.ir, emitter.kernel
    last = kernel.axes - 1
    begin = int_op(ir, "mul", "%begin", emitter.unit_length)
    width = emitter.length(last)
    end = int_min(ir, int_op(ir, "mul", "%end", emitter.unit_length), width)
    scatter = _Scatter(emitter)

    def fill_row(row: str) -> None:
        scatter.fill(begin, end, first_cell=int_op(ir, "mul", row, width))

    for_range(ir, "0", int_op(ir, "udiv", scatter.cell_count, width), 1, fill_row)

    def combine_row(row: str) -> None:
        emitter.set_indices(row, last)
        begin_row(emitter)
        scatter.combine_row(begin, end)

    for_range(ir, "0", scatter.row_count(), 1, combine_row)


def _read(ir: SimdEmitter, pointer: str) -> str:
    return ir.value(f"load i64, ptr {pointer}, align 8")


class _Scatter:
    """The loops over elements and cells of one function."""

    def __init__(self, emitter: FunctionEmitter) -> None:
        self.emitter, self.ir, self.kernel = emitter, emitter.ir, emitter.kernel
        emitter.set_indices("0", 0)
        self.scatter = self.kernel.scatter
        (store,) = self.kernel.stores
        self.operand = self.kernel.operands[store.operand]
        self.result = emitter.buffers[store.operand]
        self.dtypes = [self.kernel.body[i].dtype for i in self.scatter.values]
        numbered = enumerate(zip(self.kernel.body, self.kernel.levels, strict=True))
        self.checks = [i for i, (x, level) in numbered if x.name == "fail" and level >= 0]
        self.stored = (self.scatter.offset, *self.scatter.values)
        """The instructions of the offset of an element's cell, and of the element's parts."""

    @property
    def cell_count(self) -> str:
        """The number of cells of the result."""
        return self.emitter.size["slots", 0, 0]

    def row_count(self) -> str:
        """Return the number of rows: indices of all axes but the last."""
        count = "1"
        for axis in range(self.kernel.axes - 1):
            count = int_op(self.ir, "mul", count, self.emitter.length(axis))
        return count

    def fill(self, begin: str, end: str, first_cell: str = "0") -> None:
        """Store the initial values of the cells from `begin` to `end` after the first cell."""
        emitter, ir = self.emitter, self.ir
        base = self._cell(first_cell)
        operand = self.operand._replace(steps="1")

        def fill_packet(position: str, mask: str | None) -> None:
            cell = int_op(ir, "add", first_cell, position)
            values = {self.scatter.offset: emitter.positions(cell)}
            with emitter.contiguous_at(self.scatter.offset, first_cell):
                emitter.compute(self.scatter.initial, values, position, mask)
            packets = [values[i] for i in self.scatter.initial]
            address = PacketAddress(base, position, "0", mask, emitter.lanes)
            load_store.store(ir, operand, packets, address)

        self.emitter.for_packets(begin, end, fill_packet)

    def combine_row(self, begin: str, end: str) -> None:
        """Combine the columns from `begin` to `end` of a row with the cells that it names."""
        emitter, ir, scatter = self.emitter, self.ir, self.scatter
        row = scatter.row_offset
        base = self._cell("0" if row is None else emitter.uniform_values[row].text)
        operand = self.operand._replace(steps="1")

        def combine_packet(position: str, mask: str | None) -> None:
            values = dict(emitter.uniform_values)
            emitter.compute([*scatter.values, *self.checks], values, position, mask)
            address = PacketAddress(base, position, "0", mask, emitter.lanes)
            old = tuple(
                load_store.load(ir, operand, part, address) for part in range(len(self.dtypes))
            )
            new = combine_partials(ir, scatter.kind, old, tuple(values[i] for i in scatter.values))
            load_store.store(ir, operand, list(new), address)

        self.emitter.for_packets(begin, end, combine_packet)

    def combine_all(self) -> None:
        """Fill the cells, and combine all elements with them in loop order."""
        emitter, ir, last = self.emitter, self.ir, self.kernel.axes - 1
        self.fill("0", self.cell_count)

        def combine_chunk(begin: str) -> None:
            end = int_min(ir, int_op(ir, "add", begin, SCATTER_CHUNK), emitter.length(last))
            self.compute_chunk(begin, end)
            count = int_op(ir, "sub", end, begin)
            for_range(ir, "0", count, 1, lambda local: self._combine_element(begin, local))

        def combine_elements(row: str) -> None:
            emitter.set_indices(row, last)
            begin_row(emitter)
            for_range(ir, "0", emitter.length(last), SCATTER_CHUNK, combine_chunk)

        if last:
            for_range(ir, "0", self.row_count(), 1, combine_elements)
        else:
            combine_elements("0")

    def compute_chunk(self, begin: str, end: str) -> None:
        """Compute the elements from `begin` to `end`, and the offsets of their cells."""
        emitter, ir = self.emitter, self.ir
        computed = [i for i in self.stored if not self._is_in_memory(i)]

        def compute_packet(position: str, mask: str | None) -> None:
            values = dict(emitter.uniform_values)
            emitter.compute([*computed, *self.checks], values, position, mask)
            local = int_op(ir, "sub", position, begin)
            for i in computed:
                pointer = self._scratch_pointer(i, local)
                write_packet(ir, pointer, values[i], emitter.lanes)

        self.emitter.for_packets(begin, end, compute_packet)

    def _is_in_memory(self, number: int) -> bool:
        """Whether an instruction loads contiguous elements, which need not be computed."""
        instruction = self.kernel.body[number]
        if instruction.name != "load":
            return False
        operand = self.kernel.operands[operand_of(instruction)]
        return operand.steps.endswith("1") and operand.dtype == instruction.dtype

    def _scratch_pointer(self, number: int, position: str) -> str:
        """The pointer to an element of an instruction in scratch memory."""
        offset = int_op(self.ir, "mul", position, self.kernel.body[number].dtype.itemsize)
        offset = int_op(self.ir, "add", offset, 8 * SCATTER_CHUNK * self.stored.index(number))
        return self.ir.value(f"getelementptr i8, ptr %scratch, i64 {offset}")

    def _read(self, number: int, begin: str, local: str) -> Packet:
        """Read one element of an instruction, by its position in the chunk from `begin` on."""
        dtype = self.kernel.body[number].dtype
        return read_packet(self.ir, self._pointer(number, begin, local), dtype, 1)

    def _pointer(self, number: int, begin: str, local: str) -> str:
        instruction = self.kernel.body[number]
        if not self._is_in_memory(number):
            return self._scratch_pointer(number, local)
        position = int_op(self.ir, "add", begin, local)
        offset = int_op(self.ir, "mul", position, instruction.dtype.itemsize)
        base = self.emitter.pointer(operand_of(instruction))
        return self.ir.value(f"getelementptr i8, ptr {base}, i64 {offset}")

    def element(self, begin: str, local: str) -> tuple[str, Parts]:
        """Read the offset of the cell, and the parts, of an element of a chunk."""
        offset, *parts = [self._read(number, begin, local) for number in self.stored]
        return offset.text, tuple(parts)

    def _combine_element(self, begin: str, local: str) -> None:
        offset, new = self.element(begin, local)
        operand = self.operand._replace(steps="0")
        address = PacketAddress(self._cell(offset), "0", "0", None, 1)
        old = tuple(
            load_store.load(self.ir, operand, part, address) for part in range(len(self.dtypes))
        )
        self.store(offset, self.combine(old, new))

    def combine(self, old: Parts, new: Parts) -> Parts:
        """Emit the combination of a cell with an element."""
        return combine_partials(self.ir, self.scatter.kind, old, new)

    def store(self, offset: str, parts: Parts) -> None:
        """Store the value of a cell."""
        load_store.store_single(self.ir, self.operand, list(parts), self._cell(offset))

    def _cell(self, offset: str) -> str:
        byte_offset = int_op(self.ir, "mul", offset, self.operand.dtype.itemsize)
        return self.ir.value(f"getelementptr i8, ptr {self.result}, i64 {byte_offset}")

    def initial(self, offset: str) -> Parts:
        """Compute the initial value of one cell."""
        values = {self.scatter.offset: Packet(offset, INT64, 1)}
        self.emitter.compute(self.scatter.initial, values, "0", None)
        return tuple(values[i] for i in self.scatter.initial)


def _mask_dtype(dtype: np.dtype) -> np.dtype:
    """Return the integers that have a mask of elements of a dtype."""
    return UNSIGNED[dtype.itemsize]


def _zero(lanes: int) -> str:
    return "0" if lanes == 1 else "zeroinitializer"


def _keep(k: Body, x: Element, mask: Element) -> tuple[Element]:
    """Return x where the mask is set, else 0."""
    if x.dtype == BOOL:
        return (x & mask,)
    bits = UNSIGNED[x.dtype.itemsize]
    return (k.bits(k.bits(x, bits) & k.bits(mask, bits), x.dtype),)


def _keep_or(k: Body, x: Element, mask: Element, y: Element) -> tuple[Element]:
    """Return x where the mask is set, else y."""
    if x.dtype == BOOL:
        return ((x & mask) | (y & ~mask),)
    bits = UNSIGNED[x.dtype.itemsize]
    x_bits, y_bits, mask_bits = (k.bits(element, bits) for element in (x, y, mask))
    return (k.bits((x_bits & mask_bits) | (y_bits & ~mask_bits), x.dtype),)


class _Part(_Scatter):
    """A part of elements whose offsets ascend. It owns the cells that begin in it, and the cells
    without elements before them; the last part owns those at the end, too.
    """

    def __init__(self, emitter: FunctionEmitter, number: str) -> None:
        super().__init__(emitter)
        ir = self.ir
        self.length = emitter.length(0)
        self.begin = int_op(ir, "mul", number, emitter.unit_length)
        self.end = int_min(ir, int_op(ir, "add", self.begin, emitter.unit_length), self.length)
        (self.unordered,) = emitter.total_pointers([INT64], number)
        self.exit = ir.name()[1:]
        self.state = [ir.alloca(8) for _ in (INT64, *self.dtypes)]
        """On the stack between chunks: the last cell, and the parts of its value so far."""
        self.owned, self.unknown = ir.alloca(8), ir.alloca(8)
        """On the stack: whether the last cell belongs to this part; whether it is not yet read."""

    def emit(self) -> None:
        """Emit the unit."""
        emitter, ir = self.emitter, self.ir
        begin_row(emitter)
        is_first = ir.value(f"icmp eq i64 {self.begin}, 0")
        # the first part begins before all cells; other parts read the cell before their first one
        unknown = ir.value(f"select i1 {is_first}, i64 0, i64 1")
        values = {self.unordered: "0", self.owned: "0", self.unknown: unknown, self.state[0]: "-1"}
        for slot, value in (dict.fromkeys(self.state, "0") | values).items():
            ir.line(f"store i64 {value}, ptr {slot}, align 8")
        start = int_max(ir, int_op(ir, "sub", self.begin, 1), "0")
        for_range(ir, start, self.length, SCATTER_CHUNK, self._combine_chunk)
        last = self._read_state()
        self._store_owned(last)
        self.fill(int_op(ir, "add", last[0].text, 1), self.cell_count)
        ir.line(f"br label %{self.exit}")
        ir.label(self.exit)

    def _combine_chunk(self, begin: str) -> None:
        """Combine the elements of a chunk up to the end of this part."""
        ir = self.ir
        end = int_min(ir, int_op(ir, "add", begin, SCATTER_CHUNK), self.length)
        self.compute_chunk(begin, end)
        count = int_op(ir, "sub", end, begin)
        before, name = self._read_state(), ir.name()[1:]
        is_owned = ir.value(f"icmp ne i64 {_read(ir, self.owned)}, 0")
        last = int_op(ir, "add", begin, SCATTER_CHUNK)
        is_inside = ir.value(f"icmp sle i64 {last}, {self.end}")
        may_be_dense = ir.value(f"and i1 {is_owned}, {is_inside}")
        ir.line(f"br i1 {may_be_dense}, label %{name}.steps, label %{name}.any")
        ir.label(f"{name}.steps")
        is_dense = self._find_steps(begin, before[0])
        ir.line(f"br i1 {is_dense}, label %{name}.dense, label %{name}.any")
        ir.label(f"{name}.dense")
        self.store(before[0].text, before[1:])  # its last element may end the chunk before
        dense = self._combine_dense(begin, before)
        dense_block = ir.block
        ir.line(f"br label %{name}.combined")
        ir.label(f"{name}.any")
        every = for_range_carrying(
            ir, "0", count, before, lambda local, parts: self._combine_next(begin, local, parts)
        )
        any_block = ir.block
        ir.line(f"br label %{name}.combined")
        ir.label(f"{name}.combined")
        state = phi(ir, ((dense, dense_block), (every, any_block)))
        for slot, packet in zip(self.state, state, strict=True):
            write_packet(ir, slot, packet, 1)
        none_owned = ir.value(f"icmp eq i64 {_read(ir, self.owned)}, 0")
        is_past = ir.value(f"icmp sge i64 {end}, {self.end}")
        self._exit_if(ir.value(f"and i1 {none_owned}, {is_past}"))

    def _find_steps(self, begin: str, cell: Packet) -> str:
        """Store of each element of a full chunk whether its cell is that of the element before, as
        bits. Return whether each other cell is the next one.
        """
        ir, lanes, offset = self.ir, self.emitter.lanes, self.scatter.offset
        dtype = _mask_dtype(self.dtypes[0])
        type_ = llvm_type(INT64, lanes)
        found = ir.alloca(8 * lanes)

        def add(steps: str, position: str, count: int) -> None:
            same = ir.value(f"icmp eq {llvm_type(INT64, count)} {steps}, {_zero(count)}")
            bits = llvm_type(dtype, count)
            source = "i1" if count == 1 else f"<{count} x i1>"
            mask = ir.value(f"sext {source} {same} to {bits}")
            pointer = self._mask_pointer(position)
            ir.line(f"store {bits} {mask}, ptr {pointer}, align {dtype.itemsize}")

        def add_packet(position: str) -> None:
            following = int_op(ir, "add", position, 1)
            pointers = [self._pointer(offset, begin, place) for place in (position, following)]
            cells = [ir.value(f"load {type_}, ptr {pointer}, align 8") for pointer in pointers]
            steps = ir.value(f"sub {type_} {cells[1]}, {cells[0]}")
            add(steps, following, lanes)
            before = ir.value(f"load {type_}, ptr {found}, align 64")
            ir.line(
                f"store {type_} {ir.value(f'or {type_} {steps}, {before}')}, ptr {found}, align 64"
            )

        ir.line(f"store {type_} zeroinitializer, ptr {found}, align 64")
        first_step = int_op(ir, "sub", self._read(offset, begin, "0").text, cell.text)
        add(first_step, "0", 1)
        for_range(ir, "0", str(SCATTER_CHUNK - lanes), lanes, add_packet)
        add_packet(str(SCATTER_CHUNK - 1 - lanes))
        steps = ir.value(f"load {type_}, ptr {found}, align 64")
        step = ir.intrinsic(f"llvm.vector.reduce.or.v{lanes}i64", "i64", [(type_, steps)])
        return ir.value(f"icmp ult i64 {int_op(ir, 'or', step, first_step)}, 2")

    def _mask_pointer(self, position: str) -> str:
        row = 8 * SCATTER_CHUNK * len(self.stored)
        offset = int_op(self.ir, "mul", position, _mask_dtype(self.dtypes[0]).itemsize)
        offset = int_op(self.ir, "add", offset, row)
        return self.ir.value(f"getelementptr i8, ptr %scratch, i64 {offset}")

    def _combine_dense(self, begin: str, before: Parts) -> Parts:
        """Combine a dense chunk without a branch for each cell: each element stores its cell.

        The chunk is cut where a cell begins, and both halves are combined side by side: the
        processor need not wait for the last addition.
        """
        ir, count = self.ir, len(self.dtypes)
        middle = self._first_cell_of_second_half()
        second = int_op(ir, "sub", str(SCATTER_CHUNK), middle)
        zeros = tuple(Packet(literal(dtype, 0), dtype, 1) for dtype in self.dtypes)

        def combine_both(i: str, parts: Parts) -> Parts:
            other = self._combine_masked(begin, int_op(ir, "add", middle, i), parts[count:])
            return (*self._combine_masked(begin, i, parts[:count]), *other)

        both = for_range_carrying(ir, "0", second, (*before[1:], *zeros), combine_both)
        first = for_range_carrying(
            ir, second, middle, both[:count], lambda i, x: self._combine_masked(begin, i, x)
        )
        has_second = Packet(ir.value(f"icmp sgt i64 {second}, 0"), BOOL, 1)
        parts = tuple(
            emit_rule(ir, (has_second, x, y), lambda k, *x: (k.select(*x),))[0]
            for x, y in zip(both[count:], first, strict=True)
        )
        return (self._read(self.scatter.offset, begin, str(SCATTER_CHUNK - 1)), *parts)

    def _first_cell_of_second_half(self) -> str:
        """Find the first element of the second half that begins a cell; else the end."""
        ir, name, slot = self.ir, self.ir.name()[1:], self.ir.alloca(8)
        dtype = _mask_dtype(self.dtypes[0])
        ir.line(f"store i64 {SCATTER_CHUNK}, ptr {slot}, align 8")

        def test(position: str) -> None:
            mask = read_packet(ir, self._mask_pointer(position), dtype, 1)
            begins = ir.value(f"icmp eq {llvm_type(dtype, 1)} {mask.text}, 0")

            def stop() -> None:
                ir.line(f"store i64 {position}, ptr {slot}, align 8")
                ir.line(f"br label %{name}.found")
                ir.label(f"{ir.name()[1:]}.unreached")

            if_then(ir, begins, stop)

        for_range(ir, str(SCATTER_CHUNK // 2), str(SCATTER_CHUNK), 1, test)
        ir.line(f"br label %{name}.found")
        ir.label(f"{name}.found")
        return _read(ir, slot)

    def _combine_masked(self, begin: str, local: str, before: Parts) -> Parts:
        """Combine an element with its cell: with `before` where the mask is set, else a new one."""
        ir = self.ir
        offset, new = self.element(begin, local)
        initial = self.initial(offset)
        old: list[Packet] = []
        for x, y in zip(before, initial, strict=True):
            mask = self._read_mask(local, x.dtype)
            is_zero = y.text == literal(y.dtype, 0)
            rule = _keep if is_zero else _keep_or
            old += emit_rule(ir, (x, mask) if is_zero else (x, mask, y), rule)
        parts = self.combine(tuple(old), new)
        self.store(offset, parts)
        return parts

    def _read_mask(self, local: str, dtype: np.dtype) -> Packet:
        return read_packet(self.ir, self._mask_pointer(local), dtype, 1)

    def _combine_next(self, begin: str, local: str, before: Parts) -> Parts:
        """Emit the combination of an element with its cell, whatever cell it is."""
        ir, name = self.ir, self.ir.name()[1:]
        offset, new = self.element(begin, local)
        same = ir.value(f"icmp eq i64 {offset}, {before[0].text}")
        ir.line(f"br i1 {same}, label %{name}.same, label %{name}.other")
        ir.label(f"{name}.other")
        other = self._begin_cell(int_op(ir, "add", begin, local), offset, before, new)
        other_block = ir.block
        ir.line(f"br label %{name}.next")
        ir.label(f"{name}.same")
        combined = (before[0], *self.combine(before[1:], new))
        same_block = ir.block
        ir.line(f"br label %{name}.next")
        ir.label(f"{name}.next")
        return phi(ir, ((other, other_block), (combined, same_block)))

    def _begin_cell(self, position: str, offset: str, before: Parts, new: Parts) -> Parts:
        """Emit the change from the cell before to the next one, and return the state after it."""
        ir = self.ir
        name = ir.name()[1:]
        unknown = ir.value(f"icmp ne i64 {_read(ir, self.unknown)}, 0")
        ir.line(f"br i1 {unknown}, label %{name}.read, label %{name}.known")
        ir.label(f"{name}.read")
        ir.line(f"store i64 0, ptr {self.unknown}, align 8")
        ir.line(f"br label %{name}.done")
        ir.label(f"{name}.known")
        self._store_owned(before)
        self._exit_if(ir.value(f"icmp sge i64 {position}, {self.end}"))

        def say_unordered() -> None:
            ir.line(f"store i64 1, ptr {self.unordered}, align 8")
            ir.line(f"br label %{self.exit}")
            ir.label(f"{ir.name()[1:]}.unreached")

        if_then(ir, ir.value(f"icmp slt i64 {offset}, {before[0].text}"), say_unordered)
        next_cell = int_op(ir, "add", before[0].text, 1)
        skips = ir.value(f"icmp slt i64 {next_cell}, {offset}")
        if_then(ir, skips, lambda: self.fill(next_cell, offset))
        parts = self.combine(self.initial(offset), new)
        ir.line(f"store i64 1, ptr {self.owned}, align 8")
        known_block = ir.block
        ir.line(f"br label %{name}.done")
        ir.label(f"{name}.done")
        cell = Packet(offset, INT64, 1)
        read = (cell, *before[1:])
        return phi(ir, (((cell, *parts), known_block), (read, f"{name}.read")))

    def _read_state(self) -> Parts:
        slots = zip(self.state, (INT64, *self.dtypes), strict=True)
        return tuple(read_packet(self.ir, slot, dtype, 1) for slot, dtype in slots)

    def _store_owned(self, state: Parts) -> None:
        """Store the value of the last cell if it belongs to this part."""
        is_owned = self.ir.value(f"icmp ne i64 {_read(self.ir, self.owned)}, 0")
        if_then(self.ir, is_owned, lambda: self.store(state[0].text, state[1:]))

    def _exit_if(self, condition: str) -> None:
        name = self.ir.name()[1:]
        self.ir.line(f"br i1 {condition}, label %{self.exit}, label %{name}.goes_on")
        self.ir.label(f"{name}.goes_on")
