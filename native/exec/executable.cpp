#include "exec/executable.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <memory>

#include "ir/intern.h"
#include "memory/allocation_pool.h"
#include "memory/cache_registry.h"
#include "memory/deferred_decref.h"
#include "memory/direct_mapped.h"
#include "memory/lru_cache.h"
#include "threads/thread_local.h"

namespace tenfold {
namespace {

uint64_t bits_of(float number) { return std::bit_cast<uint32_t>(number); }
uint64_t bits_of(double number) { return std::bit_cast<uint64_t>(number); }

double real_of(const Scalar& scalar) {
    bool is_integer = scalar.form == Scalar::boolean || scalar.form == Scalar::integer;
    return is_integer ? double(scalar.integer_bits) : scalar.real;
}

} // namespace

uint64_t scalar_bits(const Scalar& scalar, const Executable::Number& number) {
    const DType& dtype = dtype_of(number.dtype);
    bool is_integer = scalar.form == Scalar::boolean || scalar.form == Scalar::integer;
    std::size_t bytes = dtype.kind == 'c' ? dtype.bytes / 2 : dtype.bytes;
    if (dtype.kind == 'b') return scalar.integer_bits != 0;
    if (dtype.kind != 'f' && dtype.kind != 'c') {
        auto mask = bytes == 8 ? ~uint64_t(0) : (uint64_t(1) << 8 * bytes) - 1;
        return uint64_t(scalar.integer_bits) & mask;
    }
    if (number.imaginary) {
        double part = scalar.form == Scalar::complex_number ? scalar.imaginary : 0;
        return bytes == 4 ? bits_of(float(part)) : bits_of(part);
    }
    if (bytes == 4)
        return is_integer ? bits_of(float(scalar.integer_bits)) : bits_of(float(scalar.real));
    return bits_of(real_of(scalar));
}

namespace {

// Memory of a run, reused by the next run of the thread.
struct Workspace {
    std::vector<Ref<Value>> slots;
    std::vector<int64_t>
        base_shifts; // bytes by which launches find a slot moved; empty: nothing is
    std::vector<void*> buffers;
    std::vector<uint64_t> numbers;
};

class Executor {
  public:
    Executor(const Executable& plan, const LinearizedGraph& graph, const Key& key,
             ExecutionContext& context, std::vector<StepTiming>* timings)
        : plan_(plan), graph_(graph), key_(key), context_(context), timings_(timings),
          workspace_(std::move(ThreadLocal<Workspace>::get())), slots_(workspace_.slots),
          shifts_(workspace_.base_shifts), buffers_(workspace_.buffers),
          numbers_(workspace_.numbers) {
        slots_.resize(plan.slots);
        shifts_.assign(plan.base_offsets.empty() ? 0 : plan.slots, 0);
    }
    ~Executor() {
        slots_.clear();
        ThreadLocal<Workspace>::get() = std::move(workspace_);
    }

    RunResult run() {
        const auto& instructions = plan_.instructions;
        for (at_ = 0; at_ < instructions.size(); ++at_)
            if (!std::visit([&](const auto& one) { return execute(one); }, instructions[at_]))
                return failure_at(at_);
        return settle() ? RunResult() : failure_at(at_);
    }

  private:
    RunResult failure_at(uint32_t instruction) {
        failure_.instruction = instruction;
        return failure_;
    }

    bool fail(RunResult::Cause cause, std::size_t bytes = 0) {
        failure_.cause = cause;
        failure_.bytes = bytes;
        return false;
    }

    // Before a value is published. It may be pending: who reads it waits. But what an operation may
    // refuse has no value to publish.
    bool settle() {
        if (queued_.empty()) return true;
        bool may_fail = std::ranges::any_of(graph_.nodes, [](const LinearizedNode& entry) {
            return !entry.value && entry.node->op && entry.node->op->can_fail;
        });
        return !may_fail || synchronize();
    }

    // Before the host reads a value, or calls Python.
    bool synchronize() {
        for (const auto& [instruction, event] : queued_) {
            Result result = plan_.device->wait(event);
            if (!is_done(result)) return at_ = instruction, false;
        }
        queued_.clear();
        return true;
    }

