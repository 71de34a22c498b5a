#include "dispatch/gil_free_call.h"

namespace tenfold {

Replaying::Replaying(const GilFreeCall& planned, bool& first) : planned_(planned), first_(first) {
    walked_.nodes = planned.pattern->walked.nodes;
    key_.moved = planned.moved;
}

bool Replaying::give(std::size_t leaf, const Ref<Value>& value) {
    uint32_t place = planned_.pattern->leaves[leaf];
    if (place == GraphTemplate::NOWHERE) return true;
    LinearizedNode& entry = walked_.nodes[place];
    if (!value || !value->strides.empty() || value->type != entry.node->type) return false;
    entry.value = value;
    return true;
}

Ref<Value> Replaying::run() {
    made_.assign(planned_.outputs.size(), {});
    bool done = replay(*planned_.plan, walked_, key_, *this);
    first_ = false;
    if (made_.size() == 1) return done ? std::move(made_[0]) : Ref<Value>();
    Ref<Value> chain;
    while (done &&
           !made_.empty()) { // each in a Value of its own: it may be an input's, or be twice
        if (!made_.back()) return {};
        chain = Value::like(*made_.back(), std::move(chain));
        made_.pop_back();
    }
    return chain;
}

void Replaying::count(Counter counter) {
    if (first_) count_anywhere(counter);
}

Result Replaying::launch(Work& work) {
    if (work.threads > threads()) set_threads(work.threads);
    return Launch(work).run();
}

void Replaying::publish(Node* node, Ref<Value> value) {
    for (std::size_t i = 0; i < made_.size(); ++i)
        if (walked_.nodes[planned_.outputs[i]].node.get() == node) made_[i] = value;
}

void run_planned(const GilFreeCall& planned, std::span<const Ref<Future>> members,
                 std::span<Answer> made, bool first) {
    Replaying replaying(planned, first);
    for (std::size_t i = 0; i < members.size(); ++i) {
        if (!made[i].empty()) continue;
        std::size_t leaf = 0;
        bool right = true;
        for (Edge& edge : members[i]->inputs()) right &= replaying.give(leaf++, edge.input->value);
        for (const Ref<Value>& value : members[i]->operation->captured)
            right &= replaying.give(leaf++, value);
        if (right) made[i].value = replaying.run();
    }
}

} // namespace tenfold
