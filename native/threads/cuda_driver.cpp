#include "threads/cuda_driver.h"

#include <dlfcn.h>

namespace tenfold::cuda {
namespace {

struct Opened {
    Driver driver;
    std::string why; // empty: it can be used
};

Opened open_library() {
    Opened opened;
    Driver& driver = opened.driver;
    void* library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        opened.why = std::string("there is no ") + LIBRARY + ", NVIDIA's driver";
        return opened;
    }
    const char* missing = nullptr;
#define TENFOLD_FIND(member, symbol, arguments)                                                    \
    driver.member = reinterpret_cast<decltype(driver.member)>(dlsym(library, symbol));             \
    if (!driver.member) missing = symbol;
    TENFOLD_CUDA_FUNCTIONS(TENFOLD_FIND)
#undef TENFOLD_FIND
    if (missing) {
        opened.why = std::string(LIBRARY) + " has no " + missing + ": it is too old";
        return opened;
    }
    int error = driver.init(0);
    if (error) opened.why = driver.text_of("cuInit", error);
    if (!error && (error = driver.device_count(&driver.num_devices)))
        opened.why = driver.text_of("cuDeviceGetCount", error);
    if (!error && driver.num_devices == 0) opened.why = "the driver finds no device";
    return opened;
}

} // namespace

const Driver* Driver::open(std::string& why) {
    static const auto* opened = new Opened(open_library()); // outlives every thread
    why = opened->why;
    return why.empty() ? &opened->driver : nullptr;
}

std::string Driver::text_of(const char* symbol, int error) const {
    const char *name = nullptr, *text = nullptr;
    error_name(error, &name);
    error_string(error, &text);
    std::string number = std::to_string(error);
    return std::string(symbol) + ": " + (name ? name : number.c_str()) + " (" +
           (text ? text : "unknown to this driver") + ")";
}

} // namespace tenfold::cuda
