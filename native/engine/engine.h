// Engine: runs pushed operators when their inputs are ready, most urgent first, in batches of one
// signature. Only ready operators are ever batched, so a batch never waits for itself.
#pragma once
#include <deque>
#include <queue>
#include <unordered_map>

#include "engine/operator_batch.h"
#include "engine/timeline.h"
#include "memory/pooled_vector.h"
#include "threads/fork_safe_lock.h"

namespace tenfold {

// One unit of work for a worker.
struct Job {
    enum Kind : uint8_t { nothing, rows, python, classify, callbacks };
    Kind kind = nothing;
    const Batcher* batcher = nullptr; // batcher of a `rows` job
    PooledVector<Ref<Future>> members;
    PooledVector<OperatorResult> answers;
    std::vector<BatcherKey> signatures; // classify: one per member; set for users' batches
};

// The engine's interface to Python, whose calls take the GIL, and to the operating system.
class Host {
  public:
    virtual ~Host() = default;
    // Writes an answer for each member.
    virtual void run(Engine& engine, Job& job) = 0;
    // Writes a signature, or an answer, for each member.
    virtual void classify(Engine& engine, Job& job) = 0;
    // Runs the callbacks of the members.
    virtual void run_callbacks(Engine& engine, Job& job) = 0;
    // Before a thread that has run Python ends.
    virtual void detach_thread() = 0;
    // Whether objects of Python wait to be freed; `run_deferred` frees them.
    virtual bool has_deferred() { return false; }
    virtual void run_deferred() {}
    // Starts a thread that works for the engine; false if it cannot be started.
    virtual bool start_thread(Engine& engine);
    // So many of those that sleep until the word changes.
    virtual void wake(Word& word, int sleepers);
};

struct Limits {
    int num_threads = 1;
    std::size_t max_batch = 0;      // members; 0: any number
    int64_t batch_wait_ns = 50'000; // nanoseconds without push and step after which a batch runs
    std::size_t max_bytes = 0;      // bytes; 0: any number
};

struct EngineStatistics {
    uint64_t pushed = 0, done = 0, failed = 0, cancelled = 0, dropped = 0, batches = 0;
    std::size_t pending = 0, ready = 0, running = 0;
    int64_t live_objects = 0, live_bytes = 0, peak_bytes = 0;
    std::unordered_map<std::size_t, uint64_t> sizes; // number of batches of each size
};

// Objects released under the engine's Lock, to be freed after it.
struct DeferredFrees {
    PooledVector<Ref<Future>> futures;
    std::vector<Future*> awaited; // among `futures`
    std::vector<Future*> unread;  // dropped if unneeded; in `futures`, or referenced
    std::vector<std::pair<Future*, Ref<Failure>>> failure_queue;
    bool draining_failures = false; // a caller further up works through `failing`
    std::vector<void*> objects;     // Python objects
    std::vector<Ref<Value>> values;
    int64_t num_results = 0, bytes = 0; // results, yet to be accounted
    std::vector<Ref<Operation>> operations;

    DeferredFrees() = default;
    DeferredFrees(const DeferredFrees&) = delete;
    DeferredFrees& operator=(const DeferredFrees&) = delete;
    ~DeferredFrees() {
        bool is_empty = futures.empty() && objects.empty() && values.empty() && operations.empty();
        if (!is_empty) free(); // after most pushes nothing is
    }
    void free();
};

// A thread that works for an engine, step by step: one of its own, or a waiting caller that helps.
// Other threads may run between two steps: a test runs the steps of many in every order.
struct Worker {
    enum Next : uint8_t { poll, compute, finish, free, run_deferred, sleep, exit, exited };
    Next next = poll;
    bool is_helper = false; // runs only work that needs no GIL
    bool is_idle = false;   // nothing has happened for a while
    bool busy = false, is_deferring = false, sleeps_with_timeout = false;
    int64_t timeout_ns = 0;       // nanoseconds to sleep, where it watches
    uint64_t events_at_sleep = 0; // when it fell asleep, as the next
    uint32_t signal_at_sleep = 0;
    Job job;
    DeferredFrees frees;
    OpenTrace* trace = nullptr;
};

// Signatures of functions that have gone are never seen again. So a larger number of Batchers is
// dropped when nothing is pending; those that are needed are made anew.
constexpr std::size_t MAX_IDLE_BATCHERS = 4096;

class Engine {
  public:
    std::atomic<uint32_t> references{1};
    Engine(const Limits& limits, Host& host);
    static void destroy(Engine* engine);

