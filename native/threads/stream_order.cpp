#include "threads/stream_order.h"

#include <algorithm>
#include <limits>

namespace tenfold {

void* DeviceMemory::take(std::size_t bytes, std::size_t queue, bool any) {
    auto found = free_.lower_bound({bytes, any ? 0 : queue});
    if (found == free_.end() || found->first.first != bytes) return nullptr;
    if (!any && found->first.second != queue) return nullptr;
    void* block = found->second.back();
    found->second.pop_back();
    if (found->second.empty()) free_.erase(found);
    return block;
}

void DeviceMemory::release(void* begin) {
    const Block& block = blocks_.at(static_cast<char*>(begin));
    free_[{block.bytes, block.queue}].push_back(begin);
}

std::vector<std::pair<void*, std::size_t>> DeviceMemory::forget_free() {
    std::vector<std::pair<void*, std::size_t>> all;
    for (auto& [key, blocks] : free_)
        for (void* begin : blocks) {
            all.emplace_back(begin, key.first);
            blocks_.erase(static_cast<char*>(begin));
        }
    free_.clear();
    return all;
}

DeviceMemory::Blocks::iterator DeviceMemory::find(const void* address) {
    auto* at = static_cast<char*>(const_cast<void*>(address));
    auto next = blocks_.upper_bound(at);
    if (next == blocks_.begin()) return blocks_.end();
    auto block = std::prev(next);
    return at < block->first + block->second.bytes ? block : blocks_.end();
}

void DeviceMemory::use(const void* address, bool writes, std::size_t queue, uint64_t number,
                       Progress& needed) {
    auto found = find(address);
    if (found == blocks_.end()) return;
    Block& block = found->second;
    for (std::size_t i = 0; i < MAX_QUEUES; ++i)
        needed[i] = std::max({needed[i], block.written[i], writes ? block.read[i] : 0});
    if (writes) block.written = block.read = {};
    (writes ? block.written : block.read)[queue] = number;
    block.queue = queue;
}

} // namespace tenfold
