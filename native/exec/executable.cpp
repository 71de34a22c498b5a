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
#include "memory/lru_cache.h"
#include "threads/thread_local.h"

namespace tenfold {
namespace {

uint64_t bits_of(float number) { return std::bit_cast<uint32_t>(number); }
uint64_t bits_of(double number) { return std::bit_cast<uint64_t>(number); }

double real_of(const Scalar& scalar) {
    bool whole = scalar.form == Scalar::boolean || scalar.form == Scalar::integer;
    return whole ? double(scalar.whole) : scalar.real;
}

} // namespace

uint64_t number_bits(const Scalar& scalar, const Executable::Number& number) {
    const DType& dtype = dtype_of(number.dtype);
    bool whole = scalar.form == Scalar::boolean || scalar.form == Scalar::integer;
    std::size_t bytes = dtype.kind == 'c' ? dtype.bytes / 2 : dtype.bytes;
    if (dtype.kind == 'b') return scalar.whole != 0;
    if (dtype.kind != 'f' && dtype.kind != 'c') {
        auto mask = bytes == 8 ? ~uint64_t(0) : (uint64_t(1) << 8 * bytes) - 1;
        return uint64_t(scalar.whole) & mask;
    }
    if (number.imaginary) {
        double part = scalar.form == Scalar::complex_number ? scalar.imaginary : 0;
        return bytes == 4 ? bits_of(float(part)) : bits_of(part);
    }
    if (bytes == 4) return whole ? bits_of(float(scalar.whole)) : bits_of(float(scalar.real));
    return bits_of(real_of(scalar));
}

namespace {

struct GiveBack {
    std::size_t bytes;
    void operator()(void* memory) const { pool_free(memory, bytes); }
};
using Table = std::unique_ptr<void, GiveBack>;

// What a run needs memory for; the next one of the thread has it again.
struct Workspace {
    std::vector<Ref<Value>> slots;
    std::vector<int64_t> shifts; // bytes by which launches find a slot moved; empty: nothing is
    std::vector<void*> buffers;
    std::vector<uint64_t> numbers;
};

class Executor {
  public:
    Executor(const Executable& plan, const LinearizedGraph& walked, const Key& key,
             ExecutionContext& surroundings, std::vector<Ran>* ran)
        : plan_(plan), walked_(walked), key_(key), surroundings_(surroundings), ran_(ran),
          desk_(std::exchange(ThreadLocal<Workspace>::get(), {})), slots_(desk_.slots),
          shifts_(desk_.shifts), buffers_(desk_.buffers), numbers_(desk_.numbers) {
        slots_.resize(plan.slots);
        shifts_.assign(plan.moved.empty() ? 0 : plan.slots, 0);
    }
    ~Executor() {
        slots_.clear();
        ThreadLocal<Workspace>::get() = std::move(desk_);
    }

    bool run() {
        for (const auto& instruction : plan_.instructions)
            if (!std::visit([&](const auto& one) { return take(one); }, instruction)) return false;
        return true;
    }

  private:
    template <class T> bool take(const Indirect<T>& boxed) { return take(*boxed); }

    bool take(const Executable::Load& load) {
        Ref<Value> value = walked_.nodes[load.position].value;
        for (uint32_t i = 0; value && i < load.index; ++i) value = value->next;
        slots_[load.slot] = std::move(value);
        if (!shifts_.empty())
            shifts_[load.slot] = key_.moved[load.position] - plan_.moved[load.position];
        return bool(slots_[load.slot]);
    }

    bool take(const Executable::Allocate& made) {
        slots_[made.slot] = Value::in(Allocation::from_pool(made.bytes), made.type, made.strides);
        if (made.temporary) surroundings_.count(Counter::temporaries);
        return bool(slots_[made.slot]);
    }

    bool take(const Executable::Share& share) {
        slots_[share.slot] = slots_[share.source];
        if (!shifts_.empty()) shifts_[share.slot] = shifts_[share.source];
        return true;
    }

    bool take(const Executable::View& made) {
        const Value& source = *slots_[made.source];
        auto value = Ref<Value>::adopt(new Value);
        value->type = made.type;
        value->strides = made.strides;
        value->part = true;
        value->buffers[0] = source.buffers[0];
        value->buffers[0].offset += made.offset + shift(made.source);
        slots_[made.slot] = std::move(value);
        return true;
    }