    // With the GIL. `inputs` are borrowed, of this engine. Returns the Future for a Handle, whose
    // reference counts already. Null when the engine is closed.
    // `bytes`: of the results, 0 where they are not known beforehand.
    Ref<Future> push(Ref<Operation> operation, Ref<PushSite> site, std::span<Future* const> inputs,
                     bool by_operator = false, std::size_t bytes = 0);
    Ref<Future> put(OperatorResult answer);
    // The value of an input without other references; else nothing.
    OperatorResult take_if_unique(Future& input);
    // A Handle of a value that was put is made; a Handle is destroyed.
    void retain_handle(Future& future);
    void release_handle(Future& future);

    void hold();
    void release_hold();
    bool is_held() const { return num_holds_ > 0; }

    // Gives it and its inputs the highest priority; the caller then waits.
    void prioritize(Future& future);
    // Prioritizes all pending Futures. Returns `last` for `oldest`, which the caller repeats until
    // it is null.
    uint64_t prioritize_all();
    Ref<Future> oldest(uint64_t last);
    uint64_t pushed_by_operators(); // number of pushes by running operators
    // Waits until ended Futures are freed, so that live counts are exact.
    void wait_for_frees();
    // If it is a sum of increments it is computed.
    void force_sum(Future& future);
    // Waits until it is settled, at most so many nanoseconds, without the GIL; helps meanwhile.
    bool wait(Future& future, int64_t timeout_ns);
    // The next step of a waiting caller that helps; true once the Future is settled. If its next
    // step is to sleep, it may sleep while the settlement is `awaited`.
    bool help(Worker& worker, Future& future);
    // The next step of a worker: takes the Lock once at most, and never sleeps.
    void step(Worker& worker);
    // Whether no signal came since it began to sleep.
    bool may_sleep(const Worker& worker) const { return signal_.load() == worker.signal_at_sleep; }
    const Word& signal() const { return signal_; } // the word on which its workers sleep
    void work();                                   // main function of its own threads
    bool cancel(Future& future);
    // Wants the Future, and calls Host::call once it is settled; false when it is settled already.
    bool notify_when_settled(Future& future);

    void close();         // nothing can be pushed any more
    bool close_if_done(); // if nothing is pending; whether it is closed
    void cancel_all();
    void cancel_unneeded(); // pure operators that no impure one needs
    // Workers end; waits for them, at most so many nanoseconds. False when some are left.
    bool stop(int64_t timeout_ns);
    bool closed() const { return closed_; }
    // Its number among the pushes of all engines, as traces say it.
    uint64_t trace_id(const Future& future) const { return engine_id_ << 32 | future.number; }
    bool is_from_parent_process() const; // whether this process is a fork of the engine's

    // Whether so many bytes fit; if not, whether running or ready operators could free some.
    // `likely`: earlier results of such operators suggest that memory may be short.
    enum Room : uint8_t { room, likely, perhaps, none };
    Room memory_room(std::size_t bytes, const Operation* operation);
    // The bytes of an operation's results on such inputs, where that is known by now; else 0.
    std::size_t expected_bytes(const Operation& operation, std::span<Future* const> inputs);
    // Failures that were never observed; they count as observed from now on.
    std::vector<Ref<Failure>> take_unobserved();
    void forget_failure(Failure& failure);

