#include "engine/operator_batch.h"

#include <algorithm>
#include <bit>

#include "exec/executable.h"
#include "exec/float_env.h"
#include "memory/allocation_pool.h"

namespace tenfold {
namespace {

constexpr int64_t LANES = 64, PART = 4096; // elements of a unit of a loop, at least and at most

// One loop over contiguous operands of one length.
class Line {
  public:
    Line(const Loop& loop, std::span<const int64_t> items, int64_t length) : kernel_(loop.kernel) {
        int64_t part = std::min((length + LANES - 1) / LANES * LANES, PART);
        for (const Loop::Size& size : loop.sizes) {
            switch (size.what) {
            case Loop::length: sizes_.push_back(size.first == 1 ? length : 1); break;
            case Loop::stride: sizes_.push_back(size.axis == 0 ? items[size.first] : 0); break;
            case Loop::part: sizes_.push_back(part); break;
            case Loop::nothing: sizes_.push_back(0); break;
            }
        }
        units_ = length == 0 ? 0 : (length + part - 1) / part;
    }

    bool run(void** buffers, const uint64_t* numbers) const {
        if (units_ == 0) return true;
        return kernel_(buffers, sizes_.data(), reinterpret_cast<const double*>(numbers), nullptr, 0,
                       units_) == 0;
    }

  private:
    Kernel kernel_;
    std::vector<int64_t> sizes_;
    int64_t units_;
};

} // namespace

std::size_t SignatureHash::operator()(const Signature& signature) const {
    std::size_t hash = signature.options;
    for (const void* part : signature.parts)
        hash = std::rotl((hash ^ reinterpret_cast<std::size_t>(part)) * 0x9e3779b97f4a7c15ULL, 29);
    return hash;
}

bool Batcher::takes(std::size_t position, const Scalar& scalar) const {
    const Inference& inference =
        rows ? *rows->inference : *pattern->walked.nodes[pattern->output].node->inference;
    const DType& dtype = dtype_of(inference.operands[position]);
    if (dtype.kind == 'c') return scalar.form != Scalar::huge;
    if (scalar.form == Scalar::complex_number) return false;
    if (dtype.kind == 'f') return scalar.form != Scalar::huge;
    bool whole = scalar.form == Scalar::boolean || scalar.form == Scalar::integer;
    if (!whole || dtype.kind == 'b') return whole && scalar.form == Scalar::boolean;
    if (dtype.bytes == 8) return dtype.kind == 'i' || scalar.whole >= 0;
    int64_t bound = int64_t(1) << (8 * dtype.bytes - (dtype.kind == 'i'));
    return scalar.whole < bound && scalar.whole >= (dtype.kind == 'i' ? -bound : 0);
}

void run_rows(const BatchRows& rows, std::span<const Ref<Future>> members,
              std::vector<Answer>& made, bool first) {
    const Ref<Type>& type = rows.type;
    std::array<int64_t, Loops::OPERANDS + 1> items{};
    std::size_t arrays = 0;
    for (Edge& edge : members[0]->inputs())
        if (!edge.input->scalar) items[arrays++] = dtype_of(edge.input->type->dtype).bytes;
    items[arrays] = dtype_of(type->dtype).bytes;
    Line line(*rows.loop, items, type->size());
    std::size_t bytes = type->bytes();
    std::vector<void*> memory(members.size());
    pool_allocate(bytes, memory);
    Counts types(type, members.size());
    for (std::size_t i = 0; i < members.size(); ++i) {
        std::array<void*, Loops::OPERANDS + 1> buffers{};
        std::array<uint64_t, 2 * Loops::OPERANDS> numbers{};
        std::size_t count = 0, at = 0, position = 0;
        bool usual = true;
        for (Edge& edge : members[i]->inputs()) {
            const Future& input = *edge.input;
            Executable::Number as{.dtype = rows.inference->operands[position++]};
            if (!input.scalar) {
                usual &= input.value->strides.empty();
                buffers[at++] = input.value->buffers[0].address();
                continue;
            }
            numbers[count++] = number_bits(*input.scalar, as);
            as.imaginary = true;
            if (dtype_of(as.dtype).kind == 'c') numbers[count++] = number_bits(*input.scalar, as);
        }
        if (!memory[i]) continue;
        Ref<Value> value = Value::in(Allocation::of_pool(memory[i], bytes), types.take());
        if (!usual) continue;
        buffers[at] = value->buffers[0].address();
        if (!line.run(buffers.data(), numbers.data())) continue;
        made[i].value = std::move(value);
        if (!std::exchange(first, false)) continue;
        count_anywhere(Counter::kernels);
        count_anywhere(Counter::launches);
    }
}

std::size_t left_part(std::size_t length) { return std::bit_floor(length - 1); }

namespace {

// On this thread alone, without Python.
struct Apart : ExecutionContext {
    bool counts = true;
    Result launch(Work& work) override {
        work.threads = 1;
        return Launch(work).run();
    }
    void count(Counter counter) override {
        if (counts) count_anywhere(counter);
    }
};

// The sum of some arrays of one Type, written to new memory; pairwise.
class Folding {
  public:
    Folding(const BatchRows& rows, const Type& type)
        : type_(rows.type), items_{dtype_of(type.dtype).bytes, dtype_of(type.dtype).bytes,
                                   dtype_of(type.dtype).bytes},
          line_(*rows.loop, items_, type.size()) {}

