// Engine test host: an engine without Python, whose operators add numbers, with handles as in
// Python.
#pragma once
#include <algorithm>
#include <string_view>
#include <utility>

#include "check.h"
#include "engine/engine.h"
#include "threads/cpu_device.h"

namespace tenfold {

constexpr int64_t LENGTH = 5;

inline int64_t add_numbers(void** buffers, const int64_t* sizes, const double*, void*, int64_t,
                           int64_t) {
    auto *a = static_cast<double*>(buffers[0]), *b = static_cast<double*>(buffers[1]);
    auto* sum = static_cast<double*>(buffers[2]);
    for (int64_t i = 0; i < sizes[0]; ++i) sum[i] = a[i] + b[i];
    return 0;
}

inline Ref<Type> the_type() {
    int64_t shape[] = {LENGTH};
    return intern_type({shape, 0, 0, 0, false});
}

inline OperatorResult array_of(double number) {
    OperatorResult answer;
    answer.value = Ref<Value>::adopt(new Value);
    answer.value->type = the_type();
    answer.value->buffers[0].allocation = Allocation::from_pool(LENGTH * sizeof(double));
    auto* data = static_cast<double*>(answer.value->buffers[0].address());
    std::fill(data, data + LENGTH, number);
    return answer;
}

inline double number_of(const Future& future) {
    return *static_cast<double*>(future.value->buffers[0].address());
}

inline int an_error = 0; // stands for one of Python's

// A user's operators add up their inputs; one named "fails" fails.
class NativeHost : public Host {
  public:
    void run(Engine& engine, Job& job) override {
        for (std::size_t i = 0; i < job.members.size(); ++i) {
            Future& future = *job.members[i];
            if (future.operation->name == "fails") {
                job.answers[i].failure = Ref<Failure>::adopt(new Failure);
                job.answers[i].failure->error = &an_error;
                continue;
            }
            double sum = future.operation->kind == Operation::in_place ? 1 : 0;
            for (Edge& edge : future.inputs()) sum += number_of(*edge.input);
            if (future.operation->kind == Operation::in_place)
                engine.take_if_unique(*future.inputs()[0].input);
            job.answers[i] = array_of(sum);
        }
    }
    void classify(Engine& engine, Job& job) override {
        job.answers.resize(job.members.size());
        job.signatures.resize(job.members.size());
        for (std::size_t i = 0; i < job.members.size(); ++i) {
            Operation::Kind kind = job.members[i]->operation->kind;
            job.signatures[i].parts[0] = kinds_.data() + kind;
            Batcher batcher;
            batcher.runs_alone = false;
            engine.add_batcher(job.signatures[i], std::move(batcher));
        }
    }
    void run_callbacks(Engine&, Job&) override {}
    void detach_thread() override {}

  private:
    std::array<char, 16> kinds_{}; // their addresses stand for them in signatures
};

inline Ref<Operation> make_operation(Operation::Kind kind, bool pure, const char* name = "sum") {
    static Op& op = declare_op("add");
    auto operation = Ref<Operation>::adopt(new Operation);
    operation->kind = kind;
    operation->pure = pure;
    operation->name = name;
    operation->op = &op;
    if (kind == Operation::cumulative) {
        std::string_view whose = name;
        operation->identity_increment =
            whose != "gather" && whose != "merge"; // else `run` makes the increment
        operation->elementwise_add = whose != "merge";
        if (!operation->elementwise_add) operation->python = &an_error;
        operation->sum = make_operation(Operation::fold, true);
        operation->sum->elementwise_add = operation->elementwise_add;
    }
    return operation;
}

// That of all pushes, as tenfold's are.
inline Ref<Operation> addition() {
    static Ref<Operation>* only = [] {
        auto* operation = new Ref<Operation>(make_operation(Operation::elementwise, true));
        (*operation)->memoized = true;
        return operation;
    }();
    return *only;
}

inline void prepare_batcher(Engine& engine) {
    Ref<Operation> add = addition();
    Ref<Type> type = the_type();
    auto inference = Ref<Inference>::adopt(new Inference);
    inference->results.push_back(type);
    inference->operands = {0, 0};
    static Loop loop{HostKernel(add_numbers), {}, {{Loop::length, 1, 0}}};
    Batcher batcher;
    batcher.runs_alone = false;
    batcher.stacks = true;
    batcher.result = type;
    batcher.types = {type, type};
    batcher.rows.emplace(BatchRows{std::move(inference), type, &loop});
    Type* types[] = {type.get(), type.get()};
    engine.add_batcher(Engine::signature_of(*add, types), std::move(batcher));
    engine.set_add(add);
}

// A Handle, as Python has them.
class Handle {
  public:
    explicit Handle(Ref<Future> pushed) : future_(std::move(pushed)) {}
    static Handle of_put(Ref<Future> future) {
        future->engine->retain_handle(*future);
        return Handle(std::move(future));
    }
    Handle(Handle&& other) = default;
    Handle& operator=(Handle&& other) {
        std::swap(future_, other.future_);
        return *this;
    }
    ~Handle() {
        if (future_) future_->engine->release_handle(*future_);
    }
    Future& operator*() const { return *future_; }
    Future* get() const { return future_.get(); }
    double number() const {
        future_->engine->prioritize(*future_);
        while (!future_->engine->wait(*future_, 1'000'000'000)) {}
        return future_->failure ? -1 : number_of(*future_);
    }

  private:
    Ref<Future> future_;
};

} // namespace tenfold