    bool is_done(const Result& result, std::size_t scratch = 0) {
        if (result.outcome == Outcome::no_memory) return fail(RunResult::memory, scratch);
        if (result.outcome == Outcome::cancelled) return fail(RunResult::exception);
        return result.status == 0 || fail(RunResult::values);
    }

    template <class T> bool execute(const Indirect<T>& indirect) { return execute(*indirect); }

    bool execute(const Executable::Load& load) {
        Ref<Value> value = graph_.nodes[load.position].value;
        for (uint32_t i = 0; value && i < load.index; ++i) value = value->next;
        slots_[load.slot] = std::move(value);
        if (!shifts_.empty())
            shifts_[load.slot] =
                key_.base_offsets[load.position] - plan_.base_offsets[load.position];
        return slots_[load.slot] || fail(RunResult::input);
    }

    bool execute(const Executable::Allocate& instruction) {
        slots_[instruction.slot] =
            Value::in_memory(Allocation::on_device(*plan_.device, instruction.bytes),
                             instruction.type, instruction.strides);
        if (instruction.temporary) context_.count(Counter::temporaries);
        return slots_[instruction.slot] || fail(RunResult::memory, instruction.bytes);
    }

    bool execute(const Executable::Share& share) {
        slots_[share.slot] = slots_[share.source];
        if (!shifts_.empty()) shifts_[share.slot] = shifts_[share.source];
        return true;
    }

    bool execute(const Executable::View& instruction) {
        const Value& source = *slots_[instruction.source];
        slots_[instruction.slot] =
            Value::view_of(source, instruction.type, instruction.offset + shift(instruction.source),
                           instruction.strides);
        return true;
    }

    bool execute(const Executable::Launch& run) {
        buffers_.clear();
        for (const Executable::BufferRef& buffer : run.buffers) {
            bool is_address = buffer.slot == Executable::BufferRef::ADDRESS;
            char* base = is_address ? nullptr : address(buffer.slot);
            buffers_.push_back(base + buffer.offset);
        }
        std::vector<Ref<Allocation>> tables;
        for (std::size_t bytes : run.scratch_tables) {
            Ref<Allocation> memory = Allocation::on_device(*plan_.device, bytes);
            if (!memory) return fail(RunResult::memory, bytes);
            buffers_.push_back(memory->data);
            tables.push_back(std::move(memory));
        }
        numbers_.clear();
        for (const Executable::Number& number : run.numbers)
            numbers_.push_back(number.position == number.CONSTANT
                                   ? number.bits
                                   : scalar_bits(scalar_at(number.position), number));
        for (const Executable::Scale& scale : run.scales) push_scale(scale);
        bool is_kernel = run.multiply_adds < 0;
        context_.count(is_kernel ? Counter::kernels : Counter::calls);
        context_.count(Counter::launches);
        count(Counter::multiply_adds, is_kernel ? ~run.multiply_adds : run.multiply_adds);
        return run_timed(run.label, is_kernel, [&] {
            if (!launch(run, run.kernel, run.units, run.grain, run.threads, run.scratch))
                return false;
            if (run.extra_work.count) count_extra_work(run.extra_work);
            if (run.finish && !launch(run, run.finish, run.finish_units, run.finish_units, 1, 0))
                return false;
            return true;
        });
    }

    void count_extra_work(const Executable::WorkCounter& counter) {
        const char* element = address(counter.slot) + counter.offset;
        int64_t num_nonzero = 0;
        for (int64_t i = 0; i < counter.count; ++i, element += counter.stride) {
            double number;
            plan_.device->copy(&number, element, sizeof number, Device::to_host);
            num_nonzero += number != 0;
        }
        count(Counter::multiply_adds, num_nonzero * counter.multiply_adds);
    }

    void push_scale(const Executable::Scale& scale) {
        std::array<uint64_t, 2> words = scale.element;
        const DType& dtype = dtype_of(scale.dtype);
        bool complex = dtype.kind == 'c';
        if (!scale.factors.empty() && dtype.bytes == (complex ? 8 : 4))
            words = scale_product<float>(scale, complex ? 2 : 1);
        else if (!scale.factors.empty())
            words = scale_product<double>(scale, complex ? 2 : 1);
        numbers_.insert(numbers_.end(), words.begin(), words.end());
    }

