#include "fake_cuda.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "threads/cuda_driver.h"

using namespace tenfold::cuda;

#define EXPORT extern "C" __attribute__((visibility("default"), used))

namespace {

constexpr int INVALID_VALUE = 1, INVALID_PTX = 218, NOT_FOUND = 500;
constexpr Address TAG = 0x2a5dULL << 48, TAG_BITS = 0xffffULL << 48; // no address of the host
constexpr int NUM_DEVICES = 2, BLOCK = 256;

struct Kernel {
    int64_t (*function)(void**, const int64_t*, const double*, void*, int64_t, int64_t);
    std::size_t buffers, sizes, scalars, shared_bytes;
};

struct Queue {
    std::deque<std::function<void()>> work;
    uint64_t last = 0, done = 0;
};

struct Mark {
    Queue* queue = nullptr;
    uint64_t number = 0;
};

std::mutex mutex; // protects all below
std::map<std::string, std::map<std::string, Kernel>> texts;
std::map<void*, std::string> modules; // with their texts
std::map<void*, const Kernel*> functions;
std::map<void*, Queue> queues;
std::map<void*, Mark> events;
std::map<char*, std::size_t> memory, pinned; // blocks
std::set<void*> contexts;
std::map<int, int> retained;
std::string misuse;
long calls = 0, fails_at = 0, next_handle = 0;
int fails_with = 0;
uint64_t seed = 0;
std::size_t limit = std::size_t(1) << 34, used = 0;
thread_local void* current = nullptr;

bool require(bool holds, const char* what) {
    if (!holds && misuse.empty()) misuse = what;
    return holds;
}

char* host(Address address) { return reinterpret_cast<char*>(address & ~TAG_BITS); }

bool is_within(const std::map<char*, std::size_t>& blocks, const void* begin, std::size_t bytes) {
    auto* at = static_cast<char*>(const_cast<void*>(begin));
    auto next = blocks.upper_bound(at);
    if (next == blocks.begin()) return false;
    --next;
    return at + bytes <= next->first + next->second;
}

bool is_device(Address address, std::size_t bytes) {
    return (address & TAG_BITS) == TAG && is_within(memory, host(address), bytes);
}

void run_oldest(Queue& queue) {
    auto work = std::move(queue.work.front());
    queue.work.pop_front();
    work();
    ++queue.done;
}

void run_until(Queue& queue, uint64_t number) {
    while (queue.done < number) run_oldest(queue);
}

void run_some() {
    for (auto& [handle, queue] : queues) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        for (auto left = seed >> 33 & 3; left && !queue.work.empty(); --left) run_oldest(queue);
    }
}

// Begins a call: the error with which it fails, or 0.
int begin(bool needs_context = true) {
    if (seed) run_some();
    require(!needs_context || contexts.contains(current), "no context of the thread");
    return ++calls == fails_at ? fails_with : SUCCESS;
}

#define BEGIN(...)                                                                                 \
    std::lock_guard guard(mutex);                                                                  \
    if (int error = begin(__VA_ARGS__)) return error

// A call that gives something back does so even if it fails, with the error of earlier work.
#define BEGIN_RELEASE(...)                                                                         \
    std::lock_guard guard(mutex);                                                                  \
    const int result = begin(__VA_ARGS__)

template <class T> Handle made(std::map<void*, T>& handles, T value) {
    auto* handle = reinterpret_cast<void*>(uintptr_t(++next_handle) << 4 | 0xf000000000000000);
    handles.emplace(handle, std::move(value));
    return static_cast<Handle>(handle);
}

// A stream that was made, or one of the two default ones, of which another library makes use.
auto queue_of(Handle stream) {
    if (reinterpret_cast<uintptr_t>(stream) - 1 < 2) queues.try_emplace(stream);
    return queues.find(stream);
}

int enqueue(Handle stream, std::function<void()> work) {
    auto found = queue_of(stream);
    if (!require(found != queues.end(), "work for no stream")) return INVALID_VALUE;
    found->second.work.push_back(std::move(work));
    ++found->second.last;
    return SUCCESS;
}

