// The CUDA device on a fake driver: order, lifetimes, failures of each call, forks, threads.
#include "threads/cuda_device.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <utility>

#include "check.h"
#include "fake_cuda.h"
#include "memory/allocation_pool.h"
#include "threads/cpu_device.h"

using namespace tenfold;
using namespace tenfold::cuda;

namespace {

constexpr uint8_t NUMBER = 9;
constexpr int64_t LENGTH = 300;
constexpr const char* PTX = "the text of a module";

std::atomic<int> num_runs{0};

// y = 2 x + s; an element that is 7 fails.
int64_t twice(void** buffers, const int64_t* sizes, const double* scalars, void*, int64_t begin,
              int64_t end) {
    auto *from = static_cast<double*>(buffers[0]), *to = static_cast<double*>(buffers[1]);
    int64_t status = 0;
    for (int64_t i = begin; i < std::min(end, sizes[0]); ++i) {
        if (from[i] == 7 && !status) status = i + 1;
        to[i] = 2 * from[i] + scalars[0];
    }
    ++num_runs;
    return status;
}

const Driver& driver() {
    std::string why;
    const Driver* opened = Driver::open(why);
    CHECK(opened && why.empty());
    return *opened;
}

// A device with a module; the launches of `twice` by the driver and by the host.
struct Fixture {
    CudaDevice device{driver(), 0, NUMBER};
    Handle module = nullptr;
    KernelHandle kernel;

    explicit Fixture(bool may_fail = true) {
        std::string why;
        module = device.load(PTX, why);
        if (module) kernel = device.kernel_of(module, "kernel", may_fail);
    }
    ~Fixture() {
        current_queue(NUMBER) = 0;
        if (module) device.unload(module);
    }

    Event launch(KernelHandle launched, void* from, void* to, double scalar = 0) {
        void* buffers[] = {from, to};
        uint64_t bits;
        std::memcpy(&bits, &scalar, sizeof bits);
        DirectLauncher host;
        Work work;
        work.kernel = launched;
        work.buffers = buffers;
        work.written = 0b10;
        work.sizes = {&LENGTH, 1};
        work.scalars = {&bits, 1};
        work.units = LENGTH;
        work.grain = LENGTH;
        return device.launch(work, host);
    }

    void* array(double number) {
        std::vector<double> values(LENGTH, number);
        void* memory = device.allocate(bytes());
        if (memory) device.copy(memory, values.data(), bytes(), Device::from_host);
        return memory;
    }

    double first(const void* memory) {
        std::vector<double> values(LENGTH);
        CHECK(device.copy(values.data(), memory, bytes(), Device::to_host));
        for (double value : values) CHECK(value == values[0]);
        return values[0];
    }

