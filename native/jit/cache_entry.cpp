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
constexpr std::size_t HASH = 32;
constexpr time_t TOUCHED = 3600; // seconds from which on a file that is read is marked as used
constexpr int OWN = O_NOFOLLOW | O_CLOEXEC;

struct Head { // little-endian, as the machine
    char magic[8];
    uint32_t format, level, functions, noted;
    uint64_t length, microseconds;
    uint8_t environment[HASH], key[HASH];
};
static_assert(sizeof(Head) == 104);

[[noreturn]] void fail() { throw std::system_error(errno, std::generic_category()); }

std::string damaged(std::size_t bytes) {
    return "it is damaged: " + std::to_string(bytes) + " bytes";
}

void doubt_owner(const struct stat& facts, uid_t user) {
    if (facts.st_uid != user) throw Doubt("it belongs to another user");
    if (!(facts.st_mode & 077)) return;
    char mode[16];
    std::snprintf(mode, sizeof mode, "%o", unsigned(facts.st_mode & 07777));
    throw Doubt(std::string("others may use it, its mode is ") + mode);
}

struct stat facts_of(const File& file) {
    struct stat facts;
    if (fstat(file.number(), &facts) != 0) fail();
    return facts;
}

// What can be read can be used, so that the time cannot be noted is nothing.
void note_use(const File& file, const struct stat& facts) {
    if (std::time(nullptr) - facts.st_mtime > TOUCHED) (void)futimens(file.number(), nullptr);
}

Bytes content(const File& file, std::size_t size) {
    Bytes bytes(size + 1); // one more, to see that there is no more
    std::size_t length = 0;
    while (length < bytes.size()) {
        ssize_t part =
            TEMP_FAILURE_RETRY(read(file.number(), bytes.data() + length, bytes.size() - length));
        if (part < 0) fail();
        if (part == 0) break;
        length += std::size_t(part);
    }
    bytes.resize(length);
    return bytes;
}

bool equal(Part one, Part other) { return std::ranges::equal(one, other); }

} // namespace

CacheEntry::CacheEntry(Bytes bytes) : bytes_(std::move(bytes)) {
    const Part all(bytes_);
    if (all.size() < sizeof(Head) + HASH) throw Doubt(damaged(all.size()));
    Head head;
    std::memcpy(&head, all.data(), sizeof head);
    if (std::memcmp(head.magic, MAGIC, sizeof head.magic) != 0) throw Doubt("it is not a kernel");
    if (head.format != FORMAT)
        throw Doubt("its format is " + std::to_string(head.format) + ", not " +
                    std::to_string(FORMAT));
    if (head.functions > MOST_FUNCTIONS || head.noted > LONGEST_NOTE || head.length > LARGEST)
        throw Doubt("it is damaged: no kernel has such lengths");
    const std::size_t placed = 8 * std::size_t(head.functions);
    const std::size_t size = sizeof head + placed + head.noted + head.length + HASH;
    if (all.size() != size) throw Doubt(damaged(all.size()) + ", not " + std::to_string(size));
    const Digest digest = sha256(all.data(), size - HASH);
    if (!equal(digest, all.last(HASH))) throw Doubt("it is damaged: its hash is another");

    places.resize(head.functions);
    if (placed) std::memcpy(places.data(), all.data() + sizeof head, placed);
    for (uint64_t place : places)
        if (place >= head.length) throw Doubt("a function begins behind its end");
    level = head.level;
    microseconds = head.microseconds;
    environment = all.subspan(offsetof(Head, environment), HASH);
    key = all.subspan(offsetof(Head, key), HASH);
    note = all.subspan(sizeof head + placed, head.noted);
    code = all.subspan(sizeof head + placed + head.noted, head.length);
}

File::~File() {
    if (number_ >= 0) close(number_);
}

int File::release() { return std::exchange(number_, -1); }

File open_directory(const char* place, uid_t user) {
    File directory(TEMP_FAILURE_RETRY(open(place, O_RDONLY | O_DIRECTORY | OWN)));
    if (directory.number() < 0) {
        if (errno == ELOOP || errno == ENOTDIR) throw Doubt("it is not a directory");
        fail();
    }
    doubt_owner(facts_of(directory), user);
    return directory;
}

CacheEntry read_entry(int directory, const std::string& name, uid_t user, Part environment) {
    // Without waiting: a pipe in its stead would let us wait for ever.
    const int flags = O_RDONLY | O_NONBLOCK | OWN;
    File file(TEMP_FAILURE_RETRY(openat(directory, name.c_str(), flags)));
    if (file.number() < 0) {
        if (errno == ELOOP) throw Doubt("it is a symbolic link");
        fail();
    }
    const struct stat facts = facts_of(file);
    if (!S_ISREG(facts.st_mode)) throw Doubt("it is not a file");
    doubt_owner(facts, user);
    if (std::size_t(facts.st_size) > CacheEntry::LARGEST) throw Doubt(damaged(facts.st_size));
    CacheEntry entry(content(file, std::size_t(facts.st_size)));
    if (in_hexadecimal(entry.key) != name) throw Doubt("it is the entry of another kernel");
    if (environment.empty()) return entry;
    if (!equal(entry.environment, environment))
        throw Doubt("it is for another processor, or by another version");
    note_use(file, facts);
    return entry;
}

std::string in_hexadecimal(Part bytes) {
    std::string text;
    text.reserve(2 * bytes.size());
    for (uint8_t byte : bytes)
        for (int half : {byte >> 4, byte & 15}) text += "0123456789abcdef"[half];
    return text;
}

} // namespace tenfold
