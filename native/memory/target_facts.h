// Target facts: the numbers that native code shares with the planner. tools/target_header.py writes
// this file from schedule/target.py, core/canonical_reduction.py and codegen/simt/row_table.py.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tenfold {

// The alignment of buffers and of areas of scratch memory: a line of the cache.
constexpr std::size_t ALIGNMENT_BYTES = 64;
// Elements up to which a kernel for any shape keeps the GIL.
constexpr int64_t GIL_ELEMENTS = 4096;
// Elements up to which one thread runs a kernel.
constexpr int64_t SERIAL_ELEMENTS = 32768;
// Elements of one range of a kernel for any shape.
constexpr int64_t GRAIN_ELEMENTS = 16384;
// Elements of a row that are one unit of work at most: whole packets.
constexpr int64_t MAX_UNIT_ELEMENTS = 4096;
// Nodes of a graph that is planned as a whole: planning a longer one is slow.
constexpr std::size_t MAX_PLANNED_NODES = 512;
// Bytes up to which an operand of a pushed member is put beside others.
constexpr int64_t STACKED_BYTES = 16384;
// Elements up to which an array of a graph is put beside others.
constexpr int64_t STACKED_ELEMENTS = 65536;
// Elements from which an operand that members share justifies batches of its own.
constexpr int64_t SHARED_ELEMENTS = 1024;
// Bytes of the results and stacked operands of a batch.
constexpr std::size_t MAX_BATCH_BYTES = 268435456;
// Of the canonical reduction tree.
constexpr int64_t TREE_LANES = 32;
// Of the canonical reduction tree.
constexpr int64_t TREE_BLOCK = 1024;
// Of a kernel of rows.
constexpr std::size_t TABLE_AXES = 16;
// Of a kernel of rows.
constexpr std::size_t TABLE_ROWS = 475;

} // namespace tenfold
