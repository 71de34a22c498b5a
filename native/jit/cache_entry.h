// Cache entry: reads a compiled kernel's file from the disk cache, and validates it. An accepted
// file is regular, not a link, belongs to the user and is closed to others. Its contents are
// accepted if the hash over all of them is right. tenfold/jit/cache_entry.py defines the bytes,
// tenfold/jit/atomic_write.py writes them.
#pragma once
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/types.h>

namespace tenfold {

// An invalid file or directory of the cache; the message says why.
struct InvalidEntry : std::runtime_error {
    using std::runtime_error::runtime_error;
};

using Bytes = std::vector<uint8_t>;
using Part = std::span<const uint8_t>;

// Parts of a cache entry, as views into the bytes of its file, which it owns.
class CacheEntry {
  public:
    static constexpr std::size_t MAX_BYTES = std::size_t(1) << 24; // bytes; kernels have thousands
    static constexpr std::size_t MAX_NOTE_BYTES = 200, MAX_FUNCTIONS = 16;

    // Throws InvalidEntry.
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

// A directory, not a symbolic link, that belongs to a user and is closed to others. Throws
// InvalidEntry, std::system_error.
FileDescriptor open_directory(const char* path, uid_t user);

// The entry in a file of a directory, which is named by its key. A non-empty `environment` must be
// the entry's, and the file's modification time then records the use. Throws InvalidEntry,
// std::system_error.
CacheEntry read_entry(int directory, const std::string& name, uid_t user, Part environment = {});

// 0123456789abcdef, two for each byte.
std::string to_hex(Part bytes);

} // namespace tenfold
