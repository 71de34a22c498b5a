#include "op.h"

#include <deque>

#include "lock.h"

namespace tenfold {
namespace {

struct Table {
    Lock lock; // protects ops while it grows; a deque never moves its elements
    std::deque<Op> ops;
};

Table* const the_table = new Table; // made when the library is loaded; outlives every Node

Table& table() { return *the_table; }

} // namespace

Op& declare_op(std::string name) {
    Guard guard(table().lock);
    Op& op = table().ops.emplace_back();
    op.id = uint32_t(table().ops.size() - 1);
    op.name = std::move(name);
    return op;
}

Op* find_op(uint32_t id) {
    Guard guard(table().lock);
    return id < table().ops.size() ? &table().ops[id] : nullptr;
}

} // namespace tenfold
