// Schedule test: runs small programs under a virtual scheduler in every order of their threads'
// steps. An order departs from the default turn at most TENFOLD_DEVIATIONS times (2). Larger
// programs run in TENFOLD_ORDERS (20,000) random orders, which begin at TENFOLD_SEED.
//
// After each order every handle has the result of a sequential evaluation. Nothing is pending,
// queued or alive. Nothing ran twice, or without its inputs, and all impure operators ran.
#include <cstdlib>
#include <map>
#include <set>

#include "programs.h"
#include "virtual_threads.h"

using namespace tenfold;

namespace {

using S = Statement;

struct Setting {
    int threads = 2;
    std::size_t batch = 0, memory = 0;
};

// Shown where a fact does not hold.
std::string the_program;
const std::string* the_order = nullptr;
#define FACT(condition)                                                                            \
    do {                                                                                           \
        if (condition) break;                                                                      \
        std::fprintf(stderr, "%s  order: %s\n%s:%d: %s does not hold\n", the_program.c_str(),      \
                     the_order->c_str(), __FILE__, __LINE__, #condition);                          \
        std::exit(1);                                                                              \
    } while (false)

struct Run;

// Executes a script, a statement after the other; a wait takes many steps.
class Producer : public VirtualThread {
  public:
    Producer(Run& run, const Script& script);
    bool ended() const override { return at_ == script_.size(); }
    void step() override;

    std::vector<std::optional<Handle>> handles;
    std::vector<std::size_t> nodes; // of the model

  private:
    void push(const Statement& statement);
    void cancel(const Statement& statement);
    void flush();
    bool waits();
    void await();

    Run& run_;
    const Script& script_;
    std::size_t at_ = 0;
    Ref<Future> awaited_;
    Worker worker_;
    bool slept_ = false, calls_ = false;
    std::optional<uint64_t> flushes_; // up to which arrival
};

struct Run {
    Run(Choices& choices, int deviations, const Setting& setting,
        const std::vector<Script>& scripts)
        : scheduler(choices, deviations), limits{setting.threads, setting.batch, 1'000,
                                                 setting.memory},
          engine(Ref<Engine>::adopt(new Engine(limits, scheduler))) {
        prepare_batcher(*engine);
        scheduler.before_compute = [this](const Worker& worker) { look_at(worker.job); };
        shared = engine->put(array_of(1));
        model.put(1);
        for (const Script& script : scripts) {
            auto producer = std::make_unique<Producer>(*this, script);
            producers.push_back(producer.get());
            scheduler.add(std::move(producer));
        }
        shared = {};
    }

    void look_at(const Job& job) {
        if (job.kind != Job::rows && job.kind != Job::python) return;
        FACT(!limits.max_batch || job.members.size() <= limits.max_batch);
        for (const Ref<Future>& member : job.members) {
            FACT(member->state == Future::running && member->num_missing == 0);
            FACT(member->operation->kind == job.members[0]->operation->kind);
            for (Edge& edge : member->inputs())
                FACT(edge.input->is_settled() && !edge.input->failure && edge.input->value);
            FACT(arrivals.insert(member->arrival).second); // never twice
            if (member->operation->kind != Operation::fold) ++runs[member->number];
        }
    }

    void end();

    VirtualScheduler scheduler;
    Limits limits;
    Ref<Engine> engine;
    Ref<Future> shared;
    Model model;
    std::vector<Producer*> producers; // the scheduler's
    std::set<uint64_t> arrivals;
    std::map<uint64_t, int> runs; // by the number of the push
};

Producer::Producer(Run& run, const Script& script) : run_(run), script_(script) {
    handles.emplace_back(Handle::of_put(run.shared));
    nodes.push_back(0);
    worker_.is_helper = true;
}

void Producer::push(const Statement& statement) {
    Future* inputs[] = {handles[statement.first]->get(), handles[statement.second]->get()};
    Ref<Future> result = run_.engine->push(make_operation(statement.verb), {}, inputs);
    FACT(result);
    nodes.push_back(run_.model.push(statement.verb, nodes[statement.first], nodes[statement.second],
                                    result->number));
    handles.emplace_back(Handle(std::move(result)));
}

void Producer::cancel(const Statement& statement) {
    Future& future = **handles[statement.first];
    bool known = future.is_settled();
    bool gone = run_.engine->cancel(future);
    if (gone && !known) run_.model.nodes[nodes[statement.first]].cancelled = true;
}

void Producer::flush() {
    if (!flushes_) {
        flushes_ = run_.engine->prioritize_all();
        return;
    }
    awaited_ = run_.engine->oldest(*flushes_);
    if (awaited_) {
        run_.engine->prioritize(*awaited_);
    } else {
        flushes_ = {};
        ++at_;
    }
}

// Whether it waits, or has now come to the end of a wait.
bool Producer::waits() {
    if (!awaited_) return false;
    bool sleeps = worker_.next == Worker::sleep && !std::exchange(slept_, true);
    if (sleeps && awaited_->settlement.load() == Future::awaited) {
        asleep_on = &awaited_->settlement;
        return true;
    }
    slept_ = false;
    if (worker_.next == Worker::compute) run_.scheduler.before_compute(worker_);
    if (!run_.engine->help(worker_, *awaited_)) return true;
    worker_.next = Worker::poll;
    awaited_ = {};
    if (!flushes_) ++at_;
    return true;
}

// As asyncio does: the waiting thread does not help.
void Producer::await() {
    Future* future = handles[script_[at_].first]->get();
    const std::vector<const Future*>& called = run_.scheduler.called;
    bool came = std::find(called.begin(), called.end(), future) != called.end();
    if (future->is_settled() ? !calls_ || came : false) {
        calls_ = false;
        ++at_;
    } else if (calls_) {
        asleep_on = &run_.scheduler.a_call;
    } else if (run_.engine->notify_when_settled(*future)) {
        calls_ = true;
    }
}

void Producer::step() {
    if (waits()) return;
    if (script_[at_].verb == S::await) return await();
    const Statement& statement = script_[at_];
    if (statement.verb == S::flush) return flush();
    if (statement.verb == S::wait) {
        awaited_ = Ref<Future>(handles[statement.first]->get());
        run_.engine->prioritize(*awaited_);
        return;
    }
    ++at_;
    if (is_push(statement.verb)) return push(statement);
    switch (statement.verb) {
    case S::put:
        handles.emplace_back(Handle::of_put(run_.engine->put(array_of(3))));
        nodes.push_back(run_.model.put(3));
        return;
    case S::drop: handles[statement.first].reset(); return;
    case S::cancel: return cancel(statement);
    case S::look: return run_.engine->force_sum(**handles[statement.first]);
    case S::call: run_.engine->notify_when_settled(**handles[statement.first]); return;
    case S::hold: return run_.engine->hold();
    case S::let_go: return run_.engine->release_hold();
    default: return;
    }
}

// All that can happen has happened: facts, then the end of the engine.
void Run::end() {
    for (Producer* producer : producers) FACT(producer->ended());
    model.evaluate();
    EngineStatistics now = engine->statistics();
    FACT(now.pending == 0 && now.ready == 0 && now.running == 0);
    for (Producer* producer : producers)
        for (std::size_t i = 0; i < producer->handles.size(); ++i)
            if (producer->handles[i])
                FACT(Model::agrees(model.nodes[producer->nodes[i]], **producer->handles[i]));
    for (const Model::Node& node : model.nodes) {
        int ran = runs[node.number];
        FACT(!node.number || ran <= 1);
        if (node.verb == S::impure && !node.reasons) FACT(ran == 1);
    }
    for (Producer* producer : producers) producer->handles.clear();
    scheduler.run();
    now = engine->statistics();
    FACT(now.pending == 0 && now.live_objects == 0 && now.live_bytes == 0);
    engine->stop(0);
    scheduler.run();
    FACT(scheduler.all_ended());
}

void conduct(Choices& choices, int deviations, const Setting& setting,
             const std::vector<Script>& scripts) {
    Run run(choices, deviations, setting, scripts);
    the_order = &run.scheduler.order;
    run.scheduler.run();
    run.end();
}

int number_from(const char* name, int otherwise) {
    const char* fields = std::getenv(name);
    return fields ? std::atoi(fields) : otherwise;
}

// Programs of one to three pushes, and of events that may interfere with them.
std::vector<std::vector<Script>> small_programs() {
    return {
        {{{S::elements}, {S::elements, 1, 0}, {S::wait, 2}}},
        {{{S::elements}, {S::wait, 1}}, {{S::elements}, {S::wait, 1}}},
        {{{S::user}, {S::elements, 1, 0}, {S::drop, 1}, {S::wait, 2}}},
        {{{S::user}, {S::drop, 1}, {S::impure}, {S::drop, 2}}, {{S::user}}},
        {{{S::user}, {S::elements, 1, 1}, {S::cancel, 1}, {S::wait, 2}}},
        {{{S::impure}, {S::wait, 1}}, {{S::impure}, {S::cancel, 1}}},
        {{{S::in_place}, {S::wait, 1}}, {{S::in_place}, {S::wait, 0}}},
        {{{S::in_place}, {S::in_place, 1, 0}, {S::drop, 1}}, {{S::user}}},
        {{{S::add}, {S::add, 0, 1}, {S::wait, 2}}, {{S::add}, {S::drop, 1}}},
        {{{S::add, 0, 0}, {S::add, 1, 1}, {S::drop, 1}, {S::drop, 2}}},
        {{{S::gather}, {S::gather, 1, 0}, {S::cancel, 1}, {S::wait, 2}}},
        {{{S::gather}, {S::wait, 1}}, {{S::gather}, {S::cancel, 1}}},
        {{{S::batched}, {S::batched}, {S::wait, 2}}, {{S::batched}, {S::drop, 1}}},
        {{{S::batched}, {S::elements, 1, 0}, {S::call, 2}}},
        {{{S::hold}, {S::user}, {S::elements, 1, 0}, {S::wait, 2}, {S::user}, {S::let_go}}},
        {{{S::hold}, {S::user}, {S::await, 1}, {S::let_go}}, {{S::user}}},
        {{{S::hold}, {S::elements}, {S::user, 1, 0}, {S::await, 2}, {S::let_go}}},
        {{{S::hold}, {S::elements}, {S::let_go}, {S::drop, 1}}, {{S::elements}, {S::wait, 1}}},
        {{{S::fails}, {S::user, 1, 0}, {S::wait, 2}}, {{S::user}, {S::cancel, 1}}},
        {{{S::fails}, {S::in_place}, {S::add, 2, 1}, {S::wait, 3}}},
        {{{S::user}, {S::flush}}, {{S::elements}, {S::add, 1, 1}, {S::drop, 1}}},
        {{{S::add}, {S::look, 1}, {S::flush}}, {{S::in_place}, {S::drop, 1}}},
        {{{S::user}, {S::call, 1}, {S::drop, 1}}, {{S::user}, {S::cancel, 1}}},
    };
}

void small_programs_run_in_every_order(int deviations) {
    static constexpr Setting SETTINGS[] = {{1, 0, 0}, {2, 0, 0}, {2, 1, 0}, {3, 2, 4096}};
    std::size_t orders = 0;
    for (const std::vector<Script>& scripts : small_programs())
        for (const Setting& setting : SETTINGS) {
            the_program = show(scripts) + "  workers: " + std::to_string(setting.threads) + "\n";
            Choices choices;
            do {
                conduct(choices, deviations, setting, scripts);
                ++orders;
            } while (choices.next());
        }
    std::printf("%zu orders of small programs\n", orders);
}

void larger_programs_run_in_random_orders(unsigned first, int orders) {
    for (unsigned seed = first; seed < first + unsigned(orders); ++seed) {
        std::mt19937 random(seed);
        Setting setting{int(1 + random() % 4), random() % 4, random() % 2 * 4096};
        std::vector<Script> scripts;
        for (std::size_t i = 0, count = 1 + random() % 3; i < count; ++i)
            scripts.push_back(random_script(random, 3 + random() % 12));
        the_program = "seed " + std::to_string(seed) + "\n" + show(scripts);
        Choices choices = Choices::at_random(seed);
        conduct(choices, 0, setting, scripts);
    }
}

} // namespace

int main() {
    declare_dtype(0, {'f', 8});
    small_programs_run_in_every_order(number_from("TENFOLD_DEVIATIONS", 2));
    larger_programs_run_in_random_orders(unsigned(number_from("TENFOLD_SEED", 1)),
                                         number_from("TENFOLD_ORDERS", 20'000));
}
