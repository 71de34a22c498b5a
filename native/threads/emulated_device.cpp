#include "threads/emulated_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <new>
#include <unordered_map>
#include <variant>
#include <vector>

#include "memory/allocation_pool.h"
#include "threads/device.h"
#include "threads/fork_safe_lock.h"
#include "threads/stream_order.h"
#include "threads/worker_pool.h"

namespace tenfold {
namespace {

constexpr std::size_t MEMORY_BYTES = std::size_t(1) << 32, MAX_QUEUED = 32;
constexpr std::size_t RETURNED_BYTES = std::size_t(1) << 16; // free blocks that lose their pages
constexpr int FILL = 0xFF; // NaN of each floating dtype, -1 of each integer

// Memory that is mapped twice: without access at the addresses that arrays have, and where kernels
// find it, `shift` bytes further.
class Memory {
  public:
    Memory() {
        int file = memfd_create("tenfold emulated device", MFD_CLOEXEC);
        if (file < 0) return;
        if (ftruncate(file, off_t(MEMORY_BYTES)) == 0) {
            begin_ = map(file, PROT_NONE);
            char* readable = map(file, PROT_READ | PROT_WRITE);
            if (begin_ && readable) {
                madvise(readable, MEMORY_BYTES, MADV_DONTFORK); // a child has no device
                shift_ = readable - begin_;
            }
        }
        close(file);
    }

    bool is_here() const { return getpid() == process_; }

    // A new block; null if there is no more.
    void* allocate(std::size_t bytes) {
        if (!shift_ || bytes > MEMORY_BYTES - used_) return nullptr;
        void* block = begin_ + used_;
        used_ += bytes;
        return block;
    }

    // Where the host and kernels reach an address; others are not of this memory.
    char* readable(const void* address) const {
        auto* at = static_cast<char*>(const_cast<void*>(address));
        bool ours = begin_ <= at && at < begin_ + MEMORY_BYTES;
        return ours ? at + shift_ : at;
    }

  private:
    static char* map(int file, int access) {
        void* memory = mmap(nullptr, MEMORY_BYTES, access, MAP_SHARED | MAP_NORESERVE, file, 0);
        return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
    }

    char* begin_ = nullptr;
    std::ptrdiff_t shift_ = 0;
    std::size_t used_ = 0;
    const pid_t process_ = getpid();
};

// A launch with its arguments.
struct QueuedLaunch {
    Work work;
    std::vector<void*> buffers;
    std::vector<int64_t> sizes;
    std::vector<uint64_t> scalars;

    QueuedLaunch(const Work& launched, const Memory& memory)
        : work(launched), buffers(launched.buffers.begin(), launched.buffers.end()),
          sizes(launched.sizes.begin(), launched.sizes.end()),
          scalars(launched.scalars.begin(), launched.scalars.end()) {
        for (void*& buffer : buffers) buffer = memory.readable(buffer);
        work.interrupted = nullptr;
        work.uninterruptible = true;
    }

    Result run() {
        work.buffers = buffers;
        work.sizes = sizes;
        work.scalars = scalars;
        try {
            return Launch(work).run();
        } catch (const std::bad_alloc&) { return {Outcome::no_memory}; }
    }
};

struct QueuedFill {
    void* memory;
    std::size_t bytes;

    Result run() {
        std::memset(memory, FILL, bytes);
        return {};
    }
};

struct QueuedMark {
    Result run() { return {}; }
};

// Gives the pages of a free block back.
struct QueuedRelease {
    void* memory;
    std::size_t bytes;

    Result run() {
        madvise(memory, bytes, MADV_REMOVE);
        return {};
    }
};

std::atomic<uint64_t> seed{0};
std::atomic<int64_t> num_launches{0}, num_copies{0}, num_waits{0}; // of all devices

// A device: its memory, and queues of what is not done yet, each in order.
class Emulated {
  public:
    explicit Emulated(uint8_t number) : device_(number) {}

    void* allocate(std::size_t bytes) {
        Guard guard(lock_);
        if (!memory_.is_here()) return nullptr;
        bytes = size_class(bytes);
        void* block = blocks_.take(bytes, current_queue(device_), false);
        if (!block && (block = memory_.allocate(bytes))) blocks_.add(block, bytes);
        if (!block) block = blocks_.take(bytes, 0, true);
        if (block) push(QueuedFill{memory_.readable(block), bytes}, {&block, 1});
        return block;
    }

    void free(void* block, std::size_t bytes) {
        Guard guard(lock_);
        if (!memory_.is_here()) return;
        if (bytes >= RETURNED_BYTES)
            push(QueuedRelease{memory_.readable(block), size_class(bytes)}, {&block, 1});
        blocks_.release(block);
    }

    bool copy(void* to, const void* from, std::size_t bytes) {
        Guard guard(lock_);
        if (!memory_.is_here()) return false;
        ++num_copies;
        void* both[] = {to, const_cast<void*>(from)};
        uint64_t ticket = push(QueuedMark{}, both, 1);
        run_until(ticket % MAX_QUEUES, ticket / MAX_QUEUES);
        std::memcpy(memory_.readable(to), memory_.readable(from), bytes);
        return true;
    }

    Event launch(const Work& work) {
        Guard guard(lock_);
        ++num_launches;
        return {{}, push(QueuedLaunch(work, memory_), work.buffers, work.written)};
    }