int enqueue_copy(char* to, const char* from, std::size_t bytes, bool are_there, Handle stream) {
    if (!require(are_there, "a copy of memory that is not there")) return INVALID_VALUE;
    return enqueue(stream, [=] {
        bool there = is_within(memory, to, bytes) || is_within(pinned, to, bytes);
        there &= is_within(memory, from, bytes) || is_within(pinned, from, bytes);
        if (require(there, "a copy of memory that is gone")) std::memmove(to, from, bytes);
    });
}

void run(const Kernel& kernel, std::vector<uint64_t> words, int64_t threads) {
    std::vector<void*> buffers;
    for (std::size_t i = 0; i < kernel.buffers; ++i) {
        bool is_ours = (words[i] & TAG_BITS) == TAG;
        if (is_ours && !require(is_device(words[i], 0), "a launch on memory that is gone")) return;
        buffers.push_back(host(words[i]));
    }
    std::vector<char> shared(kernel.shared_bytes + 64);
    auto* sizes = reinterpret_cast<int64_t*>(words.data() + kernel.buffers);
    auto* scalars = reinterpret_cast<double*>(words.data() + kernel.buffers + kernel.sizes);
    auto aligned = (reinterpret_cast<uintptr_t>(shared.data()) + 63) & ~uintptr_t(63);
    auto status = uint64_t(kernel.function(buffers.data(), sizes, scalars,
                                           reinterpret_cast<void*>(aligned), 0, threads));
    auto* word = reinterpret_cast<uint64_t*>(host(words.back()));
    if (status && require(is_device(words.back(), 8), "no status") && status < *word)
        *word = status;
}

} // namespace

EXPORT void fake_cuda_define(const char* ptx, const char* name, void* kernel, std::size_t buffers,
                             std::size_t sizes, std::size_t scalars, std::size_t shared_bytes) {
    std::lock_guard guard(mutex);
    texts[ptx][name] = {reinterpret_cast<decltype(Kernel::function)>(kernel), buffers, sizes,
                        scalars, shared_bytes};
}
EXPORT void fake_cuda_fail(long number, int error) {
    std::lock_guard guard(mutex);
    fails_at = calls + number;
    fails_with = error;
}
EXPORT void fake_cuda_seed(uint64_t number) {
    std::lock_guard guard(mutex);
    seed = number;
}
EXPORT void fake_cuda_limit(std::size_t bytes) {
    std::lock_guard guard(mutex);
    limit = bytes;
}
EXPORT long fake_cuda_calls() {
    std::lock_guard guard(mutex);
    return calls;
}
EXPORT long fake_cuda_live() {
    std::lock_guard guard(mutex);
    return long(contexts.size() + queues.size() + events.size() + modules.size() + memory.size() +
                pinned.size());
}
EXPORT const char* fake_cuda_misuse() {
    std::lock_guard guard(mutex);
    return misuse.c_str();
}