    bool take(const Executable::Run& run) {
        buffers_.clear();
        for (const Executable::Place& place : run.buffers) {
            bool function = place.slot == Executable::Place::NOWHERE;
            char* from = function ? nullptr : address(place.slot);
            buffers_.push_back(from + place.offset);
        }
        std::vector<Table> tables;
        for (std::size_t bytes : run.tables) {
            void* memory = pool_allocate(bytes);
            if (!memory) return false;
            tables.emplace_back(memory, GiveBack{bytes});
            buffers_.push_back(memory);
        }
        numbers_.clear();
        for (const Executable::Number& number : run.numbers)
            numbers_.push_back(number.position == number.CONSTANT
                                   ? number.bits
                                   : number_bits(scalar_at(number.position), number));
        for (const Executable::Scale& scale : run.scales) push(scale);
        bool kernel = run.multiply_adds < 0;
        surroundings_.count(kernel ? Counter::kernels : Counter::calls);
        surroundings_.count(Counter::launches);
        if (!kernel) count(Counter::multiply_adds, run.multiply_adds);
        return timed(run.label, kernel, [&] {
            if (!launch(run, run.kernel, run.units, run.grain, run.threads, run.scratch))
                return false;
            if (run.more.numbers) count_more(run.more);
            return !run.finish || launch(run, run.finish, run.finished, run.finished, 1, 0);
        });
    }

    void count_more(const Executable::More& more) {
        const char* at = address(more.slot) + more.first;
        int64_t found = 0;
        for (int64_t i = 0; i < more.numbers; ++i, at += more.apart) {
            double number;
            std::memcpy(&number, at, sizeof number);
            found += number != 0;
        }
        count(Counter::multiply_adds, found * more.multiply_adds);
    }

    void push(const Executable::Scale& scale) {
        std::array<uint64_t, 2> words = scale.element;
        const DType& dtype = dtype_of(scale.dtype);
        bool complex = dtype.kind == 'c';
        if (!scale.factors.empty() && dtype.bytes == (complex ? 8 : 4))
            words = scaled<float>(scale, complex ? 2 : 1);
        else if (!scale.factors.empty())
            words = scaled<double>(scale, complex ? 2 : 1);
        numbers_.insert(numbers_.end(), words.begin(), words.end());
    }

    template <class T>
    std::array<uint64_t, 2> scaled(const Executable::Scale& scale, std::size_t parts) const {
        std::array<T, 2> product{}, other{};
        for (std::size_t i = 0; i < scale.factors.size(); ++i) {
            for (std::size_t part = 0; part < parts; ++part)
                other[part] = part_of<T>(scale.factors[i], scale.dtype, part);
            if (i == 0)
                product = other;
            else
                product[0] *= other[0]; // of complex numbers there is one
        }
        for (std::size_t part = 0; part < parts; ++part)
            if (scale.negative) product[part] = -product[part];
        std::array<uint64_t, 2> words{};
        std::memcpy(words.data(), product.data(), sizeof product);
        return words;
    }

    template <class T> T part_of(int64_t factor, uint16_t dtype, std::size_t part) const {
        T number;
        if (factor >= 0) {
            std::memcpy(&number, address(Executable::Slot(factor)) + part * sizeof(T), sizeof(T));
        } else {
            Executable::Number as{.dtype = dtype, .imaginary = part == 1};
            uint64_t bits = number_bits(scalar_at(uint32_t(~factor)), as);
            std::memcpy(&number, &bits, sizeof number);
        }
        return number;
    }