    template <class T>
    std::array<uint64_t, 2> scale_product(const Executable::Scale& scale, std::size_t parts) const {
        std::array<T, 2> product{}, factor{};
        for (std::size_t i = 0; i < scale.factors.size(); ++i) {
            for (std::size_t part = 0; part < parts; ++part)
                factor[part] = factor_part<T>(scale.factors[i], scale.dtype, part);
            if (i == 0)
                product = factor;
            else
                product[0] *= factor[0]; // a complex scale has one factor
        }
        for (std::size_t part = 0; part < parts; ++part)
            if (scale.negative != (scale.conjugated && part == 1)) product[part] = -product[part];
        std::array<uint64_t, 2> words{};
        std::memcpy(words.data(), product.data(), sizeof product);
        return words;
    }

    template <class T> T factor_part(int64_t factor, uint16_t dtype, std::size_t slice) const {
        T number;
        if (factor >= 0) {
            plan_.device->copy(&number, address(Executable::Slot(factor)) + slice * sizeof(T),
                               sizeof(T), Device::to_host);
        } else {
            Executable::Number spec{.dtype = dtype, .imaginary = slice == 1};
            uint64_t bits = scalar_bits(scalar_at(uint32_t(~factor)), spec);
            std::memcpy(&number, &bits, sizeof number);
        }
        return number;
    }

    template <class F> bool run_timed(const std::string& label, bool kernel, F&& work) {
        if (!timings_ || label.empty()) return work();
        int64_t begin = now();
        bool done = work();
        timings_->push_back({label, kernel, begin, now()});
        return done;
    }

    static int64_t now() {
        auto since = std::chrono::steady_clock::now().time_since_epoch();
        return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
    }

    int64_t shift(Executable::Slot slot) const { return shifts_.empty() ? 0 : shifts_[slot]; }

    char* address(Executable::Slot slot) const {
        return static_cast<char*>(slots_[slot]->buffers[0].address()) + shift(slot);
    }

    const Scalar& scalar_at(uint32_t position) const { return graph_.nodes[position].node->scalar; }

    bool launch(const Executable::Launch& run, KernelHandle kernel, int64_t units, int64_t grain,
                int threads, std::size_t scratch) {
        Work work;
        work.uninterruptible = run.uninterruptible;
        work.written = run.written;
        work.kernel = kernel;
        work.buffers = buffers_;
        work.sizes = run.sizes;
        work.scalars = numbers_;
        work.scratch = scratch;
        work.units = units;
        work.grain = grain;
        work.threads = threads;
        BlasThreadLimit holding(run.blas_libraries, run.blas_threads);
        Event event = context_.launch(*plan_.device, work);
        if (event.done()) return is_done(event.result, scratch);
        queued_.emplace_back(at_, event);
        return true;
    }

    bool execute(const Executable::Call& call) {
        if (!synchronize()) return false;
        bool done =
            run_timed(call.label, false, [&] { return context_.call(call, graph_, slots_); });
        if (!done) return fail(RunResult::exception);
        if (call.label.empty()) return true; // it copies a value, and computes no operation
        context_.count(Counter::calls);
        context_.count(Counter::launches);
        if (call.multiply_adds) count(Counter::multiply_adds, call.multiply_adds);
        if (call.temporary) context_.count(Counter::temporaries);
        return true;
    }

    bool execute(const Executable::CountUse& use) {
        UseCounter& counter = *use.counter;
        int64_t uses = counter.uses.fetch_add(1, std::memory_order_relaxed) + 1;
        if (uses < counter.next_request.load(std::memory_order_relaxed)) return true;
        return context_.request_optimised(counter) || fail(RunResult::exception);
    }

    bool execute(const Executable::Count& counted) {
        count(counted.counter);
        return true;
    }

    bool execute(const Executable::Drop& drop) {
        for (Executable::Slot slot : drop.slots) slots_[slot] = nullptr;
        return true;
    }