    static std::size_t bytes() { return LENGTH * sizeof(double); }
};

void nothing_is_left_and_nothing_was_misused(long live) {
    if (*fake_cuda_misuse()) std::fprintf(stderr, "%s\n", fake_cuda_misuse());
    CHECK(!*fake_cuda_misuse() && fake_cuda_live() == live);
}

void long_copies_go_through_the_stages() {
    Fixture fixture;
    std::vector<char> from(std::size_t(37) << 20), to(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = char(i * 31 + i / 1000);
    void* memory = fixture.device.allocate(from.size());
    void* other = fixture.device.allocate(from.size());
    CHECK(fixture.device.copy(memory, from.data(), from.size(), Device::from_host));
    CHECK(fixture.device.copy(other, memory, from.size(), Device::within));
    CHECK(fixture.device.copy(to.data(), other, to.size(), Device::to_host));
    CHECK(from == to);
}

void queues_overlap_and_wait_for_what_they_read() {
    Fixture fixture(false);
    void *x = fixture.array(1), *y = fixture.array(0), *z = fixture.array(0);
    CHECK(fixture.first(x) == 1);
    num_runs = 0;
    current_queue(NUMBER) = 1;
    fixture.launch(fixture.kernel, x, y);
    current_queue(NUMBER) = 2;
    Event event = fixture.launch(fixture.kernel, x, z); // reads what the first one reads
    CHECK(fixture.device.wait(event).succeeded() && num_runs == 1);
    fixture.launch(fixture.kernel, y, z); // reads what the first one writes
    CHECK(fixture.first(z) == 4 && num_runs == 3);
    current_queue(NUMBER) = 3;
    fixture.launch(fixture.kernel, z, x); // writes over what all have read
    fixture.device.free(z);
    current_queue(NUMBER) = 4;
    void* again = fixture.device.allocate(Fixture::bytes());
    fixture.launch(fixture.kernel, y, again);
    CHECK(fixture.first(x) == 8 && fixture.first(again) == 4);
}

// Programs of random launches on random queues, against the same on one array of numbers.
void random_queues_never_misorder() {
    for (unsigned seed = 0; seed < 200; ++seed) {
        fake_cuda_seed(seed);
        std::mt19937 random(seed);
        Fixture fixture(seed % 2);
        std::vector<void*> arrays;
        std::vector<double> expected;
        for (int i = 0; i < 5; ++i) {
            current_queue(NUMBER) = uint8_t(random() % MAX_QUEUES);
            arrays.push_back(fixture.array(i));
            expected.push_back(i);
        }
        for (int step = 0; step < 40; ++step) {
            current_queue(NUMBER) = uint8_t(random() % MAX_QUEUES);
            std::size_t from = random() % 5, to = random() % 5;
            if (random() % 4 == 0) {
                fixture.device.free(arrays[to]);
                arrays[to] = fixture.device.allocate(Fixture::bytes());
            }
            if (from == to) {
                fixture.device.copy(arrays[to], arrays[(from + 1) % 5], Fixture::bytes(),
                                    Device::within);
                expected[to] = expected[(from + 1) % 5];
                continue;
            }
            double scalar = step % 3 - expected[from];
            KernelHandle kernel = random() % 8 ? fixture.kernel : HostKernel(twice);
            fixture.launch(kernel, arrays[from], arrays[to], scalar);
            expected[to] = 2 * expected[from] + scalar;
        }
        for (int i = 0; i < 5; ++i) CHECK(fixture.first(arrays[i]) == expected[i]);
    }
    fake_cuda_seed(0);
}

void status_is_that_of_its_launch() {
    Fixture fixture;
    void *good = fixture.array(1), *bad = fixture.array(7), *to = fixture.array(0);
    std::vector<Event> events;
    for (int i = 0; i < 1000; ++i) // more than have a status at once
        events.push_back(fixture.launch(fixture.kernel, i % 3 ? good : bad, to));
    for (int i = 0; i < 1000; ++i) {
        Result result = fixture.device.wait(events[i]);
        CHECK(result.outcome == Outcome::done && result.status == (i % 3 ? 0 : 1));
    }
    CHECK(fixture.launch(HostKernel(twice), bad, to).result.status == 1);
    CHECK(fixture.device.wait(fixture.device.record()).succeeded() && !fixture.device.failure());
}

void lack_of_memory_is_no_failure() {
    Fixture fixture;
    fake_cuda_limit(std::size_t(1) << 20);
    std::vector<void*> blocks;
    while (void* block = fixture.device.allocate(std::size_t(1) << 17)) blocks.push_back(block);
    CHECK(blocks.size() > 2 && !fixture.device.failure());
    for (void* block : blocks) fixture.device.free(block);
    CHECK(fixture.device.allocate(std::size_t(1) << 19)); // free blocks of other sizes go back
    fake_cuda_limit(std::size_t(1) << 34);
}

void unused_blocks_go_back() {
    Fixture fixture;
    long live = fake_cuda_live();
    void *kept = fixture.array(3), *freed = fixture.array(4);
    fixture.device.free(freed);
    CHECK(fixture.device.trim() >= Fixture::bytes() && fixture.device.trim() == 0);
    CHECK(fixture.first(kept) == 3 && fake_cuda_live() > live);
}

Fixture* shared_fixture = nullptr;
char* shared_block = nullptr;

// y = 2 x + s for even elements, while the device and another kernel of the host write beside them.
int64_t evens_twice(void** buffers, const int64_t* sizes, const double* scalars, void*, int64_t,
                    int64_t) {
    auto *from = static_cast<double*>(buffers[0]), *to = static_cast<double*>(buffers[1]);
    if (Fixture* fixture = std::exchange(shared_fixture, nullptr)) {
        current_queue(NUMBER) = 3;
        fixture->launch(fixture->kernel, shared_block, shared_block + Fixture::bytes(), 1);
        fixture->launch(HostKernel(evens_twice), shared_block, shared_block + sizeof(double),
                        *scalars);
    }
    for (int64_t i = 0; i < sizes[0]; i += 2) to[i] = 2 * from[i] + *scalars;
    return 0;
}

// Two that write parts of one block keep what the other one has written, element by element.
void kernels_of_the_host_keep_what_others_write() {
    for (unsigned seed : {0, 1, 2}) {
        fake_cuda_seed(seed);
        Fixture fixture(false);
        std::vector<double> values(3 * LENGTH, 5.0);
        shared_block = static_cast<char*>(fixture.device.allocate(3 * Fixture::bytes()));
        fixture.device.copy(shared_block, values.data(), 3 * Fixture::bytes(), Device::from_host);
        shared_fixture = &fixture;
        fixture.launch(HostKernel(evens_twice), shared_block + 2 * Fixture::bytes(), shared_block);
        CHECK(fixture.device.copy(values.data(), shared_block, 3 * Fixture::bytes(),
                                  Device::to_host));
        for (int64_t i = 0; i < LENGTH; ++i)
            CHECK(values[i] == 10 && values[LENGTH + i] == 11 && values[2 * LENGTH + i] == 5);
    }
    fake_cuda_seed(0);
}

void unknown_text_is_refused() {
    Fixture fixture;
    std::string why;
    CHECK(!fixture.device.load("another text", why));
    CHECK(why.find("cuModuleLoadDataEx: CUDA_ERROR_FAKE") == 0);
    CHECK(why.find("ptxas: unknown text") != std::string::npos && !fixture.device.failure());
}

bool program() {
    Fixture fixture;
    if (!fixture.kernel) return false;
    void *x = fixture.array(1), *y = fixture.array(0), *z = fixture.array(0);
    if (!x || !y || !z) return false;
    Event first = fixture.launch(fixture.kernel, x, y);
    current_queue(NUMBER) = 1;
    Event second = fixture.launch(fixture.kernel, y, z);
    Event third = fixture.launch(HostKernel(twice), z, x);
    std::vector<double> values(LENGTH);
    bool done = fixture.device.wait(first).succeeded() && fixture.device.wait(second).succeeded() &&
                fixture.device.wait(third).succeeded() &&
                fixture.device.copy(values.data(), x, Fixture::bytes(), Device::to_host);
    CHECK(!done || values[LENGTH - 1] == 8);
    const char* why = fixture.device.failure();
    CHECK(done == !why && (done || !std::strncmp(why, "cu", 2)));
    return done;
}

void each_call_that_fails_is_told_and_nothing_leaks(long live) {
    long before = fake_cuda_calls();
    CHECK(program());
    long calls = fake_cuda_calls() - before;
    nothing_is_left_and_nothing_was_misused(live);
    for (long number = 1; number <= calls; ++number) {
        fake_cuda_fail(number, 999);
        program();
        fake_cuda_fail(0, 0);
        nothing_is_left_and_nothing_was_misused(live);
    }
}

void child_of_a_fork_has_no_device() {
    Fixture fixture;
    void *x = fixture.array(1), *y = fixture.array(0);
    Event event = fixture.launch(fixture.kernel, x, y);
    if (pid_t child = fork(); child == 0) {
        long calls = fake_cuda_calls();
        double number;
        bool refuses = !fixture.device.allocate(8) && std::strstr(fixture.device.failure(), "fork");
        refuses &= !fixture.device.copy(&number, y, 8, Device::to_host);
        refuses &= !fixture.launch(fixture.kernel, x, y).result.succeeded();
        refuses &= !fixture.device.wait(event).succeeded();
        fixture.device.free(x);
        _exit(refuses && fake_cuda_calls() == calls ? 0 : 1);
    } else {
        int status = 1;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    CHECK(fixture.device.wait(event).succeeded() && fixture.first(y) == 2);
}

void threads_have_queues_of_their_own() {
    Fixture fixture;
    void* shared = fixture.array(4); // no sum is 7
    std::vector<std::thread> threads;
    for (int number = 0; number < 4; ++number)
        threads.emplace_back([&fixture, shared, number] {
            current_queue(NUMBER) = uint8_t(number);
            for (int i = 0; i < 50; ++i) {
                void* own = fixture.device.allocate(Fixture::bytes());
                void* result = fixture.device.allocate(Fixture::bytes());
                fixture.launch(fixture.kernel, shared, own, number);
                Event event = fixture.launch(fixture.kernel, own, result, i);
                fixture.device.free(own);
                CHECK(fixture.device.wait(event).succeeded());
                CHECK(fixture.first(result) == 2 * (8 + number) + i);
                fixture.device.free(result);
            }
        });
    for (std::thread& thread : threads) thread.join();
}

} // namespace

int main() {
    fake_cuda_define(PTX, "kernel", reinterpret_cast<void*>(&twice), 2, 1, 1, 0);
    long live = fake_cuda_live();
    for (auto test : {long_copies_go_through_the_stages, queues_overlap_and_wait_for_what_they_read,
                      random_queues_never_misorder, status_is_that_of_its_launch,
                      lack_of_memory_is_no_failure, unknown_text_is_refused, unused_blocks_go_back,
                      kernels_of_the_host_keep_what_others_write, child_of_a_fork_has_no_device,
                      threads_have_queues_of_their_own}) {
        test();
        nothing_is_left_and_nothing_was_misused(live);
    }
    each_call_that_fails_is_told_and_nothing_leaks(live);
}
