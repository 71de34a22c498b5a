#include "engine/batch_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "exec/executable.h"
#include "exec/float_env.h"
#include "exec/stacking.h"
#include "memory/pooled_vector.h"
#include "memory/target_facts.h"
#include "threads/cpu_device.h"

namespace tenfold {
namespace {

constexpr int64_t MIN_BLOCK_ELEMENTS = 64;   // elements of a unit of a loop
constexpr int64_t GATHER_BYTES = 1 << 14;    // bytes of an operand's rows that are gathered at once
constexpr int64_t GRAIN_BYTES = 1 << 17;     // bytes of results that a thread computes at a go
constexpr int64_t SUM_ELEMENTS = 1 << 10;    // elements of arrays that are summed at once
constexpr std::size_t PREFETCH_DISTANCE = 8; // members on the way

using ItemBytes = std::array<int64_t, Loops::OPERANDS + 1>;
using Numbers = std::array<uint64_t, 2 * Loops::OPERANDS>;

// One loop over contiguous operands of one length.
class ContiguousLoop {
  public:
    ContiguousLoop(const Loop& loop, std::span<const int64_t> items, int64_t length)
        : kernel_(loop.kernel) {
        int64_t block =
            std::min((length + MIN_BLOCK_ELEMENTS - 1) / MIN_BLOCK_ELEMENTS * MIN_BLOCK_ELEMENTS,
                     MAX_UNIT_ELEMENTS);
        loop.write_sizes(sizes_, length, 1, block, [&](std::size_t operand, uint8_t axis) {
            return axis == 0 ? items[operand] : 0;
        });
        units_ = length == 0 ? 0 : (length + block - 1) / block;
    }

    bool run(void** buffers, const uint64_t* numbers) const {
        if (units_ == 0) return true;
        return HostKernel::call(kernel_, buffers, sizes_.data(), numbers, nullptr, 0, units_) == 0;
    }

  private:
    KernelHandle kernel_;
    std::vector<int64_t> sizes_;
    int64_t units_;
};

void count_kernel() {
    count_anywhere(Counter::kernels);
    count_anywhere(Counter::launches);
}

// The kernel of an object that computes blocks.
template <class Blocks>
int64_t compute_blocks(void** buffers, const int64_t*, const double*, void* scratch, int64_t begin,
                       int64_t end) {
    const auto& blocks = *static_cast<const Blocks*>(buffers[0]);
    for (int64_t block = begin; block < end; ++block)
        if (!blocks.compute_block(block, static_cast<char*>(scratch))) return block + 1;
    return 0;
}

// The bytes of an element of each array among the inputs, and of the result; how many arrays.
std::size_t item_bytes(const BatchRows& rows, Future& member, ItemBytes& items) {
    std::size_t arrays = 0;
    for (Edge& edge : member.inputs())
        if (!edge.input->scalar) items[arrays++] = dtype_of(edge.input->type->dtype).bytes;
    items[arrays] = dtype_of(rows.type->dtype).bytes;
    return arrays;
}

// Where a member's arrays stand, and the bits of its numbers. False for an array not in C order.
bool read_inputs(const BatchRows& rows, Future& member, void** addresses, Numbers& numbers) {
    std::size_t count = 0, position = 0;
    bool is_contiguous = true;
    for (Edge& edge : member.inputs()) {
        const Future& input = *edge.input;
        Executable::Number spec{.dtype = rows.inference->operands[position++]};
        if (!input.scalar) {
            is_contiguous &= input.value->strides.empty();
            *addresses++ = input.value->buffers[0].address();
            continue;
        }
        numbers[count++] = scalar_bits(*input.scalar, spec);
        spec.imaginary = true;
        if (dtype_of(spec.dtype).kind == 'c') numbers[count++] = scalar_bits(*input.scalar, spec);
    }
    return is_contiguous;
}

// One launch over many members, by blocks of them.
class GatheringLoop {
  public:
    GatheringLoop(const BatchRows& rows, Members members)
        : num_members_(int64_t(members.size())), num_arrays_(item_bytes(rows, *members[0], items_)),
          elements_(rows.type->size()), addresses_(num_arrays_ * members.size()) {
        int64_t widest = *std::max_element(items_.begin(), items_.begin() + num_arrays_ + 1);
        block_ = std::clamp<int64_t>(GATHER_BYTES / std::max<int64_t>(1, elements_ * widest), 1,
                                     num_members_);
        operand_bytes_ = (block_ * elements_ * widest + 63) / 64 * 64;
        for (std::size_t k = 0; k <= num_arrays_; ++k) row_bytes_[k] = elements_ * items_[k];
        full_.emplace(*rows.loop, std::span(items_).first(num_arrays_ + 1), block_ * elements_);
        last_.emplace(*rows.loop, std::span(items_).first(num_arrays_ + 1),
                      (num_members_ - (num_blocks() - 1) * block_) * elements_);
    }