    // A mark behind the work of all queues.
    Event record() {
        Guard guard(lock_);
        Progress all{};
        for (std::size_t queue = 0; queue < MAX_QUEUES; ++queue) all[queue] = queues_[queue].last;
        return {{}, push(QueuedMark{}, {}, 0, all)};
    }

    Result wait(const Event& event) {
        if (event.done()) return event.result;
        Guard guard(lock_);
        num_waits += queues_[event.ticket % MAX_QUEUES].done < event.ticket / MAX_QUEUES;
        run_until(event.ticket % MAX_QUEUES, event.ticket / MAX_QUEUES);
        auto failed = failures_.find(event.ticket);
        if (failed == failures_.end()) return {};
        Result result = failed->second;
        failures_.erase(failed);
        return result;
    }

    const char* failure() const {
        return memory_.is_here() ? nullptr : "the child of a fork has no device";
    }

  private:
    using Task = std::variant<QueuedLaunch, QueuedFill, QueuedRelease, QueuedMark>;

    struct Queue {
        std::deque<std::pair<Task, Progress>> tasks; // each with what must be done before
        uint64_t last = 0, done = 0;                 // numbers: of the latest task, of what ran
    };

    uint64_t push(Task task, std::span<void* const> buffers, uint64_t written = ~uint64_t(0),
                  Progress needed = {}) {
        std::size_t number = current_queue(device_);
        Queue& queue = queues_[number];
        uint64_t ticket = ticket_of(number, ++queue.last);
        for (std::size_t i = 0; i < buffers.size(); ++i)
            blocks_.use(buffers[i], is_written(written, i), number, queue.last, needed);
        needed[number] = 0; // its own queue is in order
        queue.tasks.emplace_back(std::move(task), needed);
        std::size_t kept = MAX_QUEUED;
        if (seed.load(std::memory_order_relaxed)) kept = random() % (MAX_QUEUED / 4);
        for (++queued_; queued_ > kept;) run_oldest(some_queue());
        return ticket;
    }

    // A queue with tasks: the longest one, or with a seed any.
    Queue& some_queue() {
        std::size_t first = seed.load(std::memory_order_relaxed) ? random() : 0;
        Queue* found = &queues_[first % MAX_QUEUES];
        for (std::size_t i = 0; i < MAX_QUEUES; ++i) {
            Queue& other = queues_[(first + i) % MAX_QUEUES];
            if (found->tasks.empty() || (!first && other.tasks.size() > found->tasks.size()))
                found = &other;
        }
        return *found;
    }

    // The next number of Marsaglia's xorshift.
    uint64_t random() {
        if (started_with_ != seed) random_ = started_with_ = seed;
        random_ ^= random_ << 13;
        random_ ^= random_ >> 7;
        return random_ ^= random_ << 17;
    }

    void run_until(std::size_t number, uint64_t last) {
        while (queues_[number].done < last) run_oldest(queues_[number]);
    }

    void run_oldest(Queue& queue) {
        auto [task, needed] = std::move(queue.tasks.front());
        queue.tasks.pop_front();
        --queued_;
        for (std::size_t other = 0; other < MAX_QUEUES; ++other) run_until(other, needed[other]);
        Result result;
        if (memory_.is_here()) // a child has no device
            result = std::visit([](auto& one) { return one.run(); }, task);
        uint64_t ticket = ticket_of(std::size_t(&queue - queues_.data()), ++queue.done);
        if (result.status || result.outcome != Outcome::done) failures_[ticket] = result;
    }

    const uint8_t device_;
    Lock lock_; // protects all below
    Memory memory_;
    DeviceMemory blocks_;
    std::array<Queue, MAX_QUEUES> queues_;
    std::size_t queued_ = 0; // tasks of all queues
    std::unordered_map<uint64_t, Result> failures_;
    uint64_t random_ = 0, started_with_ = 0;
};

template <std::size_t number> std::atomic<bool> is_in_use{false};

template <std::size_t number> Emulated& emulated() {
    static auto* device = new Emulated(number + 1); // outlives every thread
    is_in_use<number> = true;
    return *device;
}

template <std::size_t number> constexpr Device table(std::string_view name) {
    return {
        .name = name,
        .number = number + 1,
        .is_host = false,
        .runs_host_kernels = true,
        .allocate = [](std::size_t bytes) { return emulated<number>().allocate(bytes); },
        .free = [](void* memory,
                   std::size_t bytes) noexcept { emulated<number>().free(memory, bytes); },
        .copy = [](void* to, const void* from, std::size_t bytes,
                   Device::Direction) { return emulated<number>().copy(to, from, bytes); },
        .launch = [](Work& work, HostLauncher&) { return emulated<number>().launch(work); },
        .record = [] { return is_in_use<number> ? emulated<number>().record() : Event{}; },
        .wait = [](const Event& event) { return emulated<number>().wait(event); },
        .failure = [] { return emulated<number>().failure(); },
    };
}

const Device FIRST = table<0>("emulated:0"), SECOND = table<1>("emulated:1");
[[maybe_unused]] const bool registered = register_device(FIRST) && register_device(SECOND);

} // namespace

void seed_emulated_queues(uint64_t number) { seed = number; }

EmulatedTraffic emulated_traffic() { return {num_launches, num_copies, num_waits}; }

} // namespace tenfold
