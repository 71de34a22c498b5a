// Reduction kernel test: axis order and coalescing, launches per loop, result layout and missing
// loops. The loops are written by hand, of sums and largest elements.
#include "sums.h"
#include "threads/cpu_device.h"
#include "threads/worker_pool.h"

using namespace tenfold;
using namespace tenfold::testing;

namespace {

enum What : uint8_t { total, largest };

// As the kernels of `tenfold/schedule/generic_reduction.py`; a unit is a row, or a part of the
// columns.
template <What WHAT, bool COLUMN, bool STRIDED>
int64_t fold_up(void** buffers, const int64_t* sizes, const double*, void* scratch, int64_t begin,
                int64_t end) {
    int64_t inner = sizes[1], folded = sizes[2], columns = COLUMN ? sizes[3] : 1;
    const int64_t* next = sizes + (COLUMN ? 4 : 3);
    int64_t outer_stride = next[0], inner_stride = next[1], stride = 8, across = 8;
    next += 2;
    if (COLUMN) stride = *next++;
    if (STRIDED) (COLUMN ? across : stride) = *next++;
    int64_t outer_written = next[0], inner_written = next[1];
    int64_t part = COLUMN ? next[2] : 1, slots = next[3];
    int64_t parts = (columns + part - 1) / part;
    if (COLUMN) std::fill_n(static_cast<char*>(scratch), (part + 4) * 8 * (32 + slots), '\1');
    for (int64_t unit = begin; unit < end; ++unit) {
        int64_t row = unit / parts, first = unit % parts * part;
        char* from = static_cast<char*>(buffers[0]) + row / inner * outer_stride +
                     row % inner * inner_stride;
        char* to = static_cast<char*>(buffers[1]) + row / inner * outer_written +
                   row % inner * inner_written;
        if (row / inner >= sizes[0]) return 1 + unit;
        for (int64_t i = first; i < std::min(first + part, columns); ++i) {
            double result = WHAT == total ? 0 : -1e9;
            for (int64_t k = 0; k < folded; ++k) {
                double x = *reinterpret_cast<double*>(from + i * across + k * stride);
                result = WHAT == total ? result + x : std::max(result, x);
            }
            reinterpret_cast<double*>(to)[i] = result;
        }
    }
    return 0;
}

template <What WHAT> HostKernel kernel_of(ReductionForm form) {
    if (form.reduce_outer)
        return form.strided ? fold_up<WHAT, true, true> : fold_up<WHAT, true, false>;
    return form.strided ? fold_up<WHAT, false, true> : fold_up<WHAT, false, false>;
}

class ReductionKernelCompiler : public TestKernelCompiler {
  public:
    const IndexMap* index_map(const Node&, const Type&) override { return nullptr; }
    const ReductionLoop* compile_reduction(const Node& node, uint16_t source,
                                           ReductionForm form) override {
        CHECK(source == 1);
        forms.push_back(form);
        if (fails) return nullptr;
        auto* loop = new ReductionLoop{{}, {}, 1, 4, 1};
        if (node.op->name == "total") loop->kernel = kernel_of<total>(form);
        if (node.op->name == "largest") loop->kernel = kernel_of<largest>(form);
        return loop;
    }

    std::vector<ReductionForm> forms;
};

class Launching : public ExecutionContext {
  public:
    Result run_on_host(Work& work) override {
        units.push_back(work.units);
        threads.push_back(work.threads);
        return Launch(work).run();
    }
    bool call(const Executable::Call&, const LinearizedGraph&, std::vector<Ref<Value>>&) override {
        return false;
    }

