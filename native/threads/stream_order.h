// Stream order: which work of other queues must be done before a launch or a copy may use memory.
// A device with several queues notes for each block of its memory the last work that wrote and that
// read it, by queue. So readers overlap, and whatever comes after them waits. A free block keeps
// its notes: it may be handed out again at once.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace tenfold {

constexpr std::size_t MAX_QUEUES = 8;
using Progress = std::array<uint64_t, MAX_QUEUES>; // by queue: its work up to this number

// The number of a work on its queue, which counts from 1, as the ticket of an Event.
constexpr uint64_t ticket_of(std::size_t queue, uint64_t number) {
    return number * MAX_QUEUES + queue;
}

// The blocks of memory of a device. The device's lock protects them.
class DeviceMemory {
  public:
    struct Block {
        std::size_t bytes = 0;
        Progress written{}, read{}; // the work that must be done before others write, or read
        std::size_t queue = 0;      // that used it last
        uint32_t borrowers = 0;     // of memory that another library owns
        bool lent = false;          // another library may yet read it, by queues of its own
    };
    using Blocks = std::map<char*, Block>;

    void add(void* begin, std::size_t bytes) { blocks_[static_cast<char*>(begin)].bytes = bytes; }
    // A free block of so many bytes that `queue` has used last; of `any` queue. Null: none.
    void* take(std::size_t bytes, std::size_t queue, bool any);
    void release(void* begin); // now it is free
    // Forgets the free blocks and returns them, with their bytes.
    std::vector<std::pair<void*, std::size_t>> forget_free();
    // The block in which an address is; blocks().end() for memory that is not of the device.
    Blocks::iterator find(const void* address);
    Blocks& blocks() { return blocks_; }

    // Notes that the work of this number uses memory; adds what must be done before to `needed`.
    void use(const void* address, bool writes, std::size_t queue, uint64_t number,
             Progress& needed);

  private:
    Blocks blocks_;
    std::map<std::pair<std::size_t, std::size_t>, std::vector<void*>> free_; // by bytes and queue
};

} // namespace tenfold