    EngineStatistics statistics();
    // The pending Futures, in push order.
    struct PendingInfo {
        uint64_t number;
        bool impure;
        std::string name, state;
        std::vector<uint64_t> inputs; // pending inputs
    };
    std::vector<PendingInfo> pending();
    void account(int64_t objects, int64_t bytes);
    Batcher* batcher_of(const BatcherKey& signature);
    Batcher& add_batcher(const BatcherKey& signature, Batcher&& batcher);
    // The addition of tenfold, for sums of increments.
    void set_add(Ref<Operation> add) { add_ = std::move(add); }
    const Ref<Operation>& add() const { return add_; }
    const BatchRows* sum_rows(const Type& type, uint64_t options);
    const Limits& limits() const { return limits_; }
    // Resources with which a thread of this engine computes members.
    BatchResources resources(BatchPlanner& planner, OpKernelCompiler& compiler) const {
        return {planner, compiler, limits_.num_threads, limits_.max_bytes > 0};
    }
    static BatcherKey signature_of(const Operation& operation, std::span<Type* const> types);

  private:
    struct Entry {
        int64_t priority;
        uint64_t number;
        Ref<Future> future;
        bool operator<(const Entry& other) const {
            return priority != other.priority ? priority < other.priority : number > other.number;
        }
    };
    using Heap = std::priority_queue<Entry>;

    // All of these need lock_.
    void link_inputs(Future& future, std::span<Future* const> inputs, DeferredFrees& frees);
    void list_insert(Future& future);
    void list_remove(Future& future);
    Future*& list_of(Future& future);
    void schedule(Future& future, DeferredFrees& frees);
    void propagate_height(Future& future);
    void on_ready(Future& future);
    void enqueue(Future& future);
    Batcher* find_batcher(Future& future);
    Batcher* find_stacked_batcher(Future& future);
    bool is_full(const Batcher& batcher) const;
    void add_to_batch(Batcher& batcher, Future& future);
    void remove_from_batch(Future& future, DeferredFrees& frees);
    void take_live(Batcher& batcher, const Future& future);
    void update_heaps(Batcher& batcher);
    int64_t priority(const Future& future) const;
    void set_result(Future& future, OperatorResult&& answer);
    void reserve_memory(Future& future);
    void unreserve_memory(Future& future);
    void update_size_estimate(const Future& future);
    void settle(Future& future, OperatorResult&& answer, DeferredFrees& frees);
    void fail(Future& future, Ref<Failure> failure, DeferredFrees& frees);
    void complete(Future& future, Future::State state, DeferredFrees& frees);
    void release_inputs(Future& future, DeferredFrees& frees);
    void drop_reader(Future* input, DeferredFrees& frees);
    static void release_later(Future* future, DeferredFrees& frees);
    void drop_unreferenced(DeferredFrees& frees);
    void clear_value(Future& future, DeferredFrees& frees);
    void mark_urgent(Future& future, DeferredFrees& frees);
    void mark_ready_urgent(Future& future);
    void update_all_heaps();
    void queue_urgent_members(Batcher& batcher);
    PooledVector<Ref<Future>> take_members(Batcher& batcher);
    void finish_job(Job& job, DeferredFrees& frees);
    void classify(Job& job, DeferredFrees& frees);
    Job pick_job(bool native_only, bool is_idle);
    Job start_batch(Batcher& batcher);
    Job pop_ready();
    Job pop_unclassified();
    bool can_run_now() const;
    void defer_free(DeferredFrees& frees);
    enum Wake : uint8_t { no_worker, wake_one, start_one };
    Wake select_wakeup();
    void wake_worker(Wake wake);
    void register_gil_free();
    void unregister_if_idle();
    // Versions of objects.
    VersionChain& version_chain_of(Future& future);
    void advance(Future& version, VersionChain& versions, DeferredFrees& frees);
    void release_version_handle(Future& future, DeferredFrees& frees);
    void detach_head(Future* head, DeferredFrees& frees);
    Ref<Future> make_future(Ref<Operation> operation, std::span<Future* const> inputs,
                            const Ref<PushSite>& site, DeferredFrees& frees);
    void add_increment(Future& version, Future& head, Ref<Future> increment, DeferredFrees& frees);
    void sum_full_run(Increments& increments, DeferredFrees& frees);
    void release(Leaves* leaves, DeferredFrees& frees);
    void release(Block* blocks, DeferredFrees& frees);
    void release_increments(Future& future, DeferredFrees& frees);
    void force(Future& future, DeferredFrees& frees);
    void force_all(DeferredFrees& frees);
    void cancel_lazy(DeferredFrees& frees);
    Future* cancellation_target(Future& future, DeferredFrees& frees);

