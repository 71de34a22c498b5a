// Test sums: an elementwise operation with handwritten loops, and graphs of it. It tests
// `exec/op_interpreter.h`. A sum has up to three arrays and any scalars, each array float64.
#pragma once
#include <algorithm>
#include <string_view>

#include "check.h"
#include "exec/op_interpreter.h"
#include "graphs.h"
#include "ir/inferred_shapes.h"
#include "threads/cpu_device.h"
#include "threads/worker_pool.h"

namespace tenfold::testing {

using Shape = std::vector<int64_t>;

inline Ref<Type> number_type(const Shape& shape, uint8_t device = 0, uint8_t storage = 0) {
    return intern_type({shape, 1, device, storage, false});
}

inline Ref<Node> node_of(Value* value) { return value_node(Ref<Value>::adopt(value)); }

// An array whose elements are small whole numbers, all sums of which are exact. Strides are in
// elements; without them it is in C's order.
inline Ref<Node> array(const Shape& shape, const Shape& strides = {}) {
    static std::atomic<int64_t> seed{0};
    int64_t lowest = 0, highest = 0, next = seed++;
    auto* value = new Value;
    value->type = number_type(shape);
    for (std::size_t i = 0; i < strides.size(); ++i) {
        int64_t reach = strides[i] * std::max<int64_t>(shape[i] - 1, 0);
        (reach < 0 ? lowest : highest) += reach;
        value->strides.push_back(strides[i] * 8);
    }
    int64_t count = strides.empty() ? value->type->size() : highest - lowest + 1;
    value->is_view = !strides.empty();
    value->buffers[0].allocation = Allocation::from_pool(std::size_t(count) * 8);
    value->buffers[0].offset = -lowest * 8;
    auto* numbers = static_cast<double*>(value->buffers[0].allocation->data);
    for (int64_t i = 0; i < count; ++i) numbers[i] = double((next += 7) % 1009);
    return node_of(value);
}

inline Ref<Node> scalar(double number) {
    static Ref<Type>& weak = *new Ref<Type>(intern_type({{}, 1, 0, 0, true}));
    return scalar_node({Scalar::real_number, 0, number, 0}, weak);
}

// A pending sum; of any operation on elements.
inline Ref<Node> sum(const Op& op, const std::vector<Ref<Node>>& of) {
    std::vector<Node*> inputs;
    std::vector<Type*> types;
    for (const Ref<Node>& node : of) {
        inputs.push_back(node.get());
        types.push_back(node->type.get());
    }
    InferenceQuery query{&op, nullptr, false, types};
    Inferred inferred = infer_shape(query);
    if (!inferred) {
        auto example = Ref<Inference>::adopt(new Inference);
        example->kind = MAP;
        example->results.push_back(number_type({}));
        example->operands.assign(of.size(), 1);
        cache_dtypes(query, example);
        inferred = infer_shape(query);
    }
    CHECK(inferred && inferred.inference->loops);
    return operation_node(&op, {}, std::move(inferred), inputs);
}

inline Op& sums() {
    static Op& op = [&]() -> Op& {
        Op& result = declare_op("sum");
        result.shapes = Op::broadcast;
        result.rule_free = true;
        return result;
    }();
    return op;
}

inline Ref<Node> sum(const std::vector<Ref<Node>>& of) { return sum(sums(), of); }

// The loop of a sum whose array operands take these steps. Of a '1' and a '0' it never asks for the
// inner stride.
template <int SCALARS, char... STEPS>
int64_t add_up(void** buffers, const int64_t* sizes, const double* scalars, void*, int64_t begin,
               int64_t end) {
    constexpr std::size_t count = sizeof...(STEPS);
    constexpr char steps[] = {STEPS..., '1'};
    int64_t inner = sizes[1], outer_strides[count + 1], inner_strides[count + 1];
    const int64_t* next = sizes + 2;
    for (std::size_t k = 0; k <= count; ++k) {
        outer_strides[k] = *next++;
        inner_strides[k] = steps[k] == 's' ? *next++ : steps[k] == '1' ? 8 : 0;
    }
    int64_t part = *next, parts = (inner + part - 1) / part;
    if (next[1] != 0) return 1; // the size that says nothing
    for (int64_t unit = begin; unit < end; ++unit) {
        int64_t row = unit / parts, first = unit % parts * part;
        if (row >= sizes[0]) return 1 + unit;
        for (int64_t i = first; i < std::min(first + part, inner); ++i) {
            auto place = [&](std::size_t k) {
                char* at = static_cast<char*>(buffers[k]);
                return reinterpret_cast<double*>(at + row * outer_strides[k] +
                                                 i * inner_strides[k]);
            };
            double total = 0;
            for (int k = 0; k < SCALARS; ++k) total += scalars[k];
            for (std::size_t k = 0; k < count; ++k) total += *place(k);
            *place(count) = total;
        }
    }
    return 0;
}

// Finds the kernel for steps that are known when it runs.
template <int SCALARS, char... DONE> KernelHandle kernel_for(std::string_view steps) {
    if (steps.empty()) return HostKernel(add_up<SCALARS, DONE...>);
    if constexpr (sizeof...(DONE) < Loops::OPERANDS) {
        if (steps[0] == '0') return kernel_for<SCALARS, DONE..., '0'>(steps.substr(1));
        if (steps[0] == '1') return kernel_for<SCALARS, DONE..., '1'>(steps.substr(1));
        return kernel_for<SCALARS, DONE..., 's'>(steps.substr(1));
    }
    return {};
}

inline Loop* loop_of_sums(std::string_view steps, std::size_t scalars) {
    auto* loop = new Loop;
    CHECK(scalars < 3);
    loop->kernel = scalars == 0   ? kernel_for<0>(steps)
                   : scalars == 1 ? kernel_for<1>(steps)
                                  : kernel_for<2>(steps);
    loop->sizes = {{Loop::length, 0, 0}, {Loop::length, 1, 0}};
    for (std::size_t k = 0; k <= steps.size(); ++k) {
        loop->sizes.push_back({Loop::stride, uint8_t(k), 0});
        if (k < steps.size() && steps[k] == 's')
            loop->sizes.push_back({Loop::stride, uint8_t(k), 1});
    }
    loop->sizes.push_back({Loop::block, 0, 0});
    loop->sizes.push_back({Loop::unused, 0, 0});
    return loop;
}

class TestKernelCompiler : public OpKernelCompiler {
  public:
    const Loop* compile_loop(const Node& node, std::span<const Node* const> inputs,
                             const std::string& steps) override {
        std::size_t arrays = 0;
        for (const Node* input : inputs) arrays += !input->is_scalar();
        CHECK(node.op && arrays == steps.size());
        asked.push_back(steps);
        if (fails) return nullptr;
        Loop* loop = loop_of_sums(steps, inputs.size() - arrays);
        if (kernel) loop->kernel = *kernel;
        return loop;
    }
    const ReductionLoop* compile_reduction(const Node&, uint16_t, ReductionForm) override {
        return nullptr;
    }
    const IndexMap* index_map(const Node&, const Type&) override { return new IndexMap(how); }
    // Of a node with one input: its first element, in an array of its own.
    bool compute_node(Node& node) override {
        if (fails) return false;
        std::vector<Ref<Node>> inputs = inputs_of(&node);
        if (inputs.empty()) return bool(value_of(&node)); // another thread was first
        Ref<Value> from = value_of(inputs[0].get());
        CHECK(from);
        Ref<Node> result = array(node.type->shape);
        Ref<Value> value = value_of(result.get());
        *static_cast<double*>(value->buffers[0].address()) =
            *static_cast<double*>(from->buffers[0].address());
        publish(&node, value);
        return true;
    }

