"""Products of vectors by warps: (k,) @ (k,) to one number, and stacks of them.

Input: an element type and the parts of a product. Output: text in the common words of `words.py`.
A warp has one number. Its lanes are those of the packets of `codegen/gemm/dot.py`: 256 bytes of
contiguous scalars, then 8 scalars, then one element at a time, added by halves in between. So the
bits are those of packet code.

>>> from tenfold.codegen.gemm.emitter import Arithmetic
>>> from tenfold.dtypes import FLOAT32
>>> print(WarpDot(Arithmetic(FLOAT32, 64), contiguous=(True, True)))
dot products by threads: x1 @ x2 of float32, stack of 0 axes
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tenfold.codegen.gemm.dot import ACCUMULATED, TAIL_LANES
from tenfold.codegen.gemm.emitter import stack_pointers, stack_sizes, strided_ptr, zeros
from tenfold.codegen.llvm.loop_emitter import (
    Accumulator,
    for_range_carrying,
    if_then,
    int_op,
)
from tenfold.codegen.llvm.simd_emitter import Packet
from tenfold.codegen.simt.thread_emitter import shuffle
from tenfold.codegen.simt.thread_product import ProductEmitter, ThreadProduct
from tenfold.codegen.simt.words import WARP


@dataclass(frozen=True)
class WarpDot(ThreadProduct):
    """Products of vectors; each may be contiguous."""

    noun = "dot products"
    contiguous: tuple[bool, bool] = (False, False)

    @property
    def sizes(self) -> tuple[str, ...]:
        """Names of the launch sizes, in order; strides are in bytes. The number of products comes
        last.
        """
        stack = stack_sizes(self.axes, 2 + bool(self.addend))
        return (*stack, "k", "stride of x1", "stride of x2", "products")

    def common_text(self) -> str:
        """Return its module in common words."""
        return _DotEmitter(self).common_text()


class _DotEmitter(ProductEmitter):
    kernel: WarpDot

    def common_text(self) -> str:
        """Emit the module in common words."""
        ir = self.ir
        number = int_op(ir, "udiv", "%unit", WARP)
        self.lane = int_op(ir, "and", "%unit", WARP - 1)
        has_work = ir.value(f"icmp slt i64 {number}, {self.size['products']}")
        if_then(ir, has_work, lambda: self._number(number))
        return self.module()

    def _number(self, number: str) -> None:
        """Compute a number of the result by a warp; its first lane stores it."""
        ir = self.ir
        x1, x2, *addend = stack_pointers(
            ir, number, self.stack, [*self.buffers[:2], *self.buffers[3:]]
        )
        vectors, last = (x1, x2), TAIL_LANES // self.components
        lanes = last
        if all(self.kernel.contiguous):
            lanes = ACCUMULATED // self.dtype.itemsize // self.components
        zero = Packet(zeros(self.dtype, self.components), self.dtype, self.components)
        sums = [(zero,) * self.components] * max(1, lanes // WARP)
        sums, processed = self._accumulate(vectors, sums, "0", lanes)
        if lanes > last:
            sums = self._halved(sums, lanes, last)
            sums, processed = self._accumulate(vectors, sums, processed, last)
        sums = self._halved(sums, last, 1)
        sums, _ = self._accumulate(vectors, sums, processed, 1)
        is_first = ir.value(f"icmp eq i64 {self.lane}, 0")
        texts = [packet.text for packet in sums[0]]
        if_then(ir, is_first, lambda: self.finish(texts, number, "".join(addend)))

    def _accumulate(
        self, vectors: tuple[str, str], sums: Sequence[Accumulator], processed: str, lanes: int
    ) -> tuple[list[Accumulator], str]:
        """Add full packets of so many elements of what is left; other lanes have no part in it."""
        ir, count = self.ir, self.components
        remaining = int_op(ir, "sub", self.size["k"], processed)
        rounds = int_op(ir, "udiv", remaining, lanes)
        takes_part = ir.value(f"icmp slt i64 {self.lane}, {lanes}")
        own_rounds = ir.value(f"select i1 {takes_part}, i64 {rounds}, i64 0")

        def add(index: str, totals: Accumulator) -> Accumulator:
            begin = int_op(ir, "add", processed, int_op(ir, "mul", index, lanes))
            begin = int_op(ir, "add", begin, self.lane)
            added: list[Packet] = []
            for place in range(len(sums)):
                element = int_op(ir, "add", begin, WARP * place)
                x, y = (
                    self.load(strided_ptr(ir, pointer, element, self._step(i)))
                    for i, pointer in enumerate(vectors)
                )
                packet = self.packet(y)
                for part, total in zip(x, totals[place * count :], strict=False):
                    factor = ir.broadcast(Packet(part, self.dtype, 1), count)
                    text = self.arithmetic.multiply_add(ir, total.text, factor, packet, count)
                    added.append(total._replace(text=text))
            return tuple(added)

        flat = tuple(packet for each in sums for packet in each)
        flat = for_range_carrying(ir, "0", own_rounds, flat, add)
        result = [flat[i : i + count] for i in range(0, len(flat), count)]
        return result, int_op(ir, "add", processed, int_op(ir, "mul", rounds, lanes))

    def _step(self, operand: int) -> str | int:
        if self.kernel.contiguous[operand]:
            return self.itemsize
        return self.size[f"stride of x{operand + 1}"]

    def _halved(self, sums: list[Accumulator], lanes: int, target: int) -> list[Accumulator]:
        """Add the lanes by halves until so many are left: those of a thread, then of the warp."""
        while lanes > target:
            lanes //= 2
            if lanes >= WARP:
                pairs = zip(sums[: len(sums) // 2], sums[len(sums) // 2 :], strict=True)
                sums = [self._added(low, high) for low, high in pairs]
            else:
                (low,) = sums
                sums = [self._added(low, self._of_lane(low, lanes))]
        return sums

    def _added(self, low: Accumulator, high: Accumulator) -> Accumulator:
        return tuple(
            x._replace(text=self.arithmetic.add(self.ir, x.text, y.text, self.components))
            for x, y in zip(low, high, strict=True)
        )

    def _of_lane(self, sums: Accumulator, distance: int) -> Accumulator:
        """Return the sums of the lane at a distance."""
        ir = self.ir
        lane = ir.value(f"trunc i64 {int_op(ir, 'add', self.lane, distance)} to i32")
        lane = ir.value(f"and i32 {lane}, {WARP - 1}")
        return tuple(
            packet._replace(
                text=self.packet([shuffle(ir, part, lane).text for part in self.scalars(packet)])
            )
            for packet in sums
        )
