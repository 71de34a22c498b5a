// Scan loop: computes an operation again and again, each step on the last step's results. Between
// two steps no Python runs, once the plan of a step is known.
#include <nanobind/stl/vector.h>

#include "exec/stacking.h"
#include "ir/submission.h"
#include "python/value_bindings.h"
#include "threads/device.h"

namespace tenfold::bindings {
namespace {

constexpr int64_t STEPS_AT_ONCE = 8; // before others may have the GIL

// An array that each step has a row of.
class StackedSteps {
  public:
    explicit StackedSteps(Ref<Value> value) : whole_(std::move(value)) {
        const Type& type = *whole_->type;
        std::vector<int64_t> shape(type.shape.begin() + 1, type.shape.end());
        type_ = intern_type({shape, type.dtype, type.device, type.storage, false});
        apart_ = bytes_of(*type_);
        if (whole_->strides.empty()) return;
        apart_ = whole_->strides[0];
        strides_.assign(whole_->strides.begin() + 1, whole_->strides.end());
        if (is_c_order(*type_, strides_)) strides_.clear();
    }

    Ref<Node> row(int64_t at) const {
        return value_node(Value::view_of(*whole_, type_, at * apart_, strides_));
    }

    void write(int64_t at, const Value& from) const {
        char* to = static_cast<char*>(whole_->buffers[0].address()) + at * apart_;
        const Device& device = device_of(type_->device);
        if (device.is_host) return copy_elements(host_data(*whole_) + at * apart_, from);
        if (from.strides.empty()) {
            device.copy(to, from.buffers[0].address(), std::size_t(apart_), Device::within);
            return;
        }
        const Allocation& memory = *from.buffers[0].allocation;
        Ref<Allocation> on_host = Allocation::from_pool(memory.bytes);
        if (!on_host) throw std::bad_alloc();
        device.copy(on_host->data, memory.data, memory.bytes, Device::to_host);
        Ref<Value> value = Value::in_memory(std::move(on_host), from.type, from.strides);
        value->buffers[0].offset = from.buffers[0].offset;
        std::vector<char> row(std::size_t(apart_), 0);
        copy_elements(row.data(), *value);
        device.copy(to, row.data(), row.size(), Device::from_host);
    }

  private:
    Ref<Value> whole_;
    Ref<Type> type_;
    std::vector<int64_t> strides_; // strides of a row; empty: C order
    int64_t apart_ = 0;            // bytes
};

std::vector<Ref<Value>> values_from(nb::handle values) {
    std::vector<Ref<Value>> found;
    for (nb::handle item : values) found.push_back(nb::cast<ValueHandle&>(item).value);
    return found;
}

class ScanLoop {
  public:
    ScanLoop(uint32_t op, nb::handle params, nb::list carried, nb::handle read, nb::handle shared,
             nb::handle written, nb::handle compute)
        : op_(find_op(op)), params_(params_of(*op_, params.ptr())), carried_(values_from(carried)),
          compute_(compute) {
        if (!params_ && PyErr_Occurred()) nb::raise_python_error();
        carried.clear(); // values without other references may be written in place
        for (Ref<Value>& value : values_from(read)) read_.emplace_back(std::move(value));
        for (Ref<Value>& value : values_from(written)) written_.emplace_back(std::move(value));
        for (Ref<Value>& value : values_from(shared))
            shared_.push_back(value_node(std::move(value)));
    }

    // So many steps; with `until`, none after one whose last result is false. Whether all have run.
    bool run(int64_t steps, bool backwards, bool until) {
        uint32_t stops = submissions_stopped.load();
        for (int64_t at = 0; at != steps; ++at) {
            bool goes_on = step(at, backwards ? steps - 1 - at : at) || !until;
            drain_decrefs();
            if (in_submission && submissions_stopped.load() != stops)
                PyErr_SetNone(PyExc_KeyboardInterrupt);
            if (PyErr_Occurred() || PyErr_CheckSignals() != 0) nb::raise_python_error();
            if (!goes_on) return false;
            if (at % STEPS_AT_ONCE == 0) nb::gil_scoped_release give_gil_to_those_who_asked;
        }
        return true;
    }

    void give(nb::list carried) const {
        for (const Ref<Value>& value : carried_) carried.append(ValueHandle{value});
    }

  private:
    // Whether its last result, where that is nothing else, is true.
    bool step(int64_t number, int64_t row) {
        std::vector<Ref<Node>> result = results(row);
        nodes_.clear();
        for (const Ref<Node>& node : result) nodes_.push_back(node.get());
        if (!compute_by_plan(nodes_)) { // no plan is known, or it has failed
            nb::list nodes;
            for (const Ref<Node>& node : result) nodes.append(NodeHandle{node});
            compute_(number, nodes);
        }
        auto next = result.begin();
        for (Ref<Value>& value : carried_) value = value_of((next++)->get());
        for (const StackedSteps& each : written_) each.write(row, *value_of((next++)->get()));
        if (next == result.end()) return false;
        const Value& condition = *value_of(next->get());
        bool is_true = false;
        device_of(condition.type->device)
            .copy(&is_true, condition.buffers[0].address(), sizeof is_true, Device::to_host);
        return is_true;
    }

    // The nodes of a step. They alone reference the carried values.
    std::vector<Ref<Node>> results(int64_t row) {
        for (Ref<Value>& value : carried_) leaves_.push_back(value_node(std::exchange(value, {})));
        for (const StackedSteps& each : read_) leaves_.push_back(each.row(row));
        nodes_.clear();
        for (const Ref<Node>& node : leaves_) nodes_.push_back(node.get());
        for (const Ref<Node>& node : shared_) nodes_.push_back(node.get());
        Ref<Node> whole = make_node(op_, nodes_, params_);
        if (!whole) nb::raise_python_error();
        leaves_.clear();
        if (whole->inference->results.size() == 1) return {whole};
        return results_of(whole);
    }

    const Op* op_;
    Ref<Params> params_;
    std::vector<Ref<Value>> carried_;
    std::vector<StackedSteps> read_, written_;
    std::vector<Ref<Node>> shared_, leaves_; // leaves: of one step
    std::vector<Node*> nodes_;               // borrowed, as long as they are looked at
    nb::handle compute_;
};

bool repeat(uint32_t op, nb::handle params, nb::list carried, nb::handle read, nb::handle shared,
            nb::handle written, int64_t steps, bool backwards, bool until, nb::handle compute) {
    ScanLoop scan(op, params, carried, read, shared, written, compute);
    bool goes_on = scan.run(steps, backwards, until);
    scan.give(carried);
    return goes_on;
}

} // namespace

void declare_scan_loop(nb::module_& module) {
    using namespace nb::literals;
    module.def("run_loop", repeat, "op"_a, "params"_a, "carried"_a, "read"_a, "shared"_a,
               "written"_a, "steps"_a, "backwards"_a, "until"_a, "compute"_a);
    module.def("times_stopped",
               [] { return in_submission ? submissions_stopped.load() : uint32_t(0); });
}

} // namespace tenfold::bindings
