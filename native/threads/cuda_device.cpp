#include "threads/cuda_device.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>
#include <utility>

#include "memory/allocation_pool.h"
#include "threads/thread_blocks.h"

namespace tenfold::cuda {
namespace {

constexpr std::size_t STAGE_BYTES = std::size_t(1) << 22;
constexpr uint64_t ALL_QUEUES = (uint64_t(1) << MAX_QUEUES) - 1;
constexpr uint64_t ALL_TICKETS = ~uint64_t(0); // of an Event of all queues
constexpr int FILL = 0xFF;                     // a status without failures has all bits
PoolMemory pool_memory(std::size_t bytes) {
    return {static_cast<char*>(pool_allocate(bytes)), PoolFree{bytes}};
}

constexpr Result FAILED{Outcome::no_memory}; // `failure` tells it from a lack of memory

Address address_of(const void* memory) { return reinterpret_cast<Address>(memory); }

} // namespace

CudaDevice::CudaDevice(const Driver& driver, int number, uint8_t device)
    : driver_(driver), device_(device) {
    const std::size_t bytes = status_tickets_.size() * sizeof(uint64_t);
    void* copies = nullptr;
    check(driver_.device(&ordinal_, number), "cuDeviceGet") &&
        check(driver_.retain_context(&context_, ordinal_), "cuDevicePrimaryCtxRetain") &&
        is_usable() && check(driver_.allocate(&status_words_, bytes), "cuMemAlloc") &&
        check(driver_.allocate_host(&copies, bytes, 0), "cuMemHostAlloc");
    status_copies_ = static_cast<uint64_t*>(copies);
}

CudaDevice::~CudaDevice() {
    if (!context_) return;
    driver_.use_context(context_);
    for (const Queue& queue : queues_)
        if (queue.stream) driver_.synchronize_stream(queue.stream);
    std::set<Handle> modules;
    for (const auto& [function, kernel] : kernels_) modules.insert(kernel.module);
    for (Handle module : modules) driver_.unload_module(module);
    for (const auto& [begin, block] : memory_.blocks())
        if (!block.borrowers) driver_.free(address_of(begin));
    for (const Stage& stage : stages_) {
        if (stage.memory) driver_.free_host(stage.memory);
        if (stage.event) driver_.destroy_event(stage.event);
    }
    if (status_words_) driver_.free(status_words_);
    if (status_copies_) driver_.free_host(status_copies_);
    for (const Queue& queue : queues_) {
        if (queue.event) driver_.destroy_event(queue.event);
        if (queue.stream) driver_.destroy_stream(queue.stream);
    }
    driver_.release_context(ordinal_);
}

bool CudaDevice::check(int error, const char* symbol) {
    if (error != SUCCESS && failure_.empty()) failure_ = driver_.text_of(symbol, error);
    return error == SUCCESS;
}

bool CudaDevice::is_usable() {
    return getpid() == process_ && failure_.empty() &&
           check(driver_.use_context(context_), "cuCtxSetCurrent");
}

const char* CudaDevice::failure() {
    Guard guard(lock_);
    if (getpid() != process_) return "the child of a fork has no device";
    return failure_.empty() ? nullptr : failure_.c_str();
}

void* CudaDevice::allocate(std::size_t bytes) {
    Guard guard(lock_);
    if (!is_usable()) return nullptr;
    bytes = size_class(bytes);
    if (void* block = memory_.take(bytes, current_queue(device_), false)) return block;
    Address memory = 0;
    int error = driver_.allocate(&memory, bytes);
    if (error == OUT_OF_MEMORY) {
        if (void* block = memory_.take(bytes, 0, true)) return block;
        free_unused();
        error = driver_.allocate(&memory, bytes);
    }
    if (error == OUT_OF_MEMORY || !check(error, "cuMemAlloc")) return nullptr;
    auto* block = reinterpret_cast<void*>(memory);
    memory_.add(block, bytes);
    return block;
}

void CudaDevice::free(void* memory) noexcept {
    Guard guard(lock_);
    if (getpid() != process_) return;
    if (is_usable()) settle(memory);
    memory_.release(memory);
}

std::size_t CudaDevice::free_unused() {
    std::size_t bytes = 0;
    for (const Queue& queue : queues_)
        if (queue.stream) check(driver_.synchronize_stream(queue.stream), "cuStreamSynchronize");
    for (auto [block, size] : memory_.forget_free()) {
        check(driver_.free(address_of(block)), "cuMemFree");
        bytes += size;
    }
    return bytes;
}

std::size_t CudaDevice::trim() {
    Guard guard(lock_);
    return is_usable() ? free_unused() : 0;
}

bool CudaDevice::open(Queue& queue) {
    return (queue.stream ||
            check(driver_.create_stream(&queue.stream, NON_BLOCKING_STREAM), "cuStreamCreate")) &&
           (queue.event ||
            check(driver_.create_event(&queue.event, UNTIMED_EVENT), "cuEventCreate"));
}

CudaDevice::Queue* CudaDevice::begin_work() {
    if (!is_usable()) return nullptr;
    Queue& queue = queues_[current_queue(device_)];
    if (!open(queue)) return nullptr;
    ++queue.last;
    return &queue;
}

Handle CudaDevice::stream() {
    Guard guard(lock_);
    Queue& queue = queues_[current_queue(device_)];
    return is_usable() && open(queue) ? queue.stream : nullptr;
}

bool CudaDevice::lend(const void* memory, Handle stream) {
    Guard guard(lock_);
    if (!is_usable()) return false;
    auto found = memory_.find(memory);
    if (found == memory_.blocks().end()) return true; // no bytes
    found->second.lent = true;
    for (std::size_t i = 0; stream && i < MAX_QUEUES; ++i) {
        Queue& queue = queues_[i];
        if (!found->second.written[i]) continue;
        if (!check(driver_.record_event(queue.event, queue.stream), "cuEventRecord") ||
            !check(driver_.wait_for_event(stream, queue.event, 0), "cuStreamWaitEvent"))
            return false;
    }
    return true;
}

bool CudaDevice::settle(const void* memory) {
    auto found = memory_.find(memory);
    if (found == memory_.blocks().end() || !std::exchange(found->second.lent, false)) return true;
    return check(driver_.synchronize_context(), "cuCtxSynchronize");
}

bool CudaDevice::borrow(void* memory, std::size_t bytes) {
    Guard guard(lock_);
    Queue* queue = begin_work();
    if (!queue) return false;
    auto* begin = static_cast<char*>(memory);
    auto found = memory_.find(memory);
    if (found == memory_.blocks().end()) {
        auto next = memory_.blocks().lower_bound(begin);
        if (next != memory_.blocks().end() && next->first < begin + bytes) return false;
        memory_.add(memory, bytes);
        found = memory_.find(memory);
        found->second.borrowers = 1;
    } else {
        if (begin + bytes > found->first + found->second.bytes) return false;
        found->second.borrowers += found->second.borrowers > 0; // else it is our own
    }
    found->second.written[index_of(*queue)] = queue->last;
    return true;
}

void CudaDevice::give_back(void* memory) noexcept {
    uint64_t users = 0;
    {
        Guard guard(lock_);
        auto found = memory_.find(memory);
        if (getpid() != process_ || found == memory_.blocks().end() || !found->second.borrowers)
            return;
        for (std::size_t i = 0; i < MAX_QUEUES; ++i)
            if (found->second.written[i] || found->second.read[i]) users |= uint64_t(1) << i;
        if (!--found->second.borrowers) memory_.blocks().erase(found);
    }
    synchronize(users);
}

// An event is recorded only where another queue waits for it, behind all that is queued by then.
bool CudaDevice::order(Queue& queue, const Progress& needed) {
    for (std::size_t i = 0; i < MAX_QUEUES; ++i) {
        Queue& other = queues_[i];
        if (&other == &queue || needed[i] <= queue.seen[i]) continue;
        if (!check(driver_.record_event(other.event, other.stream), "cuEventRecord") ||
            !check(driver_.wait_for_event(queue.stream, other.event, 0), "cuStreamWaitEvent"))
            return false;
        queue.seen[i] = other.last;
    }
    return true;
}

bool CudaDevice::synchronize(uint64_t queues) {
    for (std::size_t i = 0; i < MAX_QUEUES; ++i) {
        Handle stream = nullptr;
        {
            Guard guard(lock_);
            if (!is_usable()) return false;
            if (queues >> i & 1) stream = queues_[i].stream;
        }
        int error = stream ? driver_.synchronize_stream(stream) : SUCCESS;
        Guard guard(lock_);
        if (!check(error, "cuStreamSynchronize")) return false;
    }
    return true;
}

bool CudaDevice::copy(void* to, const void* from, std::size_t bytes, Device::Direction direction) {
    uint64_t writers = 0;
    {
        Guard guard(lock_);
        if (!is_usable()) return false;
        auto block = memory_.find(from);
        if (direction == Device::to_host && block != memory_.blocks().end())
            for (std::size_t i = 0; i < MAX_QUEUES; ++i)
                if (block->second.written[i]) writers |= uint64_t(1) << i;
    }
    // A long wait is without the locks, so that others can queue work meanwhile.
    if (!synchronize(writers)) return false;
    std::unique_lock stages(stages_lock_, std::defer_lock);
    if (direction != Device::within) stages.lock();
    Guard guard(lock_);
    Queue* queue = begin_work();
    if (!queue) return false;
    Progress needed{};
    if (!settle(to)) return false;
    memory_.use(from, false, index_of(*queue), queue->last, needed);
    memory_.use(to, true, index_of(*queue), queue->last, needed);
    if (!order(*queue, needed)) return false;
    if (direction == Device::within)
        return check(driver_.copy_within(address_of(to), address_of(from), bytes, queue->stream),
                     "cuMemcpyDtoDAsync");
    return copy_by_stages(static_cast<char*>(to), static_cast<const char*>(from), bytes,
                          direction == Device::to_host, queue->stream);
}

// Several stages are on their way while the host copies another.
bool CudaDevice::copy_by_stages(char* to, const char* from, std::size_t bytes, bool to_host,
                                Handle stream) {
    const std::size_t count = (bytes + STAGE_BYTES - 1) / STAGE_BYTES;
    auto size = [&](std::size_t i) { return std::min(STAGE_BYTES, bytes - i * STAGE_BYTES); };
    auto is_free = [&](Stage& stage) {
        if (!stage.memory &&
            !check(driver_.allocate_host(&stage.memory, STAGE_BYTES, 0), "cuMemHostAlloc"))
            return false;
        if (!stage.event)
            return check(driver_.create_event(&stage.event, UNTIMED_EVENT), "cuEventCreate");
        return check(driver_.synchronize_event(stage.event), "cuEventSynchronize");
    };
    for (std::size_t begun = 0, done = 0; done < count; ++done) {
        for (; begun < count && begun < done + stages_.size(); ++begun) {
            Stage& stage = stages_[begun % stages_.size()];
            if (!is_free(stage)) return false;
            std::size_t at = begun * STAGE_BYTES;
            int error = SUCCESS;
            if (to_host) {
                error =
                    driver_.copy_to_host(stage.memory, address_of(from + at), size(begun), stream);
            } else {
                std::memcpy(stage.memory, from + at, size(begun));
                error =
                    driver_.copy_to_device(address_of(to + at), stage.memory, size(begun), stream);
            }
            if (!check(error, to_host ? "cuMemcpyDtoHAsync" : "cuMemcpyHtoDAsync") ||
                !check(driver_.record_event(stage.event, stream), "cuEventRecord"))
                return false;
        }
        if (!to_host) continue;
        Stage& stage = stages_[done % stages_.size()];
        if (!check(driver_.synchronize_event(stage.event), "cuEventSynchronize")) return false;
        std::memcpy(to + done * STAGE_BYTES, stage.memory, size(done));
    }
    return true;
}

Event CudaDevice::launch(Work& work, HostLauncher& host) {
    if (work.units <= 0) return {};
    {
        Guard guard(lock_);
        if (!is_usable()) return {FAILED};
        auto kernel = kernels_.find(work.kernel.entry());
        if (kernel != kernels_.end()) {
            Queue* queue = begin_work();
            return queue ? enqueue(work, *queue, kernel->second.may_fail) : Event{FAILED};
        }
    }
    return {run_on_host(work, host)};
}

// The arguments are one table of words: buffers, sizes, scalars, the address of the status.
Event CudaDevice::enqueue(const Work& work, Queue& queue, bool may_fail) {
    const std::size_t slot = next_status_ % status_tickets_.size();
    const Address status = status_words_ + slot * sizeof(uint64_t);
    const uint64_t ticket = ticket_of(index_of(queue), queue.last);
    Progress needed{};
    words_.clear();
    for (std::size_t i = 0; i < work.buffers.size(); ++i) {
        words_.push_back(address_of(work.buffers[i]));
        if (is_written(work.written, i) && !settle(work.buffers[i])) return {FAILED};
        memory_.use(work.buffers[i], is_written(work.written, i), index_of(queue), queue.last,
                    needed);
    }
    words_.insert(words_.end(), work.sizes.begin(), work.sizes.end());
    words_.insert(words_.end(), work.scalars.begin(), work.scalars.end());
    words_.push_back(status);
    if (!order(queue, needed)) return {FAILED};
    if (may_fail) {
        if (status_tickets_[slot]) read_status(slot);
        if (!check(driver_.fill(status, FILL, sizeof(uint64_t), queue.stream), "cuMemsetD8Async"))
            return {FAILED};
    }
    std::size_t bytes = words_.size() * sizeof(uint64_t);
    void* extra[] = {reinterpret_cast<void*>(EXTRA_ARGUMENTS), words_.data(),
                     reinterpret_cast<void*>(EXTRA_BYTES), &bytes,
                     reinterpret_cast<void*>(EXTRA_END)};
    auto grid = unsigned((work.units + BLOCK_THREADS - 1) / BLOCK_THREADS);
    int error = driver_.launch(static_cast<Handle>(work.kernel.entry()), grid, 1, 1,
                               unsigned(BLOCK_THREADS), 1, 1, 0, queue.stream, nullptr, extra);
    if (!check(error, "cuLaunchKernel")) return {FAILED};
    if (may_fail) {
        error = driver_.copy_to_host(&status_copies_[slot], status, sizeof(uint64_t), queue.stream);
        if (!check(error, "cuMemcpyDtoHAsync")) return {FAILED};
        status_tickets_[slot] = ticket;
        ++next_status_;
    }
    return {{}, ticket};
}

// Notes the failure of the launch that had the status, if it has one.
void CudaDevice::read_status(std::size_t slot) {
    uint64_t ticket = std::exchange(status_tickets_[slot], 0);
    Handle stream = queues_[ticket % MAX_QUEUES].stream;
    if (!check(driver_.synchronize_stream(stream), "cuStreamSynchronize")) return;
    if (status_copies_[slot] != ~uint64_t(0)) failed_[ticket] = int64_t(status_copies_[slot]);
}

// A kernel of the host gets copies of the blocks that it uses.
Result CudaDevice::run_on_host(Work& work, HostLauncher& host) {
    std::vector<HostCopy> blocks;
    std::vector<void*> buffers(work.buffers.begin(), work.buffers.end());
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        Guard guard(lock_);
        auto found = memory_.find(buffers[i]);
        if (found == memory_.blocks().end()) continue;
        auto& [begin, block] = *found;
        auto known = std::ranges::find(blocks, begin, &HostCopy::begin);
        if (known == blocks.end()) {
            blocks.push_back({begin, block.bytes, pool_memory(block.bytes), {}, block.written});
            known = std::prev(blocks.end());
        }
        if (is_written(work.written, i) && !known->before) known->before = pool_memory(block.bytes);
        if (!known->values || (is_written(work.written, i) && !known->before))
            return {Outcome::no_memory};
        buffers[i] = known->values.get() + (static_cast<char*>(buffers[i]) - begin);
    }
    for (HostCopy& block : blocks) {
        if (!copy(block.values.get(), block.begin, block.bytes, Device::to_host)) return FAILED;
        if (block.before) std::memcpy(block.before.get(), block.values.get(), block.bytes);
    }
    Work on_host = work;
    on_host.buffers = buffers;
    Result result = host.run_on_host(on_host);
    for (const HostCopy& block : blocks)
        if (block.before && !write_back(block)) return FAILED;
    return result;
}

