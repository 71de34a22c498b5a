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
struct Doubt : std::runtime_error {
    using std::runtime_error::runtime_error;
};

using Bytes = std::vector<uint8_t>;
using Part = std::span<const uint8_t>;

// Where what stands in the bytes of a file begins; they are kept with it.
class CacheEntry {
  public:
    static constexpr std::size_t LARGEST = std::size_t(1) << 24; // bytes; kernels have thousands
    static constexpr std::size_t LONGEST_NOTE = 200, MOST_FUNCTIONS = 16;

    // Throws Doubt.
    explicit CacheEntry(Bytes bytes);
    CacheEntry(const CacheEntry&) = delete;
    CacheEntry& operator=(const CacheEntry&) = delete;
    CacheEntry(CacheEntry&&) = default; // a vector that is moved leaves its bytes where they are

    uint32_t level;
    uint64_t microseconds; // that compiling took
    Part environment, key, note, code;
    std::vector<uint64_t> places; // where its functions begin in the code

  private:
    Bytes bytes_;
};

// A file that is open, until this ends.
class File {
  public:
    explicit File(int number) : number_(number) {}
    File(File&& other) noexcept : number_(other.release()) {}
    ~File();
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    int number() const { return number_; }
    int release(); // the caller closes it

  private:
    int number_;
};

// A directory, not what a link leads to, that belongs to a user and is closed to others. Throws
// Doubt, std::system_error.
File open_directory(const char* place, uid_t user);

// The entry in a file of a directory, which is named by its key. It is for use where it must be of
// an environment, which the time of the file then says. Throws Doubt, std::system_error.
CacheEntry read_entry(int directory, const std::string& name, uid_t user, Part environment = {});

// 0123456789abcdef, two for each byte.
std::string in_hexadecimal(Part bytes);

} // namespace tenfold