    template <class F> bool timed(const std::string& label, bool kernel, F&& work) {
        if (!ran_ || label.empty()) return work();
        int64_t begin = now();
        bool done = work();
        ran_->push_back({&label, kernel, begin, now()});
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

    const Scalar& scalar_at(uint32_t position) const {
        return walked_.nodes[position].node->scalar;
    }

    bool launch(const Executable::Run& run, Kernel kernel, int64_t units, int64_t grain,
                int threads, std::size_t scratch) {
        Work work;
        work.whole = run.whole;
        work.kernel = kernel;
        work.buffers = buffers_.data();
        work.sizes = reinterpret_cast<const int64_t*>(run.sizes.data());
        work.scalars = reinterpret_cast<const double*>(numbers_.data());
        work.scratch = scratch;
        work.units = units;
        work.grain = grain;
        work.threads = threads;
        Holding holding(run.held, run.held_to);
        Result result = surroundings_.launch(work);
        return result.outcome == Outcome::done && result.status == 0;
    }

    bool take(const Executable::Call& call) {
        return timed(call.label, false, [&] { return surroundings_.call(call, walked_, slots_); });
    }

    bool take(const Executable::Raise& raise) {
        count(raise.counter);
        return true;
    }

    bool take(const Executable::Drop& drop) {
        for (Executable::Slot slot : drop.slots) slots_[slot] = nullptr;
        return true;
    }

    bool take(const Executable::Publish& made) {
        if (!slots_[made.slots[0]]) return false;
        for (std::size_t i = 1; i < made.slots.size(); ++i)
            slots_[made.slots[i - 1]]->next = slots_[made.slots[i]];
        surroundings_.publish(walked_.nodes[made.position].node.get(), slots_[made.slots[0]]);
        return true;
    }

    bool take(const Executable::Mark& mark) {
        // Relaxed: a thread that does not see it computes a part once more.
        walked_.nodes[mark.position].node->read_in_part.store(true, std::memory_order_relaxed);
        return true;
    }

    const Executable& plan_;
    const LinearizedGraph& walked_;
    const Key& key_;
    ExecutionContext& surroundings_;
    std::vector<Ran>* ran_;
    Workspace desk_;
    std::vector<Ref<Value>>& slots_;
    std::vector<int64_t>& shifts_;
    std::vector<void*>& buffers_;
    std::vector<uint64_t>& numbers_;
};

constexpr std::size_t CAPACITY = 4096;
constexpr std::size_t MOST_WORDS = 1 << 22; // of all keys together: plans of long graphs are large

using Words = std::span<const uint64_t>;

struct ExecutableHash {
    std::size_t operator()(Words key) const { return hash_of(key); }
};

struct SameExecutable {
    bool operator()(Words a, Words b) const { return std::ranges::equal(a, b); }
};

using Plans = LruCache<Words, Ref<Executable>, ExecutableHash,
                       SameExecutable>; // by their keys, which they have

struct CachedExecutable {
    Lock lock; // protects everything here
    Plans plans;
    std::size_t words = 0; // of their keys

    // What leaves is freed outside the lock.
    void insert(Ref<Executable> plan, Plans::Entries& fallen) {
        words += plan->key.size();
        Words key = plan->key;
        plans.keep(key, std::move(plan));
        while (plans.size() > CAPACITY || (words > MOST_WORDS && plans.size() > 1))
            words -= plans.drop_last(fallen).key.size();
    }

    void remove(Words key, Plans::Entries& fallen) { words -= plans.drop(key, fallen).key.size(); }
};

CachedExecutable* const the_kept =
    new CachedExecutable; // made when the library is loaded; outlives every static object

CachedExecutable& kept() { return *the_kept; }

[[maybe_unused]] Cache& joined = join({"bound plans", CAPACITY, kept_plans, forget_plans});

// In front of the table each thread has the plans it used last, of those that run without end:
// found without a hash and without the Lock.
class ThreadPlanCache {
  public:
    static constexpr bool INHERITED = true;

    // What was found there last, unless it is time to ask the table, where plans age.
    Ref<Executable> find(std::span<const uint64_t> key, std::size_t kind) {
        forget_if_told();
        Entry& entry = at(key, kind);
        if (!entry.plan || ++entry.uses % AGEING == 0) return {};
        const auto& words = entry.plan->key;
        if (words.size() != key.size() ||
            std::memcmp(words.data(), key.data(), key.size_bytes()) != 0)
            return {};
        return entry.plan;
    }

    void put(const Ref<Executable>& plan, std::size_t kind) {
        if (plan->left < 0) at(plan->key, kind).plan = plan;
    }

    static void tell_to_forget() { current_epoch.fetch_add(1, std::memory_order_relaxed); }

  private:
    static constexpr std::size_t PLACES_LOG = 6, AGEING = 64;
    struct Entry {
        Ref<Executable> plan;
        std::size_t uses = 0;
    };

    Entry& at(std::span<const uint64_t> key, std::size_t kind) {
        return entries_[(kind ^ key.size()) * 0x9e3779b97f4a7c15ULL >> (64 - PLACES_LOG)];
    }

    void forget_if_told() {
        // Relaxed: a plan that is found before the new epoch is seen is still right.
        uint64_t now = current_epoch.load(std::memory_order_relaxed);
        if (std::exchange(epoch_, now) != now) entries_ = {};
    }