    std::vector<int64_t> units;
    std::vector<int> threads;
};

// An operation of a name of its own has no loops that an earlier one has asked for.
Op& reduction(const char* name, Op::Folding folds) {
    Op& op = declare_op(name);
    op.shapes = Op::reduced;
    op.folding = folds;
    op.rule_free = true;
    return op;
}

Ref<Node> reduced(const Op& op, const Ref<Node>& of, const Shape& axes, bool keeps = false) {
    std::string bytes(1, keeps ? 'T' : 'F');
    for (int64_t axis : axes) bytes += std::to_string(axis) + ' ';
    Ref<Params> params = intern_params(bytes);
    params->axes = axes;
    params->keepdims = keeps;
    params->has_axes = true;
    Shape shape;
    for (std::size_t i = 0; i < of->type->shape.size(); ++i) {
        bool gone = std::find(axes.begin(), axes.end(), int64_t(i)) != axes.end();
        if (!gone || keeps) shape.push_back(gone ? 1 : of->type->shape[i]);
    }
    Node* inputs[] = {of.get()};
    return operation_node(&op, std::move(params), inferred(number_type(shape)), inputs);
}

struct Made {
    Ref<Node> node;
    ReductionKernelCompiler maker;
    Launching launching;
};

bool is_right(const Made& result, const Ref<Node>& of, const Shape& axes) {
    std::vector<double> expected(std::size_t(result.node->type->size()),
                                 result.node->op->name == "total" ? 0 : -1e9);
    const Shape& shape = of->type->shape;
    Shape index(shape.size());
    for (int64_t number = 0; number < of->type->size(); ++number) {
        int64_t rest = number, place = 0;
        for (std::size_t i = shape.size(); i-- > 0; rest /= shape[i]) index[i] = rest % shape[i];
        for (std::size_t i = 0; i < shape.size(); ++i)
            if (std::find(axes.begin(), axes.end(), int64_t(i)) == axes.end())
                place = place * shape[i] + index[i];
        double x = element(of.get(), index), &to = expected[std::size_t(place)];
        to = result.node->op->name == "total" ? to + x : std::max(to, x);
    }
    const Shape& kept = result.node->type->shape;
    Shape at(kept.size());
    for (std::size_t number = 0; number < expected.size(); ++number) {
        auto rest = int64_t(number);
        for (std::size_t i = kept.size(); i-- > 0; rest /= kept[i]) at[i] = rest % kept[i];
        if (element(result.node.get(), at) != expected[number]) return false;
    }
    return true;
}

Op& totals() {
    static Op& op = reduction("total", Op::each);
    return op;
}

Made computed(const Op& op, const Ref<Node>& of, const Shape& axes, bool keeps = false) {
    Made result;
    result.node = reduced(op, of, axes, keeps);
    CHECK(interpret(linearized(result.node), 4, result.maker, result.launching, nullptr));
    CHECK(is_right(result, of, axes));
    return result;
}

} // namespace

