#include "jit/cache_entry.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jit/sha256.h"

namespace tenfold {
namespace {

constexpr char MAGIC[] = "TENFOLD\n";
constexpr uint32_t FORMAT = 1;
constexpr std::size_t HASH_BYTES = 32;
// Seconds from which on a file that is read is marked as used.
constexpr time_t TOUCH_INTERVAL_SECONDS = 3600;
constexpr int OPEN_FLAGS = O_NOFOLLOW | O_CLOEXEC;

struct FileHeader { // little-endian, as the machine
    char magic[8];
    uint32_t format, level, num_functions, note_bytes;
    uint64_t code_bytes, microseconds;
    uint8_t environment[HASH_BYTES], key[HASH_BYTES];
};
static_assert(sizeof(FileHeader) == 104);

[[noreturn]] void fail() { throw std::system_error(errno, std::generic_category()); }

std::string damaged(std::size_t bytes) {
    return "it is damaged: " + std::to_string(bytes) + " bytes";
}

void check_owner(const struct stat& status, uid_t user) {
    if (status.st_uid != user) throw InvalidEntry("it belongs to another user");
    if (!(status.st_mode & 077)) return;
    char mode[16];
    std::snprintf(mode, sizeof mode, "%o", unsigned(status.st_mode & 07777));
    throw InvalidEntry(std::string("others may use it, its mode is ") + mode);
}

struct stat file_status(const FileDescriptor& file) {
    struct stat status;
    if (fstat(file.descriptor(), &status) != 0) fail();
    return status;
}

// A failure is ignored: a readable entry is usable, whatever its time.
void touch_file(const FileDescriptor& file, const struct stat& status) {
    if (std::time(nullptr) - status.st_mtime > TOUCH_INTERVAL_SECONDS)
        (void)futimens(file.descriptor(), nullptr);
}

Bytes content(const FileDescriptor& file, std::size_t size) {
    Bytes bytes(size + 1); // one more, to detect a file that has grown
    std::size_t length = 0;
    while (length < bytes.size()) {
        ssize_t count = TEMP_FAILURE_RETRY(
            read(file.descriptor(), bytes.data() + length, bytes.size() - length));
        if (count < 0) fail();
        if (count == 0) break;
        length += std::size_t(count);
    }
    bytes.resize(length);
    return bytes;
}

bool equal(Part one, Part other) { return std::ranges::equal(one, other); }

} // namespace

CacheEntry::CacheEntry(Bytes bytes) : bytes_(std::move(bytes)) {
    const Part all(bytes_);
    if (all.size() < sizeof(FileHeader) + HASH_BYTES) throw InvalidEntry(damaged(all.size()));
    FileHeader head;
    std::memcpy(&head, all.data(), sizeof head);
    if (std::memcmp(head.magic, MAGIC, sizeof head.magic) != 0)
        throw InvalidEntry("it is not a kernel");
    if (head.format != FORMAT)
        throw InvalidEntry("its format is " + std::to_string(head.format) + ", not " +
                           std::to_string(FORMAT));
    if (head.num_functions > MAX_FUNCTIONS || head.note_bytes > MAX_NOTE_BYTES ||
        head.code_bytes > MAX_BYTES)
        throw InvalidEntry("it is damaged: no kernel has such lengths");
    const std::size_t offsets_bytes = 8 * std::size_t(head.num_functions);
    const std::size_t size =
        sizeof head + offsets_bytes + head.note_bytes + head.code_bytes + HASH_BYTES;
    if (all.size() != size)
        throw InvalidEntry(damaged(all.size()) + ", not " + std::to_string(size));
    const Digest digest = sha256(all.data(), size - HASH_BYTES);
    if (!equal(digest, all.last(HASH_BYTES)))
        throw InvalidEntry("it is damaged: its hash is another");

    function_offsets.resize(head.num_functions);
    if (offsets_bytes)
        std::memcpy(function_offsets.data(), all.data() + sizeof head, offsets_bytes);
    for (uint64_t offset : function_offsets)
        if (offset >= head.code_bytes) throw InvalidEntry("a function begins behind its end");
    level = head.level;
    microseconds = head.microseconds;
    environment = all.subspan(offsetof(FileHeader, environment), HASH_BYTES);
    key = all.subspan(offsetof(FileHeader, key), HASH_BYTES);
    note = all.subspan(sizeof head + offsets_bytes, head.note_bytes);
    code = all.subspan(sizeof head + offsets_bytes + head.note_bytes, head.code_bytes);
}

FileDescriptor::~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
}

int FileDescriptor::release() { return std::exchange(fd_, -1); }

FileDescriptor open_directory(const char* path, uid_t user) {
    FileDescriptor directory(TEMP_FAILURE_RETRY(open(path, O_RDONLY | O_DIRECTORY | OPEN_FLAGS)));
    if (directory.descriptor() < 0) {
        if (errno == ELOOP || errno == ENOTDIR) throw InvalidEntry("it is not a directory");
        fail();
    }
    check_owner(file_status(directory), user);
    return directory;
}

CacheEntry read_entry(int directory, const std::string& name, uid_t user, Part environment) {
    // Without waiting: a pipe in its stead would let us wait for ever.
    const int flags = O_RDONLY | O_NONBLOCK | OPEN_FLAGS;
    FileDescriptor file(TEMP_FAILURE_RETRY(openat(directory, name.c_str(), flags)));
    if (file.descriptor() < 0) {
        if (errno == ELOOP) throw InvalidEntry("it is a symbolic link");
        fail();
    }
    const struct stat status = file_status(file);
    if (!S_ISREG(status.st_mode)) throw InvalidEntry("it is not a file");
    check_owner(status, user);
    if (std::size_t(status.st_size) > CacheEntry::MAX_BYTES)
        throw InvalidEntry(damaged(status.st_size));
    CacheEntry entry(content(file, std::size_t(status.st_size)));
    if (to_hex(entry.key) != name) throw InvalidEntry("it is the entry of another kernel");
    if (environment.empty()) return entry;
    if (!equal(entry.environment, environment))
        throw InvalidEntry("it is for another processor, or by another version");
    touch_file(file, status);
    return entry;
}

std::string to_hex(Part bytes) {
    std::string text;
    text.reserve(2 * bytes.size());
    for (uint8_t byte : bytes)
        for (int nibble : {byte >> 4, byte & 15}) text += "0123456789abcdef"[nibble];
    return text;
}

} // namespace tenfold
