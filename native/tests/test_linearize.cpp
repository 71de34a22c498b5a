// Linearization test: the properties by which a linearized graph distinguishes its nodes.
#include "check.h"
#include "graphs.h"
#include "ir/linearize.h"

using namespace tenfold;
using namespace tenfold::testing;

int main() {
    // Parts of one array that have one Inference do not all meet in one place of a table.
    Op& index = declare_op("index");
    index.part = Op::slice;
    Ref<Node> x = leaf(8);
    Node* inputs[] = {x.get()};
    Ref<Inference> known = inferred(x->type).inference;
    auto part = [&](const char* params) {
        return operation_node(&index, intern_params(params), {known, x->type}, inputs);
    };
    Ref<Node> one = part("1"), other = part("2"), again = part("1");
    CHECK(hash_of_operation(*one) != hash_of_operation(*other));
    CHECK(hash_of_operation(*one) == hash_of_operation(*again));
    return 0;
}
