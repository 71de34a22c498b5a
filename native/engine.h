// Engine: what was pushed runs when its inputs are there, most urgent first, in batches of one
// signature. Only what is ready is ever batched, so nothing waits for itself.
#pragma once
#include <deque>
#include <queue>
#include <unordered_map>

#include "batch.h"
#include "lock.h"

namespace tenfold {

// What a worker does at one go.
struct Job {
    enum Kind : uint8_t { nothing, rows, python, classify, callbacks };
    Kind kind = nothing;
    const Batcher* batcher = nullptr; // of rows
    std::vector<Ref<Future>> members;
    std::vector<Answer> answers;
    std::vector<Signature> signatures; // of what was to be classified, where there is no answer
};

// What the engine asks of Python; each takes the GIL.
class Host {
  public:
    virtual ~Host() = default;
    // Writes an answer for each member.
    virtual void run(Engine& engine, Job& job) = 0;
    // Writes a signature, or an answer, for each member.
    virtual void classify(Engine& engine, Job& job) = 0;
    // Calls who is to be called.
    virtual void call(Engine& engine, Job& job) = 0;
    // Before a thread that has run Python ends.
    virtual void leave() = 0;
};

struct Limits {
    int threads = 1;
    std::size_t batch = 0;  // members; 0: any number
    int64_t wait = 50'000;  // nanoseconds without push and step after which a batch runs
    std::size_t memory = 0; // bytes; 0: any number
};

struct EngineStatistics {
    uint64_t pushed = 0, done = 0, failed = 0, cancelled = 0, dropped = 0, batches = 0;
    std::size_t pending = 0, ready = 0, running = 0;
    int64_t live_objects = 0, live_bytes = 0, peak_bytes = 0;
    std::unordered_map<std::size_t, uint64_t> sizes; // of batches: how many of each
};

// What leaves the engine under its Lock is freed after it.
struct Left {
    std::vector<Ref<Future>> futures;
    std::vector<Future*> awaited; // among `futures`
    std::vector<Future*> look;    // whether they are still needed; among `futures`, or held
    std::vector<std::pair<Future*, Ref<Failure>>> failing;
    bool in_turn = false;       // somebody goes through `failing`
    std::vector<void*> objects; // of Python
    std::vector<Ref<Value>> values;

    Left() = default;
    Left(const Left&) = delete;
    Left& operator=(const Left&) = delete;
    ~Left() { free(); }
    void free();
};

class Engine {
  public:
    std::atomic<uint32_t> references{1};
    Engine(const Limits& limits, Host& host);
    static void destroy(Engine* engine);

    // With the GIL. `inputs` are borrowed, of this engine. Returns what will be the result, for a
    // Handle, which counts by now; null when the engine is closed.
    Ref<Future> push(Ref<Operation> operation, Ref<Site> site, std::span<Future* const> inputs);
    Ref<Future> put(Answer answer);
    // What an input was, where nobody else can reach it; else nothing.
    Answer take(Future& input);
    // A Handle of what was put was made; a Handle has gone.
    void hold_handle(Future& future);
    void drop_handle(Future& future);

    void hold();
    void let_go();
    bool held() const { return holds_ > 0; }

    // From now on it and what it needs runs before all else.
    void want(Future& future);
    // All that is pending; returns what `oldest` is to be asked for until it has none.
    uint64_t want_all();
    Ref<Future> oldest(uint64_t last);
    // What has ended is freed: for who looks what is alive.
    void wait_for_freeing();
    // If it is a sum of increments it is computed.
    void demand_sum(Future& future);
    // Waits until it is settled, at most so many nanoseconds, without the GIL; helps meanwhile.
    bool wait(Future& future, int64_t longest);
    bool cancel(Future& future);
    // Somebody is to be called (Host::call) once it is settled; false when it is.
    bool call_when_settled(Future& future);

    void close(); // nothing can be pushed any more
    void cancel_all();
    // Workers end; waits for them, at most so many nanoseconds. False when some are left.
    bool stop(int64_t longest);
    bool closed() const { return closed_; }
    // Its number among the pushes of all engines, as traces say it.
    uint64_t traced_number(const Future& future) const { return serial_ << 32 | future.number; }
    bool is_of_parent() const; // of this process, which is a fork

    // Whether there is room for so many bytes more; else whether what runs or is ready could make
    // some.
    enum Room : uint8_t { room, perhaps, none };
    Room room_for(std::size_t bytes);
    // Failures that nobody has observed; they count as observed from now on.
    std::vector<Ref<Failure>> unobserved();
    void forget(Failure& failure);

    EngineStatistics statistics();
    // What is pending, by the numbers of the pushes.
    struct Shown {
        uint64_t number;
        std::string name, state;
        std::vector<uint64_t> inputs; // those that are pending
    };
    std::vector<Shown> pending();
    void account(int64_t objects, int64_t bytes);
    Batcher* batcher_of(const Signature& signature);
    Batcher& add_batcher(const Signature& signature, Batcher&& made);
    // What tenfold's operation of that number adds by, for sums of increments.
    void set_add(Ref<Operation> add) { add_ = std::move(add); }
    const Ref<Operation>& add() const { return add_; }
    const Rows* rows_for_sums(const Type& type);
    const Limits& limits() const { return limits_; }
    static Signature signature_of(const Op* op, std::span<Type* const> types);

