// Engine: runs pushed operators when their inputs are ready, most urgent first, in batches of one
// signature. Only ready operators are ever batched, so a batch never waits for itself.
#pragma once
#include <deque>
#include <queue>
#include <unordered_map>

#include "engine/operator_batch.h"
#include "engine/timeline.h"
#include "threads/fork_safe_lock.h"

namespace tenfold {

// What a worker does at one go.
struct Job {
    enum Kind : uint8_t { nothing, rows, python, classify, callbacks };
    Kind kind = nothing;
    const Batcher* batcher = nullptr; // of rows
    bool first = true;                // of the parts of a batch
    std::vector<Ref<Future>> members;
    std::vector<Answer> answers;
    std::vector<Signature> signatures; // of the operators to be classified, without answers
};

// What the engine asks of Python, where each takes the GIL, and of the system.
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
    // Whether anything of Python's waits to be freed; `tidy` frees it.
    virtual bool untidy() { return false; }
    virtual void tidy() {}
    // A thread that works for the engine; false where there can be none.
    virtual bool start(Engine& engine);
    // So many of those that sleep until the word changes.
    virtual void wake(Word& word, int sleepers);
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
    bool in_turn = false;       // a caller further up works through `failing`
    std::vector<void*> objects; // of Python
    std::vector<Ref<Value>> values;
    int64_t made = 0, bytes = 0; // results, yet to be accounted
    std::vector<Ref<Operation>> operations;

    Left() = default;
    Left(const Left&) = delete;
    Left& operator=(const Left&) = delete;
    ~Left() { free(); }
    void free();
};

// Who works for an engine, one step after the other: a thread of its own, or one that waits and
// helps. Between two steps others may do anything: a test takes those of many in every order.
struct Worker {
    enum Next : uint8_t { look, compute, finish, free, tidy, sleep, leave, gone };
    Next next = look;
    bool helps = false; // only with what needs no GIL
    bool quiet = false; // nothing has happened for a while
    bool busy = false, watches = false;
    int64_t longest = 0; // nanoseconds to sleep, where it watches
    uint64_t events = 0; // when it fell asleep, as the next
    uint32_t signal = 0;
    Job job;
    Left left;
    OpenTrace* trace = nullptr;
};

class Engine {
  public:
    std::atomic<uint32_t> references{1};
    Engine(const Limits& limits, Host& host);
    static void destroy(Engine* engine);

    // With the GIL. `inputs` are borrowed, of this engine. Returns what will be the result, for a
    // Handle, which counts by now; null when the engine is closed.
    Ref<Future> push(Ref<Operation> operation, Ref<PushSite> site, std::span<Future* const> inputs,
                     bool by_operator = false);
    Ref<Future> put(Answer answer);
    // The value of an input without other references; else nothing.
    Answer take(Future& input);
    // A Handle of a value that was put is made; a Handle is destroyed.
    void hold_handle(Future& future);
    void drop_handle(Future& future);

    void hold();
    void let_go();
    bool held() const { return holds_ > 0; }

    // From now on it and what it needs runs before all else; to be followed by a wait.
    void want(Future& future);
    // All that is pending; returns what `oldest` is to be asked for until it has none.
    uint64_t want_all();
    Ref<Future> oldest(uint64_t last);
    uint64_t pushed_by_operators(); // how often one that ran has pushed
    // What has ended is freed: for who looks what is alive.
    void wait_for_freeing();
    // If it is a sum of increments it is computed.
    void demand_sum(Future& future);
    // Waits until it is settled, at most so many nanoseconds, without the GIL; helps meanwhile.
    bool wait(Future& future, int64_t longest);
    // The next step of one who waits and helps, true when there is no more; where its next is to
    // sleep it may do so while the settlement is `awaited`.
    bool help(Worker& worker, Future& future);
    // The next step of a worker: takes the Lock once at most, and never sleeps.
    void step(Worker& worker);
    // Whether no signal came since it began to sleep.
    bool may_sleep(const Worker& worker) const { return signal_.load() == worker.signal; }
    const Word& signal() const { return signal_; } // what its workers sleep on
    void work();                                   // what a thread of its own does
    bool cancel(Future& future);
    // Wants the Future, and calls Host::call once it is settled; false when it is settled already.
    bool call_when_settled(Future& future);

    void close();         // nothing can be pushed any more
    bool close_if_done(); // if nothing is pending; whether it is closed
    void cancel_all();
    void cancel_unneeded(); // what is pure and needed by nothing that is not
    // Workers end; waits for them, at most so many nanoseconds. False when some are left.
    bool stop(int64_t longest);
    bool closed() const { return closed_; }
    // Its number among the pushes of all engines, as traces say it.
    uint64_t traced_number(const Future& future) const { return serial_ << 32 | future.number; }
    bool is_of_parent() const; // of this process, which is a fork

