#include "threads/emulated_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <new>
#include <unordered_map>
#include <variant>
#include <vector>

#include "memory/allocation_pool.h"
#include "threads/device.h"
#include "threads/fork_safe_lock.h"
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

    // Null if there is no more.
    void* allocate(std::size_t bytes) {
        bytes = size_class(bytes);
        if (!shift_ || !is_here()) return nullptr;
        std::vector<void*>& blocks = free_[bytes];
        if (!blocks.empty()) {
            void* block = blocks.back();
            blocks.pop_back();
            return block;
        }
        if (bytes > MEMORY_BYTES - used_) return nullptr;
        void* block = begin_ + used_;
        used_ += bytes;
        return block;
    }

    void free(void* block, std::size_t bytes) {
        bytes = size_class(bytes);
        if (!is_here()) return;
        free_[bytes].push_back(block);
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
    std::map<std::size_t, std::vector<void*>> free_; // blocks by their size
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

// A device: its memory, and the queue of what is not done yet, in order.
class Emulated {
  public:
    void* allocate(std::size_t bytes) {
        Guard guard(lock_);
        void* block = memory_.allocate(bytes);
        if (block) push(QueuedFill{memory_.readable(block), bytes});
        return block;
    }

    void free(void* block, std::size_t bytes) {
        Guard guard(lock_);
        if (bytes >= RETURNED_BYTES)
            push(QueuedRelease{memory_.readable(block), size_class(bytes)});
        memory_.free(block, bytes); // queued work may use it: later launches come after
    }

    void copy(void* to, const void* from, std::size_t bytes) {
        Guard guard(lock_);
        ++num_copies;
        run_all();
        std::memcpy(memory_.readable(to), memory_.readable(from), bytes);
    }

    Event launch(const Work& work) {
        Guard guard(lock_);
        ++num_launches;
        push(QueuedLaunch(work, memory_));
        return {{}, last_};
    }

    Event record() {
        Guard guard(lock_);
        if (queue_.empty()) return {};
        push(QueuedMark{});
        return {{}, last_};
    }

    Result wait(const Event& event) {
        if (event.done()) return event.result;
        Guard guard(lock_);
        num_waits += done_ < event.ticket;
        while (done_ < event.ticket) run_oldest();
        auto failed = failures_.find(event.ticket);
        if (failed == failures_.end()) return {};
        Result result = failed->second;
        failures_.erase(failed);
        return result;
    }

  private:
    using Task = std::variant<QueuedLaunch, QueuedFill, QueuedRelease, QueuedMark>;

    void push(Task task) {
        queue_.push_back(std::move(task));
        ++last_;
        std::size_t kept = MAX_QUEUED;
        if (seed.load(std::memory_order_relaxed)) kept = random() % (MAX_QUEUED / 4);
        while (queue_.size() > kept) run_oldest();
    }

    // The next number of Marsaglia's xorshift.
    uint64_t random() {
        if (started_with_ != seed) random_ = started_with_ = seed;
        random_ ^= random_ << 13;
        random_ ^= random_ >> 7;
        return random_ ^= random_ << 17;
    }

    void run_oldest() {
        Result result;
        if (memory_.is_here()) // a child has no device
            result = std::visit([](auto& task) { return task.run(); }, queue_.front());
        queue_.pop_front();
        ++done_;
        if (result.status || result.outcome != Outcome::done) failures_[done_] = result;
    }

    void run_all() {
        while (!queue_.empty()) run_oldest();
    }

    Lock lock_;
    Memory memory_;
    std::deque<Task> queue_;
    uint64_t last_ = 0, done_ = 0; // tickets: of what was queued last, and of what ran last
    std::unordered_map<uint64_t, Result> failures_;
    uint64_t random_ = 0, started_with_ = 0;
};

template <std::size_t number> std::atomic<bool> is_in_use{false};

template <std::size_t number> Emulated& emulated() {
    static auto* device = new Emulated; // outlives every thread
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
                   Device::Direction) { emulated<number>().copy(to, from, bytes); },
        .launch = [](Work& work, HostLauncher&) { return emulated<number>().launch(work); },
        .record = [] { return is_in_use<number> ? emulated<number>().record() : Event{}; },
        .wait = [](const Event& event) { return emulated<number>().wait(event); },
    };
}

const Device FIRST = table<0>("emulated:0"), SECOND = table<1>("emulated:1");
[[maybe_unused]] const bool registered = register_device(FIRST) && register_device(SECOND);

} // namespace

void seed_emulated_queues(uint64_t number) { seed = number; }

EmulatedTraffic emulated_traffic() { return {num_launches, num_copies, num_waits}; }

} // namespace tenfold
