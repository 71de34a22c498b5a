// Test programs: small programs on an engine, with the expected values of their handles. The
// expected values come from a sequential evaluation of the same program, in the order of its
// threads' pushes.
#pragma once
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine_host.h"

namespace tenfold {

struct Statement {
    enum Verb : uint8_t {
        put,      // a number
        elements, // a push, as the next: of two inputs
        user,
        impure,
        batched,
        in_place,
        add,    // an increment
        gather, // an increment that `run` makes
        merge,  // one that is added by the operator, too
        fails,
        drop, // a handle, as the next
        cancel,
        look,
        call,  // when it is settled; goes on at once
        await, // until it is called
        wait,
        flush,
        hold,
        let_go
    };
    Verb verb;
    std::size_t first = 0, second = 0; // handles of its thread; 0 is shared
};
using Script = std::vector<Statement>;

inline const char* name_of(Statement::Verb verb) {
    static constexpr const char* NAMES[] = {"put",      "elements", "user",   "impure", "batched",
                                            "in_place", "add",      "gather", "merge",  "fails",
                                            "drop",     "cancel",   "look",   "call",   "await",
                                            "wait",     "flush",    "hold",   "let_go"};
    return NAMES[verb];
}

inline bool is_push(Statement::Verb verb) {
    return verb >= Statement::elements && verb <= Statement::fails;
}

inline std::string show(const std::vector<Script>& scripts) {
    std::string text;
    for (const Script& script : scripts) {
        text += "  a thread:";
        for (const Statement& each : script)
            text += std::string(" {Statement::") + name_of(each.verb) + ", " +
                    std::to_string(each.first) + ", " + std::to_string(each.second) + "}";
        text += "\n";
    }
    return text;
}

inline const Ref<Operation>& make_operation(Statement::Verb verb) {
    static const auto* all = new std::vector<Ref<Operation>>{
        addition(),
        make_operation(Operation::user, true),
        make_operation(Operation::user, false),
        make_operation(Operation::batched, true),
        make_operation(Operation::in_place, false),
        make_operation(Operation::cumulative, false),
        make_operation(Operation::cumulative, false, "gather"),
        make_operation(Operation::cumulative, false, "merge"),
        make_operation(Operation::user, true, "fails"),
    };
    return (*all)[verb - Statement::elements];
}

// The pushes, in order, and their expected results.
class Model {
  public:
    enum Reasons : uint8_t { none = 0, failed = 1, cancelled = 2 };
    struct Node {
        Statement::Verb verb;
        std::vector<std::size_t> inputs;
        std::size_t object;
        uint64_t number = 0; // of its push
        bool cancelled = false;
        double value = 0;
        int reasons = none;
    };

    std::size_t put(double value) {
        nodes.push_back({Statement::put, {}, heads_.size(), 0, false, value});
        heads_.push_back(nodes.size() - 1);
        return nodes.size() - 1;
    }
    // In-place operators and increments are pushed on the newest version of an object.
    std::size_t push(Statement::Verb verb, std::size_t first, std::size_t second, uint64_t number) {
        bool changes = verb >= Statement::in_place && verb <= Statement::merge;
        std::size_t object = changes ? nodes[first].object : heads_.size();
        if (changes)
            first = heads_[object];
        else
            heads_.push_back(0);
        nodes.push_back({verb, {first, second}, object, number});
        return heads_[object] = nodes.size() - 1;
    }
    void evaluate() {
        for (Node& node : nodes) {
            if (node.verb == Statement::put) continue;
            node.value = node.verb == Statement::in_place ? 1 : 0;
            for (std::size_t input : node.inputs) {
                node.value += nodes[input].value;
                node.reasons |= nodes[input].reasons;
            }
            if (node.cancelled) node.reasons |= cancelled;
            if (node.verb == Statement::fails && !node.reasons) node.reasons = failed;
        }
    }
    // Whether a Future has its expected result.
    static bool agrees(const Node& node, const Future& future) {
        if (!future.is_settled()) return false;
        if (!node.reasons) return !future.failure && number_of(future) == node.value;
        return future.failure && (node.reasons & (future.failure->error ? failed : cancelled));
    }

    std::vector<Node> nodes;

  private:
    std::vector<std::size_t> heads_; // of each object
};

// A thread's program of so many statements.
inline Script random_script(std::mt19937& random, std::size_t length) {
    using S = Statement;
    static constexpr S::Verb PUSHES[] = {S::elements, S::elements, S::elements, S::user,
                                         S::impure,   S::batched,  S::in_place, S::add,
                                         S::gather,   S::merge,    S::fails};
    static constexpr S::Verb OTHERS[] = {S::put,   S::drop, S::drop, S::cancel, S::look, S::call,
                                         S::await, S::wait, S::wait, S::flush,  S::hold};
    Script script;
    std::vector<std::size_t> live{0};
    std::size_t handles = 1;
    bool held = false;
    while (script.size() < length || held) {
        bool pushes = random() % 3 > 0 && script.size() < length;
        S::Verb verb = pushes ? PUSHES[random() % 11] : OTHERS[random() % 11];
        if (held && (script.size() >= length || random() % 4 == 0)) verb = S::let_go;
        if (verb == S::hold && held) continue;
        if (verb == S::hold || verb == S::let_go) held = verb == S::hold;
        std::size_t place = random() % live.size();
        std::size_t first = live[place], second = live[random() % live.size()];
        if (verb == S::drop) {
            if (first == 0) continue;
            live.erase(live.begin() + std::ptrdiff_t(place));
        }
        script.push_back({verb, first, second});
        if (is_push(verb) || verb == S::put) live.push_back(handles++);
    }
    return script;
}

} // namespace tenfold
