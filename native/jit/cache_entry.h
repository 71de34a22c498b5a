// Cache entry: reads a compiled kernel's file from the disk cache, and validates it. A file is
// accepted if it is a plain one, not a link, belongs to us and is closed to others. Its contents
// are accepted if the hash over all of them is right. tenfold/jit/cache_entry.py defines the bytes,
// tenfold/jit/atomic_write.py writes them.
#pragma once
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/types.h>

namespace tenfold {

// Something on disk is not as we would have left it; the text says what.
struct InvalidEntry : std::runtime_error {
    using std::runtime_error::runtime_error;
};

using Bytes = std::vector<uint8_t>;
using Part = std::span<const uint8_t>;

// Where what stands in the bytes of a file begins; they are kept with it.
class CacheEntry {
  public:
    static constexpr std::size_t MAX_BYTES = std::size_t(1) << 24; // bytes; kernels have thousands
    static constexpr std::size_t MAX_NOTE_BYTES = 200, MAX_FUNCTIONS = 16;

    // Throws Doubt.
    explicit CacheEntry(Bytes bytes);
    CacheEntry(const CacheEntry&) = delete;
    CacheEntry& operator=(const CacheEntry&) = delete;
    CacheEntry(CacheEntry&&) = default; // a vector that is moved leaves its bytes where they are

    uint32_t level;
    uint64_t microseconds; // that compiling took
    Part environment, key, note, code;
    std::vector<uint64_t> function_offsets; // where its functions begin in the code

  private:
    Bytes bytes_;
};

// A file that is open, until this ends.
class FileDescriptor {
  public:
    explicit FileDescriptor(int descriptor) : fd_(descriptor) {}
    FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
    ~FileDescriptor();
    FileDescriptor(const FileDescriptor&) = delete;
    FileDescriptor& operator=(const FileDescriptor&) = delete;
    int descriptor() const { return fd_; }
    int release(); // the caller closes it

  private:
    int fd_;
};

// A directory, not what a link leads to, that belongs to a user and is closed to others. Throws
// Doubt, std::system_error.
FileDescriptor open_directory(const char* path, uid_t user);

// The entry in a file of a directory, which is named by its key. It is for use where it must be of
// an environment, which the time of the file then says. Throws Doubt, std::system_error.
CacheEntry read_entry(int directory, const std::string& name, uid_t user, Part environment = {});

// 0123456789abcdef, two for each byte.
std::string to_hex(Part bytes);

} // namespace tenfold