    // False where an array is not in C order, or where the numbers differ.
    bool bind(const BatchRows& rows, Members members) {
        Numbers numbers{};
        for (std::size_t i = 0; i < members.size(); ++i) {
            prefetch_inputs(members, i);
            if (!read_inputs(rows, *members[i], &addresses_[i * num_arrays_],
                             i == 0 ? numbers_ : numbers))
                return false;
            if (i > 0 && numbers != numbers_) return false;
        }
        return true;
    }

    bool run(char* result, int threads) {
        result_ = result;
        if (elements_ == 0) return true;
        count_kernel();
        int64_t bytes = block_ * elements_ * items_[num_arrays_];
        return launch_object(compute_blocks<GatheringLoop>, this, num_blocks(),
                             GRAIN_BYTES / std::max<int64_t>(1, bytes), threads,
                             num_arrays_ * std::size_t(operand_bytes_));
    }

    bool compute_block(int64_t block, char* scratch) const {
        int64_t first = block * block_, count = std::min(block_, num_members_ - first);
        std::array<void*, Loops::OPERANDS + 1> buffers{};
        for (std::size_t k = 0; k < num_arrays_; ++k)
            buffers[k] = gathered(k, first, count, scratch + int64_t(k) * operand_bytes_);
        buffers[num_arrays_] = result_ + first * row_bytes_[num_arrays_];
        return (count == block_ ? *full_ : *last_).run(buffers.data(), numbers_.data());
    }

  private:
    int64_t num_blocks() const { return (num_members_ + block_ - 1) / block_; }

    void* address(std::size_t array, int64_t member) const {
        return addresses_[std::size_t(member) * num_arrays_ + array];
    }

    // The rows of some members side by side, in `memory` if they are not already.
    void* gathered(std::size_t array, int64_t first, int64_t count, char* memory) const {
        const int64_t bytes = row_bytes_[array];
        char* begin = static_cast<char*>(address(array, first));
        int64_t i = 1;
        while (i < count && address(array, first + i) == begin + i * bytes) ++i;
        if (i >= count) return begin;
        for (i = 0; i < count; ++i) {
            if (i + int64_t(PREFETCH_DISTANCE) < count)
                __builtin_prefetch(address(array, first + i + int64_t(PREFETCH_DISTANCE)));
            std::memcpy(memory + i * bytes, address(array, first + i), std::size_t(bytes));
        }
        return memory;
    }

    const int64_t num_members_;
    ItemBytes items_{}, row_bytes_{};
    const std::size_t num_arrays_;
    const int64_t elements_; // elements of a member's array
    int64_t block_ = 1, operand_bytes_ = 0;
    PooledVector<void*> addresses_; // addresses of the arrays of each member
    Numbers numbers_{};
    std::optional<ContiguousLoop> full_, last_; // over a block of members, and over the last block
    char* result_ = nullptr;
};

} // namespace

bool run_rows(const BatchRows& rows, Members members, std::span<OperatorResult> answers,
              int threads, bool separate_results) {
    GatheringLoop loop(rows, members);
    if (!loop.bind(rows, members)) return false;
    Ref<Value> whole =
        Value::in_memory(Allocation::from_pool(rows.type->bytes() * members.size()), rows.type);
    if (!whole || !loop.run(static_cast<char*>(whole->buffers[0].address()), threads)) return false;
    if (members.size() == 1) return answers[0].value = std::move(whole), true;
    RowViews views(*whole, rows.type, members.size(), separate_results);
    for (std::size_t i = 0; i < members.size(); ++i) answers[i].value = views.row_value(i, {});
    return true;
}

std::size_t left_part_length(std::size_t length) { return std::bit_floor(length - 1); }

namespace {

// Sums arrays of one Type in one launch, by blocks of elements: the last ones pairwise, and then
// each of the first ones with the sum of all behind it.
class PairwiseSum {
  public:
    PairwiseSum(const BatchRows& rows, std::span<const Ref<Value>> values, std::size_t leaves)
        : num_firsts_(values.size() - leaves), item_(dtype_of(rows.type->dtype).bytes),
          elements_(rows.type->size()), block_(std::min(SUM_ELEMENTS, elements_)) {
        for (const Ref<Value>& value : values)
            addresses_.push_back(static_cast<char*>(value->buffers[0].address()));
        int64_t items[] = {item_, item_, item_};
        full_.emplace(*rows.loop, items, block_);
        last_.emplace(*rows.loop, items, elements_ - (num_blocks() - 1) * block_);
    }

    bool run(char* result, int threads) {
        result_ = result;
        if (elements_ == 0) return true;
        count_kernel();
        auto slots = std::size_t(std::bit_width(addresses_.size())) + 1;
        return launch_object(compute_blocks<PairwiseSum>, this, num_blocks(),
                             GRAIN_BYTES / (block_ * item_), threads,
                             slots * std::size_t(block_ * item_));
    }

