#include "singly.h"

#include <algorithm>
#include <chrono>
#include <optional>

namespace tenfold {
namespace {

constexpr std::size_t MOST_NODES = 512, MOST_AXES = 16;
constexpr int64_t MOST_ELEMENTS = 1 << 17;          // more are worth a plan at once
constexpr int64_t MOST_LAUNCHES = 64;               // of one node, whose outer axes they go through
constexpr int64_t QUICK = 1 << 12, ALONE = 1 << 15; // elements that keep the GIL, and one thread
constexpr int64_t PART = 4096, GRAIN = 1 << 14;     // elements of a unit of work, of a range

// How operands lie over the axes of a result that are longer than 1, as few as there can be. The
// last operand is the result.
struct Lying {
    std::size_t operands = 0, axes = 0;
    std::array<int64_t, MOST_AXES> lengths{};
    std::array<std::array<int64_t, MOST_AXES>, Loops::OPERANDS + 1> strides{}; // bytes

    int64_t length(std::size_t from_last) const {
        return from_last < axes ? lengths[axes - 1 - from_last] : 1;
    }
    int64_t stride(std::size_t operand, std::size_t from_last) const {
        return from_last < axes ? strides[operand][axes - 1 - from_last] : 0;
    }
};

// The strides of an array over the axes of what it is broadcast to, the last axis first.
class Strides {
  public:
    Strides(const Type& type, std::span<const int64_t> strides)
        : type_(type), strides_(strides), left_(type.shape.size()),
          next_(dtype_of(type.dtype).bytes) {}

    int64_t next() {
        if (left_ == 0) return 0;
        int64_t length = type_.shape[--left_];
        int64_t stride = strides_.empty() ? next_ : strides_[left_];
        next_ *= length;
        return length == 1 ? 0 : stride;
    }

  private:
    const Type& type_;
    std::span<const int64_t> strides_;
    std::size_t left_;
    int64_t next_;
};

// False where there are too many axes.
bool lie(const Type& result, std::span<const Value* const> arrays, Lying& lying) {
    std::array<std::optional<Strides>, Loops::OPERANDS + 1> each;
    for (const Value* array : arrays) each[lying.operands++].emplace(*array->type, array->strides);
    each[lying.operands++].emplace(result, std::span<const int64_t>());
    // From the last axis on, so what is innermost stands first here, and is turned around below.
    for (std::size_t i = result.shape.size(); i-- > 0;) {
        int64_t length = result.shape[i];
        std::array<int64_t, Loops::OPERANDS + 1> strides{};
        for (std::size_t k = 0; k < lying.operands; ++k) strides[k] = each[k]->next();
        if (length == 1) continue;
        std::size_t last = lying.axes - 1;
        bool merges = lying.axes > 0;
        for (std::size_t k = 0; merges && k < lying.operands; ++k)
            merges = strides[k] == lying.strides[k][last] * lying.lengths[last];
        if (merges) {
            lying.lengths[last] *= length;
            continue;
        }
        if (lying.axes == MOST_AXES) return false;
        lying.lengths[lying.axes] = length;
        for (std::size_t k = 0; k < lying.operands; ++k) lying.strides[k][lying.axes] = strides[k];
        ++lying.axes;
    }
    auto turn = [&](auto& numbers) { std::reverse(numbers.begin(), numbers.begin() + lying.axes); };
    turn(lying.lengths);
    for (std::size_t k = 0; k < lying.operands; ++k) turn(lying.strides[k]);
    return true;
}

class Singly {
  public:
    Singly(const Walked& walked, int threads, LoopMaker& maker, Surroundings& surroundings,
           std::vector<Ran>* ran)
        : walked_(walked), threads_(threads), maker_(maker), surroundings_(surroundings), ran_(ran),
          values_(walked.nodes.size()), left_(walked.nodes.size()) {}

    bool run() {
        for (uint32_t i = 0; i < walked_.nodes.size(); ++i) {
            const WalkedNode& entry = walked_.nodes[i];
            left_[i] = entry.uses;
            values_[i] = entry.value;
            if (!entry.value && !entry.node->is_scalar() && !compute(i)) return false;
        }
        for (uint32_t i = 0; i < walked_.nodes.size(); ++i)
            if (walked_.nodes[i].held && !walked_.nodes[i].value && values_[i])
                publish(walked_.nodes[i].node.get(), values_[i]);
        return true;
    }