    static inline std::atomic<uint64_t> current_epoch{0};
    std::array<Entry, std::size_t(1) << PLACES_LOG> entries_;
    uint64_t epoch_ = 0;
};

// Where a plan has gone or is to be replaced by another.
void tell_fronts() {
    ThreadPlanCache::tell_to_forget();
    ThreadLocal<ThreadPlanCache>::get().find({}, 0); // this thread's at once
}

} // namespace

// Four words at a time, since one multiplication waits for the one before.
std::size_t hash_of(std::span<const uint64_t> key) {
    constexpr std::size_t LANES = 4, FACTOR = 0x9e3779b97f4a7c15ULL;
    std::array<std::size_t, LANES> lanes{1, 2, 3, 4};
    std::size_t i = 0;
    for (; i + LANES <= key.size(); i += LANES)
        for (std::size_t lane = 0; lane < LANES; ++lane)
            lanes[lane] = (std::rotl(lanes[lane], 23) ^ key[i + lane]) * FACTOR;
    std::size_t hash = key.size();
    for (; i < key.size(); ++i) hash = (hash ^ key[i]) * FACTOR;
    for (std::size_t lane : lanes) hash = mix(hash, lane);
    return cut(hash);
}

void Executable::destroy(Executable* plan) {
    for (const Instruction& instruction : plan->instructions)
        if (auto* call = std::get_if<Indirect<Call>>(&instruction))
            release_later((**call).function);
    delete plan;
}

namespace {

// The walk found these nodes without other references, and no thread has reached them since. From
// now on a thread that reaches one waits, until the result written in place is published.
class Claim {
  public:
    Claim(const Executable& plan, const LinearizedGraph& walked) : plan_(plan), walked_(walked) {
        mark(this_thread());
    }
    ~Claim() { mark(0); }

  private:
    void mark(uint32_t thread) {
        for (uint32_t position : plan_.donated_inputs)
            walked_.nodes[position].node->claim.store(thread, std::memory_order_release);
    }

    const Executable& plan_;
    const LinearizedGraph& walked_;
};

} // namespace

bool replay(const Executable& plan, const LinearizedGraph& walked, const Key& key,
            ExecutionContext& surroundings, std::vector<Ran>* ran) {
    Claim claim(plan, walked);
    return Executor(plan, walked, key, surroundings, ran).run();
}

namespace {

Ref<Executable> find_shared(Words key) {
    Plans::Entries fallen;
    Guard guard(kept().lock);
    const Ref<Executable>* found = kept().plans.find(key);
    if (!found) return {};
    Ref<Executable> plan = *found;
    if (plan->left == 0) return kept().remove(key, fallen), Ref<Executable>();
    if (plan->left > 0) --plan->left;
    return plan;
}

} // namespace

uint32_t this_thread() {
    static std::atomic<uint32_t> next{1};
    thread_local uint32_t number = next.fetch_add(1, std::memory_order_relaxed);
    return number;
}

Ref<Executable> find_plan(std::span<const uint64_t> key, std::size_t kind) {
    ThreadPlanCache& front = ThreadLocal<ThreadPlanCache>::get();
    if (Ref<Executable> plan = front.find(key, kind)) return plan;
    Ref<Executable> plan = find_shared(key);
    if (plan) front.put(plan, kind);
    return plan;
}

uint8_t known_exact(std::span<const uint64_t> key) {
    Guard guard(kept().lock);
    const Ref<Executable>* found = kept().plans.find(key);
    return found ? (*found)->exact : uint8_t(Key::by_form);
}

void keep_plan(Ref<Executable> plan) {
    Plans::Entries fallen;
    Guard guard(kept().lock);
    // One of the same key, which another thread has kept meanwhile.
    const Ref<Executable>* before = kept().plans.find(plan->key);
    if (before && (*before)->left != 0 && !plan->exact) return;
    if (before) {
        kept().remove(plan->key, fallen);
        tell_fronts();
    }
    kept().insert(std::move(plan), fallen);
}

void forget_plans() {
    Plans fallen;
    tell_fronts();
    Guard guard(kept().lock);
    fallen.swap(kept().plans);
    kept().words = 0;
}

void forget_plans_of(const void* call) {
    auto has_call = [&](const Ref<Inference>& each) { return each && each->keeps == call; };
    Plans::Entries fallen; // freed outside the lock
    tell_fronts();
    Guard guard(kept().lock);
    kept().plans.drop_all(
        [&](const auto& entry) {
            return std::ranges::any_of(entry.value->owned.inferences, has_call);
        },
        fallen);
    for (const auto& entry : fallen) kept().words -= entry.key.size();
}

std::size_t kept_plans() {
    Guard guard(kept().lock);
    return kept().plans.size();
}

} // namespace tenfold