// The bytes that a kernel has changed. Another thread may have written beside them meanwhile: then
// they are put among what is there by now, and nothing is queued in between.
bool CudaDevice::write_back(const HostCopy& block) {
    const char *values = block.values.get(), *before = block.before.get();
    std::size_t first = 0, last = block.bytes;
    while (first < last && values[first] == before[first]) ++first;
    while (first < last && values[last - 1] == before[last - 1]) --last;
    if (first == last) return true;
    std::lock_guard stages(stages_lock_);
    Guard guard(lock_);
    const bool is_alone = memory_.blocks().at(block.begin).written == block.version;
    Queue* queue = begin_work();
    if (!queue) return false;
    if (!settle(block.begin)) return false;
    Progress needed{};
    memory_.use(block.begin, true, index_of(*queue), queue->last, needed);
    if (!order(*queue, needed)) return false;
    std::array<char, 4096> merged;
    const std::size_t step = is_alone ? last - first : merged.size();
    for (std::size_t at = first; at < last; at += step) {
        const std::size_t bytes = std::min(step, last - at);
        if (!is_alone) {
            if (!copy_by_stages(merged.data(), block.begin + at, bytes, true, queue->stream))
                return false;
            for (std::size_t i = 0; i < bytes; ++i)
                if (values[at + i] != before[at + i]) merged[i] = values[at + i];
        }
        const char* from = is_alone ? values + at : merged.data();
        if (!copy_by_stages(block.begin + at, from, bytes, false, queue->stream)) return false;
    }
    return true;
}