    bool compute_block(int64_t block, char* scratch) const {
        bool is_last = block + 1 == num_blocks();
        const ContiguousLoop& line = is_last ? *last_ : *full_;
        int64_t offset = block * block_ * item_;
        char* sum = pairwise(line, num_firsts_, addresses_.size() - num_firsts_, offset, scratch);
        for (std::size_t i = num_firsts_; sum && i-- > 0;)
            sum = add(line, addresses_[i] + offset, sum, scratch);
        if (!sum) return false;
        int64_t count = is_last ? elements_ - block * block_ : block_;
        std::memcpy(result_ + offset, sum, std::size_t(count * item_));
        return true;
    }

  private:
    int64_t num_blocks() const { return block_ == 0 ? 0 : (elements_ + block_ - 1) / block_; }

    // The sum of some arrays in a block: in the memory of one of them, or in the first slot.
    char* pairwise(const ContiguousLoop& line, std::size_t first, std::size_t count, int64_t offset,
                   char* slots) const {
        if (count == 1) return addresses_[first] + offset;
        std::size_t half = left_part_length(count);
        char* left = pairwise(line, first, half, offset, slots);
        char* right =
            left ? pairwise(line, first + half, count - half, offset, slots + block_ * item_)
                 : nullptr;
        return right ? add(line, left, right, slots) : nullptr;
    }

    static char* add(const ContiguousLoop& line, char* left, char* right, char* sum) {
        std::array<void*, 3> buffers{left, right, sum};
        return line.run(buffers.data(), nullptr) ? sum : nullptr;
    }

    const std::size_t num_firsts_;
    const int64_t item_, elements_, block_; // bytes, and elements
    std::vector<char*> addresses_;
    std::optional<ContiguousLoop> full_, last_;
    char* result_ = nullptr;
};

// The same on a device: `values` are the first ones, then so many leaves. Empty where it fails.
Ref<Value> sum_on_device(std::vector<Ref<Value>> values, std::size_t leaves,
                         const Ref<Type>& type) {
    constexpr std::size_t BLOCK_ROWS = 256; // a power of two: blocks are parts of the tree
    static_assert(BLOCK_ROWS < TABLE_ROWS);
    const int64_t threads = type->size() * (dtype_of(type->dtype).kind == 'c' ? 2 : 1);
    auto sum = [&](std::span<const Ref<Value>> rows, std::size_t num_leaves) {
        Ref<Value> result = Value::uninitialized(type);
        std::vector<void*> table;
        for (const Ref<Value>& row : rows) table.push_back(row->buffers[0].address());
        const int64_t sizes[] = {int64_t(num_leaves), int64_t(rows.size() - num_leaves)};
        if (result && threads > 0 &&
            !launch_rows(RowForm::sum, *type, threads, result->buffers[0].address(), sizes, table))
            result = nullptr;
        return result;
    };
    while (values.size() > TABLE_ROWS) {
        const bool is_tree = leaves > 1; // else the last first ones join their sum
        const std::size_t count = is_tree ? BLOCK_ROWS : TABLE_ROWS;
        const std::size_t begin = values.size() - (is_tree ? leaves : count);
        std::vector<Ref<Value>> shorter(values.begin(), values.begin() + std::ptrdiff_t(begin));
        for (std::size_t i = begin; i < values.size(); i += count) {
            auto rows = std::span(values).subspan(i, std::min(count, values.size() - i));
            shorter.push_back(sum(rows, is_tree ? rows.size() : 1));
            if (!shorter.back()) return {};
        }
        leaves = shorter.size() - begin;
        values = std::move(shorter);
    }
    count_kernel();
    return sum(values, leaves);
}

} // namespace

OperatorResult run_fold(const BatchRows* rows, const Type& type, Future& fold, int threads) {
    OperatorResult answer;
    const bool is_host = device_of(type.device).is_host;
    const DType& dtype = dtype_of(type.dtype);
    const bool is_half = dtype.kind == 'f' && dtype.bytes < 4; // rounded after each addition
    const bool has_kernel =
        is_host ? rows && rows->type.get() == &type : rows && dtype.kind != 'b' && !is_half;
    if (!has_kernel) return answer;
    std::vector<Ref<Value>> values;
    for (Edge& edge : fold.inputs()) {
        const Future& input = *edge.input;
        if (!input.value || input.type != &type || !input.value->strides.empty()) return answer;
        values.push_back(input.value);
    }
    const std::size_t leaves = fold.increments ? fold.increments->count : values.size();
    const Ref<Type> result_type(const_cast<Type*>(&type));
    if (!is_host) {
        answer.value = sum_on_device(std::move(values), leaves, result_type);
        return answer;
    }
    DefaultFloatMode modes;
    PairwiseSum sum(*rows, values, leaves);
    Ref<Value> result = Value::uninitialized(result_type);
    if (result && sum.run(static_cast<char*>(result->buffers[0].address()), threads))
        answer.value = std::move(result);
    return answer;
}

} // namespace tenfold