EXPORT int cuInit(unsigned) {
    BEGIN(false);
    return SUCCESS;
}
EXPORT int cuGetErrorName(int error, const char** name) {
    *name = error == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
    return SUCCESS;
}
EXPORT int cuGetErrorString(int, const char** text) {
    *text = "as the test wants it";
    return SUCCESS;
}
EXPORT int cuDeviceGetCount(int* count) {
    BEGIN(false);
    *count = NUM_DEVICES;
    return SUCCESS;
}
EXPORT int cuDeviceGet(int* device, int number) {
    BEGIN(false);
    *device = number;
    return SUCCESS;
}
EXPORT int cuDeviceGetName(char* name, int bytes, int) {
    std::strncpy(name, "Fake device", std::size_t(bytes));
    return SUCCESS;
}
EXPORT int cuDeviceGetAttribute(int* value, int attribute, int) {
    *value = attribute == MAJOR ? 9 : 0;
    return SUCCESS;
}
EXPORT int cuDevicePrimaryCtxRetain(Handle* context, int device) {
    BEGIN(false);
    *context = reinterpret_cast<Handle>(uintptr_t(device + 1) << 4);
    contexts.insert(*context);
    ++retained[device];
    return SUCCESS;
}
EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
    BEGIN_RELEASE(false);
    if (--retained[device] == 0)
        contexts.erase(reinterpret_cast<void*>(uintptr_t(device + 1) << 4));
    return result;
}
EXPORT int cuCtxSetCurrent(Handle context) {
    BEGIN(false);
    require(contexts.contains(context), "a context that is not there");
    current = context;
    return SUCCESS;
}
EXPORT int cuMemAlloc_v2(Address* address, std::size_t bytes) {
    BEGIN();
    if (used + bytes > limit) return OUT_OF_MEMORY;
    auto* block = static_cast<char*>(std::malloc(bytes));
    std::memset(block, 0xff, bytes);
    used += bytes;
    memory[block] = bytes;
    *address = reinterpret_cast<Address>(block) | TAG;
    return SUCCESS;
}
EXPORT int cuMemFree_v2(Address address) {
    BEGIN_RELEASE();
    auto found = memory.find(host(address));
    if (!require(found != memory.end(), "memory is freed twice")) return INVALID_VALUE;
    for (auto& [handle, queue] : queues) run_until(queue, queue.last);
    used -= found->second;
    std::free(found->first);
    memory.erase(found);
    return result;
}
EXPORT int cuMemHostAlloc(void** address, std::size_t bytes, unsigned) {
    BEGIN();
    *address = std::malloc(bytes);
    pinned[static_cast<char*>(*address)] = bytes;
    return SUCCESS;
}
EXPORT int cuMemFreeHost(void* address) {
    BEGIN_RELEASE();
    if (!require(pinned.erase(static_cast<char*>(address)), "pinned memory is freed twice"))
        return INVALID_VALUE;
    std::free(address);
    return result;
}
EXPORT int cuMemcpyHtoDAsync_v2(Address to, const void* from, std::size_t bytes, Handle stream) {
    BEGIN();
    bool there = is_device(to, bytes) && is_within(pinned, from, bytes);
    return enqueue_copy(host(to), static_cast<const char*>(from), bytes, there, stream);
}
EXPORT int cuMemcpyDtoHAsync_v2(void* to, Address from, std::size_t bytes, Handle stream) {
    BEGIN();
    bool there = is_device(from, bytes) && is_within(pinned, to, bytes);
    return enqueue_copy(static_cast<char*>(to), host(from), bytes, there, stream);
}
EXPORT int cuMemcpyDtoDAsync_v2(Address to, Address from, std::size_t bytes, Handle stream) {
    BEGIN();
    bool there = is_device(from, bytes) && is_device(to, bytes);
    return enqueue_copy(host(to), host(from), bytes, there, stream);
}
EXPORT int cuMemsetD8Async(Address address, unsigned char byte, std::size_t bytes, Handle stream) {
    BEGIN();
    return enqueue(stream, [=] {
        if (require(is_device(address, bytes), "memory to fill is gone"))
            std::memset(host(address), byte, bytes);
    });
}
EXPORT int cuModuleLoadDataEx(Handle* module, const void* text, unsigned count, int* names,
                              void** values) {
    BEGIN();
    std::string ptx = static_cast<const char*>(text);
    if (texts.contains(ptx)) return *module = made(modules, ptx), SUCCESS;
    require(count == 2 && names[0] == ERROR_LOG && names[1] == ERROR_LOG_BYTES, "other options");
    std::strncpy(static_cast<char*>(values[0]), "ptxas: unknown text",
                 reinterpret_cast<std::size_t>(values[1]));
    return INVALID_PTX;
}
EXPORT int cuModuleUnload(Handle module) {
    BEGIN_RELEASE();
    auto found = modules.find(module);
    if (!require(found != modules.end(), "a module is unloaded twice")) return INVALID_VALUE;
    for (auto& [handle, queue] : queues) run_until(queue, queue.last);
    modules.erase(found);
    return result;
}
EXPORT int cuModuleGetFunction(Handle* function, Handle module, const char* name) {
    BEGIN();
    auto found = modules.find(module);
    if (!require(found != modules.end(), "a module that is not there")) return INVALID_VALUE;
    const auto& kernels = texts[found->second];
    if (!kernels.contains(name)) return NOT_FOUND;
    *function = made(functions, &kernels.at(name));
    return SUCCESS;
}
EXPORT int cuLaunchKernel(Handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                          Handle stream, void** arguments, void** extra) {
    BEGIN();
    auto found = functions.find(function);
    bool fits = found != functions.end() && grid_x && grid_y == 1 && grid_z == 1 &&
                block_x == BLOCK && block_y == 1 && block_z == 1 && !shared && !arguments &&
                reinterpret_cast<uintptr_t>(extra[0]) == EXTRA_ARGUMENTS &&
                reinterpret_cast<uintptr_t>(extra[2]) == EXTRA_BYTES && !extra[4];
    if (!require(fits, "a launch of another form")) return INVALID_VALUE;
    const Kernel& kernel = *found->second;
    std::size_t count = *static_cast<std::size_t*>(extra[3]) / sizeof(uint64_t);
    if (!require(count == kernel.buffers + kernel.sizes + kernel.scalars + 1, "other arguments"))
        return INVALID_VALUE;
    auto* words = static_cast<uint64_t*>(extra[1]);
    return enqueue(stream, [kernel, grid_x, copy = std::vector(words, words + count)] {
        run(kernel, copy, int64_t(grid_x) * BLOCK);
    });
}
EXPORT int cuStreamCreate(Handle* stream, unsigned flags) {
    BEGIN();
    require(flags == NON_BLOCKING_STREAM, "a stream that blocks");
    *stream = made(queues, Queue());
    return SUCCESS;
}
EXPORT int cuStreamDestroy_v2(Handle stream) {
    BEGIN_RELEASE();
    auto found = queues.find(stream);
    if (!require(found != queues.end(), "a stream is destroyed twice")) return INVALID_VALUE;
    run_until(found->second, found->second.last);
    queues.erase(found);
    return result;
}
EXPORT int cuCtxSynchronize() {
    BEGIN();
    for (auto& [stream, queue] : queues) run_until(queue, queue.last);
    return SUCCESS;
}
EXPORT int cuStreamSynchronize(Handle stream) {
    BEGIN();
    auto found = queues.find(stream);
    if (!require(found != queues.end(), "a stream that is not there")) return INVALID_VALUE;
    run_until(found->second, found->second.last);
    return SUCCESS;
}
EXPORT int cuStreamWaitEvent(Handle stream, Handle event, unsigned) {
    BEGIN();
    Mark mark = events[event];
    return enqueue(stream, [mark] {
        if (mark.queue) run_until(*mark.queue, mark.number);
    });
}
EXPORT int cuEventCreate(Handle* event, unsigned flags) {
    BEGIN();
    require(flags == UNTIMED_EVENT, "an event that is timed");
    *event = made(events, Mark());
    return SUCCESS;
}
EXPORT int cuEventDestroy_v2(Handle event) {
    BEGIN_RELEASE();
    require(events.erase(event), "an event is destroyed twice");
    return result;
}
EXPORT int cuEventRecord(Handle event, Handle stream) {
    BEGIN();
    auto found = queues.find(stream);
    if (!require(found != queues.end() && events.contains(event), "an event of no stream"))
        return INVALID_VALUE;
    events[event] = {&found->second, found->second.last};
    return SUCCESS;
}
EXPORT int cuEventSynchronize(Handle event) {
    BEGIN();
    require(events.contains(event), "an event that is not there");
    if (Mark mark = events[event]; mark.queue) run_until(*mark.queue, mark.number);
    return SUCCESS;
}
