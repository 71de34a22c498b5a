// Products of matrices of equal Types, pushed one by one, as one: of a stack of pairs; where all
// have the same right factor, of that and the left ones below each other; where all have the same
// left factor, of that and the right ones beside each other.
#include <cstring>

#include "../counters.h"
#include "engine.h"

namespace tenfold::bindings {
namespace {

enum class Form { stack, below, beside };

// The Types of one member, and how they lie in the whole: `count` blocks of `rows` rows each.
struct Blocks {
    Form form;
    int64_t count, rows;
    std::size_t row; // bytes

    // Where a row of a block lies, in bytes from the beginning.
    std::size_t at(int64_t block, int64_t index) const {
        int64_t number = form == Form::beside ? index * count + block : block * rows + index;
        return std::size_t(number) * row;
    }
};

Blocks blocks_of(Form form, const Type& type, std::size_t count) {
    std::size_t row = std::size_t(type.shape[1]) * dtype_of(type.dtype).bytes;
    return {form, int64_t(count), type.shape[0], row};
}

Ref<Type> whole_type(Form form, const Type& type, int64_t count) {
    std::vector<int64_t> shape = type.shape;
    if (form == Form::stack) shape.insert(shape.begin(), count);
    if (form == Form::below) shape[0] *= count;
    if (form == Form::beside) shape[1] *= count;
    return intern_type({shape, type.dtype, type.device, type.storage, false});
}

Ref<Value> new_value(Ref<Type> type) {
    auto value = Ref<Value>::adopt(new Value);
    auto bytes = std::size_t(type->size()) * dtype_of(type->dtype).bytes;
    value->type = std::move(type);
    value->buffers[0].allocation = Allocation::from_pool(bytes);
    return value->buffers[0].allocation ? value : Ref<Value>();
}

// The operands at one position in one; empty where one does not lie in C's order.
Ref<Node> gathered(const Job& job, std::size_t position, Form form) {
    const Type& type = *job.members[0]->inputs()[position].input->type;
    Blocks blocks = blocks_of(form, type, job.members.size());
    Ref<Value> whole = new_value(whole_type(form, type, blocks.count));
    if (!whole) return {};
    auto* to = static_cast<char*>(whole->buffers[0].address());
    for (int64_t i = 0; i < blocks.count; ++i) {
        const Value& value = *job.members[std::size_t(i)]->inputs()[position].input->value;
        if (!value.strides.empty()) return {};
        auto* from = static_cast<const char*>(value.buffers[0].address());
        for (int64_t row = 0; row < blocks.rows; ++row)
            std::memcpy(to + blocks.at(i, row), from + std::size_t(row) * blocks.row, blocks.row);
    }
    count_anywhere(Counter::gathers);
    return value_node(std::move(whole));
}

Ref<Node> operand(const Job& job, std::size_t position, Form form, bool shared) {
    if (!shared) return gathered(job, position, form);
    return value_node(job.members[0]->inputs()[position].input->value);
}

// The product, computed; empty where it failed.
Ref<Value> multiplied(PyObject* function, Ref<Node> left, Ref<Node> right) {
    nb::object a = nb::steal(new_array(std::move(left)));
    nb::object b = nb::steal(new_array(std::move(right)));
    nb::object product =
        nb::steal(PyObject_CallFunctionObjArgs(function, a.ptr(), b.ptr(), nullptr));
    if (!product.is_valid() || !is_array(product.ptr())) return {};
    Ref<Node> node(node_of(product.ptr()));
    if (!compute_by_plan(node)) {
        nb::object done =
            nb::steal(PyObject_CallFunctionObjArgs(hooks.evaluate, product.ptr(), nullptr));
        if (!done.is_valid()) return {};
    }
    return value_of(node.get());
}

bool all_share(const Job& job, std::size_t position) {
    const Future* first = job.members[0]->inputs()[position].input;
    for (const Ref<Future>& member : job.members)
        if (member->inputs()[position].input != first) return false;
    return true;
}

// Each member's block, in memory of its own.
void hand_out(Job& job, const Value& whole, Form form, const Ref<Type>& type) {
    Blocks blocks = blocks_of(form, *type, job.members.size());
    auto* from = static_cast<const char*>(whole.buffers[0].address());
    for (int64_t i = 0; i < blocks.count; ++i) {
        Ref<Value> value = new_value(type);
        if (!value) continue; // it is computed alone, or has no memory then either
        auto* to = static_cast<char*>(value->buffers[0].address());
        for (int64_t row = 0; row < blocks.rows; ++row)
            std::memcpy(to + std::size_t(row) * blocks.row, from + blocks.at(i, row), blocks.row);
        job.answers[std::size_t(i)].value = std::move(value);
    }
}

} // namespace

bool run_products(Job& job) {
    if (job.members.size() < 2) return false;
    bool left = all_share(job, 0), right = !left && all_share(job, 1);
    Form form = left ? Form::beside : right ? Form::below : Form::stack;
    Ref<Node> a = operand(job, 0, form, left);
    Ref<Node> b = a ? operand(job, 1, form, right) : Ref<Node>();
    Ref<Value> whole;
    if (b)
        whole = multiplied(static_cast<PyObject*>(job.members[0]->operation->python), std::move(a),
                           std::move(b));
    PyErr_Clear(); // each alone says what was wrong
    if (!whole || !whole->strides.empty()) return false;
    const Type& of_left = *job.members[0]->inputs()[0].input->type;
    const Type& of_right = *job.members[0]->inputs()[1].input->type;
    int64_t shape[] = {of_left.shape[0], of_right.shape[1]};
    hand_out(job, *whole, form,
             intern_type({shape, whole->type->dtype, whole->type->device, 0, false}));
    for (const Answer& answer : job.answers)
        if (answer.empty()) return false;
    return true;
}

} // namespace tenfold::bindings