  private:
    bool compute(uint32_t position) {
        const WalkedNode& entry = walked_.nodes[position];
        const Node& node = *entry.node;
        const Type& type = *node.type;
        std::array<const Value*, Loops::OPERANDS> arrays{};
        std::size_t count = 0;
        for (uint32_t input : walked_.inputs(entry)) {
            if (walked_.nodes[input].node->is_scalar()) continue;
            if (count == arrays.size()) return false;
            arrays[count++] = values_[input].get();
        }
        Lying lying;
        if (!lie(type, {arrays.data(), count}, lying)) return false;
        const Loop* loop = loop_for(entry, {arrays.data(), count}, lying);
        if (!loop || !loop->kernel) return false;
        write_numbers(node, entry);
        Ref<Value> made = memory_for(position, type);
        if (!made) return false;
        if (!entry.held) tenfold::count(Counter::temporaries);
        tenfold::count(Counter::kernels);
        int64_t begun = ran_ ? now() : 0;
        if (type.size() > 0 && !launched(*loop, lying, {arrays.data(), count}, *made)) return false;
        if (ran_) ran_->push_back({&node.op->name, true, begun, now()});
        values_[position] = std::move(made);
        for (uint32_t input : walked_.inputs(entry))
            if (--left_[input] == 0 && !walked_.nodes[input].held) values_[input] = nullptr;
        return true;
    }

    const Loop* loop_for(const WalkedNode& entry, std::span<const Value* const> arrays,
                         const Lying& lying) {
        std::string steps;
        std::size_t form = 0;
        for (std::size_t k = 0; k < arrays.size(); ++k) {
            int64_t stride = lying.stride(k, 0), item = dtype_of(arrays[k]->type->dtype).bytes;
            bool whole = lying.axes == 0 || stride == item;
            steps.push_back(whole ? '1' : stride == 0 ? '0' : 's');
            form = form * 3 + (whole ? 1 : stride == 0 ? 0 : 2);
        }
        std::atomic<const Loop*>& known = entry.node->inference->loops->loops[form];
        const Loop* loop = known.load(std::memory_order_acquire);
        if (loop) return loop;
        std::vector<const Node*> inputs;
        for (uint32_t input : walked_.inputs(entry))
            inputs.push_back(walked_.nodes[input].node.get());
        const Loop* made = maker_.make(*entry.node, inputs, steps);
        if (made && !known.compare_exchange_strong(loop, made)) { // another thread was first
            delete made;
            return loop;
        }
        return made;
    }

    void write_numbers(const Node& node, const WalkedNode& entry) {
        numbers_.clear();
        auto inputs = walked_.inputs(entry);
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            const Node& input = *walked_.nodes[inputs[i]].node;
            if (!input.is_scalar()) continue;
            BoundPlan::Number as{.dtype = node.inference->operands[i]};
            numbers_.push_back(number_bits(input.scalar, as));
            as.imaginary = true;
            if (dtype_of(as.dtype).kind == 'c') numbers_.push_back(number_bits(input.scalar, as));
        }
    }

    // An operand that was made here, and is read for the last time, gives its own.
    Ref<Value> memory_for(uint32_t position, const Type& type) {
        const WalkedNode& entry = walked_.nodes[position];
        auto bytes = std::size_t(type.size()) * dtype_of(type.dtype).bytes;
        Ref<Allocation> memory;
        for (uint32_t input : walked_.inputs(entry)) {
            const WalkedNode& below = walked_.nodes[input];
            bool last = left_[input] == 1 && !below.held && !below.value && values_[input];
            if (last && values_[input]->type.get() == &type)
                memory = values_[input]->buffers[0].allocation;
        }
        if (!memory) memory = Allocation::from_pool(bytes);
        if (!memory) return {};
        auto value = Ref<Value>::adopt(new Value);
        value->type = entry.node->inference->results[0];
        value->buffers[0].allocation = std::move(memory);
        return value;
    }