    // Without.
    void poll(Worker& worker);
    void prepare_sleep(Worker& worker);
    void run_job_step(Worker& worker);
    void finish_job(Worker& worker);
    void free_step(Worker& worker);
    void deferred_step(Worker& worker);
    void exit_step(Worker& worker);
    void finish_helping(Worker& worker);
    void run_job(Job& job);
    void run_remaining(Job& job);
    void wake_settled(DeferredFrees& frees);

    Lock lock_; // protects everything here that is not atomic, and the Futures of this engine
    const Limits limits_;
    Host& host_;
    Ref<Operation> add_;
    using Batchers = std::unordered_map<BatcherKey, std::unique_ptr<Batcher>, BatcherKeyHash>;
    static Batchers make_batchers();
    Batchers batchers_ = make_batchers();
    std::pair<BatcherKey, Batcher*> last_batcher_{}; // the batcher found last
    BatchHeap<Batcher> active_{0};                   // Batchers with live members
    BatchHeap<Batcher> due_{1}; // active Batchers that run now: full, or with an urgent member
    uint64_t num_listings_ = 0;
    std::vector<Future*> urgent_stack_; // stack of mark_urgent, kept for its memory
    Heap ready_, urgent_;
    std::vector<Ref<Future>> unclassified_; // ready, of a signature that is not known
    bool unclassified_urgent_ = false;
    PooledVector<Ref<Future>> to_call_, to_free_;
    std::vector<Failure*> failures_; // live failures
    std::size_t reserved_bytes_ = 0; // bytes of pending results whose Types are known
    struct SizeEstimate {
        std::size_t pending = 0, bytes = 0; // bytes: of the last result
        bool known = false;
    };
    std::unordered_map<const void*, SizeEstimate>
        size_estimates_;            // for operators whose result sizes are guessed
    std::size_t guessed_bytes_ = 0; // estimated bytes of the other pending results
    std::deque<Job> batch_parts_;
    Future *pending_list_ = nullptr, *lazy_list_ = nullptr; // lists, the newest first
    Future* oldest_ = nullptr;                              // oldest pending operator
    uint64_t num_arrivals_ = 0;
    std::atomic<int> num_freeing_{0}; // threads that free objects of a step; relaxed: a hint
    uint64_t num_events_ = 0;         // pushes, and steps that ended
    uint64_t num_pushed_ = 0, num_done_ = 0, num_failed_ = 0, num_cancelled_ = 0, num_dropped_ = 0,
             num_batches_ = 0;
    uint64_t num_pushed_by_operators_ = 0;
    std::size_t num_pending_ = 0, num_running_ = 0;
    std::unordered_map<std::size_t, uint64_t> batch_sizes_;
    int num_holds_ = 0, num_busy_ = 0, num_started_ = 0;
    int num_deferring_ = 0; // busy workers that free Python's objects
    int num_sleeping_ = 0, num_timed_sleepers_ = 0,
        num_woken_ = 0;          // watchers sleep for a while only
    bool is_registered_ = false; // among `gil_free_threads`
    bool stopping_ = false, is_orphan_ = false;
    bool ran_python_ = false;         // since the last free of Python objects, so some may be due
    std::atomic<bool> closed_{false}; // relaxed: a look; the Lock's where it is written
    Word num_alive_{0};               // threads that have not ended; changed with the Lock
    Word signal_{0};                  // changed to wake workers
    std::atomic<int64_t> live_objects_{0}, live_bytes_{0}, peak_bytes_{0};
    const uint32_t fork_count_;
    const uint64_t engine_id_; // the number of engines created before
};

// All engines that exist, for the end of the process.
std::vector<Ref<Engine>> live_engines();

} // namespace tenfold