    bool execute(const Executable::Publish& instruction) {
        if (!settle()) return false;
        if (!slots_[instruction.slots[0]]) return fail(RunResult::input);
        for (std::size_t i = 1; i < instruction.slots.size(); ++i)
            slots_[instruction.slots[i - 1]]->next = slots_[instruction.slots[i]];
        context_.publish(graph_.nodes[instruction.position].node.get(),
                         slots_[instruction.slots[0]]);
        return true;
    }

    bool execute(const Executable::MarkPassedThrough& mark) {
        mark_passed_through(graph_.nodes[mark.position].node.get());
        return true;
    }

    const Executable& plan_;
    const LinearizedGraph& graph_;
    const Key& key_;
    ExecutionContext& context_;
    std::vector<StepTiming>* timings_;
    Workspace workspace_;
    std::vector<Ref<Value>>& slots_;
    std::vector<int64_t>& shifts_;
    std::vector<void*>& buffers_;
    std::vector<uint64_t>& numbers_;
    uint32_t at_ = 0; // the instruction that runs
    RunResult failure_;
    std::vector<std::pair<uint32_t, Event>> queued_; // launches that may not be done
};

constexpr std::size_t CAPACITY = 4096;
constexpr std::size_t MAX_KEY_WORDS = 1 << 22; // words of all keys: plans of long graphs are large

using Words = std::span<const uint64_t>;

using Plans = LruCache<Words, Ref<Executable>, WordsHash, SameWords>;

struct PlanCache {
    Lock lock; // protects the plans
    Plans plans{CAPACITY, MAX_KEY_WORDS};
};

PlanCache* const plan_cache_instance =
    new PlanCache; // made when the library is loaded; outlives every static object

PlanCache& plan_cache() { return *plan_cache_instance; }

[[maybe_unused]] Cache& registered =
    register_cache({"executables", "planning and compiling take 2 to 50 ms", CAPACITY,
                    num_cached_plans, clear_plan_cache, [] {
                        Guard guard(plan_cache().lock);
                        return plan_cache().plans.num_bytes();
                    }});

struct ThreadPlan {
    Ref<Executable> plan;
    std::size_t uses = 0;

    explicit operator bool() const { return bool(plan); }
};

// A thread's latest plans with unlimited runs. It needs no hash of the key.
class ThreadPlanCache : public ThreadCache<ThreadPlanCache, ThreadPlan, 6> {
  public:
    // The entry of this slot. Empty at regular intervals, so that the shared table sees its plans
    // in use.
    Ref<Executable> find(std::span<const uint64_t> key, std::size_t kind) {
        ThreadPlan& entry = slot_of(key, kind);
        if (!entry.plan || should_revalidate(entry)) return {};
        const auto& words = entry.plan->key;
        if (words.size() != key.size() ||
            std::memcmp(words.data(), key.data(), key.size_bytes()) != 0)
            return {};
        return entry.plan;
    }

    void put(const Ref<Executable>& plan, std::size_t kind) {
        if (plan->remaining_runs < 0) slot_of(plan->key, kind).plan = plan;
    }

  private:
    ThreadPlan& slot_of(std::span<const uint64_t> key, std::size_t kind) {
        return slot((kind ^ key.size()) * 0x9e3779b97f4a7c15ULL);
    }
};

} // namespace

// Four words at a time, since one multiplication waits for the one before.
std::size_t hash_of(std::span<const uint64_t> key) {
    constexpr std::size_t LANES = 4, FACTOR = 0x9e3779b97f4a7c15ULL;
    std::array<std::size_t, LANES> accumulators{1, 2, 3, 4};
    std::size_t i = 0;
    for (; i + LANES <= key.size(); i += LANES)
        for (std::size_t lane = 0; lane < LANES; ++lane)
            accumulators[lane] = (std::rotl(accumulators[lane], 23) ^ key[i + lane]) * FACTOR;
    std::size_t hash = key.size();
    for (; i < key.size(); ++i) hash = (hash ^ key[i]) * FACTOR;
    for (std::size_t lane : accumulators) hash = mix(hash, lane);
    return truncate_hash(hash);
}

void UseCounter::destroy(UseCounter* counter) {
    defer_decref(counter->request);
    delete counter;
}

void Executable::destroy(Executable* plan) {
    for (const Instruction& instruction : plan->instructions)
        if (auto* call = std::get_if<Indirect<Call>>(&instruction)) defer_decref((**call).function);
    delete plan;
}

namespace {

// Linearization found these nodes unreferenced elsewhere, and no thread has reached them since.
// From now on a thread that reaches one waits for the publication of the in-place result.
class Claim {
  public:
    Claim(const Executable& plan, const LinearizedGraph& graph) : plan_(plan), graph_(graph) {
        set_claims(this_thread());
    }
    ~Claim() { set_claims(0); }

