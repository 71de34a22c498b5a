// Virtual threads: simulate threads that use one engine, step by step on one real thread. The test
// chooses the order of the steps. Starting and waking a thread become steps, too; and a sleep with
// a limit may end at any time.
#pragma once
#include <functional>
#include <memory>
#include <random>

#include "engine_host.h"

namespace tenfold {

// Picks one of several alternatives: all of them over time, or one at random.
class Choices {
  public:
    // Every alternative, depth first: `next` moves to an unvisited one, if any remains.
    std::size_t choose(std::size_t count) {
        if (count == 1) return 0;
        if (random_) return (*random_)() % count;
        if (at_ == path_.size()) path_.push_back({0, count});
        CHECK(path_[at_].count == count); // the program does the same each time
        return path_[at_++].chosen;
    }
    bool next() {
        at_ = 0;
        while (!path_.empty() && ++path_.back().chosen == path_.back().count) path_.pop_back();
        return !path_.empty();
    }
    static Choices at_random(unsigned seed) {
        Choices choices;
        choices.random_ = std::make_unique<std::mt19937>(seed);
        return choices;
    }
    bool is_random() const { return random_ != nullptr; }

  private:
    struct Choice {
        std::size_t chosen, count;
    };
    std::vector<Choice> path_;
    std::size_t at_ = 0;
    std::unique_ptr<std::mt19937> random_;
};

struct VirtualThread {
    virtual ~VirtualThread() = default;
    virtual bool ended() const = 0;
    virtual void step() = 0;
    std::vector<std::pair<const Word*, int>> calls; // the wake-ups before its next step
    const Word* asleep_on = nullptr;
    bool wakes_by_itself = false; // after some time
};

// Runs virtual threads, one step at a time. The last one runs as long as it can continue, then the
// next one. An order deviates from that rule a bounded number of times (Emmi, Qadeer, Rakamaric,
// "Delay-bounded scheduling", 2011). A random order deviates any number of times.
class VirtualScheduler : public NativeHost {
  public:
    VirtualScheduler(Choices& choices, int deviations)
        : choices_(choices), deviations_(deviations) {}

    std::function<void(const Worker&)> before_compute; // runs just before a job is computed

    void add(std::unique_ptr<VirtualThread> thread) { threads_.push_back(std::move(thread)); }

    // Until no virtual thread can go on.
    void run() {
        constexpr int MOST = 100'000; // steps, of which a program needs hundreds
        for (int steps = 0; step(); ++steps) CHECK(steps < MOST);
    }
    bool all_ended() const {
        return std::all_of(threads_.begin(), threads_.end(),
                           [](auto& thread) { return thread->ended(); });
    }

    bool start_thread(Engine& engine) override;
    void wake(Word& word, int sleepers) override {
        if (stepping_)
            stepping_->calls.emplace_back(&word, sleepers);
        else
            deliver(&word, sleepers);
    }
    void run_callbacks(Engine&, Job& job) override {
        for (const Ref<Future>& future : job.members) called.push_back(future.get());
        wake(a_call, 1 << 30);
    }

    std::vector<const Future*> called;
    Word a_call{0};    // futex of a waiter for a callback
    std::string order; // the thread of each step, for the report of a failure

  private:
    bool can_go_on(const VirtualThread& thread) const {
        return !thread.calls.empty() || (!thread.ended() && !thread.asleep_on);
    }

    std::size_t choose(std::size_t count) {
        if (!choices_.is_random() && deviations_ == 0) return 0;
        std::size_t chosen = choices_.choose(count);
        deviations_ -= chosen > 0;
        return chosen;
    }

    // Threads that can run next: the last one if it can continue, then round robin. Threads whose
    // sleep times out come last.
    void find_able() {
        able_.clear();
        std::size_t count = threads_.size();
        for (bool awake : {true, false})
            for (std::size_t i = 0; i < count; ++i) {
                VirtualThread& thread = *threads_[(now_ + i) % count];
                bool rises = thread.asleep_on && thread.wakes_by_itself && thread.calls.empty();
                if (awake ? can_go_on(thread) : rises) able_.push_back((now_ + i) % count);
            }
    }

    bool step() {
        find_able();
        if (able_.empty()) return false;
        now_ = able_[choose(able_.size())];
        VirtualThread& thread = *threads_[now_];
        order += std::to_string(now_) + (thread.asleep_on ? "! " : " ");
        stepping_ = &thread;
        if (thread.calls.empty()) {
            thread.asleep_on = nullptr;
            thread.step();
        } else {
            auto [word, sleepers] = thread.calls.front();
            thread.calls.erase(thread.calls.begin());
            deliver(word, sleepers);
        }
        stepping_ = nullptr;
        return true;
    }

    void deliver(const Word* word, int sleepers) {
        std::vector<VirtualThread*> asleep;
        for (auto& thread : threads_)
            if (thread->asleep_on == word) asleep.push_back(thread.get());
        while (sleepers-- > 0 && !asleep.empty()) {
            std::size_t chosen = choose(asleep.size());
            asleep[chosen]->asleep_on = nullptr;
            asleep.erase(asleep.begin() + std::ptrdiff_t(chosen));
        }
    }

    Choices& choices_;
    int deviations_;
    std::vector<std::unique_ptr<VirtualThread>> threads_;
    std::vector<std::size_t> able_; // among the threads
    std::size_t now_ = 0;           // the last thread
    VirtualThread* stepping_ = nullptr;
};

class VirtualWorker : public VirtualThread {
  public:
    VirtualWorker(Engine& engine, VirtualScheduler& scheduler)
        : engine_(engine), scheduler_(scheduler) {}
    bool ended() const override { return worker_.next == Worker::exited; }
    // To fall asleep is a step of its own: a signal may come before.
    void step() override {
        bool asleep_now = worker_.next == Worker::sleep && !std::exchange(slept_, true);
        if (asleep_now && engine_.may_sleep(worker_)) {
            asleep_on = &engine_.signal();
            wakes_by_itself = worker_.sleeps_with_timeout;
            return;
        }
        if (worker_.next == Worker::compute) scheduler_.before_compute(worker_);
        slept_ = false;
        engine_.step(worker_);
    }

  private:
    Engine& engine_;
    VirtualScheduler& scheduler_;
    Worker worker_;
    bool slept_ = false;
};

inline bool VirtualScheduler::start_thread(Engine& engine) {
    add(std::make_unique<VirtualWorker>(engine, *this));
    return true;
}

} // namespace tenfold
