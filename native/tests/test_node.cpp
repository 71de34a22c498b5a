// Node test: kinds and depths compose, and a published node drops its inputs. Readers are found,
// and a long chain is freed and linearized without recursion. Scalars are checked against their
// dtype's range.
#include "check.h"
#include "graphs.h"
#include "ir/linearize.h"

using namespace tenfold;
using namespace tenfold::testing;

static void kinds_and_depths_compose() {
    Ref<Node> x = leaf(4);
    CHECK(x->kind == VALUE && x->depth == 0);
    Ref<Node> y = add(add(x, x), x);
    CHECK(y->kind == MAP && y->depth == 2);
}

static void published_node_drops_its_inputs() {
    Ref<Node> x = leaf(4);
    Ref<Node> y = add(x, x);
    CHECK(x->references.load() == 3);
    publish(y.get(), x->value);
    CHECK(x->references.load() == 1);
    CHECK(y->kind == VALUE && y->depth == 0 && inputs_of(y.get()).empty());
    CHECK(value_of(y.get()) == x->value);
}

static void readers_are_found_among_all_nodes() {
    Ref<Node> x = leaf(4), other = leaf(4);
    CHECK(readers_of(x.get()).empty());
    Ref<Node> once = add(x, other), twice = add(x, x), above = add(once, once);
    std::vector<Ref<Node>> readers = readers_of(x.get());
    CHECK(readers.size() == 2);
    CHECK((readers[0] == once && readers[1] == twice) ||
          (readers[0] == twice && readers[1] == once));
    readers.clear();
    publish(once.get(), x->value);
    twice = nullptr; // its slot is free: its former inputs are only bytes
    CHECK(readers_of(x.get()).empty());
    for (int i = 0; i < 5000; ++i) above = add(above, other); // more than one chunk holds
    CHECK(readers_of(other.get()).size() == 5000);
}

static void long_chain_is_walked_and_freed() {
    Ref<Node> first = leaf(4);
    Ref<Node> last = first;
    for (int i = 0; i < 1'000'000; ++i) last = add(last, first);
    Node* outputs[] = {last.get()};
    LinearizedGraph graph = linearize(outputs);
    std::vector<LinearizedNode>& order = graph.nodes;
    CHECK(order.size() == 1'000'001);
    CHECK(order.front().node == first && order.front().num_uses == 1'000'001);
    CHECK(order.back().live_out && !order[1].live_out);
    std::span<const uint32_t> inputs = graph.inputs(order[2]);
    CHECK(inputs.size() == 2 && inputs[0] == 1 && inputs[1] == 0);
}

static void node_seen_outside_is_held() {
    Ref<Node> x = leaf(4);
    Ref<Node> seen = add(x, x);
    Ref<Node> last = add(add(seen, x), seen);
    Node* outputs[] = {last.get()};
    LinearizedGraph graph = linearize(outputs);
    std::vector<LinearizedNode>& order = graph.nodes;
    CHECK(order.size() == 4);
    CHECK(order[1].node == seen && order[1].live_out);
    CHECK(!order[2].live_out);
}

static void nodes_that_are_read_often_have_one_place() {
    std::vector<Ref<Node>> leaves; // more than are looked for one by one
    for (int i = 0; i < 40; ++i) leaves.push_back(leaf(3));
    Ref<Node> sum = add(leaves[0], leaves[0]);
    for (int again = 0; again < 2; ++again)
        for (const Ref<Node>& node : leaves) sum = add(sum, node);
    Ref<Node> inner = sum;
    sum = add(sum, sum);
    Node* outputs[] = {sum.get(), inner.get()};
    LinearizedGraph graph = linearize(outputs);
    CHECK(graph.nodes.size() == 40 + 82 && graph.outputs[0] == 121 && graph.outputs[1] == 120);
    CHECK(graph.nodes[0].num_uses == 4 && graph.nodes[0].live_out && graph.nodes[1].num_uses == 1);
    for (const LinearizedNode& entry : graph.nodes)
        for (uint32_t at : graph.inputs(entry)) CHECK(&graph.nodes[at] < &entry);
}

static void counts_are_right_without_outsiders() {
    gil_free_threads.store(0); // as where one holds the GIL
    Ref<Node> x = leaf(3), sum = add(x, x), other = add(sum, x);
    CHECK(x->references.load() == 4 && sum->references.load() == 2);
    Node* outputs[] = {other.get()};
    CHECK(linearize(outputs).nodes.size() == 3);
    CHECK(x->references.load() == 4);
    other = nullptr;
    CHECK(x->references.load() == 3 && sum->references.load() == 1);
    sum = nullptr;
    CHECK(x->references.load() == 1);
    gil_free_threads.store(1);
}

static void scalars_are_held_against_their_dtype() {
    declare_dtype(10, {'i', 1});
    declare_dtype(11, {'u', 8});
    declare_dtype(12, {'f', 4});
    Ref<Type> weak = intern_type({{}, 1, 0, 0, true});
    auto refused = [&](Scalar scalar, uint16_t dtype, bool exponent = false) {
        Op op;
        op.whole_exponent = exponent;
        Inference inference;
        inference.operands = {dtype, dtype};
        Ref<Node> x = leaf(1), s = scalar_node(scalar, weak);
        Node* inputs[] = {x.get(), s.get()};
        return first_scalar_out_of_range(op, inference, inputs) == 2;
    };
    Scalar number;
    number.form = Scalar::integer;
    number.integer_bits = 127;
    CHECK(!refused(number, 10));
    number.integer_bits = 128;
    CHECK(refused(number, 10));
    number.integer_bits = -128;
    CHECK(!refused(number, 10) && refused(number, 10, true));
    number.integer_bits = -1;
    CHECK(refused(number, 11) && !refused(number, 12));
    number.form = Scalar::uint64_integer;
    CHECK(!refused(number, 11) && refused(number, 10));
    number.form = Scalar::big_integer;
    CHECK(refused(number, 11) && !refused(number, 12));
}

int main() {
    kinds_and_depths_compose();
    published_node_drops_its_inputs();
    readers_are_found_among_all_nodes();
    long_chain_is_walked_and_freed();
    node_seen_outside_is_held();
    nodes_that_are_read_often_have_one_place();
    counts_are_right_without_outsiders();
    scalars_are_held_against_their_dtype();
}