  private:
    void set_claims(uint32_t thread) {
        for (uint32_t position : plan_.donated_inputs)
            graph_.nodes[position].node->claimed_by.store(thread, std::memory_order_release);
    }

    const Executable& plan_;
    const LinearizedGraph& graph_;
};

} // namespace

RunResult replay(const Executable& plan, const LinearizedGraph& graph, const Key& key,
                 ExecutionContext& context, std::vector<StepTiming>* timings) {
    Claim claim(plan, graph);
    return Executor(plan, graph, key, context, timings).run();
}

namespace {

Ref<Executable> find_shared(Words key) {
    Plans::Entries evicted;
    Guard guard(plan_cache().lock);
    const Ref<Executable>* cached = plan_cache().plans.find(key);
    if (!cached) return {};
    Ref<Executable> plan = *cached;
    if (plan->remaining_runs == 0) return plan_cache().plans.evict(key, evicted), Ref<Executable>();
    if (plan->remaining_runs > 0) --plan->remaining_runs;
    return plan;
}

} // namespace

uint32_t this_thread() {
    static std::atomic<uint32_t> next{1};
    thread_local uint32_t number = next.fetch_add(1, std::memory_order_relaxed);
    return number;
}

Ref<Executable> find_plan(std::span<const uint64_t> key, std::size_t kind) {
    ThreadPlanCache& thread_cache = ThreadPlanCache::get();
    if (Ref<Executable> plan = thread_cache.find(key, kind)) return plan;
    Ref<Executable> plan = find_shared(key);
    if (plan) thread_cache.put(plan, kind);
    return plan;
}

uint8_t exactness_of_key(std::span<const uint64_t> key) {
    Guard guard(plan_cache().lock);
    const Ref<Executable>* cached = plan_cache().plans.find(key);
    return cached ? (*cached)->exact : uint8_t(Key::by_form);
}

void cache_plan(Ref<Executable> plan) {
    Plans::Entries evicted;
    Guard guard(plan_cache().lock);
    // A plan of the same key, which another thread has cached meanwhile.
    const Ref<Executable>* previous = plan_cache().plans.find(plan->key);
    if (previous && (*previous)->remaining_runs != 0 && !plan->exact) return;
    if (previous) {
        plan_cache().plans.evict(Words(plan->key), evicted);
        ThreadPlanCache::invalidate_all();
    }
    Words key = plan->key;
    plan_cache().plans.insert(key, std::move(plan), evicted, key.size());
}

void clear_plan_cache() {
    Plans::Entries evicted; // freed outside the lock
    ThreadPlanCache::invalidate_all();
    Guard guard(plan_cache().lock);
    plan_cache().plans.clear(evicted);
}

void forget_plans_of_call(const void* call) {
    auto has_call = [&](const Ref<Inference>& each) { return each && each->op_owner == call; };
    Plans::Entries evicted; // freed outside the lock
    ThreadPlanCache::invalidate_all();
    Guard guard(plan_cache().lock);
    plan_cache().plans.evict_if(
        [&](const auto& entry) {
            return std::ranges::any_of(entry.value->key_owners.inferences, has_call);
        },
        evicted);
}

std::size_t num_cached_plans() {
    Guard guard(plan_cache().lock);
    return plan_cache().plans.size();
}

} // namespace tenfold
