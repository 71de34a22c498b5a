// Cache entry test: any altered entry is refused, and nothing outside the bytes is read.
#include "check.h"
#include "jit/cache_entry.h"
#include "jit/sha256.h"

#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <string>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

using namespace tenfold;

static void append(Bytes& bytes, uint64_t number, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) bytes.push_back(uint8_t(number >> 8 * i));
}

static Bytes signed_with_hash(Bytes bytes) {
    Digest digest = sha256(bytes.data(), bytes.size());
    bytes.insert(bytes.end(), digest.begin(), digest.end());
    return bytes;
}

// As jit/cache_entry.py writes it: two functions, a note of three bytes, code of a hundred.
static Bytes unsigned_entry() {
    Bytes bytes;
    for (char letter : std::string("TENFOLD\n")) bytes.push_back(uint8_t(letter));
    for (uint32_t number : {1u, 2u, 2u, 3u}) append(bytes, number, 4);
    for (uint64_t number : {100u, 250u}) append(bytes, number, 8);
    bytes.insert(bytes.end(), 32, 0x11);
    bytes.insert(bytes.end(), 32, 0x22);
    for (uint64_t place : {0u, 64u}) append(bytes, place, 8);
    for (char letter : std::string("sum")) bytes.push_back(uint8_t(letter));
    bytes.insert(bytes.end(), 100, 0xc3);
    return bytes;
}

static bool refused(const Bytes& bytes) {
    try {
        CacheEntry entry(bytes);
        for (uint64_t place : entry.function_offsets) CHECK(place < entry.code.size());
        uint32_t read = entry.level; // an accepted entry can be read to its ends
        for (Part part : {entry.environment, entry.key, entry.note, entry.code})
            for (uint8_t byte : part) read += byte;
        return read == 0xffffffff;
    } catch (const InvalidEntry&) { return true; }
}

static void what_was_written_is_read() {
    CacheEntry entry(signed_with_hash(unsigned_entry()));
    CHECK(entry.level == 2 && entry.microseconds == 250);
    CHECK(entry.function_offsets == (std::vector<uint64_t>{0, 64}));
    CHECK(entry.code.size() == 100 && entry.code[99] == 0xc3);
    CHECK(std::string(entry.note.begin(), entry.note.end()) == "sum");
    CHECK(to_hex(entry.key).substr(0, 4) == "2222");
    CacheEntry moved(std::move(entry));
    CHECK(moved.code[0] == 0xc3 && moved.environment[31] == 0x11);
}

static void every_flipped_bit_and_every_end_is_refused() {
    const Bytes whole = signed_with_hash(unsigned_entry());
    CHECK(!refused(whole));
    for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
        Bytes spoilt = whole;
        spoilt[bit / 8] ^= uint8_t(1 << bit % 8);
        CHECK(refused(spoilt));
    }
    for (std::size_t length = 0; length < whole.size(); ++length)
        CHECK(refused(Bytes(whole.begin(), whole.begin() + std::ptrdiff_t(length))));
}

// An attacker who can write a hash can write any bytes: the entry is rejected, or stays within
// them.
static void whatever_has_its_hash_stays_within_its_bytes() {
    std::mt19937 choices(0);
    const Bytes content = unsigned_entry();
    for (int turn = 0; turn < 20'000; ++turn) {
        Bytes spoilt = content;
        for (unsigned change = choices() % 4; change <= 4; ++change) {
            std::size_t begin = choices() % 40 + (choices() % 4 ? 0 : 64);
            spoilt[begin] = uint8_t(choices() % 3 ? choices() : choices() % 5);
        }
        (void)refused(signed_with_hash(spoilt));
    }
}

static void files_are_read_with_suspicion() {
    char place[] = "/tmp/tenfold-entries-XXXXXX";
    CHECK(mkdtemp(place));
    FileDescriptor directory = open_directory(place, geteuid());
    const std::string name(64, '2');
    auto reading = [&](const std::string& of, uid_t user) -> std::string {
        try {
            return read_entry(directory.descriptor(), of, user).level == 2 ? "read" : "";
        } catch (const InvalidEntry& doubt) {
            return doubt.what();
        } catch (const std::system_error& error) {
            return error.code() == std::errc::no_such_file_or_directory ? "none" : "";
        }
    };
    CHECK(reading(name, geteuid()) == "none");
    const Bytes whole = signed_with_hash(unsigned_entry());
    {
        FileDescriptor file(openat(directory.descriptor(), name.c_str(), O_WRONLY | O_CREAT, 0600));
        CHECK(write(file.descriptor(), whole.data(), whole.size()) == ssize_t(whole.size()));
    }
    CHECK(reading(name, geteuid()) == "read");
    CHECK(reading(name, geteuid() + 1) == "it belongs to another user");
    const std::string other(64, '3');
    CHECK(linkat(directory.descriptor(), name.c_str(), directory.descriptor(), other.c_str(), 0) ==
          0);
    CHECK(reading(other, geteuid()) == "it is the entry of another kernel");
    CHECK(fchmodat(directory.descriptor(), name.c_str(), 0640, 0) == 0);
    CHECK(reading(name, geteuid()) == "others may use it, its mode is 640");
    for (const std::string& each : {name, other})
        CHECK(unlinkat(directory.descriptor(), each.c_str(), 0) == 0);
    CHECK(rmdir(place) == 0);
}

int main() {
    what_was_written_is_read();
    every_flipped_bit_and_every_end_is_refused();
    whatever_has_its_hash_stays_within_its_bytes();
    files_are_read_with_suspicion();
}