    std::vector<std::string> asked;
    bool fails = false;
    const KernelHandle* kernel = nullptr; // in place of the right one
    IndexMap how;                         // views read their input
};

// Records the launches.
class Noting : public ExecutionContext {
  public:
    Result run_on_host(Work& work) override {
        units.push_back(work.units);
        threads.push_back(work.threads);
        buffers.push_back({work.buffers[0], work.buffers[1], work.buffers[2]});
        return Launch(work).run();
    }
    bool call(const Executable::Call&, const LinearizedGraph&, std::vector<Ref<Value>>&) override {
        return false;
    }
    // Of the i-th launch, that of a sum of two arrays.
    bool in_place(std::size_t i) const {
        return buffers[i][2] == buffers[i][0] || buffers[i][2] == buffers[i][1];
    }

    std::vector<int64_t> units;
    std::vector<int> threads;
    std::vector<std::array<void*, 3>> buffers;
};

inline LinearizedGraph linearized(const Ref<Node>& node) {
    Node* outputs[] = {node.get()};
    return linearize(outputs);
}

// The element of an array at an index into its broadcast shape.
inline double element(Node* node, const Shape& index) {
    if (node->is_scalar()) return node->scalar.real;
    Ref<Value> value = value_of(node);
    CHECK(value);
    const Shape& shape = value->type->shape;
    int64_t at = 0, in_c_order = 8;
    for (std::size_t i = shape.size(); i-- > 0; in_c_order *= shape[i]) {
        int64_t place = shape[i] == 1 ? 0 : index[index.size() - shape.size() + i];
        at += place * (value->strides.empty() ? in_c_order : value->strides[i]);
    }
    return *reinterpret_cast<double*>(static_cast<char*>(value->buffers[0].address()) + at);
}

inline void check_sum(const Ref<Node>& result, const std::vector<Ref<Node>>& of) {
    const Shape& shape = result->type->shape;
    Shape index(shape.size());
    for (int64_t number = 0; number < result->type->size(); ++number) {
        int64_t rest = number;
        for (std::size_t i = shape.size(); i-- > 0; rest /= shape[i]) index[i] = rest % shape[i];
        double expected = 0;
        for (const Ref<Node>& node : of) expected += element(node.get(), index);
        CHECK(element(result.get(), index) == expected);
    }
}

} // namespace tenfold::testing