  private:
    struct Entry {
        uint32_t height;
        uint64_t number;
        Ref<Future> future;
        bool operator<(const Entry& other) const {
            return height != other.height ? height < other.height : number > other.number;
        }
    };
    using Heap = std::priority_queue<Entry>;

    // All with lock_ held.
    void link(Future& future, std::span<Future* const> inputs, Left& left);
    void enlist(Future& future);
    void unlist(Future& future);
    Future*& list_of(Future& future);
    void begin(Future& future, Left& left);
    void raise(Future& future);
    void make_ready(Future& future);
    Batcher* classified(Future& future);
    void join(Batcher& batcher, Future& future);
    void leave_batcher(Future& future);
    uint32_t urgency(const Future& future) const;
    void fill(Future& future, Answer&& answer);
    void settle(Future& future, Answer&& answer, Left& left);
    void fail(Future& future, Ref<Failure> failure, Left& left);
    void end(Future& future, Future::State state, Left& left);
    void release_inputs(Future& future, Left& left);
    void unread(Future* input, Left& left);
    void drop_unneeded(Left& left);
    void empty(Future& future, Left& left);
    void mark_wanted(Future& future, Left& left);
    void finish(Job& job, Left& left);
    Job pick(bool native, bool quiet);
    Batcher* lowest(bool due);
    Job fire(Batcher& batcher);
    Job from_heaps();
    Job classify_loose();
    bool can_run_now() const;
    void be_idle();
    void free_aside();
    enum Wake : uint8_t { nobody, one, another };
    Wake needed();
    void call(Wake wake);
    void be_counted();
    void rest();
    // Versions of objects.
    Timeline& timeline_of(Future& future);
    void advance(Future& version, Timeline& timeline, Left& left);
    void forget_handle(Future& future, Left& left);
    void unhead(Future* head, Left& left);
    Ref<Future> make(Ref<Operation> operation, std::span<Future* const> inputs,
                     const Ref<Site>& site, Left& left);
    void add_increment(Future& version, Future& head, Ref<Future> increment, Left& left);
    void close_leaves(Increments& increments, Left& left);
    void release(Leaves* leaves, Left& left);
    void release(Block* blocks, Left& left);
    void release_increments(Future& future, Left& left);
    void demand(Future& future, Left& left);
    void demand_all(Left& left);
    Future* to_cancel(Future& future, Left& left);

    // Without.
    void work();
    void run(Job& job);
    void start_worker();
    void run_picked(Job& job);
    void run_rest(Job& job);
    void classify(Job& job);
    void wake_settled(Left& left);

    Lock lock_; // protects everything here that is not atomic, and the Futures of this engine
    const Limits limits_;
    Host& host_;
    Ref<Operation> add_;
    std::unordered_map<Signature, std::unique_ptr<Batcher>, SignatureHash> batchers_;
    std::vector<Batcher*> active_; // those with members
    Heap ready_, urgent_;
    std::vector<Ref<Future>> loose_; // ready, of a signature that is not known
    bool loose_wanted_ = false;
    std::vector<Ref<Future>> to_call_, to_free_;
    std::vector<Failure*> failures_; // that are alive
    std::size_t expected_ = 0;       // bytes of what is pending, as far as they are known
    std::deque<Job> parts_;
    Future *pending_ = nullptr, *lazy_ = nullptr; // lists, the newest first
    Future* oldest_ = nullptr;                    // of the pending ones
    uint64_t arrived_ = 0;
    std::atomic<int> freeing_{0}; // threads that free what a step has left; relaxed: a look
    uint64_t events_ = 0;         // pushes, and steps that ended
    uint64_t pushed_ = 0, done_ = 0, failed_ = 0, cancelled_ = 0, dropped_ = 0, batches_ = 0;
    std::size_t pending_count_ = 0, running_ = 0;
    std::unordered_map<std::size_t, uint64_t> sizes_;
    int holds_ = 0, busy_ = 0, started_ = 0, ended_ = 0;
    int sleepers_ = 0, watchers_ = 0, woken_ = 0; // watchers sleep for a while only
    bool counted_ = false;                        // among `outsiders`
    bool closed_ = false, stopping_ = false, orphan_ = false, due_ = false;
    std::atomic<uint32_t> alive_{0}; // a futex: threads that have not ended
    Word signal_{0};                 // changed to wake workers
    std::atomic<int64_t> live_objects_{0}, live_bytes_{0}, peak_bytes_{0};
    const uint32_t forks_;
    const uint64_t serial_; // how many engines there were before
};

// Engines there are, for the end of the process.
std::vector<Ref<Engine>> live_engines();

} // namespace tenfold
