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

Table* const op_table_instance = new Table; // made when the library is loaded; outlives every Node

Table& op_table() { return *op_table_instance; }

} // namespace

Op& declare_op(std::string name) {
    auto op = std::make_unique<Op>();
    op->name = std::move(name);
    Guard guard(op_table().lock);
    op->id = op_table().next++;
    return *(op_table().ops[op->id] = std::move(op));
}

Op* find_op(uint32_t id) {
    Guard guard(op_table().lock);
    auto it = op_table().ops.find(id);
    return it == op_table().ops.end() ? nullptr : it->second.get();
}

void free_op(uint32_t id) {
    Guard guard(op_table().lock);
    op_table().ops.erase(id);
}

std::size_t declared_ops() {
    Guard guard(op_table().lock);
    return op_table().ops.size();
}

} // namespace tenfold