Event CudaDevice::record() { return {{}, ALL_TICKETS}; }

Result CudaDevice::wait(const Event& event) {
    if (event.done()) return event.result;
    bool all = event.ticket == ALL_TICKETS;
    if (!synchronize(all ? ALL_QUEUES : uint64_t(1) << event.ticket % MAX_QUEUES)) return FAILED;
    Guard guard(lock_);
    auto slot = std::ranges::find(status_tickets_, event.ticket);
    if (slot != status_tickets_.end()) read_status(std::size_t(slot - status_tickets_.begin()));
    auto failed = failed_.find(event.ticket);
    if (failed == failed_.end()) return {};
    return {Outcome::done, failed_.extract(failed).mapped()};
}

std::string CudaDevice::name() const {
    std::array<char, 256> text{};
    driver_.device_name(text.data(), int(text.size()) - 1, ordinal_);
    return text.data();
}

std::string CudaDevice::processor() const {
    int major = 0, minor = 0;
    driver_.attribute(&major, MAJOR, ordinal_);
    driver_.attribute(&minor, MINOR, ordinal_);
    return "sm_" + std::to_string(major) + std::to_string(minor);
}

Handle CudaDevice::load(const std::string& ptx, std::string& why) {
    {
        Guard guard(lock_);
        if (!is_usable()) return why = failure_, nullptr;
    }
    std::array<char, 4096> log{};
    int options[] = {ERROR_LOG, ERROR_LOG_BYTES};
    void* values[] = {log.data(), reinterpret_cast<void*>(log.size() - 1)};
    Handle module = nullptr;
    int error = driver_.load_module(&module, ptx.c_str(), 2, options, values);
    if (error) why = driver_.text_of("cuModuleLoadDataEx", error) + " " + log.data();
    return error ? nullptr : module;
}

