// CUDA driver: the functions of NVIDIA's driver library that the device calls. The library is
// opened when they are asked for; nothing of it is needed to build or to load this one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace tenfold::cuda {

using Address = unsigned long long; // of memory of a device
using Handle = struct Opaque*;      // of a context, module, function, stream or event

// Each with its member here, its symbol in the library and its arguments ("CUDA Driver API",
// reference manual). A symbol with _v2 is the form for addresses of 64 bits.
#define TENFOLD_CUDA_FUNCTIONS(FUNCTION)                                                           \
    FUNCTION(init, "cuInit", (unsigned flags))                                                     \
    FUNCTION(error_name, "cuGetErrorName", (int error, const char** name))                         \
    FUNCTION(error_string, "cuGetErrorString", (int error, const char** text))                     \
    FUNCTION(device_count, "cuDeviceGetCount", (int* count))                                       \
    FUNCTION(device, "cuDeviceGet", (int* device, int number))                                     \
    FUNCTION(device_name, "cuDeviceGetName", (char* name, int bytes, int device))                  \
    FUNCTION(attribute, "cuDeviceGetAttribute", (int* value, int attribute, int device))           \
    FUNCTION(retain_context, "cuDevicePrimaryCtxRetain", (Handle * context, int device))           \
    FUNCTION(release_context, "cuDevicePrimaryCtxRelease_v2", (int device))                        \
    FUNCTION(use_context, "cuCtxSetCurrent", (Handle context))                                     \
    FUNCTION(synchronize_context, "cuCtxSynchronize", ())                                          \
    FUNCTION(allocate, "cuMemAlloc_v2", (Address * memory, std::size_t bytes))                     \
    FUNCTION(free, "cuMemFree_v2", (Address memory))                                               \
    FUNCTION(allocate_host, "cuMemHostAlloc", (void** memory, std::size_t bytes, unsigned flags))  \
    FUNCTION(free_host, "cuMemFreeHost", (void* memory))                                           \
    FUNCTION(copy_to_device, "cuMemcpyHtoDAsync_v2",                                               \
             (Address to, const void* from, std::size_t bytes, Handle stream))                     \
    FUNCTION(copy_to_host, "cuMemcpyDtoHAsync_v2",                                                 \
             (void* to, Address from, std::size_t bytes, Handle stream))                           \
    FUNCTION(copy_within, "cuMemcpyDtoDAsync_v2",                                                  \
             (Address to, Address from, std::size_t bytes, Handle stream))                         \
    FUNCTION(fill, "cuMemsetD8Async",                                                              \
             (Address memory, unsigned char byte, std::size_t bytes, Handle stream))               \
    FUNCTION(load_module, "cuModuleLoadDataEx",                                                    \
             (Handle * module, const void* text, unsigned options, int* names, void** values))     \
    FUNCTION(unload_module, "cuModuleUnload", (Handle module))                                     \
    FUNCTION(find_function, "cuModuleGetFunction",                                                 \
             (Handle * function, Handle module, const char* name))                                 \
    FUNCTION(launch, "cuLaunchKernel",                                                             \
             (Handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z,                  \
              unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,         \
              Handle stream, void** arguments, void** extra))                                      \
    FUNCTION(create_stream, "cuStreamCreate", (Handle * stream, unsigned flags))                   \
    FUNCTION(destroy_stream, "cuStreamDestroy_v2", (Handle stream))                                \
    FUNCTION(synchronize_stream, "cuStreamSynchronize", (Handle stream))                           \
    FUNCTION(wait_for_event, "cuStreamWaitEvent", (Handle stream, Handle event, unsigned flags))   \
    FUNCTION(create_event, "cuEventCreate", (Handle * event, unsigned flags))                      \
    FUNCTION(destroy_event, "cuEventDestroy_v2", (Handle event))                                   \
    FUNCTION(record_event, "cuEventRecord", (Handle event, Handle stream))                         \
    FUNCTION(synchronize_event, "cuEventSynchronize", (Handle event))

struct Driver {
#define TENFOLD_MEMBER(member, symbol, arguments) int(*member) arguments = nullptr;
    TENFOLD_CUDA_FUNCTIONS(TENFOLD_MEMBER)
#undef TENFOLD_MEMBER

    // Opens the library LIBRARY once, and asks for its devices. Null: `why` says what is missing.
    static const Driver* open(std::string& why);
    // What a function says of its failure, as "cuMemAlloc_v2: CUDA_ERROR_... (out of memory)".
    std::string text_of(const char* symbol, int error) const;

    int num_devices = 0;
};

constexpr const char* LIBRARY = "libcuda.so.1";
enum Error : int { SUCCESS = 0, OUT_OF_MEMORY = 2 };
enum Attribute : int { MAJOR = 75, MINOR = 76 }; // of the compute capability
constexpr unsigned NON_BLOCKING_STREAM = 1, UNTIMED_EVENT = 2;
constexpr int ERROR_LOG = 5, ERROR_LOG_BYTES = 6; // options of load_module
// Marks in the table `extra` of a launch.
constexpr std::uintptr_t EXTRA_END = 0, EXTRA_ARGUMENTS = 1, EXTRA_BYTES = 2;

} // namespace tenfold::cuda