    // Whether there is room for so many bytes more; else whether what runs or is ready could make
    // some. `likely`: there may be no room by what came of such operators before.
    enum Room : uint8_t { room, likely, perhaps, none };
    Room room_for(std::size_t bytes, const Operation* operation);
    // Failures that were never observed; they count as observed from now on.
    std::vector<Ref<Failure>> unobserved();
    void forget(Failure& failure);

    EngineStatistics statistics();
    // What is pending, by the numbers of the pushes.
    struct Shown {
        uint64_t number;
        bool impure;
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
    const BatchRows* rows_for_sums(const Type& type, uint64_t options);
    const Limits& limits() const { return limits_; }
    static Signature signature_of(const Operation& operation, std::span<Type* const> types);

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
    void become_ready(Future& future);
    void make_ready(Future& future);
    Batcher* classified(Future& future);
    bool is_full(const Batcher& batcher) const;
    void join(Batcher& batcher, Future& future);
    void leave_batcher(Future& future);
    uint32_t urgency(const Future& future) const;
    void fill(Future& future, Answer&& answer);
    void expect(Future& future);
    void expect_no_more(Future& future);
    void note_size(const Future& future);
    void settle(Future& future, Answer&& answer, Left& left);
    void fail(Future& future, Ref<Failure> failure, Left& left);
    void end(Future& future, Future::State state, Left& left);
    void release_inputs(Future& future, Left& left);
    void unread(Future* input, Left& left);
    void drop_unneeded(Left& left);
    void empty(Future& future, Left& left);
    void mark_wanted(Future& future, Left& left);
    void finish(Job& job, Left& left);
    void classify(Job& job, Left& left);
    Job pick(bool native, bool quiet);
    Batcher* lowest(bool due);
    Job fire(Batcher& batcher);
    Job from_heaps();
    Job classify_loose();
    bool can_run_now() const;
    void take_aside(Left& left);
    enum Wake : uint8_t { no_worker, one, another };
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
                     const Ref<PushSite>& site, Left& left);
    void add_increment(Future& version, Future& head, Ref<Future> increment, Left& left);
    void close_leaves(Increments& increments, Left& left);
    void release(Leaves* leaves, Left& left);
    void release(Block* blocks, Left& left);
    void release_increments(Future& future, Left& left);
    void demand(Future& future, Left& left);
    void demand_all(Left& left);
    void cancel_lazy(Left& left);
    Future* to_cancel(Future& future, Left& left);

    // Without.
    void look(Worker& worker);
    void fall_asleep(Worker& worker);
    void compute(Worker& worker);
    void finish(Worker& worker);
    void free(Worker& worker);
    void tidy(Worker& worker);
    void leave(Worker& worker);
    void stop_helping(Worker& worker);
    void run(Job& job);
    void run_rest(Job& job);
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
    struct Family {
        std::size_t pending = 0, bytes = 0; // bytes: of the last result
        bool known = false;
    };
    std::unordered_map<const void*, Family> families_; // of operators whose results are guessed
    std::size_t guessed_ = 0;                          // bytes of what is pending, by its families
    std::deque<Job> parts_;
    Future *pending_ = nullptr, *lazy_ = nullptr; // lists, the newest first
    Future* oldest_ = nullptr;                    // of the pending ones
    uint64_t arrived_ = 0;
    std::atomic<int> freeing_{0}; // threads that free what a step has left; relaxed: a look
    uint64_t events_ = 0;         // pushes, and steps that ended
    uint64_t pushed_ = 0, done_ = 0, failed_ = 0, cancelled_ = 0, dropped_ = 0, batches_ = 0;
    uint64_t pushed_by_operators_ = 0;
    std::size_t pending_count_ = 0, running_ = 0;
    std::unordered_map<std::size_t, uint64_t> sizes_;
    int holds_ = 0, busy_ = 0, started_ = 0;
    int sleepers_ = 0, watchers_ = 0, woken_ = 0; // watchers sleep for a while only
    bool counted_ = false;                        // among `outsiders`
    bool stopping_ = false, orphan_ = false, due_ = false;
    bool ran_ = false;                // since Python's objects were freed: there may be some
    std::atomic<bool> closed_{false}; // relaxed: a look; the Lock's where it is written
    Word alive_{0};                   // threads that have not ended; changed with the Lock
    Word signal_{0};                  // changed to wake workers
    std::atomic<int64_t> live_objects_{0}, live_bytes_{0}, peak_bytes_{0};
    const uint32_t forks_;
    const uint64_t serial_; // how many engines there were before
};

// Engines there are, for the end of the process.
std::vector<Ref<Engine>> live_engines();

} // namespace tenfold