KernelHandle CudaDevice::kernel_of(Handle module, const char* name, bool may_fail) {
    Guard guard(lock_);
    Handle function = nullptr;
    if (!is_usable() ||
        !check(driver_.find_function(&function, module, name), "cuModuleGetFunction"))
        return {};
    kernels_[function] = {module, may_fail};
    return KernelHandle(function);
}

void CudaDevice::unload(Handle module) noexcept {
    Guard guard(lock_);
    std::erase_if(kernels_, [&](const auto& entry) { return entry.second.module == module; });
    if (getpid() != process_) return;
    driver_.use_context(context_);
    driver_.unload_module(module);
}

namespace {

constexpr std::array<std::string_view, MAX_CUDA_DEVICES> NAMES{
    "cuda:0", "cuda:1", "cuda:2", "cuda:3", "cuda:4", "cuda:5", "cuda:6", "cuda:7"};
constexpr uint8_t FIRST_NUMBER = MAX_DEVICES - MAX_CUDA_DEVICES;

constinit std::array<std::atomic<CudaDevice*>, MAX_CUDA_DEVICES> devices{};

template <std::size_t number> CudaDevice& device() { return *devices[number]; }

// Python declares a device once it is made; so its functions find it, but for record.
template <std::size_t number>
const Device TABLE{
    .name = NAMES[number],
    .number = uint8_t(FIRST_NUMBER + number),
    .is_host = false,
    .runs_host_kernels = false,
    .allocate = [](std::size_t bytes) { return device<number>().allocate(bytes); },
    .free = [](void* memory, std::size_t) noexcept { device<number>().free(memory); },
    .copy = [](void* to, const void* from, std::size_t bytes,
               Device::Direction way) { return device<number>().copy(to, from, bytes, way); },
    .launch = [](Work& work, HostLauncher& host) { return device<number>().launch(work, host); },
    .record = [] { return devices[number] ? device<number>().record() : Event{}; },
    .wait =
        [](const Event& event) {
            return event.done() ? event.result : device<number>().wait(event);
        },
    .give_back = [](void* memory) noexcept { device<number>().give_back(memory); },
    .failure = [] { return device<number>().failure(); },
    .trim = [] { return devices[number] ? device<number>().trim() : 0; },
};

template <std::size_t... number> bool register_all(std::index_sequence<number...>) {
    return (register_device(TABLE<number>) && ...);
}

[[maybe_unused]] const bool registered = register_all(std::make_index_sequence<MAX_CUDA_DEVICES>());

} // namespace

CudaDevice* cuda_device_of(const Device& table) {
    return table.number < FIRST_NUMBER ? nullptr : devices[table.number - FIRST_NUMBER].load();
}

CudaDevice* cuda_device(std::size_t number, std::string& why) {
    const Driver* driver = Driver::open(why);
    if (!driver || number >= std::min(std::size_t(driver->num_devices), MAX_CUDA_DEVICES))
        return nullptr;
    static auto* lock = new Lock;
    Guard guard(*lock);
    if (!devices[number])
        devices[number] = new CudaDevice(*driver, int(number), uint8_t(FIRST_NUMBER + number));
    return devices[number]; // it outlives every thread
}

} // namespace tenfold::cuda
