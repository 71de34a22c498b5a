// CUDA device: a device of NVIDIA. Its kernels are PTX, which the driver compiles; a kernel of the
// host runs there, on a copy of the memory. Queues are streams of the driver.
#pragma once
#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <unistd.h>
#include <unordered_map>
#include <vector>

#include "memory/allocation_pool.h"
#include "threads/cuda_driver.h"
#include "threads/device.h"
#include "threads/fork_safe_lock.h"
#include "threads/stream_order.h"

namespace tenfold::cuda {

constexpr std::size_t MAX_CUDA_DEVICES = 8;
using PoolMemory = std::unique_ptr<char, PoolFree>;

// One of the devices. A call of the driver that fails is the end of it, but for a lack of memory:
// all later ones fail likewise, and `failure` says why.
class CudaDevice {
  public:
    // `number` is the driver's, `device` that of the table of Devices.
    CudaDevice(const Driver& driver, int number, uint8_t device);
    ~CudaDevice(); // waits for all that is queued
    CudaDevice(const CudaDevice&) = delete;
    CudaDevice& operator=(const CudaDevice&) = delete;

    void* allocate(std::size_t bytes);
    void free(void* memory) noexcept;
    bool copy(void* to, const void* from, std::size_t bytes, Device::Direction direction);
    Event launch(Work& work, HostLauncher& host);
    Event record();
    Result wait(const Event& event);
    const char* failure();
    std::size_t trim(); // frees the unused blocks; returns their bytes

    // Memory of other libraries, which have streams of their own.
    Handle stream(); // of the thread's queue; null: the device has failed
    // Whoever shares memory reads it by `stream` after what writes it; null: without an order.
    bool lend(const void* memory, Handle stream);
    // Uses memory whose owner has ordered the thread's queue behind what writes it. False: it
    // overlaps other memory, or the device has failed.
    bool borrow(void* memory, std::size_t bytes);
    void give_back(void* memory) noexcept; // waits until no queue reads it

    std::string name() const;
    std::string processor() const; // as sm_90
    // Loads the text of a module; null: `why` says why not. Its kernels are those of these names.
    Handle load(const std::string& ptx, std::string& why);
    void unload(Handle module) noexcept;
    // A kernel; `may_fail`: its threads report the elements that they cannot compute.
    KernelHandle kernel_of(Handle module, const char* name, bool may_fail);

  private:
    struct Queue {
        Handle stream = nullptr, event = nullptr; // the event marks what another queue waits for
        uint64_t last = 0;                        // the number of the latest work
        Progress seen{};                          // by queue: what it waits for already
    };
    // Of a block, for a kernel of the host.
    struct HostCopy {
        char* begin;
        std::size_t bytes;
        PoolMemory values, before; // what the kernel uses; what was there, if it may write
        Progress version;          // the work that had written it
    };
    struct Kernel {
        Handle module;
        bool may_fail;
    };
    // Pinned memory through which copies go; its event: the latest copy is done.
    struct Stage {
        void* memory = nullptr;
        Handle event = nullptr;
    };

    bool check(int error, const char* symbol); // false: notes the failure
    bool is_usable();                          // and makes the context that of the thread
    Queue* begin_work();                       // on the queue of the thread; null: it has failed
    std::size_t index_of(const Queue& queue) const { return std::size_t(&queue - queues_.data()); }
    bool open(Queue& queue); // makes its stream and event
    bool order(Queue& queue, const Progress& needed);
    bool settle(const void* memory); // others may have read it: waits, before it is written
    bool write_back(const HostCopy& block);
    // Without the lock: until the queues of these bits have done what is queued now.
    bool synchronize(uint64_t queues);
    bool copy_by_stages(char* to, const char* from, std::size_t bytes, bool to_host, Handle stream);
    Event enqueue(const Work& work, Queue& queue, bool may_fail);
    Result run_on_host(Work& work, HostLauncher& host);
    void read_status(std::size_t slot);
    std::size_t free_unused();

    const Driver& driver_;
    const uint8_t device_;
    const pid_t process_ = getpid();
    int ordinal_ = 0;
    Handle context_ = nullptr;
    Lock lock_; // protects all below but the stages
    std::string failure_;
    DeviceMemory memory_;
    std::array<Queue, MAX_QUEUES> queues_;
    std::unordered_map<void*, Kernel> kernels_;
    std::vector<uint64_t> words_; // the arguments of a launch
    // Statuses: a launch that may fail has a word, which a copy to pinned memory follows.
    std::array<uint64_t, 256> status_tickets_{}; // of the launch whose word it is; 0: of none
    std::size_t next_status_ = 0;
    Address status_words_ = 0;
    uint64_t* status_copies_ = nullptr;
    std::unordered_map<uint64_t, int64_t> failed_; // statuses by ticket
    std::mutex stages_lock_; // protects the stages, before lock_; no child of a fork comes so far
    std::array<Stage, 4> stages_;
};

// The device of a number, made when it is first asked for; null: `why` says what is missing.
CudaDevice* cuda_device(std::size_t number, std::string& why);
// The device of a table; null for one of another kind.
CudaDevice* cuda_device_of(const Device& table);

} // namespace tenfold::cuda