    bool launched(const Loop& loop, const Lying& lying, std::span<const Value* const> arrays,
                  const Value& made) {
        int64_t inner = lying.length(0), outer = lying.length(1), launches = 1;
        for (std::size_t axis = 0; axis + 2 < lying.axes; ++axis) launches *= lying.lengths[axis];
        if (launches > MOST_LAUNCHES) return false;
        int64_t part = std::min((inner + loop.lanes - 1) / loop.lanes * loop.lanes, PART);
        sizes_.clear();
        for (const Loop::Size& size : loop.sizes) {
            switch (size.what) {
            case Loop::length: sizes_.push_back(size.first == 1 ? inner : outer); break;
            case Loop::stride: sizes_.push_back(lying.stride(size.first, 1u - size.axis)); break;
            case Loop::part: sizes_.push_back(part); break;
            case Loop::nothing: sizes_.push_back(0); break;
            }
        }
        Work work;
        work.kernel = loop.kernel;
        work.sizes = sizes_.data();
        work.scalars = reinterpret_cast<const double*>(numbers_.data());
        work.units = outer * ((inner + part - 1) / part);
        work.grain = std::max<int64_t>(1, GRAIN / std::min(part, inner));
        int64_t elements = inner * outer;
        work.threads = elements <= QUICK ? 0 : elements <= ALONE ? 1 : threads_;
        std::array<char*, Loops::OPERANDS + 1> begin{};
        for (std::size_t k = 0; k < arrays.size(); ++k)
            begin[k] = static_cast<char*>(arrays[k]->buffers[0].address());
        begin[arrays.size()] = static_cast<char*>(made.buffers[0].address());
        for (int64_t number = 0; number < launches; ++number)
            if (!launched_at(work, lying, begin, number)) return false;
        return true;
    }

    // One of the launches over the outer axes, of which the last is gone through first.
    bool launched_at(Work& work, const Lying& lying,
                     const std::array<char*, Loops::OPERANDS + 1>& begin, int64_t number) {
        std::array<void*, Loops::OPERANDS + 1> buffers{};
        std::array<int64_t, Loops::OPERANDS + 1> offsets{};
        for (std::size_t axis = lying.axes > 2 ? lying.axes - 2 : 0; axis-- > 0;) {
            int64_t index = number % lying.lengths[axis];
            number /= lying.lengths[axis];
            for (std::size_t k = 0; k < lying.operands; ++k)
                offsets[k] += index * lying.strides[k][axis];
        }
        for (std::size_t k = 0; k < lying.operands; ++k) buffers[k] = begin[k] + offsets[k];
        work.buffers = buffers.data();
        tenfold::count(Counter::launches);
        Result result = surroundings_.launch(work);
        return result.outcome == Outcome::done && result.status == 0;
    }

    static int64_t now() {
        auto since = std::chrono::steady_clock::now().time_since_epoch();
        return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
    }

    const Walked& walked_;
    const int threads_;
    LoopMaker& maker_;
    Surroundings& surroundings_;
    std::vector<Ran>* ran_;
    std::vector<Ref<Value>> values_;
    std::vector<uint32_t> left_; // readers to come
    std::vector<uint64_t> numbers_;
    std::vector<int64_t> sizes_;
};

} // namespace

bool fits_singly(const Walked& walked, uint8_t device) {
    if (walked.nodes.size() > MOST_NODES) return false;
    auto fits = [&](const WalkedNode& entry) {
        const Node& node = *entry.node;
        if (node.is_scalar()) return true;
        const Type& type = *node.type;
        if (type.device != device || type.storage != 0) return false;
        if (entry.value) return true;
        return node.op && node.op->shapes == Op::broadcast && node.inference->loops &&
               node.inference->results.size() == 1 && type.size() <= MOST_ELEMENTS;
    };
    return std::all_of(walked.nodes.begin(), walked.nodes.end(), fits);
}

bool compute_singly(const Walked& walked, int threads, LoopMaker& maker, Surroundings& surroundings,
                    std::vector<Ran>* ran) {
    return Singly(walked, threads, maker, surroundings, ran).run();
}

} // namespace tenfold
