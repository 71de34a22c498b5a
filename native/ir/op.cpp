#include "ir/op.h"

#include <memory>
#include <unordered_map>

#include "threads/fork_safe_lock.h"

namespace tenfold {
namespace {

struct Table {
    Lock lock; // protects everything here
    std::unordered_map<uint32_t, std::unique_ptr<Op>> ops;
    uint32_t next = 0; // no number comes twice: forms of plans have them
};

Table* const the_table = new Table; // made when the library is loaded; outlives every Node

Table& table() { return *the_table; }

} // namespace

Op& declare_op(std::string name) {
    auto made = std::make_unique<Op>();
    made->name = std::move(name);
    Guard guard(table().lock);
    made->id = table().next++;
    return *(table().ops[made->id] = std::move(made));
}

Op* find_op(uint32_t id) {
    Guard guard(table().lock);
    auto found = table().ops.find(id);
    return found == table().ops.end() ? nullptr : found->second.get();
}

void free_op(uint32_t id) {
    Guard guard(table().lock);
    table().ops.erase(id);
}

std::size_t declared_ops() {
    Guard guard(table().lock);
    return table().ops.size();
}

} // namespace tenfold