    Ref<Value> pairwise(std::span<const Ref<Value>> values) {
        if (values.size() == 1) return values[0];
        std::size_t half = left_part(values.size());
        Ref<Value> left = pairwise(values.first(half));
        Ref<Value> right = left ? pairwise(values.subspan(half)) : Ref<Value>();
        return right ? add(left, right) : Ref<Value>();
    }

    // The sum stands where a sum stood before.
    Ref<Value> add(const Ref<Value>& left, const Ref<Value>& right) {
        bool own_left = made(left), own_right = !own_left && made(right);
        Ref<Value> sum = own_left ? left : own_right ? right : Value::of(type_);
        if (!sum) return {};
        if (!made(sum)) made_.push_back(sum.get());
        std::array<void*, 3> buffers{left->buffers[0].address(), right->buffers[0].address(),
                                     sum->buffers[0].address()};
        if (!line_.run(buffers.data(), nullptr)) return {};
        return sum;
    }

  private:
    bool made(const Ref<Value>& value) const {
        return std::find(made_.begin(), made_.end(), value.get()) != made_.end();
    }

    Ref<Type> type_;
    std::array<int64_t, 3> items_;
    Line line_;
    std::vector<const Value*> made_; // here
};

} // namespace

void run_pattern(const GraphTemplate& pattern, std::span<const Ref<Future>> members,
                 std::vector<Answer>& made, bool first, OpKernelCompiler* maker) {
    OpKernelCompiler known; // makes no more
    if (!maker) maker = &known;
    std::vector<TemplateInput> leaves;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < members.size(); ++i) {
        if (!made[i].empty()) continue;
        places.push_back(i);
        for (Edge& edge : members[i]->inputs())
            leaves.push_back(
                {edge.input->value ? &edge.input->value : nullptr, edge.input->scalar.get()});
    }
    std::vector<Ref<Value>> values(places.size());
    Apart apart;
    apart.counts = first;
    compute_pattern(pattern, leaves, std::span(values).first(1), *maker, apart);
    apart.counts = false;
    auto others = std::span(leaves).subspan(pattern.leaves.size());
    compute_pattern(pattern, others, std::span(values).subspan(1), *maker, apart);
    for (std::size_t i = 0; i < places.size(); ++i) made[places[i]].value = std::move(values[i]);
}

Answer run_fold(const BatchRows& rows, const Type& type, Future& fold) {
    Answer answer;
    if (rows.type.get() != &type) return answer;
    std::vector<Ref<Value>> values;
    for (Edge& edge : fold.inputs()) {
        const Future& input = *edge.input;
        if (!input.value || input.type != &type || !input.value->strides.empty()) return answer;
        values.push_back(input.value);
    }
    UsualModes modes;
    Folding folding(rows, type);
    std::size_t leaves = fold.increments ? fold.increments->count : values.size();
    std::size_t before = values.size() - leaves;
    Ref<Value> sum = folding.pairwise(std::span(values).subspan(before));
    while (sum && before-- > 0) sum = folding.add(values[before], sum);
    count_anywhere(Counter::kernels);
    count_anywhere(Counter::launches);
    answer.value = std::move(sum);
    return answer;
}

} // namespace tenfold