static void any_axes_of_any_layout() {
    Op& most = reduction("largest", Op::any_order);
    for (const Op* op : {&totals(), &most})
        for (bool keeps : {false, true}) {
            computed(*op, array({}), {}, keeps);
            computed(*op, array({1}), {0}, keeps);
            computed(*op, array({3'000}, {-2}), {0}, keeps);
            for (const Ref<Node>& x :
                 {array({40, 50}), array({40, 50}, {1, 40}), array({40, 50}, {-100, 2}),
                  array({40, 50}, {0, 1}), array({40, 50}, {1, 0}), array({1, 50}, {7, 3})})
                for (const Shape& axes : {Shape{}, Shape{0}, Shape{1}, Shape{0, 1}})
                    computed(*op, x, axes, keeps);
            for (const Ref<Node>& x :
                 {array({9, 1, 20, 40}), array({9, 1, 20, 40}, {1, 5, 360, 9}),
                  array({9, 1, 20, 40}, {1'600, 3, -80, 2}), array({9, 1, 20, 40}, {20, 0, 1, 0})})
                for (const Shape& axes : {Shape{0}, Shape{1}, Shape{2}, Shape{3}, Shape{0, 3},
                                          Shape{1, 2}, Shape{0, 2, 3}, Shape{0, 1, 2, 3}})
                    computed(*op, x, axes, keeps);
        }
}

static void packets_lie_along_what_is_contiguous() {
    auto form = [](const Ref<Node>& x, int64_t axis) {
        Made result; // asks the compiler, since this operation is new
        result.node = reduced(reduction("total", Op::each), x, {axis});
        CHECK(interpret(linearized(result.node), 1, result.maker, result.launching, nullptr));
        CHECK(result.maker.forms.size() == 1 && result.maker.forms[0].first_pass);
        return std::pair(result.maker.forms[0].reduce_outer, result.maker.forms[0].strided);
    };
    CHECK((form(array({40, 50}), 1) == std::pair(false, false)));
    CHECK((form(array({40, 50}), 0) == std::pair(true, false)));
    CHECK((form(array({40, 50}, {1, 40}), 0) == std::pair(false, false)));
    CHECK((form(array({40, 50}, {100, 2}), 1) == std::pair(false, true)));
    CHECK((form(array({40, 50}, {100, 2}), 0) == std::pair(true, true)));
    CHECK((form(array({40, 8}), 1) == std::pair(true, true))); // too short for packets
    CHECK((form(array({8, 8}), 1) == std::pair(false, false)));
}

static void axes_are_folded_by_themselves_but_where_no_bit_depends_on_it() {
    Ref<Node> x = array({40, 50});
    CHECK(computed(totals(), x, {0, 1}).launching.units == (std::vector<int64_t>{40, 1}));
    Op& most = reduction("largest", Op::any_order);
    CHECK(computed(most, x, {0, 1}).launching.units == std::vector<int64_t>{1});
    CHECK(computed(most, array({40, 50}, {200, 1}), {0, 1}).launching.units.size() == 2);
    Op& first = reduction("largest", Op::as_one);
    CHECK(computed(first, x, {0, 1}).launching.units.size() == 1);
    Ref<Node> turned = reduced(first, array({40, 50}, {1, 40}), {0, 1});
    ReductionKernelCompiler maker;
    Launching launching;
    CHECK(!interpret(linearized(turned), 1, maker, launching, nullptr));
    CHECK(launching.units.empty() && !value_of(turned.get()));
}

static void results_lie_as_what_is_folded() {
    auto strides = [](const Ref<Node>& x, const Shape& axes, bool keeps = false) {
        return value_of(computed(totals(), x, axes, keeps).node.get())->strides;
    };
    CHECK(strides(array({4, 5, 6}), {1}).empty());
    CHECK((strides(array({4, 5, 6}, {1, 4, 20}), {1}) == Shape{8, 32}));
    CHECK((strides(array({4, 5, 6}, {1, 4, 20}), {1}, true) == Shape{8, 8, 32}));
    CHECK(strides(array({4, 5, 6}, {0, 1, 5}), {1}).empty());
}

static void large_ones_are_shared_and_many_axes_take_launches() {
    CHECK(computed(totals(), array({10, 100}), {1}).launching.threads[0] == 0);
    CHECK(computed(totals(), array({100, 100}), {1}).launching.threads[0] == 1);
    Made result = computed(totals(), array({300, 300}), {0});
    CHECK(result.launching.threads[0] == 4 && result.launching.units[0] > 1);
    Ref<Node> many = array({2, 3, 2, 3, 40}, {7'200, 1'200, 500, 90, 2});
    CHECK(computed(totals(), many, {4}).launching.units.size() == 6);
}

static void what_has_no_loop_is_left_to_plans() {
    Op& other = reduction("other", Op::each);
    Ref<Node> x = array({5, 6});
    ReductionKernelCompiler maker;
    Launching launching;
    Ref<Node> alone = reduced(other, x, {0});
    CHECK(!interpret(linearized(alone), 1, maker, launching, nullptr));
    Ref<Node> more = sum({reduced(other, x, {0}), array({6})}); // `compute` is asked for it
    CHECK(interpret(linearized(more), 1, maker, launching, nullptr));
    CHECK(launching.units.size() == 1 && maker.forms.size() == 1);
    Ref<Node> empty = reduced(totals(), array({0, 6}), {0});
    CHECK(!interpret(linearized(empty), 1, maker, launching, nullptr));
    maker.fails = true;
    Ref<Node> failing = reduced(reduction("failing", Op::each), x, {0});
    CHECK(!interpret(linearized(failing), 1, maker, launching, nullptr));
    CHECK(!value_of(failing.get()));
}

static void reductions_are_small_graphs() {
    CHECK(can_interpret(linearized(reduced(totals(), array({5, 6}), {0})), 0));
    CHECK(!can_interpret(linearized(reduced(totals(), array({500, 600}), {0})), 0));
}

int main() {
    declare_dtype(1, {'f', 8});
    set_threads(4);
    any_axes_of_any_layout();
    packets_lie_along_what_is_contiguous();
    axes_are_folded_by_themselves_but_where_no_bit_depends_on_it();
    results_lie_as_what_is_folded();
    large_ones_are_shared_and_many_axes_take_launches();
    what_has_no_loop_is_left_to_plans();
    reductions_are_small_graphs();
}
